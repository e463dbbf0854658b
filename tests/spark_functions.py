"""What tests have Spark's workers do, or do to Spark: importable, since workers import it."""

import os
import signal
import sys
from pathlib import Path

import polars as pl
from pyspark import SparkContext

from tests.waiting import wait_until


def say_who(_: object) -> str:
    return sys.executable


def process(_: object) -> int:
    return os.getpid()


def polars_threads(_: object) -> int:
    """How many threads Polars has in the process that runs the task."""
    return pl.thread_pool_size()


def meet_and_hold_the_daemon(folder: str) -> tuple[int, int]:
    """The process that runs the task, once two are there, and the daemon of both, stopped."""
    (Path(folder) / str(os.getpid())).touch()
    wait_until(lambda: len(list(Path(folder).iterdir())) == 2)
    os.kill(os.getppid(), signal.SIGSTOP)
    return os.getpid(), os.getppid()


def speak(_: object) -> None:
    """Say something on the standard error of the process that runs the task."""
    sys.stderr.write("said by a worker: password=hunter2-canary\n")


def java() -> int:
    return int(SparkContext._gateway.proc.pid)


def kill_java() -> None:
    """End the session's Java as the system's memory killer would."""
    process = SparkContext._gateway.proc
    process.kill()
    process.wait()
