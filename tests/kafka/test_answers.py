"""The adapter behind a line that changes what a real broker answers: empty, late, broken."""

import contextlib
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tests.memory_flows import flow
from tests.producing import Contents, numbered
from tsoffset.cycle.source_commits import SourceCommit
from tsoffset.cycle.work import TranslatedPosition
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import ClusterSettings
from tsoffset.group_sync.commit import FRESH_SECONDS, commit_groups
from tsoffset.group_sync.translated_commits import TranslatedCommit, commit_work
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    FirstAtTime,
    GroupOffsets,
    Isolation,
    LogRange,
    OutcomeKind,
    Precision,
    ReadFrom,
    Reason,
    TopicPartition,
    Translated,
)
from tsoffset.records import Stretch
from tsoffset.rule.translate import Translation
from tsoffset.testing.embedded import EmbeddedBroker

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]

FETCH, LIST_OFFSETS, METADATA = 1, 2, 3
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
OFFSET_NOT_AVAILABLE, NOT_LEADER, FENCED_EPOCH, UNKNOWN_EPOCH = 78, 6, 74, 75
COORDINATOR_LOADS, NOT_COORDINATOR = 14, 16

# A Fetch response of version 11 from behind its correlation id up to the topic's name, and
# from behind that up to the aborted transactions.
HEAD = struct.Struct(">ihiih")
PARTITION = struct.Struct(">iihqqqi")
ERROR_AT = 8

Edit = Callable[[bytearray], bytearray | None]


@dataclass
class Line:
    """A TCP proxy to one broker; `edit` gets the body of each response to requests of kind
    `api` and returns what is sent instead, or None to break the connection. What passes is
    counted: `requests` by kind, the `record_bytes` of fetches, how many of them were under way
    at once at most.
    """

    broker_port: int
    edit: Edit = field(default=lambda body: body)
    api: int = FETCH
    answers: int = 0
    requests: Counter[int] = field(default_factory=Counter)
    record_bytes: int = 0
    most_under_way: int = 0
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
                self.requests[key] += 1
                if key == FETCH:
                    under_way = list(self._keys.values()).count(FETCH)
                    self.most_under_way = max(self.most_under_way, under_way)
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
                if key == FETCH:
                    self.record_bytes += len(body) - _records_at(body) - 4
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
    if len(body) < HEAD.size:
        return len(body)
    *_, name_size = HEAD.unpack_from(body)
    return HEAD.size + int(name_size)


def _records_at(body: bytearray) -> int:
    at = _partition_at(body)
    if at == len(body):
        return at - 4
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


def throttled(milliseconds: int) -> Edit:
    """The answer of a broker that throttles: it says for how long, and nothing else."""

    def edit(body: bytearray) -> bytearray:
        return bytearray(struct.pack(">ihii", milliseconds, 0, 0, 0))

    return edit


def cut(body: bytearray) -> None:
    """No answer, and no connection any more."""


def first(edit: Edit, times: int = 1) -> Edit:
    """The edit for the first answers, the broker's own words after that."""
    left = [edit] * times

    def one(body: bytearray) -> bytearray | None:
        return left.pop()(body) if left else body

    return one


# --- edits of ListOffsets responses, flexible ones for one partition ------------------------


def lookup_refused(code: int) -> Edit:
    """The answer of a broker that says no."""

    def edit(body: bytearray) -> bytearray:
        # Tags, throttle time, topics, name, partitions, index, error.
        struct.pack_into(">hqq", body, 6 + body[6] + 1 + 4, code, -1, -1)
        return body

    return edit


def lookup_slowed(milliseconds: int) -> Edit:
    """The same answer, and word that nothing else is wanted for some time."""

    def edit(body: bytearray) -> bytearray:
        struct.pack_into(">i", body, 1, milliseconds)
        return body

    return edit


def unreadable(body: bytearray) -> bytearray:
    """An answer that ends too early."""
    return body[:-4]


def last_group_refused(code: int) -> Edit:
    """The same answer to a read of offsets, with the broker's no for its last group, which has
    none."""

    def edit(body: bytearray) -> bytearray:
        # The error is followed by the tags of the group and of it all.
        struct.pack_into(">h", body, len(body) - 4, code)
        return body

    return edit


def commit_refused(code: int) -> Edit:
    """The same answer to a commit of one partition with the broker's no."""

    def edit(body: bytearray) -> bytearray:
        # The error is followed by the tags of the partition, of the topic and of it all.
        struct.pack_into(">h", body, len(body) - 5, code)
        return body

    return edit


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
    assert cluster.retries == 2


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


def offsets_of(
    cluster: KafkaCluster, group: str, within_seconds: float | None = None
) -> GroupOffsets | Failed:
    found = cluster.committed([group], require_stable=True, within_seconds=within_seconds)
    return found.by_group()[group]


@pytest.mark.parametrize("api", [FIND_COORDINATOR, OFFSET_FETCH])
def test_offsets_are_committed_and_read_over_a_connection_that_breaks(
    line: tuple[Line, KafkaCluster],
    tp: TopicPartition,
    unique: Callable[[str], str],
    api: int,
) -> None:
    """Before a commit is sent, and to read, everything is tried again."""
    made, cluster = line
    made.api, made.edit = api, first(cut)
    group = unique("group")
    assert cluster.commit({group: {tp: CommittedOffset(7, "m")}}) == {group: {tp: None}}
    assert offsets_of(cluster, group) == {tp: CommittedOffset(7, "m")}
    assert made.answers > 1


@pytest.mark.parametrize(
    "edit", [cut, unreadable, commit_refused(NOT_COORDINATOR)], ids=["cut", "unreadable", "moved"]
)
def test_a_commit_is_sent_once_whatever_comes_of_it(
    line: tuple[Line, KafkaCluster],
    tp: TopicPartition,
    unique: Callable[[str], str],
    edit: Edit,
) -> None:
    """It may have been written although no answer says so, and sent once more it would move
    back a group that has gone on since. The failure says so, unless the answer is no answer."""
    made, cluster = line
    made.api, made.edit = OFFSET_COMMIT, edit
    group = unique("group")
    failed = cluster.commit({group: {tp: CommittedOffset(7, "m")}})[group][tp]
    assert isinstance(failed, Failed)
    assert failed.retry_seconds > 0 or edit is unreadable
    assert made.requests[OFFSET_COMMIT] == 1
    assert offsets_of(cluster, group) == {tp: CommittedOffset(7, "m")}


def settled(
    cluster: KafkaCluster, group: str, tp: TopicPartition, target_offset: int
) -> tuple[OutcomeKind, object]:
    """What becomes of a commit that was translated to `target_offset`."""
    translation = Translation(
        Translated(target_offset, Precision.EXACT, 0, target_offset, target_offset)
    )
    commit = SourceCommit(group, tp, CommittedOffset(target_offset), tp)
    position = TranslatedPosition(tp, target_offset, translation, LogRange(0, 10))
    work = commit_work([TranslatedCommit(commit, position)])
    row = commit_groups(flow(), cluster, work, commit=True).rows.row(0, named=True)
    return row["outcome"], row["reason"]


def test_a_group_that_moves_on_while_its_coordinator_is_slow_is_not_moved_back(
    line: tuple[Line, KafkaCluster],
    source: Contents,
    tp: TopicPartition,
    unique: Callable[[str], str],
) -> None:
    """An answer that comes so late says what the group had before a committer without
    membership, whom no coordinator keeps apart, went on: the group is read again."""
    made, cluster = line
    group, place = unique("group"), (tp.topic, tp.partition)
    source.commit_offsets(group, {place: 2})

    def slow(body: bytearray) -> bytearray:
        source.commit_offsets(group, {place: 8})
        time.sleep(FRESH_SECONDS + 1)
        return body

    made.api, made.edit = OFFSET_FETCH, first(slow)
    assert settled(cluster, group, tp, 5) == (OutcomeKind.SKIPPED, Reason.TARGET_AHEAD)
    assert source.committed_offsets(group)[place][0] == 8
    assert made.requests[OFFSET_COMMIT] == 0


def test_a_group_that_moves_on_while_a_commit_s_answer_is_lost_is_not_moved_back(
    line: tuple[Line, KafkaCluster],
    source: Contents,
    tp: TopicPartition,
    unique: Callable[[str], str],
) -> None:
    """What the coordinator has written is what the group's own commit came after."""
    made, cluster = line
    group, place = unique("group"), (tp.topic, tp.partition)

    def lost(body: bytearray) -> None:
        source.commit_offsets(group, {place: 8})

    made.api, made.edit = OFFSET_COMMIT, first(lost)
    assert settled(cluster, group, tp, 5) == (OutcomeKind.SKIPPED, Reason.TARGET_AHEAD)
    assert source.committed_offsets(group)[place][0] == 8
    assert made.requests[OFFSET_COMMIT] == 1


def test_a_commit_whose_answer_is_lost_is_found(
    line: tuple[Line, KafkaCluster], tp: TopicPartition, unique: Callable[[str], str]
) -> None:
    """In the same cycle: the group has what was sent, and the row says committed."""
    made, cluster = line
    made.api, made.edit = OFFSET_COMMIT, first(cut)
    assert settled(cluster, unique("group"), tp, 5) == (OutcomeKind.COMMITTED, None)
    assert made.requests[OFFSET_COMMIT] == 1


def test_a_coordinator_that_loads_is_waited_for_a_few_seconds(
    source_broker: EmbeddedBroker,
    source: Contents,
    tp: TopicPartition,
    unique: Callable[[str], str],
) -> None:
    """And no longer, however long a call may take: its group fails, and the other group of the
    same request has its offsets. A coordinator that is done by then answers for both."""
    ready, loading = sorted((unique("group"), unique("group")))
    source.commit_offsets(ready, {(tp.topic, tp.partition): 2})
    made = Line(source_broker.port, api=OFFSET_FETCH)
    with made.open() as address:
        settings = ClusterSettings("A", (address,), admin_timeout_ms=600_000)
        with KafkaCluster(settings) as cluster:
            made.edit = last_group_refused(COORDINATOR_LOADS)
            answers = cluster.committed([ready, loading], require_stable=False).by_group()
            failed = answers[loading]
            assert isinstance(failed, Failed)
            assert failed.kind is FailureKind.COORDINATOR
            assert "still loading" in failed.message
            assert answers[ready] == {tp: CommittedOffset(2)}
            made.edit = first(last_group_refused(COORDINATOR_LOADS))
            answers = cluster.committed([ready, loading], require_stable=False).by_group()
            assert answers == {ready: {tp: CommittedOffset(2)}, loading: {}}


def test_a_look_is_not_held_by_a_coordinator_that_is_silent(
    line: tuple[Line, KafkaCluster],
    source: Contents,
    tp: TopicPartition,
    unique: Callable[[str], str],
) -> None:
    """Its groups fail after the time that the look was given, and are not asked twice in it."""
    made, cluster = line
    group = unique("group")
    source.commit_offsets(group, {(tp.topic, tp.partition): 2})
    assert offsets_of(cluster, group) == {tp: CommittedOffset(2)}

    def slow(body: bytearray) -> bytearray:
        time.sleep(5)
        return body

    made.api, made.edit = OFFSET_FETCH, slow
    asked = made.requests[OFFSET_FETCH]
    failed = offsets_of(cluster, group, within_seconds=2)
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.TIMEOUT
    assert failed.retry_seconds > 0
    assert made.requests[OFFSET_FETCH] == asked + 1


def times_of(cluster: KafkaCluster, tp: TopicPartition) -> list[int | None]:
    """The offsets that the ten records' times lead to, and that of a time after them."""
    answer = cluster.read([ReadFrom(tp, 0, 1_000_000)], Isolation.READ_UNCOMMITTED)
    (found,) = answer.values()
    assert isinstance(found, Stretch)
    times = [stamp for stamp in found.timestamps if stamp is not None]
    assert len(times) == 10
    asked = [FirstAtTime(tp, time) for time in (*times, times[-1] + 1)]
    answers = cluster.first_at_times(asked, Isolation.READ_UNCOMMITTED)
    offsets: list[int | None] = []
    for request in asked:
        one = answers[request]
        assert not isinstance(one, Failed), one
        offsets.append(None if one is None else one.offset)
    return offsets


@pytest.mark.parametrize(
    ("edit", "asked"),
    [
        (lambda body: body, 11),
        (lookup_refused(NOT_LEADER), 13),
        (lookup_refused(OFFSET_NOT_AVAILABLE), 13),
        (unreadable, 11),
        (cut, 11),
        (lookup_slowed(30), 11),
    ],
    ids=["as it is", "not the leader", "not available", "unreadable", "cut", "slowed"],
)
def test_times_are_looked_up_whatever_goes_wrong_twice(
    line: tuple[Line, KafkaCluster], tp: TopicPartition, edit: Edit, asked: int
) -> None:
    """Each lookup has its own answer in the end, and what was answered is not asked again: `asked`
    at least, for an answer that breaks the connection takes others with it."""
    made, cluster = line
    made.api, made.edit = LIST_OFFSETS, first(edit, times=2)
    assert times_of(cluster, tp) == [*range(10), None]
    if edit in (cut, unreadable):
        assert made.requests[LIST_OFFSETS] > asked
    else:
        assert made.answers == asked


@pytest.mark.parametrize(
    ("api", "edit"),
    [
        (LIST_OFFSETS, unreadable),
        (LIST_OFFSETS, cut),
        (LIST_OFFSETS, lookup_slowed(30)),
        (FETCH, cut),
        (FETCH, throttled(30)),
    ],
    ids=["unreadable", "lookup cut", "lookup slowed", "read cut", "read slowed"],
)
def test_calls_made_together_have_their_answers_whatever_goes_wrong_with_one(
    line: tuple[Line, KafkaCluster], tp: TopicPartition, api: int, edit: Edit
) -> None:
    """They share a connection, which may end under both."""
    made, cluster = line
    made.api, made.edit = api, first(edit, times=2)
    times, records = cluster.together([lambda: times_of(cluster, tp), lambda: all_of(cluster, tp)])
    assert times == [*range(10), None]
    assert records == list(range(10))


def test_an_answer_to_a_lookup_that_stays_unreadable_fails_it_alone(
    line: tuple[Line, KafkaCluster], tp: TopicPartition
) -> None:
    """The others have theirs."""
    made, cluster = line
    made.api = LIST_OFFSETS
    asked = [FirstAtTime(tp, time) for time in (0, 1)]
    whole = cluster.first_at_times(asked, Isolation.READ_UNCOMMITTED)
    made.edit = unreadable
    answers = cluster.first_at_times(asked[:1], Isolation.READ_UNCOMMITTED)
    failed = answers[asked[0]]
    assert isinstance(failed, Failed)
    assert f"look up a time in {tp}, cluster A" in failed.message
    made.edit = lambda body: body
    assert cluster.first_at_times(asked, Isolation.READ_UNCOMMITTED) == whole


def test_a_broker_that_throttles_lookups_is_left_alone_and_nothing_fails(
    source_broker: EmbeddedBroker, tp: TopicPartition
) -> None:
    """For longer than a call or a request may take."""
    made = Line(source_broker.port, api=LIST_OFFSETS)
    with made.open() as address:
        settings = ClusterSettings(
            "A", (address,), {"request.timeout.ms": "2000"}, admin_timeout_ms=3_000
        )
        with KafkaCluster(settings) as cluster:
            assert isinstance(read(cluster, tp, 0), Stretch)
            made.edit = first(lookup_slowed(1_500), times=3)
            assert times_of(cluster, tp) == [*range(10), None]


# --- another cluster ------------------------------------------------------------------------


@pytest.mark.timeout(60)
def test_a_cluster_s_address_that_another_one_has_now_is_not_believed(
    source_broker: EmbeddedBroker,
    target_broker: EmbeddedBroker,
    target: Contents,
    tp: TopicPartition,
) -> None:
    """Addresses are given out again. The brokers and topics of the other cluster are not taken
    for ours, and the failure says so; those that are ours are found again."""
    target.create_topic(tp.topic)
    made = Line(source_broker.port, api=METADATA)
    with (
        made.open() as address,
        KafkaCluster(ClusterSettings("A", (address,), admin_timeout_ms=10_000)) as cluster,
    ):
        ours = cluster.describe()
        made.edit = first(cut)
        made.broker_port = target_broker.port
        for _ in range(2):
            with pytest.raises(ClusterUnreachable) as caught:
                cluster.topics([tp.topic])
            assert "cluster A" in str(caught.value)
            assert f"{address}: the broker belongs to another cluster (it is " in str(caught.value)
            assert "if the cluster was recreated, restart tsoffset" in str(caught.value)
        with pytest.raises(ClusterUnreachable, match="belongs to another cluster"):
            cluster.describe()
        made.broker_port = source_broker.port
        assert cluster.describe() == ours
        assert times_of(cluster, tp) == [*range(10), None]


# --- politeness -----------------------------------------------------------------------------


def all_of(cluster: KafkaCluster, tp: TopicPartition) -> list[int]:
    """The first offsets of what reads from each of ten offsets bring."""
    asked = [ReadFrom(tp, offset) for offset in range(10)]
    answers = cluster.read(asked, Isolation.READ_UNCOMMITTED)
    found = []
    for request in asked:
        answer = answers[request]
        assert isinstance(answer, Stretch), answer
        found.append(answer.records[0].offset)
    return found


def test_a_broker_that_throttles_is_left_alone_and_asked_once_more(
    line: tuple[Line, KafkaCluster], tp: TopicPartition
) -> None:
    """What it left out is no answer and no failure; nothing else is asked twice."""
    made, cluster = line
    made.edit = first(throttled(30), times=3)
    assert all_of(cluster, tp) == list(range(10))
    assert made.answers == 13
    assert 0.03 <= cluster.throttle_seconds <= 0.09


def test_the_time_of_a_throttle_is_no_time_without_an_answer(
    source_broker: EmbeddedBroker, tp: TopicPartition
) -> None:
    """A broker may hold back for longer than a call or a request may take, and nothing fails."""
    made = Line(source_broker.port)
    with made.open() as address:
        settings = ClusterSettings(
            "A", (address,), {"request.timeout.ms": "2000"}, admin_timeout_ms=3_000
        )
        with KafkaCluster(settings) as cluster:
            assert isinstance(read(cluster, tp, 0), Stretch)
            made.edit = first(throttled(1_500), times=3)
            assert all_of(cluster, tp) == list(range(10))


AGES = 2**31 - 1


def impatient(made: Line, address: str) -> KafkaCluster:
    """An adapter whose calls may take little time."""
    return KafkaCluster(ClusterSettings("A", (address,), admin_timeout_ms=1_500))


@pytest.mark.timeout(40)
@pytest.mark.parametrize(
    ("api", "edit"),
    [(FETCH, throttled(AGES)), (LIST_OFFSETS, lookup_slowed(AGES))],
    ids=["read", "lookup"],
)
def test_a_broker_that_wants_ten_times_what_a_call_may_take_gets_nothing(
    source_broker: EmbeddedBroker, tp: TopicPartition, api: int, edit: Edit
) -> None:
    """24 days can be asked for; the call ends when it would, and says what the broker said."""
    made = Line(source_broker.port)
    with made.open() as address, impatient(made, address) as cluster:
        whole = times_of(cluster, tp)
        made.api, made.edit = api, first(edit)
        if api == FETCH:
            failed: object = read(cluster, tp, 4)
        else:
            asked = [FirstAtTime(tp, time) for time in range(200)]
            failed = list(cluster.first_at_times(asked, Isolation.READ_UNCOMMITTED).values())[-1]
        assert isinstance(failed, Failed)
        assert failed.kind is FailureKind.TIMEOUT
        assert "the broker throttles this client" in failed.message
        assert cluster.throttle_seconds <= 1.5
        assert times_of(cluster, tp) == whole


@pytest.mark.timeout(40)
def test_a_throttle_that_outlasts_a_call_ends_with_it(
    source_broker: EmbeddedBroker, tp: TopicPartition, unique: Callable[[str], str]
) -> None:
    """The connection would be paused for 24 days, and every call over it in vain; another one is
    made."""
    made = Line(source_broker.port, api=OFFSET_FETCH)
    group = unique("group")
    with made.open() as address, impatient(made, address) as cluster:
        assert cluster.commit({group: {tp: CommittedOffset(2)}}) == {group: {tp: None}}
        made.edit = first(lookup_slowed(AGES))
        assert offsets_of(cluster, group) == {tp: CommittedOffset(2)}
        assert offsets_of(cluster, group) == {tp: CommittedOffset(2)}


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_is_under_way_than_may_be(
    source_broker: EmbeddedBroker, tp: TopicPartition, limit: int
) -> None:
    """`source.fetch.max.requests.in.flight`, on one connection."""
    made = Line(source_broker.port)
    with made.open() as address:
        settings = ClusterSettings("A", (address,), fetch_max_in_flight=limit)
        with KafkaCluster(settings) as cluster:
            assert all_of(cluster, tp) == list(range(10))
    assert 1 <= made.most_under_way <= limit


def test_a_limit_on_bytes_makes_a_call_longer_and_nothing_fail(
    source_broker: EmbeddedBroker, tp: TopicPartition
) -> None:
    """With about three answers a second the call takes longer than it may without a limit."""
    made = Line(source_broker.port)
    with made.open() as address:
        settings = ClusterSettings(
            "A", (address,), admin_timeout_ms=1_500, fetch_max_bytes_per_second=500
        )
        with KafkaCluster(settings) as cluster:
            assert all_of(cluster, tp) == list(range(10))
    assert made.answers == 10
    assert made.most_under_way <= 2


def test_what_is_counted_is_what_was_sent_and_came(
    line: tuple[Line, KafkaCluster], tp: TopicPartition, unique: Callable[[str], str]
) -> None:
    """Requests by kind and bytes of batches, those that are asked again included."""
    made, cluster = line
    made.edit = first(throttled(10), times=2)
    all_of(cluster, tp)
    made.edit = first(emptied)
    all_of(cluster, tp)
    cluster.log_ranges([tp], Isolation.READ_UNCOMMITTED)
    cluster.first_at_times([FirstAtTime(tp, 0)], Isolation.READ_UNCOMMITTED)
    cluster.commit({unique("group"): {tp: CommittedOffset(7)}})
    names = {1: "fetch", 2: "list_offsets", 3: "metadata", 8: "offset_commit"}
    names |= {10: "find_coordinator"}
    passed = {names[key]: count for key, count in made.requests.items() if key in names}
    assert {kind: cluster.requests[kind] for kind in passed} == passed
    assert set(cluster.requests) == set(passed)
    assert cluster.bytes_read == made.record_bytes
