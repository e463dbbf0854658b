"""A cycle's rows as JSON lines and CSV, and their sums, computed by columns of their Arrow table:
Python values for each row would take more than ten times as long.

The columns are those of `Row`, in its order. Text may be dictionary-encoded, in any chunks. This
loads pyarrow, so commands that start without Spark do not import it.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import polars as pl
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


def filter_rows(rows: pa.Table, *, outcomes: Sequence[str], reasons: Sequence[str]) -> pa.Table:
    """The rows with one of the outcomes and one of the reasons; without `outcomes` or `reasons` all
    of them."""
    for name, words in (("outcome", outcomes), ("reason", reasons)):
        if words:
            wanted = pa.array(words, pa.string())
            rows = rows.filter(pc.is_in(rows[name].cast(pa.string()), value_set=wanted))
    return rows


def tally_of(rows: pa.Table) -> Tally:
    """The number of rows by outcome, and what a failover would re-read."""
    frame = _frame(rows, target_offset=rows["target_offset"], reread_bound=rows["reread_bound"])
    outcomes: Counter[OutcomeKind] = Counter()
    reasons: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    counts = frame.group_by("outcome", "reason", maintain_order=True).len()
    for word, why, number in counts.iter_rows():
        kind = OutcomeKind(word)
        outcomes[kind] += number
        if why and kind is OutcomeKind.SKIPPED:
            reasons[why] += number
        elif why and kind is OutcomeKind.FAILED:
            failures[why] += number
    is_translated = pl.col("target_offset").is_not_null()
    bounds = frame.filter(pl.col("outcome").is_in(IN_PLACE), is_translated)["reread_bound"]
    now, after_sync = (readiness_of(rows, after_sync=after) for after in (False, True))
    bound, unproven = int(bounds.sum()), bounds.null_count()
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
    frame = _frame(
        rows,
        group=rows["group"].cast(pa.string()),
        partition=rows["partition"],
        in_place=in_place_of(rows, after_sync=after_sync),
        again=reread_of(rows, after_sync=after_sync),
    ).filter(pl.col("group").is_not_null())
    not_in_place = frame.filter(~pl.col("in_place"))
    without_offset = not_in_place.filter(
        pl.col("again").is_null(), pl.col("partition").is_not_null()
    )
    not_ready = not_in_place.sort(
        _rank("outcome", _OUTCOMES), _rank("reason", _REASONS), maintain_order=True
    ).unique("group", keep="first", maintain_order=True)
    reasons = (reason or outcome for outcome, reason in not_ready["outcome", "reason"].iter_rows())
    of_ready = frame.join(not_ready, on="group", how="anti")
    of_others = frame.join(not_ready, on="group", how="semi")
    return Readiness(
        groups=frame["group"].n_unique(),
        reread=int(of_ready["again"].sum()),
        reread_others=int(of_others["again"].sum()),
        not_in_place=Counter(reasons),
        unusable=len(without_offset),
    )


def _frame(rows: pa.Table, **columns: pa.ChunkedArray) -> pl.DataFrame:
    """Outcomes and reasons as text, empty where there is none, and these columns."""
    words = {name: rows[name].cast(pa.string()).fill_null("") for name in ("outcome", "reason")}
    return pl.DataFrame(pa.table({**words, **columns}))


def _rank(column: str, words: Sequence[str]) -> pl.Expr:
    """The position of each word among `words`; -1 if it is not among them."""
    ranks = {str(word): rank for rank, word in enumerate(words)}
    return pl.col(column).replace_strict(ranks, default=-1)


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
