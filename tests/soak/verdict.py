"""What is to stay flat in a soak, and whether it did: by the slope of its second half, and a fit
that outliers do not move."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from tests.soak.samples import Sample


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


# By how much each may grow over the second half: a share of its median, or at least so much.
TOLERANCES: Mapping[str, Tolerance] = {
    "driver_mb": Tolerance(0.03, 4),
    "java_mb": Tolerance(0.03, 4),
    "heap_mb": Tolerance(0.03, 1),
    "workers_mb": Tolerance(0.03, 4),
    "worker_processes": Tolerance(0, 1),
    "driver_threads": Tolerance(0.03, 2),
    # Two pools of Spark's have up to 128 each, which end after a minute without work.
    "java_threads": Tolerance(0.1, 40),
    "worker_threads": Tolerance(0.03, 2),
    "driver_files": Tolerance(0.03, 2),
    "java_files": Tolerance(0.03, 2),
    "worker_files": Tolerance(0.03, 2),
    "driver_sockets": Tolerance(0.03, 2),
    "java_sockets": Tolerance(0.03, 2),
    "worker_sockets": Tolerance(0.03, 2),
    "retained": Tolerance(0.1, 10),
    "spark_kb": Tolerance(0.03, 8),
    "spark_files": Tolerance(0.03, 2),
    "state_kb": Tolerance(0.1, 4),
    "state_files": Tolerance(0, 1),
}


def growths(samples: Sequence[Sample]) -> dict[str, Growth]:
    """Of everything in the samples, by its name."""
    seconds = [one["at"] for one in samples]
    names = [name for name in samples[0] if name != "at"]
    return {name: growth(seconds, [one[name] for one in samples]) for name in names}


def growing(found: Mapping[str, Growth]) -> list[str]:
    """A sentence for each that grew by more than it may."""
    return [
        f"{name} grew by {found[name].grown:.3g} over the second half (median "
        f"{found[name].median:.4g}); it may by {tolerance.allowed(found[name]):.3g}"
        for name, tolerance in TOLERANCES.items()
        if not tolerance.allows(found[name])
    ]
