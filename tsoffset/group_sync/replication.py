"""How far the replicator has come, computed from the cached record pairs of partitions.

The highest record pair that a cycle has proven divides both logs. What lies behind its record on
the source is at most what the target lacks. What lies behind its copy on the target has arrived
since, so the difference is what it lacks now, if only the replicator writes to the target topic. It
is counted in offsets, some of which have no record (control records, compaction). The further the
pair is from the logs' ends, the more of these offsets count.
"""

import polars as pl
import pyarrow as pa

from tsoffset.cycle.schema import TEXT
from tsoffset.group_sync.rows import as_arrow

REPLICATION = pa.schema(
    [
        ("source_topic", TEXT),
        ("partition", pa.int32()),
        ("lag_records", pa.int64()),
        ("lag_bound_records", pa.int64()),
    ]
)
"""For each partition, about how many records the target lacks, at most; null where no copy of its
records is proven."""


def replication(partitions: pl.DataFrame) -> pa.Table:
    """REPLICATION of what is cached of partitions (`tables.PARTITIONS`)."""
    pair_source = pl.col("pair_sources").list.last()
    is_later = (pair_source > pl.col("frontier_source")).fill_null(pair_source.is_not_null())
    source = pl.when(is_later).then(pair_source).otherwise("frontier_source")
    pair_target = pl.col("pair_targets").list.last()
    target = pl.when(is_later).then(pair_target).otherwise("frontier_target")
    bound = (pl.col("source_end") - 1 - source).clip(lower_bound=0)
    arrived = (pl.col("target_end") - 1 - target).clip(lower_bound=0)
    rows = partitions.select(
        "source_topic",
        "partition",
        lag_records=(bound - arrived).clip(lower_bound=0),
        lag_bound_records=bound,
    )
    return as_arrow(rows, REPLICATION)
