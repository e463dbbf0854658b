"""Group-partitions summarized by group or by source topic.

A summary is made once a cycle from the table of group-partitions. Filters, sorting and pages of the
API then only read its entries.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tsoffset.cycle.schema import as_text
from tsoffset.model import OutcomeKind, Precision
from tsoffset.records import Flags, Numbers
from tsoffset.terminal.output import Readiness
from tsoffset.terminal.row_columns import readiness_of

# From the best to the worst.
OUTCOMES = tuple(OutcomeKind)
PRECISIONS = tuple(Precision)
_ATTENTION = OUTCOMES.index(OutcomeKind.SKIPPED)


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


@dataclass(frozen=True, slots=True)
class SummaryEntry:
    """One group or source topic. `pairs` is its number of group-partitions.

    `partitions` counts each source partition once, however many groups have a committed offset in
    it. `outcome` and `precision` are the worst ones. `lag_records`, `reread_bound` and
    `consumer_lag` are sums over the group-partitions where they are known; `lag_unknown`,
    `bound_unknown` (only of translated ones) and `consumer_lag_unknown` count the others.
    `in_sync_at` (seconds since 1970 UTC) is the oldest one; None if a group-partition has never
    been in sync. `reasons` counts rows; `reason` and `message` are of the first row with the worst
    outcome, if that is skipped or failed.
    """

    name: str
    pairs: int
    partitions: int
    outcome: OutcomeKind
    precision: Precision | None
    lag_records: int | None
    lag_unknown: int
    in_sync_at: float | None
    reread_bound: int | None
    bound_unknown: int
    consumer_lag: int | None
    consumer_lag_unknown: int
    reasons: dict[str, int]
    reason: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class SummaryFilter:
    """Selects the entries that meet all conditions: the name contains `search` (in any case), the
    worst outcome and precision are among these, and a row has one of the reasons. Empty: no
    condition."""

    search: str = ""
    outcomes: Collection[OutcomeKind] = ()
    precisions: Collection[Precision] = ()
    reasons: Collection[str] = ()


class Summary:
    """The entries of a table with the columns of PAIRS_KNOWN, in the order of their names."""

    def __init__(self, pairs: pa.Table, key: SummaryKey) -> None:
        column = pairs[key]
        if column.null_count:
            pairs = pairs.filter(column.is_valid())
        text = as_text(pairs[key])
        names = text.unique()
        self.names = names.take(pc.sort_indices(names))
        number = pc.index_in(text, value_set=self.names).to_numpy()
        self._pairs = pairs
        self._rows = np.argsort(number, kind="stable")
        self._starts = np.searchsorted(number[self._rows], np.arange(len(self.names) + 1))
        self._rank = _ranks(pairs["outcome"], OUTCOMES)
        self._columns = _aggregated(pairs, number, self._rank)
        if key is SummaryKey.GROUP:
            # A group has one row for each of its partitions.
            self._columns["partitions"] = self._columns["pairs"]
        # The number of rows by entry and reason.
        told = pairs["reason"].is_valid().to_numpy()
        words = pairs["reason"].cast(pa.string()).filter(pa.array(told))
        self._reasons = (
            pa.table({"number": number[told], "reason": words})
            .group_by(["number", "reason"], use_threads=False)
            .aggregate([([], "count_all")])
            .sort_by("number")
        )
        self._reason_numbers = self._reasons["number"].to_numpy()

    def __len__(self) -> int:
        return len(self.names)

    def place(self, name: str) -> int | None:
        """The index of an entry; None if there is none of that name."""
        place = pc.index(self.names, pa.scalar(name, pa.string())).as_py()
        return None if place < 0 else int(place)

    def rows_at(self, place: int) -> pa.Table:
        """The rows of the entry at this index, in their order."""
        return self._pairs.take(pa.array(self._rows[self._starts[place] : self._starts[place + 1]]))

    def select(
        self, wanted: SummaryFilter, order: Order = Order.NAME, *, falling: bool = False
    ) -> Numbers:
        """The indexes of the selected entries, sorted. Unknown values come last in both directions,
        and equal ones are sorted by name."""
        fits: Flags = np.ones(len(self), bool)
        if wanted.search:
            found = pc.match_substring(self.names, wanted.search, ignore_case=True)
            fits &= found.to_numpy(zero_copy_only=False)
        if wanted.outcomes:
            ranks = [OUTCOMES.index(one) for one in wanted.outcomes]
            fits &= np.isin(self._columns["outcome"], ranks)
        if wanted.precisions:
            ranks = [PRECISIONS.index(one) for one in wanted.precisions]
            fits &= np.isin(self._columns["precision"], ranks)
        if wanted.reasons:
            words = pa.array([*wanted.reasons], pa.string())
            named = pc.is_in(self._reasons["reason"], value_set=words).to_numpy()
            fits &= np.isin(np.arange(len(self)), self._reason_numbers[named])
        places: Numbers = np.flatnonzero(fits)
        if order is Order.NAME:
            return places[::-1] if falling else places
        # An older time is a larger lag.
        of = {Order.LAG_SECONDS: "in_sync_at"}.get(order, order.value)
        values = self._columns[of][places]
        if falling != (order is Order.LAG_SECONDS):
            values = -values
        return places[np.argsort(values, kind="stable")]

    def entries(self, places: Numbers) -> list[SummaryEntry]:
        return [self.entry(int(place)) for place in places]

    def entry(self, place: int) -> SummaryEntry:
        def known(name: str) -> float | None:
            value = self._columns[name][place]
            return None if np.isnan(value) else float(value)

        lag, bound, precision = known("lag_records"), known("reread_bound"), known("precision")
        consumer_lag = known("consumer_lag")
        rank = int(self._columns["outcome"][place])
        rows = self._rows[self._starts[place] : self._starts[place + 1]]
        reason = message = None
        if rank >= _ATTENTION:
            worst = int(rows[np.argmax(self._rank[rows] == rank)])
            reason, message = (self._pairs[name][worst].as_py() for name in ("reason", "message"))
        told = np.searchsorted(self._reason_numbers, [place, place + 1])
        return SummaryEntry(
            self.names[place].as_py(),
            int(self._columns["pairs"][place]),
            int(self._columns["partitions"][place]),
            OUTCOMES[rank],
            None if precision is None else PRECISIONS[int(precision)],
            None if lag is None else int(lag),
            int(self._columns["lag_unknown"][place]),
            known("in_sync_at"),
            None if bound is None else int(bound),
            int(self._columns["bound_unknown"][place]),
            None if consumer_lag is None else int(consumer_lag),
            int(self._columns["consumer_lag_unknown"][place]),
            {
                one["reason"]: one["count_all"]
                for one in self._reasons.slice(told[0], told[1] - told[0]).to_pylist()
            },
            reason,
            message,
        )

    @cached_property
    def _readiness(self) -> Readiness:
        return readiness_of(self._pairs)

    def totals(self) -> "SummaryTotals":
        columns = self._columns
        in_sync_at = columns["in_sync_at"]
        never = int(np.isnan(in_sync_at).sum())
        reasons = self._reasons.group_by("reason").aggregate([("count_all", "sum")]).to_pylist()
        return SummaryTotals(
            len(self),
            int(columns["pairs"].sum()),
            _counted(columns["outcome"], OUTCOMES),
            _counted(columns["precision"], PRECISIONS),
            {one["reason"]: one["count_all_sum"] for one in reasons},
            int(np.nansum(columns["lag_records"])),
            int(columns["lag_unknown"].sum()),
            None if never == len(self) else float(np.nanmin(in_sync_at)),
            never,
            int(np.nansum(columns["reread_bound"])),
            int(columns["bound_unknown"].sum()),
            int(np.nansum(columns["consumer_lag"])),
            int(columns["consumer_lag_unknown"].sum()),
            dict(self._readiness.not_in_place),
        )


@dataclass(frozen=True, slots=True)
class SummaryTotals:
    """Sums over all entries: entries by their worst outcome and precision, and rows by reason.
    `never_in_sync` counts entries with a group-partition that has never been in sync,
    `not_in_place` groups that are not ready now, by reason. The other fields are as in
    `SummaryEntry`."""

    entries: int
    pairs: int
    outcomes: dict[str, int]
    precisions: dict[str, int]
    reasons: dict[str, int]
    lag_records: int
    lag_unknown: int
    in_sync_at: float | None
    never_in_sync: int
    reread_bound: int
    bound_unknown: int
    consumer_lag: int
    consumer_lag_unknown: int
    not_in_place: dict[str, int]


def _aggregated(pairs: pa.Table, number: Numbers, rank: Numbers) -> dict[str, Any]:
    """For each column one number per entry; NaN for an unknown value."""
    place_known = pairs["source_topic"].is_valid()
    there = pc.and_(place_known, pairs["target_offset"].is_valid())
    unbounded = pc.and_(there, pairs["reread_bound"].is_null())
    table = pa.table(
        {
            "number": number,
            # The row of a group that failed as a whole has no partition.
            "pairs": place_known.cast(pa.int64()),
            "partitions": pairs["partition"],
            "outcome": rank,
            "precision": pc.index_in(
                pairs["precision"].cast(pa.string()), value_set=pa.array(PRECISIONS, pa.string())
            ),
            "lag_records": pairs["lag_records"],
            "lag_unknown": pc.and_(place_known, pairs["lag_records"].is_null()).cast(pa.int64()),
            "in_sync_at": pairs["in_sync_at"],
            "never": pc.and_(place_known, pairs["in_sync_at"].is_null()).cast(pa.int64()),
            "reread_bound": pairs["reread_bound"],
            "bound_unknown": unbounded.cast(pa.int64()),
            # A negative lag, after a truncation of the log, must not reduce the sum.
            "consumer_lag": pc.if_else(pc.less(pairs["consumer_lag"], 0), 0, pairs["consumer_lag"]),
            "consumer_lag_unknown": pc.and_(place_known, pairs["consumer_lag"].is_null()).cast(
                pa.int64()
            ),
        }
    )
    how = {
        "outcome": "max",
        "precision": "max",
        "in_sync_at": "min",
        "partitions": "count_distinct",
    }
    found = (
        table.group_by("number", use_threads=False)
        .aggregate([(name, how.get(name, "sum")) for name in table.column_names[1:]])
        .sort_by("number")
    )
    columns = {
        name: found[f"{name}_{how.get(name, 'sum')}"].cast(pa.float64()).to_numpy()
        for name in table.column_names[1:]
    }
    columns["in_sync_at"] = np.where(columns["never"] > 0, np.nan, columns["in_sync_at"])
    return columns


def _ranks(column: pa.ChunkedArray, words: Sequence[str]) -> Numbers:
    found: Numbers = pc.index_in(
        column.cast(pa.string()), value_set=pa.array(words, pa.string())
    ).to_numpy()
    return found


def _counted(ranks: Any, words: Sequence[str]) -> dict[str, int]:
    counts = np.bincount(ranks[~np.isnan(ranks)].astype(int), minlength=len(words))
    return {word: int(count) for word, count in zip(words, counts, strict=True) if count}
