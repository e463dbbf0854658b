"""A group on the target is moved forward or not at all."""

import pytest

from tests.scenarios.estate import Estate
from tests.scenarios.holdings import ORDERS, TRIMMED
from tsoffset.model import OutcomeKind, Precision, Reason

pytestmark = pytest.mark.integration

REMOTE = f"A.{ORDERS}"


def commits_written(estate: Estate) -> dict[int, int]:
    """The log ends of the target's `__consumer_offsets`: every commit moves one of them."""
    return {
        partition: estate.contents["B"].log_range("__consumer_offsets", partition)[1]
        for partition in range(4)
    }


@pytest.mark.parametrize(
    ("target_offset", "outcome", "reason", "after"),
    [
        (399, OutcomeKind.COMMITTED, None, 400),
        (400, OutcomeKind.UNCHANGED, None, 400),
        (401, OutcomeKind.SKIPPED, Reason.TARGET_AHEAD, 401),
        (900, OutcomeKind.SKIPPED, Reason.TARGET_AHEAD, 900),
    ],
)
def test_target_commit_decides(
    estate: Estate, target_offset: int, outcome: OutcomeKind, reason: Reason | None, after: int
) -> None:
    """Behind its translation a group is moved to it, at it or ahead of it it is left alone;
    the translation is told all the same."""
    group = f"never-backwards-{target_offset}"
    estate.contents["A"].commit_offsets(group, {(ORDERS, 0): 400 + TRIMMED})
    estate.contents["B"].commit_offsets(group, {(REMOTE, 0): target_offset})
    row = estate.sync("A->B", group).of(group, ORDERS)
    assert (row.outcome, row.reason) == (outcome, reason)
    assert (row.target_offset, row.precision) == (400, Precision.EXACT)
    assert row.current_target_offset == target_offset
    assert estate.contents["B"].committed_offsets(group) == {(REMOTE, 0): (after, "")}


def test_second_sync_commits_nothing(estate: Estate) -> None:
    """With nothing new on the source every row of a second sync is unchanged, and nothing is
    written to the target."""
    for offset in (TRIMMED, 555, 1000):
        group = f"twice-{offset}"
        estate.contents["A"].commit_offsets(group, {(ORDERS, 0): offset, (ORDERS, 1): offset})
    first = estate.sync("A->B", "twice-.*")
    assert [row.outcome for row in first.all] == [OutcomeKind.COMMITTED] * 6
    before = commits_written(estate)
    second = estate.sync("A->B", "twice-.*")
    assert [row.outcome for row in second.all] == [OutcomeKind.UNCHANGED] * 6
    assert [row.target_offset for row in second.all] == [row.target_offset for row in first.all]
    assert commits_written(estate) == before


def test_group_that_went_back_on_the_source_stays_on_the_target(estate: Estate) -> None:
    """A group that was reset to an earlier offset is not followed backwards."""
    group = "went-back"
    estate.contents["A"].commit_offsets(group, {(ORDERS, 0): 700})
    assert estate.sync("A->B", group).committed() == {group: 700 - TRIMMED}
    estate.contents["A"].commit_offsets(group, {(ORDERS, 0): 300})
    row = estate.sync("A->B", group).of(group, ORDERS)
    assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.TARGET_AHEAD)
    assert row.target_offset == 300 - TRIMMED
    assert estate.contents["B"].committed_offsets(group)[REMOTE, 0][0] == 700 - TRIMMED


def test_plan_commits_nothing(estate: Estate) -> None:
    """A cycle that only plans says what it would commit, and writes nothing anywhere."""
    group = "planned"
    estate.contents["A"].commit_offsets(group, {(ORDERS, 0): 321})
    before = commits_written(estate)
    row = estate.sync("A->B", group, commit=False).of(group, ORDERS)
    assert (row.outcome, row.target_offset) == (OutcomeKind.WOULD_COMMIT, 321 - TRIMMED)
    assert commits_written(estate) == before
    assert estate.contents["B"].committed_offsets(group) == {}
