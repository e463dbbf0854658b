"""What replicators have created on the clusters of flows."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from tsoffset.cluster import Cluster, Connect, all_failed
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.model import Failed, TopicDescription
from tsoffset.replicators.heartbeats import newest_heartbeats
from tsoffset.replicators.topic_names import Found, Kind, found_topics, upstream_clusters

_TIMED = (Kind.UPSTREAM, Kind.HEARTBEATS)

# By cluster and topic.
_Emitted = dict[str, dict[str, int | Failed | None]]


def discover(flows: Sequence[FlowSettings], connect: Connect) -> list[Found]:
    """Upstream clusters and topics, cluster by cluster, in the order of the flows. An unreachable
    cluster is FAILED."""
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
    """The findings by cluster."""
    topics: dict[str, dict[str, int]] = {}
    found: dict[str, list[Found]] = {alias: [] for alias in clusters}
    for alias, cluster in clusters.items():
        try:
            topics[alias] = {
                name: len(described.partitions)
                for name, described in cluster.topics().items()
                if isinstance(described, TopicDescription)
            }
        except ClusterUnreachable as error:
            found[alias] = [_failed(Found(alias, Kind.FAILED), all_failed(error))]
    for alias in topics:
        # The name of a remote topic says where it is from, even while that cluster is unreachable.
        elsewhere = {other: topics.get(other, {}) for other in clusters if other != alias}
        there = found_topics(alias, topics[alias], flows, elsewhere)
        upstream = upstream_clusters(alias, there, flows)
        found[alias] = [*upstream, *there]
    # A target before its source, so that no lag is understated.
    emitted = {
        alias: _newest(clusters[alias], found[alias], topics[alias]) for alias in reversed(topics)
    }
    now_ms = time.time_ns() // 1_000_000
    for alias in topics:
        found[alias] = [
            _timed(one, emitted, now_ms) if one.kind in _TIMED and one.topic else one
            for one in found[alias]
        ]
    return found


def _newest(
    cluster: Cluster, found: Sequence[Found], partitions: dict[str, int]
) -> dict[str, int | Failed | None]:
    wanted = {
        one.topic: partitions[one.topic]
        for one in found
        if one.kind is Kind.HEARTBEATS and one.topic is not None
    }
    try:
        return dict(newest_heartbeats(cluster, wanted)) if wanted else {}
    except ClusterUnreachable as error:
        return dict.fromkeys(wanted, all_failed(error))


def _timed(one: Found, emitted: _Emitted, now_ms: int) -> Found:
    """The same with the time of its topic's newest heartbeat, and how much newer the newest one
    upstream is, if that cluster answered."""
    assert one.topic is not None
    newest = emitted.get(one.cluster, {}).get(one.topic)
    if isinstance(newest, Failed):
        return _failed(one, newest)
    if newest is None:
        return one
    upstream, original = one.source, one.original_topic
    there = emitted.get(upstream, {}).get(original) if upstream and original else None
    lag_ms = max(0, there - newest) if isinstance(there, int) else None
    return replace(
        one,
        heartbeat_timestamp_ms=newest,
        heartbeat_age_ms=max(0, now_ms - newest),
        replication_lag_ms=lag_ms if one.kind is Kind.UPSTREAM else None,
    )


def _failed(one: Found, failed: Failed) -> Found:
    return replace(one, reason=failed.kind, message=failed.message)
