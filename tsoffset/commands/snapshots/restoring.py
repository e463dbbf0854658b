"""Restores a snapshot: which offsets are committed, and why others are not."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tsoffset.cluster import Cluster, committed_columns
from tsoffset.commands.snapshots.file import Commit, Snapshot, topics_of
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    GroupListings,
    Isolation,
    LogRange,
    OutcomeKind,
    TopicPartition,
)


class RestoreReason(StrEnum):
    NO_COMMIT_THEN = "NO_COMMIT_THEN"
    GROUP_ACTIVE = "GROUP_ACTIVE"
    TOPIC_MISSING = "TOPIC_MISSING"
    TOPIC_MADE_ANEW = "TOPIC_MADE_ANEW"
    PAST_LOG_END = "PAST_LOG_END"


@dataclass(frozen=True, slots=True)
class RestoredCommit:
    """One committed offset: in the snapshot (None if it has none), currently, and after the
    restore (or a dry run)."""

    cluster: str
    group: str
    topic: str
    partition: int
    snapshot_offset: int | None
    current_offset: int | None
    restored_offset: int | None
    outcome: OutcomeKind
    reason: RestoreReason | FailureKind | None = None
    message: str | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def offsets_forward(self) -> int:
        """By how many offsets the snapshot's offset moves the group forward; 0 if the log start is
        restored in its place, since the records below are deleted."""
        if self.current_offset is None or self.restored_offset != self.snapshot_offset:
            return 0
        return max(0, (self.restored_offset or 0) - self.current_offset)

    @property
    def not_restored(self) -> bool:
        stays = self.outcome in (OutcomeKind.SKIPPED, OutcomeKind.FAILED)
        return stays and self.reason is not RestoreReason.NO_COMMIT_THEN


def plan(
    snapshot: Snapshot,
    target: Cluster,
    listed: GroupListings,
    *,
    is_group: Callable[[str], bool],
    is_topic: Callable[[str], bool],
) -> list[RestoredCommit]:
    """Plan the rows, by group and partition: one for each committed offset of the snapshot (with
    WOULD_COMMIT, `restored_offset` is to be committed), and one for each offset that a wanted group
    has committed in a partition that the snapshot lacks. Raises ClusterUnreachable."""
    commits = snapshot.commits
    share_groups = {c.group for c in commits if c.share_group} | listed.share_groups
    groups = sorted({commit.group for commit in commits} | set(filter(is_group, listed.groups)))
    found = committed_columns(
        target, groups, share_groups=share_groups, require_stable=False
    ).by_group()
    topics = topics_of(target, {commit.topic for commit in commits})
    topic_partitions = {commit.topic_partition for commit in commits if commit.topic in topics}
    ranges = (
        target.log_ranges(sorted(topic_partitions), Isolation.READ_UNCOMMITTED)
        if topic_partitions
        else {}
    )
    rows = []
    for commit in commits:
        offsets, listing = found[commit.group], listed.groups.get(commit.group)
        current = offsets if isinstance(offsets, Failed) else offsets.get(commit.topic_partition)
        row = RestoredCommit(
            snapshot.cluster,
            commit.group,
            commit.topic,
            commit.partition,
            commit.offset,
            current.offset if isinstance(current, CommittedOffset) else None,
            None,
            OutcomeKind.UNCHANGED,
        )
        if isinstance(current, Failed):
            row = _fail(row, current)
        elif current != CommittedOffset(commit.offset, commit.metadata):
            if listing is not None and listing.active:
                row = _active(row)
            else:
                now = topics.get(commit.topic)
                log = now if isinstance(now, Failed) else ranges.get(commit.topic_partition)
                same_topic = snapshot.topic_ids.get(commit.topic) == now
                row = _plan_row(row, commit, log, same_topic=same_topic)
        rows.append(row)
    known = {(commit.group, commit.topic_partition) for commit in commits}
    rows += (
        RestoredCommit(
            snapshot.cluster,
            group,
            topic_partition.topic,
            topic_partition.partition,
            None,
            one.offset,
            None,
            OutcomeKind.SKIPPED,
            RestoreReason.NO_COMMIT_THEN,
            "the group had no committed offset in this partition when the snapshot was taken, so"
            " its present offset stays; kafka-consumer-groups --delete-offsets removes it",
        )
        for group, offsets in found.items()
        for topic_partition, one in (() if isinstance(offsets, Failed) else offsets.items())
        if isinstance(one, CommittedOffset)
        and is_topic(topic_partition.topic)
        and (group, topic_partition) not in known
    )
    return sorted(rows, key=lambda row: (row.group, row.topic, row.partition))


def commit_restored(
    rows: Sequence[RestoredCommit], snapshot: Snapshot, target: Cluster
) -> list[RestoredCommit]:
    """Commit the rows with WOULD_COMMIT, and return all rows with their results. Raises
    ClusterUnreachable."""
    metadata = {
        (commit.group, commit.topic_partition): commit.metadata for commit in snapshot.commits
    }
    commits: defaultdict[str, dict[TopicPartition, CommittedOffset]] = defaultdict(dict)
    for row in rows:
        if row.restored_offset is not None:
            kept = CommittedOffset(row.restored_offset, metadata[row.group, row.topic_partition])
            commits[row.group][row.topic_partition] = kept
    share_groups = {commit.group for commit in snapshot.commits if commit.share_group}
    answers = target.commit(commits, share_groups=share_groups) if commits else {}
    return [
        row
        if row.restored_offset is None
        else _result(row, answers[row.group][row.topic_partition])
        for row in rows
    ]


def _plan_row(
    row: RestoredCommit, commit: Commit, log: LogRange | Failed | None, *, same_topic: bool
) -> RestoredCommit:
    """`log` is None if the topic does not exist."""
    cluster = row.cluster
    if log is None or (isinstance(log, Failed) and log.missing):
        why = f"{commit.topic_partition} no longer exists on {cluster}"
        return _skip(row, RestoreReason.TOPIC_MISSING, why)
    if isinstance(log, Failed):
        return _fail(row, log)
    translates = "`tsoffset sync` translates the group's offset for it"
    if not same_topic:
        # Its offsets belong to other records now.
        why = f"topic {commit.topic} was recreated on {cluster} after the snapshot; {translates}"
        return _skip(row, RestoreReason.TOPIC_MADE_ANEW, why)
    if commit.offset > log.end:
        why = (
            f"{commit.topic_partition} now ends at {log.end} on {cluster}: it was truncated after"
            f" the snapshot, and consumers would be reset; {translates}"
        )
        return _skip(row, RestoreReason.PAST_LOG_END, why)
    message = None
    if commit.offset < log.start:
        # Below the log start a consumer would be reset: with `latest` past all records.
        message = (
            f"records before {log.start} were deleted after the snapshot, so the offset is set to"
            f" {log.start}"
        )
    restored = max(commit.offset, log.start)
    return replace(row, outcome=OutcomeKind.WOULD_COMMIT, restored_offset=restored, message=message)


def _result(row: RestoredCommit, answer: Failed | None) -> RestoredCommit:
    if answer is None:
        return replace(row, outcome=OutcomeKind.COMMITTED)
    return _active(row) if answer.group_active else _fail(row, answer)


def _active(row: RestoredCommit) -> RestoredCommit:
    why = (
        f"group {row.group} has active members on {row.cluster}; stop its consumers, and run this"
        " command again"
    )
    return _skip(row, RestoreReason.GROUP_ACTIVE, why)


def _skip(row: RestoredCommit, why: RestoreReason, message: str) -> RestoredCommit:
    return replace(row, outcome=OutcomeKind.SKIPPED, reason=why, message=message)


def _fail(row: RestoredCommit, failed: Failed) -> RestoredCommit:
    return replace(row, outcome=OutcomeKind.FAILED, reason=failed.kind, message=failed.message)
