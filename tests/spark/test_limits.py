"""What Spark's settings allow for."""

from dataclasses import dataclass, field
from typing import cast

import pytest
from pyspark import SparkConf, SparkContext

from tsoffset.spark.limits import result_bytes, slots


@dataclass(eq=False)
class Context:
    """A session's context, without a session: it has come to so many cores so far."""

    defaultParallelism: int  # noqa: N815 (Spark's name)
    conf: SparkConf = field(default_factory=lambda: SparkConf(loadDefaults=False))

    def getConf(self) -> SparkConf:  # noqa: N802 (Spark's name)
        return self.conf


def context(cores: int, **settings: str) -> SparkContext:
    found = Context(cores)
    for name, value in settings.items():
        found.conf.set(f"spark.{name.replace('_', '.')}", value)
    return cast(SparkContext, found)


@pytest.mark.parametrize(
    ("cores", "settings", "expected"),
    [
        # On this machine: as many as its master says.
        (2, {}, 2),
        (1, {"executor_cores": "4"}, 1),
        # Executors that are still to come count.
        (2, {"executor_instances": "10", "executor_cores": "4"}, 40),
        (2, {"executor_instances": "10"}, 10),
        (2, {"executor_instances": "10", "executor_cores": "4", "task_cpus": "2"}, 20),
        (80, {"executor_instances": "10", "executor_cores": "4"}, 80),
        (2, {"executor_instances": "not a number"}, 2),
        # They come and go: up to a maximum, or without end.
        (
            2,
            {
                "dynamicAllocation_enabled": "true",
                "dynamicAllocation_maxExecutors": "5",
                "executor_instances": "2",
                "executor_cores": "4",
            },
            20,
        ),
        (2, {"dynamicAllocation_enabled": "TRUE", "executor_cores": "4"}, 256),
        (
            2,
            {"dynamicAllocation_enabled": "true", "dynamicAllocation_maxExecutors": "2147483647"},
            64,
        ),
        (2, {"dynamicAllocation_enabled": "false", "dynamicAllocation_maxExecutors": "5"}, 2),
    ],
)
def test_slots_are_those_of_all_executors_that_may_come(cores, settings, expected):
    """Instances times cores, or what dynamic allocation allows for; what is there already at
    least."""
    assert slots(context(cores, **settings)) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, 2**30),
        ("1g", 2**30),
        ("2G", 2**31),
        ("512m", 2**29),
        ("512mb", 2**29),
        ("64k", 2**16),
        (" 1t ", 2**40),
        ("1048576", 2**20),
        ("1048576b", 2**20),
        # Everything.
        ("0", None),
        ("0m", None),
        # What Spark itself would not start with.
        ("much", 2**30),
    ],
)
def test_result_bytes_are_what_the_driver_takes(given, expected):
    settings = {} if given is None else {"driver_maxResultSize": given}
    assert result_bytes(context(1, **settings)) == expected
