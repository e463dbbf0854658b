"""Consumers that go on where their groups were synced to, judged by what they really read."""

import pytest

from tests.producing import numbered
from tests.scenarios.holdings import (
    COMPACTED,
    EQUAL_TIMES,
    ORDERS,
    RECORDS,
    RETURNING,
    SAME,
    SAME_RETURNING,
    SAME_TRANSACTIONS,
    TOPICS,
    TRANSACTIONS,
    TRIMMED,
)
from tests.scenarios.judging import CopiedLogs
from tsoffset.model import OutcomeKind, Precision

pytestmark = pytest.mark.integration

PLACES = (
    ("A->B", ORDERS, 0),
    ("A->B", ORDERS, 1),
    ("A->B", EQUAL_TIMES, 0),
    ("A->B", COMPACTED, 0),
    ("A->B", TRANSACTIONS, 0),
    ("X->Y", SAME, 0),
    ("X->Y", SAME_TRANSACTIONS, 0),
)
# Flows that lead back to where topics came from.
BACK = ("B->A", "Y->X")


@pytest.mark.parametrize(("flow", "topic", "partition"), PLACES)
def test_consumer_gets_exactly_what_was_not_processed(estate, flow, topic, partition):
    """On the target a group's consumer gets the records from the source's commit on, all of
    them and no other: 0 skipped, 0 re-read."""
    logs = CopiedLogs(estate, flow, topic, partition)
    assert not logs.not_mirrored
    logs.fail_over()


@pytest.mark.parametrize(
    ("flow", "topic", "partition", "step"),
    [
        ("A->B", ORDERS, 1, 10),
        ("A->B", EQUAL_TIMES, 0, 3),
        ("A->B", COMPACTED, 0, 1),
        ("A->B", TRANSACTIONS, 0, 1),
        ("X->Y", SAME, 0, 10),
        ("X->Y", SAME_TRANSACTIONS, 0, 1),
        # Back to where they came from.
        ("B->A", f"A.{ORDERS}", 0, 10),
        ("B->A", f"A.{EQUAL_TIMES}", 0, 13),
        ("B->A", f"A.{COMPACTED}", 0, 3),
        ("B->A", f"A.{TRANSACTIONS}", 0, 1),
        ("Y->X", SAME, 0, 10),
    ],
)
def test_every_position_of_a_log_is_exact(estate, flow, topic, partition, step):
    """Whatever offset a group may have committed, holes, markers and aborted records
    included: from its translation on lie the records from that offset on, and it says so.
    What lies on one side only does not count: aborted records that the mirror took for records.
    """
    logs = CopiedLogs(estate, flow, topic, partition)
    assert flow in BACK or not logs.not_mirrored
    assert logs.inexact(logs.every(step)) == {}


@pytest.mark.parametrize(
    ("forth", "back", "topic"),
    [("A->B", "B->A", RETURNING), ("X->Y", "Y->X", SAME_RETURNING)],
    ids=["DefaultReplicationPolicy", "IdentityReplicationPolicy"],
)
def test_group_comes_back_to_the_original(estate, forth, back, topic):
    """A group that failed over to the mirror and read on there comes back to the record that
    it would read next. One that has read all of the mirror resumes behind the last record
    that was mirrored, never at the end of the original: records lie there that the mirror
    never had."""
    home, away = (estate.contents[alias] for alias in (forth[0], forth[-1]))
    remote = estate.remote(forth, topic)
    half_way, all_read = f"{forth[0]}-came-back-half-way", f"{forth[0]}-came-back-at-the-end"
    for group in (half_way, all_read):
        home.commit_offsets(group, {(topic, 0): 300})
    rows = estate.sync(forth, f"{forth[0]}-came-back-.*")
    assert set(rows.committed().values()) == {300 - TRIMMED}

    (_, end) = away.log_range(remote)
    away.commit_offsets(half_way, {(remote, 0): 500})
    away.commit_offsets(all_read, {(remote, 0): end})
    not_mirrored = numbered(50, first=2 * RECORDS)
    home.produce(topic, not_mirrored)
    rows = estate.sync(back, f"{forth[0]}-came-back-.*")

    for group, offset in ((half_way, 500 + TRIMMED), (all_read, end + TRIMMED)):
        row = rows.of(group, remote)
        assert (row.outcome, row.target_topic) == (OutcomeKind.COMMITTED, topic), row
        assert (row.target_offset, row.precision) == (offset, Precision.EXACT)
    got = home.read(topic, group=all_read, isolation="read_committed")
    assert [record.value for record in got] == [record.value for record in not_mirrored]


def test_file_that_runs_mirror_maker_is_taken_as_it_is(estate):
    """The file that MirrorMaker 2 has mirrored by, workers' settings and all, gives the same flows
    here, without a warning. That it writes down nothing about offsets is no loss: with
    emit.offset-syncs.enabled=false and checkpoints off there is no such topic."""
    assert estate.settings.warnings == ()
    assert {flow.name for flow in estate.settings.select()} == {*TOPICS}
    for alias in "AB":
        topics = estate.contents[alias].admin.list_topics()
        assert "__consumer_offsets" in topics
        assert not [topic for topic in topics if "offset-syncs" in topic or "checkpoints" in topic]
