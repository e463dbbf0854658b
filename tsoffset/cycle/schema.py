"""The tables that a cycle's steps take and give, as Arrow schemas with a row a pair of group and
source partition, or a row a position.

`tsoffset.cycle.values` says what their rows are in the domain's words. Absent is null, an enum is
its word. Text is a dictionary: it repeats, and so costs a number a row.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import pyarrow as pa

TEXT, _BOOL = pa.dictionary(pa.int32(), pa.string()), pa.bool_()
_INT32, _INT64 = pa.int32(), pa.int64()


# A `Reason` or a `FailureKind`, and what a person should know of it.
_WHY = [("reason", TEXT), ("message", TEXT)]

GROUPS = pa.schema(
    [
        # Its place among the cycle's groups, which are in the order of their names.
        ("number", _INT32),
        ("group", pa.string()),
        ("type", TEXT),
        ("target_type", TEXT),
        ("target_active", _BOOL),
    ]
)
"""`GroupWork`."""

_KNOWN = [
    # An exact translation: of which source offset, and what it came to.
    ("known_offset", _INT64),
    ("known_target", _INT64),
    ("known_from", _INT64),
    ("known_to", _INT64),
    ("known_timestamp_ms", _INT64),
    # Where the logs ended, if it holds no longer than they do; null where it holds for good.
    ("known_source_end", _INT64),
    ("known_source_log_end", _INT64),
    ("known_target_end", _INT64),
]
# `LastCommit`.
_LAST = [("last_source", _INT64), ("last_target", _INT64)]
KNOWN_OF_A_PAIR = [name for name, _ in _KNOWN]
REMEMBERED_OF_A_PAIR = [name for name, _ in (*_KNOWN, *_LAST)]

PAIRS = pa.schema([("group", TEXT), ("source_topic", TEXT), ("partition", _INT32), *_KNOWN, *_LAST])
"""What is carried over of each pair of group and source partition."""

REMEMBERED = PAIRS.set(0, pa.field("group", _INT32))
"""The same for a task, its groups by number."""

# By which logs are told from others, and how far they reach.
LOG_IDENTITY = [
    "source_topic_id",
    "source_leader_epoch",
    "target_topic_id",
    "target_leader_epoch",
]
LOG_ENDS = ["source_end", "source_log_end", "target_end"]

_OFFSETS = pa.list_(_INT64)

PARTITIONS = pa.schema(
    [
        ("source_topic", TEXT),
        ("partition", _INT32),
        ("is_remote_topic", _BOOL),
        ("failback", _BOOL),
        ("source_topic_id", TEXT),
        ("source_leader_epoch", _INT32),
        ("target_topic_id", TEXT),
        ("target_leader_epoch", _INT32),
        ("source_end", _INT64),
        ("source_log_end", _INT64),
        ("target_end", _INT64),
        # Of each pair of records.
        ("pair_sources", _OFFSETS),
        ("pair_targets", _OFFSETS),
        # The highest record pair that stays safe while both logs are the same.
        ("frontier_source", _INT64),
        ("frontier_target", _INT64),
        ("first_from", _INT64),
    ]
)
"""`PartitionCarryOver`."""

LOGS = pa.schema(
    [
        ("source_topic", TEXT),
        ("partition", _INT32),
        ("source_start", _INT64),
        ("source_end", _INT64),
        ("source_log_end", _INT64),
        ("target_start", _INT64),
        ("target_end", _INT64),
    ]
)
"""What the logs are now of which something was remembered: those that are the same ones still."""

TRANSLATED = pa.schema(
    [
        ("target_offset", _INT64),
        ("precision", TEXT),
        ("reread_bound", _INT64),
        ("equivalent_from", _INT64),
        ("equivalent_to", _INT64),
        *_WHY,
        ("source_timestamp_ms", _INT64),
        ("target_start", _INT64),
        ("target_end", _INT64),
        ("rewrites_timestamps", _BOOL),
    ]
)
"""`TranslatedPosition` but for the position itself."""

TRANSLATIONS = pa.schema(
    [
        *TRANSLATED,
        # `Holds`: false where the translation is not to be remembered.
        ("holds", _BOOL),
        ("while_source_end", _INT64),
        ("while_source_log_end", _INT64),
        ("while_target_end", _INT64),
        ("source_log_end", _INT64),
    ]
)
"""The same, for how long it holds, and the end of the source's log; null where it was not read."""

COMMITS = pa.schema(
    [
        ("group", _INT32),
        ("source_topic", TEXT),
        ("partition", _INT32),
        ("source_offset", _INT64),
        # Not a dictionary: where there is some it seldom repeats.
        ("metadata", pa.string()),
        ("target_topic", TEXT),
        ("is_remote_topic", _BOOL),
        ("failback", _BOOL),
        ("target_active", _BOOL),
        *_WHY,
    ]
)
"""`SourceCommit`, its group by number."""

LOOKED = pa.schema(
    [
        *COMMITS,
        *_KNOWN,
        *_LAST,
        # Of the pair's logs, where what is known of the position holds.
        ("target_start", _INT64),
        ("target_end", _INT64),
        # What is known is the translation; and the target group stands where it leads.
        ("recalled", _BOOL),
        ("settled", _BOOL),
        ("current_target_offset", _INT64),
    ]
)
"""The commits of groups as a look at both clusters finds them, with what is remembered of each. A
row without `source_offset` and `reason` is no commit: it is only remembered."""

POSITIONS = pa.schema(
    [
        ("source_topic", TEXT),
        ("partition", _INT32),
        ("target_topic", TEXT),
        ("is_remote_topic", _BOOL),
        ("failback", _BOOL),
        ("source_offset", _INT64),
    ]
)
"""Positions to translate."""

SETTLED = pa.schema(
    [
        ("source_timestamp_ms", _INT64),
        ("target_offset", _INT64),
        ("current_target_offset", _INT64),
        ("outcome", TEXT),
        ("reason", TEXT),
        ("precision", TEXT),
        ("reread_bound", _INT64),
        ("message", TEXT),
    ]
)
"""What became of each commit, in their order: of `Row` what the commit does not have."""

ROWS = pa.schema(
    [
        ("flow", TEXT),
        ("group", TEXT),
        ("source_topic", TEXT),
        ("partition", _INT32),
        ("source_offset", _INT64),
        ("source_timestamp_ms", _INT64),
        ("target_topic", TEXT),
        ("target_offset", _INT64),
        ("current_target_offset", _INT64),
        ("outcome", TEXT),
        ("reason", TEXT),
        ("precision", TEXT),
        ("reread_bound", _INT64),
        ("message", TEXT),
        ("consumer_lag", _INT64),
    ]
)
"""`Row`: docs/design.md section 4."""


def columns_table(schema: pa.Schema, rows: int, columns: Mapping[str, Any]) -> pa.Table:
    """A table of columns given by name; those that are not given are null."""
    nothing = cache(partial(pa.nulls, rows))
    return pa.table(
        {
            field.name: nothing(field.type) if (given := columns.get(field.name)) is None else given
            for field in schema
        },
        schema=schema,
    )


def with_shared_nulls(rows: pa.Table) -> pa.Table:
    """The same table in less memory: its columns of one type that are null throughout are one.

    Of what a cycle looks at for the first time these are most columns.
    """
    there = {name: c for name, c in by_name(rows).items() if c.null_count < len(rows)}
    return columns_table(rows.schema, len(rows), there)


def by_name(rows: pa.Table) -> dict[str, Any]:
    """The columns of a table by their names."""
    return dict(zip(rows.column_names, rows.columns, strict=True))


def table(schema: pa.Schema, values: Iterable[tuple[Any, ...]]) -> pa.Table:
    """A table of rows given as tuples in the schema's order."""
    columns = list(zip(*values, strict=True)) or [()] * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def tuples(rows: pa.Table, schema: pa.Schema) -> Iterator[tuple[Any, ...]]:
    """The rows of a table as tuples of the schema's columns."""
    columns = [rows.column(name).to_pylist() for name in schema.names]
    return zip(*columns, strict=True)
