"""`python -m benchmarks.bytes_read`: bytes read from the source, compared with the necessary ones.

A source offset needs at least the batch with its next record (for a caught-up group, its last
record). The bytes of these distinct batches are the measure: for a cold cycle, and for one with a
cache.
"""

import argparse
from dataclasses import asdict

from benchmarks.cycles import cycle, session
from benchmarks.estates import Commits, Log, exact_rows, two_brokers
from benchmarks.filling import Batches
from benchmarks.measures import rounded, spread
from benchmarks.results import Result, options, run, shown
from tsoffset.group_sync.state import FlowCache

SHIFT = 1_000


def _measure(chosen: argparse.Namespace) -> Result:
    sizes = chosen.groups or ([5, 50] if chosen.quick else [5, 50, 500])
    log = Log(chosen.partitions, chosen.records, SHIFT)
    with two_brokers() as clusters, session() as spark:
        clusters.write(log)
        configuration = clusters.flow_file()
        estates = []
        for groups in sizes:
            prefix = f"of-{groups}"
            commits = log.commits(groups, prefix=prefix, seed=groups)
            clusters.commit(commits)
            cache = FlowCache()
            cold = cycle(spark, configuration, cache=cache, groups=f"{prefix}-.*")
            assert exact_rows(cold.rows, SHIFT) == len(cold.rows)
            warm = cycle(spark, configuration, cache=cache, groups=f"{prefix}-.*")
            needed = _batches(commits, log) * _batch_bytes(log.batches)
            found = {
                "groups": groups,
                "positions": cold.positions,
                "batches": _batches(commits, log),
                "needed_bytes": needed,
                "lookups_a_partition": rounded(cold.cost.lookups / log.partitions),
                "cold": asdict(cold.cost),
                "warm": asdict(warm.cost),
            }
            estates.append(found)
            read, fetches = cold.cost.source_bytes_read / needed, cold.cost.source_fetches
            shown(f"{groups} groups", {"read / needed": rounded(read), "fetches": fetches})
    return {
        "partitions": log.partitions,
        "records": log.records,
        "estates": estates,
        "ratios": {
            "cold": spread(
                one["cold"]["source_bytes_read"] / one["needed_bytes"] for one in estates
            ),
            "warm": spread(
                one["warm"]["source_bytes_read"] / one["needed_bytes"] for one in estates
            ),
            "fetches_a_batch": spread(
                one["cold"]["source_fetches"] / one["batches"] for one in estates
            ),
            "lookups_a_partition": spread(one["lookups_a_partition"] for one in estates),
        },
    }


def _batches(commits: Commits, log: Log) -> int:
    """The number of batches with a next record."""
    return len(
        {
            (place, min(offset, log.records - 1) // log.batches.records)
            for offsets in commits.values()
            for place, offset in offsets.items()
        }
    )


def _batch_bytes(batches: Batches) -> int:
    (batch,) = batches.stamped(1, 0)
    return len(batch)


if __name__ == "__main__":
    parser = options("bytes_read", __doc__)
    parser.add_argument("--groups", nargs="+", type=int, default=None, help="how many, by estate")
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--records", type=int, default=20_000, help="records of each partition")
    run("bytes_read", parser, _measure)
