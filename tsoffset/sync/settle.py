"""The end of a cycle: read what the target groups have, decide each row, commit.

The target's commits are read in the same call that writes them.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tsoffset.cluster import Cluster
from tsoffset.errors import ClusterUnreachable
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    GroupOffsets,
    Isolation,
    LogRange,
    OutcomeKind,
    Reason,
    Row,
    Skipped,
    TopicPartition,
)
from tsoffset.plan import (
    Remembered,
    SourceCommit,
    TranslatedPosition,
    active,
    decide,
    target_missing,
    with_verdict,
)
from tsoffset.settings import FlowSettings
from tsoffset.skips import rewritten
from tsoffset.sync.commits import committed_offsets


@dataclass(frozen=True, slots=True)
class Settlement:
    """One commit with its translation (None where its verdict is known without one)."""

    commit: SourceCommit
    position: TranslatedPosition | None = None
    remembered: Remembered | None = None


def settle_groups(
    flow: FlowSettings, target: Cluster, settlements: Sequence[Settlement], *, commit: bool
) -> Iterator[Row]:
    """Decide each row and, with `commit`, commit what is to be committed.

    All rows of a group must be in one call. The target's commits are read here, just before
    they are written, so that a call that is repeated commits nothing twice.
    """
    groups = sorted({s.commit.group for s in settlements if s.commit.partition is not None})
    current = committed_offsets(target, groups, require_stable=True)

    def decided(settlement: Settlement) -> Row:
        return decide(
            flow.name,
            settlement.commit,
            settlement.position,
            _current_of(settlement.commit, current),
            remembered=settlement.remembered,
            floor=flow.translation.floor,
        )

    rows = [decided(settlement) for settlement in settlements]
    if commit:
        rows = _commit(target, settlements, rows)
    # After the commits, for a slow answer must not come between reading and writing them.
    ranges = _ranges_again(target, settlements, rows)
    for settlement, row in zip(settlements, rows, strict=True):
        suspect = row.reason is Reason.TARGET_PAST_LOG_END
        yield decided(_with_range(settlement, ranges)) if suspect else row


def _current_of(
    commit: SourceCommit, current: Mapping[str, GroupOffsets | Failed]
) -> CommittedOffset | Failed | None:
    offsets = current.get(commit.group, {})
    if isinstance(offsets, Failed):
        return offsets
    return None if commit.target is None else offsets.get(commit.target)


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


def _with_range(
    settlement: Settlement, ranges: Mapping[TopicPartition, LogRange | Failed]
) -> Settlement:
    """The settlement with the log's own range; with none where it could not be read."""
    position, there = settlement.position, settlement.commit.target
    assert position is not None
    assert there is not None
    found = ranges.get(there)
    target_range = found if isinstance(found, LogRange) else None
    return replace(settlement, position=replace(position, target_range=target_range))


def _commit(target: Cluster, settlements: Sequence[Settlement], rows: Sequence[Row]) -> list[Row]:
    pending: defaultdict[str, dict[TopicPartition, CommittedOffset]] = defaultdict(dict)
    for settlement, row in zip(settlements, rows, strict=True):
        if row.outcome is OutcomeKind.WOULD_COMMIT:
            source, there = settlement.commit.committed, settlement.commit.target
            assert source is not None
            assert there is not None
            assert row.target_offset is not None
            pending[settlement.commit.group][there] = CommittedOffset(
                row.target_offset, source.metadata
            )
    answers = _try_commit(target, pending)
    too_large = {
        group: {
            partition: replace(pending[group][partition], metadata="")
            for partition, answer in partitions.items()
            if isinstance(answer, Failed) and answer.metadata_too_large
        }
        for group, partitions in answers.items()
    }
    too_large = {group: offsets for group, offsets in too_large.items() if offsets}
    again = _try_commit(target, too_large)
    done = []
    for settlement, row in zip(settlements, rows, strict=True):
        group, there = settlement.commit.group, settlement.commit.target
        if row.outcome is not OutcomeKind.WOULD_COMMIT or there is None:
            done.append(row)
            continue
        shortened = there in too_large.get(group, {})
        answer = (again if shortened else answers)[group][there]
        if answer is None:
            message = (
                "committed without the source commit's metadata, which the target refuses as too "
                "large; raise offset.metadata.max.bytes there"
                if shortened
                else None
            )
            done.append(replace(row, outcome=OutcomeKind.COMMITTED, message=message))
        elif answer.group_active:
            done.append(with_verdict(row, active(group)))
        elif answer.missing:
            done.append(with_verdict(row, target_missing(there)))
        else:
            done.append(with_verdict(row, answer))
    return done


def _try_commit(
    target: Cluster, commits: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
) -> Mapping[str, Mapping[TopicPartition, Failed | None]]:
    if not commits:
        return {}
    try:
        return target.commit(commits)
    except ClusterUnreachable as error:
        failed = Failed(FailureKind.UNREACHABLE, str(error))
        return {group: dict.fromkeys(offsets, failed) for group, offsets in commits.items()}


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
