"""The adapter beyond the contract: addresses, pipelining, versions, damage, its own ending."""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest

from tests.configured import nowhere
from tests.hostile_broker import CONNECT, Brokers, ReceivedRequest
from tests.hostile_cases import says, silent
from tests.invoking import run_program
from tests.producing import Contents, Written, numbered
from tests.waiting import wait_until
from tsoffset.errors import ClusterUnreachable, ConfigurationError
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka import reads
from tsoffset.kafka.client_settings import WINDOW
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    FirstAtTime,
    Isolation,
    LogRange,
    ReadFrom,
    TimedOffset,
    TopicPartition,
)
from tsoffset.records import FetchedRange
from tsoffset.testing.memory_cluster import MemoryCluster

pytestmark = pytest.mark.integration

UNCOMMITTED = Isolation.READ_UNCOMMITTED
Connect = Callable[..., KafkaCluster]


@pytest.fixture
def connect(source_broker, adapter) -> Connect:
    """A function that makes an adapter to the source, or to these addresses."""

    def start(*addresses, **settings):
        return adapter(*(addresses or (source_broker.bootstrap,)), **settings)

    return start


@pytest.fixture
def nobody() -> str:
    return nowhere()


@pytest.fixture
def mute() -> Iterator[str]:
    """An address that takes connections and never says a word."""
    with Brokers(MemoryCluster("A"), [(None, CONNECT, silent)]).open() as address:
        yield address


@pytest.fixture
def interrupting() -> Iterator[str]:
    """The same, but the first connection sends this process SIGUSR1."""
    signals = [signal.SIGUSR1]

    def interrupt(asked: ReceivedRequest) -> None:
        while signals:
            os.kill(os.getpid(), signals.pop())
        silent(asked)

    with Brokers(MemoryCluster("A"), [(None, CONNECT, interrupt)]).open() as address:
        yield address


@pytest.fixture
def stranger() -> Iterator[str]:
    """An address at which something else than Kafka answers."""
    answers = partial(says, b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with Brokers(MemoryCluster("A"), [(None, CONNECT, answers)]).open() as address:
        yield address


def filled(contents: Contents, unique: Callable[[str], str], count: int) -> TopicPartition:
    """A partition with `count` batches of two records."""
    topic = contents.create_topic(unique("topic"))
    contents.produce(topic, numbered(2 * count), batch=2)
    return TopicPartition(topic, 0)


# --- addresses ----------------------------------------------------------------------------


@pytest.mark.timeout(300, func_only=True)
def test_a_cluster_without_a_reachable_address_names_them_all(connect, nobody, stranger):
    """It is said for each address why, well before the deadline where they refuse."""
    with pytest.raises(ClusterUnreachable) as caught:
        connect(nobody, stranger, admin_timeout_ms=600_000).groups()
    text = str(caught.value)
    assert "cluster A" in text
    assert f"{nobody}: no connection to the broker (111 ECONNREFUSED)" in text
    assert f"{stranger}: no connection to the broker (it does not speak Kafka's protocol" in text
    assert "A.bootstrap.servers" in text


@pytest.mark.timeout(300, func_only=True)
@pytest.mark.usefixtures("running_time")
def test_an_address_that_never_answers_ends_with_the_deadline(connect, mute):
    """`admin.timeout.ms` bounds the whole call, whatever single waits would be allowed."""
    with pytest.raises(ClusterUnreachable, match="no answer in time"):
        connect(mute, admin_timeout_ms=1_000).topics()


@pytest.mark.usefixtures("running_time")
def test_dead_addresses_among_others_are_named_and_do_no_harm(connect, source_broker, nobody, mute):
    """One living address is enough; the others are for a warning."""
    cluster = connect(nobody, source_broker.bootstrap, mute)
    description = cluster.describe()
    assert description.dead_addresses == (nobody, mute)
    (broker,) = description.brokers
    assert f"{broker.host}:{broker.port}" == source_broker.bootstrap
    assert broker.version == "4.3"


@pytest.mark.usefixtures("running_time")
@pytest.mark.parametrize("name", ["kafka..svc", "a" * 64 + ".svc", "nobody.invalid"])
def test_a_name_that_has_no_address_is_a_dead_one(connect, source_broker, name):
    """Whether it has none or can have none; the address beside it is used."""
    with pytest.raises(ClusterUnreachable, match=f"{name}:9092: .*the name {name} cannot"):
        connect(f"{name}:9092").groups()
    cluster = connect(f"{name}:9092", source_broker.bootstrap)
    assert cluster.describe().dead_addresses == (f"{name}:9092",)


@pytest.fixture
def slow_name(monkeypatch) -> Iterator[tuple[str, list[str]]]:
    """A name for which the system looks until the test ends, and how often it was asked for it."""
    asked: list[str] = []
    ends = threading.Event()
    look_up = socket.getaddrinfo

    def slow(host, *rest, **named):
        if host == "slow.invalid":
            asked.append(host)
            ends.wait()
        return look_up(host, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    yield "slow.invalid", asked
    ends.set()


@pytest.mark.usefixtures("running_time")
def test_a_name_that_is_looked_for_holds_up_nothing(connect, source_broker, slow_name):
    """Neither the address beside it, nor a deadline, nor the end; it is looked for once at a
    time."""
    name, asked = slow_name
    with pytest.raises(ClusterUnreachable, match=f"the DNS lookup of {name} has not finished"):
        connect(f"{name}:9092", admin_timeout_ms=1_000).groups()
    cluster = connect(f"{name}:9092", source_broker.bootstrap)
    for _ in range(3):
        assert cluster.describe().dead_addresses == (f"{name}:9092",)
    cluster.close()
    assert len(asked) == 2
    wait_until(lambda: len(_threads()) == 1, "only the first one's thread runs")


def test_a_bootstrap_list_that_cannot_be_read_is_a_configuration_error():
    """Before anything is opened."""
    with pytest.raises(ConfigurationError, match=r"A\.bootstrap\.servers = localhost:kafka"):
        KafkaCluster(ClusterSettings("A", ("localhost:kafka",)))


def test_connections_end_when_they_were_not_used_for_so_long(connect):
    """With -1 they stay."""
    ending, lasting = (connect(client={"connections.max.idle.ms": ms}) for ms in ("200", "-1"))
    for cluster in (lasting, ending):
        assert cluster.describe().brokers
    wait_until(lambda: not ending._connections.pool.connected_nodes(), "they have ended")
    assert lasting._connections.pool.connected_nodes()


# --- pipelining ---------------------------------------------------------------------------


def test_many_groups_take_few_requests_to_read_and_one_each_to_commit(connect, source, unique):
    """Coordinators and offsets are asked for in batches; OffsetCommit takes one group."""
    tp = filled(source, unique, 1)
    cluster = connect()
    names = [unique("group") for _ in range(WINDOW + 50)]
    done = cluster.commit(
        {group: {tp: CommittedOffset(number)} for number, group in enumerate(names)}
    )
    assert done == {group: {tp: None} for group in names}
    assert cluster.committed(names, require_stable=True).by_group() == {
        group: {tp: CommittedOffset(number)} for number, group in enumerate(names)
    }
    sent = cluster.requests
    assert sent["offset_commit"] == len(names)
    assert sent["find_coordinator"] == -(-len(names) // 500)
    assert sent["offset_fetch"] == -(-len(names) // 50)


def test_a_commit_of_many_partitions_is_parted(connect, source, unique):
    """A commit becomes one batch on the broker, which is bounded in size."""
    topic = source.create_topic(unique("topic"), 3)
    wanted = {TopicPartition(topic, number): CommittedOffset(0) for number in range(3)}
    missing = {TopicPartition(unique("none"), n): CommittedOffset(0) for n in range(1_500)}
    cluster = connect()
    group = unique("group")
    done = cluster.commit({group: {**wanted, **missing}})[group]
    assert cluster.requests["offset_commit"] == 2
    assert {tp for tp, answer in done.items() if answer is None} == set(wanted)
    assert all(isinstance(done[tp], Failed) and done[tp].missing for tp in missing)
    assert cluster.committed([group], require_stable=True).by_group()[group] == wanted


def test_many_times_of_one_partition_take_a_request_each(connect, source, unique):
    """Brokers refuse a partition that occurs twice, so other partitions ride along."""
    topic = source.create_topic(unique("topic"), 2)
    for number in (0, 1):
        source.produce(topic, numbered(200, start_ms=1_000), partition=number, batch=10)
    asked = [
        FirstAtTime(TopicPartition(topic, number), 1_000 + n)
        for number in (0, 1)
        for n in range(200)
    ]
    cluster = connect()
    answers = cluster.first_at_times(asked, UNCOMMITTED)
    assert cluster.requests["list_offsets"] == 200
    assert answers == {
        request: TimedOffset(request.timestamp_ms - 1_000, request.timestamp_ms)
        for request in asked
    }


def test_log_ranges_of_many_partitions_take_two_requests(connect, source, unique):
    """One for the starts and one for the ends."""
    topic = source.create_topic(unique("topic"), 40)
    source.produce(topic, numbered(3), partition=17)
    cluster = connect()
    ranges = cluster.log_ranges([TopicPartition(topic, n) for n in range(40)], UNCOMMITTED)
    assert ranges == {TopicPartition(topic, n): LogRange(0, 3 if n == 17 else 0) for n in range(40)}
    assert cluster.requests["list_offsets"] == 2


# --- what brokers may do ------------------------------------------------------------------


def test_one_answer_that_cannot_be_taken_leaves_its_neighbours_alone(
    connect, source, unique, monkeypatch
):
    """A response beyond the limit ends the connection with all that is under way on it; only
    the partition that it was for fails."""
    monkeypatch.setattr(reads, "FETCH", replace(reads.FETCH, answer_bytes=30_000))
    topic = source.create_topic(unique("topic"), 40)
    for number in range(40):
        size = 50_000 if number == 5 else 10
        source.produce(topic, [Written(1_000, b"v" * size)], partition=number)
    asked = [ReadFrom(TopicPartition(topic, number), 0) for number in range(40)]
    answers = connect().read(asked, UNCOMMITTED)
    assert [n for n in range(40) if not isinstance(answers[asked[n]], FetchedRange)] == [5]
    failed = answers[asked[5]]
    assert failed.kind is FailureKind.INTERNAL


def test_a_topic_made_anew_is_noticed(connect, source, unique):
    """What is remembered of leaders never outlives the topic: gone is missing, and the new
    one is read under its old name."""
    tp = filled(source, unique, 3)
    cluster = connect()
    assert cluster.log_ranges([tp], UNCOMMITTED) == {tp: LogRange(0, 6)}
    source.delete_topic(tp.topic)
    gone = cluster.log_ranges([tp], UNCOMMITTED)[tp]
    assert gone.missing
    source.create_topic(tp.topic)
    source.produce(tp.topic, numbered(1))
    assert cluster.log_ranges([tp], UNCOMMITTED) == {tp: LogRange(0, 1)}
    assert isinstance(cluster.read([ReadFrom(tp, 0)], UNCOMMITTED)[ReadFrom(tp, 0)], FetchedRange)


def test_partitions_that_were_added_are_noticed(connect, source, unique):
    """A partition beyond those remembered is looked up before it is called missing."""
    topic = source.create_topic(unique("topic"))
    cluster = connect()
    cluster.log_ranges([TopicPartition(topic, 0)], UNCOMMITTED)
    source.admin.create_partitions({topic: 2})
    added = TopicPartition(topic, 1)
    wait_until(
        lambda: cluster.log_ranges([added], UNCOMMITTED)[added] == LogRange(0, 0),
        f"{added} is there",
    )


# --- its own ending -----------------------------------------------------------------------


class _Interrupted(BaseException):
    """Raised by a signal's handler."""


def test_a_signal_ends_a_call_at_once_and_the_next_one_works(connect, source_broker, interrupting):
    """The waiting thread only waits, so what a handler raises is not swallowed in a loop."""

    def interrupt(*_):
        raise _Interrupted

    cluster = connect(interrupting)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(_Interrupted):
            cluster.groups()
    finally:
        signal.signal(signal.SIGUSR1, before)
    wait_until(lambda: not _threads(), "the thread ends")
    other = connect(source_broker.bootstrap)
    assert other.describe().brokers


def test_closing_ends_the_thread_and_a_later_call_begins_anew(connect, source, unique):
    """Nothing is opened by making one, and nothing stays after closing it, twice or not."""
    tp = filled(source, unique, 1)
    wait_until(lambda: not _threads(), "other tests' threads have ended")
    cluster = connect()
    assert not _threads()
    assert cluster.log_ranges([tp], UNCOMMITTED) == {tp: LogRange(0, 2)}
    assert len(_threads()) == 1
    cluster.close()
    cluster.close()
    wait_until(lambda: not _threads(), "the thread ends")
    assert cluster.log_ranges([tp], UNCOMMITTED) == {tp: LogRange(0, 2)}


def test_one_made_before_a_fork_is_used_after_it(source_broker, nobody):
    """Spark forks its workers; the child opens connections of its own."""
    script = (
        "import os, sys\n"
        "from tsoffset.kafka.cluster import KafkaCluster\n"
        "from tsoffset.flow.settings import ClusterSettings\n"
        f"cluster = KafkaCluster(ClusterSettings('A', ({nobody!r}, {source_broker.bootstrap!r})))\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    ok = bool(cluster.describe().brokers)\n"
        "    cluster.close()\n"
        "    os._exit(0 if ok else 1)\n"
        "ok = bool(cluster.describe().brokers)\n"
        "cluster.close()\n"
        "sys.exit(os.waitpid(child, 0)[1] or not ok)\n"
    )
    done = run_program(sys.executable, "-c", script, timeout=180)
    # The library warns of dead addresses; without logging set up that must not be seen.
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_the_library_logs_reaches_the_application_only():
    """There is a handler at its root, and it is for the application to add others."""
    assert logging.getLogger("kafka").handlers
    assert logging.getLogger("kafka").propagate


def _threads() -> list[str]:
    """The threads that drive tsoffset's connections."""
    return [each.name for each in threading.enumerate() if each.name == "kafka-io-tsoffset"]
