"""Reading logs: one-partition Fetch requests, pipelined to each leader."""

from collections import defaultdict
from collections.abc import Callable, Collection
from operator import attrgetter
from typing import Generic, TypeVar

from kafka.errors import (
    KafkaError,
    KafkaProtocolError,
    KafkaTimeoutError,
    ThrottlingQuotaExceededError,
)
from kafka.protocol.consumer import FetchRequest

from tsoffset.kafka.broker_connection import Node
from tsoffset.kafka.connections import Api, BrokerConnections
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.errors import error_class, failure
from tsoffset.kafka.log_offsets import ISOLATION_LEVELS
from tsoffset.kafka.rounds import Again, answer_to, in_order, in_rounds
from tsoffset.kafka.topology import Leader, Topology
from tsoffset.kafka.wire import fetch_codec
from tsoffset.kafka.wire.fetch_codec import FetchAnswer, FetchFrames, fetch_answer
from tsoffset.kafka.wire.frame_stream import Codec
from tsoffset.kafka.wire.records import Aborted
from tsoffset.model import Failed, Isolation, ReadFrom

S = TypeVar("S")

# Along each log.
_ORDER_OF_READS = attrgetter("partition.topic", "partition.partition", "offset", "max_bytes")

# A request's number, and the leader epoch of its partition.
_Question = tuple[int, int]

FETCH = Api(
    "fetch",
    FetchRequest,
    fetch_codec.VERSION,
    fetch_codec.VERSION,
    # Batches are sent whole, and a topic may allow records of any size.
    answer_bytes=100_000_000,
)


class FetchRun(Codec[_Question, FetchAnswer], Generic[S]):
    """One call that reads from all leaders of a cluster; `empty` and `read_batches` make
    the values.

    Requests are referred to by number, which is several times faster than hashing them.
    `long_polls` has requests with an empty answer below the log's end, which are repeated once, and
    which the broker then holds until records come.
    """

    def __init__(
        self,
        connections: BrokerConnections,
        topology: Topology,
        poll_timeout_ms: int,
        isolation: Isolation,
        deadline: Deadline,
        empty: Callable[[int, int], S],
        read_batches: Callable[[memoryview, int, int, int, Isolation, Aborted], S | None],
    ) -> None:
        self._connections = connections
        self._topology = topology
        self._poll_timeout_ms = poll_timeout_ms
        self._empty = empty
        self._read_batches = read_batches
        self._alias = connections.alias
        self._isolation = isolation
        self._deadline = deadline
        self._requests: list[ReadFrom] = []
        self._long_polls: set[int] = set()
        client = connections.client
        self._frames = FetchFrames(client.client_id, ISOLATION_LEVELS[isolation])
        self._wait_ms = min(poll_timeout_ms, client.broker_wait_ms)

    def answers(self, requests: Collection[ReadFrom]) -> dict[ReadFrom, S | Failed]:
        self._requests = asked = in_order(requests, _ORDER_OF_READS)
        answers: dict[int, S | Failed] = in_rounds(
            self._connections,
            range(len(asked)),
            self._round,
            "read",
            self._deadline,
            forget=self._forget,
        )
        return {request: answers[number] for number, request in enumerate(asked)}

    async def _round(self, numbers: Collection[int]) -> dict[int, S | Failed | Again]:
        answers: dict[int, S | Failed | Again] = {}
        asked = self._requests
        leaders = await self._topology.leaders(
            {asked[number].partition for number in numbers}, "read", self._deadline
        )
        by_node: dict[Node, list[_Question]] = defaultdict(list)
        for number in numbers:
            leader = leaders[asked[number].partition]
            if isinstance(leader, Leader):
                by_node[leader.node].append((number, leader.epoch))
            else:
                answers[number] = leader

        def take(question: _Question, response: FetchAnswer | KafkaError) -> None:
            number, _ = question
            answers[number] = self._answer(number, response)

        connections = self._connections

        async def ask(node: Node, items: list[_Question]) -> None:
            immediate = [each for each in items if each[0] not in self._long_polls]
            long_polls = [each for each in items if each[0] in self._long_polls]
            # The broker answers a connection's requests one after the other: requests that it holds
            # back would use up the time of those behind them.
            for some, window in ((immediate, connections.fetch_window), (long_polls, 1)):
                await connections.stream(
                    node,
                    FETCH,
                    some,
                    lambda _: self,
                    take,
                    self._deadline,
                    window=window,
                    rate=connections.fetch_rate,
                )

        await connections.at_each(by_node, ask)
        return answers

    def _forget(self, numbers: Collection[int]) -> None:
        self._topology.forget(self._requests[number].partition.topic for number in numbers)

    def encode(self, question: _Question, correlation_id: int) -> bytes:
        number, epoch = question
        request = self._requests[number]
        partition = request.partition
        is_long_poll = number in self._long_polls
        return self._frames.frame(
            correlation_id,
            partition.topic,
            partition.partition,
            epoch,
            request.offset,
            request.max_bytes,
            self._deadline.milliseconds(self._wait_ms) if is_long_poll else 0,
        )

    def decode(self, frame: memoryview) -> FetchAnswer:
        return fetch_answer(frame)

    def held_back(self, answer: FetchAnswer) -> bool:
        return answer.held_back()

    def _answer(self, number: int, response: FetchAnswer | KafkaError) -> S | Failed | Again:
        request = self._requests[number]
        try:
            found = self._records_in(request, response)
        except KafkaError as error:
            return answer_to(error, _operation(request), self._alias)
        return self._not_yet(number) if found is None else found

    def _records_in(self, request: ReadFrom, response: FetchAnswer | KafkaError) -> S | None:
        """The records read; None if the log continues, and nothing came. Raises KafkaError."""
        if isinstance(response, KafkaError):
            raise response
        if response.error_code:
            raise error_class(response.error_code)
        if not response.present:
            raise ThrottlingQuotaExceededError
        partition = request.partition
        if (response.topic.decode(errors="replace"), response.partition) != (
            partition.topic,
            partition.partition,
        ):
            raise KafkaProtocolError("a Fetch answer for a partition that was not asked for")
        if self._isolation is Isolation.READ_COMMITTED:
            readable_end = response.last_stable_offset
        else:
            readable_end = response.high_watermark
        if readable_end < 0 or response.log_start > response.high_watermark:
            raise KafkaProtocolError("a Fetch answer whose log ends before it begins")
        if request.offset >= readable_end:
            return self._empty(request.offset, request.offset)
        return self._read_batches(
            response.records,
            request.offset,
            response.log_start,
            readable_end,
            self._isolation,
            response.aborted,
        )

    def _not_yet(self, number: int) -> Failed | Again:
        """The log continues, yet nothing came: tiered storage did not answer in time, or a broker
        throttles. That does not mean "no record"."""
        timed_out = failure(
            KafkaTimeoutError,
            _operation(self._requests[number]),
            self._alias,
            f"the log has more records, and none arrived within {self._poll_timeout_ms} ms",
        )
        if number in self._long_polls:
            return timed_out
        self._long_polls.add(number)
        return Again(timed_out)


def _operation(request: ReadFrom) -> str:
    return f"read {request.partition}@{request.offset}"
