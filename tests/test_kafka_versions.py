"""Clusters of different versions of Kafka, side by side, as real processes.

What the adapter asks of each, and that they answer alike, is in tests/test_cluster_contract.py.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition as KafkaTopicPartition
from kafka.structs import OffsetAndMetadata

from tests.configured import properties_file
from tests.invoking import start
from tests.producing import Contents, Written, numbered
from tests.scenarios.flows import member, one_cycle, read_on
from tsoffset.config.loading import Configuration
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import (
    CommittedOffset,
    Failed,
    Isolation,
    OutcomeKind,
    Precision,
    Reason,
    TopicPartition,
    Youngest,
)
from tsoffset.testing.embedded import KAFKA_VERSION, EmbeddedBroker

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

NEWEST, KRAFT, ZOOKEEPER, OLDEST = KAFKA_VERSION, "3.9.2", "2.8.2", "2.5.1"
SECONDS = 180
RECORDS, TRIMMED = 300, 50

ContentsOf = Callable[[str], Contents]


@pytest.fixture(scope="module")
def contents_of(broker_of: Callable[[str], EmbeddedBroker]) -> Iterator[ContentsOf]:
    """A function that gives what a cluster of that version holds."""
    with ExitStack() as stack:
        yield cache(lambda v: stack.enter_context(closing(Contents(broker_of(v).bootstrap))))


def run(*words: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit status and JSON rows of a command in a process of its own."""
    with start(*words, "--format", "json") as process:
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode in (0, 1), err
    return process.returncode, [json.loads(line) for line in out.splitlines()]


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


@pytest.mark.spark
@pytest.mark.parametrize(
    ("here", "there"),
    [
        (ZOOKEEPER, NEWEST),
        (NEWEST, ZOOKEEPER),
        (KRAFT, NEWEST),
        (NEWEST, KRAFT),
        (OLDEST, NEWEST),
        (NEWEST, OLDEST),
    ],
)
def test_groups_are_synced_between_versions(
    contents_of: ContentsOf, unique: Callable[[str], str], tmp_path: Path, here: str, there: str
) -> None:
    """Each group gets on the target just what it had not read on the source; one whose members
    run there keeps what they have; `check` finds no error; a second sync commits nothing."""
    copied = Copied(contents_of(here), contents_of(there), unique)
    offsets = (TRIMMED, 77, 103, 109, 200, copied.end)
    groups = {copied.group(offset): offset for offset in offsets}
    busy = copied.group(150)
    lines = [f"groups = {copied.prefix}-.*", "spark.master = local[1]"]
    lines.append("A.isolation.level = read_committed")
    file = str(
        properties_file(tmp_path, copied.here.bootstrap, copied.there.bootstrap, *lines)
    )
    with member(copied.there, busy, copied.copy):
        status, rows = run("sync", "-c", file)
    assert status == 0
    found = {(row["group"], row["partition"]): row for row in rows}
    for partition in range(2):
        assert found[busy, partition]["reason"] == Reason.GROUP_ACTIVE
        for group, offset in groups.items():
            row = found[group, partition]
            assert (row["outcome"], row["precision"]) == ("committed", "exact"), row
            got = read_on(copied.there, group, (copied.copy, partition))
            assert [record.value for record in got] == copied.left(partition, offset)
    assert copied.there.committed_offsets(busy) == {}
    status, rows = run("sync", "-c", file)
    assert (status, {row["outcome"] for row in rows}) == (0, {"unchanged", "committed"})
    assert {row["group"] for row in rows if row["outcome"] == "committed"} == {busy}
    status, findings = run("check", "-c", file)
    assert status == 0, findings
