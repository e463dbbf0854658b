"""A cycle's last step by values, row by row, as the product did it before `tsoffset.group_sync`.

It is the oracle of the tables: one rule written twice, in two forms. It commits nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tsoffset.cluster import Cluster
from tsoffset.cycle.committed_offsets import committed_offsets
from tsoffset.cycle.source_commits import (
    CONSUMER_GROUPS,
    Claims,
    CompetingFlow,
    GroupWork,
    SourceCommit,
    _renamings,
)
from tsoffset.cycle.work import TranslatedPosition
from tsoffset.flow.policy import Renaming
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.commit import Time
from tsoffset.group_sync.translated_commits import TranslatedCommit
from tsoffset.model import (
    Basis,
    CommittedOffset,
    Failed,
    GroupOffsets,
    GroupType,
    Isolation,
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

REWINDABLE = (Reason.SOURCE_REWOUND, Reason.TARGET_AHEAD)


@dataclass(frozen=True, slots=True)
class LastCommit:
    """The last commit known of a group and partition: its offset on the source, and the one on the
    target that it became."""

    source_offset: int
    target_offset: int


def decided(
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
        if outcome.equivalent_from <= current.offset <= outcome.equivalent_to:
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
        f"group {group} has active members on the target, which commit its offsets themselves; "
        "stop them to sync the group",
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
            f"the target group's committed offset {current.offset} is past the target's log end "
            f"{target_range.end}: {commit.target} was recreated or truncated, and consumers would "
            "be reset; delete that offset on the target, and the next cycle commits a valid one",
        )
    if (
        last_commit is not None
        and commit.committed.offset < last_commit.source_offset
        and current.offset == last_commit.target_offset
    ):
        return Skipped(
            Reason.SOURCE_REWOUND,
            f"the source group went back from {last_commit.source_offset} to "
            f"{commit.committed.offset}; to move the target group back, too, run "
            "`tsoffset sync --allow-rewind`",
        )
    return Skipped(
        Reason.TARGET_AHEAD,
        f"the target group is already at {current.offset}; it is never moved backwards",
    )


def planned_rows(
    flow: FlowSettings,
    target: Cluster,
    commits: Iterable[TranslatedCommit],
    last_commits: Mapping[tuple[str, TopicPartition | None], LastCommit],
    clock: Time,
) -> list[Row]:
    """The row of each commit where nothing is committed."""
    found = []
    for one in commits:
        commit, position = one.commit, one.position
        current = _read(target, commit, clock)
        last = last_commits.get((commit.group, commit.partition))
        floor = flow.translation.floor
        row = decided(flow.name, commit, position, current, last_commit=last, floor=floor)
        if row.reason is Reason.TARGET_PAST_LOG_END:
            assert position is not None
            assert commit.target is not None
            ranges = target.log_ranges([commit.target], Isolation.READ_UNCOMMITTED)
            log = ranges[commit.target]
            own = log if isinstance(log, LogRange) else None
            position = replace(position, target_range=own)
            row = decided(flow.name, commit, position, current, last_commit=last, floor=floor)
        if position is not None and position.source_log_end is not None:
            row = replace(row, consumer_lag=position.source_log_end - position.offset)
        if commit.acknowledged and row.reread_bound is not None:
            exact = row.precision is Precision.EXACT
            row = replace(
                row,
                reread_bound=row.reread_bound + commit.acknowledged,
                precision=Precision.BOUNDED if exact else row.precision,
            )
        found.append(row)
    return found


def _read(target: Cluster, commit: SourceCommit, clock: Time) -> CommittedOffset | Failed | None:
    """What the group has; asked again for as long as that may help."""
    if commit.target is None:
        return None
    started = clock.monotonic()
    while True:
        offsets: GroupOffsets | Failed = committed_offsets(
            target,
            [commit.group],
            share_groups=[commit.group] if commit.is_share_group else [],
            require_stable=not commit.target_active,
        )[commit.group]
        current = offsets if isinstance(offsets, Failed) else offsets.get(commit.target)
        if not isinstance(current, Failed) or commit.target_active:
            return current
        if clock.monotonic() - started >= min(current.retry_seconds, 15.0):
            return current
        clock.sleep(0.5)


# --- source commits ---------------------------------------------------------------------


def read_commits(
    flow: FlowSettings,
    source: Cluster,
    groups: Sequence[GroupWork],
    competing_flows: Sequence[CompetingFlow] = (),
) -> Iterator[SourceCommit]:
    """The source commits of `groups` that the flow syncs, with the target partition of each."""
    names = [work.group for work in groups]
    share = [work.group for work in groups if work.type is GroupType.SHARE]
    offsets = committed_offsets(source, names, share_groups=share, require_stable=False)
    for commit in source_commits(flow, groups, offsets, Claims(competing_flows, names, share)):
        if commit.is_share_group and commit.verdict is None:
            yield _with_acknowledged(source, commit)
        else:
            yield commit


def _with_acknowledged(source: Cluster, commit: SourceCommit) -> SourceCommit:
    """The commit of a share group with how many records behind it are acknowledged at most."""
    assert commit.partition is not None
    assert commit.committed is not None
    log = source.log_ranges([commit.partition], Isolation.READ_UNCOMMITTED)[commit.partition]
    if isinstance(log, Failed):
        return replace(commit, verdict=log)
    behind = log.end - commit.committed.offset - (commit.committed.lag or 0)
    return replace(commit, acknowledged=max(0, behind))


def source_commits(
    flow: FlowSettings,
    groups: Sequence[GroupWork],
    offsets: Mapping[str, GroupOffsets | Failed],
    claims: "Claims",
) -> Iterator[SourceCommit]:
    """The commits of `groups` that the flow syncs, with the target partition of each; `offsets` are
    what the groups have on the source."""
    for work in groups:
        is_share_group = work.type is GroupType.SHARE
        found = offsets[work.group]
        if isinstance(found, Failed):
            yield SourceCommit(work.group, None, None, None, verdict=found)
            continue
        renamings = _renamings(flow, found)
        sharing = _sharing(renamings)
        for partition, renaming in renamings.items():
            committed = found[partition]
            target = TopicPartition(renaming.topic, partition.partition)
            verdict: Skipped | Failed | None = None
            if work.target_type is not None and (
                work.target_type is not GroupType.SHARE
                if is_share_group
                else work.target_type not in CONSUMER_GROUPS
            ):
                verdict = _unsupported(work)
            elif len(topics := sharing[target]) > 1:
                verdict = _several_topics(work.group, target, topics)
            elif (claim := claims.on(work.group, target, renaming)) is not None:
                verdict = claim
            elif isinstance(committed, Failed):
                verdict = committed
            yield SourceCommit(
                work.group,
                partition,
                None if isinstance(committed, Failed) else committed,
                target,
                renaming.is_remote_topic,
                renaming.failback,
                work.target_active,
                verdict,
                is_share_group,
            )


def _sharing(
    renamings: Mapping[TopicPartition, Renaming],
) -> Mapping[TopicPartition, Sequence[str]]:
    """For each target partition the source topics that become it."""
    sharing: defaultdict[TopicPartition, list[str]] = defaultdict(list)
    for partition, renaming in renamings.items():
        sharing[TopicPartition(renaming.topic, partition.partition)].append(partition.topic)
    return sharing


def _several_topics(group: str, target: TopicPartition, topics: Sequence[str]) -> Skipped:
    return Skipped(
        Reason.SEVERAL_SOURCES,
        f"{target} of group {group}: the source topics {' and '.join(topics)} all map to it; "
        "exclude all but one (topics.exclude)",
    )


def _unsupported(work: GroupWork) -> Skipped:
    message = (
        f"{work.group} is a {work.type} group on the source and a {work.target_type} group on the"
        " target; rename one of them, or delete the group on the target"
    )
    return Skipped(Reason.UNSUPPORTED_GROUP, message)
