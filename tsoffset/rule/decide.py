"""The commit rule: what becomes of a translation, given what the target group has (pure).

docs/design.md section 1, "Commit rule": a group is never moved backwards, unless an operator has
said of which commit (`rewind_from`). The order of the checks is the order in which reasons are
named.
"""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tsoffset.model import (
    Basis,
    CommittedOffset,
    Failed,
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
from tsoffset.records import Numbers
from tsoffset.rule.translate import Translation

N = TypeVar("N", int, Numbers)

REWINDABLE = (Reason.SOURCE_REWOUND, Reason.TARGET_AHEAD)
"""Why a group is ahead that an operator may let go back."""


@dataclass(frozen=True, slots=True)
class SourceCommit:
    """What a group committed on the source for one partition that is synced.

    `verdict` is set where it is already known that nothing can be committed. A group that
    failed before its partitions were known has one, with `partition` and `target` None.
    `is_remote_topic` and `failback` are what the replication policy says of the topic.
    """

    group: str
    partition: TopicPartition | None
    committed: CommittedOffset | None
    target: TopicPartition | None
    is_remote_topic: bool = False
    failback: bool = False
    target_active: bool = False
    verdict: Skipped | Failed | None = None


@dataclass(frozen=True, slots=True)
class TranslatedPosition:
    """A translation with what the commit rule needs of the target's log.

    `target_range` and `source_log_end` are None where they were not read. The rule does not use
    `source_log_end`: rows show the consumer lag.
    """

    partition: TopicPartition
    offset: int
    translation: Translation
    target_range: LogRange | None = None
    target_rewrites_timestamps: bool = False
    source_log_end: int | None = None


@dataclass(frozen=True, slots=True)
class LastCommit:
    """The last commit known of a group and partition: its offset on the source, and the one on the
    target that it became."""

    source_offset: int
    target_offset: int


def decide(
    flow: str,
    commit: SourceCommit,
    position: TranslatedPosition | None,
    current: CommittedOffset | Failed | None,
    *,
    last_commit: LastCommit | None = None,
    floor: str = "none",
    rewind_from: int | None = None,
) -> Row:
    """The row of one commit; WOULD_COMMIT where `row.target_offset` is to be committed.

    `current` is what the target group has now (None: nothing), `last_commit` what an earlier
    cycle knew (None: nothing). `floor` is `translation.floor`. From `rewind_from` on the target,
    and from nowhere else, the group may go back to the translation.
    """
    partition, committed = commit.partition, commit.committed
    outcome: Outcome | None = None
    verdict: OutcomeKind | Skipped | Failed
    if commit.verdict is not None:
        verdict = commit.verdict
    else:
        assert position is not None
        assert committed is not None
        outcome = _at_least_floor(
            position.translation.outcome, committed, position.target_range, current, floor
        )
        verdict = _verdict(
            commit, outcome, position.target_range, current, last_commit, rewind_from
        )
    found = outcome if isinstance(outcome, Translated) else None
    # Made once: to make it step by step, with `replace`, was half the time of deciding.
    row = Row(
        flow=flow,
        group=commit.group,
        source_topic=None if partition is None else partition.topic,
        partition=None if partition is None else partition.partition,
        source_offset=None if committed is None else committed.offset,
        source_timestamp_ms=(
            None
            if outcome is None or position is None
            else position.translation.source_timestamp_ms
        ),
        target_topic=None if commit.target is None else commit.target.topic,
        target_offset=None if found is None else found.target_offset,
        current_target_offset=current.offset if isinstance(current, CommittedOffset) else None,
        outcome=verdict if isinstance(verdict, OutcomeKind) else OutcomeKind.UNCHANGED,
        precision=None if found is None else found.precision,
        reread_bound=None if found is None else found.reread_bound,
    )
    return row if isinstance(verdict, OutcomeKind) else with_verdict(row, verdict)


def _verdict(
    commit: SourceCommit,
    outcome: Outcome,
    target_range: LogRange | None,
    current: CommittedOffset | Failed | None,
    last_commit: LastCommit | None,
    rewind_from: int | None,
) -> OutcomeKind | Skipped | Failed:
    """What becomes of the translation of a commit."""
    if not isinstance(outcome, Translated):
        return outcome
    if isinstance(current, Failed):
        return current
    # A commit below the target's log start is below every translation, too.
    if current is not None:
        if stays(current.offset, outcome.equivalent_from, outcome.equivalent_to):
            return OutcomeKind.UNCHANGED
        if current.offset > outcome.target_offset:
            ahead = _ahead(commit, current, target_range, last_commit)
            # What was said of a commit holds for no other: the group may have read on since.
            if current.offset != rewind_from or not _may_go_back(ahead, outcome, target_range):
                return ahead
    if commit.target_active:
        return active(commit.group)
    return OutcomeKind.WOULD_COMMIT


def _may_go_back(ahead: Skipped, outcome: Translated, target_range: LogRange | None) -> bool:
    """Whether a group that is ahead can resume from the translation: not where retention has taken
    what lies there since, for then its consumers would be reset."""
    return (
        ahead.reason in REWINDABLE
        and target_range is not None
        and outcome.target_offset >= target_range.start
    )


def stays(current: N, equivalent_from: N, equivalent_to: N) -> Any:
    """Whether a group that stands at `current` resumes where the translation leads: of offsets, or
    of columns of them."""
    return (equivalent_from <= current) & (current <= equivalent_to)


def with_verdict(row: Row, verdict: Skipped | Failed) -> Row:
    """The row as skipped or failed."""
    if isinstance(verdict, Skipped):
        return replace(
            row, outcome=OutcomeKind.SKIPPED, reason=verdict.reason, message=verdict.message
        )
    return replace(row, outcome=OutcomeKind.FAILED, reason=verdict.kind, message=verdict.message)


def active(group: str) -> Skipped:
    """The skip of a group that has members on the target."""
    return Skipped(
        Reason.GROUP_ACTIVE,
        f"group {group} has members on the target, which move its offsets themselves; stop them "
        "if the group is to follow the source",
    )


def target_missing(target: TopicPartition) -> Skipped:
    """The skip of a partition that the target does not have."""
    return Skipped(
        Reason.TARGET_MISSING,
        f"{target} does not exist on the target; check that the replicator mirrors it",
    )


def _at_least_floor(
    outcome: Outcome,
    committed: CommittedOffset,
    target_range: LogRange | None,
    current: CommittedOffset | Failed | None,
    floor: str,
) -> Outcome:
    """`translation.floor = log_start`: where nothing is proven and the group has no commit that a
    consumer could resume from, the target's log start, below which there is nothing to skip."""
    if (
        floor != "log_start"
        or not isinstance(outcome, Skipped)
        or outcome.reason not in (Reason.NOT_MIRRORED, Reason.NO_PROOF)
        or target_range is None
    ):
        return outcome
    start = target_range.start
    if isinstance(current, Failed) or (current is not None and current.offset >= start):
        return outcome
    return _floor(start, committed.offset)


def _floor(log_start: int, committed: int) -> Translated:
    precision = Precision.BOUNDED if committed else Precision.EXACT
    return Translated(log_start, precision, committed, log_start, log_start, Basis.FLOOR)


def answer_of(row: Row, position: TranslatedPosition | None) -> Translated | None:
    """What the target offset of a row rests on: the position's translation, or the floor."""
    if row.target_offset is None or row.source_offset is None or position is None:
        return None
    outcome = position.translation.outcome
    if isinstance(outcome, Translated):
        return outcome
    return _floor(row.target_offset, row.source_offset)


def _ahead(
    commit: SourceCommit,
    current: CommittedOffset,
    target_range: LogRange | None,
    last_commit: LastCommit | None,
) -> Skipped:
    """Why the target group is past the translation: it never moves backwards."""
    assert commit.committed is not None
    if target_range is not None and current.offset > target_range.end:
        return Skipped(
            Reason.TARGET_PAST_LOG_END,
            f"the target group's commit {current.offset} lies past the target's log end "
            f"{target_range.end}: {commit.target} was made anew or truncated, and consumers would "
            "be reset; delete that commit on the target and the next cycle sets it",
        )
    if (
        last_commit is not None
        and commit.committed.offset < last_commit.source_offset
        and current.offset == last_commit.target_offset
    ):
        return Skipped(
            Reason.SOURCE_REWOUND,
            f"the source group went back from {last_commit.source_offset} to "
            f"{commit.committed.offset}; if the target group is to follow, let it go back with "
            "`tsoffset sync --allow-rewind`",
        )
    return Skipped(
        Reason.TARGET_AHEAD,
        f"the target group is already at {current.offset}; it is never moved backwards",
    )
