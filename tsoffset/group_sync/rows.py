"""Frames as Arrow tables, in which text is a dictionary, and back."""

import polars as pl
import pyarrow as pa

from tsoffset.cycle.schema import ROWS, TEXT, as_text, by_name, columns_table
from tsoffset.group_sync.tables import Schema, select
from tsoffset.model import Precision

_ARROW: dict[type[pl.DataType] | pl.DataType, pa.DataType] = {
    pl.String: TEXT,
    pl.Boolean: pa.bool_(),
    pl.Int32: pa.int32(),
    pl.Int64: pa.int64(),
    pl.List(pl.Int64): pa.list_(pa.int64()),
}


def arrow_schema(schema: Schema) -> pa.Schema:
    return pa.schema([(name, _ARROW[dtype]) for name, dtype in schema.items()])


def with_acknowledged(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows, with the acknowledged records of share groups added to `reread_bound`: a share
    group reads them again, since they lie after its start offset. An exact translation becomes a
    bounded one by that."""
    again = pl.col("acknowledged").fill_null(0)
    is_exact = pl.col("precision") == Precision.EXACT
    return rows.with_columns_seq(
        reread_bound=pl.col("reread_bound") + again,
        precision=pl.when(is_exact & (again > 0))
        .then(pl.lit(Precision.BOUNDED))
        .otherwise("precision"),
    )


def rows_table(rows: pl.DataFrame) -> pa.Table:
    return as_arrow(rows, ROWS)


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
