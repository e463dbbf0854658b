"""Topics of a cluster in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    """A log and its leader; `leader` is None without one. `epoch_starts` has the offset at which
    each leader epoch that the log knows begins."""

    log: PartitionLog
    leader: int | None
    leader_epoch: int = 0
    epoch_starts: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.epoch_starts.setdefault(self.leader_epoch, self.log.end)

    def elect(self, leader: int, log_end: int) -> None:
        """A new leader, whose log ends at `log_end`."""
        self.log.truncate(log_end)
        self.leader = leader
        self.leader_epoch += 1
        starts = {epoch: at for epoch, at in self.epoch_starts.items() if at < log_end}
        self.epoch_starts = {**starts, self.leader_epoch: log_end}

    def epoch_end(self, epoch: int) -> int | None:
        """Where the records of this epoch and of all earlier ones end; None for an epoch that is
        later than all of the log."""
        if epoch > max(self.epoch_starts):
            return None
        later = (at for known, at in self.epoch_starts.items() if known > epoch)
        return min(later, default=self.log.end)


@dataclass(slots=True)
class MemoryTopic:
    """A topic with its own id."""

    topic_id: str
    partitions: list[MemoryPartition]
    internal: bool
    configs: Mapping[str, str]
