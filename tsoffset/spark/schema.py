"""The tables that travel between a cycle's stages, and what they are on either side.

Each is an Arrow schema with flat columns; a stage gets and gives Arrow and works on the
domain's values in between. Absent is null, an enum is its word.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import pyarrow as pa

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
from tsoffset.plan import Remembered, SourceCommit, TranslatedPosition
from tsoffset.sync import GroupWork, Settlement
from tsoffset.translate import Translation

_TEXT, _BOOL = pa.string(), pa.bool_()
_INT8, _INT32, _INT64 = pa.int8(), pa.int32(), pa.int64()
_SPARK_TYPES = {
    _TEXT: "string",
    _BOOL: "boolean",
    _INT8: "tinyint",
    _INT32: "int",
    _INT64: "bigint",
    pa.binary(): "binary",
}


def _no(prefix: str) -> list[tuple[str, pa.DataType]]:
    """The columns of a `Skipped` or `Failed`."""
    return [
        (f"{prefix}_reason", _TEXT),
        (f"{prefix}_failure", _TEXT),
        (f"{prefix}_message", _TEXT),
        (f"{prefix}_flags", _INT8),
    ]


GROUPS = pa.schema(
    [
        ("group", _TEXT),
        ("type", _TEXT),
        ("target_type", _TEXT),
        ("target_active", _BOOL),
    ]
)
"""`GroupWork`: what a task over groups begins with."""

REMEMBERED = pa.schema(
    [
        ("group", _TEXT),
        ("source_topic", _TEXT),
        ("partition", _INT32),
        ("remembered_source_offset", _INT64),
        ("remembered_target_offset", _INT64),
    ]
)
"""`Remembered` by group and source partition: the driver's memory between cycles."""

WORK = pa.schema([("settle_task", _INT32), ("groups", pa.binary()), ("remembered", pa.binary())])
"""One row for each task over groups; the tables within are Arrow streams."""

COMMITS = pa.schema(
    [
        # The task that settles this row's group; the one that read it has the same number.
        ("settle_task", _INT32),
        # Not null: no commit but the count of distinct offsets that a task read of a partition.
        ("distinct_offsets", _INT64),
        ("group", _TEXT),
        ("source_topic", _TEXT),
        ("partition", _INT32),
        ("source_offset", _INT64),
        ("metadata", _TEXT),
        ("leader_epoch", _INT32),
        ("target_topic", _TEXT),
        ("target_partition", _INT32),
        ("remote_name", _BOOL),
        ("reverse", _BOOL),
        ("target_active", _BOOL),
        *_no("verdict"),
        ("remembered_source_offset", _INT64),
        ("remembered_target_offset", _INT64),
    ]
)
"""`SourceCommit` with its `Remembered`."""

TRANSLATIONS = pa.schema(
    [
        ("target_offset", _INT64),
        ("precision", _TEXT),
        ("reread_bound", _INT64),
        ("same_from", _INT64),
        ("same_to", _INT64),
        *_no("outcome"),
        ("source_timestamp_ms", _INT64),
        ("target_start", _INT64),
        ("target_end", _INT64),
        ("rewrites_timestamps", _BOOL),
    ]
)
"""`TranslatedPosition` but for the position itself, which the commit has."""

SETTLEMENTS = pa.schema(
    [
        # Not null: no settlement but word of a source topic whose target rewrites timestamps.
        ("rewritten_topic", _TEXT),
        *COMMITS.remove(COMMITS.get_field_index("distinct_offsets")),
        *TRANSLATIONS,
    ]
)
"""`Settlement`: a commit with the translation of its position, where it needs one."""

TASKED_COMMITS = COMMITS.append(pa.field("translate_task", _INT32))
"""`COMMITS` with the task that translates the row's partition."""

ROWS = pa.schema(
    [
        ("flow", _TEXT),
        ("group", _TEXT),
        ("source_topic", _TEXT),
        ("partition", _INT32),
        ("source_offset", _INT64),
        ("source_timestamp_ms", _INT64),
        ("target_topic", _TEXT),
        ("target_offset", _INT64),
        ("current_target_offset", _INT64),
        ("outcome", _TEXT),
        ("reason", _TEXT),
        ("precision", _TEXT),
        ("reread_bound", _INT64),
        ("message", _TEXT),
    ]
)
"""`Row`: docs/design.md section 4."""


def spark_schema(schema: pa.Schema) -> str:
    """The same schema as Spark writes it."""
    return ", ".join(f"`{field.name}` {_SPARK_TYPES[field.type]}" for field in schema)


def to_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow stream, to lie in one cell of another."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(stream: bytes) -> pa.Table:
    """The table of an Arrow stream."""
    with pa.ipc.open_stream(stream) as reader:
        return reader.read_all()


def table(schema: pa.Schema, values: Iterable[tuple[Any, ...]]) -> pa.Table:
    """A table of rows given as tuples in the schema's order."""
    columns = list(zip(*values, strict=True)) or [()] * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def tuples(rows: pa.Table, schema: pa.Schema) -> Iterator[tuple[Any, ...]]:
    """The rows of a table as tuples of the schema's columns; a column it lacks is None."""
    columns = [
        rows.column(name).to_pylist() if name in rows.column_names else [None] * rows.num_rows
        for name in schema.names
    ]
    return zip(*columns, strict=True)


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


def remembered_of(rows: pa.Table) -> dict[tuple[str, TopicPartition], Remembered]:
    """What a table like REMEMBERED says of each group and source partition."""
    return {
        (group, TopicPartition(topic, partition)): Remembered(source, target)
        for group, topic, partition, source, target in tuples(rows, REMEMBERED)
    }


# --- commits ----------------------------------------------------------------------------


def commits_table(
    settle_task: int,
    commits: Iterable[SourceCommit],
    remembered: Mapping[tuple[str, TopicPartition], Remembered],
) -> pa.Table:
    """Commits as COMMITS."""
    return table(COMMITS, [_commit_tuple(settle_task, commit, remembered) for commit in commits])


def _commit_tuple(
    settle_task: int,
    commit: SourceCommit,
    remembered: Mapping[tuple[str, TopicPartition], Remembered],
) -> tuple[Any, ...]:
    partition, target, committed = commit.partition, commit.target, commit.committed
    last = None if partition is None else remembered.get((commit.group, partition))
    return (
        settle_task,
        None,
        commit.group,
        *((None, None) if partition is None else (partition.topic, partition.partition)),
        *(
            (None, None, None)
            if committed is None
            else (committed.offset, committed.metadata, committed.leader_epoch)
        ),
        *((None, None) if target is None else (target.topic, target.partition)),
        commit.remote_name,
        commit.reverse,
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
                outcome.same_from,
                outcome.same_to,
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
    blank = (None,) * (len(SETTLEMENTS) - 2)
    return table(
        SETTLEMENTS, [(topic, task, *blank) for topic in topics for task in range(settle_tasks)]
    )


def settlements_of(rows: pa.Table) -> Iterator[Settlement]:
    """The settlements of a table like SETTLEMENTS, which holds nothing else."""
    for values in tuples(rows, SETTLEMENTS):
        row = dict(zip(SETTLEMENTS.names, values, strict=True))
        commit = SourceCommit(
            row["group"],
            _partition(row["source_topic"], row["partition"]),
            None
            if row["source_offset"] is None
            else CommittedOffset(row["source_offset"], row["metadata"], row["leader_epoch"]),
            _partition(row["target_topic"], row["target_partition"]),
            row["remote_name"],
            row["reverse"],
            row["target_active"],
            _no_of(row, "verdict"),
        )
        last = row["remembered_source_offset"]
        yield Settlement(
            commit,
            _position_of(commit, row),
            None if last is None else Remembered(last, row["remembered_target_offset"]),
        )


def _position_of(commit: SourceCommit, row: Mapping[str, Any]) -> TranslatedPosition | None:
    outcome: Outcome | None = _no_of(row, "outcome")
    if row["target_offset"] is not None:
        outcome = Translated(
            row["target_offset"],
            Precision(row["precision"]),
            row["reread_bound"],
            row["same_from"],
            row["same_to"],
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
