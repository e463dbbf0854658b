"""What a checkpoint comes to beside our translation of the same group's commit (pure)."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from tsoffset.commands.compare.repeats import Found
from tsoffset.model import (
    Failed,
    FailureKind,
    LogRange,
    OutcomeKind,
    Precision,
    Reason,
    Row,
    Translated,
)
from tsoffset.replicators.checkpoint import CheckpointKey
from tsoffset.replicators.checkpoints import Checkpoint, Checkpoints
from tsoffset.terminal.output import reread


class Verdict(StrEnum):
    """What a consumer would get that resumed from the checkpoint, judged by our translation.

    `unsafe` lies past an exact translation: records that the group has not read lie before
    it, and do not come again behind it. `beyond` lies past ours and is not known to be
    unsafe: ours is not exact, the replicator repeated what lies between, or nobody could see
    whether it did. `unjudged` has nothing to be judged by.
    """

    EQUAL = "equal"
    REREAD = "reread"
    UNSAFE = "unsafe"
    BEYOND = "beyond"
    NONE = "none"
    UNJUDGED = "unjudged"
    FAILED = "failed"


class Whose(StrEnum):
    """Whose offset the target group has committed.

    `earlier` is what an earlier checkpoint said, `both` what both say now.
    """

    THEIRS = "theirs"
    EARLIER = "earlier"
    OURS = "ours"
    BOTH = "both"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """One group and partition: our translation, their checkpoint, the target group's commit.

    `compared_at_ms` is when this comparison began. `ours` translates `source_offset`, the
    group's commit now, `lag` offsets before the source's log end; `theirs` what it was when the
    checkpoint was written: `theirs_source_offset`. `ours_reason` is why the row of `plan`
    would be skipped or has failed. `true_position` is, where ours is exact, the target offset up
    to which the group has read all, and from which it has read nothing but repeats. `records` is
    the most records that would be read again (`reread`) or never (`unsafe`, `beyond`) from
    theirs, `target_commit_reread` those read again from what the target group has (as
    `terminal.output.reread`); None where that is not known. What is absent is None.
    """

    flow: str
    compared_at_ms: int
    group: str | None
    source_topic: str | None
    partition: int | None
    source_offset: int | None
    lag: int | None
    target_topic: str | None
    ours: int | None
    ours_precision: Precision | None
    ours_reread_bound: int | None
    ours_reason: Reason | FailureKind | None
    true_position: int | None
    theirs: int | None
    theirs_source_offset: int | None
    theirs_timestamp_ms: int | None
    verdict: Verdict
    records: int | None = None
    target_commit: int | None = None
    target_commit_is: Whose | None = None
    target_commit_reread: int | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Theirs:
    """What stands beside a row. Without a `checkpoint`, `why` may say why there is none;
    `committed_once`: some checkpoint said what the target group has. `failed` says why it is not
    known what they say."""

    checkpoint: Checkpoint | None = None
    committed_once: bool = False
    why: str | None = None
    failed: Failed | None = None

    @classmethod
    def of(cls, found: Checkpoints, key: CheckpointKey | None) -> Self:
        """What was found of a group and partition."""
        failed = found.failures[0] if found.failures else None
        if key is None:
            return cls(failed=failed)
        return cls(found.newest.get(key), key in found.once, found.unanswered.get(key), failed)


NOTHING = Theirs()


def compared(
    at_ms: int,
    row: Row,
    answer: Translated | None,
    theirs: Theirs = NOTHING,
    *,
    source_end: int | None = None,
    target_range: LogRange | None = None,
    recorded: bool = False,
) -> ComparedPair:
    """The pair of a plan's row, its translation and what they say, in a comparison that began at
    `at_ms`.

    `source_end` is where the source's log ends, `target_range` what can be read of the target's.
    A row that was `recorded` may be older than theirs, and nobody was asked about it now.
    """
    verdict, records, message = _judged(row, answer, theirs, target_range, recorded)
    checkpoint, current = theirs.checkpoint, row.current_target_offset
    exact = answer is not None and answer.precision is Precision.EXACT
    return ComparedPair(
        flow=row.flow,
        compared_at_ms=at_ms,
        group=row.group,
        source_topic=row.source_topic,
        partition=row.partition,
        source_offset=row.source_offset,
        lag=(
            None
            if source_end is None or row.source_offset is None
            else max(0, source_end - row.source_offset)
        ),
        target_topic=row.target_topic,
        ours=row.target_offset,
        ours_precision=row.precision,
        ours_reread_bound=row.reread_bound,
        ours_reason=row.reason,
        true_position=answer.equivalent_to if answer is not None and exact else None,
        theirs=None if checkpoint is None else checkpoint.target_offset,
        theirs_source_offset=None if checkpoint is None else checkpoint.source_offset,
        theirs_timestamp_ms=None if checkpoint is None else checkpoint.timestamp_ms,
        verdict=verdict,
        records=records,
        target_commit=current,
        target_commit_is=_whose(current, answer, theirs),
        target_commit_reread=reread(row),
        message=message,
    )


def with_repeats(pair: ComparedPair, found: Found) -> ComparedPair:
    """The pair of a checkpoint past ours, when it was looked whether all that lies between comes
    again behind it."""
    if found.comes_again is False:
        return pair
    if found.comes_again:
        return replace(
            pair,
            verdict=Verdict.BEYOND,
            records=0,
            message=f"what lies between ours, {pair.ours}, and theirs comes again behind theirs: "
            "the replicator repeated it, and nothing of it is skipped",
        )
    return replace(
        pair,
        verdict=Verdict.BEYOND,
        message=f"theirs lies past ours, {pair.ours}, and whether what lies between comes again "
        f"behind theirs is not known: {found.why}",
    )


def _judged(
    row: Row,
    answer: Translated | None,
    theirs: Theirs,
    target_range: LogRange | None,
    recorded: bool,
) -> tuple[Verdict, int | None, str | None]:
    if row.outcome is OutcomeKind.FAILED:
        return Verdict.FAILED, None, row.message
    if theirs.failed is not None:
        return Verdict.FAILED, None, theirs.failed.message
    checkpoint = theirs.checkpoint
    if checkpoint is None:
        return Verdict.NONE, None, theirs.why or (row.message if answer is None else None)
    if answer is None:
        return Verdict.UNJUDGED, None, row.message
    assert row.source_offset is not None
    if recorded and checkpoint.source_offset > row.source_offset:
        return (
            Verdict.UNJUDGED,
            None,
            f"the checkpoint translates the commit {checkpoint.source_offset}, and the history "
            f"knows {row.source_offset}; compare it with the history of a later cycle",
        )
    offset = checkpoint.target_offset
    if answer.equivalent_from <= offset <= answer.equivalent_to:
        return Verdict.EQUAL, 0, None
    if offset < answer.equivalent_from:
        # No data lies between equivalent_from and equivalent_to: nothing is read again there.
        return Verdict.REREAD, answer.equivalent_from - offset, None
    if recorded:
        return (
            Verdict.BEYOND,
            offset - answer.equivalent_to,
            f"theirs lies past ours, {row.target_offset}, and no cluster was asked whether what "
            "lies between comes again behind theirs; compare without --history",
        )
    verdict = Verdict.UNSAFE if answer.precision is Precision.EXACT else Verdict.BEYOND
    if target_range is not None and offset > target_range.end:
        return (
            verdict,
            None,
            f"theirs, {offset}, lies past {target_range.end}, the end of what can be read on the "
            "target: a consumer there would be reset",
        )
    return verdict, offset - answer.equivalent_to, _past(row, answer, checkpoint)


def _past(row: Row, answer: Translated, checkpoint: Checkpoint) -> str:
    """A sentence for a checkpoint that lies past our translation."""
    assert row.source_offset is not None
    theirs = checkpoint.target_offset
    if checkpoint.source_offset > row.source_offset:
        return (
            f"the checkpoint translates the commit {checkpoint.source_offset}; the group went back "
            f"to {row.source_offset} on the source since"
        )
    if answer.precision is Precision.EXACT:
        return (
            f"a consumer that resumed at {theirs} would not get what the target has from "
            f"{answer.equivalent_to} on, which the group has not read; no repeat of it lies "
            "behind theirs"
        )
    return (
        f"ours, {row.target_offset}, is {row.precision}: the group may have read what lies before "
        f"{theirs} or not; `tsoffset explain` shows what was found"
    )


def _whose(current: int | None, answer: Translated | None, theirs: Theirs) -> Whose | None:
    if current is None:
        return None
    checkpoint = theirs.checkpoint
    is_theirs = checkpoint is not None and checkpoint.target_offset == current
    ours = answer is not None and answer.equivalent_from <= current <= answer.equivalent_to
    if is_theirs:
        return Whose.BOTH if ours else Whose.THEIRS
    if ours:
        return Whose.OURS
    return Whose.EARLIER if theirs.committed_once else Whose.OTHER
