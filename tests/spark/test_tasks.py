"""What a worker does before its first task, and steps that break."""

import platform
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from tests import stored_clusters as shared
from tests.invoking import succeeds
from tests.spark_worlds import mirrored
from tsoffset.cluster import Connect
from tsoffset.flow.settings import ClusterSettings
from tsoffset.group_sync.flow_cycle import FlowTask
from tsoffset.group_sync.state import FlowCache
from tsoffset.model import CommittedOffset, FailureKind, OutcomeKind, Row, TopicPartition
from tsoffset.spark import tasks
from tsoffset.spark.dataflow import plan_cycle

# In a process of its own, which it changes for good.
_FAULTS_OF_LATER_TASKS = """
import resource
from tsoffset.spark.tasks import keep_freed_memory

def faults_of_a_task():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    columns = [bytearray(4_000_000) for _ in range(20)]
    del columns
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_memory()
faults_of_a_task()
print(sum(faults_of_a_task() for _ in range(9)) * resource.getpagesize())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_freed_memory_is_used_again():
    """What a task has freed is not fetched from the system again, page by page, by the next one."""
    assert int(succeeds(sys.executable, "-c", _FAULTS_OF_LATER_TASKS)) < 80_000_000


# --- steps in this process ------------------------------------------------------------------


def planned(
    folder: Any, cache: FlowCache | None = None, connect: Connect = shared.connect
) -> Sequence[Row]:
    """A plan by the steps of a task in this process."""

    def no_session() -> Any:
        raise AssertionError

    task = FlowTask(shared.configuration(folder, "A->B"), "A->B", connect=connect)
    return plan_cycle(no_session, task, cache=cache).rows


def breaking(verb: str) -> Connect:
    """Connects to the stored clusters; the source's client has a bug in this call."""

    def connect(settings: ClusterSettings) -> Any:
        cluster = shared.connect(settings)
        if settings.alias == "A":
            setattr(cluster, verb, lambda *_, **__: 1 / 0)
        return cluster

    return connect


def test_a_translation_that_breaks_changes_nothing_that_is_known_of_other_partitions(tmp_path):
    """Its own offsets fail; the next cycle has all rows again."""
    shared.store(tmp_path, *mirrored())
    kept = FlowCache()
    planned(tmp_path, kept)
    before = kept.partitions
    with shared.stored(tmp_path, "A") as source:
        source.group("g0").offsets[TopicPartition("orders", 0)] = CommittedOffset(9)
    rows = planned(tmp_path, kept, breaking("read"))
    failed = [row for row in rows if row.outcome is OutcomeKind.FAILED]
    assert [(row.group, row.partition) for row in failed] == [("g0", 0)]
    assert kept.partitions.sort("partition").equals(before)
    assert OutcomeKind.FAILED not in {row.outcome for row in planned(tmp_path, kept)}


def test_what_could_not_be_read_is_kept(tmp_path):
    """The read step breaks: its groups fail, and all that is cached of them stays."""
    shared.store(tmp_path, *mirrored())
    kept = FlowCache()
    planned(tmp_path, kept)
    before = kept.pairs, kept.partitions
    rows = planned(tmp_path, kept, breaking("committed"))
    assert {(row.outcome, row.reason) for row in rows} == {
        (OutcomeKind.FAILED, FailureKind.INTERNAL)
    }
    assert {row.group for row in rows} == {f"g{number}" for number in range(4)}
    order = ["group", "source_topic", "partition"]
    assert kept.pairs.sort(order).equals(before[0].sort(order))
    assert kept.partitions.sort("partition").equals(before[1].sort("partition"))


def test_flows_that_resolve_side_by_side_do_not_disturb_each_other(tmp_path, monkeypatch):
    """In the driver each flow's thread drops what another one has just resolved."""

    class Cleared(dict[Any, Any]):
        def __setitem__(self, key: Any, value: Any) -> None:
            self.clear()

    monkeypatch.setattr(tasks, "_resolved", Cleared())
    shared.store(tmp_path, *mirrored())
    assert OutcomeKind.FAILED not in {row.outcome for row in planned(tmp_path)}
