"""`python -m benchmarks.memory`: what processes hold at most, over more and larger batches.

Cycles over 500 and 2,000 positions, each in a batch of 1 MB of its own, and over 100,000
positions in small ones; each in a fresh Spark session. What was read must leave no trace.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path

from benchmarks import filling
from benchmarks.cycles import cycle, forget_peaks, peaks_mb, session
from benchmarks.estates import TOPIC, Log, exact_rows, flow_file, settings, two_brokers
from benchmarks.filling import Batches
from benchmarks.measures import in_turns, ratio_spread, rounded, spread
from benchmarks.results import Result, options, run, shown
from tsoffset.config import Configuration
from tsoffset.model import TopicPartition

BATCHES = {"few": 500, "many": 2_000}
QUICK = {"few": 50, "many": 200}
LARGE = Batches(10, 100_000)
PARTITIONS = 10


def main(arguments: list[str] | None = None) -> None:
    parser = options("memory", __doc__)
    parser.add_argument("--small", type=int, default=None, help="positions in small batches")
    run("memory", parser, _measure, arguments)


def _measure(chosen: argparse.Namespace) -> Result:
    batches = QUICK if chosen.quick else BATCHES
    small = chosen.small or (10_000 if chosen.quick else 100_000)
    with (
        tempfile.TemporaryDirectory(prefix="tsoffset-memory-") as folder,
        two_brokers(Path(folder)) as (source, target),
    ):
        ends = (source.bootstrap, target.bootstrap)
        large = Log(
            PARTITIONS, max(batches.values()) // PARTITIONS * LARGE.records, 0, LARGE, LARGE
        )
        large.write(*ends, f"{TOPIC}-large")
        each = small // PARTITIONS
        Log(PARTITIONS, 10 * each).write(*ends, f"{TOPIC}-small")
        commits = {
            f"{name}-{number:04}": {
                TopicPartition(f"{TOPIC}-large", partition): LARGE.records * number + 3
                for partition in range(PARTITIONS)
            }
            for name, count in batches.items()
            for number in range(count // PARTITIONS)
        }
        commits |= {
            f"small-{number:05}": {
                TopicPartition(f"{TOPIC}-small", partition): 10 * number
                for partition in range(PARTITIONS)
            }
            for number in range(each)
        }
        filling.commit(settings("A", source.bootstrap), commits)
        configuration = flow_file(Path(folder), *ends)
        works = {name: partial(_fresh, configuration, f"{name}-.*") for name in (*batches, "small")}
        found = in_turns(works, min(chosen.runs, 3))
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
            "worker_many_over_few": ratio_spread(
                *([one["worker_mb"] for one in found[name]] for name in ("many", "few"))
            ),
        },
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
    main()
