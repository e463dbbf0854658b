"""Summing up a flow's group-partitions by group, by topic and in total, once per cycle.

The cost of a scrape then depends on the number of series, not of group-partitions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from tsoffset.model import FailureKind, Reason

_WORST_FIRST = pl.Enum(["failed", "skipped", "would_commit", "committed", "unchanged"])
_REASONS = pl.Enum([one.value for one in (*Reason, *FailureKind)] + [""])
_TEXT = ("group", "source_topic", "outcome", "reason", "precision")

Sum = dict[str, Any]
"""Values by column and aggregation, such as `lag_records_sum`; `name` is the group or topic."""


def _of(column: str, *ways: str) -> list[pl.Expr]:
    values = pl.col(column)
    found = {
        "count": values.count(),
        # Null if no value is known.
        "sum": pl.when(values.count() > 0).then(values.sum()),
        "min": values.min(),
        "mean": values.mean(),
        "max": values.max(),
    }
    return [found[way].alias(f"{column}_{way}") for way in ways]


_OF_PAIRS = [
    *_of("partition", "count"),
    *_of("lag_records", "count", "sum", "min", "max"),
    *_of("in_sync_at", "count", "min", "mean", "max"),
    *_of("reread_bound", "sum"),
]
_OF_PARTITIONS = [
    *_of("partition", "count"),
    *_of("lag_records", "count", "sum"),
    *_of("lag_bound_records", "sum"),
]


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of a flow. `groups` and `topics` have the first ones by name, up to the limits;
    `groups_left_out` and `topics_left_out` are the numbers of the others. `outcomes` counts groups
    by their worst outcome and its reason, `precisions` group-partitions."""

    pairs: Sum
    groups: Sequence[Sum]
    topics: Sequence[Sum]
    groups_left_out: int
    topics_left_out: int
    outcomes: Sequence[tuple[str, str, int]]
    precisions: Sequence[tuple[str, int]]
    replication: Sum
    replication_of_topics: Sequence[Sum]


def sums_of(pairs: pa.Table, replication: pa.Table, *, groups_max: int, topics_max: int) -> Sums:
    rows = pl.DataFrame(pairs).with_columns(pl.col(_TEXT).cast(pl.String))
    of_pairs = rows.drop_nulls("source_topic")
    of_partitions = pl.DataFrame(replication).cast({"source_topic": pl.String})
    groups, groups_left_out = _first(of_pairs["group"], groups_max)
    topics, topics_left_out = _first(of_pairs["source_topic"], topics_max)
    return Sums(
        of_pairs.select(_OF_PAIRS).row(0, named=True),
        _of_each(of_pairs, "group", groups, _OF_PAIRS),
        _of_each(of_pairs, "source_topic", topics, _OF_PAIRS),
        groups_left_out,
        topics_left_out,
        _outcomes(rows),
        of_pairs["precision"].drop_nulls().value_counts().rows(),
        of_partitions.select(_OF_PARTITIONS).row(0, named=True),
        _of_each(of_partitions, "source_topic", topics, _OF_PARTITIONS),
    )


def _first(column: pl.Series, most: int) -> tuple[list[str], int]:
    """The first `most` names, and the number of the others."""
    names = column.unique().sort()
    return names[:most].to_list(), max(0, len(names) - most)


def _of_each(rows: pl.DataFrame, key: str, names: list[str], wanted: list[pl.Expr]) -> list[Sum]:
    found = rows.filter(pl.col(key).is_in(names)).group_by(name=key, maintain_order=True)
    return found.agg(wanted).rows(named=True)


def _outcomes(rows: pl.DataFrame) -> list[tuple[str, str, int]]:
    """Groups by their worst outcome and the first of its reasons."""
    # Rows of the history may be of a later version: a word that is not known counts as the worst.
    found = rows.drop_nulls("group").with_columns(
        pl.col("outcome").cast(_WORST_FIRST, strict=False).fill_null(_WORST_FIRST.categories[0]),
        pl.col("reason").cast(_REASONS, strict=False).fill_null(""),
    )
    worst = found.sort("outcome", "reason").unique("group", keep="first", maintain_order=True)
    return worst.group_by("outcome", "reason", maintain_order=True).len().rows()
