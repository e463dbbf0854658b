"""Finds what replicators have created on the clusters of flows, and the age of heartbeats.

The value of a heartbeat is that of org.apache.kafka.connect.mirror.Heartbeat, big-endian: int16
version (0), int64 timestamp in milliseconds. Its key names the connector that emits; only the
topic's name tells where it came from.
"""

import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from tsoffset.cluster import Cluster, Connect, all_failed
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.model import Failed, Isolation, ReadFrom, TopicPartition
from tsoffset.replicators.topic_names import Found, TopicKind, found_topics, upstream_clusters

_TIMED = (TopicKind.UPSTREAM, TopicKind.HEARTBEATS)

# By cluster and topic.
_Emitted = dict[str, dict[str, int | Failed | None]]


def discover(flows: Sequence[FlowSettings], connect: Connect) -> list[Found]:
    """The upstream clusters and then the topics of each cluster, in the order of the flows. An
    unreachable cluster is FAILED."""
    clusters: dict[str, ClusterSettings] = {}
    for flow in flows:
        for settings in (flow.source, flow.target):
            clusters.setdefault(settings.alias, settings)
    with ExitStack() as stack:
        opened = {
            alias: stack.enter_context(connect(settings)) for alias, settings in clusters.items()
        }
        return [one for rows in _of_each(flows, opened).values() for one in rows]


def _of_each(flows: Sequence[FlowSettings], clusters: dict[str, Cluster]) -> dict[str, list[Found]]:
    topics: dict[str, dict[str, int]] = {}
    found: dict[str, list[Found]] = {alias: [] for alias in clusters}
    for alias, cluster in clusters.items():
        try:
            described = cluster.topics()
        except ClusterUnreachable as error:
            found[alias] = [_with_failure(Found(alias, TopicKind.FAILED), all_failed(error))]
            continue
        topics[alias] = {}
        for name, one in described.items():
            if isinstance(one, Failed):
                found[alias].append(_with_failure(Found(alias, TopicKind.FAILED, name), one))
            else:
                topics[alias][name] = len(one.partitions)
    for alias in topics:
        # A remote topic's name has its source, also while that cluster is unreachable.
        elsewhere = {other: topics.get(other, {}) for other in clusters if other != alias}
        remote = found_topics(alias, topics[alias], flows, elsewhere)
        upstream = upstream_clusters(alias, remote, flows)
        found[alias] += [*upstream, *remote]
    # A target is read before its source, so that no lag is too short.
    emitted = {
        alias: _newest(clusters[alias], found[alias], topics[alias]) for alias in reversed(topics)
    }
    now_ms = time.time_ns() // 1_000_000
    for alias in topics:
        found[alias] = [
            _with_time(one, emitted, now_ms) if one.kind in _TIMED and one.topic else one
            for one in found[alias]
        ]
    return found


def _newest(
    cluster: Cluster, found: Sequence[Found], partitions: dict[str, int]
) -> dict[str, int | Failed | None]:
    wanted = {
        one.topic: partitions[one.topic]
        for one in found
        if one.kind is TopicKind.HEARTBEATS and one.topic is not None
    }
    try:
        return dict(newest_heartbeats(cluster, wanted)) if wanted else {}
    except ClusterUnreachable as error:
        return dict.fromkeys(wanted, all_failed(error))


def _with_time(one: Found, emitted: _Emitted, now_ms: int) -> Found:
    """Add the time of the topic's newest heartbeat, and how much newer the upstream cluster's own
    one is, if that is known."""
    assert one.topic is not None
    newest = emitted.get(one.cluster, {}).get(one.topic)
    if isinstance(newest, Failed):
        return _with_failure(one, newest)
    if newest is None:
        return one
    upstream, original = one.source, one.original_topic
    at_source = emitted.get(upstream, {}).get(original) if upstream and original else None
    lag_ms = max(0, at_source - newest) if isinstance(at_source, int) else None
    return replace(
        one,
        heartbeat_timestamp_ms=newest,
        heartbeat_age_ms=max(0, now_ms - newest),
        replication_lag_ms=lag_ms if one.kind is TopicKind.UPSTREAM else None,
    )


def _with_failure(one: Found, failed: Failed) -> Found:
    return replace(one, reason=failed.kind, message=failed.message)


_VALUE = struct.Struct(">hq")
_VERSION = 0

# Transactions (exactly.once.source.support) end with a marker, aborted ones, too.
_LAST_BATCHES = 8


def heartbeat_timestamp_ms(value: bytes | None) -> int | None:
    """When the heartbeat was emitted; None if it is no heartbeat."""
    if value is None or len(value) != _VALUE.size:
        return None
    version, timestamp_ms = _VALUE.unpack(value)
    return timestamp_ms if version == _VERSION and timestamp_ms >= 0 else None


def newest_heartbeats(
    cluster: Cluster, topics: Mapping[str, int]
) -> Mapping[str, int | Failed | None]:
    """When the newest heartbeat of each topic was emitted, in milliseconds; None without one.
    `topics` are names with their numbers of partitions. Reads the last batch of each partition,
    before markers and aborted batches. Raises ClusterUnreachable."""
    partitions = [TopicPartition(topic, n) for topic, count in topics.items() for n in range(count)]
    found: dict[str, int | Failed | None] = dict.fromkeys(topics)
    starts: dict[TopicPartition, int] = {}
    requests = []
    for one, log in cluster.log_ranges(partitions, Isolation.READ_COMMITTED).items():
        if isinstance(log, Failed):
            found[one.topic] = log
        elif log.start < log.end:
            starts[one] = log.start
            requests.append(ReadFrom(one, log.end - 1))
    for _ in range(_LAST_BATCHES):
        answers = cluster.read_raw(requests, Isolation.READ_COMMITTED) if requests else {}
        requests = []
        for request, fetched in answers.items():
            partition = request.partition
            known = found[partition.topic]
            if isinstance(fetched, Failed):
                found[partition.topic] = fetched
            elif not isinstance(known, Failed):
                emitted = [heartbeat_timestamp_ms(record.value) for record in fetched.records]
                if there := [it for it in emitted if it is not None]:
                    found[partition.topic] = max(known or 0, *there)
                elif not fetched.records and fetched.start > starts[partition]:
                    requests.append(ReadFrom(partition, fetched.start - 1))
    return found
