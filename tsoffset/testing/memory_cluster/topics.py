"""Topics of a cluster in memory."""

from dataclasses import dataclass

from tsoffset.testing.memory_cluster.log import PartitionLog


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
