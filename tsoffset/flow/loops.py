"""Topics that two flows would mirror in a loop."""

from collections.abc import Iterable

from tsoffset.flow.policy import target_topic
from tsoffset.flow.settings import FlowSettings

REMEDY = (
    "leave each topic to one direction (topics, topics.exclude), or use a replication policy that "
    "renames"
)


def reverse_of(flow: FlowSettings, flows: Iterable[FlowSettings]) -> FlowSettings | None:
    """The enabled flow of `flows` in the other direction."""
    for other in flows:
        there_and_back = (other.target.alias, other.source.alias)
        if other.enabled and there_and_back == (flow.source.alias, flow.target.alias):
            return other
    return None


def looped_topics(
    flow: FlowSettings, reverse: FlowSettings | None, topics: Iterable[str]
) -> tuple[str, ...]:
    """The source's topics that the flow and its `reverse` both select without renaming, sorted.

    A replicator of both flows copies each of their records for ever: IdentityReplicationPolicy
    knows no source of a topic, so no name shows where a record came from.
    """
    if reverse is None:
        return ()
    return tuple(
        topic for topic in sorted(topics) if _keeps(flow, topic) and _keeps(reverse, topic)
    )


def _keeps(flow: FlowSettings, topic: str) -> bool:
    if not flow.topic_filter.should_replicate_topic(topic):
        return False
    renaming = target_topic(flow.policy, flow.source.alias, flow.target.alias, topic)
    return renaming is not None and renaming.topic == topic and not renaming.failback
