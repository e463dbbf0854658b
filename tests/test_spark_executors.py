"""A cycle where executors are processes of their own, as on a cluster of machines.

Spark's `local-cluster` starts a standalone master and workers; executors get nothing from
the driver but what Spark carries. SPARK_HOME is a folder of links, since workers write there.
"""

from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests import stored_clusters as shared
from tests.spark_worlds import PARTITIONS, World, by_place, mirrored, outcomes, spread
from tsoffset import sync
from tsoffset.model import OutcomeKind
from tsoffset.spark import spark_session

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    home = tmp_path_factory.mktemp("spark")
    for part in Path(pyspark.__file__).parent.iterdir():
        (home / part.name).symlink_to(part)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(home))
        with spark_session({"spark.master": "local-cluster[2,1,1024]"}) as session:
            yield session


@pytest.fixture
def world(session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    spread(monkeypatch)
    return World(tmp_path, session)


def test_cycle_on_separate_executors(world: World) -> None:
    """The rows are those of a cycle in one process, and more than one executor made them."""
    source, target = mirrored()
    world.store(source, target)
    result = world.cycle()
    flow = world.task().resolve()[0]
    expected = sync.cycle(flow, source, target)
    assert by_place(result) == {(r.group, r.source_topic, r.partition): r for r in expected}
    committed = world.asked("B", "commit")
    assert len(committed) == len(set(committed)) == 4 * PARTITIONS
    workers = shared.processes(world.folder, "A", "read")
    assert len({shared.parent(shared.parent(worker)) for worker in workers}) == 2


def test_lost_executor_commits_nothing_twice(world: World) -> None:
    """What an executor had read and committed before it was lost is read anew, and found."""
    world.store(*mirrored())
    world.order("B", shared.KILL_EXECUTOR_AFTER_COMMIT)
    result = world.cycle()
    assert not (world.folder / f"B.{shared.KILL_EXECUTOR_AFTER_COMMIT}").exists()
    assert set(outcomes(result)) <= {OutcomeKind.COMMITTED, OutcomeKind.UNCHANGED}
    assert len(by_place(result)) == 4 * PARTITIONS
    committed = world.asked("B", "commit")
    assert len(committed) == len(set(committed)) == 4 * PARTITIONS
    for row in result.rows:
        assert row.group is not None
        assert row.partition is not None
        assert world.offset(row.group, row.partition) == row.target_offset
