"""When the cycles of a flow start (pure).

They start at multiples of the interval, so that they do not drift. Starts that a long cycle misses
are skipped and counted.
"""

from dataclasses import dataclass

# The longest wait after a refused login, if two intervals are shorter.
REFUSED_SECONDS = 300.0


@dataclass(slots=True)
class Schedule:
    """The schedule of one flow. Times and `interval` are seconds of a monotonic clock; `due` is
    when the next cycle starts. `waits` is the number of intervals to wait after a failure; 0 if the
    last cycle did not fail."""

    interval: float
    due: float
    waits: int = 0

    def advance(self, now: float, *, failed: bool = False, refused: bool = False) -> int:
        """Set `due` to the next start after the end of a cycle, and return the number of starts
        that the cycle missed.

        After a second failure in a row, one more start is skipped and not counted, so an
        unreachable cluster is tried half as often. (If a cycle was requested before `due`, that
        start may have been skipped already.) If the failure is a refused login, the wait doubles
        up to five minutes: each attempt may count towards the lock of an account.
        """
        times = max(1, -int(-(now - self.due) // self.interval))
        self.due += times * self.interval
        most = max(2, int(REFUSED_SECONDS // self.interval)) if refused else 2
        self.waits = min(max(1, 2 * self.waits), most) if failed else 0
        while self.waits > 1 and self.due - now <= (self.waits - 1) * self.interval:
            self.due += self.interval
        return times - 1

    def began_early(self, now: float) -> None:
        """A cycle was requested before it was due; later starts do not move."""
        while now < self.due:
            self.due -= self.interval

    def restart(self, now: float, interval: float | None = None) -> None:
        """Make the next cycle due now, with another interval if one is given."""
        self.due = now
        self.interval = interval or self.interval
        self.waits = 0
