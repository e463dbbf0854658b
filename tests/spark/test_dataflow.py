"""What tasks give back is never too much for the driver, least of all what they committed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from benchmarks import generated
from benchmarks.generated import Sizes
from tests.stored_clusters import configuration
from tsoffset.group_sync.flow_cycle import CycleResult, FlowTask
from tsoffset.group_sync.state import FlowCache
from tsoffset.model import OutcomeKind
from tsoffset.spark.dataflow import run_cycle
from tsoffset.spark.jobs import Jobs
from tsoffset.spark.packing import PAIRS_A_GROUP, PAIRS_IN_ONE_TASK, POSITIONS_IN_ONE_TASK
from tsoffset.spark.session import spark_session

pytestmark = pytest.mark.spark

# Spark itself needs some of it for each task.
SMALL = "200k"


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """One that takes next to nothing of results."""
    settings = {"spark.master": "local[2]", "spark.driver.maxResultSize": SMALL}
    with spark_session(settings) as session:
        yield session


def cycle(
    session: SparkSession, folder: Path, sizes: Sizes, cache: FlowCache | None = None
) -> tuple[CycleResult, dict[str, list[int]]]:
    """A cycle of an estate of this size, and how many tasks each job of a step had."""
    settings = configuration(folder, "A->B", client_id=sizes.text())
    task = FlowTask(settings, "A->B", connect=generated.connect)
    jobs: dict[str, list[int]] = {}
    collect = Jobs.collect

    def counting(self: Jobs, stage: str, action: Callable[[], list[bytes]]) -> list[bytes]:
        found = collect(self, stage, action)
        jobs.setdefault(stage, []).append(len(found))
        return found

    with patch.object(Jobs, "collect", counting):
        result = run_cycle(session, task, commit=True, cache=cache)
    return result, jobs


def check(result: CycleResult, sizes: Sizes) -> None:
    """All that was committed is told."""
    assert len(result.rows) == sizes.groups * sizes.each
    assert {row.outcome for row in result.rows} == {OutcomeKind.COMMITTED}


def test_all_that_many_tasks_committed_is_told(session, tmp_path):
    """Tasks go in waves whose results the driver takes."""
    sizes = Sizes(groups=1_000, partitions=50, each=10, settled=False)
    result, jobs = cycle(session, tmp_path, sizes)
    check(result, sizes)
    assert len(jobs["settle"]) > 1


def test_all_that_one_task_would_have_committed_is_told(session, tmp_path):
    """Last time there was little. It finds few positions, but more to tell than the driver takes,
    before it commits anything."""
    sizes = Sizes(groups=1_500, partitions=3, each=3, settled=False)
    result, jobs = cycle(session, tmp_path, sizes, FlowCache(rows=1))
    check(result, sizes)
    assert result.positions < POSITIONS_IN_ONE_TASK
    assert jobs["sync groups"] == [1]
    assert len(jobs["settle"]) > 1


def test_what_is_too_much_for_one_task_is_translated_by_several(session, tmp_path):
    """A hundred groups of which nothing is known are expected to have little; where they have many
    partitions the task hands back what it has read."""
    sizes = Sizes(groups=100, partitions=100, each=40, settled=False)
    assert sizes.groups * PAIRS_A_GROUP <= PAIRS_IN_ONE_TASK
    result, jobs = cycle(session, tmp_path, sizes)
    check(result, sizes)
    assert result.positions > POSITIONS_IN_ONE_TASK
    assert jobs["sync groups"] == [1]
    assert sum(jobs["translate"]) > 1
    assert "read commits" not in jobs
