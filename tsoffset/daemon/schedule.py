"""When the cycles of a flow start (pure).

They start at multiples of the interval, so that they do not drift. Starts that a long cycle misses
are skipped and counted.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Schedule:
    """The schedule of one flow. Times and `interval` are seconds of a monotonic clock; `due` is
    when the next cycle starts."""

    interval: float
    due: float

    def advance(self, now: float, *, failures_in_a_row: int = 0) -> int:
        """Set `due` to the next start after the end of a cycle, and return the number of starts
        that the cycle missed.

        After a second failure in a row, one more start is skipped and not counted, so an
        unreachable cluster is tried half as often. (If a cycle was requested before `due`, that
        start may have been skipped already.)
        """
        times = max(1, -int(-(now - self.due) // self.interval))
        self.due += times * self.interval
        if failures_in_a_row > 1 and self.due - now <= self.interval:
            self.due += self.interval
        return times - 1

    def began_early(self, now: float) -> None:
        """A cycle was requested before it was due; later starts do not move."""
        if now < self.due:
            self.due -= self.interval

    def restart(self, now: float, interval: float | None = None) -> None:
        """Make the next cycle due now, with another interval if one is given."""
        self.due = now
        self.interval = interval or self.interval
