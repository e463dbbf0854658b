"""The commit rule of docs/design.md section 1, held to its words one case at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory_flows import UNCHANGED, WOULD_COMMIT, failed, skipped, verdict
from tests.random_examples import scaled
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
class PlanCase:
    """A group at `source_offset` whose target group is at `current`; `last_commit` are the source
    offset of its last commit, and the target offset that it became; `reverse_target` is the source
    offset that the reverse flow has committed, or found in sync with the target offset
    `reverse_source`: `reverse_committed` is then None, or False if this flow has committed that;
    `seen_target` and `source_at_reset` are cached with a reverse flow only."""

    outcome: Outcome = TO_50
    current: int | Failed | None = None
    source_offset: int = 60
    log: LogRange | None = LOG
    active: bool = False
    last_commit: tuple[int, int] | None = None
    last_committed: bool = True
    reverse_target: int | None = None
    reverse_source: int = 20
    reverse_committed: bool | None = True
    seen_target: int | None = None
    source_at_reset: int | None = None
    has_reverse: bool = False
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


def rows_for(cases: Sequence[PlanCase], floor: str = "none") -> list[Row]:
    """The rows of these cases, each decided as one of many."""
    last = [case.last_commit or (None, None) for case in cases]
    work = commit_work(case.translated for case in cases).with_columns(
        pl.Series("last_source", [source for source, _ in last], pl.Int64),
        pl.Series("last_target", [target for _, target in last], pl.Int64),
        pl.Series("reverse_target", [case.reverse_target for case in cases], pl.Int64),
        pl.Series("reverse_source", [case.reverse_source for case in cases], pl.Int64),
        pl.Series("reverse_committed", [case.reverse_committed for case in cases], pl.Boolean),
        pl.Series("last_committed", [case.last_committed for case in cases], pl.Boolean),
        pl.Series("seen_target", [case.seen_target for case in cases], pl.Int64),
        pl.Series("source_at_reset", [case.source_at_reset for case in cases], pl.Int64),
        pl.Series("has_reverse", [case.has_reverse for case in cases], pl.Boolean),
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
    return rows_for([PlanCase(outcome, current, **changes)], floor)[0]


# --- the rule, case by case -------------------------------------------------------------

AHEAD, PAST_END = skipped(Reason.TARGET_AHEAD), skipped(Reason.TARGET_PAST_LOG_END)
RESET = skipped(Reason.TARGET_REWOUND)
REWOUND, ACTIVE = skipped(Reason.SOURCE_REWOUND), skipped(Reason.GROUP_ACTIVE)
AWAY = failed(FailureKind.COORDINATOR)
TO_START = Translated(LOG.start, Precision.EXACT, 0, LOG.start, LOG.start)
SEVERAL = Skipped(Reason.SEVERAL_SOURCES, "two flows")


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        # Commit p only where there is no commit D or p > D, with a data record between them.
        *((PlanCase(current=current), WOULD_COMMIT) for current in (None, 0, 9, 10, 47)),
        *((PlanCase(current=current), UNCHANGED) for current in range(48, 53)),
        *((PlanCase(current=current), AHEAD) for current in (53, 99, 100)),
        (PlanCase(current=101), PAST_END),
        # A group cannot resume below the target's log start: an offset there is replaced.
        (PlanCase(TO_START, LOG.start), UNCHANGED),
        (PlanCase(TO_START, LOG.start - 1), WOULD_COMMIT),
        (PlanCase(TO_START, 0), WOULD_COMMIT),
        # A commit that retention has passed since is not replaced by p, which is gone too.
        (PlanCase(current=150, log=LogRange(160, 200)), AHEAD),
        # Where the target's range is not known a group is not said to be past it.
        (PlanCase(current=101, log=None), AHEAD),
        # Without D nothing is committed; the translation is still shown.
        (PlanCase(current=UNREADABLE), AWAY),
        # GROUP_ACTIVE is the last reason: only where there was something to commit.
        (PlanCase(active=True), ACTIVE),
        (PlanCase(current=20, active=True), ACTIVE),
        (PlanCase(current=50, active=True), UNCHANGED),
        (PlanCase(current=80, active=True), AHEAD),
        (PlanCase(current=101, active=True), PAST_END),
        # SOURCE_REWOUND: C lies below the C of our last commit while D is still that commit.
        (PlanCase(current=80, last_commit=(90, 80)), REWOUND),
        (PlanCase(current=80, source_offset=89, last_commit=(90, 80)), REWOUND),
        (PlanCase(current=80, source_offset=90, last_commit=(90, 80)), AHEAD),
        (PlanCase(current=80, source_offset=91, last_commit=(90, 80)), AHEAD),
        (PlanCase(current=81, last_commit=(90, 80)), AHEAD),
        (PlanCase(current=79, last_commit=(90, 80)), AHEAD),
        (PlanCase(current=101, last_commit=(90, 101)), PAST_END),
        # It matters only where the target is ahead.
        (PlanCase(current=20, last_commit=(90, 20)), WOULD_COMMIT),
        (PlanCase(current=48, last_commit=(90, 48)), UNCHANGED),
        # TARGET_REWOUND: C is what the reverse flow committed for an offset D' > D.
        *((PlanCase(current=current, reverse_target=60), RESET) for current in (10, 20, 47)),
        (PlanCase(current=20, reverse_target=60, active=True), RESET),
        *((PlanCase(current=20, reverse_target=other), WOULD_COMMIT) for other in (59, 61)),
        # It matters only where the target is behind, and would pass records that its log still has.
        (PlanCase(reverse_target=60), WOULD_COMMIT),
        (PlanCase(current=9, reverse_target=60), RESET),
        (PlanCase(TO_START, 9, reverse_target=60), WOULD_COMMIT),
        (PlanCase(current=48, reverse_target=60), UNCHANGED),
        (PlanCase(current=53, reverse_target=60), AHEAD),
        # If the reverse flow has found the group in sync at what this flow has committed, and the
        # group still has that, it was not reset.
        *(
            (
                PlanCase(current=20, reverse_source=at, reverse_target=60, reverse_committed=made),
                WOULD_COMMIT if at == 20 and made is False else RESET,
            )
            for at in (19, 20, 21)
            for made in (False, None, True)
        ),
        # This flow may know that the reverse flow has committed C.
        *(
            (PlanCase(current=20, last_commit=(c, 20), last_committed=own), verdict)
            for c, own, verdict in (
                (60, False, RESET),
                (60, True, WOULD_COMMIT),
                (59, False, WOULD_COMMIT),
            )
        ),
        # Or the target group went back since the last cycle, or in an earlier one with the same C.
        # With one flow, it follows the source group nevertheless.
        *(
            (
                PlanCase(current=20, seen_target=seen, source_at_reset=c, has_reverse=both),
                verdict,
            )
            for seen, c, both, verdict in (
                (21, None, True, RESET),
                (21, 30, True, RESET),
                (21, 60, False, WOULD_COMMIT),
                (20, None, True, WOULD_COMMIT),
                (20, 60, True, RESET),
                (None, 60, True, RESET),
                (20, 59, True, WOULD_COMMIT),
                (20, 61, True, WOULD_COMMIT),
            )
        ),
        (PlanCase(seen_target=50, has_reverse=True), WOULD_COMMIT),
        (PlanCase(current=9, seen_target=50, has_reverse=True), RESET),
        (PlanCase(TO_START, 9, seen_target=50, has_reverse=True), WOULD_COMMIT),
        (PlanCase(current=48, seen_target=50, has_reverse=True), UNCHANGED),
        # A group goes back only from the commit that was named, without members, to one that its
        # log still has: below the log's start its consumers would be reset.
        (PlanCase(current=80, rewind_from=80), WOULD_COMMIT),
        (PlanCase(current=80, rewind_from=80, last_commit=(90, 80)), WOULD_COMMIT),
        (PlanCase(current=100, rewind_from=100), WOULD_COMMIT),
        (PlanCase(current=80, rewind_from=80, active=True), ACTIVE),
        (PlanCase(current=81, rewind_from=80), AHEAD),
        (PlanCase(current=79, rewind_from=80), AHEAD),
        (PlanCase(current=80, rewind_from=80, log=LogRange(10, 79)), PAST_END),
        (PlanCase(current=80, rewind_from=80, log=LogRange(50, 100)), WOULD_COMMIT),
        (PlanCase(current=80, rewind_from=80, log=LogRange(51, 100)), AHEAD),
        (PlanCase(current=80, rewind_from=80, log=None), AHEAD),
        (PlanCase(current=50, rewind_from=80), UNCHANGED),
        (PlanCase(current=20, rewind_from=80), WOULD_COMMIT),
        (PlanCase(rewind_from=80), WOULD_COMMIT),
    ],
)
def test_a_translation_is_committed_or_its_row_says_why_not(case, expected):
    """The translation and what the group has on the target are shown either way."""
    (row,) = rows_for([case])
    assert verdict(row) == expected
    assert row.target_offset == case.outcome.target_offset
    assert row.current_target_offset == (None if case.current is UNREADABLE else case.current)
    assert row.message == UNREADABLE.message or expected != AWAY


@pytest.mark.parametrize(
    ("case", "step"),
    [
        (PlanCase(current=101), "reset; delete that offset on the target"),
        # Kafka refuses to delete an offset of a topic that the group's members consume.
        (
            PlanCase(current=101, active=True),
            "; stop its consumers on the target, delete that offset",
        ),
        (PlanCase(current=80, last_commit=(90, 80)), "--allow-rewind"),
        (PlanCase(active=True), "stop them"),
        (PlanCase(current=20, reverse_target=60), "if it should be, reset it on the target to 50"),
        # Kafka refuses to reset a group that has members.
        (
            PlanCase(current=20, reverse_target=60, active=True),
            "if it should be, stop its consumers on the target, and then reset it to 50",
        ),
    ],
)
def test_warnings_of_the_commit_rule_come_with_a_remedy(case, step):
    assert step in (rows_for([case])[0].message or "")


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
    floor = PlanCase(outcome).translated.answer(row)
    assert (floor.target_offset, floor.basis) == (10, Basis.FLOOR)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        # A group that has a commit on the target stays there.
        *(
            (PlanCase(NO_PROOF, current), skipped(Reason.NO_PROOF))
            for current in (10, 50, 100, 101)
        ),
        # What could not be read is not taken for absent.
        (PlanCase(NO_PROOF, log=None), skipped(Reason.NO_PROOF)),
        (PlanCase(NO_PROOF, UNREADABLE), skipped(Reason.NO_PROOF)),
        (PlanCase(UNREADABLE), AWAY),
        # An active group is not moved to the floor either.
        (PlanCase(NOT_MIRRORED, active=True), ACTIVE),
        # Other skips say that the position itself is wrong, or that a person must look.
        *(
            (PlanCase(Skipped(reason, "why")), skipped(reason))
            for reason in sorted(set(Reason) - {Reason.NO_PROOF, Reason.NOT_MIRRORED})
        ),
    ],
)
def test_the_floor_is_for_missing_proof_alone(case, expected):
    """Where the log's start is known, and the group could resume from nothing else."""
    assert verdict(rows_for([case], "log_start")[0]) == expected


def test_the_floor_of_a_group_that_has_read_nothing_is_exact():
    """No record lies before offset 0, so none can come again."""
    row = row_for(NOT_MIRRORED, source_offset=0, floor="log_start")
    assert (row.target_offset, row.precision, row.reread_bound) == (10, Precision.EXACT, 0)


# --- verdicts that are known beforehand -------------------------------------------------


@pytest.mark.parametrize("current", [None, 20, 50, 80, 101, UNREADABLE])
def test_a_verdict_known_beforehand_ends_it(current):
    """Where nothing can be committed the translation and the target's commit change nothing."""
    row = row_for(current=current, known_verdict=SEVERAL, active=True)
    assert verdict(row) == skipped(Reason.SEVERAL_SOURCES)
    assert (row.target_offset, row.precision, row.source_timestamp_ms) == (None, None, None)


@pytest.mark.parametrize("reason", list(Reason))
def test_a_skip_of_the_translation_is_the_rows(reason):
    """The translation's reasons come before those of the commit rule, message and all."""
    row = row_for(Skipped(reason, "why"), 101, active=True, last_commit=(90, 101))
    assert (*verdict(row), row.message) == (*skipped(reason), "why")


def test_a_group_that_fails_before_its_partitions_are_known_has_no_partition():
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
    PlanCase,
    st.one_of(translateds(), skips, failures),
    st.one_of(st.none(), offsets, failures),
    source_offset=offsets,
    log=ranges,
    active=st.booleans(),
    last_commit=st.one_of(st.none(), st.tuples(offsets, offsets)),
    known_verdict=st.one_of(st.none(), st.none(), skips, failures),
    rewind_from=st.one_of(st.none(), st.none(), offsets),
)
many_cases = st.lists(cases, min_size=1, max_size=40)
floors = st.sampled_from(("none", "log_start"))


@given(many_cases, floors)
@settings(deadline=None, max_examples=scaled(50))
def test_each_row_is_decided_as_if_it_were_alone(cases, floor):
    alone = [row for case in cases for row in rows_for([case], floor)]
    assert rows_for(cases, floor) == alone


def expected_verdict(case: PlanCase, floor: str) -> tuple[OutcomeKind, object]:
    """The rule, for one case."""
    outcome, current, log = case.known_verdict or case.outcome, case.current, case.log
    if (
        floor == "log_start"
        and case.known_verdict is None
        and isinstance(outcome, Skipped)
        and outcome.reason in (Reason.NO_PROOF, Reason.NOT_MIRRORED)
        and log is not None
        and (current is None or (isinstance(current, int) and current < log.start))
    ):
        outcome = Translated(log.start, Precision.BOUNDED, 0, log.start, log.start)
    for no in (outcome, current):
        if isinstance(no, Skipped):
            return skipped(no.reason)
        if isinstance(no, Failed):
            return failed(no.kind)
    assert not isinstance(current, Failed)
    if current is not None and outcome.equivalent_from <= current <= outcome.equivalent_to:
        return UNCHANGED
    if current is not None and current > outcome.target_offset:
        if log is not None and current > log.end:
            return PAST_END
        is_named = current == case.rewind_from
        if not is_named or log is None or outcome.target_offset < log.start:
            before, there = case.last_commit or (-1, None)
            return REWOUND if current == there and case.source_offset < before else AHEAD
    return ACTIVE if case.active else WOULD_COMMIT


@settings(deadline=None)
@given(cases, floors)
def test_every_row_has_the_verdict_of_the_rule(case, floor):
    """No translation is lost: committed where the group is behind it, else named."""
    assert verdict(rows_for([case], floor)[0]) == expected_verdict(case, floor)
