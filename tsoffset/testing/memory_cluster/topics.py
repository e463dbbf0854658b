"""Topics of a cluster in memory."""

from collections.abc import Mapping
from dataclasses import dataclass

from tsoffset.testing.memory_cluster.log import PartitionLog

# Nothing is deleted and no timestamp refused.
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
    """A log and who leads it; `leader` is None where nobody does."""

    log: PartitionLog
    leader: int | None
    leader_epoch: int = 0


@dataclass(slots=True)
class MemoryTopic:
    """A topic under an id of its own."""

    topic_id: str
    partitions: list[MemoryPartition]
    internal: bool
    configs: Mapping[str, str]
