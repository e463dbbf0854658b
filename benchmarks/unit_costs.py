"""`python -m benchmarks.unit_costs`: unit costs for the estimate of large estates.

Brokers: how many group-partitions one coordinator answers a second, how many groups it commits, and
how many one-batch reads and time lookups one leader answers, all through tsoffset's adapter, one
client after the other. The driver and the tasks come from `growth`.
"""

import argparse
import random

from benchmarks.estates import REMOTE, TOPIC, Log, settings, two_brokers
from benchmarks.measures import in_turns, rounded, seconds_of, spread
from benchmarks.results import Result, options, run, shown
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import CommittedOffset, FirstAtTime, Isolation, ReadFrom, TopicPartition

COMMITTED = Isolation.READ_COMMITTED
_GROUPS_AT_ONCE = 500


def _measure(chosen: argparse.Namespace) -> Result:
    groups = chosen.groups or (200 if chosen.quick else 2_000)
    log = Log(chosen.partitions, 20_000)
    commits = log.commits(groups)
    chance = random.Random(1)
    reads = [
        ReadFrom(TopicPartition(TOPIC, partition), offset)
        for partition in range(log.partitions)
        for offset in range(0, log.records, log.batches.records)
    ]
    chance.shuffle(reads)
    with (
        two_brokers() as clusters,
        KafkaCluster(settings("A", clusters.source)) as near,
        KafkaCluster(settings("B", clusters.target)) as far,
    ):
        clusters.write(log)
        clusters.commit(commits)
        names = sorted(commits)
        start_ms = min(
            record.timestamp_ms or 0
            for fetched in near.read([ReadFrom(TopicPartition(TOPIC, 0), 0)], COMMITTED).values()
            for record in fetched.records
        )
        lookups = [
            FirstAtTime(TopicPartition(REMOTE, number), start_ms + chance.randrange(log.records))
            for number in range(log.partitions)
            for _ in range(200)
        ]

        def fetch_commits() -> float:
            return seconds_of(
                lambda: [
                    near.committed(names[at : at + _GROUPS_AT_ONCE], require_stable=False)
                    for at in range(0, len(names), _GROUPS_AT_ONCE)
                ]
            )

        def commit() -> float:
            wanted = {
                name: {
                    TopicPartition(REMOTE, place.partition): CommittedOffset(offset)
                    for place, offset in offsets.items()
                }
                for name, offsets in commits.items()
            }
            return seconds_of(lambda: far.commit(wanted))

        works = {
            "offset_fetch": fetch_commits,
            "offset_commit": commit,
            "list_groups": lambda: seconds_of(near.groups),
            "fetch": lambda: seconds_of(lambda: near.read(reads, COMMITTED)),
            "list_offsets": lambda: seconds_of(lambda: far.first_at_times(lookups, COMMITTED)),
        }
        in_turns(works, 1)
        seconds = in_turns(works, chosen.runs)
    counts = {
        "offset_fetch": groups * log.partitions,
        "offset_commit": groups,
        "list_groups": groups,
        "fetch": len(reads),
        "list_offsets": len(set(lookups)),
    }
    rates = {
        name: spread(rounded(counts[name] / value) for value in values)
        for name, values in seconds.items()
    }
    shown("a second", {name: rate["median"] for name, rate in rates.items()})
    return {"groups": groups, "partitions": log.partitions, "a_second": rates, "ratios": {}}


if __name__ == "__main__":
    parser = options("unit_costs", __doc__)
    parser.add_argument("--groups", type=int, default=None, help="(default: 2000, quick 200)")
    parser.add_argument("--partitions", type=int, default=10)
    run("unit_costs", parser, _measure)
