"""Result rows: as frames, as the Arrow table ROWS, and as values."""

from collections.abc import Iterable, Iterator
from operator import attrgetter

import polars as pl
import pyarrow as pa

from tsoffset.group_sync.arrow_tables import TEXT
from tsoffset.model import Failed, FailureKind, OutcomeKind, Precision, Reason, Row

ROWS = pa.schema(
    [
        ("flow", TEXT),
        ("group", TEXT),
        ("source_topic", TEXT),
        ("partition", pa.int32()),
        ("source_offset", pa.int64()),
        ("source_timestamp_ms", pa.int64()),
        ("target_topic", TEXT),
        ("target_offset", pa.int64()),
        ("current_target_offset", pa.int64()),
        ("outcome", TEXT),
        ("reason", TEXT),
        ("precision", TEXT),
        ("reread_bound", pa.int64()),
        ("message", TEXT),
        ("consumer_lag", pa.int64()),
    ]
)
"""`Row`: docs/commands.md."""

_ROWS_AT_ONCE = 10_000


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


class Rows(Iterable[Row]):
    """A cycle's rows over the Arrow `table` they came in (schema ROWS)."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[Row]:
        for start in range(0, len(self), _ROWS_AT_ONCE):
            yield from rows_of(self.table.slice(start, _ROWS_AT_ONCE))
