"""The tables of a cycle, as they travel: what goes in comes out."""

import pickle
from dataclasses import replace
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.terminal.test_row_columns import rows_of_any_kind
from tsoffset.cycle.work import PartitionWork
from tsoffset.group_sync.rows import rows_of, rows_table
from tsoffset.group_sync.tables import COMMIT_WORK, TO_TRANSLATE, left_join, select
from tsoffset.group_sync.translate import partitions_frame, work_by_partition
from tsoffset.model import FailureKind, OutcomeKind, Row, TopicPartition
from tsoffset.rule.partition_cache import LogEnds, LogIdentity, PartitionCache
from tsoffset.spark.cells import from_cell, to_cell

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
OFFSET = st.integers(0, 2**63 - 1)
FLAGS = st.booleans()
EPOCH = st.integers(0, 2**31 - 1)
PARTITION = st.builds(TopicPartition, TEXT, EPOCH)
ENDS = st.builds(LogEnds, OFFSET, OFFSET, OFFSET)
IDENTITY = st.builds(LogIdentity, TEXT, EPOCH)
PARTITION_CACHES = st.lists(
    st.builds(
        PartitionCache,
        PARTITION,
        FLAGS,
        FLAGS,
        IDENTITY,
        IDENTITY,
        ENDS,
        st.lists(st.tuples(OFFSET, OFFSET), max_size=5).map(tuple),
        st.none() | st.tuples(OFFSET, OFFSET),
    ),
    max_size=4,
    unique_by=lambda cache: cache.source,
)


def sent(value: Any) -> Any:
    """As it arrives at a task."""
    return from_cell(to_cell(value))


@settings(deadline=None)
@given(PARTITION_CACHES, FLAGS, FLAGS)
def test_work_is_read_from_positions(caches, is_remote_topic, failback):
    """The offsets of each partition that stand together, with what was cached of it."""
    work = [
        PartitionWork(
            one.source,
            TopicPartition("copy", one.source.partition),
            tuple(range(number + 1)),
            is_remote_topic,
            failback,
            one if number % 2 else None,
        )
        for number, one in enumerate(caches)
    ]
    rows = [
        (part.source.topic, part.source.partition, offset, "copy", is_remote_topic, failback)
        for part in work
        for offset in part.offsets
    ]
    offsets = pl.DataFrame(rows, TO_TRANSLATE, orient="row")
    known = partitions_frame(part.cache for part in work if part.cache is not None)
    assert work_by_partition(sent(offsets), sent(known)) == work


def possible(row: Row) -> Row:
    """The row, where it has to with a reason of its outcome's own kind."""
    is_failed = row.outcome is OutcomeKind.FAILED
    if isinstance(row.reason, FailureKind) == is_failed:
        return row
    return replace(row, reason=FailureKind.TIMEOUT if is_failed else None)


@settings(deadline=None)
@given(st.lists(rows_of_any_kind.map(possible)))
def test_rows_survive_the_way_to_the_driver(rows):
    """Rows are collected as they were made, in order, absent fields absent."""
    assert list(rows_of(rows_table(rows))) == rows


def test_a_frame_travels_alone_and_compressed():
    """A task is given its own rows, not all that they are a slice of. Polars' own way takes five
    times the room."""
    work = pl.DataFrame({"group": [f"g{n:06}" for n in range(10_000)], "source_offset": 7})
    work = select(work, COMMIT_WORK)
    (there,) = sent([work[3:13]])
    assert there.equals(work[3:13])
    assert there.schema == work.schema
    assert len(to_cell(work[3:13])) < 8_000 < len(to_cell(work)) < len(pickle.dumps(work)) / 2


def test_columns_without_values_take_no_memory_of_their_own():
    """Of what a cycle reads for the first time these are a third."""
    nothing = pl.Series([None] * 3, dtype=pl.Int64)
    columns = dict.fromkeys("ab", nothing) | {"c": pl.Series([1, 2, 3])}
    there = sent(pl.DataFrame(columns))
    assert there.equals(pl.DataFrame(columns))
    a, b = (there[name].to_arrow().buffers()[1].address for name in "ab")
    assert a == b


NAMED = st.tuples(st.none() | st.sampled_from("abc"), st.none() | st.integers(0, 2))


@settings(deadline=None)
@given(st.lists(NAMED, max_size=5), st.lists(NAMED, max_size=9, unique=True), FLAGS)
def test_rows_find_those_of_another_table(keys, others, same):
    """As a join does it that looks all up; also where both have the same rows in the same order."""
    names = {"topic": pl.String, "partition": pl.Int32}
    on = list(names)
    rows = pl.DataFrame(others if same else keys, names, orient="row").with_row_index("row")
    table = pl.DataFrame(others, names, orient="row").with_row_index("other")
    expected = rows.join(table, on=on, how="left", maintain_order="left")
    found = left_join(rows, table, on)
    assert found.select(expected.columns).equals(expected)
