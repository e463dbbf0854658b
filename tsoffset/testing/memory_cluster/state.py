"""The state of a cluster in memory, which tests fill, restrict and break."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import NAMESPACE_OID, uuid5
from zlib import crc32

from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    CommittedOffset,
    Failed,
    FailureKind,
    GroupType,
    Operation,
    Resource,
    TimestampType,
    TopicPartition,
)
from tsoffset.records import OffsetHeader
from tsoffset.testing.memory_cluster.faults import Fault, Faults, Request, Verb
from tsoffset.testing.memory_cluster.groups import MemoryGroup
from tsoffset.testing.memory_cluster.log import Clock, PartitionLog

# Nothing is deleted, and no timestamp is refused.
DEFAULT_CONFIGS = {
    "cleanup.policy": "delete",
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.type": "CreateTime",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}

_EVERY_NAME = "*"
_ALL = frozenset(Operation)
_KNOWN = {
    Resource.TOPIC: _ALL,
    Resource.GROUP: _ALL,
    Resource.CLUSTER: _ALL - {Operation.READ},
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


@dataclass(slots=True)
class MemoryRights:
    """Everything is allowed until it is restricted. READ includes DESCRIBE, as in Kafka."""

    restricted: dict[tuple[Resource, str], frozenset[Operation]] = field(default_factory=dict)

    def restrict(self, resource: Resource, name: str, *operations: Operation) -> None:
        """Allow only these operations. The name `*` stands for the cluster itself, or for all
        topics or groups that have no restriction of their own."""
        implied = {Operation.DESCRIBE} if Operation.READ in operations else set()
        self.restricted[resource, name] = frozenset({*operations, *implied})

    def on(self, resource: Resource, name: str = _EVERY_NAME) -> frozenset[Operation]:
        """The operations that brokers report as allowed: without DESCRIBE, none."""
        everywhere = self.restricted.get((resource, _EVERY_NAME), _KNOWN[resource])
        allowed = self.restricted.get((resource, name), everywhere)
        return allowed if Operation.DESCRIBE in allowed else frozenset()

    def refusal(
        self, resource: Resource, name: str, operation: Operation, what: str
    ) -> Failed | None:
        """Why it is refused; None if it is allowed."""
        if operation in self.on(resource, name):
            return None
        return Failed(
            FailureKind.AUTHORIZATION,
            f"{what}: not authorized for the {resource}; grant {operation.upper()} on it to this "
            "principal",
        )


class MemoryState:
    """Topics, groups, rights and faults of a `MemoryCluster`, and what was asked of it."""

    def __init__(
        self,
        alias: str = "memory",
        *,
        brokers: int = 1,
        max_metadata_length: int = 4096,
        clock: Clock | None = None,
        offset_header: OffsetHeader | None = None,
    ) -> None:
        self._alias = alias
        self._offset_header = offset_header
        self._brokers = brokers
        self._max_metadata_length = max_metadata_length
        self._topics: dict[str, MemoryTopic] = {}
        self._topics_made = 0
        self._groups: dict[str, MemoryGroup] = {}
        self._faults = Faults()
        self.clock = clock or Clock()
        self.unreachable = False
        self.allowed = MemoryRights()
        self.requests: list[Request] = []
        self.commits: list[tuple[str, TopicPartition, CommittedOffset]] = []

    def create_topic(
        self,
        topic: str,
        partitions: int = 1,
        *,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        first_offset: int = 0,
        internal: bool = False,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """A new topic, empty at `first_offset`. `configs` are only returned by `topic_configs`.
        Raises ValueError if it exists."""
        if topic in self._topics:
            raise ValueError(f"topic {topic} exists on cluster {self.alias}")
        self._topics_made += 1
        name = f"{self.alias}/{topic}/{self._topics_made}"
        self._topics[topic] = MemoryTopic(
            str(uuid5(NAMESPACE_OID, name)),
            [
                MemoryPartition(
                    PartitionLog(
                        timestamp_type,
                        first_offset=first_offset,
                        clock=self.clock,
                        offset_header=self._offset_header,
                    ),
                    leader=number % self._brokers,
                )
                for number in range(partitions)
            ],
            internal,
            {**DEFAULT_CONFIGS, "message.timestamp.type": timestamp_type, **(configs or {})},
        )

    def delete_topic(self, topic: str) -> None:
        """Also removes all offsets committed for it."""
        del self._topics[topic]
        for group in self._groups.values():
            for offsets in (group.offsets, group.pending):
                for partition in [known for known in offsets if known.topic == topic]:
                    del offsets[partition]

    def log(self, topic: str, partition: int = 0) -> PartitionLog:
        """The log of a partition, to write to. Raises KeyError if it does not exist."""
        return self._partition(TopicPartition(topic, partition)).log

    def partition_numbers(self, topic: str) -> range:
        """Raises KeyError if the topic does not exist."""
        return range(len(self._topics[topic].partitions))

    def elect_leader(
        self, partition: TopicPartition, leader: int | None, *, log_end: int | None = None
    ) -> None:
        """Give a partition a new leader, and so a new leader epoch; None: no leader. In an unclean
        election, the new leader's log ends at `log_end`: the records from there on are lost."""
        state = self._partition(partition)
        if leader is None:
            state.leader = None
        else:
            state.elect(leader, state.log.end if log_end is None else log_end)

    def group(self, name: str, type: GroupType = GroupType.CLASSIC) -> MemoryGroup:
        """A group, to change freely; created (empty, of `type`) if it is new."""
        return self._groups.setdefault(name, MemoryGroup(name, type))

    def delete_group(self, name: str) -> None:
        """Also removes its offsets."""
        del self._groups[name]

    def fail(
        self,
        failed: Failed,
        *,
        verb: Verb | None = None,
        topic: str | None = None,
        partition: TopicPartition | None = None,
        group: str | None = None,
        broker: int | None = None,
        times: int | None = None,
        takes_effect: bool = False,
    ) -> Fault:
        """Answer `failed` for every item that matches all given arguments (see `Fault`).

        A partition's broker is its leader, a group's its coordinator. The failure of a broker that
        lists groups is in `failed_brokers`.
        """
        fault = Fault(failed, verb, topic, partition, group, broker, times, takes_effect)
        self._faults.append(fault)
        return fault

    def heal(self, fault: Fault | None = None) -> None:
        """Remove one failure, or all."""
        self._faults[:] = [known for known in self._faults if fault not in (None, known)]

    def asked(self, verb: Verb) -> int:
        """How many items of this verb were requested so far."""
        return sum(len(request.items) for request in self.requests if request.verb is verb)

    @property
    def alias(self) -> str:
        return self._alias

    def _partition(self, partition: TopicPartition) -> MemoryPartition:
        partitions = self._topics[partition.topic].partitions
        if not 0 <= partition.partition < len(partitions):
            raise KeyError(partition)
        return partitions[partition.partition]

    def _coordinator(self, group: str) -> int | None:
        """None if the group's partition of `__consumer_offsets` has no leader."""
        number = crc32(group.encode())
        topic = self._topics.get(GROUP_OFFSETS_TOPIC)
        if topic is None:
            return number % self._brokers
        return topic.partitions[number % len(topic.partitions)].leader
