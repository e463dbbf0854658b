"""Finds replicated topics by their names (pure), as MirrorMaker 2's MirrorClient does.

It uses the replication policies of the flows with the cluster as target, or if there are none, of
those with it as source.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from tsoffset.flow.policy import (
    ReplicationPolicy,
    internal_topics,
    is_heartbeats_topic,
    is_internal_topic,
    replicated_through,
)
from tsoffset.model import FailureKind

if TYPE_CHECKING:
    from tsoffset.flow.settings import FlowSettings


class TopicKind(StrEnum):
    UPSTREAM = "upstream"
    REMOTE = "remote"
    HEARTBEATS = "heartbeats"
    CHECKPOINTS = "checkpoints"
    OFFSET_SYNCS = "offset_syncs"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Found:
    """A topic that a replicator created on `cluster`, or a cluster upstream of it; what does not
    apply is None.

    `source` is the cluster that a topic was copied from, or for checkpoints and offset syncs the
    other cluster. `original_topic` is its name on the cluster where it was first written, which is
    `hops` clusters away (0: this one). `heartbeat_timestamp_ms` is when the newest heartbeat was
    emitted, `heartbeat_age_ms` how long ago that is by this host's clock, and `replication_lag_ms`
    how much newer the newest heartbeat upstream is.
    """

    cluster: str
    kind: TopicKind
    topic: str | None = None
    source: str | None = None
    original_topic: str | None = None
    hops: int | None = None
    partitions: int | None = None
    heartbeat_timestamp_ms: int | None = None
    heartbeat_age_ms: int | None = None
    replication_lag_ms: int | None = None
    reason: FailureKind | None = None
    message: str | None = None


def found_topics(
    cluster: str,
    topics: Mapping[str, int],
    flows: "Sequence[FlowSettings]",
    elsewhere: Mapping[str, Collection[str]],
) -> list[Found]:
    """The topics of a cluster that replicators have created, by kind and name.

    `topics` are all its topics, with their numbers of partitions; `elsewhere` has the topics of the
    other clusters of the configuration. A remote topic's first part is the alias of one of these,
    or of a cluster in the name of a heartbeats topic. Under IdentityReplicationPolicy a topic is a
    remote one if the flow selects it and its source has it.
    """
    leading_here = [flow for flow in flows if flow.target.alias == cluster]
    about = leading_here or [flow for flow in flows if flow.source.alias == cluster]
    aliases = {cluster, *elsewhere}
    for flow in about:
        for topic in topics:
            if is_heartbeats_topic(flow.policy, topic):
                aliases.update(replicated_through(flow.policy, topic)[0])
    found: dict[str, Found] = {}
    for flow in about:
        for topic, partitions in topics.items():
            if topic not in found:
                classified = _classify(cluster, topic, partitions, flow, aliases, elsewhere)
                if classified is not None:
                    found[topic] = classified
    order = list(TopicKind)
    return sorted(found.values(), key=lambda one: (order.index(one.kind), one.topic or ""))


def _classify(
    cluster: str,
    topic: str,
    partitions: int,
    flow: "FlowSettings",
    aliases: Collection[str],
    elsewhere: Mapping[str, Collection[str]],
) -> Found | None:
    policy = flow.policy
    if is_heartbeats_topic(policy, topic):
        chain, original = replicated_through(policy, topic)
        source = chain[0] if chain else None
        return Found(
            cluster,
            TopicKind.HEARTBEATS,
            topic,
            source,
            original,
            len(chain),
            partitions=partitions,
        )
    if is_internal_topic(policy, topic):
        for kind, other in _own_topics(policy, topic, aliases):
            return Found(cluster, kind, topic, other, partitions=partitions)
        return None
    chain, original = replicated_through(policy, topic, aliases)
    if not chain or chain[0] == cluster:
        return None
    if original == topic and not (
        flow.topic_filter.should_replicate_topic(topic) and topic in elsewhere.get(chain[0], ())
    ):
        return None
    return Found(cluster, TopicKind.REMOTE, topic, chain[0], original, len(chain), partitions)


def _own_topics(
    policy: ReplicationPolicy, topic: str, aliases: Collection[str]
) -> Iterator[tuple[TopicKind, str]]:
    """The kind of an internal topic of MirrorMaker 2, and the other cluster."""
    names = internal_topics(policy)
    for alias in sorted(aliases):
        if topic == names.checkpoints_topic(alias):
            yield TopicKind.CHECKPOINTS, alias
        if topic == names.offset_syncs_topic(alias):
            yield TopicKind.OFFSET_SYNCS, alias


def upstream_clusters(
    cluster: str, found: Sequence[Found], flows: "Sequence[FlowSettings]"
) -> list[Found]:
    """The upstream clusters, the nearest first, each with the heartbeats topic that was copied over
    the fewest hops from it, and these hops (`replicationHops`). Without heartbeats they are found
    by their remote topics."""
    policies = [flow.policy for flow in flows if flow.target.alias == cluster]
    ways = [
        (one.kind is TopicKind.REMOTE, hops, hops != one.hops, alias, one)
        for one in found
        if one.kind in (TopicKind.HEARTBEATS, TopicKind.REMOTE) and one.topic is not None
        for policy in policies
        for hops, alias in enumerate(replicated_through(policy, one.topic)[0], 1)
        if hops <= (one.hops or 0) and alias != cluster
    ]
    nearest: dict[str, Found] = {}
    for by_remote_topic, hops, on_the_way, alias, one in sorted(ways, key=lambda way: way[:4]):
        upstream = Found(cluster, TopicKind.UPSTREAM, source=alias, hops=hops)
        if not by_remote_topic:
            # Heartbeats that were only copied through it are not its own.
            original = None if on_the_way else one.original_topic
            upstream = replace(upstream, topic=one.topic, original_topic=original)
        nearest.setdefault(alias, upstream)
    return sorted(nearest.values(), key=lambda one: (one.hops or 0, one.source or ""))
