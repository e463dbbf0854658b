"""What only the cluster in memory can do: be cut, mirrored, pickled, have brokers that fail.

What it answers like any cluster is held by tests/testing/test_cluster_contract.py; that failures of
a topic, a group or a verb strike just these by all tests that order them.
"""

import pickle
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    CommittedOffset,
    Failed,
    FailureKind,
    GroupType,
    Isolation,
    LogRange,
    ReadFrom,
    Resource,
    TimedOffset,
    TopicPartition,
)
from tsoffset.records import FetchedRange
from tsoffset.testing.memory_cluster import (
    Clock,
    MemoryCluster,
    Message,
    PartitionLog,
    mirror_partition,
)

ORDERS = TopicPartition("orders", 0)
BROKEN = Failed(FailureKind.TIMEOUT, "made to fail")
COMMITTED, UNCOMMITTED = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED


def numbered(numbers: Iterable[int]) -> list[Message]:
    return [Message(1_000 + n, b"k%d" % n, b"v%d" % n) for n in numbers]


def filled() -> MemoryCluster:
    """Ten records in batches of five."""
    cluster = MemoryCluster("A")
    cluster.create_topic("orders")
    cluster.log("orders").append(numbered(range(10)), batch_size=5)
    return cluster


def read(cluster: MemoryCluster, offset: int, max_bytes: int = 1) -> FetchedRange | Failed:
    request = ReadFrom(ORDERS, offset, max_bytes)
    return cluster.read([request], UNCOMMITTED)[request]


def offsets(fetched: FetchedRange | Failed) -> list[int]:
    assert isinstance(fetched, FetchedRange), fetched
    return [record.offset for record in fetched.records]


# --- failures that are ordered ------------------------------------------------------------


def test_a_failing_broker_takes_its_partitions_and_groups_with_it():
    """Partitions led by a broker and groups that it coordinates fail; the others answer."""
    cluster = MemoryCluster("A", brokers=2)
    cluster.create_topic("orders", 2)
    for number in range(20):
        cluster.group(f"g{number}")
    listed = cluster.groups().groups
    cluster.fail(BROKEN, broker=1)
    other = TopicPartition("orders", 1)
    assert cluster.log_ranges([ORDERS, other], UNCOMMITTED) == {
        ORDERS: LogRange(0, 0),
        other: BROKEN,
    }
    answers = cluster.committed(list(listed), require_stable=True).by_group()
    assert {name for name, answer in answers.items() if answer == BROKEN} == {
        name for name, listing in listed.items() if listing.coordinator == 1
    }
    left = cluster.groups()
    assert left.failed_brokers == {1: BROKEN}
    assert 0 < len(left.groups) < 20
    assert {listing.coordinator for listing in left.groups.values()} == {0}


def test_groups_without_a_leader_are_not_listed_and_do_not_answer():
    """The leader of a group's partition of `__consumer_offsets` coordinates it. Without one, the
    listing names the partition, and reading and committing the group's offsets fails."""
    cluster = MemoryCluster("A", brokers=2)
    cluster.create_topic("orders")
    cluster.create_topic(GROUP_OFFSETS_TOPIC, 4, internal=True)
    for number in range(20):
        cluster.group(f"g{number}")
    listed = cluster.groups().groups
    assert {listing.coordinator for listing in listed.values()} == {0, 1}
    for number in (1, 3):
        cluster.elect_leader(TopicPartition(GROUP_OFFSETS_TOPIC, number), None)
    left = cluster.groups()
    unlisted = set(listed) - set(left.groups)
    assert unlisted == {name for name, listing in listed.items() if listing.coordinator == 1}
    assert left.failed_brokers == {}
    assert left.leaderless is not None
    assert left.failures == (left.leaderless,)
    assert left.leaderless.kind is FailureKind.NO_LEADER
    assert "no broker leads partitions 1, 3 of __consumer_offsets" in left.leaderless.message
    answers = cluster.committed(list(listed), require_stable=True).by_group()
    committed = cluster.commit({name: {ORDERS: CommittedOffset(0)} for name in listed})
    for name in listed:
        for answer in (answers[name], committed[name][ORDERS]):
            refused = isinstance(answer, Failed) and answer.kind is FailureKind.COORDINATOR
            assert refused == (name in unlisted)


def test_who_may_not_see_the_topic_of_group_offsets_is_not_told_of_its_leaders():
    """As on brokers: the topic's description is refused."""
    cluster = MemoryCluster("A")
    cluster.create_topic(GROUP_OFFSETS_TOPIC, internal=True)
    cluster.elect_leader(TopicPartition(GROUP_OFFSETS_TOPIC, 0), None)
    cluster.allowed.restrict(Resource.TOPIC, GROUP_OFFSETS_TOPIC)
    assert cluster.groups().failures == ()


# --- groups -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "state", "accepted", "active"),
    [
        (GroupType.CLASSIC, "Empty", True, False),
        (GroupType.CLASSIC, "Dead", False, False),
        (GroupType.CLASSIC, "Stable", False, True),
        (GroupType.CLASSIC, "PreparingRebalance", False, True),
        (GroupType.CLASSIC, "CompletingRebalance", False, True),
        (GroupType.CONSUMER, "Empty", True, False),
        (GroupType.CONSUMER, "Assigning", False, True),
        (GroupType.CONSUMER, "Reconciling", False, True),
        (GroupType.CONSUMER, "Stable", False, True),
        (GroupType.STREAMS, "Empty", True, False),
        (GroupType.STREAMS, "NotReady", False, True),
        (GroupType.SHARE, "Empty", False, False),
        (GroupType.SHARE, "Stable", False, False),
    ],
)
def test_who_may_commit_depends_on_the_groups_state(kind, state, accepted, active):
    """The group coordinator's table for commits from outside (kafka-facts.md section 1)."""
    cluster = filled()
    cluster.group("g", kind).state = state
    answer = cluster.commit({"g": {ORDERS: CommittedOffset(5)}})["g"][ORDERS]
    assert (answer is None) == accepted
    assert bool(cluster.commits) == accepted
    if answer is not None:
        assert answer.group_active == active


# --- logs ---------------------------------------------------------------------------------


def test_lookup_gives_up_where_only_deleted_records_reach_the_time():
    """The segment is chosen by all that was ever in it, so a record below the log's start
    can hide one of the next segment."""
    log = PartitionLog()
    log.append([Message(9_000, b"a"), Message(1_000, b"b")])
    log.roll()
    log.append([Message(9_500, b"c")])
    assert log.first_at(9_000, UNCOMMITTED) == TimedOffset(0, 9_000)
    log.delete_records(1)
    assert log.first_at(9_000, UNCOMMITTED) is None
    assert log.first_at(9_001, UNCOMMITTED) == TimedOffset(2, 9_500)


def test_records_above_the_high_watermark_are_not_read():
    cluster = filled()
    log = cluster.log("orders")
    log.hold_high_watermark(5)
    assert cluster.log_ranges([ORDERS], UNCOMMITTED) == {ORDERS: LogRange(0, 5)}
    assert read(cluster, 5) == FetchedRange(5, 5)
    assert offsets(read(cluster, 0, 1_000_000)) == [0, 1, 2, 3, 4]
    assert log.first_at(1_005, UNCOMMITTED) is None
    log.hold_high_watermark(None)
    assert offsets(read(cluster, 5)) == [5, 6, 7, 8, 9]


def test_logs_can_be_pickled_on_the_way():
    """A log taken up again from its pickle goes on where it was, open transactions too."""
    log = PartitionLog()
    log.append(numbered(range(4)), batch_size=2)
    open_one = log.begin()
    open_one.append(numbered(range(4, 6)))
    again, transaction = pickle.loads(pickle.dumps((log, open_one)))
    assert again.last_stable_offset == 4
    transaction.abort()
    again.append(numbered(range(7, 9)))
    assert [offset for offset, _ in again.messages(COMMITTED)] == [0, 1, 2, 3, 7, 8]
    assert log.end == 6


messages = st.builds(
    Message, st.none() | st.integers(-5, 30), st.sampled_from([b"a", b"b", b"c"]), st.none()
)
appends = st.tuples(
    st.sampled_from(["plain", "committed", "aborted"]),
    st.lists(messages, min_size=1, max_size=6),
    st.integers(1, 4),
)


@given(
    st.lists(appends, min_size=1, max_size=6),
    st.floats(0, 0.8),
    st.booleans(),
    st.integers(0, 20),
    st.integers(1, 600),
    st.sampled_from([COMMITTED, UNCOMMITTED]),
)
def test_reads_chain_over_all_records_and_lookups_find_the_first(
    written, compacted, keep_empty_batches, trimmed, max_bytes, isolation
):
    """Reading on from each fetched range's end meets every record that is left, once and in order;
    a lookup in one segment answers the first offset at or after the time, in log order."""
    log = PartitionLog(clock=Clock(now_ms=10))
    times: dict[int, int] = {}
    visible: list[int] = []
    for how, some, batch_size in written:
        transaction = None if how == "plain" else log.begin()
        first = (transaction or log).append(some, batch_size=batch_size)
        numbers = range(first, first + len(some))
        times |= {
            n: -1 if m.timestamp_ms is None else m.timestamp_ms
            for n, m in zip(numbers, some, strict=True)
        }
        if how != "aborted" or isolation is UNCOMMITTED:
            visible += numbers
        if transaction is not None:
            times[log.end] = 10
            transaction.commit() if how == "committed" else transaction.abort()
    cut = int(compacted * log.end)
    # The last record stays, as the segment that is written to does.
    gone = set(list(times)[: max(0, cut - 1) : 2])
    log.remove(gone, keep_empty_batches=keep_empty_batches)
    log.delete_records(min(trimmed, log.end))
    left = [n for n in visible if n not in gone and n >= log.start]

    position, met = log.start, []
    while position < log.end:
        fetched = log.read(position, max_bytes, isolation)
        assert log.start <= fetched.start <= position < fetched.end
        met += [record.offset for record in fetched.records if record.offset >= position]
        position = fetched.end
    assert met == left

    for time in range(32):
        found = log.first_at(time, isolation)
        expected = [n for n, t in times.items() if t >= time and n not in gone and n >= log.start]
        assert found == (TimedOffset(expected[0], times[expected[0]]) if expected else None)


# --- mirroring ----------------------------------------------------------------------------


def test_mirror_leaves_out_what_it_is_told_and_what_does_not_count():
    """Dropped records, control records and (read committed) aborted ones are not copied."""
    source, target = PartitionLog(), PartitionLog()
    source.append(numbered(range(3)))
    void = source.begin()
    void.append(numbered(range(3, 5)))
    void.abort()
    kept = source.begin()
    kept.append(numbered(range(6, 8)))
    kept.commit()
    reached = mirror_partition(
        source, target, isolation=COMMITTED, drop=lambda offset, _: offset == 1
    )
    assert reached == source.end == 9
    assert [message.key for _, message in target.messages()] == [b"k0", b"k2", b"k6", b"k7"]
    assert target.end == 4


def test_mirror_stops_at_an_open_transaction():
    """Read committed, nothing behind the last stable offset is copied, and it is not passed."""
    source, target = PartitionLog(), PartitionLog()
    source.append(numbered(range(3)))
    source.begin().append(numbered(range(3, 5)))
    source.append(numbered(range(5, 7)))
    assert mirror_partition(source, target, isolation=COMMITTED) == 3
    assert target.end == 3
    assert mirror_partition(source, target, start=3) == 7
    assert target.end == 7
