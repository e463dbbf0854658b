"""What is to stay flat in a soak, and whether it did."""

from collections.abc import Mapping, Sequence

from tests.soak.flatness import Growth, Tolerance, growth
from tests.soak.samples import Sample

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
