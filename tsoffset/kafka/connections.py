"""Requests to the brokers of one cluster, pipelined over open connections.

Everything runs in an event loop that one thread per cluster drives: it starts with the first call
and ends with `close`. Calling threads only wait, so a signal interrupts them at once.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from threading import Lock
from typing import Any, TypeVar

from kafka.errors import (
    IncompatibleBrokerVersion,
    InconsistentClusterIdError,
    KafkaConnectionError,
    KafkaError,
    KafkaProtocolError,
)

from tsoffset.errors import ClusterUnreachable, ConfigurationError, ConfigurationProblem
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.broker_connection import BrokerConnection, Node
from tsoffset.kafka.client_settings import WINDOW, client_settings
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.loop import Loop
from tsoffset.kafka.opening import Opener
from tsoffset.kafka.pool import Pool, parse_address
from tsoffset.kafka.rate_limit import UNLIMITED, Rate, Throttle, Window
from tsoffset.kafka.wire.frame_stream import Answer, Codec, FrameStream
from tsoffset.kafka.wire.library_codec import LibraryCodec

T = TypeVar("T")
Q = TypeVar("Q")
A = TypeVar("A", bound=Answer)
N = TypeVar("N")

# The most brokers with requests at the same time, each over its own socket; few clusters have more.
_NODES_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Api:
    """One kind of request: its class, the versions that the caller supports, its name.

    A request with many items has at most `at_most`, and one item before version `many_since`. An
    answer may have `answer_bytes` in addition to twice the length of the request.
    """

    name: str
    request: Any
    lowest: int
    highest: int
    many_since: int = 0
    at_most: int = 1
    answer_bytes: int = 1_000_000

    def version(self, connection: BrokerConnection) -> int:
        """The highest version that the broker and tsoffset support.

        Raises IncompatibleBrokerVersion if there is none.
        """
        found: int = connection.versions.api_version(
            self.request, min_version=self.lowest, max_version=self.highest
        )
        return found

    def supported_by(self, connection: BrokerConnection) -> bool:
        try:
            self.version(connection)
        except IncompatibleBrokerVersion:
            return False
        return True

    def room(self, version: int) -> int:
        return self.at_most if version >= self.many_since else 1


class BrokerConnections:
    """The connections of one cluster; made on first use, and again after `close`."""

    def __init__(self, settings: ClusterSettings) -> None:
        self.alias = settings.alias
        self.client = client_settings(settings)
        self.requests: Counter[str] = Counter()
        self.retries = 0
        self.throttle_seconds = 0.0
        self.fetch_rate = Rate(settings.fetch_max_bytes_per_second)
        self.fetch_window = settings.fetch_max_in_flight or WINDOW
        self._cluster_ids: dict[str, str] = {}
        self._windows: dict[tuple[Node, str, int], Window] = {}
        self._rests: dict[Node, Throttle] = {}
        self._lock = Lock()
        self._loop: Loop | None = None
        self._security = settings.security
        self._pool: Pool | None = None
        try:
            self._addresses = [parse_address(text) for text in settings.bootstrap_servers]
        except ValueError:
            self._addresses = []
        if not self._addresses:
            key, given = f"{settings.alias}.bootstrap.servers", ",".join(settings.bootstrap_servers)
            raise ConfigurationError(
                (ConfigurationProblem(key, given, "must be a list of host:port"),)
            )

    # --- the loop --------------------------------------------------------------------------

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        loop = self._running_loop()
        try:
            return loop.run(work)
        except ClusterUnreachable:
            raise
        except BaseException:
            # An interrupted call leaves requests in flight; the next call must not get their
            # answers.
            self._close(loop)
            raise

    def _running_loop(self) -> Loop:
        with self._lock:
            if self._loop is None:
                self._loop = loop = Loop(self.client.client_id)
                loop.start()
                opener = Opener(loop, self._security, self.client, self.verify)
                self._pool = Pool(opener, self._addresses, self.client)
                loop.on_end = self._pool.close
            return self._loop

    def verify(self, answer: str, cluster_id: str | None) -> None:
        """Raise InconsistentClusterIdError if the broker belongs to another cluster than before.

        Addresses are reused, and two clusters may advertise the same ones. Then another cluster's
        offsets and records would be taken for this one's. `cluster_id` must be the first one seen
        in this kind of answer; None, from an answer without an id, passes.
        """
        if cluster_id and cluster_id != (first := self._cluster_ids.setdefault(answer, cluster_id)):
            raise InconsistentClusterIdError(f"it is {cluster_id}, and was {first}")

    def count_retry(self) -> None:
        with self._lock:
            self.retries += 1

    async def at_each(
        self, by_node: Mapping[N, T], ask: Callable[[N, T], Coroutine[Any, Any, None]]
    ) -> None:
        """Run `ask` for each node with its items, many nodes at the same time, until all are done.
        A key of `by_node` is a node, or has a node as a part."""
        waiting = iter(by_node.items())

        async def work() -> None:
            for node, own in waiting:
                await ask(node, own)

        if len(by_node) == 1:
            await work()
            return
        await asyncio.gather(*(work() for _ in range(min(len(by_node), _NODES_AT_ONCE))))

    @property
    def pool(self) -> Pool:
        """The open connections; they exist while a call runs."""
        if self._pool is None:
            raise KafkaConnectionError("the connections were closed")
        return self._pool

    def close(self) -> None:
        """Close all connections and end the thread; a later call starts new ones."""
        if (loop := self._loop) is not None:
            self._close(loop)

    def _close(self, loop: Loop) -> None:
        with self._lock:
            if self._loop is loop:
                self._loop = self._pool = None
                self._windows.clear()
                self._rests.clear()
        loop.close()

    # --- requests --------------------------------------------------------------------------

    async def ask(
        self, node: Node, api: Api, build: Callable[[int], Any], deadline: Deadline
    ) -> Any:
        """Send one request, built for the common version, and wait for its response.

        Raises KafkaError if there is none.
        """
        answers: list[Any] = []
        codec = partial(
            LibraryCodec, lambda _, version: build(version), self.client.client_id, deadline
        )
        await self.stream(
            node, api, (None,), codec, lambda _, answer: answers.append(answer), deadline
        )
        if isinstance(answers[0], KafkaError):
            raise answers[0]
        return answers[0]

    async def pipeline_many(
        self,
        node: Node,
        api: Api,
        items: Sequence[Q],
        build: Callable[[Sequence[Q], int], Any],
        take: Callable[[Sequence[Q], Any], None],
        deadline: Deadline,
    ) -> None:
        """`stream_many` with requests and responses of the library, built for the common
        version."""
        codec = partial(LibraryCodec, build, self.client.client_id, deadline)
        await self.stream_many(node, api, items, codec, take, deadline)

    async def stream_many(
        self,
        node: Node,
        api: Api,
        items: Sequence[Q],
        codec: Callable[[int], Codec[Sequence[Q], A]],
        take: Callable[[Sequence[Q], A | KafkaError], None],
        deadline: Deadline,
    ) -> None:
        """`stream` with as many items in each question as the version allows. A question that is
        repeated is split into questions of one item."""
        try:
            version = api.version(await self.pool.open(node, deadline))
        except KafkaError as error:
            take(items, error)
            return
        questions = in_parts(items, api.room(version))
        one_each = partial(in_parts, size=1)
        await self.stream(node, api, questions, codec, take, deadline, split=one_each)

    async def stream(
        self,
        node: Node,
        api: Api,
        questions: Sequence[Q],
        codec: Callable[[int], Codec[Q, A]],
        take: Callable[[Q, A | KafkaError], None],
        deadline: Deadline,
        *,
        window: int = WINDOW,
        rate: Rate = UNLIMITED,
        split: Callable[[Q], Sequence[Q]] = lambda question: (question,),
    ) -> None:
        """Send one request per question to a node, with the codec for the common version; if
        `codec` raises a KafkaError, nothing is sent. `take` gets every question exactly once, with
        its answer or with the KafkaError instead. A question may be sent twice.

        If an answer cannot be decoded, the questions are repeated one by one, each in the parts of
        `split`, so that only the part with the bad answer fails. `take` gets the parts then.
        """
        lost: list[Q] = []

        def take_if_known(question: Q, answer: A | KafkaError) -> None:
            if isinstance(answer, KafkaProtocolError):
                lost.append(question)
            else:
                take(question, answer)

        send = partial(self.stream_once, node, api)
        await send(questions, codec, take_if_known, deadline, window=window, rate=rate)
        for part in chain.from_iterable(map(split, lost)):
            await send((part,), codec, take, deadline, window=1, rate=rate)

    async def stream_once(
        self,
        node: Node,
        api: Api,
        questions: Sequence[Q],
        codec: Callable[[int], Codec[Q, A]],
        take: Callable[[Q, A | KafkaError], None],
        deadline: Deadline,
        *,
        window: int = WINDOW,
        rate: Rate = UNLIMITED,
        may_send: Callable[[Q], bool] | None = None,
        number: int = 0,
    ) -> None:
        """`stream` without sending anything twice, and each question only if `may_send` allows it
        at that moment. A question that the codec did not encode was not sent. `number` is that of
        the connection to the node."""
        try:
            connection = await self.pool.open(node, deadline, number)
            spoken = codec(api.version(connection))
        except KafkaError as error:
            for question in questions:
                take(question, error)
            return

        stream = FrameStream(
            connection,
            deque(questions),
            spoken,
            take,
            # The window that the last requests of this kind to the node have left.
            window=self._windows.setdefault((node, api.name, window), Window(window, rate)),
            rate=rate,
            rest=self._rests.setdefault(node, Throttle()),
            deadline=deadline,
            timeout_seconds=deadline.at_most_a_step(self.client.request_timeout_ms) / 1000,
            answer_bytes=api.answer_bytes,
            may_send=may_send,
        )
        try:
            await stream.run()
        finally:
            self.requests[api.name] += stream.sent
            self.throttle_seconds += stream.throttled_seconds
        if stream.outlasted:
            # The next call would end before it may send anything.
            self.pool.drop(node)
            self._rests.pop(node, None)


def in_parts(items: Sequence[Q], size: int) -> list[Sequence[Q]]:
    return [items[begin : begin + size] for begin in range(0, len(items), size)]
