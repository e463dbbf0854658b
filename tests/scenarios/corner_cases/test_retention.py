"""Logs that have lost records since they were mirrored."""

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from tests.producing import Contents
from tests.scenarios.corner_cases.corners import DEEP, PLAIN, Corners
from tests.scenarios.corner_cases.holdings import (
    DELETED,
    RECORDS,
    SHORT_LIVED,
    SHORT_RETENTION_MS,
    TRIMMED,
)
from tests.scenarios.judging import Logs
from tests.waiting import wait_until
from tsoffset.model import Precision, Reason, Skipped, Translated

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

END = TRIMMED + RECORDS


def test_records_deleted_on_both_sides(corners: Corners) -> None:
    """DeleteRecords, inside batches: a group below the source's start is told, for there its
    own auto.offset.reset decides; below the target's start a group resumes at that; from there
    on at its record. With nothing left on the target a group that has read all goes to its
    end."""
    source, target = corners.sides(PLAIN)
    remote = corners.remote(PLAIN, DELETED)
    source.delete_records(DELETED, 333)
    for before in (111, 777):
        target.delete_records(remote, before)
        logs = Logs(corners, PLAIN, DELETED)
        answers = logs.judged(logs.every(3))
        assert answers.exact == 1, answers
        logs.fail_over()
        for row in corners.sync(PLAIN, f"{DELETED}-.*").all:
            target.admin.delete_groups([row.group])
    (told,) = corners.translate(PLAIN, DELETED, [332]).positions
    assert isinstance(told.translation.outcome, Skipped)
    assert told.translation.outcome.reason is Reason.EXPIRED
    target.delete_records(remote, RECORDS)
    nothing_left(corners, PLAIN, DELETED)


def test_target_that_keeps_records_for_a_shorter_time(corners: Corners) -> None:
    """The target's retention deletes what is older than five days, the source keeps all: groups
    in the part that is gone resume at the target's start, the others at their records. When
    the retention has taken everything, groups resume at the end, for what comes next."""
    _, target = corners.sides(DEEP)
    remote = corners.remote(DEEP, SHORT_LIVED)
    assert target.log_range(remote) == (0, RECORDS)
    keep_for(target, remote, SHORT_RETENTION_MS)
    wait_until(lambda: target.log_range(remote)[0] > RECORDS // 3, "old segments are gone")
    logs = Logs(corners, DEEP, SHORT_LIVED)
    assert 0 < len(logs.not_mirrored) < RECORDS
    answers = logs.judged(logs.every(3))
    assert answers.exact == 1, answers
    logs.fail_over()
    keep_for(target, remote, 1)
    wait_until(lambda: target.log_range(remote) == (RECORDS, RECORDS), "all segments are gone")
    nothing_left(corners, DEEP, SHORT_LIVED)


def nothing_left(corners: Corners, flow: str, topic: str) -> None:
    """Of an emptied target a group that has read all resumes at the end, which skips nothing.
    For any other the mirror may still have to come to its record, as far as can be seen: it
    resumes there, too, or waits. None is called exact, for there is no record to prove it."""
    (start, _) = corners.sides(flow)[0].log_range(topic)
    *others, last = corners.translate(flow, topic, [start, 700, END]).positions
    assert isinstance(last.translation.outcome, Translated)
    for position in (*others, last):
        found = position.translation.outcome
        if isinstance(found, Translated):
            assert found.target_offset == RECORDS
            assert found.precision in (Precision.FRONTIER, Precision.BOUNDED)
            assert found.reread_bound is not None
            assert found.reread_bound <= position.offset
        else:
            assert isinstance(found, Skipped)
            assert found.reason is Reason.NOT_MIRRORED


def keep_for(contents: Contents, topic: str, milliseconds: int) -> None:
    """Set the topic's retention."""
    change = ConfigResource(
        ConfigResourceType.TOPIC, topic, configs={"retention.ms": str(milliseconds)}
    )
    contents.admin.alter_configs([change])
