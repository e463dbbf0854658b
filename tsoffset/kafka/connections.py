"""Open connections to the brokers of one cluster, and requests pipelined over them.

Everything below runs in kafka-python's own event loop, which one thread per cluster
drives: it starts with the first call and ends with `close`. Calling threads only wait,
so that a signal ends the wait at once.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

from kafka.cluster import collect_hosts
from kafka.errors import (
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    KafkaError,
    KafkaProtocolError,
    KafkaTimeoutError,
)
from kafka.net.connection import KafkaConnection

from tsoffset.errors import ClusterUnreachable, ConfigurationError, Problem
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.client_settings import WINDOW, client_settings
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.loop import Loop
from tsoffset.kafka.pace import Rate, Rest, Window
from tsoffset.kafka.security.failures import LoginFailed
from tsoffset.kafka.security.manager import Manager
from tsoffset.kafka.wire.frame_stream import Answer, Codec, FrameStream
from tsoffset.kafka.wire.library_codec import LibraryAnswer, library_codec

# Without a handler the library's warnings would go to the terminal past the application.
logging.getLogger("kafka").addHandler(logging.NullHandler())
# What they log at DEBUG is each request, logins with their passwords among them.
for _name in ("kafka.net.connection", "kafka.protocol.parser"):
    logging.getLogger(_name).setLevel(logging.WARNING)
del _name

T = TypeVar("T")
Q = TypeVar("Q")
A = TypeVar("A", bound=Answer)
Node = int | str
N = TypeVar("N", bound=Node)

_CLOSE_MS = 2_000

# How many brokers are asked side by side, over a socket each; clusters with more are few.
_NODES_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Api:
    """One kind of request: its class, the versions that the caller handles, its name.

    Where it asks for many things at once, it is for `at_most`, and before `many_since` for one.
    An answer may have `answer_bytes` beside twice the length of what was asked.
    """

    name: str
    request: Any
    lowest: int
    highest: int
    many_since: int = 0
    at_most: int = 1
    answer_bytes: int = 1_000_000

    def version(self, connection: KafkaConnection) -> int:
        """The highest version that the broker and we know.

        Raises IncompatibleBrokerVersion if there is none.
        """
        found: int = connection.broker_version_data.api_version(
            self.request, min_version=self.lowest, max_version=self.highest
        )
        return found

    def spoken_by(self, connection: KafkaConnection) -> bool:
        """Whether the broker knows a version that we know."""
        try:
            self.version(connection)
        except IncompatibleBrokerVersion:
            return False
        return True

    def room(self, version: int) -> int:
        """How many things a request of that version may ask for."""
        return self.at_most if version >= self.many_since else 1


class Connections:
    """The connections of one cluster; made on first use, and again after `close`."""

    def __init__(self, settings: ClusterSettings) -> None:
        self.alias = settings.alias
        self.client = client_settings(settings)
        self.requests: Counter[str] = Counter()
        self.retries = 0
        self.throttle_seconds = 0.0
        self.fetch_rate = Rate(settings.fetch_max_bytes_per_second)
        self.fetch_window = settings.fetch_max_in_flight or WINDOW
        self._windows: dict[tuple[Node, str, int], Window] = {}
        self._rests: dict[Node, Rest] = {}
        self._lock = Lock()
        self._loop: Loop | None = None
        self._security = settings.security
        self._manager: Manager | None = None
        try:
            self.addresses = tuple(
                (address, host, port)
                for address in settings.bootstrap_servers
                for host, port, _ in collect_hosts([address])
            )
        except ValueError:
            self.addresses = ()
        if not self.addresses:
            key, given = f"{settings.alias}.bootstrap.servers", ",".join(settings.bootstrap_servers)
            raise ConfigurationError((Problem(key, given, "must be a list of host:port"),))

    # --- the loop --------------------------------------------------------------------------

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine in the loop and wait for its result."""
        try:
            result: T = self._running_loop().run(work)
        except ClusterUnreachable:
            raise
        except BaseException:
            # An interrupted call leaves requests behind; the next one must not meet them.
            self.close()
            raise
        return result

    def _running_loop(self) -> Loop:
        with self._lock:
            if self._loop is None:
                self._loop = Loop(
                    client_id=self.client.library["client_id"],
                    # Batches are decoded inside the loop, and a large one takes its time.
                    slow_task_threshold_secs=0,
                )
                self._manager = Manager(self._loop, self._security, **self.client.library)
                self._loop.start()
            return self._loop

    def count_retry(self) -> None:
        """Take notice of a call that asks again."""
        with self._lock:
            self.retries += 1

    async def at_each(
        self, theirs: Mapping[N, T], ask: Callable[[N, T], Coroutine[Any, Any, None]]
    ) -> None:
        """Run `ask` for each node with what is its own, many side by side, until all are done."""
        waiting = iter(theirs.items())

        async def work() -> None:
            for node, own in waiting:
                await ask(node, own)

        if len(theirs) == 1:
            await work()
            return
        workers = min(len(theirs), _NODES_AT_ONCE)
        for future in [self.manager.call_soon(work) for _ in range(workers)]:
            await future

    async def within(self, awaitable: Awaitable[T], milliseconds: int) -> T:
        """Wait that long for a future, which goes on after it. Raises KafkaTimeoutError."""
        result: T = await self.manager.wait_for(awaitable, milliseconds)
        return result

    @property
    def manager(self) -> Manager:
        """The library's connections; there is one while a call runs."""
        assert self._manager is not None
        return self._manager

    def close(self) -> None:
        """End all connections and the thread; a later call makes new ones."""
        with self._lock:
            loop, manager = self._loop, self._manager
            self._loop = self._manager = None
            self._windows.clear()
            self._rests.clear()
        if loop is None or manager is None:
            return
        try:
            loop.run(manager.close)
        except Exception:  # whatever ended the loop, what is left of it goes now
            logging.getLogger(__name__).debug("kafka_loop_was_gone", exc_info=True)
        loop.stop(timeout_ms=_CLOSE_MS)
        loop.close()

    # --- connections -----------------------------------------------------------------------

    def bootstrap_nodes(self) -> dict[Node, str]:
        """The library's ids of the bootstrap addresses, with the addresses as configured and
        in that order (the library shuffles them)."""
        written = {(host, port): address for address, host, port in self.addresses}
        found = {
            node.node_id: written.get((node.host, node.port), f"{node.host}:{node.port}")
            for node in self.manager.cluster.bootstrap_brokers()
        }
        order = {address: place for place, address in enumerate(written.values())}
        return dict(sorted(found.items(), key=lambda item: order.get(item[1], len(order))))

    def connected_nodes(self) -> list[Node]:
        """Brokers with an open connection, the one that was heard last first."""
        heard = sorted(
            self.manager.least_used_connections(),
            key=lambda connection: connection.transport.last_read,
            reverse=True,
        )
        return [
            connection.node_id
            for connection in heard
            if not self.manager.cluster.is_bootstrap(connection.node_id)
        ]

    def learn_brokers(self, metadata: Any) -> None:
        """Take the brokers' addresses from a Metadata response."""
        topics, metadata.topics = metadata.topics, []
        self.manager.cluster.update_metadata(metadata)
        metadata.topics = topics

    async def open(self, node: Node, deadline: Deadline) -> KafkaConnection:
        """A connection to `node` that is open, authenticated and knows the broker's versions.

        Raises KafkaError if there is none within the deadline.
        """
        manager = self.manager
        if deadline.over and not any(
            node == each.node_id for each in manager.least_used_connections()
        ):
            raise KafkaTimeoutError("the call's time is up")
        # Attempts are paced by the rounds of a call; to wait here as well, for one broker
        # after the other, would hold up those that answer.
        manager.reset_backoff(node)
        # Each connection asks its own broker: during an upgrade they differ in versions.
        manager.broker_version_data = None
        connection = manager.get_connection(node, refresh_metadata_on_err=False)
        if not connection.connected:
            timeout = self.client.library["socket_connection_setup_timeout_max_ms"]
            try:
                wait_ms = deadline.milliseconds(deadline.at_most_a_step(timeout))
                await self.within(connection.init_future, wait_ms)
            except KafkaTimeoutError as error:
                broker = manager.cluster.broker_metadata(node)
                if (words := manager.waits_for(broker.host, broker.port)) is not None:
                    raise KafkaTimeoutError(words) from error
                raise
            except KafkaProtocolError as error:
                raise KafkaConnectionError(
                    f"it does not speak Kafka's protocol: {error}"
                ) from error
            except KafkaError:
                raise
            except Exception as error:
                # A broker's part of a login is read by the library, which expects it to be right.
                words = f"the broker's answer: {type(error).__name__}"
                raise (LoginFailed if self._security.login else KafkaError)(words) from error
        return connection

    def drop(self, node: Node) -> None:
        """Close the connection to one node, if there is one."""
        self.manager.close(node)

    # --- requests --------------------------------------------------------------------------

    async def ask(
        self, node: Node, api: Api, build: Callable[[int], Any], deadline: Deadline
    ) -> Any:
        """Send one request, built for the version agreed on, and wait for its response.

        Raises KafkaError if there is none.
        """
        answers: list[Any] = []

        def take(_: None, answer: Any) -> None:
            answers.append(answer)

        await self.pipeline(node, api, (None,), lambda _, version: build(version), take, deadline)
        if isinstance(answers[0], KafkaError):
            raise answers[0]
        return answers[0]

    async def pipeline(
        self,
        node: Node,
        api: Api,
        questions: Sequence[Q],
        build: Callable[[Q, int], Any],
        take: Callable[[Q, Any], None],
        deadline: Deadline,
    ) -> None:
        """Send one request of the library per question to a node, built for the version agreed on.

        `take` gets every question exactly once, with its response or the KafkaError that came
        instead. A question may be sent twice.
        """
        codec, unwrap = self._through_library(build, take, deadline)
        await self.stream(node, api, questions, codec, unwrap, deadline)

    async def pipeline_many(
        self,
        node: Node,
        api: Api,
        items: Sequence[Q],
        build: Callable[[Sequence[Q], int], Any],
        take: Callable[[Sequence[Q], Any], None],
        deadline: Deadline,
    ) -> None:
        """The same with as many items in each request as its version has room for."""
        codec, unwrap = self._through_library(build, take, deadline)
        await self.stream_many(node, api, items, codec, unwrap, deadline)

    def _through_library(
        self,
        build: Callable[[Q, int], Any],
        take: Callable[[Q, Any], None],
        deadline: Deadline,
    ) -> tuple[
        Callable[[int], Codec[Q, LibraryAnswer]], Callable[[Q, LibraryAnswer | KafkaError], None]
    ]:
        """What `stream` needs for requests and responses of the library."""

        def codec(version: int) -> Codec[Q, LibraryAnswer]:
            return library_codec(build, version, self.client.library["client_id"], deadline)

        def unwrap(question: Q, answer: LibraryAnswer | KafkaError) -> None:
            take(question, answer.response if isinstance(answer, LibraryAnswer) else answer)

        return codec, unwrap

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
        rate: Rate | None = None,
    ) -> None:
        """The same with the codec for the version agreed on; without one (a KafkaError raised by
        `codec`) nothing is sent.

        What cannot be decoded is asked once more, one by one: only that question fails whose
        answer is at fault.
        """
        pace = Rate() if rate is None else rate
        lost: list[Q] = []

        def take_if_known(question: Q, answer: A | KafkaError) -> None:
            if isinstance(answer, KafkaProtocolError):
                lost.append(question)
            else:
                take(question, answer)

        await self._send(node, api, questions, codec, take_if_known, deadline, window, pace)
        for question in lost:
            await self._send(node, api, (question,), codec, take, deadline, 1, pace)

    async def stream_once(
        self,
        node: Node,
        api: Api,
        questions: Sequence[Q],
        codec: Callable[[int], Codec[Q, A]],
        take: Callable[[Q, A | KafkaError], None],
        deadline: Deadline,
        may_send: Callable[[Q], bool],
    ) -> None:
        """The same without sending anything twice, and each question only if `may_send` says so
        at that moment. What the codec did not encode was not sent."""
        await self._send(node, api, questions, codec, take, deadline, WINDOW, Rate(), may_send)

    async def stream_many(
        self,
        node: Node,
        api: Api,
        items: Sequence[Q],
        codec: Callable[[int], Codec[Sequence[Q], A]],
        take: Callable[[Sequence[Q], A | KafkaError], None],
        deadline: Deadline,
    ) -> None:
        """The same with as many items in each question as the version has room for."""
        try:
            version = api.version(await self.open(node, deadline))
        except KafkaError as error:
            take(items, error)
            return
        await self.stream(node, api, in_parts(items, api.room(version)), codec, take, deadline)

    async def _send(
        self,
        node: Node,
        api: Api,
        questions: Sequence[Q],
        codec: Callable[[int], Codec[Q, A]],
        take: Callable[[Q, A | KafkaError], None],
        deadline: Deadline,
        window: int,
        rate: Rate,
        may_send: Callable[[Q], bool] | None = None,
    ) -> None:
        try:
            connection = await self.open(node, deadline)
            spoken = codec(api.version(connection))
        except KafkaError as error:
            for question in questions:
                take(question, error)
            return

        def sent(count: int) -> None:
            self.requests[api.name] += count

        def throttled(seconds: float) -> None:
            self.throttle_seconds += seconds

        assert self._loop is not None
        stream = FrameStream(
            self._loop,
            connection,
            questions,
            spoken,
            take,
            sent,
            throttled,
            window=self._window(node, api, window, rate),
            rate=rate,
            rest=self._rests.setdefault(node, Rest()),
            deadline=deadline,
            request_timeout_ms=deadline.at_most_a_step(self.client.request_timeout_ms),
            answer_bytes=api.answer_bytes,
            may_send=may_send,
        )
        await stream.run()
        if stream.outlasted:
            # The next call would be over before it may ask.
            self.drop(node)
            self._rests.pop(node, None)

    def _window(self, node: Node, api: Api, limit: int, rate: Rate) -> Window:
        """As the last requests of this kind to the node have left it."""
        known = self._windows.get((node, api.name, limit))
        if known is None:
            known = self._windows[node, api.name, limit] = Window(limit, rate)
        return known


def in_parts(items: Sequence[Q], size: int) -> list[Sequence[Q]]:
    """The items in their order, `size` of them in each part but the last."""
    return [items[begin : begin + size] for begin in range(0, len(items), size)]
