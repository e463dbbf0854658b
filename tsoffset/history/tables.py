"""What history holds, as tables: a row for each cycle, and rows for what each cycle changed.

PAIRS has a row for a pair of group and source partition where it is not as the row before it
says: replaying an instance's rows of one day gives the rows of each of its cycles. A day begins
with all pairs, so no day needs the one before it. `in_sync_at` grows with each cycle while a pair
is in sync, which no row says again: where it equals `at`, it is the time of the last cycle for as
long as the pair has no other row.
"""

from dataclasses import dataclass
from enum import StrEnum

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tsoffset.cycle.schema import TEXT, as_text, by_name, columns_table, joined, places
from tsoffset.daemon.freshness import PAIR, PAIRS_KNOWN
from tsoffset.spark.spent import Stage

VERSION = 1
"""Of both schemas. A version may have more columns than the one before it, and has no fewer."""


class KeptReason(StrEnum):
    """Why a pair has a row."""

    FIRST = "first"
    """It begins a day, and says what held before."""
    CHANGED = "changed"
    """It differs from the row before it, or is the first one known."""
    GONE = "gone"
    """The pair is no more; its other columns say what it was."""
    FULL = "full"
    """It says again what is known, where all pairs are kept; merging a day drops it."""


_WRITTEN = [
    # Of the process, and the number of the cycle there.
    ("instance", TEXT),
    ("cycle", pa.int64()),
    # When that cycle ended, in seconds since 1970 UTC.
    ("at", pa.float64()),
    ("kept", TEXT),
]
_NOT_KEPT = ("flow", "consumer_lag")
PAIRS = pa.schema([*_WRITTEN, *(field for field in PAIRS_KNOWN if field.name not in _NOT_KEPT)])
"""What cycles changed, of one flow. The consumer lag is not kept: it changes with each record that
is written, so each cycle would add a row for each group-partition."""

COUNTED = ("exact", "bounded", "frontier", "unproven")
COUNTS = (
    *("groups", "positions", "from_memory", "verified", "source_fetches", "target_fetches"),
    *("time_lookups", "bytes_read", "source_bytes_read", "source_requests", "rounds", "retries"),
    *("committed", "would_commit", "unchanged", "skipped", "failed", "reread_bound"),
)
SECONDS = ("throttle_seconds", "commit_gap_seconds", *(f"{stage}_seconds" for stage in Stage))
CYCLES = pa.schema(
    [
        ("instance", TEXT),
        ("cycle", pa.int64()),
        ("started_at", pa.float64()),
        ("ended_at", pa.float64()),
        ("seconds", pa.float64()),
        ("commits", pa.bool_()),
        # Whether both clusters were reached; what follows is null where they were not.
        ("reached", pa.bool_()),
        ("state", TEXT),
        ("error", pa.string()),
        *((name, pa.int64()) for name in COUNTS),
        *((name, pa.float64()) for name in SECONDS),
        # Pairs with a translation in place, by its precision.
        *((name, pa.int64()) for name in COUNTED),
        # Of the pairs' lag in records the sum and the most, and the longest time that one has
        # not been in sync.
        ("lag_records", pa.int64()),
        ("lag_records_max", pa.int64()),
        ("lag_seconds_max", pa.float64()),
    ]
)
"""A row for each cycle of one flow; times are in seconds since 1970 UTC."""

NEVER_NULL = frozenset(
    ("instance", "cycle", "at", "kept", "started_at", "ended_at", "seconds", "reached", "state")
)
"""The columns of both that every row has, whichever version wrote it."""

_COMPARED = tuple(name for name in PAIRS.names[len(_WRITTEN) :] if name not in PAIR)


@dataclass(frozen=True, slots=True)
class KnownPairs:
    """The rows of a cycle (PAIRS_KNOWN), its number, and when it ended."""

    cycle: int
    ended_at: float
    pairs: pa.Table


def changes(
    before: KnownPairs | None, now: KnownPairs, instance: str, *, whole: KeptReason | None
) -> pa.Table:
    """The rows (PAIRS) that a cycle has beside those that `before` has. With `whole` the pairs
    that did not change have one, too, which says that. Every row is a changed one where nothing
    was before."""
    if before is None:
        return _marked(now.pairs, now, instance, pa.scalar(KeptReason.CHANGED))
    same = _same(before.pairs.take(places(now.pairs, before.pairs, PAIR)), before.ended_at, now)
    rows = now.pairs
    kept = pc.if_else(same, whole or "", KeptReason.CHANGED)
    if whole is None:
        changed = pc.invert(same)
        rows, kept = rows.filter(changed), kept.filter(changed)
    gone = before.pairs.filter(places(before.pairs, now.pairs, PAIR).is_null())
    gone = _marked(gone, now, instance, pa.scalar(KeptReason.GONE))
    return joined([_marked(rows, now, instance, kept), gone])


def replayed(rows: pa.Table, ended_at: float, flow: str) -> pa.Table:
    """The pairs (PAIRS_KNOWN) that an instance's rows (PAIRS) of a day, in any order, come to,
    where its last cycle ended at `ended_at`."""
    keys = pl.DataFrame(pa.table({name: as_text(rows[name]) for name in (*PAIR, "cycle")}))
    latest = (
        keys.with_row_index("place").sort("cycle", maintain_order=True).unique(PAIR, keep="last")
    )
    last = rows.take(latest["place"].sort().to_arrow())
    last = last.filter(pc.not_equal(last["kept"].cast(pa.string()), KeptReason.GONE))
    in_sync = pc.fill_null(pc.equal(last["in_sync_at"], last["at"]), False)
    columns = by_name(last)
    columns["in_sync_at"] = pc.if_else(in_sync, ended_at, last["in_sync_at"])
    columns["flow"] = pa.array([flow] * len(last), pa.string()).dictionary_encode()
    return columns_table(PAIRS_KNOWN, len(last), columns)


def _marked(
    pairs: pa.Table, now: KnownPairs, instance: str, kept: pa.Scalar | pa.ChunkedArray
) -> pa.Table:
    rows = len(pairs)
    if isinstance(kept, pa.Scalar):
        kept = pa.repeat(kept, rows)
    marks = {
        "instance": pa.repeat(instance, rows).dictionary_encode(),
        "cycle": pa.repeat(now.cycle, rows),
        "at": pa.repeat(now.ended_at, rows),
        "kept": kept.dictionary_encode(),
    }
    return columns_table(PAIRS, rows, marks | by_name(pairs))


def _same(before: pa.Table, ended_at: float, now: KnownPairs) -> pa.Array:
    """Whether each pair is as it was; `before` has one row for each pair of now, null where it is
    new."""
    same = before["outcome"].is_valid()
    for name in _COMPARED:
        old, new = as_text(before[name]), as_text(now.pairs[name])
        missing = pc.or_(old.is_null(), new.is_null())
        equal = pc.if_else(missing, pc.and_(old.is_null(), new.is_null()), pc.equal(old, new))
        if name == "in_sync_at":
            in_sync = pc.and_(pc.equal(old, ended_at), pc.equal(new, now.ended_at))
            equal = pc.or_(equal, pc.fill_null(in_sync, False))
        same = pc.and_(same, equal)
    return same
