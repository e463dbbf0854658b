"""What is remembered of partitions, as the driver keeps it and as tasks take and give it.

The driver holds one table, a row a partition, and looks at nothing but whose row it is; the
positions within are a task's to read and write.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from tsoffset.cycle.work import Cost
from tsoffset.model import TopicPartition
from tsoffset.rule.carry_over import KnownPosition, LogEnds, LogIdentity, PartitionMemory
from tsoffset.spark.schema import MEMORY, from_bytes, table, to_bytes, tuples

_COST = b"cost"


def memory_table(memories: Iterable[PartitionMemory]) -> pa.Table:
    """Memories of partitions as MEMORY."""
    return table(MEMORY, [_tuple(memory) for memory in memories])


def _tuple(memory: PartitionMemory) -> tuple[Any, ...]:
    known = memory.positions.values()
    return (
        memory.source.topic,
        memory.source.partition,
        memory.remote_name,
        memory.reverse,
        memory.source_log.topic_id,
        memory.source_log.leader_epoch,
        memory.target_log.topic_id,
        memory.target_log.leader_epoch,
        memory.ends.source,
        memory.ends.source_log,
        memory.ends.target,
        list(memory.positions),
        [each.target_offset for each in known],
        [each.same_from for each in known],
        [each.same_to for each in known],
        [each.source_timestamp_ms for each in known],
        [each.passed for each in known],
        [source for source, _ in memory.pairs],
        [target for _, target in memory.pairs],
        *(memory.frontier or (None, None)),
    )


def memories_of(rows: pa.Table) -> dict[TopicPartition, PartitionMemory]:
    """The memories in a table like MEMORY, by source partition."""
    found = {}
    for values in tuples(rows, MEMORY):
        row = dict(zip(MEMORY.names, values, strict=True))
        source = TopicPartition(row["source_topic"], row["partition"])
        known = zip(
            row["target_offsets"],
            row["same_from"],
            row["same_to"],
            row["timestamps_ms"],
            row["passed"],
            strict=True,
        )
        found[source] = PartitionMemory(
            source,
            row["remote_name"],
            row["reverse"],
            LogIdentity(row["source_topic_id"], row["source_leader_epoch"]),
            LogIdentity(row["target_topic_id"], row["target_leader_epoch"]),
            LogEnds(row["source_end"], row["source_log_end"], row["target_end"]),
            dict(zip(row["offsets"], (KnownPosition(*each) for each in known), strict=True)),
            tuple(zip(row["pair_sources"], row["pair_targets"], strict=True)),
            None
            if row["frontier_target"] is None
            else (row["frontier_source"], row["frontier_target"]),
        )
    return found


class PartitionRows:
    """A table like MEMORY whose rows are taken by partition."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows.combine_chunks()
        places = zip(rows["source_topic"].to_pylist(), rows["partition"].to_pylist(), strict=True)
        self._numbers: Mapping[tuple[str, int], int] = {
            place: number for number, place in enumerate(places)
        }

    def of(self, partitions: Sequence[TopicPartition]) -> pa.Table:
        """The rows of these partitions, as far as there are any."""
        places = [(each.topic, each.partition) for each in partitions]
        numbers = [self._numbers[place] for place in places if place in self._numbers]
        return self._rows.take(pa.array(numbers, pa.int64()))


def report(memories: Iterable[PartitionMemory], cost: Cost) -> bytes:
    """What a task that translated tells the driver."""
    told = memory_table(memories)
    return to_bytes(told.replace_schema_metadata({_COST: json.dumps(asdict(cost))}))


def told(reports: Iterable[bytes]) -> tuple[pa.Table, Cost]:
    """All that tasks told: the memories as MEMORY, and what the cycle took."""
    tables, cost = [MEMORY.empty_table()], Cost()
    for each in reports:
        one = from_bytes(each)
        cost = cost.beside(Cost(**json.loads(one.schema.metadata[_COST])))
        tables.append(one.replace_schema_metadata(None))
    return pa.concat_tables(tables), cost
