"""What is carried over of partitions, as the driver keeps it and as tasks take and give it.

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
from tsoffset.rule.carry_over import KnownPosition, LogEnds, LogIdentity, PartitionCarryOver
from tsoffset.spark.schema import CARRY_OVER, from_bytes, table, to_bytes, tuples

_COST = b"cost"


def carry_over_table(carry_overs: Iterable[PartitionCarryOver]) -> pa.Table:
    """Carry-overs of partitions as CARRY_OVER."""
    return table(CARRY_OVER, [_tuple(carry_over) for carry_over in carry_overs])


def _tuple(carry_over: PartitionCarryOver) -> tuple[Any, ...]:
    known = carry_over.positions.values()
    return (
        carry_over.source.topic,
        carry_over.source.partition,
        carry_over.is_remote_topic,
        carry_over.failback,
        carry_over.source_log.topic_id,
        carry_over.source_log.leader_epoch,
        carry_over.target_log.topic_id,
        carry_over.target_log.leader_epoch,
        carry_over.ends.source,
        carry_over.ends.source_log,
        carry_over.ends.target,
        list(carry_over.positions),
        [each.target_offset for each in known],
        [each.equivalent_from for each in known],
        [each.equivalent_to for each in known],
        [each.source_timestamp_ms for each in known],
        [each.passed for each in known],
        [source for source, _ in carry_over.pairs],
        [target for _, target in carry_over.pairs],
        *(carry_over.frontier or (None, None)),
    )


def carry_overs_of(rows: pa.Table) -> dict[TopicPartition, PartitionCarryOver]:
    """The carry-overs in a table like CARRY_OVER, by source partition."""
    found = {}
    for values in tuples(rows, CARRY_OVER):
        row = dict(zip(CARRY_OVER.names, values, strict=True))
        source = TopicPartition(row["source_topic"], row["partition"])
        known = zip(
            row["target_offsets"],
            row["same_from"],
            row["same_to"],
            row["timestamps_ms"],
            row["passed"],
            strict=True,
        )
        found[source] = PartitionCarryOver(
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
    """A table like CARRY_OVER whose rows are taken by partition."""

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


def report(carry_overs: Iterable[PartitionCarryOver], cost: Cost) -> bytes:
    """What a task reports to the driver, as an Arrow stream: carry-overs and what it took."""
    rows = carry_over_table(carry_overs)
    return to_bytes(rows.replace_schema_metadata({_COST: json.dumps(asdict(cost))}))


def merge_reports(reports: Iterable[bytes]) -> tuple[pa.Table, Cost]:
    """All that tasks reported: the carry-overs as CARRY_OVER, and what the cycle took."""
    tables, cost = [CARRY_OVER.empty_table()], Cost()
    for each in reports:
        one = from_bytes(each)
        cost = cost.beside(Cost(**json.loads(one.schema.metadata[_COST])))
        tables.append(one.replace_schema_metadata(None))
    return pa.concat_tables(tables), cost
