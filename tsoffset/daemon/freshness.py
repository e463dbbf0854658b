"""How fresh the target's committed offsets are, for each group-partition.

`lag_records` is the most records that a consumer re-reads if it fails over right after the cycle
(`row_columns.reread_of`); null if the target group has no usable offset. `in_sync_at` (seconds
since 1970 UTC) is when a cycle last found the target group at its translation or past it (yet not
past the log's end), or committed it: the target offset is `now - in_sync_at` seconds old.
`synced_source_offset` is the offset that the group had committed on the source at that time.
"""

import pyarrow as pa
import pyarrow.compute as pc

from tsoffset.group_sync.arrow_tables import by_name, columns_table, concat_rows, matching_rows
from tsoffset.group_sync.rows import ROWS
from tsoffset.model import OutcomeKind, Reason
from tsoffset.terminal.row_columns import in_place_of, reread_of

FRESHNESS = pa.schema(
    [
        ("lag_records", pa.int64()),
        ("in_sync_at", pa.float64()),
        ("synced_source_offset", pa.int64()),
    ]
)
PAIRS_KNOWN = pa.schema([*ROWS, *FRESHNESS])
"""The columns of ROWS and FRESHNESS."""
PAIR = ["group", "source_topic", "partition"]


def pairs_known(rows: pa.Table, before: pa.Table, now: float) -> pa.Table:
    """PAIRS_KNOWN of a cycle that ended at `now`, from its rows (ROWS) and the PAIRS_KNOWN before
    it. A group that failed as a whole keeps the rows of its partitions from before, with the
    outcome, reason and message of the failure."""
    whole = pc.and_(rows["source_topic"].is_null(), rows["group"].is_valid())
    rows = concat_rows([rows, _of_failed_groups(before, rows.filter(whole))])
    at = matching_rows(rows, before, PAIR)
    last = before.select(FRESHNESS.names).take(at)
    offset = rows["source_offset"]
    there = on_target(rows)
    no_further_back = pc.fill_null(pc.greater_equal(there, rows["target_offset"]), False)
    outcome, reason = (rows[name].cast(pa.string()) for name in ("outcome", "reason"))
    # Whether a failed commit arrived is unknown; past the log's end, consumers would be reset.
    is_reset = pc.fill_null(pc.equal(reason, Reason.TARGET_PAST_LOG_END), False)
    no_use = pc.or_(pc.equal(outcome, OutcomeKind.FAILED), is_reset)
    in_place = pc.or_(in_place_of(rows), pc.and_not(no_further_back, no_use))
    in_sync_at = pc.if_else(in_place, pa.scalar(now), last["in_sync_at"])
    synced = pc.if_else(in_place, offset, last["synced_source_offset"])
    for field, column in zip(FRESHNESS, (reread_of(rows), in_sync_at, synced), strict=True):
        rows = rows.append_column(field, column.cast(field.type))
    return rows.cast(PAIRS_KNOWN)


def on_target(rows: pa.Table) -> pa.ChunkedArray:
    """The target groups' committed offsets after the cycle; null if there is none."""
    committed = pc.equal(rows["outcome"].cast(pa.string()), OutcomeKind.COMMITTED)
    return pc.if_else(committed, rows["target_offset"], rows["current_target_offset"])


def _of_failed_groups(before: pa.Table, failed: pa.Table) -> pa.Table:
    """The earlier rows of groups that have failed as a whole in this cycle."""
    if not len(failed) or not len(before):
        return failed.slice(0, 0)
    at = matching_rows(before, failed, ["group"])
    of_pairs = pc.and_(at.is_valid(), before["source_topic"].is_valid())
    kept = before.filter(of_pairs)
    at = at.filter(of_pairs.combine_chunks())
    changed = {name: failed[name].take(at) for name in ("outcome", "reason", "message")}
    changed |= {"current_target_offset": on_target(kept), "consumer_lag": None}
    return columns_table(ROWS, len(kept), by_name(kept) | changed)
