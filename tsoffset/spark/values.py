"""The domain's values as rows of `tsoffset.spark.schema`'s tables, and back."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import pyarrow as pa

from tsoffset.cycle.source_commits import GroupWork
from tsoffset.cycle.turns import Settlement
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    GroupType,
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
from tsoffset.rule.decide import LastCommit, SourceCommit, TranslatedPosition
from tsoffset.rule.translate import Translation
from tsoffset.spark.schema import (
    COMMITS,
    GROUPS,
    LAST_COMMITS,
    ROWS,
    SETTLEMENTS,
    TRANSLATIONS,
    table,
    tuples,
)

# --- groups -----------------------------------------------------------------------------


def groups_table(groups: Iterable[GroupWork]) -> pa.Table:
    """Groups to sync as GROUPS."""
    return table(GROUPS, [(g.group, g.type, g.target_type, g.target_active) for g in groups])


def groups_of(rows: pa.Table) -> list[GroupWork]:
    """The groups of a table like GROUPS."""
    return [
        GroupWork(group, GroupType(type_), target_type and GroupType(target_type), active)
        for group, type_, target_type, active in tuples(rows, GROUPS)
    ]


def last_commits_of(rows: pa.Table) -> dict[tuple[str, TopicPartition], LastCommit]:
    """What a table like LAST_COMMITS says of each group and source partition."""
    return {
        (group, TopicPartition(topic, partition)): LastCommit(source, target)
        for group, topic, partition, source, target in tuples(rows, LAST_COMMITS)
    }


# --- commits ----------------------------------------------------------------------------


def commits_table(
    settle_task: int,
    commits: Iterable[SourceCommit],
    last_commits: Mapping[tuple[str, TopicPartition], LastCommit],
) -> pa.Table:
    """Commits as COMMITS."""
    return table(COMMITS, [_commit_tuple(settle_task, commit, last_commits) for commit in commits])


def _commit_tuple(
    settle_task: int,
    commit: SourceCommit,
    last_commits: Mapping[tuple[str, TopicPartition], LastCommit],
) -> tuple[Any, ...]:
    partition, target, committed = commit.partition, commit.target, commit.committed
    last = None if partition is None else last_commits.get((commit.group, partition))
    return (
        settle_task,
        None,
        commit.group,
        *((None, None) if partition is None else (partition.topic, partition.partition)),
        *((None, None) if committed is None else (committed.offset, committed.metadata)),
        *((None, None) if target is None else (target.topic, target.partition)),
        commit.is_remote_topic,
        commit.failback,
        commit.target_active,
        *_no_tuple(commit.verdict),
        *((None, None) if last is None else (last.source_offset, last.target_offset)),
    )


def distinct_offsets_table(settle_task: int, offsets: Mapping[TopicPartition, int]) -> pa.Table:
    """How many distinct offsets a task read of each partition, as COMMITS."""
    blank = (None,) * (len(COMMITS) - 5)
    return table(
        COMMITS,
        [
            (settle_task, count, None, one.topic, one.partition, *blank)
            for one, count in offsets.items()
        ],
    )


# --- translations -----------------------------------------------------------------------


def translations_table(positions: Iterable[TranslatedPosition]) -> pa.Table:
    """Translations as TRANSLATIONS, in the order given."""
    return table(TRANSLATIONS, [_translation_tuple(position) for position in positions])


def _translation_tuple(position: TranslatedPosition) -> tuple[Any, ...]:
    outcome = position.translation.outcome
    span = position.target_range
    return (
        *(
            (
                outcome.target_offset,
                outcome.precision,
                outcome.reread_bound,
                outcome.equivalent_from,
                outcome.equivalent_to,
                *_no_tuple(None),
            )
            if isinstance(outcome, Translated)
            else (None, None, None, None, None, *_no_tuple(outcome))
        ),
        position.translation.source_timestamp_ms,
        *((None, None) if span is None else (span.start, span.end)),
        position.target_rewrites_timestamps,
    )


def rewritten_topics_table(topics: Sequence[str], settle_tasks: int) -> pa.Table:
    """Word to every task that settles, of each topic whose target rewrites timestamps."""
    blank = (None,) * (len(SETTLEMENTS) - 3)
    return table(
        SETTLEMENTS,
        [(topic, None, task, *blank) for topic in topics for task in range(settle_tasks)],
    )


def report_table(report: bytes, settle_task: int) -> pa.Table:
    """A report on its way to the driver by way of a task that settles, as SETTLEMENTS."""
    blank = (None,) * (len(SETTLEMENTS) - 3)
    return table(SETTLEMENTS, [(None, report, settle_task, *blank)])


def settlements_of(rows: pa.Table) -> Iterator[Settlement]:
    """The settlements of a table like SETTLEMENTS, which holds nothing else."""
    for values in tuples(rows, SETTLEMENTS):
        row = dict(zip(SETTLEMENTS.names, values, strict=True))
        commit = SourceCommit(
            row["group"],
            _partition(row["source_topic"], row["partition"]),
            None
            if row["source_offset"] is None
            else CommittedOffset(row["source_offset"], row["metadata"]),
            _partition(row["target_topic"], row["target_partition"]),
            row["is_remote_topic"],
            row["failback"],
            row["target_active"],
            _no_of(row, "verdict"),
        )
        last = row["remembered_source_offset"]
        yield Settlement(
            commit,
            _position_of(commit, row),
            None if last is None else LastCommit(last, row["remembered_target_offset"]),
        )


def _position_of(commit: SourceCommit, row: Mapping[str, Any]) -> TranslatedPosition | None:
    outcome: Outcome | None = _no_of(row, "outcome")
    if row["target_offset"] is not None:
        outcome = Translated(
            row["target_offset"],
            Precision(row["precision"]),
            row["reread_bound"],
            row["equivalent_from"],
            row["equivalent_to"],
        )
    if outcome is None:
        return None
    assert commit.partition is not None
    assert commit.committed is not None
    return TranslatedPosition(
        commit.partition,
        commit.committed.offset,
        Translation(outcome, row["source_timestamp_ms"]),
        None if row["target_start"] is None else LogRange(row["target_start"], row["target_end"]),
        row["rewrites_timestamps"],
    )


# --- rows -------------------------------------------------------------------------------


def rows_table(rows: Iterable[Row]) -> pa.Table:
    """Rows as ROWS."""
    return table(ROWS, map(attrgetter(*ROWS.names), rows))


def rows_of(rows: pa.Table) -> Iterator[Row]:
    """The rows of a table like ROWS."""
    for values in tuples(rows, ROWS):
        row = dict(zip(ROWS.names, values, strict=True))
        outcome, reason, precision = row["outcome"], row["reason"], row["precision"]
        words = FailureKind if outcome == OutcomeKind.FAILED else Reason
        row["outcome"] = OutcomeKind(outcome)
        row["reason"] = None if reason is None else words(reason)
        row["precision"] = None if precision is None else Precision(precision)
        yield Row(**row)


# --- a no -------------------------------------------------------------------------------


def _no_tuple(no: Skipped | Failed | None) -> tuple[Any, ...]:
    match no:
        case None:
            return (None, None, None, None)
        case Skipped(reason, message):
            return (reason, None, message, None)
        case Failed(kind, message, missing, group_active, metadata_too_large):
            return (None, kind, message, missing | group_active << 1 | metadata_too_large << 2)


def _no_of(row: Mapping[str, Any], prefix: str) -> Skipped | Failed | None:
    reason, failure = row[f"{prefix}_reason"], row[f"{prefix}_failure"]
    if reason is not None:
        return Skipped(Reason(reason), row[f"{prefix}_message"])
    if failure is None:
        return None
    flags = row[f"{prefix}_flags"]
    return Failed(
        FailureKind(failure),
        row[f"{prefix}_message"],
        missing=bool(flags & 1),
        group_active=bool(flags & 2),
        metadata_too_large=bool(flags & 4),
    )


@lru_cache(maxsize=100_000)
def _partition(topic: str | None, partition: int | None) -> TopicPartition | None:
    """One value for each partition, however many rows name it."""
    return None if topic is None or partition is None else TopicPartition(topic, partition)
