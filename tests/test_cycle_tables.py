"""The tables of a cycle, as they travel: what goes in comes out."""

import pickle
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsoffset.cycle import schema, values
from tsoffset.cycle.cells import from_cell, to_cell
from tsoffset.cycle.schema import columns_table
from tsoffset.cycle.source_commits import GroupWork
from tsoffset.cycle.work import PartitionWork, TranslatedPosition
from tsoffset.group_sync.tables import COMMIT_WORK, select
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    GroupType,
    OutcomeKind,
    Precision,
    Reason,
    Row,
    Skipped,
    TopicPartition,
)
from tsoffset.rule.carry_over import Holds, LogEnds, LogIdentity, PartitionCarryOver
from tsoffset.rule.translate import Translation

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
OFFSET = st.integers(0, 2**63 - 1)
FLAGS = st.booleans()
EPOCH = st.integers(0, 2**31 - 1)
PARTITION = st.builds(TopicPartition, TEXT, EPOCH)
COMMITTED = st.builds(CommittedOffset, OFFSET, TEXT)
NO = st.builds(Skipped, st.sampled_from(Reason), TEXT) | st.builds(
    Failed, st.sampled_from(FailureKind), TEXT, FLAGS, FLAGS, FLAGS
)
BOUND = st.none() | OFFSET
ENDS = st.builds(LogEnds, OFFSET, OFFSET, OFFSET)
IDENTITY = st.builds(LogIdentity, TEXT, EPOCH)
CARRY_OVERS = st.lists(
    st.builds(
        PartitionCarryOver,
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
    unique_by=lambda carry_over: carry_over.source,
)


def sent(value: Any) -> Any:
    """As it arrives at a task."""
    return from_cell(to_cell(value))


@settings(deadline=None)
@given(st.lists(st.tuples(PARTITION, st.none() | st.builds(Holds, st.none() | ENDS)), max_size=4))
def test_a_table_says_for_how_long_translations_hold(
    given: list[tuple[TopicPartition, Holds | None]],
) -> None:
    """Not at all, for good, or while both logs end there."""
    failed = Translation(Failed(FailureKind.TIMEOUT, "no"))
    positions = [TranslatedPosition(partition, 0, failed) for partition, _ in given]
    table = values.translations_table(positions, [holds for _, holds in given])
    ends = ("while_source_end", "while_source_log_end", "while_target_end")
    found = zip(table["holds"].to_pylist(), *(table[e].to_pylist() for e in ends), strict=True)
    assert [
        None if not holds else Holds(None if None in numbers else LogEnds(*numbers))
        for holds, *numbers in found
    ] == [holds for _, holds in given]


@settings(deadline=None)
@given(CARRY_OVERS)
def test_carry_overs_survive_the_way_between_driver_and_tasks(
    carry_overs: list[PartitionCarryOver],
) -> None:
    """What tasks report is what the next cycle's tasks are given."""
    table = sent(values.partitions_table(carry_overs))
    assert values.carry_overs_of(table) == {one.source: one for one in carry_overs}


@settings(deadline=None)
@given(CARRY_OVERS, FLAGS, FLAGS)
def test_work_is_read_from_positions(
    carry_overs: list[PartitionCarryOver], is_remote_topic: bool, failback: bool
) -> None:
    """The offsets of each partition that stand together, with what was carried over of it."""
    work = [
        PartitionWork(
            one.source,
            TopicPartition("copy", one.source.partition),
            tuple(range(number + 1)),
            is_remote_topic,
            failback,
            one if number % 2 else None,
        )
        for number, one in enumerate(carry_overs)
    ]
    rows = [
        (part.source.topic, part.source.partition, "copy", is_remote_topic, failback, offset)
        for part in work
        for offset in part.offsets
    ]
    known = {part.source: part.carry_over for part in work if part.carry_over is not None}
    assert values.work_of(sent(schema.table(schema.POSITIONS, rows)), known) == work


ROW = st.builds(
    Row,
    TEXT,
    st.none() | TEXT,
    st.none() | TEXT,
    st.none() | st.integers(0, 2**31 - 1),
    st.none() | OFFSET,
    st.none() | OFFSET,
    st.none() | TEXT,
    st.none() | OFFSET,
    st.none() | OFFSET,
    st.sampled_from(OutcomeKind),
)


@settings(deadline=None)
@given(
    st.lists(
        ROW
        | st.builds(
            Row,
            *[TEXT] * 3,
            st.integers(0, 9),
            *[OFFSET] * 2,
            TEXT,
            *[OFFSET] * 2,
            st.just(OutcomeKind.FAILED),
            st.sampled_from(FailureKind),
            st.none(),
            st.none(),
            TEXT,
        )
        | st.builds(
            Row,
            *[TEXT] * 3,
            st.integers(0, 9),
            *[OFFSET] * 2,
            TEXT,
            *[OFFSET] * 2,
            st.just(OutcomeKind.SKIPPED),
            st.sampled_from(Reason),
            st.sampled_from(Precision),
            BOUND,
            TEXT,
        )
    )
)
def test_rows_survive_the_way_to_the_driver(rows: list[Row]) -> None:
    """Rows are collected as they were made, in order, absent fields absent."""
    assert list(values.rows_of(values.rows_table(rows))) == rows


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            GroupWork,
            TEXT,
            st.sampled_from(GroupType),
            st.none() | st.sampled_from(GroupType),
            FLAGS,
        )
    )
)
def test_groups_survive_the_way_to_the_workers(groups: list[GroupWork]) -> None:
    """A task reads the groups that the driver gave it."""
    numbered = dict(enumerate(groups, 5))
    assert values.groups_of(sent(values.groups_table(numbered.items()))) == numbered


@pytest.mark.parametrize(
    "table",
    [schema.LOOKED, schema.PAIRS, schema.REMEMBERED, schema.ROWS],
)
def test_no_column_is_there_twice(table: pa.Schema) -> None:
    """Tables are put together of others: what two of them have has one name in each."""
    assert len(set(table.names)) == len(table.names)


def test_a_table_without_rows_keeps_its_columns() -> None:
    """A step that has nothing to say still says it in the schema agreed on."""
    assert schema.table(schema.ROWS, []).schema == schema.ROWS
    assert columns_table(schema.LOOKED, 0, {}).schema == schema.LOOKED
    assert sent(schema.LOOKED.empty_table()).schema == schema.LOOKED


def test_columns_that_are_null_share_their_room() -> None:
    """What a first look finds is mostly null; all of one type costs what one column does."""
    rows = 10_000
    table = columns_table(schema.LOOKED, rows, {"source_offset": range(rows)})
    there = sent(table)
    assert there == table
    assert there.schema == table.schema
    assert there["source_offset"].null_count == 0
    for found in (table, there):
        columns = {c.chunk(0).buffers()[-1].address for c in found.columns if c.type == pa.int64()}
        assert len(columns) == 2


def test_a_slice_travels_alone() -> None:
    """A task is given its own rows, and not all that they are a slice of."""
    rows = [("orders", 0, "A.orders", True, False, n * 7**14 % 10**9) for n in range(1_000)]
    whole = schema.table(schema.POSITIONS, rows)
    part = whole.slice(3, 10)
    assert sent((7, [part])) == (7, [part])
    assert len(to_cell(whole)) - len(to_cell(part)) > 3 * len(whole)


def test_a_frame_travels_alone_and_compressed() -> None:
    """The same of what the last step is given: Polars' own way takes five times the room."""
    work = pl.DataFrame({"group": [f"g{n:06}" for n in range(10_000)], "source_offset": 7})
    work = select(work, COMMIT_WORK)
    (there,) = sent([work[3:13]])
    assert there.equals(work[3:13])
    assert there.schema == work.schema
    assert len(to_cell(work[3:13])) < 8_000 < len(to_cell(work)) < len(pickle.dumps(work)) / 2
