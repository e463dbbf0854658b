"""`python -m benchmarks.memory`: the peak memory of processes, over more and larger batches.

Cycles over few and many source offsets, each in its own batch of 1 MB: with ten large records, and
with thousands of small ones, of which only a limited number may be kept. Then 100,000 source
offsets in batches of 100 records. Each in a fresh Spark session; what was read must leave no trace.
"""

import argparse
from collections.abc import Mapping
from functools import partial

from benchmarks.cycles import cycle, forget_peaks, peaks_mb, session
from benchmarks.estates import TOPIC, Clusters, Commits, Log, exact_rows, two_brokers
from benchmarks.filling import Batches
from benchmarks.measures import in_turns, ratio_spread, rounded, spread
from benchmarks.results import Result, options, run, shown
from tsoffset.config.loading import Configuration
from tsoffset.model import TopicPartition

# Source offsets in batches of large records, and in batches of many.
LARGE, MANY = Batches(10, 100_000), Batches(9_000, 100)
SIZES = {"few": 500, "many": 2_000, "few_of_many": 250, "many_of_many": 1_000}
QUICK = {"few": 50, "many": 200, "few_of_many": 50, "many_of_many": 200}
SMALL = 100_000
PARTITIONS = 10


def _measure(chosen: argparse.Namespace) -> Result:
    sizes = QUICK if chosen.quick else SIZES
    small = chosen.small if chosen.small is not None else 0 if chosen.quick else SMALL
    with two_brokers() as clusters:
        commits = {
            **_one_a_batch(
                clusters, "large", LARGE, {name: sizes[name] for name in ("few", "many")}
            ),
            **_one_a_batch(
                clusters,
                "many",
                MANY,
                {name: sizes[name] for name in ("few_of_many", "many_of_many")},
            ),
        }
        names = list(sizes)
        if small:
            commits |= _small(clusters, small)
            names.append("small")
        clusters.commit(commits)
        configuration = clusters.flow_file()
        works = {name: partial(_fresh, configuration, f"{name}-[0-9]+") for name in names}
        found = in_turns(works, min(chosen.runs, 2))
    return {
        "estates": {
            name: {
                **all_runs[-1],
                **{
                    key: spread(one[key] for one in all_runs)
                    for key in ("driver_mb", "worker_mb", "seconds")
                },
            }
            for name, all_runs in found.items()
        },
        "ratios": {
            f"{process}_{name}": ratio_spread(
                *([one[f"{process}_mb"] for one in found[each]] for each in estates)
            )
            for process in ("worker", "driver")
            for name, estates in (
                ("many_over_few", ("many", "few")),
                ("many_over_few_of_many", ("many_of_many", "few_of_many")),
            )
        },
    }


def _one_a_batch(
    clusters: Clusters, kind: str, batches: Batches, sizes: Mapping[str, int]
) -> Commits:
    """A topic of batches of a megabyte, and for each size groups whose offsets are all in different
    batches, on every partition."""
    count = max(sizes.values()) // PARTITIONS
    topic = f"{TOPIC}-{kind}"
    clusters.write(Log(PARTITIONS, count * batches.records, 0, batches, batches), topic)
    return {
        f"{name}-{number:04}": {
            TopicPartition(topic, partition): batches.records * number + 3
            for partition in range(PARTITIONS)
        }
        for name, size in sizes.items()
        for number in range(size // PARTITIONS)
    }


def _small(clusters: Clusters, positions: int) -> Commits:
    """Ten records between any two source offsets."""
    each = positions // PARTITIONS
    topic = f"{TOPIC}-small"
    clusters.write(Log(PARTITIONS, 10 * each), topic)
    return {
        f"small-{number:05}": {
            TopicPartition(topic, partition): 10 * number for partition in range(PARTITIONS)
        }
        for number in range(each)
    }


def _fresh(configuration: Configuration, groups: str) -> Result:
    with session() as spark:
        forget_peaks()
        result = cycle(spark, configuration, groups=groups)
        peaks = peaks_mb()
    assert exact_rows(result.rows, 0) == len(result.rows)
    shown(groups, {"seconds": rounded(result.seconds), **peaks})
    return {
        "positions": result.positions,
        "seconds": result.seconds,
        "bytes_read": result.cost.bytes_read,
        **peaks,
    }


if __name__ == "__main__":
    parser = options("memory", __doc__)
    help = f"positions in small batches (default: {SMALL}, quick none)"
    parser.add_argument("--small", type=int, default=None, help=help)
    run("memory", parser, _measure)
