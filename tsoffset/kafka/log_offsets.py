"""Log starts, log ends and offsets by time: ListOffsets with many partitions in a request; and the
ends of leader epochs: OffsetForLeaderEpoch."""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any

from kafka.errors import (
    IncompatibleBrokerVersion,
    KafkaError,
    KafkaProtocolError,
    UnsupportedForMessageFormatError,
)
from kafka.protocol.consumer import ListOffsetsRequest, OffsetForLeaderEpochRequest

from tsoffset.kafka.broker_connection import Node
from tsoffset.kafka.connections import Api, BrokerConnections, in_parts
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.errors import Trouble, failure
from tsoffset.kafka.rounds import TOPIC_AND_PARTITION, Again, answer_to, in_order, in_rounds
from tsoffset.kafka.topology import Leader, Topology
from tsoffset.kafka.wire.frame_stream import Codec
from tsoffset.kafka.wire.library_codec import LibraryCodec
from tsoffset.kafka.wire.list_offsets_codec import (
    HIGHEST,
    LOWEST,
    YOUNGEST_SINCE,
    ListOffsetsAnswer,
    ListOffsetsCodec,
    Lookup,
    Lookups,
)
from tsoffset.model import (
    Failed,
    FirstAtTime,
    Isolation,
    LeaderEpoch,
    LogRange,
    TimedOffset,
    TopicPartition,
    Youngest,
)

LIST_OFFSETS = Api("list_offsets", ListOffsetsRequest, LOWEST, HIGHEST)
_LIST_YOUNGEST = replace(LIST_OFFSETS, lowest=YOUNGEST_SINCE)
# Before version 3, a client needs CLUSTER_ACTION.
_EPOCH_ENDS = Api("offset_for_leader_epoch", OffsetForLeaderEpochRequest, 3, 4)

_EARLIEST = -2
_LATEST = -1
_YOUNGEST = -3
_NOT_FOUND = (-1, -1)
# A broker before 3.0 looks up no time in a topic with message format 0, which has no timestamps.
# The empty result proves nothing. Log starts and ends are still answered.
_NO_TIMES = UnsupportedForMessageFormatError.errno
# The largest 64-bit number: no record can be there, because its log would have no end.
_NO_OFFSET = 2**63 - 1
_PARTITIONS_PER_REQUEST = 1_000
ISOLATION_LEVELS = {Isolation.READ_UNCOMMITTED: 0, Isolation.READ_COMMITTED: 1}

_ORDER_OF_LOOKUPS = attrgetter("partition.topic", "partition.partition", "timestamp_ms")

# Offset and timestamp, as in the broker's answer.
Found = tuple[int, int]

_EpochsOfTopic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
_EpochOfPartition = _EpochsOfTopic.OffsetForLeaderPartition
_NO_REPLICA = -1
_NO_TIME = -1


class LogOffsets:
    def __init__(self, connections: BrokerConnections, topology: Topology) -> None:
        self._connections = connections
        self._topology = topology

    def log_ranges(
        self, partitions: Collection[TopicPartition], isolation: Isolation, deadline: Deadline
    ) -> dict[TopicPartition, LogRange | Failed]:
        """Start and readable end of each log. The start is looked up first: so it never lies past
        the end, whatever is deleted meanwhile."""
        asked = in_order(partitions, TOPIC_AND_PARTITION)
        lookups = [(tp, end) for tp in asked for end in (_EARLIEST, _LATEST)]
        found = self._list("find the log range of", lookups, isolation, deadline)
        ranges: dict[TopicPartition, LogRange | Failed] = {}
        for number, tp in enumerate(asked):
            start, end = found[2 * number], found[2 * number + 1]
            if isinstance(start, Failed):
                ranges[tp] = start
            elif isinstance(end, Failed):
                ranges[tp] = end
            elif start[0] > end[0] and isolation is Isolation.READ_UNCOMMITTED:
                trouble = KafkaProtocolError(f"it begins at {start[0]} and ends at {end[0]}")
                what = f"find the log range of {tp}"
                ranges[tp] = failure(trouble, what, self._connections.alias)
            else:
                # Records of an open transaction may be deleted; then nothing from there on is
                # stable.
                ranges[tp] = LogRange(start[0], max(start[0], end[0]))
        return ranges

    def first_at_times(
        self, requests: Collection[FirstAtTime], isolation: Isolation, deadline: Deadline
    ) -> dict[FirstAtTime, TimedOffset | Failed | None]:
        """The first record at or after each time, as the broker's search finds it.

        Raises ValueError for a negative time, which has another meaning for brokers.
        """
        for request in requests:
            if request.timestamp_ms < 0:
                raise ValueError(f"look up a negative time: {request}")
        asked = in_order(requests, _ORDER_OF_LOOKUPS)
        lookups = [(request.partition, request.timestamp_ms) for request in asked]
        found = self._list("look up a time in", lookups, isolation, deadline)
        return {request: _timed_offset(found[number]) for number, request in enumerate(asked)}

    def youngest(
        self, requests: Collection[Youngest], isolation: Isolation, deadline: Deadline
    ) -> dict[Youngest, TimedOffset | Failed | None]:
        """The record with the largest timestamp. A broker before 3.0 is not asked: it would treat
        this as a lookup of a time, and answer the first record."""
        asked = in_order(requests, attrgetter("partition.topic", "partition.partition"))
        lookups = [(request.partition, _YOUNGEST) for request in asked]
        what = "look up the record with the largest timestamp of"
        found = self._list(what, lookups, isolation, deadline, _LIST_YOUNGEST)
        return {request: _timed_offset(found[number]) for number, request in enumerate(asked)}

    def epoch_ends(
        self, requests: Collection[LeaderEpoch], deadline: Deadline
    ) -> dict[LeaderEpoch, int | Failed | None]:
        """Where each leader epoch ends in its log; None if the log has no such epoch."""
        asked = in_order(requests, attrgetter("partition.topic", "partition.partition", "epoch"))
        lookups = [(request.partition, request.epoch) for request in asked]
        codec = partial(_EpochEndsCodec, self._connections.client.client_id, deadline)
        found = _LookupRun(
            self._connections,
            self._topology,
            "find the end of a leader epoch of",
            lookups,
            deadline,
            _EPOCH_ENDS,
            codec,
        ).answers()
        ends: dict[LeaderEpoch, int | Failed | None] = {}
        for number, request in enumerate(asked):
            end = found[number]
            ends[request] = end if isinstance(end, Failed) else end[0] if end[0] >= 0 else None
        return ends

    def _list(
        self,
        operation: str,
        lookups: Sequence[tuple[TopicPartition, int]],
        isolation: Isolation,
        deadline: Deadline,
        api: Api = LIST_OFFSETS,
    ) -> dict[int, Found | Failed]:
        client = self._connections.client

        def codec(version: int) -> ListOffsetsCodec:
            timeout_ms = deadline.milliseconds(client.broker_wait_ms)
            return ListOffsetsCodec(
                client.client_id, ISOLATION_LEVELS[isolation], timeout_ms, version
            )

        run = _LookupRun(
            self._connections, self._topology, operation, lookups, deadline, api, codec
        )
        return run.answers()


@dataclass(slots=True)
class _LookupRun:
    """One call. A lookup is a partition and a time, one of the two ends, the youngest record, or a
    leader epoch. Lookups are sorted by partition and referred to by number, which is several times
    faster than hashing them. A broker too old for the youngest record has no result for it."""

    _connections: BrokerConnections
    _topology: Topology
    _operation: str
    _lookups: Sequence[tuple[TopicPartition, int]]
    _deadline: Deadline
    _api: Api
    _codec: Callable[[int], Codec[Lookups, ListOffsetsAnswer]]

    def answers(self) -> dict[int, Found | Failed]:
        return in_rounds(
            self._connections,
            range(len(self._lookups)),
            self._round,
            self._operation,
            self._deadline,
            forget=self._forget,
        )

    async def _round(self, numbers: Collection[int]) -> dict[int, Found | Failed | Again]:
        answers: dict[int, Found | Failed | Again] = {}
        by_partition: dict[TopicPartition, list[int]] = {}
        before: TopicPartition | None = None
        for number in numbers:
            tp = self._lookups[number][0]
            if tp is not before:
                lookups = by_partition.setdefault(tp, [])
                before = tp
            lookups.append(number)
        leaders = await self._topology.leaders(by_partition, self._operation, self._deadline)
        by_node: dict[Node, list[tuple[int, list[int]]]] = defaultdict(list)
        for tp, lookups in by_partition.items():
            leader = leaders[tp]
            if isinstance(leader, Leader):
                by_node[leader.node].append((leader.epoch, lookups))
            else:
                answers.update(dict.fromkeys(lookups, leader))

        def take(question: Lookups, response: ListOffsetsAnswer | KafkaError) -> None:
            self._take(question, response, answers)

        async def ask(node: Node, some: list[tuple[int, list[int]]]) -> None:
            await self._connections.stream(
                node, self._api, self._questions(some), self._codec, take, self._deadline
            )

        await self._connections.at_each(by_node, ask)
        return answers

    def _forget(self, numbers: Collection[int]) -> None:
        self._topology.forget(self._lookups[number][0].topic for number in numbers)

    def _questions(self, partitions: Sequence[tuple[int, Sequence[int]]]) -> list[Lookups]:
        """As few requests as hold all lookups, with a partition at most once in each; each
        partition has its leader epoch.

        The first lookup of every partition comes before any second one.
        """
        questions: list[Lookups] = []
        layer = 0
        while partitions:
            of_layer = [(epoch, numbers[layer]) for epoch, numbers in partitions]
            layer += 1
            partitions = [one for one in partitions if layer < len(one[1])]
            for some in in_parts(of_layer, _PARTITIONS_PER_REQUEST):
                question: dict[str, dict[int, Lookup]] = defaultdict(dict)
                for epoch, number in some:
                    tp, time = self._lookups[number]
                    question[tp.topic][tp.partition] = Lookup(epoch, time, number)
                questions.append(question)
        return questions

    def _take(
        self,
        question: Lookups,
        response: ListOffsetsAnswer | KafkaError,
        answers: dict[int, Found | Failed | Again],
    ) -> None:
        if isinstance(response, KafkaError):
            unknown = isinstance(response, IncompatibleBrokerVersion)
            unknown &= self._api is _LIST_YOUNGEST
            for _, _, number in chain(*(lookups.values() for lookups in question.values())):
                answers[number] = _NOT_FOUND if unknown else self._answer_to(response, number)
            return
        for topic, found in response.topics:
            lookups = question.get(topic, {})
            for partition, error_code, timestamp_ms, offset in found:
                if (lookup := lookups.get(partition)) is None:
                    continue
                # Each log has its ends, but possibly no record at a time.
                least = 0 if lookup.timestamp_ms in (_EARLIEST, _LATEST) else _NOT_FOUND[0]
                asked = lookup.number
                if error_code == _NO_TIMES and least < 0:
                    answers[asked] = _NOT_FOUND
                elif error_code:
                    answers[asked] = self._answer_to(error_code, asked)
                elif not least <= offset < _NO_OFFSET:
                    trouble = KafkaProtocolError(f"the offset {offset}")
                    answers[asked] = self._answer_to(trouble, asked)
                else:
                    answers[asked] = offset, timestamp_ms

    def _answer_to(self, trouble: Trouble, number: int) -> Failed | Again:
        what = f"{self._operation} {self._lookups[number][0]}"
        return answer_to(trouble, what, self._connections.alias)


def _timed_offset(found: Found | Failed) -> TimedOffset | Failed | None:
    """A record that was not found, or that has no time, is no answer."""
    if isinstance(found, Failed):
        return found
    offset, timestamp_ms = found
    return None if offset < 0 or timestamp_ms < 0 else TimedOffset(offset, timestamp_ms)


class _EpochEndsCodec(LibraryCodec[Lookups]):
    """OffsetForLeaderEpoch (KIP-320). Questions and answers have the form of those of ListOffsets,
    with an epoch in place of a time."""

    def __init__(self, client_id: str, deadline: Deadline, version: int) -> None:
        super().__init__(_epoch_ends_request, client_id, deadline, version)

    def decode(self, frame: memoryview) -> ListOffsetsAnswer:
        """The offset of an epoch that the log does not have is -1."""
        response = super().decode(frame)
        topics = (
            (
                topic.topic,
                tuple(
                    (p.partition, p.error_code, _NO_TIME, p.end_offset) for p in topic.partitions
                ),
            )
            for topic in response.topics
        )
        return ListOffsetsAnswer(response.throttle_time_ms, tuple(topics))


def _epoch_ends_request(topics: Lookups, version: int) -> Any:
    wanted = [
        _EpochsOfTopic(
            topic=name,
            partitions=[
                _EpochOfPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
                for index, (current, epoch, _) in partitions.items()
            ],
        )
        for name, partitions in topics.items()
    ]
    return OffsetForLeaderEpochRequest(replica_id=_NO_REPLICA, topics=wanted, version=version)
