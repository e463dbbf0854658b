"""When the cycles of a flow begin (pure).

They begin on one grid of times, an interval apart, so that nothing drifts. What a long cycle runs
past is left out and counted, never made up for.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Schedule:
    """The grid of one flow; times and `interval` are seconds of a monotonic clock. `due` is when
    the next cycle begins."""

    interval: float
    due: float

    def ended(self, now: float, *, failures_in_a_row: int = 0) -> int:
        """A cycle has ended: set `due` to the next time of the grid, and return how many were left
        out since it was still running.

        After a second failure in a row one more time is left out, which is not counted: what is
        down is asked half as often, and found again within two intervals.
        """
        times = max(1, -int(-(now - self.due) // self.interval))
        self.due += times * self.interval
        if failures_in_a_row > 1:
            self.due += self.interval
        return times - 1

    def began_early(self, now: float) -> None:
        """A cycle was asked for before it was due; the grid stays where it is."""
        if now < self.due:
            self.due -= self.interval

    def restart(self, now: float, interval: float | None = None) -> None:
        """Begin a new grid now, with another interval where one is given."""
        self.due = now
        self.interval = interval or self.interval
