"""Summing up a flow's group-partitions by group, by topic and in total, once per cycle.

The cost of a scrape then depends on the number of series, not of group-partitions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tsoffset.model import FailureKind, OutcomeKind, Reason

_WORST_FIRST = (
    OutcomeKind.FAILED,
    OutcomeKind.SKIPPED,
    OutcomeKind.WOULD_COMMIT,
    OutcomeKind.COMMITTED,
    OutcomeKind.UNCHANGED,
)
_REASONS = (*Reason, *FailureKind, "")
_OF_PAIRS = [
    ("partition", "count"),
    ("lag_records", "count"),
    ("lag_records", "sum"),
    ("lag_records", "max"),
    ("lag_records", "min"),
    ("in_sync_at", "count"),
    ("in_sync_at", "max"),
    ("in_sync_at", "mean"),
    ("in_sync_at", "min"),
    ("reread_bound", "sum"),
]
_OF_PARTITIONS = [
    ("partition", "count"),
    ("lag_records", "count"),
    ("lag_records", "sum"),
    ("lag_bound_records", "sum"),
]

Sum = dict[str, Any]
"""Values by column and aggregation, such as `lag_records_sum`; `name` is the group or topic."""


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
    """The sums of PAIRS_KNOWN and REPLICATION."""
    pairs = pairs.unify_dictionaries()
    of_pairs = pairs.filter(pairs["source_topic"].is_valid())
    group_names, groups_left_out = _first(of_pairs["group"], groups_max)
    topic_names, topics_left_out = _first(of_pairs["source_topic"], topics_max)
    precision = pc.drop_null(of_pairs["precision"].cast(pa.string()))
    counted = precision.value_counts()
    return Sums(
        next(_summed(of_pairs, None, _OF_PAIRS)),
        tuple(_summed(_of(of_pairs, "group", group_names), "group", _OF_PAIRS)),
        tuple(_summed(_of(of_pairs, "source_topic", topic_names), "source_topic", _OF_PAIRS)),
        groups_left_out,
        topics_left_out,
        tuple(_outcomes(pairs)),
        tuple((one["values"], one["counts"]) for one in counted.to_pylist()),
        next(_summed(replication, None, _OF_PARTITIONS)),
        tuple(
            _summed(_of(replication, "source_topic", topic_names), "source_topic", _OF_PARTITIONS)
        ),
    )


def _first(column: pa.ChunkedArray, most: int) -> tuple[pa.Array, int]:
    """The first `most` names, and the number of the others."""
    names = sorted(column.unique().to_pylist())
    return pa.array(names[:most], pa.string()), max(0, len(names) - most)


def _of(rows: pa.Table, key: str, names: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows[key].cast(pa.string()), value_set=names))


def _summed(rows: pa.Table, key: str | None, wanted: Sequence[tuple[str, str]]) -> Iterator[Sum]:
    """A sum for each value of the column `key`; without a key, one of all rows."""
    found = rows.group_by([] if key is None else [key]).aggregate(list(wanted))
    for one in found.to_pylist():
        yield one if key is None else {"name": one.pop(key), **one}


def _outcomes(rows: pa.Table) -> Iterator[tuple[str, str, int]]:
    """Groups by their worst outcome and the first of its reasons."""
    of_groups = rows.filter(rows["group"].is_valid())
    outcome = pc.index_in(
        of_groups["outcome"].cast(pa.string()), value_set=pa.array(_WORST_FIRST, pa.string())
    )
    reason = pc.index_in(
        of_groups["reason"].cast(pa.string()).fill_null(""),
        value_set=pa.array(_REASONS, pa.string()),
    )
    rank = pc.add(pc.multiply(outcome, len(_REASONS)), reason)
    worst = (
        pa.table([of_groups["group"], rank], names=["group", "rank"])
        .group_by("group")
        .aggregate([("rank", "min")])["rank_min"]
    )
    for one in worst.value_counts().to_pylist():
        of_outcome, of_reason = divmod(one["values"], len(_REASONS))
        yield _WORST_FIRST[of_outcome], _REASONS[of_reason], one["counts"]
