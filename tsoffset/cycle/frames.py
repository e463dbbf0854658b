"""Arrow tables of a cycle as Polars frames, and back."""

from collections.abc import Mapping

import polars as pl
import pyarrow as pa

from tsoffset.cycle.schema import TEXT


def to_frame(columns: Mapping[str, pa.ChunkedArray]) -> pl.DataFrame:
    """The columns as a frame. Dictionaries become text: Polars never frees its categories."""
    plain = {
        name: column.cast(pa.string()) if column.type == TEXT else column
        for name, column in columns.items()
    }
    return pl.DataFrame(pa.table(plain))


def to_arrow(frame: pl.DataFrame) -> dict[str, pa.ChunkedArray]:
    """The frame's columns, text as dictionaries."""
    rows = frame.to_arrow()
    return {
        name: column.cast(pa.string()).dictionary_encode()
        if frame.schema[name] == pl.String
        else column
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    }
