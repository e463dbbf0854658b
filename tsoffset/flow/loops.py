"""Topics that two flows send to and fro (pure)."""

from collections.abc import Iterable

from tsoffset.flow.policy import target_topic
from tsoffset.flow.settings import FlowSettings

REMEDY = (
    "leave each topic to one direction (topics, topics.exclude), or use a replication policy that "
    "renames"
)


def reverse_of(flow: FlowSettings, flows: Iterable[FlowSettings]) -> FlowSettings | None:
    """Of `flows` the enabled one in the other direction; None where there is none."""
    for other in flows:
        there_and_back = (other.target.alias, other.source.alias)
        if other.enabled and there_and_back == (flow.source.alias, flow.target.alias):
            return other
    return None


def looped_topics(
    flow: FlowSettings, reverse: FlowSettings | None, topics: Iterable[str]
) -> tuple[str, ...]:
    """Of the source's topics those that the flow and its `reverse` both take without giving them
    another name, in order.

    A replicator that does both copies each record of them for ever: no name tells it that a record
    has come from where it is sent, since IdentityReplicationPolicy knows no source of a topic.
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
