"""The tables that travel between a cycle's stages.

Each is an Arrow schema with flat columns; `tsoffset.spark.values` says what they are in the
domain's words. Absent is null, an enum is its word. A table of partitions' carry-overs has lists,
and so travels as a stream in one cell.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

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

LAST_COMMITS = pa.schema(
    [
        ("group", _TEXT),
        ("source_topic", _TEXT),
        ("partition", _INT32),
        ("remembered_source_offset", _INT64),
        ("remembered_target_offset", _INT64),
    ]
)
"""`LastCommit` by group and source partition: what the driver keeps between cycles. Its columns are
named as state files have them."""

_OFFSETS = pa.list_(_INT64)

CARRY_OVER = pa.schema(
    [
        ("source_topic", _TEXT),
        ("partition", _INT32),
        ("remote_name", _BOOL),
        ("reverse", _BOOL),
        ("source_topic_id", _TEXT),
        ("source_leader_epoch", _INT32),
        ("target_topic_id", _TEXT),
        ("target_leader_epoch", _INT32),
        ("source_end", _INT64),
        ("source_log_end", _INT64),
        ("target_end", _INT64),
        # Of each known position; the lists are of one length.
        ("offsets", _OFFSETS),
        ("target_offsets", _OFFSETS),
        ("same_from", _OFFSETS),
        ("same_to", _OFFSETS),
        ("timestamps_ms", _OFFSETS),
        ("passed", pa.list_(_BOOL)),
        # Of each pair.
        ("pair_sources", _OFFSETS),
        ("pair_targets", _OFFSETS),
        ("frontier_source", _INT64),
        ("frontier_target", _INT64),
    ]
)
"""`PartitionCarryOver`: what the driver keeps of translations between cycles, a row a partition.
Its columns are named as state files have them: `remote_name` is `is_remote_topic`, `reverse` is
`failback`, `same_from` and `same_to` are `equivalent_from` and `equivalent_to`."""

WORK = pa.schema(
    [
        ("settle_task", _INT32),
        ("groups", pa.binary()),
        ("last_commits", pa.binary()),
        ("carry_over", pa.binary()),
    ]
)
"""One row for each task over groups; the tables within (GROUPS, LAST_COMMITS, and where the task
does it all, CARRY_OVER) are Arrow streams."""

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
        ("target_topic", _TEXT),
        ("target_partition", _INT32),
        ("is_remote_topic", _BOOL),
        ("failback", _BOOL),
        ("target_active", _BOOL),
        *_no("verdict"),
        ("remembered_source_offset", _INT64),
        ("remembered_target_offset", _INT64),
    ]
)
"""`SourceCommit` with its `LastCommit`."""

TRANSLATIONS = pa.schema(
    [
        ("target_offset", _INT64),
        ("precision", _TEXT),
        ("reread_bound", _INT64),
        ("equivalent_from", _INT64),
        ("equivalent_to", _INT64),
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
        # Not null: no settlement but what a task that translated has to tell the driver.
        ("report", pa.binary()),
        *COMMITS.remove(COMMITS.get_field_index("distinct_offsets")),
        *TRANSLATIONS,
    ]
)
"""`Settlement`: a commit with the translation of its position, where it needs one."""

TASKED_COMMITS = COMMITS.append(pa.field("translate_task", _INT32)).append(
    # Not null: no commit but the CARRY_OVER of this task's partitions, as a stream.
    pa.field("carry_over", pa.binary())
)
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

RESULTS = ROWS.append(
    # Not null: no row but a report for the driver.
    pa.field("report", pa.binary())
)
"""What a cycle gives back to the driver."""


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
