"""What every `Cluster` answers: one suite over the cluster in memory and over real brokers.

Each test fills a stand (tests/cluster_stands.py) and asks the cluster through the seam
alone. Where the two differ, the broker is right.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from tests.cluster_stands import NOW_MS, ORIGIN, BrokerStand, MemoryStand, Stand
from tests.waiting import wait_until
from tsoffset.cluster import Cluster
from tsoffset.lab.embedded import KAFKA_VERSION
from tsoffset.lab.embedded.jars import OLDER_VERSIONS
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    FirstAtTime,
    GroupType,
    Isolation,
    LeaderEpoch,
    LogRange,
    Operation,
    ReadFrom,
    TimedOffset,
    TimestampType,
    TopicDescription,
    TopicPartition,
    Youngest,
)
from tsoffset.records import FetchedRange, RawFetchedRange, Record, content_digest, header_digests
from tsoffset.testing.memory_cluster import Message

COMMITTED, UNCOMMITTED = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED
BOTH = (UNCOMMITTED, COMMITTED)
WIDE = 1_000_000


# What Kafka has since which version.
YOUNGEST, GROUP_STATES, TOPIC_IDS, GROUP_TYPES = (3, 0), (2, 6), (2, 8), (4, 0)
SHARE_OFFSETS = (4, 2)
DESCRIBE_CLUSTER, TIMESTAMP_LIMITS, GROUP_CONFIGS = (2, 8), (3, 6), (4, 0)
CONFIGS = {Operation.DESCRIBE_CONFIGS}

# 2.8.2 is asked nothing that neither a newer nor an older one is asked.
BROKERS = {
    KAFKA_VERSION: [pytest.mark.integration],
    **{
        version: [
            pytest.mark.integration,
            pytest.mark.long if version == "2.8.2" else pytest.mark.thorough,
        ]
        for version in OLDER_VERSIONS
    },
}


@pytest.fixture(scope="module")
def broker_stand(broker_of, unique, tmp_path_factory) -> Iterator[Callable[[str], BrokerStand]]:
    """A function that gives the stand on a broker of that version, the same each time."""
    with ExitStack() as stack:

        @cache
        def made(version):
            directory = tmp_path_factory.mktemp("members")
            return stack.enter_context(BrokerStand(broker_of(version), unique, directory))

        yield made


@pytest.fixture(
    params=["memory", *(pytest.param(it, marks=marks) for it, marks in BROKERS.items())]
)
def stand(request, unique, broker_stand) -> Stand:
    made = MemoryStand(unique) if request.param == "memory" else broker_stand(request.param)
    since = request.node.get_closest_marker("since")
    if since is not None and made.version < since.args:
        pytest.skip(f"asks for what Kafka has since {'.'.join(map(str, since.args))}")
    return made


@pytest.fixture
def cluster(stand) -> Cluster:
    return stand.cluster


def numbered(numbers: Iterable[int]) -> list[Message]:
    """Messages a millisecond apart, no two of them equal."""
    return [Message(NOW_MS + n, b"k%d" % n, b"v%d" % n) for n in numbers]


def the_one(answers: Mapping[Any, Any], request: object) -> Any:
    """The answer to the one thing that was asked, and no other came."""
    assert set(answers) == {request}
    return answers[request]


@dataclass(frozen=True, slots=True)
class Log:
    """A partition that is filled through its stand, and asked through the seam."""

    stand: Stand
    partition: TopicPartition

    def append(self, messages: Sequence[Message], **how: Any) -> None:
        self.stand.append(self.partition, messages, **how)

    def delete_records(self, before: int) -> None:
        self.stand.delete_records(self.partition, before)

    def transaction(self) -> AbstractContextManager[Any]:
        return self.stand.transaction(self.partition)

    def range(self, isolation: Isolation = UNCOMMITTED) -> LogRange | Failed:
        answers = self.stand.cluster.log_ranges([self.partition], isolation)
        return the_one(answers, self.partition)

    def read(
        self, offset: int, isolation: Isolation = UNCOMMITTED, max_bytes: int = 1
    ) -> FetchedRange | Failed:
        request = ReadFrom(self.partition, offset, max_bytes)
        return the_one(self.stand.cluster.read([request], isolation), request)

    def fetched_range(self, offset: int, *how: Any, **named: Any) -> tuple[int, int, list[int]]:
        """Start, end and the records' offsets of what is read."""
        answer = self.read(offset, *how, **named)
        assert isinstance(answer, FetchedRange), answer
        return answer.start, answer.end, [record.offset for record in answer.records]

    def lookup(
        self, timestamp_ms: int, isolation: Isolation = UNCOMMITTED
    ) -> TimedOffset | Failed | None:
        request = FirstAtTime(self.partition, timestamp_ms)
        return the_one(self.stand.cluster.first_at_times([request], isolation), request)

    def youngest(self, isolation: Isolation = UNCOMMITTED) -> TimedOffset | Failed | None:
        request = Youngest(self.partition)
        return the_one(self.stand.cluster.youngest([request], isolation), request)


@pytest.fixture
def partition(stand) -> TopicPartition:
    """A new one."""
    return stand.partition()


@pytest.fixture
def log(stand, partition) -> Log:
    return Log(stand, partition)


def offsets_of(cluster: Cluster, group: str, require_stable: bool = True) -> object:
    return the_one(cluster.committed([group], require_stable=require_stable).by_group(), group)


def share_offsets_of(cluster: Cluster, group: str) -> Mapping[TopicPartition, CommittedOffset]:
    found = cluster.committed([group], share_groups=[group], require_stable=True)
    return the_one(found.by_group(), group)


def set_share_offset(
    cluster: Cluster, group: str, partition: TopicPartition, offset: CommittedOffset
) -> None:
    """Set a start offset. A coordinator does not know a new topic at once."""

    def done() -> bool:
        answers = cluster.commit({group: {partition: offset}}, share_groups=[group])
        answer = answers[group][partition]
        assert answer is None or answer.missing
        return answer is None

    wait_until(done, f"group {group} has a start offset in {partition}")


def is_missing(answer: object) -> bool:
    return (
        isinstance(answer, Failed)
        and answer.missing
        and answer.kind is FailureKind.NO_LEADER
        and bool(answer.message)
    )


# --- the cluster and its topics -----------------------------------------------------------


def test_a_cluster_describes_itself(cluster):
    """It has an id and brokers under distinct node ids, and no dead address here."""
    description = cluster.describe()
    assert description.cluster_id
    assert description.brokers
    assert len({broker.node_id for broker in description.brokers}) == len(description.brokers)
    assert description.dead_addresses == ()


def test_topics_named_are_described(stand, cluster):
    """A topic has an id that stays, where the broker gives any, and for each partition a leader
    with its epoch."""
    topic = stand.create_topic(partitions=3)
    described = cluster.topics([topic])
    description = described[topic]
    assert description.topic == topic
    assert bool(description.topic_id) == (stand.version >= TOPIC_IDS)
    assert not description.internal
    assert set(description.partitions) == {0, 1, 2}
    nodes = {broker.node_id for broker in cluster.describe().brokers}
    for number, partition in description.partitions.items():
        assert partition.partition == number
        assert partition.leader in nodes
        assert partition.leader_epoch is not None
    assert cluster.topics([topic]) == described


def test_all_topics_are_described(stand, cluster):
    """Without names every topic of the cluster comes, each as when it is named."""
    topics = [stand.create_topic() for _ in range(2)]
    everything = cluster.topics()
    assert set(topics) <= set(everything)
    assert {topic: everything[topic] for topic in topics} == cluster.topics(topics)


def test_a_topic_that_does_not_exist_is_missing(stand, cluster):
    """It is a `Failed` with `missing` in its place, beside the ones that exist."""
    topic, absent = stand.create_topic(), stand.unique("absent")
    answers = cluster.topics([topic, absent])
    assert isinstance(answers[topic], TopicDescription)
    assert is_missing(answers[absent])
    assert absent not in cluster.topics()


@pytest.mark.since(*TOPIC_IDS)
def test_a_topic_made_anew_has_another_id(stand, cluster):
    """The id tells a topic from a later one of the same name."""
    topic = stand.create_topic()
    before = cluster.topics([topic])[topic]
    stand.delete_topic(topic)
    stand.create_topic(name=topic)
    after = cluster.topics([topic])[topic]
    assert before.topic_id != after.topic_id


def test_kafkas_own_topics_are_internal(stand, cluster):
    name = stand.internal_topic()
    description = cluster.topics([name])[name]
    assert description.internal


# --- what `check` asks -------------------------------------------------------------------


def test_a_cluster_without_authorizer_allows_everything(stand, cluster):
    """Rights are told of topics and groups whether they exist or not, and of the cluster."""
    topic, absent, group = stand.create_topic(), stand.unique("absent"), stand.unique("group")
    rights = cluster.rights([topic, absent], [group])
    everything = frozenset(Operation)
    assert rights.topics[topic] == everything
    assert rights.topics[absent] == everything
    of_group = everything if stand.version >= GROUP_CONFIGS else everything - CONFIGS
    assert rights.groups == {group: of_group}
    of_cluster = everything - {Operation.READ} if stand.version >= DESCRIBE_CLUSTER else None
    assert rights.cluster == of_cluster
    assert rights.principal


def test_topic_configs_tell_what_is_compared(stand, cluster):
    """Set ones and the brokers' defaults, by Kafka's names; a missing topic fails in its place."""
    topic = stand.create_topic(timestamp_type=TimestampType.LOG_APPEND_TIME)
    compacted = stand.create_topic(cleanup_policy="compact,delete")
    absent = stand.unique("absent")
    answers = cluster.topic_configs([topic, compacted, absent])
    assert is_missing(answers[absent])
    configs = answers[topic]
    assert not isinstance(configs, Failed)
    assert configs["message.timestamp.type"] == "LogAppendTime"
    limits = {"message.timestamp.after.max.ms", "message.timestamp.before.max.ms"}
    if stand.version < TIMESTAMP_LIMITS:
        limits = {"message.timestamp.difference.max.ms"}
    assert {"retention.bytes", "retention.ms", *limits} <= configs.keys()
    assert configs["cleanup.policy"] == "delete"
    both = answers[compacted]
    assert not isinstance(both, Failed)
    assert both["cleanup.policy"] == "compact,delete"


# --- log ranges ---------------------------------------------------------------------------


@pytest.mark.parametrize("isolation", BOTH)
def test_a_log_range_goes_from_the_first_record_to_behind_the_last(log, isolation):
    """An empty log is 0..0; n records make it 0..n."""
    assert log.range(isolation) == LogRange(0, 0)
    log.append(numbered(range(7)), batch_size=3)
    assert log.range(isolation) == LogRange(0, 7)


def test_a_log_that_was_emptied_begins_at_its_end(log):
    """With all records deleted, start and end are the same, and not 0."""
    log.append(numbered(range(10)), batch_size=5)
    log.delete_records(10)
    assert log.range() == LogRange(10, 10)
    assert log.fetched_range(10) == (10, 10, [])
    assert log.lookup(NOW_MS) is None


def test_an_unknown_partition_is_missing_and_the_others_answer(stand, cluster):
    """Unknown topics and partitions fail in their place, for every verb on partitions."""
    good = stand.partition()
    stand.append(good, numbered(range(3)))
    bad = [TopicPartition(good.topic, 9), TopicPartition(stand.unique("absent"), 0)]
    ranges = cluster.log_ranges([*bad, good], UNCOMMITTED)
    assert [is_missing(ranges[partition]) for partition in bad] == [True, True]
    assert ranges[good] == LogRange(0, 3)

    reads = cluster.read([ReadFrom(partition, 0) for partition in [*bad, good]], UNCOMMITTED)
    assert [is_missing(reads[ReadFrom(partition, 0)]) for partition in bad] == [True, True]
    assert isinstance(reads[ReadFrom(good, 0)], FetchedRange)

    times = [FirstAtTime(partition, NOW_MS) for partition in [*bad, good]]
    found = cluster.first_at_times(times, UNCOMMITTED)
    assert [is_missing(found[time]) for time in times[:2]] == [True, True]
    assert found[times[2]] == TimedOffset(0, NOW_MS)

    logs = [Youngest(partition) for partition in [*bad, good]]
    last = cluster.youngest(logs, UNCOMMITTED)
    assert [is_missing(last[log]) for log in logs[:2]] == [True, True]
    assert last[logs[2]] == (TimedOffset(2, NOW_MS + 2) if stand.version >= YOUNGEST else None)


def test_nothing_asked_is_nothing_answered(cluster):
    """Every verb takes an empty batch; that of topics does not mean all."""
    assert cluster.topics([]) == {}
    assert cluster.log_ranges([], UNCOMMITTED) == {}
    assert cluster.read([], UNCOMMITTED) == {}
    assert cluster.first_at_times([], UNCOMMITTED) == {}
    assert cluster.youngest([], UNCOMMITTED) == {}
    assert cluster.epoch_ends([]) == {}
    assert cluster.committed([], require_stable=True).by_group() == {}
    assert cluster.commit({}) == {}
    assert cluster.topic_configs([]) == {}
    rights = cluster.rights([], [])
    assert (rights.topics, rights.groups) == ({}, {})


# --- reading ------------------------------------------------------------------------------


@pytest.mark.parametrize("isolation", BOTH)
def test_one_byte_reads_the_batch_that_holds_the_offset(log, isolation):
    """Whichever offset of a batch is asked for, the whole batch comes and no other."""
    for size in (3, 1, 4):
        log.append(numbered(range(size)))
    expected = [(0, 3, [0, 1, 2])] * 3 + [(3, 4, [3])] + [(4, 8, [4, 5, 6, 7])] * 4
    answers = [log.fetched_range(offset, isolation) for offset in range(8)]
    assert answers == expected


def test_many_reads_of_one_call_are_each_answered(stand, cluster):
    """Hundreds of offsets of several partitions in one call: each gets its own batch."""
    topic = stand.create_topic(partitions=3)
    partitions = [TopicPartition(topic, number) for number in range(3)]
    for partition in partitions:
        stand.append(partition, numbered(range(120)), batch_size=4)
    requests = [ReadFrom(partition, offset) for partition in partitions for offset in range(120)]
    answers = cluster.read(requests, UNCOMMITTED)
    assert set(answers) == set(requests)
    for request, answer in answers.items():
        first = request.offset // 4 * 4
        assert isinstance(answer, FetchedRange), answer
        assert (answer.start, answer.end) == (first, first + 4)
        assert [record.offset for record in answer.records] == list(range(first, first + 4))


def test_more_bytes_read_whole_batches_one_after_another(log):
    """A fetched range never holds a part of a batch, has no gap, and the next begins at its end."""
    padded = [Message(m.timestamp_ms, m.key, bytes(100)) for m in numbered(range(60))]
    log.append(padded, batch_size=5)
    one_batch = log.read(0)
    assert one_batch.bytes_read > 500
    position, fetched_ranges = 0, 0
    while position < 60:
        start, end, offsets = log.fetched_range(position, max_bytes=one_batch.bytes_read * 5 // 2)
        assert (start, end - start) == (position, 10)
        assert offsets == list(range(start, end))
        position, fetched_ranges = end, fetched_ranges + 1
    assert fetched_ranges == 6
    assert log.fetched_range(3, max_bytes=WIDE) == (0, 60, list(range(60)))


def test_records_keep_their_time_and_are_known_by_digests(log):
    """Timestamp and offset as written; key, value and headers as digests; null is None."""
    written = [
        Message(NOW_MS, b"key", b"value", (("name", b"x"), ("other", None))),
        Message(NOW_MS + 5, b"key", None),
        Message(NOW_MS + 3, None, b"value", (("name", b"x"), ("name", b"y"))),
        Message(NOW_MS + 3, b"", b"", (("name", b""), ("name", b"x"))),
    ]
    log.append(written)
    answer = log.read(0)
    assert answer.timestamp_type is TimestampType.CREATE_TIME
    assert answer.records == tuple(
        Record(
            offset,
            message.timestamp_ms,
            content_digest(message.key),
            content_digest(message.value),
            header_digests(message.headers),
        )
        for offset, message in enumerate(written)
    )
    first, second, third, fourth = answer.records
    assert first.key == second.key != fourth.key
    assert second.value is None is third.key
    assert fourth.value is not None
    assert not first.headers <= third.headers


def test_a_header_tells_where_a_record_came_from(log):
    """The offset that the header named in the settings holds, if it holds one; the last counts."""
    values: list[tuple[bytes | None, ...]] = [
        ((7).to_bytes(8, "big"),),
        (),
        (None,),
        (b"7",),
        ((1).to_bytes(8, "big"), (2**40).to_bytes(8, "big")),
    ]
    log.append(
        [
            Message(NOW_MS, b"k", b"v", tuple((ORIGIN.name, value) for value in each))
            for each in values
        ],
    )
    answer = log.read(0)
    assert [record.source_offset for record in answer.records] == [7, None, None, None, 2**40]


@pytest.mark.parametrize("isolation", BOTH)
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_raw_read_is_the_same_range_with_what_it_holds(cluster, log, isolation, codec):
    """Start, end, offsets and times are those of `read`; keys and values come as written,
    null as None; control, aborted and deleted records do not exist."""
    written = [
        Message(NOW_MS, b"key", b"value", (("name", b"x"),)),
        Message(NOW_MS + 1, b"", b""),
        Message(NOW_MS + 2, b"key", None),
        Message(NOW_MS + 3, None, b"value"),
    ]
    log.append(written, codec=codec)
    for commit in (False, True):
        with log.transaction() as transaction:
            transaction.append(numbered(range(2)))
            if commit:
                transaction.commit()
            else:
                transaction.abort()
    log.append(numbered(range(3)))
    log.delete_records(1)
    reached = log.range(isolation)
    held = {}
    for offset in range(reached.start, reached.end + 1):
        for size in (1, WIDE):
            digests = log.read(offset, isolation, size)
            request = ReadFrom(log.partition, offset, size)
            raw = cluster.read_raw([request], isolation)[request]
            assert (raw.start, raw.end) == (digests.start, digests.end)
            assert [
                (r.offset, r.timestamp_ms, content_digest(r.key), content_digest(r.value))
                for r in raw.records
            ] == [(r.offset, r.timestamp_ms, r.key, r.value) for r in digests.records]
            held |= {record.offset: (record.key, record.value) for record in raw.records}
    aborted = [] if isolation is COMMITTED else [4, 5]
    assert sorted(held) == [1, 2, 3, *aborted, 7, 8, 10, 11, 12]
    assert [held[offset] for offset in (1, 2, 3)] == [(m.key, m.value) for m in written[1:]]


def test_a_raw_read_fails_as_a_read_does(stand, cluster, partition, log):
    """An offset outside the log and a partition that is not there fail alone, in their places."""
    log.append(numbered(range(3)))
    good, outside = ReadFrom(partition, 1), ReadFrom(partition, 4)
    missing = ReadFrom(TopicPartition(stand.unique("nowhere"), 0), 0)
    answers = cluster.read_raw([good, outside, missing], UNCOMMITTED)
    assert isinstance(answers[good], RawFetchedRange)
    assert answers[outside] == cluster.read([outside], UNCOMMITTED)[outside]
    assert isinstance(answers[outside], Failed)
    assert is_missing(answers[missing])


@pytest.mark.parametrize("isolation", BOTH)
def test_the_log_end_reads_as_nothing(log, isolation):
    """At the readable end a fetched range is empty, also with many bytes and in an empty log."""
    assert log.read(0, isolation) == FetchedRange(0, 0)
    log.append(numbered(range(4)))
    assert log.fetched_range(4, isolation, WIDE) == (4, 4, [])


@pytest.mark.parametrize("offset", [2, 11])
def test_offsets_outside_the_log_fail(cluster, partition, log, offset):
    """Below the start and beyond the end there is nothing to read, and that is said."""
    log.append(numbered(range(10)), batch_size=5)
    log.delete_records(3)
    good = ReadFrom(partition, 3)
    bad = ReadFrom(partition, offset)
    answers = cluster.read([bad, good], UNCOMMITTED)
    failed = answers[bad]
    assert failed.kind is FailureKind.NO_LEADER
    assert not failed.missing
    assert isinstance(answers[good], FetchedRange)


def test_deleted_records_of_a_batch_do_not_exist(log):
    """Where the log begins inside a batch, its earlier records are not part of the range."""
    log.append(numbered(range(10)), batch_size=5)
    log.delete_records(3)
    assert log.range() == LogRange(3, 10)
    assert log.fetched_range(3) == (3, 5, [3, 4])
    assert log.fetched_range(4) == (3, 5, [3, 4])
    assert log.fetched_range(4, max_bytes=WIDE) == (3, 10, [3, 4, 5, 6, 7, 8, 9])


def test_aborted_records_exist_only_for_readers_of_uncommitted_ones(log):
    """Read committed, an aborted batch is a fetched range without records; else it is data."""
    log.append(numbered(range(2)))
    with log.transaction() as transaction:
        transaction.append(numbered(range(2, 5)))
        transaction.abort()
    with log.transaction() as transaction:
        transaction.append(numbered(range(6, 8)))
        transaction.commit()
    assert [log.read(at, UNCOMMITTED).transactional for at in (0, 3, 5)] == [False, True, True]
    assert log.fetched_range(3, UNCOMMITTED) == (2, 5, [2, 3, 4])
    assert log.fetched_range(3, COMMITTED) == (2, 5, [])
    assert log.fetched_range(6, COMMITTED) == (6, 8, [6, 7])
    everything = (0, 9, [0, 1, 6, 7])
    assert log.fetched_range(0, COMMITTED, WIDE) == everything
    assert log.fetched_range(0, UNCOMMITTED, WIDE) == (0, 9, [0, 1, 2, 3, 4, 6, 7])


def test_only_the_aborted_one_of_two_mingled_transactions_is_void(log):
    """Batches of two producers lie among each other; each goes with its own transaction."""
    with log.transaction() as kept, log.transaction() as void:
        kept.append(numbered([0]))
        void.append(numbered([1]))
        kept.append(numbered([2]))
        void.append(numbered([3]))
        void.abort()
        kept.commit()
    with log.transaction() as later:
        later.append(numbered([6]))
        later.commit()
    assert log.fetched_range(0, COMMITTED, WIDE) == (0, 8, [0, 2, 6])
    assert log.fetched_range(1, COMMITTED) == (1, 2, [])
    assert log.fetched_range(2, COMMITTED) == (2, 3, [2])


def test_an_open_transaction_ends_what_is_stable(log):
    """Read committed, the log ends at the oldest open transaction, whatever comes after it;
    nothing at or behind that is read or found, until the transaction ends."""
    log.append(numbered(range(3)))
    with log.transaction() as transaction:
        transaction.append(numbered(range(3, 5)))
        log.append(numbered(range(5, 7)))
        assert log.range(UNCOMMITTED) == LogRange(0, 7)
        assert log.range(COMMITTED) == LogRange(0, 3)
        assert log.fetched_range(0, COMMITTED, WIDE) == (0, 3, [0, 1, 2])
        for undecided in (3, 4, 5, 7):
            assert log.fetched_range(undecided, COMMITTED) == (undecided, undecided, [])
        assert log.fetched_range(4, UNCOMMITTED) == (3, 5, [3, 4])
        assert log.lookup(NOW_MS + 2, COMMITTED) == TimedOffset(2, NOW_MS + 2)
        assert log.lookup(NOW_MS + 3, COMMITTED) is None
        assert log.lookup(NOW_MS + 3, UNCOMMITTED) == TimedOffset(3, NOW_MS + 3)
        transaction.commit()
    assert log.range(COMMITTED) == LogRange(0, 8)
    assert log.fetched_range(3, COMMITTED) == (3, 5, [3, 4])
    assert log.lookup(NOW_MS + 3, COMMITTED) == TimedOffset(3, NOW_MS + 3)


def test_deleting_records_of_an_open_transaction_leaves_nothing_stable(log):
    """The readable end for committed records is never below the log's start."""
    with log.transaction() as transaction:
        transaction.append(numbered(range(4)))
        log.delete_records(2)
        assert log.range(UNCOMMITTED) == LogRange(2, 4)
        assert log.range(COMMITTED) == LogRange(2, 2)
        assert log.fetched_range(2, COMMITTED) == (2, 2, [])
        transaction.abort()
    assert log.range(COMMITTED) == LogRange(2, 5)


def test_compaction_leaves_holes(stand):
    """Records keep their offsets; a batch keeps its bounds when records go, and where all
    went the batch behind answers, from the offset asked for on."""
    keys = [(b"a", b"b"), (b"c", b"a"), (b"b", b"d"), (b"d", b"e"), (b"c",), (b"z",)]
    offsets = iter(range(10))
    batches = [
        [Message(NOW_MS + 2 * (n := next(offsets)), key, b"%d" % n) for key in of_batch]
        for of_batch in keys
    ]
    log = Log(stand, stand.compacted(batches))
    assert log.range() == LogRange(0, 10)
    assert log.fetched_range(0) == (0, 4, [3])
    assert log.fetched_range(1) == (1, 4, [3])
    assert log.fetched_range(2) == (2, 4, [3])
    assert log.fetched_range(4) == (4, 6, [4])
    assert log.fetched_range(5) == (4, 6, [4])
    # A read does not go on into the next segment, here the one that is written to.
    assert log.fetched_range(0, max_bytes=WIDE) == (0, 9, [3, 4, 6, 7, 8])
    assert log.fetched_range(9, max_bytes=WIDE) == (9, 10, [9])
    assert log.lookup(NOW_MS + 10) == TimedOffset(6, NOW_MS + 12)


def test_a_lookup_gives_up_at_an_emptied_segment(stand):
    """Where compaction left a file without records, every time before its last write gets
    None, although later records exist: None proves nothing. The youngest record is found, by
    brokers that look for it."""
    large = bytes(700_000)
    batches = [
        [Message(NOW_MS, b"a", large)],
        [Message(NOW_MS + 10, b"b", large)],
        [Message(NOW_MS + 20, b"a", b"new")],
        [Message(NOW_MS + 30, b"z", b"")],
    ]
    log = Log(stand, stand.compacted(batches, apart=True))
    assert log.fetched_range(0) == (0, 2, [1])
    assert log.lookup(NOW_MS) is None
    assert log.lookup(NOW_MS + 10) is None
    last = TimedOffset(3, NOW_MS + 30) if stand.version >= YOUNGEST else None
    assert log.youngest() == last


def test_records_may_have_no_timestamp(log):
    """A record without a time, or with one before 1970, has None, and no lookup answers it."""
    times = [None, -500, NOW_MS, None, 0]
    log.append([Message(time, b"k%d" % n) for n, time in enumerate(times)])
    answer = log.read(0)
    stamps = [record.timestamp_ms for record in answer.records]
    assert stamps == [None, None, NOW_MS, None, 0]
    assert log.lookup(0) == TimedOffset(2, NOW_MS)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_read_like_others(log, codec):
    """Every codec gives the same records; an offset within the batch gives the whole of it."""
    messages = [
        Message(NOW_MS + n, b"k%d" % n, b"value" * 40, (("h", b"x" * 20),)) for n in range(50)
    ]
    log.append(messages, codec=codec)
    answer = log.read(30)
    assert (answer.start, answer.end) == (0, 50)
    assert [(r.timestamp_ms, r.key, r.value, r.headers) for r in answer.records] == [
        (
            message.timestamp_ms,
            content_digest(message.key),
            content_digest(message.value),
            header_digests(message.headers),
        )
        for message in messages
    ]
    assert log.lookup(NOW_MS + 30) == TimedOffset(30, NOW_MS + 30)


@pytest.mark.parametrize("codec", ["zstd", "gzip", "lz4", "snappy"])
def test_a_batch_may_be_large_once_decompressed(log, codec):
    messages = [Message(NOW_MS + n, b"k%d" % n, bytes([n]) * 524_288) for n in range(4)]
    log.append(messages, codec=codec)
    answer = log.read(2)
    assert isinstance(answer, FetchedRange), answer
    assert [record.value for record in answer.records] == [
        content_digest(message.value) for message in messages
    ]


# --- LogAppendTime ------------------------------------------------------------------------


def test_a_broker_may_stamp_records_itself(stand):
    """With LogAppendTime the fetched range says so, all records of a batch have one time, which is
    not the producer's, and lookups go by it."""
    log = Log(stand, stand.partition(timestamp_type=TimestampType.LOG_APPEND_TIME))
    long_ago = 1_000_000
    log.append([Message(long_ago + n, b"k%d" % n) for n in range(3)])
    answer = log.read(0)
    assert answer.timestamp_type is TimestampType.LOG_APPEND_TIME
    times = {record.timestamp_ms for record in answer.records}
    assert len(times) == 1
    appended = times.pop()
    assert appended > long_ago + 2
    assert log.lookup(long_ago) == TimedOffset(0, appended)
    assert log.lookup(appended) == TimedOffset(0, appended)
    assert log.lookup(appended + 1) is None


def test_control_records_tell_nothing_of_who_stamps(stand):
    """A fetched range without data is of CreateTime, whoever stamps the topic's records."""
    log = Log(stand, stand.partition(timestamp_type=TimestampType.LOG_APPEND_TIME))
    with log.transaction() as transaction:
        transaction.append(numbered(range(2)))
        transaction.abort()
    kinds = {}
    for isolation in BOTH:
        data, marker = (log.read(offset, isolation) for offset in (0, 2))
        kinds[isolation] = (data.timestamp_type, marker.timestamp_type)
    assert kinds == {
        UNCOMMITTED: (TimestampType.LOG_APPEND_TIME, TimestampType.CREATE_TIME),
        COMMITTED: (TimestampType.CREATE_TIME, TimestampType.CREATE_TIME),
    }


# --- lookups by time ----------------------------------------------------------------------


def test_a_lookup_finds_the_first_record_in_log_order(stand, cluster):
    """Not the nearest time: the first record at or after it as the log goes; several times
    of several partitions are asked in one call."""
    topic = stand.create_topic(partitions=2)
    rising, mixed = TopicPartition(topic, 0), TopicPartition(topic, 1)
    stand.append(rising, [Message(NOW_MS + t, b"k") for t in (10, 20, 20, 20, 30)], batch_size=2)
    stand.append(mixed, [Message(NOW_MS + t, b"k") for t in (50, 90, 70, 60, 95)], batch_size=2)
    expected = {
        (rising, 0): (0, 10),
        (rising, 10): (0, 10),
        (rising, 11): (1, 20),
        (rising, 20): (1, 20),
        (rising, 21): (4, 30),
        (rising, 31): None,
        (mixed, 0): (0, 50),
        (mixed, 51): (1, 90),
        (mixed, 60): (1, 90),
        (mixed, 91): (4, 95),
        (mixed, 96): None,
    }
    requests = {FirstAtTime(tp, NOW_MS + t): wanted for (tp, t), wanted in expected.items()}
    answers = cluster.first_at_times(list(requests), UNCOMMITTED)
    assert answers == {
        request: None if wanted is None else TimedOffset(wanted[0], NOW_MS + wanted[1])
        for request, wanted in requests.items()
    }


def test_negative_times_are_refused(cluster, partition, log):
    """They mean other things to a broker: asking for one is a mistake of the caller's."""
    log.append(numbered(range(3)))
    with pytest.raises(ValueError, match="-1"):
        cluster.first_at_times([FirstAtTime(partition, -1)], UNCOMMITTED)


# --- the youngest record ------------------------------------------------------------------


@pytest.mark.since(*YOUNGEST)
@pytest.mark.parametrize("isolation", BOTH)
def test_the_youngest_record_has_the_largest_time(stand, cluster, isolation):
    """Wherever it lies in the log or its batch; the first of several; each log has its own."""
    topic = stand.create_topic(partitions=3)
    rising, mixed, empty = (TopicPartition(topic, number) for number in range(3))
    stand.append(rising, numbered(range(7)), batch_size=3)
    times = (50, 10, 95, 95, 20, 95, 60)
    stand.append(mixed, [Message(NOW_MS + t, b"k") for t in times], batch_size=4)
    assert cluster.youngest([Youngest(tp) for tp in (empty, mixed, rising)], isolation) == {
        Youngest(rising): TimedOffset(6, NOW_MS + 6),
        Youngest(mixed): TimedOffset(2, NOW_MS + 95),
        Youngest(empty): None,
    }


@pytest.mark.since(*YOUNGEST)
def test_records_without_a_time_are_not_the_youngest(stand):
    """Nor those before 1970; a log of nothing else has none."""
    timeless, mixed = (Log(stand, stand.partition()) for _ in range(2))
    for log in (timeless, mixed):
        log.append([Message(time, b"k") for time in (None, -500)])
    mixed.append([Message(time, b"k") for time in (0, None)])
    assert timeless.youngest() is None
    assert mixed.youngest() == TimedOffset(2, 0)


@pytest.mark.since(*YOUNGEST)
def test_a_log_that_stamps_batches_answers_the_first_of_one(stand):
    """With LogAppendTime all records of a batch have one time."""
    log = Log(stand, stand.partition(timestamp_type=TimestampType.LOG_APPEND_TIME))
    log.append(numbered(range(3)))
    first = log.lookup(NOW_MS)
    assert log.youngest() == TimedOffset(0, first.timestamp_ms)


@pytest.mark.since(*YOUNGEST)
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_the_youngest_record_may_be_no_data(log, end):
    """Transaction markers and aborted records count like any other, with either isolation."""
    far = NOW_MS + 3_000_000
    with log.transaction() as transaction:
        transaction.append(numbered(range(2)))
        getattr(transaction, end)()
    for isolation in BOTH:
        marker = log.youngest(isolation)
        assert marker.offset == 2
        assert marker == log.lookup(NOW_MS + 2, isolation)
    with log.transaction() as transaction:
        transaction.append([Message(far, b"k")])
        getattr(transaction, end)()
    for isolation in BOTH:
        assert log.youngest(isolation) == TimedOffset(3, far)


@pytest.mark.since(*YOUNGEST)
def test_a_youngest_record_that_cannot_be_read_is_not_told(log):
    """Read committed, an open transaction hides it, and no older record stands in for it."""
    log.append(numbered(range(3)))
    with log.transaction() as transaction:
        transaction.append([Message(NOW_MS, b"old")])
        assert log.youngest(COMMITTED) == TimedOffset(2, NOW_MS + 2)
        log.append(numbered([9]))
        assert log.youngest(COMMITTED) is None
        assert log.youngest(UNCOMMITTED) == TimedOffset(4, NOW_MS + 9)
        transaction.abort()


# --- leader epochs ------------------------------------------------------------------------


def test_the_records_of_a_leader_epoch_end_where_the_next_one_begins(stand, cluster):
    """The last one ends with the log; a later one is unknown."""
    full, empty = stand.partition(), stand.partition()
    absent = TopicPartition(stand.unique("absent"), 0)
    stand.append(full, numbered(range(7)), batch_size=3)
    epoch = cluster.topics([full.topic])[full.topic].partitions[0].leader_epoch
    now, later, none = (
        LeaderEpoch(full, epoch),
        LeaderEpoch(full, epoch + 5),
        LeaderEpoch(empty, epoch),
    )
    answers = cluster.epoch_ends([later, LeaderEpoch(absent, 0), none, now])
    assert is_missing(answers.pop(LeaderEpoch(absent, 0)))
    assert answers == {now: 7, later: None, none: 0}


# --- groups and commits -------------------------------------------------------------------


def test_an_unknown_group_has_no_offsets(stand, cluster):
    """It is no failure, and asking does not make the group."""
    group = stand.unique("absent")
    assert offsets_of(cluster, group) == {}
    assert group not in cluster.groups().groups


def test_a_commit_is_read_back(stand, cluster):
    """Offset and metadata as committed; the group then exists, simple, empty and inactive."""
    topic, group = stand.create_topic(partitions=3), stand.unique("group")
    commits = {
        TopicPartition(topic, 0): CommittedOffset(0, ""),
        TopicPartition(topic, 1): CommittedOffset(5, "kept as it is: é, \U0001f4be"),
        TopicPartition(topic, 2): CommittedOffset(2**40, "x"),
    }
    assert cluster.commit({group: commits}) == {group: dict.fromkeys(commits)}
    for require_stable in (True, False):
        assert offsets_of(cluster, group, require_stable) == commits
    listing = cluster.groups().groups[group]
    state = "Empty" if stand.version >= GROUP_STATES else None
    assert (listing.group, listing.type, listing.state) == (group, GroupType.CLASSIC, state)
    assert not listing.active


@pytest.mark.parametrize(
    "group",
    ["", "g" * 255, "ü" * 255, "grüße \u2603 \U0001f4be", "a\nb\t\x1b[31mc", " ", ".", "a/b:c,d"],
    ids=["empty", "255 bytes", "510 bytes", "unicode", "control", "space", "dot", "signs"],
)
def test_a_group_may_have_any_name(stand, cluster, group):
    """It is listed, committed for and read back under exactly that name."""
    commits = {stand.partition(): CommittedOffset(3)}
    assert cluster.commit({group: commits}) == {group: dict.fromkeys(commits)}
    found = offsets_of(cluster, group)
    assert {tp: found[tp] for tp in commits} == commits
    assert cluster.groups().groups[group].group == group


def test_a_later_commit_replaces_the_earlier(stand, cluster):
    """Forwards, backwards and with other metadata: the verb stores what it is told."""
    partition, group = stand.partition(), stand.unique("group")
    for commit in (CommittedOffset(5, "a"), CommittedOffset(9), CommittedOffset(3, "b")):
        assert cluster.commit({group: {partition: commit}}) == {group: {partition: None}}
        assert offsets_of(cluster, group) == {partition: commit}


@pytest.mark.parametrize("offset", [-1, -1001])
def test_a_negative_commit_is_none(stand, cluster, offset):
    """Brokers store what a client sends as "no offset". The consumer that reads it begins as
    without a commit, and so does the target's."""
    topic, group = stand.create_topic(partitions=2), stand.unique("group")
    none, some = TopicPartition(topic, 0), TopicPartition(topic, 1)
    for number in (5, offset):
        commits = {none: CommittedOffset(number), some: CommittedOffset(3)}
        assert cluster.commit({group: commits}) == {group: dict.fromkeys(commits)}
    assert offsets_of(cluster, group) == {some: CommittedOffset(3)}


def test_many_groups_are_answered_in_one_call(stand, cluster):
    """Several groups share a coordinator; each gets its own commits and its own answer."""
    topic = stand.create_topic(partitions=2)
    prefix = stand.unique("group")
    commits = {
        f"{prefix}-{number}": {
            TopicPartition(topic, part): CommittedOffset(10 * number + part) for part in range(2)
        }
        for number in range(40)
    }
    answers = cluster.commit(commits)
    assert answers == {group: dict.fromkeys(offsets) for group, offsets in commits.items()}
    assert cluster.committed(list(commits), require_stable=True).by_group() == commits
    listings = cluster.groups()
    assert not listings.failures
    assert set(commits) <= set(listings.groups)
    nodes = {broker.node_id for broker in cluster.describe().brokers}
    assert {listings.groups[group].coordinator for group in commits} <= nodes


def test_a_missing_target_fails_alone(stand, cluster):
    """Commits for topics and partitions that do not exist fail; the others are stored."""
    good, group = stand.partition(), stand.unique("group")
    absent = TopicPartition(stand.unique("absent"), 0)
    beyond = TopicPartition(good.topic, 9)
    answers = cluster.commit(
        {group: {partition: CommittedOffset(1) for partition in (absent, good, beyond)}}
    )
    assert answers[group][good] is None
    assert is_missing(answers[group][absent])
    assert is_missing(answers[group][beyond])
    assert offsets_of(cluster, group) == {good: CommittedOffset(1)}


def test_metadata_has_a_limit_of_4096_characters(stand, cluster):
    """Java's characters, not bytes: é counts one, an astral character two. More is refused,
    said, and does not keep other partitions from being committed."""
    topic, group = stand.create_topic(partitions=4), stand.unique("group")
    partitions = [TopicPartition(topic, number) for number in range(4)]
    metadata = ["é" * 4096, "é" * 4097, "\U0001f4be" * 2048, "\U0001f4be" * 2049]
    commits = {
        partition: CommittedOffset(1, text)
        for partition, text in zip(partitions, metadata, strict=True)
    }
    answers = cluster.commit({group: commits})[group]
    too_large = [
        isinstance(answer, Failed) and answer.metadata_too_large
        for answer in (answers[partition] for partition in partitions)
    ]
    assert too_large == [False, True, False, True]
    assert [answers[partitions[0]], answers[partitions[2]]] == [None, None]
    stored = {partitions[0]: commits[partitions[0]], partitions[2]: commits[partitions[2]]}
    assert offsets_of(cluster, group) == stored


@pytest.mark.parametrize(
    "kind",
    [
        GroupType.CLASSIC,
        pytest.param(GroupType.CONSUMER, marks=pytest.mark.since(*GROUP_TYPES)),
        pytest.param(GroupType.SHARE, marks=pytest.mark.since(*SHARE_OFFSETS)),
    ],
)
def test_a_group_with_members_refuses_commits(stand, cluster, partition, kind):
    """Its listing is active, where it tells states, and its offsets are its members' to move,
    though they can be read; the other groups of the same call are committed. Once it is empty
    it accepts."""
    group, idle = stand.unique("group"), stand.unique("group")
    share_groups = (group, idle) if kind is GroupType.SHARE else ()

    def commit(offset, *groups):
        commits = {name: {partition: CommittedOffset(offset)} for name in groups}
        return cluster.commit(commits, share_groups=share_groups)

    def offset_of_group():
        found = cluster.committed([group], share_groups=share_groups, require_stable=True)
        offsets = the_one(found.by_group(), group)
        return offsets.get(partition)

    with stand.members(group, partition.topic, kind):
        listing = cluster.groups().groups[group]
        assert listing.active == (stand.version >= GROUP_STATES)
        assert listing.type is kind
        answers = commit(5, group, idle)
        refused = answers[group][partition]
        assert refused.group_active
        assert refused.kind is FailureKind.COORDINATOR
        assert refused.message
        assert answers[idle] == {partition: None}
        assert offset_of_group() != CommittedOffset(5)
    stand.wait_until_empty(group)
    assert not cluster.groups().groups[group].active
    assert commit(6, group) == {group: {partition: None}}
    assert offset_of_group() == CommittedOffset(6)


@pytest.mark.since(*SHARE_OFFSETS)
def test_a_share_group_has_start_offsets(stand, cluster):
    """They are set forwards and backwards, and without metadata. The first one makes the group; a
    partition that it has never read gets its own. The lag counts to the log's end. Topics and
    partitions that do not exist fail alone."""
    topic, group = stand.create_topic(partitions=2), stand.unique("group")
    first, second = (TopicPartition(topic, number) for number in range(2))
    stand.append(first, numbered(range(10)))
    assert share_offsets_of(cluster, group) == {}
    for offset in (5, 9, 3):
        set_share_offset(cluster, group, first, CommittedOffset(offset, "metadata"))
        found = share_offsets_of(cluster, group)
        assert found == {first: CommittedOffset(offset)}
        assert found[first].lag == 10 - offset
    listing = cluster.groups().groups[group]
    assert (listing.type, listing.active) == (GroupType.SHARE, False)
    set_share_offset(cluster, group, second, CommittedOffset(0))
    absent, beyond = TopicPartition(stand.unique("absent"), 0), TopicPartition(topic, 9)
    answers = cluster.commit(
        {group: {at: CommittedOffset(4) for at in (absent, first, beyond)}}, share_groups=[group]
    )[group]
    assert answers[first] is None
    assert is_missing(answers[absent])
    assert is_missing(answers[beyond])
    assert share_offsets_of(cluster, group) == {
        first: CommittedOffset(4),
        second: CommittedOffset(0),
    }


@pytest.mark.since(*SHARE_OFFSETS)
def test_a_group_is_not_moved_as_one_of_another_type(stand, cluster, partition):
    """A share group has no committed offsets, a consumer group no start offsets: there are none to
    read, and setting them fails, for another reason than members. In one call each group is read
    as what it is."""
    consumers, sharing = stand.unique("group"), stand.unique("group")
    five = CommittedOffset(5)
    set_share_offset(cluster, sharing, partition, five)
    assert cluster.commit({consumers: {partition: five}}) == {consumers: {partition: None}}
    for group, share_groups in ((sharing, ()), (consumers, (consumers,))):
        moved = {group: {partition: CommittedOffset(7)}}
        refused = cluster.commit(moved, share_groups=share_groups)[group][partition]
        assert refused.kind is FailureKind.COORDINATOR
        assert not refused.group_active
        assert not refused.retry_seconds
        found = cluster.committed([group], share_groups=share_groups, require_stable=True)
        assert found.by_group() == {group: {}}
    both = cluster.committed([consumers, sharing], share_groups=[sharing], require_stable=True)
    assert both.by_group() == {consumers: {partition: five}, sharing: {partition: five}}


def test_offsets_of_an_open_transaction_are_not_stable(stand, cluster):
    """Without `require_stable` the last stable offset is read; with it nothing is, until the
    transaction ends; then its offset counts."""
    partition, group = stand.partition(), stand.unique("group")
    stand.append(partition, numbered(range(8)))
    cluster.commit({group: {partition: CommittedOffset(3)}})
    with stand.pending_offset(group, partition, 6) as commit:
        assert offsets_of(cluster, group, require_stable=False) == {partition: CommittedOffset(3)}
        answers = cluster.committed([group], require_stable=True).by_group()[group]
        unstable = answers if isinstance(answers, Failed) else answers[partition]
        assert unstable.kind is FailureKind.COORDINATOR
        commit()
    stable = offsets_of(cluster, group)
    assert stable[partition].offset == 6


def test_a_single_look_takes_offsets_as_it_finds_them(stand, cluster):
    """A group whose offset waits for a transaction says so at once, and for how long it may be
    worth asking again; the others have their offsets."""
    partition, group, other = stand.partition(), stand.unique("group"), stand.unique("group")
    stand.append(partition, numbered(range(8)))
    commits = {name: {partition: CommittedOffset(3)} for name in (group, other)}
    assert cluster.commit(commits) == {name: {partition: None} for name in commits}
    with stand.pending_offset(group, partition, 6) as commit:
        found = cluster.committed([group, other], require_stable=True, within_seconds=30)
        answers = found.by_group()
        assert answers[other] == commits[other]
        there = answers[group]
        unstable = there if isinstance(there, Failed) else there[partition]
        assert unstable.kind is FailureKind.COORDINATOR
        assert 2 <= unstable.retry_seconds <= 3
        commit()
    found = cluster.committed([group], require_stable=True, within_seconds=30)
    stable = found.by_group()[group]
    assert isinstance(stable[partition], CommittedOffset)


def test_a_commit_that_may_not_be_sent_is_not(stand, cluster, partition):
    """Each group is asked about once, right before its request; the others are committed. The
    failure is one to ask again about."""
    groups = [stand.unique("group") for _ in range(3)]
    asked: list[str] = []

    def may_send(group):
        asked.append(group)
        return group != groups[1]

    commits = {group: {partition: CommittedOffset(5)} for group in groups}
    cluster.committed(groups, require_stable=True)
    answers = cluster.commit(commits, may_send=may_send)
    assert sorted(asked) == sorted(groups)
    assert answers[groups[0]] == answers[groups[2]] == {partition: None}
    refused = answers[groups[1]][partition]
    assert refused.kind is FailureKind.TIMEOUT
    assert refused.retry_seconds > 0
    there = cluster.committed(groups, require_stable=True).by_group()
    assert there == {**commits, groups[1]: {}}
    (refused,) = cluster.commit({groups[1]: commits[groups[1]]}, may_send=lambda _: False)[
        groups[1]
    ].values()
    assert isinstance(refused, Failed)


def test_offsets_of_a_deleted_topic_are_gone(stand, cluster):
    """What was committed for a topic goes with it; the group's other offsets stay."""
    gone, kept = stand.partition(), stand.partition()
    group = stand.unique("group")
    cluster.commit({group: {gone: CommittedOffset(5), kept: CommittedOffset(6)}})
    stand.delete_topic(gone.topic)
    stand.wait_until_forgotten(group, gone)
    assert offsets_of(cluster, group) == {kept: CommittedOffset(6)}


def test_a_cluster_is_its_own_context(stand):
    fresh = stand.another_cluster()
    with fresh as entered:
        assert entered is fresh
        assert entered.describe().brokers
        assert entered.alias == fresh.alias


# --- both, side by side -------------------------------------------------------------------


def history(stand: Stand, seed: int) -> TopicPartition:
    """A log that this seed always makes: batches, transactions ended, mingled and left open,
    times in disorder, a start inside it."""
    chance = random.Random(seed)
    partition = stand.partition()
    end = 0

    def some() -> list[Message]:
        return [
            Message(
                chance.choice([None, NOW_MS + chance.randrange(30)]),
                chance.choice([None, b"", b"k%d" % chance.randrange(9)]),
                chance.choice([None, b"", b"v%d" % chance.randrange(9)]),
                chance.choice([(), (("h", b"x"),), (("h", None), ("i", b""))]),
            )
            for _ in range(chance.randrange(1, 8))
        ]

    for _ in range(8):
        kind = chance.choice(["plain", "plain", "plain", "transaction", "mingled"])
        if kind == "plain":
            messages = some()
            stand.append(partition, messages, batch_size=chance.randrange(1, 4))
            end += len(messages)
            continue
        with stand.transaction(partition) as first, stand.transaction(partition) as second:
            for transaction in (first, second, first)[: 3 if kind == "mingled" else 1]:
                messages = some()
                # kafka-python's producer sends no record with neither key nor value, and
                # none without a time.
                messages = [
                    Message(message.timestamp_ms or NOW_MS, message.key or b"k", message.value)
                    for message in messages
                ]
                transaction.append(messages)
                end += len(messages)
            first.commit() if chance.random() < 0.5 else first.abort()
            end += 1
            if kind == "mingled":
                second.abort()
                end += 1
    stand.delete_records(partition, chance.randrange(end // 3))
    return partition


def compacted_history(stand: Stand, seed: int) -> TopicPartition:
    """A log of few keys that this seed always makes, compacted but for its last batch."""
    chance = random.Random(seed)
    return stand.compacted(
        [
            [
                Message(NOW_MS + 3 * number + chance.randrange(2), b"k%d" % chance.randrange(5))
                for _ in range(chance.randrange(1, 5))
            ]
            for number in range(chance.randrange(3, 11))
        ]
    )


@pytest.mark.parametrize(
    ("version", "seed"),
    [
        pytest.param(version, seed, marks=marks)
        for version, marks in BROKERS.items()
        for seed in (range(4) if version == KAFKA_VERSION else range(1))
    ],
)
@pytest.mark.parametrize("told", [history, compacted_history])
def test_memory_and_broker_answer_alike(broker_stand, unique, told, seed, version):
    """One history told to both: every read at every offset and every lookup agree."""
    stands = (MemoryStand(unique), broker_stand(version))
    memory, broker = (answers(Log(stand, told(stand, seed))) for stand in stands)
    if stands[1].version < YOUNGEST:
        memory |= {(isolation, "youngest"): None for isolation in BOTH}
    assert memory == broker


def answers(log: Log) -> dict[object, object]:
    """All that can be asked of one log, without what the two may differ in: the bytes of a
    batch, the time of a marker and the words of a failure."""
    cluster, partition = log.stand.cluster, log.partition
    told: dict[object, object] = {}
    for isolation in BOTH:
        reached = log.range(isolation)
        told[isolation] = reached
        numbers = range(reached.end + 2)
        reads = [ReadFrom(partition, number, size) for number in numbers for size in (1, WIDE)]
        for request, read_answer in cluster.read(reads, isolation).items():
            told[isolation, request.offset, request.max_bytes] = (
                replace(read_answer, bytes_read=0)
                if isinstance(read_answer, FetchedRange)
                else read_answer.kind
            )
        times = [FirstAtTime(partition, NOW_MS + time) for time in range(-1, 32)]
        for time, found in cluster.first_at_times(times, isolation).items():
            told[isolation, time.timestamp_ms] = getattr(found, "offset", found)
        last = log.youngest(isolation)
        told[isolation, "youngest"] = getattr(last, "offset", last)
    return told
