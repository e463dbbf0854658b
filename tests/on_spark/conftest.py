"""The session, and how a cycle is laid out on it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.spark_worlds import SparkWorld, mirrored, spread
from tsoffset.spark.session import spark_session


@pytest.fixture(scope="package")
def session() -> Iterator[SparkSession]:
    """Spark on two cores of this machine."""
    with spark_session({"spark.master": "local[2]"}) as session:
        yield session


@pytest.fixture
def world(session, tmp_path) -> SparkWorld:
    """Flows between `mirrored` clusters, until others are stored."""
    world = SparkWorld(tmp_path, session)
    world.store(*mirrored())
    return world


@pytest.fixture(params=["one task", "many tasks"])
def shape(request, monkeypatch) -> str:
    """How a cycle is laid out on Spark, which the driver alone decides."""
    if request.param == "many tasks":
        spread(monkeypatch)
    return str(request.param)
