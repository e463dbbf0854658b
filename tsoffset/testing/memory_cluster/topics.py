"""Topics of a cluster in memory."""

from collections.abc import Mapping
from dataclasses import dataclass

from tsoffset.testing.memory_cluster.log import PartitionLog

# Nothing is deleted, and no timestamp is refused.
DEFAULT_CONFIGS = {
    "cleanup.policy": "delete",
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.type": "CreateTime",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}


@dataclass(slots=True)
class MemoryPartition:
    """A log and its leader; `leader` is None without one."""

    log: PartitionLog
    leader: int | None
    leader_epoch: int = 0


@dataclass(slots=True)
class MemoryTopic:
    """A topic with its own id."""

    topic_id: str
    partitions: list[MemoryPartition]
    internal: bool
    configs: Mapping[str, str]
