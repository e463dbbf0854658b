"""Logs that change while MirrorMaker 2 goes on running, on real brokers."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.admin import OffsetSpec

from tests.producing import Contents, Written, numbered
from tests.scenarios.flows import Flows, prepare_mirror
from tests.scenarios.judging import CopiedLogs
from tests.scenarios.streams import further_jar
from tests.waiting import wait_until
from tsoffset.errors import JarsUnavailable
from tsoffset.lab.embedded import EmbeddedBroker
from tsoffset.model import OutcomeKind, Precision, Reason

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

# The second flow is between two topics of one cluster, which has tiered storage.
FLOW, BETWEEN_TIERS = "here->there", "deep->tiers"
DELETED, SOURCE_ANEW, TARGET_ANEW = "deleted", "source-anew", "target-anew"
TIERED, UNSTAMPED = "tiered", "unstamped"
RECORDS = 1000
# What logs have lost at their start before they are mirrored, so that no offset is the same on
# both sides.
TRIMMED = 100

# local.retention.ms: what has been moved to the other tier goes from the disk at once. A segment
# ends at a batch whose records are later by more than segment.ms, and only closed ones are moved.
TIERING = {"segment.ms": "1000", "remote.storage.enable": "true", "local.retention.ms": "1"}
# The tiered storage that Kafka's own tests use, in a folder of this machine.
_STORAGE = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
_STORAGE_JAR = "f3236936854c13815ffaa7f35a3f2d6861c125616cba5395b538b8680dded886"


def tiered_properties(jar: Path, folder: Path) -> dict[str, str]:
    """What a broker needs to move closed segments into a folder soon."""
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": _STORAGE,
        "remote.log.storage.manager.class.path": str(jar),
        "remote.log.storage.manager.impl.prefix": "rsm.config.",
        "rsm.config.dir": str(folder),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "remote.log.manager.task.interval.ms": "500",
    }


@pytest.fixture(scope="session")
def tiered(tmp_path_factory) -> Iterator[Contents | None]:
    """A cluster with tiered storage; None where its jar cannot be fetched."""
    try:
        jar = further_jar("tiers", "kafka-storage", _STORAGE_JAR, "-test")
    except JarsUnavailable:
        yield None
        return
    folder = tmp_path_factory.mktemp("tiered")
    properties = {
        "log.retention.check.interval.ms": "300",
        "log.initial.task.delay.ms": "300",
        **tiered_properties(jar, folder / "other-tier"),
    }
    with (
        EmbeddedBroker(folder, name="tiered", properties=properties) as broker,
        closing(Contents(broker.bootstrap)) as contents,
    ):
        yield contents


@pytest.fixture(scope="session")
def flows(source, target, tiered, tmp_path_factory) -> Iterator[Flows]:
    """All topics filled and mirrored. Once in a session: xdist may run tests of other modules
    between those of this one, and then the topics are there already."""
    clusters = {"here": source, "there": target}
    filled = [DELETED, SOURCE_ANEW, TARGET_ANEW]
    topics = {FLOW: [*filled, UNSTAMPED]}
    if tiered is not None:
        clusters |= {"deep": tiered, "tiers": tiered}
        topics |= {BETWEEN_TIERS: [TIERED]}
    overrides = {
        # A batch that is later begins a new segment there: many small ones.
        "tiers.producer.batch.size": "2000",
        "deep->tiers.sync.topic.configs.enabled": "false",
    }
    folder = tmp_path_factory.mktemp("corner-cases")
    mirror = prepare_mirror(folder, clusters, topics, overrides, name="corner-cases")
    flows = Flows(clusters, mirror)
    for topic in filled:
        fill(source, topic, RECORDS)
    source.create_topic(UNSTAMPED)
    source.produce(UNSTAMPED, unstamped())
    if tiered is not None:
        tiered.create_topic(TIERED, configs=TIERING)
        # In the past, since only what is older than local.retention.ms leaves the disk.
        start_ms = int(time.time() * 1000) - 200 * RECORDS
        records = numbered(TRIMMED + RECORDS, start_ms=start_ms, step_ms=100)
        tiered.produce(TIERED, records, batch=25)
        tiered.delete_records(TIERED, TRIMMED)
        tiered.create_topic(flows.remote(BETWEEN_TIERS, TIERED), configs=TIERING)
    with ExitStack() as running:
        # To stop in order takes it a while.
        running.callback(mirror.kill)
        mirror.start()
        for flow, of_flow in topics.items():
            flows.wait_until_mirrored(flow, *of_flow)
        yield flows


def fill(contents: Contents, topic: str, count: int, first: int = 0) -> None:
    """A new topic with so many records, behind a hundred that are gone."""
    contents.create_topic(topic)
    contents.produce(topic, numbered(TRIMMED + count, first=first))
    contents.delete_records(topic, TRIMMED)


def unstamped() -> list[Written]:
    """Few records, which are read whole. Every third has no timestamp, and the last four have none
    either, as from clients of Kafka before 0.10."""
    return [
        replace(record, timestamp_ms=-1) if number % 3 == 2 or number >= 8 else record
        for number, record in enumerate(numbered(12))
    ]


def test_records_without_a_timestamp(flows):
    """MirrorMaker 2 stamps their copies with the time of copying, so that no copy equals its
    record: groups read some of them again, and skip none."""
    logs = CopiedLogs(flows, FLOW, UNSTAMPED)
    assert logs.not_mirrored == set()
    assert all(record.timestamp_ms > 0 for record in logs.target)
    logs.inexact(logs.every())


def test_records_deleted_on_both_sides(flows):
    """DeleteRecords, inside batches: a group below the source's start is told, for there its
    own auto.offset.reset decides; below the target's start a group resumes at that; from there
    on at its record. With nothing left on the target a group that has read all goes to its end,
    and no position is called exact, for there is no record to prove it."""
    source, target = flows.sides(FLOW)
    remote = flows.remote(FLOW, DELETED)
    source.delete_records(DELETED, 333)
    for before in (111, 777):
        target.delete_records(remote, before)
        logs = CopiedLogs(flows, FLOW, DELETED)
        assert logs.inexact(logs.every(3)) == {}
        logs.fail_over()
        for row in flows.sync(FLOW, f"{DELETED}-.*").all:
            target.admin.delete_groups([row.group])
    target.delete_records(remote, RECORDS)
    expired, *others, last = flows.translate(FLOW, DELETED, [332, 333, 700, TRIMMED + RECORDS])
    assert expired.reason is Reason.EXPIRED
    assert last.reason is None
    for row in (*others, last):
        if row.reason is None:
            assert row.target_offset == RECORDS
            assert row.precision in (Precision.FRONTIER, Precision.BOUNDED)
            assert row.reread_bound <= row.source_offset
        else:
            assert row.reason is Reason.NOT_MIRRORED


def test_source_made_anew(flows):
    """The source's topic is deleted and recreated, with fewer records, which the replicator
    copies behind those of the first one. A group that has not noticed and commits where it was
    is past the log's end; every other position is exact, and never leads among the records of
    the topic that is gone."""
    group = "of-the-first"
    source, target = flows.sides(FLOW)
    remote = flows.remote(FLOW, SOURCE_ANEW)
    source.commit_offsets(group, {(SOURCE_ANEW, 0): 900})
    assert flows.sync(FLOW, group).committed() == {group: 900 - TRIMMED}
    (_, first_end) = target.log_range(remote)
    source.delete_topic(SOURCE_ANEW)
    fill(source, SOURCE_ANEW, 300, first=10 * RECORDS)
    flows.wait_until_there(FLOW, SOURCE_ANEW)
    source.commit_offsets(group, {(SOURCE_ANEW, 0): 900})
    row = flows.sync(FLOW, group).of(group, SOURCE_ANEW)
    assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.PAST_LOG_END)
    assert target.committed_offsets(group) == {(remote, 0): (900 - TRIMMED, "")}

    logs = CopiedLogs(flows, FLOW, SOURCE_ANEW)
    assert logs.not_mirrored == set()
    assert logs.inexact(logs.every(3)) == {}
    for row in flows.translate(FLOW, SOURCE_ANEW, logs.every(3)):
        assert row.target_offset >= first_end, row
    source.commit_offsets(group, {(SOURCE_ANEW, 0): 200})
    row = flows.sync(FLOW, group).of(group, SOURCE_ANEW)
    assert (row.outcome, row.precision) == (OutcomeKind.COMMITTED, Precision.EXACT)
    logs.fail_over()


def test_target_made_anew(flows):
    """The copy is deleted, and MirrorMaker 2 recreates it, but continues where it was. What was
    copied before is gone, and so are the groups' offsets. Groups whose next record is gone
    resume at the first record, the others at their own."""
    group = "of-the-first-copy"
    source, target = flows.sides(FLOW)
    remote = flows.remote(FLOW, TARGET_ANEW)
    source.commit_offsets(group, {(TARGET_ANEW, 0): 900})
    assert flows.sync(FLOW, group).committed() == {group: 900 - TRIMMED}
    target.admin.delete_topics([remote])
    wait_until(lambda: target.committed_offsets(group) == {}, "the commit went with the topic")
    flows.mirror_maker.wait_for_topic(target.bootstrap, remote)
    source.produce(TARGET_ANEW, numbered(300, first=TRIMMED + RECORDS))
    flows.wait_until_there(FLOW, TARGET_ANEW)
    logs = CopiedLogs(flows, FLOW, TARGET_ANEW)
    assert len(logs.not_mirrored) == RECORDS
    row = flows.sync(FLOW, group).of(group, TARGET_ANEW)
    assert (row.outcome, row.target_offset) == (OutcomeKind.COMMITTED, 0)
    assert logs.inexact(logs.every(3)) == {}
    logs.fail_over()


def test_log_whose_older_segments_are_in_another_tier(flows, tiered):
    """Closed segments leave the disks of both sides for remote storage; records are fetched and
    times looked up there, and every position is exact."""
    if tiered is None:
        pytest.skip("the storage of Kafka's tests could not be fetched")
    for topic in (TIERED, flows.remote(BETWEEN_TIERS, TIERED)):
        wait_until_moved(tiered, topic)
    logs = CopiedLogs(flows, BETWEEN_TIERS, TIERED)
    assert logs.source[0].offset == TRIMMED
    assert logs.not_mirrored == set()
    assert logs.inexact(logs.every(7)) == {}
    logs.fail_over()


def wait_until_moved(contents: Contents, topic: str) -> None:
    """At least half of the log is on no disk of the broker any more."""

    def moved() -> bool:
        place = TopicPartition(topic, 0)
        found = contents.admin.list_partition_offsets({place: OffsetSpec.EARLIEST_LOCAL})
        return bool(found[place].offset > TRIMMED + RECORDS // 2)

    wait_until(moved, f"{topic} is in the other tier")
