"""Whether something grows: the slope of its second half, by a fit that outliers do not move."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True, slots=True)
class Growth:
    """The median over the second half, and by how much it grew over that half."""

    median: float
    grown: float
    low: float
    high: float


def growth(seconds: Sequence[float], values: Sequence[float]) -> Growth:
    """Of the second half of the time, by Theil and Sen: the median of the slopes between any two
    points, so a third of them may be off. Raises StatisticsError for fewer than two points."""
    middle = (seconds[0] + seconds[-1]) / 2
    points = [(at, value) for at, value in zip(seconds, values, strict=True) if at >= middle]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if b[0] > a[0]]
    later = [value for _, value in points]
    span = points[-1][0] - points[0][0]
    return Growth(
        statistics.median(later), statistics.median(slopes) * span, min(later), max(later)
    )


@dataclass(frozen=True, slots=True)
class Tolerance:
    """By how much something may have grown over the second half and still count as flat: a share
    of its median, and at least so much."""

    share: float
    least: float

    def allowed(self, found: Growth) -> float:
        """How much that is."""
        return max(self.least, self.share * abs(found.median))

    def allows(self, found: Growth) -> bool:
        """True of what is flat, or shrinks."""
        return found.grown <= self.allowed(found)
