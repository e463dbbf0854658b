"""What travels to a task and back: what goes in comes out."""

import pickle
from typing import Any

import polars as pl

from tsoffset.group_sync.tables import COMMIT_WORK, select
from tsoffset.spark.cells import from_cell, to_cell


def sent(value: Any) -> Any:
    """As it arrives at a task."""
    return from_cell(to_cell(value))


def test_a_frame_travels_alone_and_compressed():
    """A task is given its own rows, not all that they are a slice of. Polars' own way takes five
    times the room."""
    work = pl.DataFrame({"group": [f"g{n:06}" for n in range(10_000)], "source_offset": 7})
    work = select(work, COMMIT_WORK)
    (there,) = sent([work[3:13]])
    assert there.equals(work[3:13])
    assert there.schema == work.schema
    assert len(to_cell(work[3:13])) < 10_000 < len(to_cell(work)) < len(pickle.dumps(work)) / 2


def test_columns_without_values_take_no_memory_of_their_own():
    """Of what a cycle reads for the first time these are a third."""
    nothing = pl.Series([None] * 3, dtype=pl.Int64)
    columns = dict.fromkeys("ab", nothing) | {"c": pl.Series([1, 2, 3])}
    there = sent(pl.DataFrame(columns))
    assert there.equals(pl.DataFrame(columns))
    a, b = (there[name].to_arrow().buffers()[1].address for name in "ab")
    assert a == b
