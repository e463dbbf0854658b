"""The adapter behind a line that changes what a real broker answers: empty, late, broken."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tests.producing import Contents, numbered
from tsoffset.embedded import EmbeddedBroker
from tsoffset.kafka import KafkaCluster
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    Isolation,
    ReadFrom,
    Stretch,
    TopicPartition,
)
from tsoffset.settings import ClusterSettings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]

FETCH, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 1, 8, 9, 10
OFFSET_NOT_AVAILABLE, NOT_LEADER, FENCED_EPOCH, UNKNOWN_EPOCH = 78, 6, 74, 75

# A Fetch response of version 11 from behind its correlation id up to the topic's name, and
# from behind that up to the aborted transactions.
HEAD = struct.Struct(">ihiih")
PARTITION = struct.Struct(">iihqqqi")
ERROR_AT = 8

Edit = Callable[[bytearray], bytearray | None]


@dataclass
class Line:
    """A TCP proxy to one broker; `edit` gets the body of each response to requests of kind
    `api` and returns what is sent instead, or None to break the connection."""

    broker_port: int
    edit: Edit = field(default=lambda body: body)
    api: int = FETCH
    answers: int = 0
    _keys: dict[tuple[int, int], int] = field(default_factory=dict)
    _port: int = 0

    @contextlib.contextmanager
    def open(self) -> Iterator[str]:
        """The address to connect to instead of the broker's."""
        with contextlib.ExitStack() as sockets, socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            self._port = listening.getsockname()[1]
            thread = threading.Thread(target=self._accept, args=(listening, sockets))
            thread.start()
            try:
                yield f"127.0.0.1:{self._port}"
            finally:
                listening.shutdown(socket.SHUT_RDWR)
                thread.join()

    def _accept(self, listening: socket.socket, sockets: contextlib.ExitStack) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                broker = socket.create_connection(("127.0.0.1", self.broker_port))
                sockets.enter_context(client)
                sockets.enter_context(broker)
                for work in (self._requests, self._responses):
                    threading.Thread(target=work, args=(client, broker), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                frame = _frame(client)
                key, _, correlation = struct.unpack_from(">hhi", frame)
                self._keys[broker.fileno(), correlation] = key
                broker.sendall(struct.pack(">i", len(frame)) + frame)
        _end(broker)

    def _responses(self, client: socket.socket, broker: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                frame = _frame(broker)
                (correlation,) = struct.unpack_from(">i", frame)
                body: bytearray | None = frame[4:]
                assert body is not None
                key = self._keys.pop((broker.fileno(), correlation))
                if key != FETCH:
                    # The broker names its own port; the client is to stay on the line.
                    ports = struct.pack(">i", self.broker_port), struct.pack(">i", self._port)
                    body = body.replace(*ports)
                if key == self.api:
                    self.answers += 1
                    body = self.edit(body)
                if body is None:
                    break
                client.sendall(struct.pack(">ii", len(body) + 4, correlation) + body)
        _end(client)


def _frame(from_: socket.socket) -> bytearray:
    (size,) = struct.unpack(">i", _exactly(from_, 4))
    return _exactly(from_, size)


def _exactly(from_: socket.socket, size: int) -> bytearray:
    data = bytearray()
    while len(data) < size:
        some = from_.recv(size - len(data))
        if not some:
            raise EOFError
        data += some
    return data


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


# --- edits of Fetch responses -------------------------------------------------------------


def _partition_at(body: bytearray) -> int:
    *_, name_size = HEAD.unpack_from(body)
    return HEAD.size + int(name_size)


def _records_at(body: bytearray) -> int:
    at = _partition_at(body)
    *_, aborted = PARTITION.unpack_from(body, at)
    return at + PARTITION.size + 16 * max(0, int(aborted)) + 4


def emptied(body: bytearray) -> bytearray:
    """The same answer without its records."""
    return body[: _records_at(body)] + struct.pack(">i", 0)


def damaged(body: bytearray) -> bytearray:
    """The same answer with one bit of its last record changed."""
    body[-1] ^= 1
    return body


def refused(code: int) -> Edit:
    """The answer of a broker that says no."""

    def edit(body: bytearray) -> bytearray:
        body = emptied(body)
        struct.pack_into(">h", body, _partition_at(body) + ERROR_AT, code)
        return body

    return edit


def cut(body: bytearray) -> None:
    """No answer, and no connection any more."""


def first(edit: Edit, times: int = 1) -> Edit:
    """The edit for the first answers, the broker's own words after that."""
    left = [edit] * times

    def one(body: bytearray) -> bytearray | None:
        return left.pop()(body) if left else body

    return one


# --- the tests ----------------------------------------------------------------------------


@pytest.fixture
def tp(source: Contents, unique: Callable[[str], str]) -> TopicPartition:
    """Ten batches of one record."""
    topic = source.create_topic(unique("topic"))
    source.produce(topic, numbered(10), batch=1)
    return TopicPartition(topic, 0)


@pytest.fixture
def line(source_broker: EmbeddedBroker) -> Iterator[tuple[Line, KafkaCluster]]:
    """The line, and an adapter behind it that waits 200 ms for a log that goes on."""
    made = Line(source_broker.port)
    with (
        made.open() as address,
        KafkaCluster(
            ClusterSettings("A", (address,), admin_timeout_ms=20_000, poll_timeout_ms=200)
        ) as cluster,
    ):
        yield made, cluster


def read(cluster: KafkaCluster, tp: TopicPartition, offset: int) -> Stretch | Failed:
    return cluster.read([ReadFrom(tp, offset)], Isolation.READ_UNCOMMITTED)[ReadFrom(tp, offset)]


def test_an_empty_answer_below_the_log_s_end_is_asked_again(
    line: tuple[Line, KafkaCluster], tp: TopicPartition
) -> None:
    """Tiered storage that was not asked in time answers so; it is not "no record"."""
    made, cluster = line
    made.edit = first(emptied)
    answer = read(cluster, tp, 4)
    assert isinstance(answer, Stretch)
    assert [record.offset for record in answer.records] == [4]
    assert made.answers == 2


def test_a_log_that_goes_on_and_stays_empty_is_a_timeout(
    line: tuple[Line, KafkaCluster], tp: TopicPartition
) -> None:
    """After one patient question; it never looks like the log's end."""
    made, cluster = line
    made.edit = emptied
    answer = read(cluster, tp, 4)
    assert isinstance(answer, Failed)
    assert answer.kind is FailureKind.TIMEOUT
    assert f"read {tp}@4, cluster A" in answer.message
    assert made.answers == 2


def test_the_log_s_end_is_empty_and_asked_once(
    line: tuple[Line, KafkaCluster], tp: TopicPartition
) -> None:
    """There, nothing is the answer."""
    made, cluster = line
    assert read(cluster, tp, 10) == Stretch(10, 10)
    assert made.answers == 1


def test_a_damaged_batch_is_named_and_not_asked_for_again(
    line: tuple[Line, KafkaCluster], tp: TopicPartition
) -> None:
    """Its checksum tells; nothing of it is taken for content."""
    made, cluster = line
    made.edit = damaged
    answer = read(cluster, tp, 4)
    assert isinstance(answer, Failed)
    assert answer.kind is FailureKind.CORRUPT_BATCH
    assert made.answers == 1


@pytest.mark.parametrize("code", [OFFSET_NOT_AVAILABLE, NOT_LEADER, FENCED_EPOCH, UNKNOWN_EPOCH])
def test_a_leader_that_refuses_is_looked_up_and_asked_again(
    line: tuple[Line, KafkaCluster], tp: TopicPartition, code: int
) -> None:
    """Twice here, with a newer look at the metadata each time."""
    made, cluster = line
    assert isinstance(read(cluster, tp, 0), Stretch)
    looked_up = cluster.requests["metadata"]
    made.edit = first(refused(code), times=2)
    assert isinstance(read(cluster, tp, 4), Stretch)
    assert made.answers == 4
    assert cluster.requests["metadata"] == looked_up + 2


def test_a_connection_that_breaks_is_made_again(
    line: tuple[Line, KafkaCluster], tp: TopicPartition
) -> None:
    """With all that was under way on it, in the same call."""
    made, cluster = line
    made.edit = first(cut)
    asked = [ReadFrom(tp, offset) for offset in range(10)]
    answers = cluster.read(asked, Isolation.READ_UNCOMMITTED)
    assert [answers[request] for request in asked] == [
        read(cluster, tp, request.offset) for request in asked
    ]
    assert all(isinstance(answer, Stretch) for answer in answers.values())


@pytest.mark.parametrize("api", [FIND_COORDINATOR, OFFSET_COMMIT, OFFSET_FETCH])
def test_offsets_are_committed_and_read_over_a_connection_that_breaks(
    line: tuple[Line, KafkaCluster],
    tp: TopicPartition,
    unique: Callable[[str], str],
    api: int,
) -> None:
    """Whichever answer is lost, to commit the same offset once more changes nothing."""
    made, cluster = line
    made.api, made.edit = api, first(cut)
    group = unique("group")
    assert cluster.commit({group: {tp: CommittedOffset(7, "m")}}) == {group: {tp: None}}
    assert cluster.committed([group], require_stable=True) == {group: {tp: CommittedOffset(7, "m")}}
    assert made.answers > 1
