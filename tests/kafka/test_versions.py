"""Clusters of different versions of Kafka, side by side.

What the adapter asks of each, and that they answer alike, is in `testing/test_cluster_contract.py`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition as KafkaTopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import UnsupportedForMessageFormatError
from kafka.structs import OffsetAndMetadata

from tests.configured import properties_file
from tests.producing import Contents, Written, numbered
from tests.scenarios.flows import member, one_cycle
from tests.waiting import wait_until
from tsoffset.commands.check.findings import Severity
from tsoffset.commands.check.flow_check import check
from tsoffset.config.loading import Configuration
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.lab.embedded import KAFKA_VERSION
from tsoffset.model import CommittedOffset, OutcomeKind, Precision, Reason, TopicPartition

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

NEWEST, KRAFT, ZOOKEEPER, OLDEST = KAFKA_VERSION, "3.9.2", "2.8.2", "2.5.1"
BETWEEN = pytest.mark.long
"""For versions between others: what they are asked is what an older or a newer one is asked."""
RECORDS, TRIMMED = 300, 50

ContentsOf = Callable[[str], Contents]


@pytest.fixture(scope="module")
def contents_of(broker_of) -> Iterator[ContentsOf]:
    """A function that gives what a cluster of that version holds."""
    with ExitStack() as stack:
        yield cache(lambda v: stack.enter_context(closing(Contents(broker_of(v).bootstrap))))


# --- one end to end -----------------------------------------------------------------------


class Copied:
    """A topic on A whose two partitions have lost their first records and hold transactions, its
    copy on B made by a reader and writer in order, and groups that members have committed."""

    def __init__(self, here: Contents, there: Contents, unique: Callable[[str], str]) -> None:
        self.here, self.there = here, there
        self.topic, self.prefix = unique("orders"), unique("billing")
        self.copy = f"A.{self.topic}"
        here.create_topic(self.topic, 2)
        there.create_topic(self.copy, 2)
        for partition, step_ms in enumerate((1, 0)):
            records = numbered(RECORDS, step_ms=step_ms)
            here.produce(self.topic, records[:100], partition=partition, batch=7)
            for end in ("commit", "abort"):
                transaction = here.begin_transaction(unique("transaction"))
                transaction.add(self.topic, numbered(5, first=1_000), partition=partition)
                getattr(transaction, end)()
            here.produce(self.topic, records[100:], partition=partition, compression="gzip")
            here.delete_records(self.topic, TRIMMED, partition=partition)
            copied = self.read_here(partition)
            there.produce(
                self.copy,
                [Written(r.timestamp_ms, r.value, r.key) for r in copied.values()],
                partition=partition,
            )
        self.end = here.log_range(self.topic)[1]

    def read_here(self, partition: int) -> dict[int, Any]:
        read = self.here.read(self.topic, partition, isolation="read_committed")
        return {record.offset: record for record in read}

    def group(self, offset: int) -> str:
        """A group whose member has committed this offset in both partitions."""
        name = f"{self.prefix}-{offset}"
        places = [KafkaTopicPartition(self.topic, partition) for partition in range(2)]
        with member(self.here, name, self.topic) as consumer:
            consumer.commit({place: OffsetAndMetadata(offset, "kept", -1) for place in places})
        return name

    def left(self, partition: int, offset: int) -> list[bytes | None]:
        """The values of what a group has not read on A."""
        return [r.value for at, r in self.read_here(partition).items() if at >= offset]


@pytest.mark.parametrize(
    ("here", "there"),
    [
        pytest.param(ZOOKEEPER, NEWEST, marks=BETWEEN),
        pytest.param(NEWEST, ZOOKEEPER, marks=BETWEEN),
        (KRAFT, NEWEST),
        (NEWEST, KRAFT),
        (OLDEST, NEWEST),
        (NEWEST, OLDEST),
    ],
)
def test_groups_are_synced_between_versions(contents_of, unique, tmp_path, here, there):
    """Each group gets on the target just what it had not read on the source; one whose members
    run there keeps what they have; `check` finds no error; a second sync commits nothing."""
    copied = Copied(contents_of(here), contents_of(there), unique)
    offsets = (TRIMMED, 77, 103, 109, 200, copied.end)
    groups = {copied.group(offset): offset for offset in offsets}
    busy = copied.group(150)
    lines = [f"groups = {copied.prefix}-.*", "A.consumer.isolation.level = read_committed"]
    file = properties_file(tmp_path, copied.here.bootstrap, copied.there.bootstrap, *lines)
    flow = Configuration.read(file).resolve().flow("A->B")
    with member(copied.there, busy, copied.copy):
        if there == OLDEST:
            # It tells no states of groups, so only the commit meets the members.
            planned = one_cycle(flow, commit=False)
            assert planned.of(busy, copied.topic).outcome is OutcomeKind.WOULD_COMMIT
        rows = one_cycle(flow)
    for partition in range(2):
        assert rows.of(busy, copied.topic, partition).reason is Reason.GROUP_ACTIVE
        for group, offset in groups.items():
            row = rows.of(group, copied.topic, partition)
            assert (row.outcome, row.precision) == (OutcomeKind.COMMITTED, Precision.EXACT), row
            got = copied.there.read(copied.copy, partition, group=group, isolation="read_committed")
            assert [record.value for record in got] == copied.left(partition, offset)
    assert copied.there.committed_offsets(busy) == {}
    for row in one_cycle(flow).all:
        expected = OutcomeKind.COMMITTED if row.group == busy else OutcomeKind.UNCHANGED
        assert row.outcome is expected, row
    findings = check([flow], KafkaCluster).findings
    assert Severity.ERROR not in {one.severity for one in findings}, findings


# --- what old brokers cannot be asked -----------------------------------------------------


@pytest.fixture(params=[pytest.param(ZOOKEEPER, marks=BETWEEN), OLDEST])
def old(request, contents_of) -> Contents:
    contents: Contents = contents_of(request.param)
    return contents


@pytest.fixture
def cluster(old) -> Iterator[KafkaCluster]:
    with KafkaCluster(ClusterSettings("A", (old.bootstrap,))) as cluster:
        yield cluster


def test_old_brokers_are_asked_for_one_group_a_request(old, cluster, unique):
    """Before 3.0 neither coordinators nor offsets of several groups are told at once."""
    tp = TopicPartition(old.create_topic(unique("topic")), 0)
    names = [unique("group") for _ in range(3)]
    assert cluster.commit({group: {tp: CommittedOffset(3, "m")} for group in names}) == {
        group: {tp: None} for group in names
    }
    unknown = unique("group")
    assert cluster.committed([*names, unknown], require_stable=True).by_group() == {
        **{group: {tp: CommittedOffset(3, "m")} for group in names},
        unknown: {},
    }
    assert cluster.requests["find_coordinator"] == 4
    assert cluster.requests["offset_fetch"] == 4


# --- old message formats ------------------------------------------------------------------


def rows_of_each_position(
    folder: Path, here: Contents, there: Contents, topic: str, unique: Callable[[str], str]
) -> Mapping[int, Any]:
    """The row of each position of the topic on A, of which B holds a copy."""
    copy = there.create_topic(f"A.{topic}")
    records = here.read(topic)
    there.produce(copy, [Written(r.timestamp_ms, r.value, r.key) for r in records])
    start, end = here.log_range(topic)
    prefix = unique("group")
    for offset in range(start, end + 1):
        here.commit_offsets(f"{prefix}-{offset}", {(topic, 0): offset})
    file = properties_file(folder, here.bootstrap, there.bootstrap, f"groups = {prefix}-.*")
    rows = one_cycle(Configuration.read(file).resolve().flow("A->B"), commit=False).all
    assert len(rows) == end + 1 - start
    return {row.source_offset or 0: row for row in rows}


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("there", [OLDEST, NEWEST])
def test_topics_of_message_format_1_are_translated(
    contents_of, unique, tmp_path, compression, there
):
    """Its messages have timestamps, so all is as with the format of today."""
    here = contents_of(OLDEST)
    configs = {"message.format.version": "0.10.0"}
    topic = here.create_topic(unique("format-1"), configs=configs)
    here.produce(topic, numbered(60), batch=5, compression=compression)
    here.delete_records(topic, 20)
    rows = rows_of_each_position(tmp_path, here, contents_of(there), topic, unique)
    for offset, row in rows.items():
        assert row.outcome is OutcomeKind.WOULD_COMMIT, row
        assert (row.target_offset, row.precision) == (offset - 20, Precision.EXACT)


def test_a_topic_may_have_outgrown_message_format_0(contents_of, unique, tmp_path):
    """Where records of today follow, their positions are exact; the others stay as they were."""
    here, there = contents_of(OLDEST), contents_of(NEWEST)
    topic = here.create_topic(unique("format-0"), configs={"message.format.version": "0.9.0"})
    here.produce(topic, numbered(30), batch=5)
    later = ConfigResource(ConfigResourceType.TOPIC, topic, {"message.format.version": "2.5"})
    here.admin.alter_configs([later])

    def taken_up():
        try:
            here.admin.list_partition_offsets({KafkaTopicPartition(topic, 0): 0})
        except UnsupportedForMessageFormatError:
            return False
        return True

    wait_until(taken_up, f"{topic} is written in the format of today")
    here.produce(topic, numbered(30, first=30), batch=5)
    here.delete_records(topic, 20)
    rows = rows_of_each_position(tmp_path, here, there, topic, unique)
    for offset, row in rows.items():
        assert row.outcome is OutcomeKind.WOULD_COMMIT, row
        if 20 < offset < 30:
            assert (row.target_offset, row.reread_bound) == (0, offset)
        else:
            assert row.target_offset == offset - 20
            assert offset < 30 or row.precision is Precision.EXACT, row
