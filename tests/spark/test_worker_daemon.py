"""The daemon of Spark's workers on this machine, spoken to as Spark does; without Java."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import pytest

from tests.invoking import ROOT, succeeds
from tests.processes import runs
from tests.waiting import wait_until
from tsoffset.spark.session import session_settings

MODULE = session_settings({}, "test")["spark.python.daemon.module"]


@contextmanager
def daemon(worker: str = "pyspark.worker") -> Iterator[tuple[str, Path]]:
    """Its socket, and the file of its standard error, while it runs. The folder of a test may lie
    too deep for a socket's path, which has at most 107 bytes."""
    with TemporaryDirectory(prefix="daemon-") as folder:
        said = Path(folder) / "said"
        environment = {
            **os.environ,
            "PYTHON_UNIX_DOMAIN_ENABLED": "true",
            "PYTHON_WORKER_FACTORY_SOCK_DIR": folder,
            "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1",
            "SPARK_REUSE_WORKER": "1",
        }
        with (
            said.open("wb") as error,
            subprocess.Popen(
                [sys.executable, "-m", MODULE, worker],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=error,
            ) as process,
        ):
            yield process.stdout.read(number(process.stdout)).decode(), said


def number(stream: BinaryIO) -> int:
    return int(struct.unpack("!i", stream.read(4))[0])


def give_and_leave(path: str, task: bytes) -> None:
    """Have a worker forked, send it so much of a task, hang up, and wait for its end."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        with connection.makefile("rb") as stream:
            worker = number(stream)
        # One that breaks may have ended before it is given a task.
        with suppress(BrokenPipeError):
            connection.sendall(task)
    wait_until(lambda: not runs(worker))


@pytest.mark.parametrize("task", [b"", b"\0\0"], ids=["at rest", "in a task"])
def test_a_worker_whose_connection_is_closed_ends_without_a_word(task):
    """That is how Spark ends those that rested for a minute, or all at the end."""
    with daemon() as (path, said):
        give_and_leave(path, task)
        assert said.read_text() == ""


def test_a_worker_that_breaks_says_why():
    """What goes wrong without Spark's doing has its traceback on standard error."""
    with daemon("pyspark.not_there") as (path, said):
        give_and_leave(path, b"\0\0")
        assert "Traceback" in said.read_text()
        assert "No module named 'pyspark.not_there'" in said.read_text()


def test_nothing_that_starts_threads_is_loaded_before_the_fork():
    """A forked process has none of its parent's threads, but the locks that they held. A child of a
    process that has used Polars hangs."""
    code = f"import {MODULE}, sys; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    loaded = succeeds(sys.executable, "-c", code).split()
    assert {"polars", "pyarrow", "numpy", "structlog", "kafka"}.isdisjoint(loaded)
    assert "pyspark" in loaded
