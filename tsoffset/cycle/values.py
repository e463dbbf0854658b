"""Result rows as values, and as rows of the Arrow table ROWS."""

from collections.abc import Iterable, Iterator
from operator import attrgetter

import pyarrow as pa

from tsoffset.cycle.schema import ROWS
from tsoffset.model import Failed, FailureKind, OutcomeKind, Precision, Reason, Row


def rows_table(rows: Iterable[Row]) -> pa.Table:
    values = map(attrgetter(*ROWS.names), rows)
    columns = list(zip(*values, strict=True)) or [()] * len(ROWS)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, ROWS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=ROWS)


def failed_row(flow: str, failure: Failed) -> Row:
    """The row of something that failed before its groups were known."""
    nothing = (None, None, None, None, None, None, None, None)
    why = (failure.kind, None, None, failure.message)
    return Row(flow, *nothing, OutcomeKind.FAILED, *why)


def rows_of(rows: pa.Table) -> Iterator[Row]:
    columns = [rows.column(name).to_pylist() for name in ROWS.names]
    for values in zip(*columns, strict=True):
        row = dict(zip(ROWS.names, values, strict=True))
        outcome, reason, precision = row["outcome"], row["reason"], row["precision"]
        words = FailureKind if outcome == OutcomeKind.FAILED else Reason
        row["outcome"] = OutcomeKind(outcome)
        row["reason"] = None if reason is None else words(reason)
        row["precision"] = None if precision is None else Precision(precision)
        yield Row(**row)
