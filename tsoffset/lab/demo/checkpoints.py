"""MirrorMaker 2's own translation of offsets in the demo."""

from collections.abc import Mapping

from tsoffset.cycle.committed_offsets import committed_offsets
from tsoffset.flow.policy import internal_topics
from tsoffset.flow.settings import FlowSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.lab.demo.clusters import Clusters
from tsoffset.lab.demo.groups import GROUPS
from tsoffset.model import CommittedOffset, Failed
from tsoffset.replicators.checkpoints import CheckpointKey, Checkpoints, read_checkpoints

SETTINGS: Mapping[str, str] = {
    "emit.offset-syncs.enabled": "true",
    "emit.checkpoints.enabled": "true",
    "emit.checkpoints.interval.seconds": "1",
    "offset-syncs.topic.replication.factor": "1",
}
"""With these it writes offset syncs and checkpoints."""

_PATIENCE_SECONDS = 90.0
# It checks the groups each second. If this many checks, half a second apart, change nothing, it has
# nothing to add.
_CHECKS = 8
# It does not commit for a group with consumers on the target.
_IDLE = frozenset(group.name for group in GROUPS if not group.member)


def wait_for_checkpoints(clusters: Clusters, flow: FlowSettings) -> int:
    """Wait until MirrorMaker 2 has written and committed all checkpoints; returns the number of
    group-partitions with a checkpoint. Raises EmbeddedError."""
    topic = internal_topics(flow.policy).checkpoints_topic(flow.source.alias)
    counts: list[int] = []

    def missing() -> str | None:
        with KafkaCluster(flow.target) as target:
            found = read_checkpoints(target, topic, wanted=lambda _: True, committed={})
            behind = _behind(target, found)
        counts.append(len(found.newest))
        still = len(counts) >= _CHECKS and counts[-1] and len({*counts[-_CHECKS:]}) == 1
        if still and not behind:
            return None
        return f"{counts[-1]} pairs have a checkpoint, {behind} of them are not committed yet"

    clusters.target.wait_until(missing, seconds=_PATIENCE_SECONDS, doing=f"wait for {topic}")
    return counts[-1]


def _behind(target: KafkaCluster, found: Checkpoints) -> int:
    """The number of checkpoints of idle groups that are past the target group's committed
    offset."""
    wanted = {key: one for key, one in found.newest.items() if key.group in _IDLE}
    names = sorted({key.group for key in wanted})
    current: dict[CheckpointKey, int] = {}
    for group, offsets in committed_offsets(target, names, require_stable=False).items():
        if not isinstance(offsets, Failed):
            for place, commit in offsets.items():
                if isinstance(commit, CommittedOffset):
                    current[CheckpointKey(group, place)] = commit.offset
    return sum(current.get(key, -1) < one.target_offset for key, one in wanted.items())
