"""Rows of one table found in another, and put in order: Arrow columns as arrays of numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tsoffset.columns import Flags
from tsoffset.committed import CommittedColumns
from tsoffset.cycle.schema import with_shared_nulls
from tsoffset.records import Numbers
from tsoffset.rule.carry_over import NOTHING

Integers = npt.NDArray[np.signedinteger[Any]]

_LARGEST = 2**63


def numbers(column: pa.ChunkedArray) -> Numbers:
    """A column of numbers; NOTHING where it is null."""
    full = column.fill_null(NOTHING) if column.null_count else column
    found: Numbers = full.to_numpy().astype(np.int64, copy=False)
    return found


def numbered(*columns: pa.ChunkedArray) -> list[Numbers]:
    """Columns of text by number: in the order of the words, equal ones the same in all columns;
    NOTHING where it is null."""
    joined = [_joined(column) for column in columns]
    words = sorted({word for column in joined for word in column.dictionary.to_pylist()})
    number = {word: place for place, word in enumerate(words)}
    found = []
    for column in joined:
        of_each = [number[word] for word in column.dictionary.to_pylist()]
        by_index = np.array([*of_each, NOTHING], np.int64)
        found.append(by_index[column.indices.fill_null(len(of_each)).to_numpy()])
    return found


def _joined(column: pa.ChunkedArray) -> pa.DictionaryArray:
    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
    return whole


def words(values: Sequence[str], at: Integers) -> pa.DictionaryArray:
    """A column of text: of each row the value at its number."""
    return pa.DictionaryArray.from_arrays(at.astype(np.int32), pa.array(values, pa.string()))


def places(wanted: Sequence[Integers], there: Sequence[Integers]) -> Numbers:
    """For each row of `wanted`, given by its columns, where the row of `there` stands that has
    the same numbers in its columns; NOTHING where none has. No two rows of `there` are equal."""
    if not len(there[0]):
        return np.full(len(wanted[0]), NOTHING)
    looked_for, known = keys(wanted, there)
    order = np.argsort(known, kind="stable")
    known = known[order]
    at = np.minimum(np.searchsorted(known, looked_for), len(known) - 1)
    return np.where(known[at] == looked_for, order[at], NOTHING)


def keys(*tables: Sequence[Integers]) -> list[Numbers]:
    """For each table, given by its columns, one number a row, in the order of the rows; equal ones
    the same in all tables. The numbers in the columns are NOTHING or more."""
    found = [np.zeros(len(table[0]), np.int64) for table in tables]
    room = 1
    for of_each in zip(*tables, strict=True):
        columns: Sequence[Integers] = [column.astype(np.int64, copy=False) for column in of_each]
        width = max(int(column.max(initial=NOTHING)) for column in columns) + 2
        if room * width >= _LARGEST:
            found, columns = _ranked(found), _ranked(columns)
            room, width = _widest(found), _widest(columns) + 1
        found = [key * width + (column + 1) for key, column in zip(found, columns, strict=True)]
        room *= width
    return found


def _ranked(columns: Sequence[Integers]) -> list[Numbers]:
    """The same order in the smallest numbers."""
    known = np.unique(np.concatenate(columns))
    return [np.searchsorted(known, column) for column in columns]


def _widest(columns: Sequence[Integers]) -> int:
    return max(int(column.max(initial=NOTHING)) for column in columns) + 1


def take(rows: pa.Table, at: Numbers) -> pa.Table:
    """The rows at these numbers; null rows where it is NOTHING. Nothing is copied where these are
    all rows in their order."""
    if np.array_equal(at, np.arange(len(rows))):
        return rows
    return with_shared_nulls(rows.take(pa.array(at, mask=at == NOTHING)))


def only(rows: pa.Table, wanted: Flags) -> pa.Table:
    """The rows that are wanted; nothing is copied where these are all."""
    return rows if wanted.all() else rows.filter(pa.array(wanted))


def woven(rows: pa.Table, others: pa.Table, is_other: Flags) -> pa.Table:
    """The rows of two tables of one schema as one: each in its order, where the flags say."""
    if not len(others) or not len(rows):
        return rows if len(rows) else others
    at = np.empty(len(is_other), np.int64)
    at[~is_other] = np.arange(len(rows))
    at[is_other] = len(rows) + np.arange(len(others))
    return joined([rows, others]).take(pa.array(at))


def without_reason(rows: pa.Table) -> Flags:
    """Whether nothing stands against a commit so far, for each row of COMMITS."""
    found: Flags = rows["reason"].is_null().to_numpy()
    return found


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of tables of one schema, behind each other: nothing but text is copied, and nothing
    where only one of them has rows."""
    there = [rows for rows in tables if len(rows)]
    return pa.concat_tables(there or tables[:1]).unify_dictionaries()


def committed_there(rows: pa.Table, current: CommittedColumns, groups: Integers) -> Numbers:
    """For each row, by group and target partition, the target offset that is committed; NOTHING
    where none is. `groups` are the numbers of the groups that have `current`."""
    topics = pa.chunked_array([words(current.topics, current.topic)])
    here, there = numbered(rows["target_topic"], topics)
    at = places(
        (numbers(rows["group"]), here, numbers(rows["partition"])),
        (groups[current.group], there, current.partition),
    )
    return np.append(current.offset, NOTHING)[at]


# --- partitions -------------------------------------------------------------------------

PLACES = ["source_topic", "partition"]


def partitions_at(rows: pa.Table, partitions: pa.Table) -> Numbers:
    """For each row where its partition stands in `partitions`, which has each once; NOTHING where
    it does not."""
    here, there = numbered(rows["source_topic"], partitions["source_topic"])
    return places((here, numbers(rows["partition"])), (there, numbers(partitions["partition"])))


def in_partitions(rows: pa.Table, partitions: pa.Table) -> Flags:
    """Whether each row's partition is one of these."""
    if not len(partitions):
        return np.zeros(len(rows), bool)
    found: Flags = partitions_at(rows, partitions) != NOTHING
    return found


def first_of_each_partition(rows: pa.Table) -> Numbers:
    """Where the rows of each partition begin, which stand together."""
    (topic,) = numbered(rows["source_topic"])
    changes = (np.diff(topic) != 0) | (np.diff(numbers(rows["partition"])) != 0)
    return np.flatnonzero(np.append(True, changes)[: len(rows)])


def one_of_each(rows: pa.Table) -> pa.Table:
    """The partitions of the rows, each once."""
    return rows.select(PLACES).group_by(PLACES).aggregate([])
