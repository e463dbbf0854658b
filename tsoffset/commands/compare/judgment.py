"""Compares MirrorMaker 2's checkpoint of a group-partition with tsoffset's translation (pure)."""

from dataclasses import dataclass, replace
from enum import StrEnum

from tsoffset.model import (
    FailureKind,
    LogRange,
    OutcomeKind,
    Precision,
    Reason,
    Row,
    Translated,
)
from tsoffset.replicators.checkpoints import Checkpoint, CheckpointKey, Checkpoints


class CheckpointVerdict(StrEnum):
    """The checkpoint compared with tsoffset's translation of the same committed offset
    (docs/commands.md)."""

    EQUAL = "equal"
    REREAD = "reread"
    UNSAFE = "unsafe"
    BEYOND = "beyond"
    NONE = "none"
    UNJUDGED = "unjudged"
    FAILED = "failed"


class CommitOrigin(StrEnum):
    """Which offset the target group has committed: that of the checkpoint (`theirs`), of an
    earlier checkpoint, of tsoffset (`ours`), of both, or another one."""

    CHECKPOINT = "theirs"
    EARLIER = "earlier"
    TSOFFSET = "ours"
    BOTH = "both"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """A group-partition: tsoffset's translation (`ours`), the offset it is compared with
    (`theirs`: MirrorMaker 2's checkpoint or KIP-1292's rule), and the target group's commit.
    docs/commands.md describes the fields; unknown values are None."""

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
    verdict: CheckpointVerdict
    records: int | None = None
    target_commit: int | None = None
    target_commit_is: CommitOrigin | None = None
    target_commit_reread: int | None = None
    message: str | None = None


_NONE = Checkpoints()


def compare_pair(
    at_ms: int,
    row: Row,
    answer: Translated | None = None,
    checkpoints: Checkpoints = _NONE,
    key: CheckpointKey | None = None,
    *,
    source_end: int | None = None,
    target_range: LogRange | None = None,
    reread: int | None = None,
) -> ComparedPair:
    """Compare a plan's row and its translation with the checkpoint of `key` (None: the row has no
    target topic).

    `source_end` is the source's log end, `target_range` the readable range of the target's log, and
    `reread` the most records that a consumer re-reads from the target group's committed offset.
    """
    checkpoint = None if key is None else checkpoints.newest.get(key)
    current = row.current_target_offset
    why = None if key is None else checkpoints.unanswered.get(key)
    verdict, records, message = _judge(row, answer, checkpoints, checkpoint, why, target_range)
    lag = None
    if source_end is not None and row.source_offset is not None:
        lag = max(0, source_end - row.source_offset)
    exact = answer if answer is not None and answer.precision is Precision.EXACT else None
    return ComparedPair(
        flow=row.flow,
        compared_at_ms=at_ms,
        group=row.group,
        source_topic=row.source_topic,
        partition=row.partition,
        source_offset=row.source_offset,
        lag=lag,
        target_topic=row.target_topic,
        ours=row.target_offset,
        ours_precision=row.precision,
        ours_reread_bound=row.reread_bound,
        ours_reason=row.reason,
        true_position=None if exact is None else exact.equivalent_to,
        theirs=None if checkpoint is None else checkpoint.target_offset,
        theirs_source_offset=None if checkpoint is None else checkpoint.source_offset,
        theirs_timestamp_ms=None if checkpoint is None else checkpoint.timestamp_ms,
        verdict=verdict,
        records=records,
        target_commit=current,
        target_commit_is=_origin(current, answer, checkpoint, once=key in checkpoints.once),
        target_commit_reread=reread,
        message=message,
    )


def with_repeats(pair: ComparedPair, repeated: bool | str) -> ComparedPair:
    """Judge a checkpoint past tsoffset's offset again. `repeated`: whether the replicator copied
    the records between both offsets once more after the checkpoint, or a sentence on why that is
    not known."""
    if repeated is False:
        return pair
    where = f"the compared offset {pair.theirs} lies past tsoffset's {pair.ours},"
    if repeated is True:
        message = (
            f"{where} but the replicator copied the records between them again after"
            f" {pair.theirs}: no record is skipped"
        )
        return replace(pair, verdict=CheckpointVerdict.BEYOND, records=0, message=message)
    message = (
        f"{where} and it is not known whether the replicator copied the records between them again"
        f" later: {repeated}"
    )
    return replace(pair, verdict=CheckpointVerdict.BEYOND, message=message)


def _judge(
    row: Row,
    answer: Translated | None,
    checkpoints: Checkpoints,
    checkpoint: Checkpoint | None,
    why: str | None,
    target_range: LogRange | None,
) -> tuple[CheckpointVerdict, int | None, str | None]:
    if row.outcome is OutcomeKind.FAILED:
        return CheckpointVerdict.FAILED, None, row.message
    if checkpoints.failures:
        return CheckpointVerdict.FAILED, None, checkpoints.failures[0].message
    if checkpoint is None:
        return CheckpointVerdict.NONE, None, why or (row.message if answer is None else None)
    if answer is None:
        return CheckpointVerdict.UNJUDGED, None, row.message
    offset = checkpoint.target_offset
    if answer.equivalent_from <= offset <= answer.equivalent_to:
        return CheckpointVerdict.EQUAL, 0, None
    if offset < answer.equivalent_from:
        # No data lies between equivalent_from and equivalent_to, so nothing is re-read there.
        return CheckpointVerdict.REREAD, answer.equivalent_from - offset, None
    exact = answer.precision is Precision.EXACT
    verdict = CheckpointVerdict.UNSAFE if exact else CheckpointVerdict.BEYOND
    if target_range is not None and offset > target_range.end:
        return (
            verdict,
            None,
            f"the compared offset {offset} lies past the target's log end {target_range.end}: a"
            " consumer that resumed there would be reset by its auto.offset.reset",
        )
    return verdict, offset - answer.equivalent_to, _message_past(row, answer, checkpoint)


def _message_past(row: Row, answer: Translated, checkpoint: Checkpoint) -> str:
    assert row.source_offset is not None
    offset = checkpoint.target_offset
    if checkpoint.source_offset > row.source_offset:
        return (
            f"the checkpoint translates the source offset {checkpoint.source_offset}; since then"
            f" the group was reset to {row.source_offset} on the source"
        )
    if answer.precision is Precision.EXACT:
        return (
            f"a consumer that resumed at {offset} would skip the records from"
            f" {answer.equivalent_to} on, which the group has not read; the replicator did not copy"
            f" them again after {offset}"
        )
    return (
        f"tsoffset's {row.target_offset} is {row.precision}: it is not known whether the group has"
        f" read the records between it and {offset}; `tsoffset explain` shows the evidence"
    )


def _origin(
    current: int | None, answer: Translated | None, checkpoint: Checkpoint | None, *, once: bool
) -> CommitOrigin | None:
    """`once`: an earlier checkpoint of the group-partition had the offset `current`."""
    if current is None:
        return None
    of_tsoffset = answer is not None and answer.equivalent_from <= current <= answer.equivalent_to
    if checkpoint is not None and checkpoint.target_offset == current:
        return CommitOrigin.BOTH if of_tsoffset else CommitOrigin.CHECKPOINT
    if of_tsoffset:
        return CommitOrigin.TSOFFSET
    return CommitOrigin.EARLIER if once else CommitOrigin.OTHER
