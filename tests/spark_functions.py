"""What tests have Spark's workers do, or do to Spark: importable, since workers import it."""

import os
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark import SparkContext


def say_who(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The interpreter that runs the task, once."""
    for _ in batches:
        continue
    yield pa.RecordBatch.from_pydict({"executable": [sys.executable]})


def process(_: object) -> int:
    """The process that runs the task."""
    return os.getpid()


def java() -> int:
    """The process of the session's Java."""
    assert SparkContext._gateway is not None
    return int(SparkContext._gateway.proc.pid)


def kill_java() -> None:
    """End the session's Java as the system's memory killer would."""
    assert SparkContext._gateway is not None
    process = SparkContext._gateway.proc
    process.kill()
    process.wait()
