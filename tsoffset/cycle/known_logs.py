"""Whether the logs of which something is remembered are the same ones still, and what they are now.

Asked once a cycle, before the groups' commits are read: a commit behind these ends is no known
position, and is looked at anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from tsoffset.cluster import Cluster, all_failed
from tsoffset.cycle.carry_over import identities
from tsoffset.cycle.matching import PLACES
from tsoffset.cycle.schema import LOGS, PARTITIONS, table, tuples
from tsoffset.cycle.source_commits import renamings_of
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Failed, Isolation, LogRange, TopicPartition
from tsoffset.rule.carry_over import LogEnds, LogIdentity

Ranges = Mapping[TopicPartition, LogRange | Failed]


@dataclass(frozen=True, slots=True)
class KnownLogs:
    """The logs as LOGS; without those that could not be asked, and those that are others now
    (`void`, partitions as in LOGS), of which nothing that is remembered holds."""

    logs: pa.Table
    void: pa.Table

    @classmethod
    def none(cls) -> "KnownLogs":
        """Nothing is known of any log."""
        return cls(LOGS.empty_table(), LOGS.empty_table().select(PLACES))


@dataclass(frozen=True, slots=True)
class _Remembered:
    source: TopicPartition
    target: TopicPartition
    source_log: LogIdentity
    target_log: LogIdentity
    ends: LogEnds


def look_at_logs(
    flow: FlowSettings, source: Cluster, target: Cluster, partitions: pa.Table
) -> KnownLogs:
    """Ask both clusters for the logs of `partitions` (PARTITIONS), which one after the other tell
    their identities and then their ranges: a log that is truncated between the two is seen."""
    remembered, void = _remembered(flow, partitions)
    if not remembered:
        return KnownLogs(LOGS.empty_table(), _void(void))
    isolations = dict.fromkeys((flow.isolation, Isolation.READ_UNCOMMITTED))
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(
            _logs, target, [one.target for one in remembered], [Isolation.READ_COMMITTED]
        )
        source_logs, source_ranges = _logs(source, [one.source for one in remembered], isolations)
        target_logs, target_ranges = asked.result()
    found = []
    for one in remembered:
        here, there = source_logs.get(one.source), target_logs.get(one.target)
        if here not in (None, one.source_log) or there not in (None, one.target_log):
            void.add(one.source)
            continue
        if here is None or there is None:
            continue
        span, own = source_ranges[0][one.source], source_ranges[-1][one.source]
        copies = target_ranges[0][one.target]
        if isinstance(span, Failed) or isinstance(own, Failed) or isinstance(copies, Failed):
            continue
        if LogEnds(span.end, own.end, copies.end).behind(one.ends):
            void.add(one.source)
            continue
        found.append((*_place(one.source), span.start, span.end, own.end, copies.start, copies.end))
    return KnownLogs(table(LOGS, found), _void(void))


def _void(partitions: Iterable[TopicPartition]) -> pa.Table:
    places = pa.schema([LOGS.field(name) for name in PLACES])
    return table(places, [_place(one) for one in sorted(partitions)])


def _place(partition: TopicPartition) -> tuple[str, int]:
    return partition.topic, partition.partition


def _remembered(
    flow: FlowSettings, partitions: pa.Table
) -> tuple[list[_Remembered], set[TopicPartition]]:
    """What is remembered of partitions under the policy of now, and of which it is no more."""
    columns = pa.schema([field for field in PARTITIONS if not field.name.startswith("pair_")])
    found, void = [], set()
    renamings, unnamed = renamings_of(flow, set(partitions["source_topic"].to_pylist()))
    for values in tuples(partitions, columns):
        row = dict(zip(columns.names, values, strict=True))
        source = TopicPartition(row["source_topic"], row["partition"])
        if source.topic in unnamed:
            continue
        renaming = renamings[source.topic]
        if renaming is None or (renaming.is_remote_topic, renaming.failback) != (
            row["is_remote_topic"],
            row["failback"],
        ):
            void.add(source)
            continue
        found.append(
            _Remembered(
                source,
                TopicPartition(renaming.topic, source.partition),
                LogIdentity(row["source_topic_id"], row["source_leader_epoch"]),
                LogIdentity(row["target_topic_id"], row["target_leader_epoch"]),
                LogEnds(row["source_end"], row["source_log_end"], row["target_end"]),
            )
        )
    return found, void


def _logs(
    cluster: Cluster, partitions: Sequence[TopicPartition], isolations: Iterable[Isolation]
) -> tuple[Mapping[TopicPartition, LogIdentity], list[Ranges]]:
    found = identities(cluster, partitions)
    return found, [_ranges(cluster, partitions, isolation) for isolation in isolations]


def _ranges(cluster: Cluster, partitions: Sequence[TopicPartition], isolation: Isolation) -> Ranges:
    try:
        return cluster.log_ranges(partitions, isolation)
    except ClusterUnreachable as error:
        return dict.fromkeys(partitions, all_failed(error))
