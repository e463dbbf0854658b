"""A cycle where executors are processes of their own, as on a cluster of machines: on a standalone
cluster of a master and two workers. Executors get nothing from the driver but what Spark carries.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests import stored_clusters as shared
from tests.processes import parent
from tests.spark_standalone import Standalone, standalone
from tests.spark_worlds import PARTITIONS, RECORDS, SparkWorld, by_place, mirrored, outcomes, spread
from tsoffset.group_sync.cycle import cycle
from tsoffset.model import CommittedOffset, OutcomeKind, Reason, TopicPartition
from tsoffset.spark.session import spark_session

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("cluster"), 2) as found:
        yield found


@pytest.fixture(scope="module")
def session(cluster) -> Iterator[SparkSession]:
    with spark_session(cluster.settings) as session:
        yield session


@pytest.fixture
def world(session, tmp_path, monkeypatch) -> SparkWorld:
    spread(monkeypatch)
    return SparkWorld(tmp_path, session)


def test_cycle_on_separate_executors(world):
    """The rows are those of a cycle in one process, and more than one executor made them."""
    source, target = mirrored()
    world.store(source, target)
    world.meet("A", "read")
    result = world.cycle()
    flow = world.task().resolve()[0]
    expected = cycle(flow, source, target)
    assert by_place(result) == {(r.group, r.source_topic, r.partition): r for r in expected}
    committed = world.asked("B", "commit")
    assert len(committed) == len(set(committed)) == 4 * PARTITIONS
    workers = shared.processes(world.folder, "A", "read")
    assert len({parent(parent(worker)) for worker in workers}) == 2


def test_small_cycle_on_an_executor(cluster, session, tmp_path):
    """Ten groups take one task there, too, and it is not the driver's."""
    world = SparkWorld(tmp_path, session)
    world.store(*mirrored())
    assert outcomes(world.cycle()) == {OutcomeKind.COMMITTED: 4 * PARTITIONS}
    (worker,) = shared.processes(world.folder, "A", "read")
    assert parent(parent(parent(worker))) in [process.pid for process in cluster.workers]


def check_after_a_loss(world: SparkWorld, event: str) -> None:
    """Run a cycle in which the event happens to who commits first: no row is lost or doubled,
    nothing is committed twice, no group is moved back, and all stand where the rows say."""
    source, target = mirrored()
    ahead = TopicPartition("A.orders", 0)
    target.group("g3").offsets[ahead] = CommittedOffset(RECORDS)
    world.store(source, target)
    world.order("B", event)
    result = world.cycle()
    assert not (world.folder / f"B.{event}").exists()
    rows = by_place(result)
    assert len(rows) == 4 * PARTITIONS
    assert rows.pop(("g3", "orders", 0)).reason is Reason.TARGET_AHEAD
    assert world.offset("g3", 0) == RECORDS
    found = {row.outcome for row in rows.values()}
    assert found <= {OutcomeKind.COMMITTED, OutcomeKind.UNCHANGED}
    committed = world.asked("B", "commit")
    assert len(committed) == len(set(committed)) == len(rows)
    for row in rows.values():
        assert world.offset(row.group, row.partition) == row.target_offset


def test_lost_executor_costs_a_retry(world):
    """What an executor had read and committed before it was killed is read again, and found."""
    check_after_a_loss(world, shared.KILL_EXECUTOR_AFTER_COMMIT)


def test_lost_machine_costs_a_retry(cluster, world):
    """The same holds if the worker is lost with its executor: the other one does its work. The next
    cycle needs no other machine."""
    check_after_a_loss(world, shared.KILL_MACHINE_AFTER_COMMIT)
    assert [process.poll() is None for process in cluster.workers].count(True) == 1
    again = outcomes(world.cycle())
    assert again == {OutcomeKind.UNCHANGED: 4 * PARTITIONS - 1, OutcomeKind.SKIPPED: 1}
