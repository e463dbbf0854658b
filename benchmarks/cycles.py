"""Cycles as users run them, in a Spark session of this process, and their memory."""

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from benchmarks.estates import FLOW
from benchmarks.measures import cpu_seconds, forget_peak, peak_mb, processes_below
from tests.spark_standalone import standalone as cluster_of
from tests.translating import silence_logs
from tsoffset.cluster import Connect
from tsoffset.config.loading import Configuration
from tsoffset.flow.narrowing import Narrowing
from tsoffset.group_sync.flow_cycle import CycleResult, FlowTask
from tsoffset.group_sync.state import FlowCache
from tsoffset.kafka import kafka_cluster
from tsoffset.model import OutcomeKind
from tsoffset.spark.dataflow import run_cycle
from tsoffset.spark.session import spark_session as session_of
from tsoffset.terminal.output import Format
from tsoffset.terminal.row_columns import encode_rows, tally_of

_JAVA = "org.apache.spark"
_WORKER = re.compile(r"pyspark[./](daemon|worker)")


@contextmanager
def session(master: str = "local[2]", **spark: str) -> Iterator[SparkSession]:
    """A session; `spark` are further `spark.*` keys, with `_` for a dot."""
    silence_logs()
    extra = {f"spark.{name.replace('_', '.')}": value for name, value in spark.items()}
    with session_of({"spark.master": master, **extra}) as found:
        yield found


@contextmanager
def standalone(folder: Path, workers: int) -> Iterator[SparkSession]:
    """A session of a standalone cluster on this machine: a master and workers with one core each,
    all in their own processes."""
    silence_logs()
    home = folder / "standalone"
    home.mkdir()
    with cluster_of(home, workers) as found, session_of(found.settings) as spark:
        yield spark


def cycle(
    spark: SparkSession,
    configuration: Configuration,
    *,
    commit: bool = False,
    cache: FlowCache | None = None,
    groups: str | None = None,
    topics: str | None = None,
    connect: Connect = kafka_cluster,
) -> CycleResult:
    """One cycle of all groups and topics, or of those that match, until its rows are written as
    JSON. Raises AssertionError if a row failed, because a failed row is fast."""
    task = FlowTask(configuration, FLOW, Narrowing(groups, topics), connect)
    started = time.perf_counter()
    result = run_cycle(spark, task, commit=commit, cache=cache)
    rows = result.rows
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        tally_of(rows.table)
        nowhere.writelines(encode_rows(rows.table, Format.JSON))
    result = replace(result, seconds=time.perf_counter() - started)
    failed = rows.table.filter(pc.equal(rows.table["outcome"], OutcomeKind.FAILED))
    assert not failed.num_rows, f"{failed.num_rows} rows failed: {failed['message'][0]}"
    return result


def forget_peaks() -> None:
    """Reset the peaks of this process and its workers."""
    for pid in (os.getpid(), *_workers()):
        forget_peak(pid)


def peaks_mb() -> Mapping[str, float]:
    """The peak memory of the driver and the largest worker since then."""
    return {
        "driver_mb": round(peak_mb(os.getpid())),
        "worker_mb": round(max((peak_mb(pid) for pid in _workers()), default=0.0)),
    }


def cpu(pid: int | None = None) -> Mapping[str, float]:
    """The processor time so far of the driver (this process, or `pid`), of Spark's Java and of the
    workers. On a shared machine it says more than the elapsed time."""
    driver = os.getpid() if pid is None else pid
    below = processes_below(driver)
    return {
        "driver_cpu": cpu_seconds(driver),
        "java_cpu": sum(cpu_seconds(pid) for pid, line in below.items() if _JAVA in line),
        "worker_cpu": sum(cpu_seconds(pid) for pid, line in below.items() if _WORKER.search(line)),
    }


def cpu_since(before: Mapping[str, float], pid: int | None = None) -> Mapping[str, float]:
    """The processor time since then, and its total."""
    spent = {name: round(now - before[name], 2) for name, now in cpu(pid).items()}
    return {**spent, "cpu_seconds": round(sum(spent.values()), 2)}


def _workers() -> list[int]:
    return [pid for pid, line in processes_below(os.getpid()).items() if _WORKER.search(line)]
