"""A replicator between clusters in memory: exactly what tsoffset assumes of one.

It copies data records in order within a partition, partition i to partition i, and keeps timestamp,
key, value and headers. Offsets, batches and transactions are the target's own. A replicator that
restarts copies again what it had not yet recorded: begin the next call at an earlier offset.
"""

from collections.abc import Callable, Mapping

from tsoffset.model import Isolation, TopicPartition
from tsoffset.testing.memory_cluster.batches import Message
from tsoffset.testing.memory_cluster.cluster import MemoryCluster
from tsoffset.testing.memory_cluster.log import PartitionLog


def mirror_partition(
    source: PartitionLog,
    target: PartitionLog,
    *,
    start: int | None = None,
    end: int | None = None,
    batch_size: int | None = None,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
    drop: Callable[[int, Message], bool] | None = None,
    rewrite: Callable[[Message], Message] | None = None,
) -> int:
    """Append to `target` the records of `source` from `start` up to before `end`.

    Returns the source offset at which to continue: `end`, or the readable end if that comes first.
    The defaults are the log's start and its readable end. `drop(offset, message)` skips a record;
    `rewrite` changes it, as single message transforms do.
    """
    first = source.start if start is None else start
    readable = source.readable_end(isolation)
    stop = readable if end is None else min(end, readable)
    copied = [
        message if rewrite is None else rewrite(message)
        for offset, message in source.messages(isolation)
        if first <= offset < stop and not (drop is not None and drop(offset, message))
    ]
    target.append(copied, batch_size=batch_size)
    return max(first, stop)


def mirror(
    source: MemoryCluster,
    target: MemoryCluster,
    topics: Mapping[str, str],
    positions: Mapping[TopicPartition, int] | None = None,
    *,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> dict[TopicPartition, int]:
    """Copy whole topics: `topics` maps source topics to target topics.

    A target topic that does not exist is created with as many partitions. Begins at `positions`
    (default: at the log's start) and returns where to continue, for the next call.
    """
    reached: dict[TopicPartition, int] = {}
    known = positions or {}
    existing = target.topics()
    for topic, copy in topics.items():
        numbers = source.partition_numbers(topic)
        if copy not in existing:
            target.create_topic(copy, len(numbers))
        for number in numbers:
            partition = TopicPartition(topic, number)
            reached[partition] = mirror_partition(
                source.log(topic, number),
                target.log(copy, number),
                start=known.get(partition),
                isolation=isolation,
            )
    return reached
