"""The end of a cycle: read what the target groups have, decide each row, commit."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tsoffset.cluster import Cluster
from tsoffset.cycle.turns import Seen, Settlement, Time, Turns, decided
from tsoffset.cycle.work import Cost
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import (
    CommittedOffset,
    Failed,
    Isolation,
    LogRange,
    OutcomeKind,
    Reason,
    Row,
    Skipped,
    TopicPartition,
)
from tsoffset.rule.decide import SourceCommit, TranslatedPosition, with_verdict
from tsoffset.rule.reasons import rewritten


@dataclass(frozen=True, slots=True)
class Settled:
    """The rows of the settlements, in their order, and what there is to report of the commits."""

    rows: tuple[Row, ...]
    cost: Cost


def settle_groups(
    flow: FlowSettings,
    target: Cluster,
    settlements: Sequence[Settlement],
    *,
    commit: bool,
    until: float | None = None,
    clock: Time = time,
    seen: Seen | None = None,
) -> Settled:
    """Decide each row and, with `commit`, commit what is to be committed.

    All rows of a group must be in one call. The target's commits are read here, just before
    they are written, and again before anything is sent a second time: a call that is repeated
    commits nothing twice. Nothing is sent from `until` on (seconds since 1970 UTC).
    """
    turns = Turns(
        flow, target, settlements, commit=commit, until=until, clock=clock, seen=seen or Seen()
    )
    rows = turns.rows()
    # After the commits, for a slow answer must not come between reading and writing them.
    ranges = _ranges_again(target, settlements, rows)
    return Settled(
        tuple(
            _with_own_range(flow, settlement, row, ranges)
            for settlement, row in zip(settlements, rows, strict=True)
        ),
        Cost(commit_gap_seconds=turns.longest_gap_seconds),
    )


def _ranges_again(
    target: Cluster, settlements: Sequence[Settlement], rows: Sequence[Row]
) -> Mapping[TopicPartition, LogRange | Failed]:
    """The own ranges of logs that a target commit seems to lie past.

    It may lie in what came since translation saw the end, or in a transaction that is still
    open: nothing of that is wrong.
    """
    suspects = {
        settlement.commit.target
        for settlement, row in zip(settlements, rows, strict=True)
        if row.reason is Reason.TARGET_PAST_LOG_END and settlement.commit.target is not None
    }
    if not suspects:
        return {}
    try:
        return target.log_ranges(suspects, Isolation.READ_UNCOMMITTED)
    except ClusterUnreachable:
        return {}


def _with_own_range(
    flow: FlowSettings,
    settlement: Settlement,
    row: Row,
    ranges: Mapping[TopicPartition, LogRange | Failed],
) -> Row:
    """The row decided with the log's own range; with none where it could not be read."""
    if row.reason is not Reason.TARGET_PAST_LOG_END:
        return row
    position, there = settlement.position, settlement.commit.target
    assert position is not None
    assert there is not None
    assert row.current_target_offset is not None
    found = ranges.get(there)
    target_range = found if isinstance(found, LogRange) else None
    ranged = replace(settlement, position=replace(position, target_range=target_range))
    return decided(flow, ranged, CommittedOffset(row.current_target_offset))


def settlements(
    commits: Iterable[SourceCommit], translated: Iterable[TranslatedPosition]
) -> list[Settlement]:
    """Each commit with the translation of its position, where it needs one."""
    positions = {(one.partition, one.offset): one for one in translated}
    rewriting = {
        one.partition.topic for one in positions.values() if one.target_rewrites_timestamps
    }
    found = []
    for commit in commits:
        position = None
        if commit.verdict is None and commit.partition and commit.committed and commit.target:
            position = positions[commit.partition, commit.committed.offset]
            if commit.partition.topic in rewriting:
                position = whole_topic(position, commit.target.topic)
        found.append(Settlement(commit, position))
    return found


def whole_topic(position: TranslatedPosition, target_topic: str) -> TranslatedPosition:
    """The position as part of a topic whose target was seen to rewrite timestamps.

    A partition that the target does not have, or that could not be asked, stays that.
    """
    outcome = position.translation.outcome
    if isinstance(outcome, Failed) or (
        isinstance(outcome, Skipped) and outcome.reason is Reason.TARGET_MISSING
    ):
        return position
    return replace(
        position, translation=replace(position.translation, outcome=rewritten(target_topic))
    )


def failed_row(flow: str, failure: Failed) -> Row:
    """The row of something that failed before its groups were known."""
    return with_verdict(
        Row(flow, None, None, None, None, None, None, None, None, OutcomeKind.FAILED), failure
    )
