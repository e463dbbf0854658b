"""Topics that are not kept alike on the two clusters."""

import pytest

from tests.scenarios.flows import Flows, read_on
from tests.scenarios.holdings import (
    RECORDS,
    SHORTENED,
    STAMPED_HERE,
    STAMPED_THERE,
    TRIMMED,
    TRIMMED_THERE,
)
from tsoffset.model import OutcomeKind, Precision, Reason

pytestmark = pytest.mark.integration


def test_mirror_that_keeps_less_is_read_from_its_start(estate: Flows) -> None:
    """Where the target has deleted what a group would read next, the group resumes at the
    target's log start; further on, at its record."""
    positions = (TRIMMED, 250, 449, 450, 451, RECORDS - 1, RECORDS)
    for position in positions:
        estate.contents["A"].commit_offsets(f"shortened-{position}", {(SHORTENED, 0): position})
    rows = estate.sync("A->B", "shortened-.*")
    source = estate.contents["A"].read(SHORTENED)
    for position in positions:
        row = rows.of(f"shortened-{position}", SHORTENED)
        assert (row.outcome, row.precision) == (OutcomeKind.COMMITTED, Precision.EXACT), row
        assert row.target_offset == max(TRIMMED_THERE, position - TRIMMED)
        place = (estate.remote("A->B", SHORTENED), 0)
        got = read_on(estate.contents["B"], f"shortened-{position}", place)
        still_there = max(TRIMMED + TRIMMED_THERE, position)
        assert [r.value for r in got] == [r.value for r in source if r.offset >= still_there]


def test_source_that_stamps_records_itself_is_no_obstacle(estate: Flows) -> None:
    """MirrorMaker 2 copies the times at which the source's log took the records, and by
    default not the setting: with LogAppendTime on the source alone positions are exact."""
    for position in (TRIMMED, 333, RECORDS - 1, RECORDS):
        estate.contents["A"].commit_offsets(f"stamped-{position}", {(STAMPED_HERE, 0): position})
    for row in estate.sync("A->B", "stamped-.*").all:
        assert (row.outcome, row.precision) == (OutcomeKind.COMMITTED, Precision.EXACT), row
        assert row.source_offset is not None
        assert row.target_offset == row.source_offset - TRIMMED


def test_target_that_stamps_records_itself_is_said(estate: Flows) -> None:
    """With LogAppendTime on the target nothing can be looked up by time: every row of the
    topic says so, and nothing is committed."""
    for position in (TRIMMED, 333, RECORDS):
        estate.contents["A"].commit_offsets(f"restamped-{position}", {(STAMPED_THERE, 0): position})
    rows = estate.sync("A->B", "restamped-.*")
    assert len(rows.with_reason(Reason.TARGET_REWRITES_TIMESTAMPS)) == len(rows.all) == 3
    assert all(row.target_offset is None for row in rows.all)
    for row in rows.all:
        assert estate.contents["B"].committed_offsets(str(row.group)) == {}
