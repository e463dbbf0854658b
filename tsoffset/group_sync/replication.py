"""How far the replicator has come, computed from the cached record pairs of partitions.

A cycle has proven that the target has a copy of a certain record: the highest record pair. So the
target lacks at most the records after it on the source. The records after the copy on the target
have arrived since then, if only the replicator writes to the target topic; without as many, the
rest is what the target lacks now. Both are counted in offsets, some of which have no record
(control records, compaction). The further the pair is from the logs' ends, the more such offsets
are counted.
"""

import polars as pl
import pyarrow as pa

from tsoffset.group_sync.arrow_tables import TEXT, as_arrow

REPLICATION = pa.schema(
    [
        ("source_topic", TEXT),
        ("partition", pa.int32()),
        ("lag_records", pa.int64()),
        ("lag_bound_records", pa.int64()),
    ]
)
"""For each partition about how many records the target lacks (`lag_records`), and how many at most
(`lag_bound_records`); null where no copy of its records is proven."""


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
