"""How good what a failover would use is now: of each pair of group and partition how many records
would come again, and when the target group was last seen to stand where it should.

`lag_records` is the most records that a consumer reads again that moves over right after the
cycle (`terminal.output.reread`); null where the target group has no usable offset. `in_sync_at`
(seconds since 1970 UTC) is when a cycle last found, or left, the target group no further back than
the group's translation: what a failover would use is `now - in_sync_at` seconds old.
`synced_source_offset` is what the group had committed on the source then.
"""

import pyarrow as pa
import pyarrow.compute as pc

from tsoffset.cycle.schema import ROWS, joined, places
from tsoffset.model import OutcomeKind
from tsoffset.terminal.row_columns import in_place_of, reread_of

FRESHNESS = pa.schema(
    [
        ("lag_records", pa.int64()),
        ("in_sync_at", pa.float64()),
        ("synced_source_offset", pa.int64()),
    ]
)
PAIRS_KNOWN = pa.schema([*ROWS, *FRESHNESS])
"""A row of ROWS with how fresh what it says is on the target."""
PAIR = ["group", "source_topic", "partition"]


def pairs_known(rows: pa.Table, before: pa.Table, now: float) -> pa.Table:
    """The rows of a cycle (ROWS) that ended at `now`, as PAIRS_KNOWN; `before` is what the cycle
    before it came to. A group that failed as a whole has the row that says so, and behind it what
    was known of its pairs, with the failure's outcome, reason and message."""
    whole = pc.and_(rows["source_topic"].is_null(), rows["group"].is_valid())
    rows = joined([rows, _of_failed_groups(before, rows.filter(whole))])
    at = places(rows, before, PAIR)
    last = before.select(FRESHNESS.names).take(at)
    offset = rows["source_offset"]
    there = on_target(rows)
    no_further_back = pc.fill_null(pc.greater_equal(there, rows["target_offset"]), False)
    # A failed row is not known to have been committed.
    failed = pc.equal(rows["outcome"].cast(pa.string()), OutcomeKind.FAILED)
    in_place = pc.or_(in_place_of(rows), pc.and_not(no_further_back, failed))
    in_sync_at = pc.if_else(in_place, pa.scalar(now), last["in_sync_at"])
    synced = pc.if_else(in_place, offset, last["synced_source_offset"])
    for field, column in zip(FRESHNESS, (reread_of(rows), in_sync_at, synced), strict=True):
        rows = rows.append_column(field, column.cast(field.type))
    return rows.cast(PAIRS_KNOWN)


def on_target(rows: pa.Table) -> pa.ChunkedArray:
    """What the target groups have committed after the cycle; null where they have nothing."""
    committed = pc.equal(rows["outcome"].cast(pa.string()), OutcomeKind.COMMITTED)
    return pc.if_else(committed, rows["target_offset"], rows["current_target_offset"])


def _of_failed_groups(before: pa.Table, failed: pa.Table) -> pa.Table:
    """The rows of the cycle before for groups of which this one knows nothing but a failure."""
    if not len(failed) or not len(before):
        return failed.slice(0, 0)
    at = places(before, failed, ["group"])
    of_pairs = pc.and_(at.is_valid(), before["source_topic"].is_valid())
    kept = before.filter(of_pairs).select(ROWS.names)
    there = on_target(kept)
    kept = kept.set_column(
        kept.schema.get_field_index("current_target_offset"), "current_target_offset", there
    )
    at = at.filter(of_pairs.combine_chunks())
    no_lag = pa.nulls(len(kept), pa.int64())
    kept = kept.set_column(kept.schema.get_field_index("consumer_lag"), "consumer_lag", no_lag)
    for name in ("outcome", "reason", "message"):
        column = failed[name].take(at)
        kept = kept.set_column(kept.schema.get_field_index(name), ROWS.field(name), column)
    return kept
