"""The ranges of logs now, and which cached partitions still have the same logs.

Cached partitions are looked up before the groups' commits are read: a commit behind these ends is
not cached, and is translated.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import polars as pl

from tsoffset.cluster import Cluster
from tsoffset.cycle.cache_update import Ranges, describe_topics, identities, ranges_of
from tsoffset.cycle.source_commits import renamings_of
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.same_logs import topics_frame
from tsoffset.group_sync.tables import (
    COMMIT_WORK,
    LOG_RANGES,
    TARGET_TOPICS,
    VOID,
    empty,
    left_join,
)
from tsoffset.group_sync.translate import partition_caches
from tsoffset.model import Failed, Isolation, LogRange, TopicPartition
from tsoffset.rule.partition_cache import LogEnds, LogIdentity, PartitionCache


@dataclass(frozen=True, slots=True)
class KnownLogs:
    """What the logs of cached partitions are now.

    `ranges` (LOG_RANGES) has the partitions whose logs are still the cached ones. `void` (VOID) has
    those whose logs were replaced or truncated, or whose copies go elsewhere now: their caches are
    invalid. A partition whose logs could not be read, or of which only a former leader answered, is
    in neither table. `target_topics` (TARGET_TOPICS) are the topics of `ranges`.
    """

    ranges: pl.DataFrame
    void: pl.DataFrame
    target_topics: pl.DataFrame

    @classmethod
    def none(cls) -> "KnownLogs":
        """Nothing is known of any log."""
        return cls(empty(LOG_RANGES), empty(VOID), empty(TARGET_TOPICS))


def log_ranges(
    flow: FlowSettings, source: Cluster, target: Cluster, partitions: pl.DataFrame
) -> KnownLogs:
    """Read the logs of `partitions` (PARTITIONS) on both clusters. Identities are read before
    ranges: so a log that is truncated between the two is noticed."""
    cached, void = _cached_partitions(flow, partitions)
    found: list[tuple[Any, ...]] = []
    topic_ids: dict[str, str] = {}
    if cached:
        read_with = {
            one.source: flow.reads_source_with(
                is_remote_topic=one.is_remote_topic, failback=one.failback
            )
            for one, _ in cached
        }
        isolations = dict.fromkeys((*read_with.values(), Isolation.READ_UNCOMMITTED))
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(
                _logs, target, [copy for _, copy in cached], [Isolation.READ_COMMITTED]
            )
            sources = [one.source for one, _ in cached]
            source_logs, source_ranges = _logs(source, sources, isolations)
            target_logs, target_ranges = asked.result()
        for one, copy in cached:
            here, there = source_logs.get(one.source), target_logs.get(copy)
            if here is not None and here.precedes(one.source_log):
                continue
            if here not in (None, one.source_log) or there not in (None, one.target_log):
                ids = one.source_log.topic_id, one.target_log.topic_id
                now = (here or one.source_log).topic_id, (there or one.target_log).topic_id
                void[one.source] = ids != now
                continue
            if here is None or there is None:
                continue
            span = source_ranges[read_with[one.source]][one.source]
            own = source_ranges[Isolation.READ_UNCOMMITTED][one.source]
            copies = target_ranges[Isolation.READ_COMMITTED][copy]
            if isinstance(span, Failed) or isinstance(own, Failed) or isinstance(copies, Failed):
                continue
            if LogEnds(span.end, own.end, copies.end).is_behind(one.ends):
                void[one.source] = False
                continue
            partition = (one.source.topic, one.source.partition)
            ends = (span.start, span.end, own.end, copies.start, copies.end)
            found.append((*partition, *ends))
            topic_ids[copy.topic] = one.target_log.topic_id
    return KnownLogs(
        pl.DataFrame(found, LOG_RANGES, orient="row"),
        pl.DataFrame(
            [(one.topic, one.partition, void[one]) for one in sorted(void)], VOID, orient="row"
        ),
        topics_frame(topic_ids, topic_ids),
    )


def _cached_partitions(
    flow: FlowSettings, partitions: pl.DataFrame
) -> tuple[list[tuple[PartitionCache, TopicPartition]], dict[TopicPartition, bool]]:
    """The partitions whose target partition is still the same under today's policy, each with that
    target partition; and those for which it has changed, as in VOID."""
    renamings, unnamed = renamings_of(flow, partitions["source_topic"].unique().to_list())
    found, void = [], {}
    for source, cached in partition_caches(partitions, with_pairs=False).items():
        if source.topic in unnamed:
            continue
        renaming = renamings[source.topic]
        policy = (cached.is_remote_topic, cached.failback)
        if renaming is None or (renaming.is_remote_topic, renaming.failback) != policy:
            void[source] = False
        else:
            found.append((cached, TopicPartition(renaming.topic, source.partition)))
    return found, void


def _logs(
    cluster: Cluster, partitions: Sequence[TopicPartition], isolations: Iterable[Isolation]
) -> tuple[Mapping[TopicPartition, LogIdentity], dict[Isolation, Ranges]]:
    topics = describe_topics(cluster, {one.topic for one in partitions})
    found = identities(topics, partitions)
    return found, {one: ranges_of(cluster, partitions, one) for one in isolations}


def with_log_ranges(target: Cluster, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the ranges of the target's logs as they are now, open transactions included;
    null for those that cannot be read."""
    partitions = rows.select("target_topic", "partition").unique(maintain_order=True)
    asked = [TopicPartition(*partition) for partition in partitions.iter_rows()]
    found = ranges_of(target, asked, Isolation.READ_UNCOMMITTED)
    ranges = pl.DataFrame(
        [
            (partition.topic, partition.partition, log.start, log.end)
            for partition, log in found.items()
            if isinstance(log, LogRange)
        ],
        {
            name: COMMIT_WORK[name]
            for name in ("target_topic", "partition", "target_start", "target_end")
        },
        orient="row",
    )
    rows = rows.drop("target_start", "target_end")
    return left_join(rows, ranges, ["target_topic", "partition"])
