"""What the adapter makes of a broker's answers that are empty, late, refused or broken."""

import socket
import struct
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from tests.hostile_broker import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    FETCH,
    FIND_COORDINATOR,
    LIST_GROUPS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    Brokers,
    Lie,
    ReceivedRequest,
    broker,
)
from tests.hostile_cases import (
    change,
    closed,
    coordinators,
    each,
    half,
    itself,
    of_fetch,
    of_group,
    of_lookup,
    set_to,
    shortened,
    silent,
    throttled,
    throttled_emptily,
)
from tests.memory_flows import flow
from tests.running_time import RunningTime
from tsoffset.cycle.source_commits import preflight
from tsoffset.errors import ClusterUnreachable
from tsoffset.kafka import cluster as cluster_module
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.pool import Pool
from tsoffset.kafka.topology import Topology
from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    ClusterDescription,
    CommittedOffset,
    Failed,
    FailureKind,
    FirstAtTime,
    GroupListings,
    GroupOffsets,
    Isolation,
    LogRange,
    ReadFrom,
    TopicPartition,
)
from tsoffset.records import FetchedRange
from tsoffset.testing.memory_cluster import MemoryCluster, Message

pytestmark = pytest.mark.usefixtures("running_time")

OFFSET_NOT_AVAILABLE, NOT_LEADER, FENCED_EPOCH, UNKNOWN_EPOCH = 78, 6, 74, 75
REQUEST_TIMED_OUT = 7
COORDINATOR_LOADS, NOT_COORDINATOR = 14, 16
TOPIC_DENIED, UNKNOWN_TOPIC, NO_LEADER_YET = 29, 3, 5
DAYS_MS = 2**31 - 1
TP = TopicPartition("orders", 0)
SEVEN = CommittedOffset(7, "m")

emptied = of_fetch(set_to(records=b""))
damaged = of_fetch(lambda found: set_to(records=found.records[:-1] + b"?")(found))


def refused(code: int) -> Lie:
    """A Fetch answer of a broker that refuses the partition."""
    return of_fetch(set_to(error_code=code, records=b""))


def lookup_refused(code: int) -> Lie:
    """A ListOffsets answer of a broker that refuses the partition."""
    return of_lookup(set_to(error_code=code, offset=-1, timestamp=-1))


def last_group_refused(code: int) -> Lie:
    """An OffsetFetch answer that refuses its last group."""
    return change(lambda answer: set_to(error_code=code)(answer.groups[-1]))


def first(lie: Lie, times: int = 1) -> Lie:
    """The lie for the first answers, honest ones after that."""
    left = [lie] * times
    return lambda asked: left.pop()(asked) if left else asked.frame()


def one_after_the_other(*lies: Lie) -> Lie:
    left = [*lies]
    return lambda asked: left.pop(0)(asked)


def at_the_deadline(clock: RunningTime, lie: Lie) -> Lie:
    """The lie, told when the time of each call has just passed."""

    def late(asked: ReceivedRequest) -> bytes | None:
        clock.skip(60)
        return lie(asked)

    return late


def slow(asked: ReceivedRequest) -> bytes:
    asked.wait(0.2)
    return asked.frame()


@pytest.fixture
def memory() -> MemoryCluster:
    """Ten batches of one record."""
    made = MemoryCluster("A")
    made.create_topic(TP.topic)
    records = [Message(1_000 + n, b"key", b"value-%d" % n) for n in range(10)]
    made.log(TP.topic).append(records, batch_size=1)
    return made


@pytest.fixture
def brokers(memory) -> Brokers:
    return Brokers(memory)


Connect = Callable[..., KafkaCluster]


@pytest.fixture
def connect(brokers, adapter) -> Iterator[Connect]:
    """A function that makes an adapter to the brokers, with further settings of the cluster."""
    with brokers.open() as address:
        yield partial(adapter, address)


@pytest.fixture
def cluster(connect) -> KafkaCluster:
    """An adapter that waits 200 ms for a log that goes on."""
    return connect(admin_timeout_ms=20_000, poll_timeout_ms=200)


def metadata_to(version: int) -> Lie:
    """The answer of a broker that knows Metadata up to this version."""
    return change(
        lambda answer: [
            setattr(key, "max_version", version)
            for key in answer.api_keys
            if key.api_key == METADATA
        ]
    )


@pytest.mark.parametrize(
    ("leader", "missing"), [(None, "partition 1"), (7, "partition 1"), (1, None)]
)
@pytest.mark.parametrize(("version", "requests"), [(12, 1), (10, 1), (9, 2), (8, 2)])
def test_a_partition_of_groups_that_no_broker_leads_is_named(
    memory, brokers, cluster, leader, missing, version, requests
):
    """Without a leader, or with one that is not among the brokers. The request for the brokers
    describes the topic; where that would create it, a second one does once there is a group."""
    memory.create_topic(GROUP_OFFSETS_TOPIC, 2, internal=True)
    memory.elect_leader(TopicPartition(GROUP_OFFSETS_TOPIC, 1), leader)
    for number in range(8):
        memory.group(f"g{number}")
    brokers.lies.append((None, API_VERSIONS, metadata_to(version)))
    found = cluster.groups()
    assert brokers.requests[METADATA] == requests
    assert found.failed_brokers == {}
    if missing is None:
        assert found.failures == ()
    else:
        assert found.leaderless is not None
        assert f"no broker leads {missing} of {GROUP_OFFSETS_TOPIC}" in found.leaderless.message
        assert found.leaderless.kind is FailureKind.NO_LEADER


@pytest.mark.parametrize(("version", "asked"), [(10, [[GROUP_OFFSETS_TOPIC]]), (9, [[]])])
def test_a_cluster_without_groups_is_not_asked_for_more(brokers, cluster, version, asked):
    """The topic of group offsets does not exist yet: nothing is concluded. An old broker, which
    would create a topic that is named, is not asked for it."""
    names: list[list[str]] = []

    def noted(one: ReceivedRequest) -> bytes:
        names.append([topic.name for topic in one.request.topics])
        return one.frame()

    brokers.lies += [(None, API_VERSIONS, metadata_to(version)), (None, METADATA, noted)]
    assert cluster.groups() == GroupListings({})
    assert names == asked


@pytest.mark.parametrize("code", [TOPIC_DENIED, UNKNOWN_TOPIC, NO_LEADER_YET])
def test_a_topic_of_group_offsets_that_is_not_described_proves_nothing(
    memory, brokers, cluster, code
):
    """This client may not see it, it does not exist yet, or is just being made."""
    memory.create_topic(GROUP_OFFSETS_TOPIC, internal=True)
    memory.group("a")

    def refuse(answer):
        for topic in answer.topics:
            topic.error_code, topic.partitions = code, []

    brokers.lies.append((None, METADATA, change(refuse)))
    found = cluster.groups()
    assert (set(found.groups), found.failures) == ({"a"}, ())


def read(cluster: KafkaCluster, offset: int) -> FetchedRange | Failed:
    return cluster.read([ReadFrom(TP, offset)], Isolation.READ_UNCOMMITTED)[ReadFrom(TP, offset)]


def all_of(cluster: KafkaCluster) -> list[int]:
    """The first offset that each of ten reads returns."""
    asked = [ReadFrom(TP, offset) for offset in range(10)]
    answers = cluster.read(asked, Isolation.READ_UNCOMMITTED)
    found = []
    for request in asked:
        answer = answers[request]
        assert isinstance(answer, FetchedRange), answer
        found.append(answer.records[0].offset)
    return found


def times_of(cluster: KafkaCluster) -> list[int | None]:
    """The offsets of the ten records' times, and that of a time after them."""
    asked = [FirstAtTime(TP, time) for time in range(1_000, 1_011)]
    answers = cluster.first_at_times(asked, Isolation.READ_UNCOMMITTED)
    offsets: list[int | None] = []
    for request in asked:
        one = answers[request]
        assert not isinstance(one, Failed), one
        offsets.append(None if one is None else one.offset)
    return offsets


ALL_OFFSETS, ALL_TIMES = list(range(10)), [*range(10), None]


def offsets_of(
    cluster: KafkaCluster, group: str, within_seconds: float | None = None
) -> GroupOffsets | Failed:
    found = cluster.committed([group], require_stable=True, within_seconds=within_seconds)
    return found.by_group()[group]


# --- reads ----------------------------------------------------------------------------------


def test_an_empty_answer_below_the_log_s_end_is_asked_again(brokers, cluster):
    """Tiered storage answers so where it is not in time. A log that stays empty is a timeout, and
    never taken for the log's end; at the end, nothing is the answer."""
    brokers.lies = [(None, FETCH, first(emptied))]
    answer = read(cluster, 4)
    assert answer.records[0].offset == 4
    assert brokers.requests[FETCH] == 2
    brokers.lies = [(None, FETCH, emptied)]
    answer = read(cluster, 4)
    assert answer.kind is FailureKind.TIMEOUT
    assert f"read {TP}@4, cluster A" in answer.message
    assert brokers.requests[FETCH] == 4
    assert read(cluster, 10) == FetchedRange(10, 10)
    assert brokers.requests[FETCH] == 5


def test_a_damaged_batch_is_not_asked_for_again(brokers, cluster):
    """Its checksum tells; nothing of it is taken for content."""
    brokers.lies = [(None, FETCH, damaged)]
    answer = read(cluster, 4)
    assert answer.kind is FailureKind.CORRUPT_BATCH
    assert brokers.requests[FETCH] == 1


@pytest.mark.parametrize("code", [OFFSET_NOT_AVAILABLE, NOT_LEADER, FENCED_EPOCH, UNKNOWN_EPOCH])
def test_a_leader_that_refuses_is_looked_up_and_asked_again(brokers, cluster, code):
    """Twice here, with newer metadata each time."""
    assert isinstance(read(cluster, 0), FetchedRange)
    looked_up = cluster.requests["metadata"]
    brokers.lies = [(None, FETCH, first(refused(code), times=2))]
    assert isinstance(read(cluster, 4), FetchedRange)
    assert brokers.requests[FETCH] == 4
    assert cluster.requests["metadata"] == looked_up + 2
    assert cluster.retries == 2


@pytest.mark.parametrize(
    ("first_answer", "told"),
    [(NOT_LEADER, FailureKind.NO_LEADER), (UNKNOWN_TOPIC, FailureKind.TIMEOUT)],
    ids=["known", "missing"],
)
def test_the_cause_that_was_known_before_a_silence_is_named(
    brokers, cluster, running_time, first_answer, told
):
    """The deadline may end a call in the midst of an attempt. But one answer that a topic is
    missing does not make it missing: the broker may not be responsible for it."""
    late = at_the_deadline(running_time, refused(REQUEST_TIMED_OUT))
    brokers.lies = [(None, FETCH, one_after_the_other(refused(first_answer), late))]
    failed = read(cluster, 0)
    assert (failed.kind, failed.missing) == (told, False)
    assert brokers.requests[FETCH] == 2


@pytest.mark.parametrize(
    ("first_answer", "told"),
    [(NOT_LEADER, FailureKind.NO_LEADER), (UNKNOWN_TOPIC, None)],
    ids=["known", "missing"],
)
def test_a_cluster_that_is_silent_when_the_deadline_comes_is_not_unreachable(
    brokers, cluster, running_time, first_answer, told
):
    """It has answered before; where that says nothing of the partition, it counts as silent."""
    assert isinstance(read(cluster, 0), FetchedRange)
    late = at_the_deadline(running_time, half)
    brokers.lies = [(None, FETCH, refused(first_answer)), (None, METADATA, late)]
    if told is None:
        with pytest.raises(ClusterUnreachable, match="no answer in time"):
            read(cluster, 4)
    else:
        assert read(cluster, 4).kind is told
    assert brokers.requests[FETCH] == 2


def test_why_a_cluster_is_unreachable_is_told_although_the_call_ends_in_silence(
    brokers, cluster, running_time
):
    """The last attempt may begin a moment before the deadline."""
    late = at_the_deadline(running_time, half)
    brokers.lies = [(None, METADATA, one_after_the_other(change(set_to(brokers=[])), late))]
    with pytest.raises(ClusterUnreachable, match="the metadata lists no broker"):
        cluster.topics()
    assert brokers.requests[METADATA] == 2


def test_a_broker_that_was_not_tried_in_time_is_not_taken_for_badly_advertised(
    cluster, running_time, monkeypatch
):
    """The call's time may end when a bootstrap address has answered: the message says so."""
    learn_brokers = Pool.learn_brokers

    def late(*words):
        running_time.skip(60)
        learn_brokers(*words)

    monkeypatch.setattr(Pool, "learn_brokers", late)
    with pytest.raises(ClusterUnreachable) as caught:
        offsets_of(cluster, "billing")
    assert "broker 0: no answer in time, the call's deadline has passed" in str(caught.value)


def test_a_broker_that_has_moved_is_read_where_it_is_now(memory, brokers, cluster):
    """Another broker may have the address by then, and its connection stays open: it would answer
    for ever that it does not lead the partition."""
    memory.elect_leader(TP, 1)
    brokers.lies = [(None, METADATA, first(itself)), (0, FETCH, refused(NOT_LEADER))]
    assert isinstance(read(cluster, 4), FetchedRange)
    assert brokers.requests[FETCH] == 2


@pytest.mark.slow
def test_an_answer_is_not_late_because_others_come_before_it(brokers, connect):
    """A broker answers the requests of a connection one after the other, and many are sent at once:
    `request.timeout.ms` is the time for each answer."""
    brokers.lies = [(None, FETCH, slow)]
    cluster = connect(client={"request.timeout.ms": "1000"}, admin_timeout_ms=20_000)
    assert all_of(cluster) == ALL_OFFSETS
    assert brokers.requests[FETCH] == 10


def test_an_address_that_is_slow_and_answers_is_not_dead(brokers, cluster, monkeypatch):
    """`describe` gives each address some seconds; the metadata may come from a slower one."""
    monkeypatch.setattr(cluster_module, "_PROBE_MS", 1)
    brokers.lies = [(None, API_VERSIONS, slow)]
    described = cluster.describe()
    assert described.dead_addresses == ()
    assert brokers.requests[METADATA] == 1


# --- committed offsets ----------------------------------------------------------------------


@pytest.fixture
def silent_address(brokers, connect) -> Iterator[tuple[str, int]]:
    """An address at which no connection is accepted or refused, on the port of broker 0."""
    with ExitStack() as sockets:
        full = sockets.enter_context(socket.socket())
        full.bind(("127.0.0.2", brokers.ports[0]))
        full.listen(0)
        for _ in range(3):
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        yield full.getsockname()


def test_a_name_s_silent_address_leaves_time_for_its_next_one(
    brokers, connect, adapter, silent_address, monkeypatch
):
    """As in Java's clients: IPv6 that leads nowhere, or a zone that is away, makes no cluster
    unreachable that answers at another address of the name."""
    look_up = socket.getaddrinfo

    def two(host, port, *rest, **named):
        addresses = (
            [silent_address, ("127.0.0.1", port)] if host == "two.invalid" else [(host, port)]
        )
        return [one for address in addresses for one in look_up(*address, *rest, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", two)
    client = {"socket.connection.setup.timeout.ms": "1000"}
    cluster = adapter(f"two.invalid:{brokers.ports[0]}", client=client)
    assert cluster.describe().dead_addresses == ()


@pytest.mark.parametrize(
    ("api", "lie"),
    [
        (FIND_COORDINATOR, closed),
        (FIND_COORDINATOR, change(coordinators())),
        (OFFSET_FETCH, closed),
    ],
    ids=["coordinator", "omitted", "offsets"],
)
def test_offsets_are_committed_and_read_after_an_answer_that_is_missing(brokers, cluster, api, lie):
    """Before a commit is sent, and to read, everything is tried again."""
    brokers.lies = [(None, api, first(lie))]
    assert cluster.commit({"billing": {TP: SEVEN}}) == {"billing": {TP: None}}
    assert offsets_of(cluster, "billing") == {TP: SEVEN}
    assert brokers.requests[api] > 1


@pytest.mark.parametrize(
    ("lie", "says_so"),
    [
        (closed, True),
        (of_lookup(set_to(error_code=NOT_COORDINATOR)), True),
        (shortened, False),
        (of_lookup(set_to(partition_index=5)), False),
    ],
    ids=["closed", "moved", "unreadable", "of another partition"],
)
def test_a_commit_is_sent_once_whatever_comes_of_it(brokers, cluster, lie, says_so):
    """It may have been written although no answer says so, and sent once more it would move
    back a group that has gone on since. The failure says so, unless the answer is no answer."""
    brokers.lies = [(None, OFFSET_COMMIT, lie)]
    failed = cluster.commit({"billing": {TP: SEVEN}})["billing"][TP]
    assert isinstance(failed, Failed)
    assert (failed.retry_seconds > 0) is says_so
    assert brokers.requests[OFFSET_COMMIT] == 1
    assert offsets_of(cluster, "billing") == {TP: SEVEN}


def test_a_group_whose_answer_cannot_be_read_fails_alone(brokers, cluster):
    """One answer has the offsets of many groups. Not every broker lets only text be committed."""
    brokers.lies = [
        (None, OFFSET_FETCH, lambda asked: asked.frame().replace(b"spoilt", b"\xff" * 6))
    ]
    cluster.commit({"billing": {TP: CommittedOffset(7, "spoilt")}, "calm": {TP: SEVEN}})
    found = cluster.committed(["billing", "calm"], require_stable=True).by_group()
    assert isinstance(found["billing"], Failed)
    assert found["calm"] == {TP: SEVEN}


def test_many_commits_go_over_a_few_connections(brokers, cluster):
    """A broker handles the requests of each one after the other. Every commit is sent once."""
    groups: dict[tuple[int, socket.socket], list[str]] = defaultdict(list)

    def note(asked):
        groups[asked.node, asked.client].append(asked.request.group_id)
        return asked.frame()

    brokers.lies = [(None, OFFSET_COMMIT, note)]
    commits = {f"group-{number:03}": {TP: SEVEN} for number in range(400)}
    assert cluster.commit(commits) == {group: {TP: None} for group in commits}
    assert sorted(name for some in groups.values() for name in some) == [*commits]
    assert set(Counter(node for node, _ in groups).values()) == {4}


@pytest.mark.slow
def test_a_coordinator_that_loads_is_waited_for_a_few_seconds(brokers, memory, connect):
    """And no longer, however long a call may take: its group fails, and the other group of the
    same request has its offsets. A coordinator that is done by then answers for both."""
    memory.group("a-ready").offsets[TP] = SEVEN
    cluster = connect(admin_timeout_ms=600_000)
    names = ["a-ready", "b-loading"]
    brokers.lies = [(None, OFFSET_FETCH, last_group_refused(COORDINATOR_LOADS))]
    answers = cluster.committed(names, require_stable=False).by_group()
    failed = answers["b-loading"]
    assert failed.kind is FailureKind.COORDINATOR
    assert "still loading" in failed.message
    assert answers["a-ready"] == {TP: SEVEN}
    brokers.lies = [(None, OFFSET_FETCH, first(last_group_refused(COORDINATOR_LOADS)))]
    answers = cluster.committed(names, require_stable=False).by_group()
    assert answers == {"a-ready": {TP: SEVEN}, "b-loading": {}}


@pytest.mark.slow
def test_a_look_is_not_held_by_a_coordinator_that_is_silent(brokers, memory, cluster):
    """Its groups fail after the time that the look was given, and are not asked twice in it."""
    memory.group("billing").offsets[TP] = SEVEN
    assert offsets_of(cluster, "billing") == {TP: SEVEN}
    brokers.lies = [(None, OFFSET_FETCH, silent)]
    requests = brokers.requests[OFFSET_FETCH]
    failed = offsets_of(cluster, "billing", within_seconds=2)
    assert failed.kind is FailureKind.TIMEOUT
    assert failed.retry_seconds > 0
    assert brokers.requests[OFFSET_FETCH] == requests + 1


def test_a_look_asks_once_also_where_an_answer_omits_a_group(brokers, memory, cluster):
    """The groups beside it would wait until the call's time is up."""
    memory.group("billing").offsets[TP] = SEVEN
    brokers.lies = [(None, OFFSET_FETCH, of_group(set_to(group_id="stranger")))]
    failed = offsets_of(cluster, "billing", within_seconds=10)
    assert failed.kind is FailureKind.TIMEOUT
    assert failed.retry_seconds > 0
    assert brokers.requests[OFFSET_FETCH] == 1


# --- lookups, and calls made together -------------------------------------------------------


@pytest.mark.parametrize(
    ("lie", "requests"),
    [
        (lookup_refused(NOT_LEADER), 13),
        (lookup_refused(OFFSET_NOT_AVAILABLE), 13),
        (throttled(30), 11),
    ],
    ids=["not the leader", "not available", "throttled"],
)
def test_times_are_looked_up_whatever_goes_wrong_twice(brokers, cluster, lie, requests):
    """Each lookup has its own answer in the end, and what was answered is not asked again."""
    brokers.lies = [(None, LIST_OFFSETS, first(lie, times=2))]
    assert times_of(cluster) == ALL_TIMES
    assert brokers.requests[LIST_OFFSETS] == requests


@pytest.mark.parametrize(
    ("api", "lie"),
    [
        (LIST_OFFSETS, shortened),
        (LIST_OFFSETS, closed),
        (LIST_OFFSETS, throttled(30)),
        (FETCH, closed),
        (FETCH, throttled_emptily(30)),
    ],
    ids=["unreadable", "lookup closed", "lookup throttled", "read closed", "read throttled"],
)
def test_calls_made_together_have_their_answers_whatever_goes_wrong_with_one(
    brokers, cluster, api, lie
):
    """They share a connection, which may end under both, with all that is under way on it."""
    brokers.lies = [(None, api, first(lie, times=2))]
    found: list[object] = cluster.together([lambda: times_of(cluster), lambda: all_of(cluster)])
    assert found == [ALL_TIMES, ALL_OFFSETS]


def test_groups_are_listed_while_addresses_are_connected_to(brokers, cluster):
    """A cycle begins with both: together they wait for a far cluster twice, not three times."""
    cluster.describe()
    asked_for_groups = threading.Event()

    def listing(asked: ReceivedRequest) -> bytes:
        asked_for_groups.set()
        return asked.frame()

    def opening(asked: ReceivedRequest) -> bytes:
        asked_for_groups.wait(60)
        return asked.frame()

    brokers.lies = [(None, DESCRIBE_CLUSTER, opening), (None, LIST_GROUPS, listing)]
    # An address that does not answer in time is a warning.
    assert preflight(flow(), cluster, MemoryCluster("B")).warnings == ()


def test_calls_that_need_the_brokers_at_the_same_time_share_a_request(
    brokers, cluster, monkeypatch
):
    """The answer is held back until both calls have asked for it."""
    waiting = threading.Semaphore(0)
    ask = Topology.brokers_metadata

    async def counted(topology: Topology, deadline: Deadline) -> object:
        waiting.release()
        return await ask(topology, deadline)

    def when_both_wait(asked: ReceivedRequest) -> bytes:
        for _ in range(2):
            assert waiting.acquire(timeout=60)
        return asked.frame()

    monkeypatch.setattr(Topology, "brokers_metadata", counted)
    brokers.lies = [(None, METADATA, when_both_wait)]

    calls: list[Callable[[], object]] = [cluster.describe, cluster.groups]
    described, listed = cluster.together(calls)
    assert isinstance(described, ClusterDescription)
    assert described.dead_addresses == ()
    assert isinstance(listed, GroupListings)
    assert brokers.requests[METADATA] == 1


def test_an_answer_to_a_lookup_that_stays_unreadable_fails_it_alone(brokers, cluster):
    """The next call has its answers."""
    brokers.lies = [(None, LIST_OFFSETS, shortened)]
    asked = FirstAtTime(TP, 0)
    failed = cluster.first_at_times([asked], Isolation.READ_UNCOMMITTED)[asked]
    assert f"look up a time in {TP}, cluster A" in failed.message
    brokers.lies.clear()
    assert times_of(cluster) == ALL_TIMES


@pytest.mark.slow
def test_a_cluster_s_address_that_another_one_has_now_is_not_believed(brokers, memory, connect):
    """Addresses are reused. The brokers and topics of the other cluster are not taken for the
    client's own, and the failure says so; the client finds its own cluster again."""
    cluster = connect()
    ours = cluster.describe()
    brokers.memory = MemoryCluster("another")
    brokers.memory.create_topic(TP.topic)
    brokers.lies = [(None, METADATA, first(closed))]
    for _ in range(2):
        with pytest.raises(ClusterUnreachable) as caught:
            cluster.topics([TP.topic])
        assert "cluster A" in str(caught.value)
        assert "belongs to another cluster (it is another, and was A" in str(caught.value)
        assert "if the cluster was recreated, restart tsoffset" in str(caught.value)
    with pytest.raises(ClusterUnreachable, match="belongs to another cluster"):
        cluster.describe()
    brokers.memory = memory
    assert cluster.describe() == ours
    assert times_of(cluster) == ALL_TIMES


@pytest.mark.slow
def test_a_cluster_whose_connections_all_hang_is_named_by_its_addresses(memory, brokers, connect):
    """The call may end before it comes to the addresses of the configuration."""
    memory.create_topic("other", 1)
    memory.elect_leader(TopicPartition("other", 0), 1)
    cluster = connect(admin_timeout_ms=4_000)
    both = [TP, TopicPartition("other", 0)]
    cluster.log_ranges(both, Isolation.READ_UNCOMMITTED)
    brokers.lies = [(None, METADATA, silent)]
    with pytest.raises(
        ClusterUnreachable, match=f"127.0.0.1:{brokers.ports[0]}: no answer in time"
    ):
        cluster.topics()


def test_how_long_an_answer_was_waited_for_is_told(brokers, connect):
    """Not how long `request.timeout.ms` allows for, where the call ended before."""
    brokers.lies = [(None, METADATA, silent)]
    with pytest.raises(ClusterUnreachable, match=r"no answer in time \(no answer in 0\.\d s\)"):
        connect(admin_timeout_ms=400).topics()


@pytest.mark.slow
def test_a_cluster_that_advertises_the_addresses_of_another_is_not_taken_for_it(
    memory, brokers, connect
):
    """As where two clusters name their brokers alike, and this machine knows the names of one. Its
    logs would be read as those of the other, and a group be committed behind its records."""
    memory.elect_leader(TP, 1)
    another = MemoryCluster("another")
    another.create_topic(TP.topic)
    another.log(TP.topic).append([Message(1, b"key", b"value")])
    others = Brokers(another)
    with others.open():
        nodes = [broker(0, brokers.ports[0]), broker(1, others.ports[1])]
        brokers.lies = [(None, METADATA, change(set_to(brokers=nodes)))]
        failed = read(connect(admin_timeout_ms=3_000), 0)
    assert failed.kind is FailureKind.UNREACHABLE
    assert "the broker belongs to another cluster (it is another, and was A)" in failed.message
    assert others.requests[FETCH] == 0


def test_an_address_of_another_cluster_is_no_address_of_this_one(brokers, connect, adapter):
    """As after a mistake in `bootstrap.servers`: `check` and each cycle name it."""
    with Brokers(MemoryCluster("another")).open() as other:
        addresses = {"A": f"127.0.0.1:{brokers.ports[0]}", "another": other}
        found = adapter(*addresses.values()).describe()
        del addresses[found.cluster_id]
        assert found.dead_addresses == tuple(addresses.values())


def led_by(leader: int, epoch: int) -> Lie:
    """A Metadata answer with this leader of each partition; -1: none."""
    of_partition = each(lambda answer: (it for one in answer.topics for it in one.partitions))
    return of_partition(set_to(leader_id=leader, leader_epoch=epoch))


def test_metadata_that_is_older_than_what_is_known_is_not_believed(brokers, cluster):
    """A broker that is cut off from the others takes itself for the leader still, and does not know
    what was written since: a group that has read its log would seem to have read all."""
    brokers.lies = [(None, METADATA, led_by(0, 5))]
    cluster.topics([TP.topic])
    brokers.lies = [
        (None, METADATA, led_by(1, 4)),
        (0, LIST_OFFSETS, first(lookup_refused(NOT_LEADER))),
        (1, LIST_OFFSETS, of_lookup(set_to(offset=3))),
    ]
    assert cluster.topics([TP.topic])[TP.topic].partitions[0].leader == 0
    assert cluster.log_ranges([TP], Isolation.READ_UNCOMMITTED) == {TP: LogRange(0, 10)}
    # Nor once the topic was refused, or the partition has had no leader, meanwhile.
    denied = change(lambda answer: set_to(error_code=TOPIC_DENIED, partitions=[])(answer.topics[0]))
    for meanwhile, leader in ((denied, 0), (led_by(-1, 5), None)):
        brokers.lies[0] = (None, METADATA, meanwhile)
        cluster.topics([TP.topic])
        brokers.lies[0] = (None, METADATA, led_by(1, 4))
        assert cluster.topics([TP.topic])[TP.topic].partitions[0].leader == leader


# --- throttling and limits ------------------------------------------------------------------


def test_a_broker_that_throttles_is_left_alone_and_asked_once_more(brokers, cluster):
    """What it left out is no answer and no failure; nothing else is asked twice."""
    brokers.lies = [(None, FETCH, first(throttled_emptily(30), times=3))]
    assert all_of(cluster) == ALL_OFFSETS
    assert brokers.requests[FETCH] == 13
    assert 0.03 <= cluster.throttle_seconds <= 0.09


def many_lookups(cluster: KafkaCluster) -> Failed | None:
    """What the last of more lookups than are sent at once fails with; None if it does not."""
    asked = [FirstAtTime(TP, time) for time in range(200)]
    answer = cluster.first_at_times(asked, Isolation.READ_UNCOMMITTED)[asked[-1]]
    return answer if isinstance(answer, Failed) else None


def one_read(cluster: KafkaCluster) -> Failed | None:
    answer = read(cluster, 4)
    return answer if isinstance(answer, Failed) else None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("api", "lie", "call"),
    [(FETCH, throttled_emptily, one_read), (LIST_OFFSETS, throttled, many_lookups)],
    ids=["read", "lookup"],
)
def test_the_time_of_a_throttle_is_no_time_without_an_answer(brokers, connect, api, lie, call):
    """A broker may hold back for longer than a call or a request may take, and nothing fails.
    Where it wants ten times what a call may take, the call ends when it would, and says so."""
    cluster = connect(client={"request.timeout.ms": "600"}, admin_timeout_ms=1_000)
    assert isinstance(read(cluster, 0), FetchedRange)
    brokers.lies = [(None, api, first(lie(2_000)))]
    assert call(cluster) is None
    assert cluster.throttle_seconds >= 2

    cluster = connect(admin_timeout_ms=1_000)
    assert isinstance(read(cluster, 0), FetchedRange)
    brokers.lies = [(None, api, first(lie(DAYS_MS)))]
    failed = call(cluster)
    assert failed.kind is FailureKind.TIMEOUT
    assert "the broker throttles this client" in failed.message
    assert cluster.throttle_seconds <= 1
    assert times_of(cluster) == ALL_TIMES


def under_way(asked: ReceivedRequest) -> int:
    """How many requests of this kind have been sent on a connection and not been answered."""
    asked.wait(0.03)
    try:
        behind = asked.client.recv(1 << 16, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        behind = b""
    found = 1
    while behind:
        size, api = struct.unpack_from(">ih", behind)
        behind = behind[4 + size :]
        found += api == asked.api
    return found


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        ({"fetch_max_in_flight": 1}, 1),
        ({"fetch_max_in_flight": 3}, 3),
        # About three answers a second, so that the call takes longer than it may otherwise.
        pytest.param(
            {"fetch_max_bytes_per_second": 500, "admin_timeout_ms": 1_500},
            2,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_no_more_is_under_way_than_may_be(brokers, connect, settings, most):
    """`source.fetch.max.requests.in.flight` on one connection, and a limit on bytes, under which
    nothing fails."""
    seen = []

    def count(asked):
        seen.append(under_way(asked))
        return asked.frame()

    brokers.lies = [(None, FETCH, count)]
    assert all_of(connect(**settings)) == ALL_OFFSETS
    assert len(seen) == 10
    assert max(seen) <= most


def test_what_is_counted_is_what_was_sent_and_came(brokers, cluster):
    """Requests by kind, those that are asked again included."""
    for lie in (first(throttled_emptily(10), times=2), first(emptied)):
        brokers.lies = [(None, FETCH, lie)]
        assert all_of(cluster) == ALL_OFFSETS
    cluster.log_ranges([TP], Isolation.READ_UNCOMMITTED)
    cluster.first_at_times([FirstAtTime(TP, 0)], Isolation.READ_UNCOMMITTED)
    cluster.commit({"billing": {TP: SEVEN}})
    names = {
        FETCH: "fetch",
        LIST_OFFSETS: "list_offsets",
        METADATA: "metadata",
        OFFSET_COMMIT: "offset_commit",
        FIND_COORDINATOR: "find_coordinator",
    }
    passed = {names[api]: count for api, count in brokers.requests.items() if api in names}
    assert {kind: cluster.requests[kind] for kind in passed} == passed
    assert set(cluster.requests) == set(passed)
