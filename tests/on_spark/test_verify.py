"""`translation.verify` on Spark."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark_worlds import World, by_place, mirrored


@pytest.mark.spark
def test_tasks_verify(shape: str, session: SparkSession, tmp_path: Path) -> None:
    """As in one process: the rows are the same, and each task verifies no more than its part."""
    world = World(tmp_path, session)
    world.store(*mirrored(groups=8))
    plain = world.cycle(commit=False)
    assert plain.cost.verified == 0
    everything = world.cycle(world.task(translation_verify="1000"), commit=False)
    assert everything.cost.verified > 6
    assert by_place(everything) == by_place(plain)
    some = world.cycle(world.task(translation_verify="2"), commit=False)
    assert some.cost.verified <= 2
