"""MirrorMaker 2's own translation of offsets at work in the demo."""

from collections.abc import Mapping

from tsoffset.commands.compare.checkpoints import read_checkpoints
from tsoffset.demo.clusters import Clusters
from tsoffset.flow.policy import internal_topics
from tsoffset.flow.settings import FlowSettings
from tsoffset.kafka.cluster import KafkaCluster

SETTINGS: Mapping[str, str] = {
    "emit.offset-syncs.enabled": "true",
    "emit.checkpoints.enabled": "true",
    "emit.checkpoints.interval.seconds": "1",
    "offset-syncs.topic.replication.factor": "1",
}
"""With these it writes offset syncs and checkpoints."""

_PATIENCE_SECONDS = 90.0
# It looks at the groups each second. What so many looks, half a second apart, do not change, it
# has nothing to add to.
_LOOKS = 8


def wait_for_checkpoints(clusters: Clusters, flow: FlowSettings) -> int:
    """Wait until there are no more to come; how many pairs of a group and a partition have one.
    Raises EmbeddedError."""
    topic = internal_topics(flow.policy).checkpoints_topic(flow.source.alias)
    counts: list[int] = []

    def missing() -> str | None:
        with KafkaCluster(flow.target) as target:
            found = read_checkpoints(target, topic, wanted=lambda _: True, committed={})
        counts.append(len(found.newest))
        still = len(counts) >= _LOOKS and counts[-1] and len({*counts[-_LOOKS:]}) == 1
        return None if still else f"{counts[-1]} pairs have a checkpoint"

    clusters.target.wait_until(missing, seconds=_PATIENCE_SECONDS, doing=f"wait for {topic}")
    return counts[-1]
