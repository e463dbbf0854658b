"""A cycle's result rows as an Arrow table, and help with such tables.

Absent values are null, and enums are their words. Texts are dictionary-encoded: they repeat, so
each costs only a number.
"""

import signal
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import polars as pl
import pyarrow as pa

# Polars lets system calls go on after a signal: a wait for a cluster would not notice Ctrl-C.
signal.siginterrupt(signal.SIGINT, True)

TEXT = pa.dictionary(pa.int32(), pa.string())
_INT32, _INT64 = pa.int32(), pa.int64()

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
"""`Row`: docs/commands.md."""


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


def by_name(rows: pa.Table) -> dict[str, Any]:
    return dict(zip(rows.column_names, rows.columns, strict=True))


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as plain text, because a dictionary may hold words that no row has."""
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def matching_rows(rows: pa.Table, others: pa.Table, on: Sequence[str]) -> pa.Array:
    """For each row, the index of the first row of `others` with the same values in `on` (null
    equals null); null if there is none."""
    here, there = (
        pl.DataFrame(pa.table({name: as_text(table[name]) for name in on}))
        for table in (rows, others)
    )
    if here.equals(there):
        # As in most cycles.
        return pl.int_range(len(rows), dtype=pl.UInt32, eager=True).to_arrow()
    firsts = there.with_row_index("index").unique(on, keep="first")
    found = here.join(firsts, on=on, how="left", nulls_equal=True, maintain_order="left")
    return found["index"].to_arrow()


def concat_rows(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of tables of one schema, one table after the other. Nothing is copied where only one
    has rows."""
    there = [rows for rows in tables if len(rows)]
    return pa.concat_tables(there or tables[:1]).unify_dictionaries()
