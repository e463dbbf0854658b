"""The commit rule of docs/design.md section 1, held to its words one case at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory_flows import UNCHANGED, WOULD_COMMIT, skipped, verdict
from tests.reference_cycle import LastCommit, decided
from tsoffset.committed import CommittedColumns
from tsoffset.cycle.source_commits import SourceCommit
from tsoffset.cycle.work import TranslatedPosition
from tsoffset.group_sync.commit_rule import decide
from tsoffset.group_sync.read import target_commits, with_current
from tsoffset.group_sync.tables import COMMIT_RESULTS, select
from tsoffset.group_sync.translated_commits import TranslatedCommit, commit_work, result_rows
from tsoffset.model import (
    Basis,
    CommittedOffset,
    Failed,
    FailureKind,
    LogRange,
    Outcome,
    OutcomeKind,
    Precision,
    Reason,
    Row,
    Skipped,
    TopicPartition,
    Translated,
)
from tsoffset.rule.translate import Translation

SOURCE = TopicPartition("orders", 0)
TARGET = TopicPartition("A.orders", 0)
LOG = LogRange(10, 100)
# A translation to 50; no data record lies on the target from 48 up to 52.
TO_50 = Translated(50, Precision.BOUNDED, 3, 48, 52)
UNREADABLE = Failed(FailureKind.COORDINATOR, "the coordinator is away")
NO_PROOF = Skipped(Reason.NO_PROOF, "nothing proves an offset")
NOT_MIRRORED = Skipped(Reason.NOT_MIRRORED, "the mirror is behind")


@dataclass(frozen=True)
class Case:
    """A group at `source_offset` whose target group is at `current`."""

    outcome: Outcome = TO_50
    current: int | Failed | None = None
    source_offset: int = 60
    log: LogRange | None = LOG
    active: bool = False
    last_commit: LastCommit | None = None
    known_verdict: Skipped | Failed | None = None
    rewind_from: int | None = None

    @property
    def there(self) -> CommittedOffset | Failed | None:
        return CommittedOffset(self.current) if isinstance(self.current, int) else self.current

    @property
    def translated(self) -> TranslatedCommit:
        commit = SourceCommit(
            "billing",
            SOURCE,
            CommittedOffset(self.source_offset, "note"),
            TARGET,
            target_active=self.active,
            verdict=self.known_verdict,
        )
        if self.known_verdict is not None:
            return TranslatedCommit(commit)
        translation = Translation(self.outcome, 1_000)
        return TranslatedCommit(
            commit, TranslatedPosition(SOURCE, self.source_offset, translation, self.log)
        )


def rows_for(cases: Sequence[Case], floor: str = "none") -> list[Row]:
    """The rows of these cases, each decided as one of many."""
    last = [case.last_commit for case in cases]
    work = commit_work(case.translated for case in cases).with_columns(
        pl.Series("last_source", [one and one.source_offset for one in last], pl.Int64),
        pl.Series("last_target", [one and one.target_offset for one in last], pl.Int64),
        pl.Series("rewind_from", [case.rewind_from for case in cases], pl.Int64),
        # Each a group of its own.
        group=pl.Series([f"{number}" for number in range(len(cases))], dtype=pl.String),
    )
    current = {
        str(number): {} if case.there is None else {TARGET: case.there}
        for number, case in enumerate(cases)
    }
    rows = with_current(work, target_commits(CommittedColumns.of(current)))
    work = work.with_columns(group=pl.lit("billing"))
    rows = decide(rows.with_columns(group=pl.lit("billing")), floor)
    return list(result_rows("A->B", work, select(rows, COMMIT_RESULTS)))


def row_for(
    outcome: Outcome = TO_50,
    current: int | Failed | None = None,
    *,
    floor: str = "none",
    **changes: Any,
) -> Row:
    """The row of one such group."""
    return rows_for([Case(outcome, current, **changes)], floor)[0]


# --- what the target group has ----------------------------------------------------------


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        (None, WOULD_COMMIT),
        (0, WOULD_COMMIT),
        (9, WOULD_COMMIT),
        (10, WOULD_COMMIT),
        (47, WOULD_COMMIT),
        (48, UNCHANGED),
        (49, UNCHANGED),
        (50, UNCHANGED),
        (51, UNCHANGED),
        (52, UNCHANGED),
        (53, skipped(Reason.TARGET_AHEAD)),
        (99, skipped(Reason.TARGET_AHEAD)),
        (100, skipped(Reason.TARGET_AHEAD)),
        (101, skipped(Reason.TARGET_PAST_LOG_END)),
    ],
)
def test_only_a_commit_below_the_translation_is_moved(current, expected):
    """Commit p only where there is no commit D or p > D, with a data record between them."""
    row = row_for(current=current)
    assert verdict(row) == expected
    assert (row.target_offset, row.current_target_offset) == (50, current)


@pytest.mark.parametrize("current", [LOG.start, LOG.start - 1, 0])
def test_a_commit_below_the_log_start_moves_to_a_translation_at_the_log_start(current):
    """What lies below the target's log start cannot be resumed from: it is committed anew."""
    to_start = Translated(LOG.start, Precision.EXACT, 0, LOG.start, LOG.start)
    expected = UNCHANGED if current == LOG.start else WOULD_COMMIT
    assert verdict(row_for(to_start, current)) == expected


def test_a_log_trimmed_since_does_not_move_a_group_backwards():
    """A commit D that the target's retention has passed since the translation p was found is not
    replaced by p, which is gone too where p < D."""
    assert verdict(row_for(current=150, log=LogRange(160, 200))) == skipped(Reason.TARGET_AHEAD)


def test_a_commit_past_the_log_end_needs_a_log_end():
    """Where the target's range is not known a group that is ahead is not said to be past it."""
    assert verdict(row_for(current=101, log=None)) == skipped(Reason.TARGET_AHEAD)


def test_target_commits_that_cannot_be_read_fail_the_row():
    """Without D nothing is committed; the translation is shown all the same."""
    row = row_for(current=UNREADABLE)
    assert verdict(row) == (OutcomeKind.FAILED, FailureKind.COORDINATOR)
    assert (row.target_offset, row.current_target_offset) == (50, None)
    assert row.message == UNREADABLE.message


# --- groups with members ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        (None, skipped(Reason.GROUP_ACTIVE)),
        (20, skipped(Reason.GROUP_ACTIVE)),
        (50, UNCHANGED),
        (80, skipped(Reason.TARGET_AHEAD)),
        (101, skipped(Reason.TARGET_PAST_LOG_END)),
    ],
)
def test_an_active_group_is_translated_and_not_committed(current, expected):
    """GROUP_ACTIVE is the last reason: it is named only where there was something to commit."""
    row = row_for(current=current, active=True)
    assert verdict(row) == expected
    assert row.target_offset == 50


# --- a source that went back ------------------------------------------------------------


@pytest.mark.parametrize(
    ("source_offset", "current", "last_commit", "expected"),
    [
        (60, 80, LastCommit(90, 80), Reason.SOURCE_REWOUND),
        (89, 80, LastCommit(90, 80), Reason.SOURCE_REWOUND),
        (90, 80, LastCommit(90, 80), Reason.TARGET_AHEAD),
        (91, 80, LastCommit(90, 80), Reason.TARGET_AHEAD),
        (60, 81, LastCommit(90, 80), Reason.TARGET_AHEAD),
        (60, 79, LastCommit(90, 80), Reason.TARGET_AHEAD),
        (60, 80, None, Reason.TARGET_AHEAD),
        (60, 101, LastCommit(90, 101), Reason.TARGET_PAST_LOG_END),
    ],
)
def test_a_rewound_source_is_told_from_a_target_that_went_ahead(
    source_offset, current, last_commit, expected
):
    """SOURCE_REWOUND: C lies below the C of our last commit while D is still that commit."""
    row = row_for(source_offset=source_offset, current=current, last_commit=last_commit)
    assert verdict(row) == skipped(expected)


@pytest.mark.parametrize("current", [20, 48, 52])
def test_a_rewound_source_matters_only_where_the_target_is_ahead(current):
    """A group that can follow, or stands right, is no case for a warning."""
    row = row_for(source_offset=60, current=current, last_commit=LastCommit(90, current))
    assert row.outcome in (OutcomeKind.WOULD_COMMIT, OutcomeKind.UNCHANGED)


@pytest.mark.parametrize(
    ("current", "of_log", "expected"),
    [
        (80, {}, WOULD_COMMIT),
        (80, {"last_commit": LastCommit(90, 80)}, WOULD_COMMIT),
        (80, {"active": True}, skipped(Reason.GROUP_ACTIVE)),
        (81, {}, skipped(Reason.TARGET_AHEAD)),
        (79, {}, skipped(Reason.TARGET_AHEAD)),
        (80, {"log": LogRange(10, 79)}, skipped(Reason.TARGET_PAST_LOG_END)),
        (80, {"log": LogRange(50, 100)}, WOULD_COMMIT),
        (80, {"log": LogRange(51, 100)}, skipped(Reason.TARGET_AHEAD)),
        (80, {"log": None}, skipped(Reason.TARGET_AHEAD)),
        (50, {}, UNCHANGED),
        (20, {}, WOULD_COMMIT),
        (None, {}, WOULD_COMMIT),
    ],
)
def test_a_group_goes_back_only_from_the_commit_that_was_named(current, of_log, expected):
    """Without members, from that very offset, to one that its log still has: below the log's start
    its consumers would be reset."""
    assert verdict(row_for(current=current, rewind_from=80, **of_log)) == expected


@pytest.mark.parametrize(
    ("row", "step"),
    [
        (row_for(current=101), "delete that offset"),
        (row_for(current=80, last_commit=LastCommit(90, 80)), "--allow-rewind"),
        (row_for(active=True), "stop them"),
    ],
)
def test_warnings_of_the_commit_rule_come_with_a_remedy(row, step):
    """A skip that a person can end says how."""
    assert step in row.message


# --- translation.floor ------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [NO_PROOF, NOT_MIRRORED])
@pytest.mark.parametrize("current", [None, 0, 9])
def test_the_floor_answers_where_nothing_is_proven(outcome, current):
    """translation.floor = log_start commits the target's log start where the group has no commit
    there, or one that retention has passed; every record before C may come again."""
    row = row_for(outcome, current, floor="log_start")
    assert verdict(row) == WOULD_COMMIT
    assert (row.target_offset, row.precision, row.reread_bound) == (10, Precision.BOUNDED, 60)
    assert verdict(row_for(outcome, current, floor="none")) == skipped(outcome.reason)
    floor = Case(outcome).translated.answer(row)
    assert floor is not None
    assert (floor.target_offset, floor.basis) == (10, Basis.FLOOR)


@pytest.mark.parametrize("current", [10, 50, 100, 101])
def test_the_floor_never_touches_a_commit_that_can_be_resumed_from(current):
    """A group that has a commit on the target stays there."""
    assert verdict(row_for(NO_PROOF, current, floor="log_start")) == skipped(Reason.NO_PROOF)


@pytest.mark.parametrize(
    "reason",
    sorted(set(Reason) - {Reason.NO_PROOF, Reason.NOT_MIRRORED}),
)
def test_the_floor_is_for_missing_proof_alone(reason):
    """Other skips say that the position itself is wrong, or that a person must look."""
    outcome = Skipped(reason, "why")
    assert verdict(row_for(outcome, floor="log_start")) == skipped(reason)


def test_the_floor_needs_the_log_start_and_the_target_commits():
    """What could not be read is not taken for absent."""
    assert verdict(row_for(NO_PROOF, log=None, floor="log_start")) == skipped(Reason.NO_PROOF)
    assert verdict(row_for(NO_PROOF, UNREADABLE, floor="log_start")) == skipped(Reason.NO_PROOF)
    assert verdict(row_for(UNREADABLE, floor="log_start")) == (
        OutcomeKind.FAILED,
        FailureKind.COORDINATOR,
    )


def test_the_floor_of_a_group_that_has_read_nothing_is_exact():
    """No record lies before offset 0, so none can come again."""
    row = row_for(NOT_MIRRORED, source_offset=0, floor="log_start")
    assert (row.target_offset, row.precision, row.reread_bound) == (10, Precision.EXACT, 0)


def test_the_floor_respects_members():
    """An active group is not moved to the floor either."""
    row = row_for(NOT_MIRRORED, active=True, floor="log_start")
    assert verdict(row) == skipped(Reason.GROUP_ACTIVE)


# --- verdicts that are known beforehand -------------------------------------------------


@pytest.mark.parametrize("current", [None, 20, 50, 80, 101, UNREADABLE])
def test_a_verdict_known_beforehand_ends_it(current):
    """Where nothing can be committed the translation and the target's commit change nothing."""
    known = Skipped(Reason.SEVERAL_SOURCES, "two flows")
    row = row_for(current=current, known_verdict=known, active=True)
    assert verdict(row) == skipped(Reason.SEVERAL_SOURCES)
    assert (row.target_offset, row.precision, row.source_timestamp_ms) == (None, None, None)


@pytest.mark.parametrize("reason", list(Reason))
def test_a_skip_of_the_translation_is_the_rows(reason):
    """The translation's reasons come before those of the commit rule, message and all."""
    row = row_for(Skipped(reason, "why"), 101, active=True, last_commit=LastCommit(90, 101))
    assert verdict(row) == skipped(reason)
    assert row.message == "why"


def test_a_group_that_fails_before_its_partitions_are_known_has_no_partition():
    """One row, topic and partition null."""
    commit = SourceCommit("billing", None, None, None, verdict=UNREADABLE)
    work = commit_work([TranslatedCommit(commit)])
    rows = decide(with_current(work, target_commits(CommittedColumns.of({}))))
    (row,) = result_rows("A->B", work, select(rows, COMMIT_RESULTS))
    assert row == Row(
        "A->B", "billing", *[None] * 7, OutcomeKind.FAILED, FailureKind.COORDINATOR, None, None,
        UNREADABLE.message,
    )  # fmt: skip


# --- whatever the numbers ---------------------------------------------------------------

offsets = st.integers(0, 40)


@st.composite
def translateds(draw: st.DrawFn) -> Translated:
    target_offset = draw(offsets)
    precision = draw(st.sampled_from(Precision))
    bound = None if precision is Precision.UNPROVEN else draw(st.integers(0, 40))
    return Translated(
        target_offset,
        precision,
        0 if precision is Precision.EXACT else bound,
        target_offset - draw(st.integers(0, min(3, target_offset))),
        target_offset + draw(st.integers(0, 3)),
    )


skips = st.builds(Skipped, st.sampled_from(Reason), st.just("why"))
failures = st.builds(Failed, st.sampled_from(FailureKind), st.just("why"))
ranges = st.one_of(
    st.none(), st.tuples(offsets, offsets).map(lambda two: LogRange(min(two), max(two)))
)
cases = st.builds(
    Case,
    st.one_of(translateds(), skips, failures),
    st.one_of(st.none(), offsets, failures),
    source_offset=offsets,
    log=ranges,
    active=st.booleans(),
    last_commit=st.one_of(st.none(), st.builds(LastCommit, offsets, offsets)),
    known_verdict=st.one_of(st.none(), st.none(), skips, failures),
    rewind_from=st.one_of(st.none(), st.none(), offsets),
)
many_cases = st.lists(cases, min_size=1, max_size=40)
floors = st.sampled_from(("none", "log_start"))


@given(many_cases, floors)
@settings(deadline=None)
def test_tables_decide_as_values_do(cases: list[Case], floor: str) -> None:
    """Each row of many, whatever stands beside it, as the rule by values decides it alone."""
    assert rows_for(cases, floor) == [
        decided(
            "A->B",
            case.translated.commit,
            case.translated.position,
            case.there,
            last_commit=case.last_commit,
            floor=floor,
            rewind_from=case.rewind_from,
        )
        for case in cases
    ]


@given(many_cases, floors)
@settings(deadline=None)
def test_nothing_is_ever_committed_at_or_below_what_the_group_has(
    cases: list[Case], floor: str
) -> None:
    """A group is never moved backwards, whatever the ranges, last commits and reasons, but from the
    offset that an operator named."""
    for case, row in zip(cases, rows_for(cases, floor), strict=True):
        if row.outcome is OutcomeKind.WOULD_COMMIT:
            assert not isinstance(case.current, Failed)
            assert row.target_offset is not None
            behind = case.current is None or case.current < row.target_offset
            assert behind or case.current == case.rewind_from


@settings(deadline=None)
@given(translateds(), st.one_of(st.none(), offsets), ranges, st.booleans())
def test_every_translation_is_committed_stands_or_is_skipped_by_name(
    outcome: Translated, current: int | None, log: LogRange | None, active: bool
) -> None:
    """No translation is lost: committed where the group is behind it, else named."""
    row = row_for(outcome, current, log=log, active=active)
    if current is not None and outcome.equivalent_from <= current <= outcome.equivalent_to:
        assert verdict(row) == UNCHANGED
    elif current is not None and current > outcome.target_offset:
        past = log is not None and current > log.end
        reason = Reason.TARGET_PAST_LOG_END if past else Reason.TARGET_AHEAD
        assert verdict(row) == skipped(reason)
    else:
        assert verdict(row) == (skipped(Reason.GROUP_ACTIVE) if active else WOULD_COMMIT)


@settings(deadline=None)
@given(translateds(), st.one_of(st.none(), offsets), ranges)
def test_what_is_committed_is_unchanged_when_it_is_decided_again(
    outcome: Translated, current: int | None, log: LogRange | None
) -> None:
    """A task that is run again after its commit reads D again and commits nothing."""
    row = row_for(outcome, current, log=log)
    if row.outcome is OutcomeKind.WOULD_COMMIT:
        again = row_for(outcome, row.target_offset, log=log)
        assert again == replace(
            row, outcome=OutcomeKind.UNCHANGED, current_target_offset=row.target_offset
        )
