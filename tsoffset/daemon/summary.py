"""Group-partitions summarized by group or by source topic.

A summary is made once a cycle from the table of group-partitions. Filters, sorting and pages of the
API, and the metrics, then only read its entries.
"""

from collections.abc import Collection
from enum import StrEnum
from functools import cached_property
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tsoffset.group_sync.arrow_tables import as_text
from tsoffset.model import OutcomeKind, Precision
from tsoffset.terminal.row_columns import readiness_of

# From the best to the worst. A group with a commit that is still to be made is not in place.
OUTCOMES = (
    OutcomeKind.UNCHANGED,
    OutcomeKind.COMMITTED,
    OutcomeKind.WOULD_COMMIT,
    OutcomeKind.SKIPPED,
    OutcomeKind.FAILED,
)
PRECISIONS = tuple(Precision)

Entry = dict[str, Any]
"""One group or source topic: the fields of `server.answers.EntryAnswer`, as far as the rows have
them; `reason`, that of the row that `message` is from; and further ones for metrics."""


class SummaryKey(StrEnum):
    GROUP = "group"
    TOPIC = "source_topic"


class Order(StrEnum):
    """Sort keys of entries."""

    NAME = "name"
    PAIRS = "pairs"
    PARTITIONS = "partitions"
    OUTCOME = "outcome"
    PRECISION = "precision"
    LAG_RECORDS = "lag_records"
    LAG_SECONDS = "lag_seconds"
    REREAD_BOUND = "reread_bound"
    CONSUMER_LAG = "consumer_lag"


def known_sum(column: str) -> pl.Expr:
    """Null if no value is known."""
    return pl.when(pl.col(column).count() > 0).then(pl.col(column).sum())


# The row of a group that failed as a whole has no partition.
_PLACED = pl.col("source_topic").is_not_null()
_TRANSLATED = _PLACED & pl.col("target_offset").is_not_null()
# An entry's reason and message are those of its first row with the worst outcome.
_OF_THE_WORST = pl.col("reason", "message").get(pl.col("outcome").arg_max())
_NEEDS_ATTENTION = pl.col("outcome").max() >= OUTCOMES.index(OutcomeKind.SKIPPED)


def _unknown(column: str, among: pl.Expr = _PLACED) -> pl.Expr:
    return (among & pl.col(column).is_null()).sum()


# The measures of an entry's group-partitions, and in `whole` those of all entries.
_MEASURES = {
    "pairs": _PLACED.sum(),
    "lag_records": known_sum("lag_records"),
    "lag_records_max": pl.col("lag_records").max(),
    "lag_records_min": pl.col("lag_records").min(),
    "lag_unknown": _unknown("lag_records"),
    "in_sync_at_min": pl.col("in_sync_at").min(),
    "in_sync_at_mean": pl.col("in_sync_at").mean(),
    "in_sync_at_max": pl.col("in_sync_at").max(),
    "never_in_sync": _unknown("in_sync_at"),
    "reread_bound": known_sum("reread_bound"),
    "bound_unknown": _unknown("reread_bound", _TRANSLATED),
    "consumer_lag": known_sum("consumer_lag"),
    "consumer_lag_unknown": _unknown("consumer_lag"),
}


class Summary:
    """The entries of a table with the columns of PAIRS_KNOWN, in the order of their names; `whole`
    has the measures of all its group-partitions."""

    def __init__(self, pairs: pa.Table, key: SummaryKey) -> None:
        self._names = as_text(pairs[key])
        self._pairs = pairs
        rows = pl.DataFrame(pairs).filter(pl.col(key).is_not_null()).rename({key: "name"})
        rows = rows.with_columns(pl.col("name", "reason", "message").cast(pl.String))
        if key is SummaryKey.TOPIC:
            rows = rows.with_columns(source_topic="name")
        rows = rows.with_columns(
            # Rows of the history may be of a later version: an unknown outcome counts as the worst.
            _ranks("outcome", OUTCOMES).fill_null(len(OUTCOMES) - 1),
            _ranks("precision", PRECISIONS),
            # A negative lag, after a truncation of the log, must not reduce the sum.
            pl.col("consumer_lag").clip(lower_bound=0),
        )
        self._reasons = (
            rows.drop_nulls("reason")
            .group_by("name", "reason")
            .agg(rows=pl.len())
            .sort("rows", "reason", descending=[True, False])
        )
        # A group has one row for each of its partitions.
        distinct = _PLACED.sum() if key is SummaryKey.GROUP else pl.col("partition").n_unique()
        self.whole: Entry = rows.select(**_MEASURES).row(0, named=True)
        self._entries = (
            rows.group_by("name")
            .agg(
                pl.col("outcome", "precision").max(),
                pl.when(_NEEDS_ATTENTION).then(_OF_THE_WORST),
                partitions=distinct,
                # Null if one has never been in sync.
                in_sync_at=pl.when(_unknown("in_sync_at") == 0).then(pl.col("in_sync_at").min()),
                **_MEASURES,
            )
            .sort("name")
            .join(
                self._reasons.group_by("name", maintain_order=True).agg(
                    reasons=pl.struct("reason", "rows")
                ),
                on="name",
                how="left",
                maintain_order="left",
            )
        )

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, name: str) -> Entry | None:
        return next(iter(self.entries(self._entries.filter(pl.col("name") == name))), None)

    def rows(self, name: str) -> pa.Table:
        return self._pairs.filter(pc.equal(self._names, pa.scalar(name, pa.string())))

    def select(
        self,
        search: str = "",
        outcomes: Collection[OutcomeKind] = (),
        precisions: Collection[Precision] = (),
        reasons: Collection[str] = (),
        order: Order = Order.NAME,
        *,
        falling: bool = False,
    ) -> pl.DataFrame:
        """The entries that meet all conditions that are not empty, to be passed to `entries`: the
        name contains `search` (in any case), the worst outcome and precision are among these, and a
        row has one of the reasons. They are sorted: unknown values come last in both directions,
        and equal ones are sorted by name."""
        found = self._entries
        if search:
            text = f"(?i){pl.escape_regex(search)}"
            found = found.filter(pl.col("name").str.contains(text))
        for column, words, kinds in (
            ("outcome", outcomes, OUTCOMES),
            ("precision", precisions, PRECISIONS),
        ):
            if words:
                ranks = [kinds.index(one) for one in words]
                found = found.filter(pl.col(column).is_in(ranks))
        if reasons:
            named = pl.element().struct.field("reason").is_in([*map(str, reasons)])
            found = found.filter(pl.col("reasons").list.eval(named).list.any())
        # An older time is a larger lag.
        by, descending = order.value, falling
        if order is Order.LAG_SECONDS:
            by, descending = "in_sync_at", not falling
        return found.sort(by, descending=descending, nulls_last=True, maintain_order=True)

    def entries(self, selected: pl.DataFrame) -> list[Entry]:
        return [
            row
            | {
                "outcome": OUTCOMES[row["outcome"]],
                "precision": None if row["precision"] is None else PRECISIONS[row["precision"]],
                "reasons": row["reasons"] or [],
            }
            for row in selected.iter_rows(named=True)
        ]

    def with_pairs(self) -> pl.DataFrame:
        """The entries that have group-partitions, to be passed to `entries`."""
        return self._entries.filter(pl.col("pairs") > 0)

    def by_outcome(self) -> list[tuple[OutcomeKind, str | None, int]]:
        """The number of entries by worst outcome and its reason."""
        counts = self._entries.group_by("outcome", "reason").len().sort("outcome", "reason")
        return [(OUTCOMES[rank], reason, number) for rank, reason, number in counts.iter_rows()]

    @cached_property
    def totals(self) -> dict[str, Any]:
        """The fields of `server.answers.TotalsAnswer`; `in_sync_at` instead of `lag_seconds`."""
        entries = self._entries
        counted = ("pairs", "lag_records", "lag_unknown", "reread_bound", "bound_unknown")
        sums = entries.select(pl.col(*counted, "consumer_lag", "consumer_lag_unknown").sum())
        reasons = self._reasons.group_by("reason").agg(pl.col("rows").sum())
        return sums.row(0, named=True) | {
            "groups": len(entries),
            "outcomes": _counts(entries["outcome"], OUTCOMES),
            "precisions": _counts(entries["precision"], PRECISIONS),
            "reasons": dict(reasons.iter_rows()),
            "in_sync_at": entries["in_sync_at"].min(),
            "never_in_sync": entries["in_sync_at"].null_count(),
            "not_in_place": dict(readiness_of(self._pairs).not_in_place),
        }


def _ranks(column: str, words: Collection[str]) -> pl.Expr:
    kinds = pl.Enum([*map(str, words)])
    return pl.col(column).cast(pl.String).cast(kinds, strict=False).to_physical().cast(pl.Int64)


def _counts(ranks: pl.Series, words: Collection[str]) -> dict[str, int]:
    counts = dict(ranks.value_counts().iter_rows())
    return {word: counts[rank] for rank, word in enumerate(words) if rank in counts}
