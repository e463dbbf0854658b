"""What a checkpoint comes to beside our translation of the same group's commit (pure)."""

from dataclasses import dataclass, replace
from enum import StrEnum

from tsoffset.commands.compare.checkpoints import Checkpoint
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


class Verdict(StrEnum):
    """What a consumer would get that resumed from the checkpoint, judged by our translation.

    `unsafe` lies past an exact translation: records that the group has not read lie before
    it, and were not found to come again. `beyond` lies past ours and is not known to be
    unsafe: ours is not exact, or the replicator repeated what lies between. `unjudged` has
    nothing to be judged by.
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

    `ours` translates `source_offset`, the group's commit now; `theirs` what it was when the
    checkpoint was written: `theirs_source_offset`. `ours_reason` is why the row of `plan`
    would be skipped or has failed. `records` is the most records that would be read again
    (`reread`) or never (`unsafe`, `beyond`); None where that is not known. What is absent
    is None.
    """

    flow: str
    group: str | None
    source_topic: str | None
    partition: int | None
    source_offset: int | None
    target_topic: str | None
    ours: int | None
    ours_precision: Precision | None
    ours_reread_bound: int | None
    ours_reason: Reason | FailureKind | None
    theirs: int | None
    theirs_source_offset: int | None
    theirs_timestamp_ms: int | None
    verdict: Verdict
    records: int | None = None
    target_commit: int | None = None
    target_commit_is: Whose | None = None
    message: str | None = None


def compared(
    row: Row,
    answer: Translated | None,
    checkpoint: Checkpoint | None,
    *,
    target_range: LogRange | None = None,
    committed_once: bool = False,
    failed: Failed | None = None,
) -> ComparedPair:
    """The pair of a plan's row, its translation and its checkpoint.

    `committed_once`: some checkpoint said what the target group has. `failed` says why the
    checkpoints are not known.
    """
    verdict, records, message = _judged(row, answer, checkpoint, target_range, failed)
    return ComparedPair(
        flow=row.flow,
        group=row.group,
        source_topic=row.source_topic,
        partition=row.partition,
        source_offset=row.source_offset,
        target_topic=row.target_topic,
        ours=row.target_offset,
        ours_precision=row.precision,
        ours_reread_bound=row.reread_bound,
        ours_reason=row.reason,
        theirs=None if checkpoint is None else checkpoint.target_offset,
        theirs_source_offset=None if checkpoint is None else checkpoint.source_offset,
        theirs_timestamp_ms=None if checkpoint is None else checkpoint.timestamp_ms,
        verdict=verdict,
        records=records,
        target_commit=row.current_target_offset,
        target_commit_is=_whose(row.current_target_offset, answer, checkpoint, committed_once),
        message=message,
    )


def of_repeats(pair: ComparedPair) -> ComparedPair:
    """The pair of a checkpoint past ours, where all that lies between comes again behind it."""
    return replace(
        pair,
        verdict=Verdict.BEYOND,
        records=0,
        message=f"what lies between ours, {pair.ours}, and theirs comes again behind theirs: the "
        "replicator repeated it, and nothing of it is skipped",
    )


def _judged(
    row: Row,
    answer: Translated | None,
    checkpoint: Checkpoint | None,
    target_range: LogRange | None,
    failed: Failed | None,
) -> tuple[Verdict, int | None, str | None]:
    if row.outcome is OutcomeKind.FAILED:
        return Verdict.FAILED, None, row.message
    if failed is not None:
        return Verdict.FAILED, None, failed.message
    if checkpoint is None:
        return Verdict.NONE, None, row.message if answer is None else None
    if answer is None:
        return Verdict.UNJUDGED, None, row.message
    theirs = checkpoint.target_offset
    if answer.equivalent_from <= theirs <= answer.equivalent_to:
        return Verdict.EQUAL, 0, None
    if theirs < answer.equivalent_from:
        # No data lies between equivalent_from and equivalent_to: nothing is read again there.
        return Verdict.REREAD, answer.equivalent_from - theirs, None
    verdict = Verdict.UNSAFE if answer.precision is Precision.EXACT else Verdict.BEYOND
    if target_range is not None and theirs > target_range.end:
        return (
            verdict,
            None,
            f"theirs, {theirs}, lies past {target_range.end}, the end of what can be read on the "
            "target: a consumer there would be reset",
        )
    return verdict, theirs - answer.equivalent_to, _past(row, answer, checkpoint)


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
            f"{answer.equivalent_to} on, which the group has not read; no repeat of it was found "
            "behind theirs"
        )
    return (
        f"ours, {row.target_offset}, is {row.precision}: the group may have read what lies before "
        f"{theirs} or not; `tsoffset explain` shows what was found"
    )


def _whose(
    current: int | None,
    answer: Translated | None,
    checkpoint: Checkpoint | None,
    committed_once: bool,
) -> Whose | None:
    if current is None:
        return None
    theirs = checkpoint is not None and checkpoint.target_offset == current
    ours = answer is not None and answer.equivalent_from <= current <= answer.equivalent_to
    if theirs:
        return Whose.BOTH if ours else Whose.THEIRS
    if ours:
        return Whose.OURS
    return Whose.EARLIER if committed_once else Whose.OTHER
