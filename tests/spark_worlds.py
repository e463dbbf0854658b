"""Flows between clusters in memory that Spark's workers share through a folder."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import stored_clusters as shared
from tests.memory_flows import mirrored_estate
from tsoffset.group_sync.flow_cycle import CycleResult, FlowTask
from tsoffset.group_sync.state import FlowCache
from tsoffset.model import OutcomeKind, Row, TopicPartition
from tsoffset.spark import packing
from tsoffset.spark.dataflow import run_cycle
from tsoffset.testing.memory_cluster import MemoryCluster

RECORDS = 40
PARTITIONS = 3


def spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give even the smallest cycle as many tasks as there are cores."""
    monkeypatch.setattr(packing, "PAIRS_IN_ONE_TASK", 0)
    for kind in ("LOOK", "TRANSLATE", "SETTLE"):
        monkeypatch.setattr(packing, kind, packing.Size(least=1, most=1_000))


@dataclass(slots=True)
class SparkWorld:
    """Clusters in a folder and what runs a flow between them."""

    folder: Path
    session: SparkSession

    def store(self, *clusters: MemoryCluster) -> None:
        shared.store(self.folder, *clusters)

    def task(self, *flows: str, **extra: str) -> FlowTask:
        settings = shared.configuration(self.folder, *(flows or ("A->B",)), **extra)
        return FlowTask(settings, "A->B", connect=shared.connect)

    def cycle(
        self,
        task: FlowTask | None = None,
        *,
        commit: bool = True,
        cache: FlowCache | None = None,
    ) -> CycleResult:
        return run_cycle(self.session, task or self.task(), commit=commit, cache=cache)

    def asked(self, alias: str, verb: str) -> list[str]:
        """All items that were asked of the verb, in all calls."""
        return [item for call in shared.asked(self.folder, alias, verb) for item in call]

    def order(self, alias: str, event: str) -> None:
        shared.order(self.folder, alias, event)

    def meet(self, alias: str, *verbs: str) -> None:
        """Have two workers ask these verbs at once. Otherwise one that is quick takes the other
        one's task, too, before a busy machine has started the second worker."""
        for verb in verbs:
            shared.meet(self.folder, alias, verb, 2)

    def offset(self, group: str, partition: int) -> int | None:
        with shared.stored(self.folder, "B", change=False) as target:
            found = target.group(group).offsets.get(TopicPartition("A.orders", partition))
        return None if found is None else found.offset


def mirrored(groups: int = 4) -> tuple[MemoryCluster, MemoryCluster]:
    """A mirrors `orders` to B; every group has a commit of its own on every partition."""
    estate = mirrored_estate(RECORDS, partitions=PARTITIONS, brokers=2)
    for partition in range(PARTITIONS):
        for number in range(groups):
            offset, note = (7 * number + 3 * partition) % (RECORDS + 1), f"note {number}"
            estate.commit(f"g{number}", "orders", offset, partition=partition, metadata=note)
    return estate["A"], estate["B"]


def by_place(rows: CycleResult) -> dict[tuple[str | None, str | None, int | None], Row]:
    found = {(row.group, row.source_topic, row.partition): row for row in rows.rows}
    assert len(found) == len(rows.rows)
    return found


def outcomes(result: CycleResult) -> Counter[OutcomeKind]:
    return Counter(row.outcome for row in result.rows)
