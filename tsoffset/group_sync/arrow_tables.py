"""Arrow tables: made of frames, looked up in, and as bytes.

Absent values are null, and enums are their words. Texts are dictionary-encoded: they repeat, so
each costs only a number.
"""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import polars as pl
import pyarrow as pa

from tsoffset.group_sync.tables import Schema, select

TEXT = pa.dictionary(pa.int32(), pa.string())

_ARROW: dict[type[pl.DataType] | pl.DataType, pa.DataType] = {
    pl.String: TEXT,
    pl.Boolean: pa.bool_(),
    pl.Int32: pa.int32(),
    pl.Int64: pa.int64(),
    pl.List(pl.Int64): pa.list_(pa.int64()),
}

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", unify_dictionaries=True)


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


def arrow_schema(schema: Schema) -> pa.Schema:
    return pa.schema([(name, _ARROW[dtype]) for name, dtype in schema.items()])


def as_arrow(frame: pl.DataFrame, schema: pa.Schema) -> pa.Table:
    """The frame's columns as a table of this schema; columns that the frame lacks are null, and
    columns of nulls share their memory."""
    columns = {}
    # One after the other: plain text takes several times as much memory as a dictionary.
    for field in schema:
        if field.name in frame.columns and frame[field.name].null_count() < len(frame):
            column = frame[field.name].to_arrow(compat_level=pl.CompatLevel.oldest())
            if pa.types.is_dictionary(field.type):
                column = column.cast(pa.string()).dictionary_encode()
            columns[field.name] = column.cast(field.type)
    return columns_table(schema, len(frame), columns)


def as_frame(table: pa.Table, schema: Schema) -> pl.DataFrame:
    """The table as a frame of this schema. Dictionaries become text: Polars never frees its
    categories."""
    plain = {name: as_text(column) for name, column in by_name(table).items()}
    return select(pl.DataFrame(pa.table(plain)), schema)


def to_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow stream, compressed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(stream: bytes) -> pa.Table:
    with pa.ipc.open_stream(stream) as reader:
        return reader.read_all()
