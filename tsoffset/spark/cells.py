"""Values and frames as bytes: what a task is given, and what it returns."""

import io
import pickle
from typing import Any

import polars as pl


def _frame_of(stream: bytes) -> pl.DataFrame:
    """The frame of an Arrow file. All-null columns of one type share their memory."""
    frame = pl.read_ipc(stream)
    nothing: dict[pl.DataType, pl.Series] = {}
    return pl.DataFrame(
        [
            column
            if column.null_count() < len(column)
            else nothing.setdefault(column.dtype, column).alias(column.name)
            for column in frame
        ]
    )


class _Pickler(pickle.Pickler):
    """Compresses frames, which Polars does not."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, pl.DataFrame):
            return _frame_of, (value.write_ipc(None, compression="lz4").getvalue(),)
        return NotImplemented


def to_cell(value: Any) -> bytes:
    cell = io.BytesIO()
    _Pickler(cell, pickle.HIGHEST_PROTOCOL).dump(value)
    return cell.getvalue()


def from_cell(cell: bytes) -> Any:
    return pickle.loads(cell)  # noqa: S301 (of our own tasks)
