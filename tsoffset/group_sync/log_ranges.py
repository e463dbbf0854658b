"""Which cached partitions still have the same logs, and the ranges of these logs now.

Read before the groups' commits: a commit behind these ends is not cached, and is translated.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import polars as pl

from tsoffset.cluster import Cluster, all_failed
from tsoffset.cycle.carry_over import describe_topics, identities
from tsoffset.cycle.source_commits import renamings_of
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.tables import LOG_RANGES, PARTITION, PARTITIONS, TARGET_TOPICS, empty
from tsoffset.group_sync.target_topics import topics_frame
from tsoffset.model import Failed, Isolation, LogRange, TopicPartition
from tsoffset.rule.carry_over import LogEnds, LogIdentity

Ranges = Mapping[TopicPartition, LogRange | Failed]

_VOID = {name: LOG_RANGES[name] for name in PARTITION}


@dataclass(frozen=True, slots=True)
class KnownLogs:
    """`ranges` (LOG_RANGES) of the partitions whose logs are the same ones; `void` are partitions
    whose logs are others now, or shorter: nothing that is cached of them holds. A partition whose
    logs could not be read, or of which only a former leader answers, is in neither. `target_topics`
    (TARGET_TOPICS) are those of `ranges`."""

    ranges: pl.DataFrame
    void: pl.DataFrame
    target_topics: pl.DataFrame

    @classmethod
    def none(cls) -> "KnownLogs":
        """Nothing is known of any log."""
        return cls(empty(LOG_RANGES), empty(_VOID), empty(TARGET_TOPICS))


@dataclass(frozen=True, slots=True)
class _Cached:
    source: TopicPartition
    target: TopicPartition
    source_log: LogIdentity
    target_log: LogIdentity
    ends: LogEnds


def log_ranges(
    flow: FlowSettings, source: Cluster, target: Cluster, partitions: pl.DataFrame
) -> KnownLogs:
    """Read the logs of `partitions` (PARTITIONS) on both clusters. Identities are read before
    ranges: so a log that is truncated between the two is noticed."""
    cached, void = _cached(flow, partitions)
    found: list[tuple[Any, ...]] = []
    topic_ids: dict[str, str] = {}
    if cached:
        isolations = dict.fromkeys((flow.isolation, Isolation.READ_UNCOMMITTED))
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(
                _logs, target, [one.target for one in cached], [Isolation.READ_COMMITTED]
            )
            source_logs, source_ranges = _logs(source, [one.source for one in cached], isolations)
            target_logs, target_ranges = asked.result()
        for one in cached:
            here, there = source_logs.get(one.source), target_logs.get(one.target)
            if here is not None and here.precedes(one.source_log):
                continue
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
            place = (one.source.topic, one.source.partition)
            ends = (span.start, span.end, own.end, copies.start, copies.end)
            found.append((*place, *ends))
            topic_ids[one.target.topic] = one.target_log.topic_id
    return KnownLogs(
        pl.DataFrame(found, LOG_RANGES, orient="row"),
        pl.DataFrame([(one.topic, one.partition) for one in sorted(void)], _VOID, orient="row"),
        topics_frame(topic_ids, topic_ids),
    )


def _cached(
    flow: FlowSettings, partitions: pl.DataFrame
) -> tuple[list[_Cached], set[TopicPartition]]:
    """The partitions that have the same target partition under today's policy; and the others."""
    columns = partitions.select(name for name in PARTITIONS if not name.startswith("pair_"))
    renamings, unnamed = renamings_of(flow, partitions["source_topic"].unique().to_list())
    found, void = [], set()
    for row in columns.iter_rows(named=True):
        source = TopicPartition(row["source_topic"], row["partition"])
        if source.topic in unnamed:
            continue
        renaming = renamings[source.topic]
        policy = (row["is_remote_topic"], row["failback"])
        if renaming is None or (renaming.is_remote_topic, renaming.failback) != policy:
            void.add(source)
            continue
        found.append(
            _Cached(
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
    topics = describe_topics(cluster, {one.topic for one in partitions})
    found = identities(topics, partitions)
    return found, [_ranges(cluster, partitions, isolation) for isolation in isolations]


def _ranges(cluster: Cluster, partitions: Sequence[TopicPartition], isolation: Isolation) -> Ranges:
    try:
        return cluster.log_ranges(partitions, isolation)
    except ClusterUnreachable as error:
        return dict.fromkeys(partitions, all_failed(error))
