"""Rows of one table found in another, against dictionaries of tuples."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tsoffset.cycle.matching import (
    in_partitions,
    joined,
    keys,
    numbered,
    numbers,
    partitions_at,
    places,
    take,
)
from tsoffset.cycle.schema import TEXT
from tsoffset.model import TopicPartition
from tsoffset.records import Numbers
from tsoffset.rule.carry_over import NOTHING

Rows = list[tuple[int, ...]]
# Few that meet often; and those that are too large to be packed as they are.
NUMBER = st.integers(NOTHING, 4) | st.integers(2**62 - 3, 2**62) | st.just(2**63 - 2)
NAME = st.none() | st.sampled_from(["", "a", "b", "ab", "ä", "漢"])


@st.composite
def tables(draw: st.DrawFn, count: int) -> list[Rows]:
    """So many tables of numbers, all with the same one to four columns."""
    row = st.tuples(*[NUMBER] * draw(st.integers(1, 4)))
    return [draw(st.lists(row, max_size=12)) for _ in range(count)]


def columns(rows: Rows, width: int) -> list[Numbers]:
    return [np.array([row[at] for row in rows], np.int64) for at in range(width)]


def width_of(tables: Sequence[Rows]) -> int:
    return next((len(rows[0]) for rows in tables if rows), 1)


@given(tables(2))
def test_places_are_those_of_a_dictionary(given: list[Rows]) -> None:
    """Each row's place in the other table; NOTHING where it is not there."""
    wanted, there = given[0], list(dict.fromkeys(given[1]))
    width = width_of([wanted, there])
    expected = {row: place for place, row in enumerate(there)}
    found = places(columns(wanted, width), columns(there, width))
    assert found.tolist() == [expected.get(row, NOTHING) for row in wanted]


@given(tables(3))
def test_keys_are_equal_and_ordered_as_rows_are(given: list[Rows]) -> None:
    """Over all tables: two rows are equal, or one before the other, where their numbers are."""
    width = width_of(given)
    found = keys(*(columns(rows, width) for rows in given))
    number: dict[tuple[int, ...], int] = {}
    for rows, of_each in zip(given, found, strict=True):
        assert len(of_each) == len(rows)
        for row, one in zip(rows, of_each.tolist(), strict=True):
            assert number.setdefault(row, one) == one
    assert sorted(number, key=number.__getitem__) == sorted(number)
    assert len(set(number.values())) == len(number)


@given(st.lists(st.lists(st.lists(NAME, max_size=4), max_size=3), min_size=1, max_size=3))
def test_text_is_numbered_in_the_order_of_the_words(given: list[list[list[str | None]]]) -> None:
    """Whatever dictionaries a column's pieces have; NOTHING where it is null."""
    found = numbered(
        *(pa.chunked_array([pa.array(piece, TEXT) for piece in c], TEXT) for c in given)
    )
    values = [[name for piece in column for name in piece] for column in given]
    words = sorted({name for column in values for name in column if name is not None})
    assert [column.tolist() for column in found] == [
        [NOTHING if name is None else words.index(name) for name in column] for column in values
    ]


@given(st.lists(st.none() | st.integers(0, 2**63 - 1)))
def test_numbers_are_nothing_where_they_are_null(given: list[int | None]) -> None:
    """Absent in a table is NOTHING in an array."""
    found = numbers(pa.chunked_array([pa.array(given, pa.int64())])).tolist()
    assert found == [NOTHING if number is None else number for number in given]


PARTITION = st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 3))
SCHEMA = pa.schema([("source_topic", TEXT), ("partition", pa.int32()), ("number", pa.int64())])


def table(partitions: Sequence[TopicPartition]) -> pa.Table:
    columns = [
        [one.topic for one in partitions],
        [one.partition for one in partitions],
        range(len(partitions)),
    ]
    arrays = [pa.array(c, field.type) for c, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


@settings(deadline=None)
@given(st.lists(st.lists(PARTITION, max_size=4), max_size=3), st.lists(PARTITION, unique=True))
def test_partitions_are_found_in_tables(
    pieces: list[list[TopicPartition]], there: list[TopicPartition]
) -> None:
    """Where a row's partition stands, whether it is one of some, and the row taken from there; of
    tables that were put together of others."""
    rows = joined([SCHEMA.empty_table(), *map(table, pieces)])
    wanted = [partition for piece in pieces for partition in piece]
    at = partitions_at(rows, table(there))
    expected = [there.index(one) if one in there else NOTHING for one in wanted]
    assert at.tolist() == expected
    assert in_partitions(rows, table(there)).tolist() == [one in there for one in wanted]
    found = take(table(there), at)["number"].to_pylist()
    assert found == [None if place == NOTHING else place for place in expected]
