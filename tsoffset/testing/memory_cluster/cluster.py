"""`MemoryCluster`: `tsoffset.cluster.Cluster` in memory."""

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar
from uuid import NAMESPACE_OID, uuid5

from tsoffset.cluster import Cluster, leaderless
from tsoffset.committed import CommittedColumns
from tsoffset.errors import ClusterUnreachable
from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    Broker,
    ClusterDescription,
    CommittedOffset,
    Failed,
    FailureKind,
    FirstAtTime,
    GroupListings,
    GroupOffsets,
    GroupType,
    Isolation,
    LeaderEpoch,
    LogRange,
    Operation,
    PartitionDescription,
    ReadFrom,
    Resource,
    Rights,
    TimedOffset,
    TopicDescription,
    TopicPartition,
    Youngest,
)
from tsoffset.records import FetchedRange, RawFetchedRange
from tsoffset.testing.memory_cluster.faults import Request, Verb
from tsoffset.testing.memory_cluster.groups import (
    RETRY_SECONDS,
    MemoryGroup,
    metadata_length,
    not_sent,
)
from tsoffset.testing.memory_cluster.log import PartitionLog
from tsoffset.testing.memory_cluster.state import MemoryPartition, MemoryState

_Asked = TypeVar("_Asked", TopicPartition, ReadFrom, FirstAtTime, Youngest)
_Answer = TypeVar("_Answer")

_VERSION = "4.3"


class MemoryCluster(MemoryState, Cluster):
    """A small Kafka in memory: deterministic, picklable, for tests without a broker.

    Fill it with `create_topic`, `log` and `group`, make it fail with `fail`, and use it through the
    methods of `Cluster`. `requests` has the calls and `commits` the accepted commits, in order. Its
    time is `clock.now_ms` and changes only by hand.
    Everything is allowed until `allowed` restricts it.
    """

    def describe(self) -> ClusterDescription:
        self._record_request(Verb.DESCRIBE, ())
        brokers = tuple(Broker(node, "memory", node + 1, _VERSION) for node in range(self._brokers))
        return ClusterDescription(str(uuid5(NAMESPACE_OID, self.alias)), brokers)

    def topics(
        self, names: Collection[str] | None = None
    ) -> Mapping[str, TopicDescription | Failed]:
        wanted = tuple(self._visible_topics() if names is None else names)
        self._record_request(Verb.TOPICS, wanted)
        return {name: self._describe(name) for name in wanted}

    def groups(self) -> GroupListings:
        """All groups, and the brokers that were made to fail.

        If there is a topic `__consumer_offsets`, the leader of a group's partition coordinates it.
        """
        self._record_request(Verb.GROUPS, ())
        failed = {}
        for node in range(self._brokers):
            if fault := self._faults.on(Verb.GROUPS, broker=node):
                failed[node] = fault.failed
        everything = bool(self.allowed.on(Resource.CLUSTER))
        listings = (
            group.listing(self._coordinator(group.group))
            for group in self._groups.values()
            if everything or self.allowed.on(Resource.GROUP, group.group)
        )
        return GroupListings(
            {it.group: it for it in listings if it.coordinator not in (None, *failed)},
            failed,
            self._leaderless(),
        )

    def committed(
        self,
        groups: Collection[str],
        *,
        share_groups: Collection[str] = (),
        require_stable: bool,
        within_seconds: float | None = None,
    ) -> CommittedColumns:
        """Without retries."""
        self._record_request(Verb.COMMITTED, tuple(groups))
        return CommittedColumns.of(
            {name: self._offsets(name, name in share_groups, require_stable) for name in groups}
        )

    def log_ranges(
        self, partitions: Collection[TopicPartition], isolation: Isolation
    ) -> Mapping[TopicPartition, LogRange | Failed]:
        return self._from_logs(
            Verb.LOG_RANGES,
            partitions,
            isolation,
            lambda _, log: LogRange(log.start, log.readable_end(isolation)),
        )

    def read(
        self, requests: Collection[ReadFrom], isolation: Isolation
    ) -> Mapping[ReadFrom, FetchedRange | Failed]:
        return self._from_logs(
            Verb.READ, requests, isolation, lambda one, log: self._read(one, log, isolation)
        )

    def read_raw(
        self, requests: Collection[ReadFrom], isolation: Isolation
    ) -> Mapping[ReadFrom, RawFetchedRange | Failed]:
        return self._from_logs(
            Verb.READ_RAW,
            requests,
            isolation,
            lambda one, log: log.raw(self._read(one, log, isolation)),
        )

    def first_at_times(
        self, requests: Collection[FirstAtTime], isolation: Isolation
    ) -> Mapping[FirstAtTime, TimedOffset | Failed | None]:
        """Raises ValueError for a negative time."""
        for request in requests:
            if request.timestamp_ms < 0:
                raise ValueError(f"{request.partition}: {request.timestamp_ms} is no time")
        return self._from_logs(
            Verb.FIRST_AT_TIMES,
            requests,
            isolation,
            lambda one, log: log.first_at(one.timestamp_ms, isolation),
        )

    def youngest(
        self, requests: Collection[Youngest], isolation: Isolation
    ) -> Mapping[Youngest, TimedOffset | Failed | None]:
        return self._from_logs(
            Verb.YOUNGEST, requests, isolation, lambda _, log: log.youngest(isolation)
        )

    def epoch_ends(
        self, requests: Collection[LeaderEpoch]
    ) -> Mapping[LeaderEpoch, int | Failed | None]:
        self._record_request(Verb.EPOCH_ENDS, tuple(requests))
        found: dict[LeaderEpoch, int | Failed | None] = {}
        for one in requests:
            state = self._readable(Verb.EPOCH_ENDS, one.partition)
            found[one] = state if isinstance(state, Failed) else state.epoch_end(one.epoch)
        return found

    def commit(
        self,
        commits: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
        *,
        share_groups: Collection[str] = (),
        may_send: Callable[[str], bool] | None = None,
    ) -> Mapping[str, Mapping[TopicPartition, Failed | None]]:
        sent = [name for name in commits if may_send is None or may_send(name)]
        items = [(name, one, offset) for name in sent for one, offset in commits[name].items()]
        self._record_request(Verb.COMMIT, tuple(items))
        answers: dict[str, dict[TopicPartition, Failed | None]] = {
            name: dict.fromkeys(of, not_sent(name, self.alias)) for name, of in commits.items()
        }
        for name, partition, offset in items:
            answers[name][partition] = self._commit(name, partition, offset, name in share_groups)
        return answers

    def rights(self, topics: Collection[str], groups: Collection[str]) -> Rights:
        """Those of `allowed`."""
        self._record_request(Verb.RIGHTS, (*topics, *groups))
        return Rights(
            "User:memory",
            self.allowed.on(Resource.CLUSTER),
            {name: self.allowed.on(Resource.TOPIC, name) for name in topics},
            {name: self.allowed.on(Resource.GROUP, name) for name in groups},
        )

    def topic_configs(self, topics: Collection[str]) -> Mapping[str, Mapping[str, str] | Failed]:
        """The configurations given to `create_topic`."""
        self._record_request(Verb.TOPIC_CONFIGS, tuple(topics))
        return {name: self._configs(name) for name in topics}

    def close(self) -> None:
        """Does nothing: a closed cluster still answers."""

    # --- answers for one item -------------------------------------------------------------

    def _record_request(
        self, verb: Verb, items: tuple[object, ...], isolation: Isolation | None = None
    ) -> None:
        if self.unreachable:
            raise ClusterUnreachable(
                f"{verb}, cluster {self.alias}: made unreachable; set `unreachable` to False"
            )
        self.requests.append(Request(verb, items, isolation))

    def _leaderless(self) -> Failed | None:
        topic = self._topics.get(GROUP_OFFSETS_TOPIC)
        if topic is None or not self.allowed.on(Resource.TOPIC, GROUP_OFFSETS_TOPIC):
            return None
        numbers = [n for n, partition in enumerate(topic.partitions) if partition.leader is None]
        return leaderless(self.alias, numbers) if numbers else None

    def _no_coordinator(self, verb: Verb, group: str) -> Failed:
        return Failed(
            FailureKind.COORDINATOR,
            f"{verb}, group {group}, cluster {self.alias}: the group's coordinator is not ready; "
            f"elect a leader of its partition of {GROUP_OFFSETS_TOPIC}",
            retry_seconds=RETRY_SECONDS,
        )

    def _describe(self, name: str) -> TopicDescription | Failed:
        if fault := self._faults.on(Verb.TOPICS, topic=name):
            return fault.failed
        if refusal := self._refusal(Verb.TOPICS, Resource.TOPIC, name, Operation.DESCRIBE):
            return refusal
        topic = self._topics.get(name)
        if topic is None:
            return self._missing(Verb.TOPICS, f"topic {name}")
        partitions = {
            number: PartitionDescription(number, state.leader, state.leader_epoch)
            for number, state in enumerate(topic.partitions)
        }
        return TopicDescription(name, topic.topic_id, partitions, topic.internal)

    def _visible_topics(self) -> list[str]:
        return [name for name in self._topics if self.allowed.on(Resource.TOPIC, name)]

    def _configs(self, name: str) -> Mapping[str, str] | Failed:
        if fault := self._faults.on(Verb.TOPIC_CONFIGS, topic=name):
            return fault.failed
        needed = Operation.DESCRIBE_CONFIGS
        if refusal := self._refusal(Verb.TOPIC_CONFIGS, Resource.TOPIC, name, needed):
            return refusal
        topic = self._topics.get(name)
        return (
            self._missing(Verb.TOPIC_CONFIGS, f"topic {name}") if topic is None else topic.configs
        )

    def _refusal(
        self, verb: Verb, resource: Resource, name: str, operation: Operation
    ) -> Failed | None:
        what = f"{verb}, {resource} {name}, cluster {self.alias}"
        return self.allowed.refusal(resource, name, operation, what)

    def _offsets(
        self, name: str, as_share_group: bool, require_stable: bool
    ) -> GroupOffsets | Failed:
        broker = self._coordinator(name)
        if fault := self._faults.on(Verb.COMMITTED, group=name, broker=broker):
            return fault.failed
        if broker is None:
            return self._no_coordinator(Verb.COMMITTED, name)
        if refusal := self._refusal(Verb.COMMITTED, Resource.GROUP, name, Operation.DESCRIBE):
            return refusal
        group = self._groups.get(name)
        if group is None or (group.type is GroupType.SHARE) != as_share_group:
            return {}
        found = group.committed(self.alias, require_stable=require_stable)
        if as_share_group:
            found = {partition: self._with_lag(group, partition) for partition in group.offsets}
        if self.allowed.restricted:
            # Offsets on topics without DESCRIBE are omitted silently, as in Kafka.
            seen = {*self._visible_topics()}
            found = {
                partition: commit for partition, commit in found.items() if partition.topic in seen
            }
        if not self._faults:
            return found
        offsets = dict(found)
        for partition in offsets:
            if fault := self._faults.on(
                Verb.COMMITTED, partition=partition, group=name, broker=broker
            ):
                offsets[partition] = fault.failed
        return offsets

    def _with_lag(self, group: MemoryGroup, partition: TopicPartition) -> CommittedOffset:
        start = group.offsets[partition].offset
        end = self._partition(partition).log.readable_end(Isolation.READ_UNCOMMITTED)
        lag = end - start - group.acknowledged.get(partition, 0)
        return CommittedOffset(start, lag=lag if lag >= 0 else None)

    def _from_logs(
        self,
        verb: Verb,
        requests: Collection[_Asked],
        isolation: Isolation,
        answer: Callable[[_Asked, PartitionLog], _Answer],
    ) -> dict[_Asked, _Answer | Failed]:
        self._record_request(verb, tuple(requests), isolation)
        found: dict[_Asked, _Answer | Failed] = {}
        for one in requests:
            state = self._readable(verb, one if isinstance(one, TopicPartition) else one.partition)
            found[one] = state if isinstance(state, Failed) else answer(one, state.log)
        return found

    def _readable(self, verb: Verb, partition: TopicPartition) -> MemoryPartition | Failed:
        if self.allowed.restricted:
            reads = verb in (Verb.READ, Verb.READ_RAW)
            needed = Operation.READ if reads else Operation.DESCRIBE
            if refusal := self._refusal(verb, Resource.TOPIC, partition.topic, needed):
                return refusal
        try:
            state = self._partition(partition)
        except KeyError:
            return self._missing(verb, str(partition))
        if self._faults and (
            fault := self._faults.on(verb, partition=partition, broker=state.leader)
        ):
            return fault.failed
        if state.leader is None:
            return Failed(
                FailureKind.NO_LEADER,
                f"{verb}, {partition}, cluster {self.alias}: no leader; elect one",
            )
        return state

    def _read(
        self, request: ReadFrom, log: PartitionLog, isolation: Isolation
    ) -> FetchedRange | Failed:
        what = f"read, {request.partition}@{request.offset}, cluster {self.alias}"
        if not log.start <= request.offset <= log.end:
            return Failed(
                FailureKind.NO_LEADER,
                f"{what}: outside the log, which is {log.start}..{log.end}; "
                "take an offset within it",
            )
        fetched = log.read(request.offset, request.max_bytes, isolation)
        if fetched is None:
            return Failed(
                FailureKind.TIMEOUT,
                f"{what}: no records came, although the log goes on to "
                f"{log.readable_end(isolation)}; compaction may have removed them all",
            )
        return fetched

    def _commit(
        self, name: str, partition: TopicPartition, offset: CommittedOffset, as_share_group: bool
    ) -> Failed | None:
        group = self._groups.get(name) or (
            MemoryGroup(name, GroupType.SHARE, protocol_type="share")
            if as_share_group
            else MemoryGroup(name, protocol_type="")
        )
        broker = self._coordinator(name)
        fault = self._faults.on(Verb.COMMIT, partition=partition, group=name, broker=broker)
        if fault is not None and not fault.takes_effect:
            return fault.failed
        if broker is None:
            return self._no_coordinator(Verb.COMMIT, name)
        if refusal := group.refusal(self.alias, as_share_group=as_share_group):
            return refusal
        for resource, one in ((Resource.GROUP, name), (Resource.TOPIC, partition.topic)):
            if refused := self._refusal(Verb.COMMIT, resource, one, Operation.READ):
                return refused
        what = f"commit offset, group {name}, {partition}, cluster {self.alias}"
        try:
            self._partition(partition)
        except KeyError:
            return self._missing(Verb.COMMIT, str(partition))
        if metadata_length(offset.metadata) > self._max_metadata_length:
            return Failed(
                FailureKind.COORDINATOR,
                f"{what}: metadata is longer than {self._max_metadata_length}; commit without it",
                metadata_too_large=True,
            )
        if as_share_group:
            offset = CommittedOffset(offset.offset)
            group.acknowledged.pop(partition, None)
        self._groups.setdefault(name, group).offsets[partition] = offset
        self.commits.append((name, partition, offset))
        return None if fault is None else fault.failed

    def _missing(self, verb: Verb, what: str) -> Failed:
        return Failed(
            FailureKind.NO_LEADER,
            f"{verb}, {what}, cluster {self.alias}: does not exist; create it",
            missing=True,
        )
