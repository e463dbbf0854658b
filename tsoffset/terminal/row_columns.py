"""A cycle's rows as JSON lines and CSV, and their sums, computed by columns of their Arrow table:
Python values for each row would take more than ten times as long.

The columns are those of `Row`, in its order. Text may be dictionary-encoded, in any chunks. This
loads pyarrow, so commands that start without Spark do not import it.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tsoffset.model import FailureKind, OutcomeKind, Reason
from tsoffset.terminal.output import IN_PLACE, Format, Readiness, Tally, csv_line

# A row takes about 300 bytes; more rows at once are hardly faster.
_ROWS_AT_ONCE = 10_000
# A group's reason for not being ready is that of its first row in this order. An outcome or reason
# that is not listed comes first.
_OUTCOMES = (OutcomeKind.FAILED, OutcomeKind.SKIPPED, OutcomeKind.WOULD_COMMIT)
_REASONS = (*Reason, *FailureKind, "")


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Selects the rows to print: those with one of the outcomes and one of the reasons; without
    `outcomes` or `reasons` all of them."""

    outcomes: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    def of(self, rows: pa.Table) -> pa.Table:
        for name, words in (("outcome", self.outcomes), ("reason", self.reasons)):
            if words:
                wanted = pa.array(words, pa.string())
                rows = rows.filter(pc.is_in(rows[name].cast(pa.string()), value_set=wanted))
        return rows


def tally_of(rows: pa.Table) -> Tally:
    """The number of rows by outcome, and what a failover would re-read."""
    keys = ["outcome", "reason", "translated"]
    outcome, reason = (rows[name].cast(pa.string()) for name in keys[:2])
    columns = [outcome, reason, rows["target_offset"].is_valid(), rows["reread_bound"]]
    counts = (
        pa.table(columns, names=[*keys, "bound"])
        .group_by(keys)
        .aggregate([("outcome", "count"), ("bound", "count"), ("bound", "sum")])
    )
    outcomes: Counter[OutcomeKind] = Counter()
    reasons: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    bound = unproven = 0
    for one in counts.to_pylist():
        kind, why, number = OutcomeKind(one["outcome"]), one["reason"], one["outcome_count"]
        outcomes[kind] += number
        if kind is OutcomeKind.SKIPPED and why is not None:
            reasons[why] += number
        elif kind is OutcomeKind.FAILED and why is not None:
            failures[why] += number
        elif kind in IN_PLACE and one["translated"]:
            unproven += number - one["bound_count"]
            bound += one["bound_sum"] or 0
    now, after_sync = (readiness_of(rows, after_sync=after) for after in (False, True))
    return Tally(outcomes, reasons, failures, bound, unproven, now, after_sync)


def reread_of(rows: pa.Table, *, after_sync: bool = False) -> pa.ChunkedArray:
    """The most records that a consumer of each group-partition re-reads if it moves now, from the
    target group's offset after the cycle, or after a sync; null if that is missing, past the
    translation, or without a known bound. The only definition of a re-read."""
    behind = pc.subtract(rows["target_offset"], rows["current_target_offset"])
    behind = pc.if_else(pc.less(behind, 0), None, behind)
    in_place = in_place_of(rows, after_sync=after_sync)
    return pc.add(pc.if_else(in_place, 0, behind), rows["reread_bound"])


def in_place_of(rows: pa.Table, *, after_sync: bool = False) -> pa.ChunkedArray:
    """Whether the target groups have their translations after the cycle, or after a sync."""
    kinds = [kind for kind in IN_PLACE if after_sync or kind is not OutcomeKind.WOULD_COMMIT]
    return pc.is_in(rows["outcome"].cast(pa.string()), value_set=pa.array(kinds, pa.string()))


def readiness_of(rows: pa.Table, *, after_sync: bool = False) -> Readiness:
    """Which groups could move to the target now, or after a sync."""
    rows = rows.filter(rows["group"].is_valid())
    in_place = in_place_of(rows, after_sync=after_sync)
    again = reread_of(rows, after_sync=after_sync)
    outcome, reason = (rows[name].cast(pa.string()).fill_null("") for name in ("outcome", "reason"))
    why_not = pc.if_else(in_place, None, pc.binary_join_element_wise(outcome, reason, " "))
    # Ordered are the words of these rows, so every row that is not in place has an index.
    ordered = sorted(why_not.unique().drop_null().to_pylist(), key=_why_not_rank)
    why = pc.index_in(why_not, value_set=pa.array(ordered, pa.string()))
    unusable = pc.and_(pc.invert(in_place), pc.and_(again.is_null(), rows["partition"].is_valid()))
    groups = (
        pa.table(
            [rows["group"].cast(pa.string()), why, again, unusable.cast(pa.int64())],
            names=["group", "why", "again", "unusable"],
        )
        .group_by("group")
        .aggregate([("why", "min"), ("again", "sum"), ("unusable", "sum")])
    )
    sums = [([], "count_all"), ("again_sum", "sum"), ("unusable_sum", "sum")]
    found = groups.group_by("why_min").aggregate(sums)
    reasons_of: Counter[str] = Counter()
    total = ready_reread = others_reread = without = 0
    for one in found.to_pylist():
        total += one["count_all"]
        without += one["unusable_sum_sum"]
        if one["why_min"] is None:
            ready_reread += one["again_sum_sum"] or 0
        else:
            others_reread += one["again_sum_sum"] or 0
            outcome, _, reason = ordered[one["why_min"]].partition(" ")
            reasons_of[reason or outcome] += one["count_all"]
    return Readiness(total, ready_reread, others_reread, reasons_of, without)


def _why_not_rank(why_not: str) -> tuple[int, int]:
    """The rank of `OUTCOME REASON` in the order of `_OUTCOMES` and `_REASONS`."""
    outcome, _, reason = why_not.partition(" ")
    return (
        _OUTCOMES.index(outcome) if outcome in _OUTCOMES else -1,
        _REASONS.index(reason) if reason in _REASONS else -1,
    )


def encode_rows(rows: pa.Table, format: Format) -> Iterator[str]:
    """The rows as JSON lines or as lines of CSV without a header, many of them in each text.

    Not for Format.TABLE.
    """
    names = rows.schema.names
    escape: Callable[[str], str]
    if format is Format.JSON:
        before = [f'{", " if at else "{"}"{name}": ' for at, name in enumerate(names)]
        escape, null, end = json.dumps, "null", "}\n"
    else:
        before = ["", *[","] * (len(names) - 1)]
        escape, null, end = _csv_field, "", "\n"
    for start in range(0, rows.num_rows, _ROWS_AT_ONCE):
        parts: list[str | pa.Array] = []
        for text, column in zip(before, rows.slice(start, _ROWS_AT_ONCE).columns, strict=True):
            parts += (text, _escape(column, escape))
        lines = pc.binary_join_element_wise(
            *parts, end, "", null_handling="replace", null_replacement=null
        )
        # The buffer of a string array is the concatenation of its strings.
        yield str(lines.buffers()[2], "utf-8")


def _escape(column: pa.ChunkedArray, escape: Callable[[str], str]) -> pa.Array:
    """The column as text; text is escaped, each distinct value once."""
    plain = column.cast(pa.string()).combine_chunks()
    if pa.types.is_integer(column.type):
        return plain
    words = plain.dictionary_encode()
    escaped = [escape(word) for word in words.dictionary.to_pylist()]
    return pa.array(escaped, pa.string()).take(words.indices)


def _csv_field(text: str) -> str:
    # With a second value, since a single empty one would be quoted.
    return csv_line((text, None))[: -len(",\n")]
