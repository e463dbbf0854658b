"""The two tables of history: a row for each cycle (CYCLES), and rows for its changes (PAIRS).

PAIRS has a row for a group-partition when it differs from its previous row: replaying the rows of
one process and day returns the rows of each of its cycles. The first cycle of a day has all
group-partitions, so a day is complete by itself. `in_sync_at` grows with each cycle while a
group-partition is in sync, and causes no rows: if it equals `at`, the group-partition is in sync
until its next row.
"""

from dataclasses import dataclass
from enum import StrEnum

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tsoffset.daemon.freshness import PAIR, PAIRS_KNOWN
from tsoffset.group_sync.arrow_tables import (
    TEXT,
    as_text,
    by_name,
    columns_table,
    concat_rows,
    matching_rows,
)
from tsoffset.group_sync.flow_cycle import Stage

VERSION = 1
"""Version of both schemas. A later version may add columns, and removes none."""


class KeptReason(StrEnum):
    """Why a group-partition has a row."""

    FIRST = "first"
    """First cycle of the day; it has not changed."""
    CHANGED = "changed"
    """It differs from its previous row, or has none."""
    GONE = "gone"
    """It no longer exists; the other columns are its last values."""
    FULL = "full"
    """It repeats known values in a cycle that is recorded whole; merging a day drops it."""


_WRITTEN = [
    # The process, and the number of the cycle in it.
    ("instance", TEXT),
    ("cycle", pa.int64()),
    # End of that cycle, in seconds since 1970 UTC.
    ("at", pa.float64()),
    ("kept", TEXT),
]
_NOT_KEPT = ("flow", "consumer_lag")
PAIRS = pa.schema([*_WRITTEN, *(field for field in PAIRS_KNOWN if field.name not in _NOT_KEPT)])
"""The changes of one flow. The consumer lag is not recorded: it changes with every record written,
so each cycle would add a row for each group-partition."""

COUNTED = ("exact", "bounded", "frontier", "unproven")
COUNTS = (
    *("groups", "positions", "from_memory", "source_fetches", "target_fetches"),
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
        # True if both clusters were reached; the columns below are null if not.
        ("reached", pa.bool_()),
        ("state", TEXT),
        ("error", pa.string()),
        *((name, pa.int64()) for name in COUNTS),
        *((name, pa.float64()) for name in SECONDS),
        # Group-partitions with a committed translation, by precision.
        *((name, pa.int64()) for name in COUNTED),
        # Sum and maximum of the lag in records, and the age of the oldest target offset.
        ("lag_records", pa.int64()),
        ("lag_records_max", pa.int64()),
        ("lag_seconds_max", pa.float64()),
    ]
)
"""A row for each cycle of one flow; times are in seconds since 1970 UTC."""

NEVER_NULL = frozenset(
    ("instance", "cycle", "at", "kept", "started_at", "ended_at", "seconds", "reached", "state")
)
"""The columns of both tables that are never null, in any version."""

_COMPARED = tuple(name for name in PAIRS.names[len(_WRITTEN) :] if name not in PAIR)


@dataclass(frozen=True, slots=True)
class CyclePairs:
    """The group-partitions of a cycle (PAIRS_KNOWN), its number and its end."""

    cycle: int
    ended_at: float
    pairs: pa.Table


def changed_rows(
    before: CyclePairs | None, now: CyclePairs, instance: str, *, whole: KeptReason | None
) -> pa.Table:
    """The rows (PAIRS) by which a cycle differs from `before`. With `whole`, unchanged
    group-partitions have a row as well, of this kind. Without `before`, all rows are changed
    ones."""
    if before is None:
        return _mark(now.pairs, now, instance, pa.scalar(KeptReason.CHANGED))
    same = _is_unchanged(
        before.pairs.take(matching_rows(now.pairs, before.pairs, PAIR)), before.ended_at, now
    )
    rows = now.pairs
    kept = pc.if_else(same, whole or "", KeptReason.CHANGED)
    if whole is None:
        changed = pc.invert(same)
        rows, kept = rows.filter(changed), kept.filter(changed)
    gone = before.pairs.filter(matching_rows(before.pairs, now.pairs, PAIR).is_null())
    gone = _mark(gone, now, instance, pa.scalar(KeptReason.GONE))
    return concat_rows([_mark(rows, now, instance, kept), gone])


def replay_rows(rows: pa.Table, ended_at: float, flow: str) -> pa.Table:
    """The group-partitions (PAIRS_KNOWN) after all rows (PAIRS) of one process and day, in any
    order, if its last cycle ended at `ended_at`."""
    keys = pl.DataFrame(pa.table({name: as_text(rows[name]) for name in (*PAIR, "cycle")}))
    latest = keys.with_row_index("row").sort("cycle", maintain_order=True).unique(PAIR, keep="last")
    last = rows.take(latest["row"].sort().to_arrow())
    last = last.filter(pc.not_equal(last["kept"].cast(pa.string()), KeptReason.GONE))
    in_sync = pc.fill_null(pc.equal(last["in_sync_at"], last["at"]), False)
    columns = by_name(last)
    columns["in_sync_at"] = pc.if_else(in_sync, ended_at, last["in_sync_at"])
    columns["flow"] = pa.array([flow] * len(last), pa.string()).dictionary_encode()
    return columns_table(PAIRS_KNOWN, len(last), columns)


def _mark(
    pairs: pa.Table, now: CyclePairs, instance: str, kept: pa.Scalar | pa.ChunkedArray
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


def _is_unchanged(before: pa.Table, ended_at: float, now: CyclePairs) -> pa.Array:
    """True for each group-partition that has not changed. `before` has the earlier row of each,
    null for a new one."""
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
