"""Logs that have lost records since they were mirrored."""

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from tests.producing import Contents
from tests.scenarios.corner_cases.answers import every, fail_over, judged, logs_of
from tests.scenarios.corner_cases.corners import DEEP, PLAIN, Corners
from tests.scenarios.corner_cases.holdings import (
    DELETED,
    RECORDS,
    SHORT_LIVED,
    SHORT_RETENTION_MS,
    TRIMMED,
)
from tests.scenarios.estate import wait_until
from tsoffset.model import Precision, Reason, Skipped, Translated

pytestmark = pytest.mark.integration

END = TRIMMED + RECORDS


def test_records_deleted_on_both_sides(corners: Corners) -> None:
    """DeleteRecords, inside batches: a group below the source's start is told, for there its
    own auto.offset.reset decides; below the target's start a group resumes at that; from there
    on at its record. With nothing left on the target groups go to its end; that of a group
    which has not read all is not called exact, for the mirror may still bring what it has."""
    source, target = corners.sides(PLAIN)
    remote = corners.remote(PLAIN, DELETED)
    source.delete_records(DELETED, 333)
    for before in (111, 777):
        target.delete_records(remote, before)
        logs = logs_of(corners, PLAIN, DELETED)
        answers = judged(corners, PLAIN, DELETED, every(logs, 3), logs)
        assert answers.exact == answers.positions
        fail_over(corners, PLAIN, DELETED, logs)
        for row in corners.sync(PLAIN, f"{DELETED}-.*").all:
            target.admin.delete_groups([row.group])
    (told,) = corners.translate(PLAIN, DELETED, [332]).positions
    assert isinstance(told.translation.outcome, Skipped)
    assert told.translation.outcome.reason is Reason.EXPIRED
    target.delete_records(remote, RECORDS)
    for position in corners.translate(PLAIN, DELETED, [333, 700, END]).positions:
        found = position.translation.outcome
        assert isinstance(found, Translated), position
        assert found.target_offset == RECORDS
        assert (found.precision is Precision.EXACT) == (position.offset == END), position
        assert found.reread_bound is not None
        assert found.reread_bound <= position.offset


def test_target_that_keeps_records_for_a_shorter_time(corners: Corners) -> None:
    """The target's retention deletes what is older than five days, the source keeps all: groups
    in the part that is gone resume at the target's start, the others at their records. When
    the retention has taken everything, groups resume at the end, for what comes next."""
    _, target = corners.sides(DEEP)
    remote = corners.remote(DEEP, SHORT_LIVED)
    assert target.log_range(remote) == (0, RECORDS)
    keep_for(target, remote, SHORT_RETENTION_MS)
    wait_until(lambda: target.log_range(remote)[0] > RECORDS // 3, "old segments are gone")
    logs = logs_of(corners, DEEP, SHORT_LIVED)
    assert 0 < len(logs.not_mirrored) < RECORDS
    answers = judged(corners, DEEP, SHORT_LIVED, every(logs, 3), logs)
    assert answers.exact == answers.positions
    fail_over(corners, DEEP, SHORT_LIVED, logs)
    keep_for(target, remote, 1)
    wait_until(lambda: target.log_range(remote) == (RECORDS, RECORDS), "all segments are gone")
    for position in corners.translate(DEEP, SHORT_LIVED, [TRIMMED, 500, END]).positions:
        found = position.translation.outcome
        assert isinstance(found, Translated), position
        assert found.target_offset == RECORDS
        assert (found.precision is Precision.EXACT) == (position.offset == END), position
        assert found.reread_bound is not None
        assert found.reread_bound <= position.offset


def keep_for(contents: Contents, topic: str, milliseconds: int) -> None:
    """Set the topic's retention."""
    change = ConfigResource(
        ConfigResourceType.TOPIC, topic, configs={"retention.ms": str(milliseconds)}
    )
    contents.admin.alter_configs([change])
