"""How far the replicator has come, of what a cycle remembers of partitions.

The highest record pair that a cycle has proven divides both logs. What lies behind its record on
the source is at most what the target lacks. What lies behind its copy on the target has arrived
since, so the difference is what it lacks now: in offsets, of which control records and compaction
leave some without a record, and if nobody else writes to the target topic. The pair need not be
near the logs' ends: then more of these offsets count.
"""

import numpy as np
import pyarrow as pa

from tsoffset.cycle.matching import numbers
from tsoffset.cycle.schema import TEXT
from tsoffset.records import Numbers
from tsoffset.rule.carry_over import NOTHING

REPLICATION = pa.schema(
    [
        ("source_topic", TEXT),
        ("partition", pa.int32()),
        ("lag_records", pa.int64()),
        ("lag_bound_records", pa.int64()),
    ]
)
"""Of each partition the records that the target lacks, about and at most; null where no record of
it is proven to be there."""


def replication(partitions: pa.Table) -> pa.Table:
    """REPLICATION of what is remembered (PARTITIONS)."""
    source, target = numbers(partitions["frontier_source"]), numbers(partitions["frontier_target"])
    pair_source, pair_target = _last(partitions["pair_sources"]), _last(partitions["pair_targets"])
    later = pair_source > source
    source, target = np.where(later, pair_source, source), np.where(later, pair_target, target)
    bound = np.maximum(numbers(partitions["source_end"]) - 1 - source, 0)
    arrived = np.maximum(numbers(partitions["target_end"]) - 1 - target, 0)
    unknown = source == NOTHING
    columns = [
        partitions["source_topic"],
        partitions["partition"],
        pa.array(np.maximum(bound - arrived, 0), mask=unknown),
        pa.array(bound, mask=unknown),
    ]
    return pa.table(columns, schema=REPLICATION)


def _last(column: pa.ChunkedArray) -> Numbers:
    """The last number of each list; NOTHING of an empty one."""
    lists = column.combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.array([], lists.type)
    ends = lists.offsets.to_numpy()
    values = np.append(lists.values.to_numpy(), NOTHING)
    found: Numbers = np.where(np.diff(ends) > 0, values[ends[1:] - 1], NOTHING)
    return found
