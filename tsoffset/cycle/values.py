"""Result rows as values, and as rows of the Arrow table ROWS."""

from collections.abc import Iterable, Iterator
from operator import attrgetter

import pyarrow as pa

from tsoffset.cycle.schema import ROWS, table, tuples
from tsoffset.model import Failed, FailureKind, OutcomeKind, Precision, Reason, Row


def rows_table(rows: Iterable[Row]) -> pa.Table:
    return table(ROWS, map(attrgetter(*ROWS.names), rows))


def failed_row(flow: str, failure: Failed) -> Row:
    """The row of something that failed before its groups were known."""
    nothing = (None, None, None, None, None, None, None, None)
    why = (failure.kind, None, None, failure.message)
    return Row(flow, *nothing, OutcomeKind.FAILED, *why)


def rows_of(rows: pa.Table) -> Iterator[Row]:
    for values in tuples(rows, ROWS):
        row = dict(zip(ROWS.names, values, strict=True))
        outcome, reason, precision = row["outcome"], row["reason"], row["precision"]
        words = FailureKind if outcome == OutcomeKind.FAILED else Reason
        row["outcome"] = OutcomeKind(outcome)
        row["reason"] = None if reason is None else words(reason)
        row["precision"] = None if precision is None else Precision(precision)
        yield Row(**row)
