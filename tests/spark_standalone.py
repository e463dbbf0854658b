"""A standalone cluster of Spark on this machine: a master and workers as processes of their own.

They are started from pyspark's jars as `start-master.sh` and `start-worker.sh` would, which
pyspark does not have. Executors get nothing from the driver but what Spark carries.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.waiting import wait_until
from tsoffset.java import find_java
from tsoffset.lab.embedded.ports import HOST, free_port, is_free

ROOT = Path(__file__).parents[1]
SPARK = Path(pyspark.__file__).parent


@dataclass(frozen=True, slots=True)
class Standalone:
    """The address of the master, and the processes of the workers."""

    master: str
    workers: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    @property
    def settings(self) -> Mapping[str, str]:
        """What a user says to run cycles there, and that all workers are to take part."""
        return {
            "spark.master": self.master,
            # Where executors find the driver.
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.pyspark.python": sys.executable,
            "spark.executor.memory": "512m",
            "spark.scheduler.minRegisteredResourcesRatio": "1",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
            "spark.cores.max": str(len(self.workers)),
        }


@contextmanager
def standalone(folder: Path, workers: int) -> Iterator[Standalone]:
    """A cluster of so many workers with one core each, ended with the block."""
    port = free_port()
    cluster = Standalone(f"spark://{HOST}:{port}")
    address = ["--host", HOST, "--webui-port", "0"]
    with ExitStack() as running:
        running.enter_context(
            _java(folder, "master", "master.Master", [*address, "--port", str(port)])
        )
        wait_until(lambda: not is_free(port))
        for number in range(workers):
            size = ["--cores", "1", "--memory", "600m"]
            place = ["--work-dir", str(folder / f"work-{number}")]
            arguments = [*address, *size, *place, cluster.master]
            cluster.workers.append(
                running.enter_context(_java(folder, f"worker-{number}", "worker.Worker", arguments))
            )
        yield cluster


@contextmanager
def _java(
    folder: Path, name: str, main: str, arguments: Sequence[str]
) -> Iterator["subprocess.Popen[bytes]"]:
    jar = next((SPARK / "jars").glob("spark-core_*.jar"))
    environment = {
        **os.environ,
        "SPARK_HOME": str(SPARK),
        # By which an executor's class path is found; the start scripts would set it.
        "SPARK_SCALA_VERSION": jar.name.removeprefix("spark-core_").partition("-")[0],
        "SPARK_LOCAL_IP": HOST,
        "PYTHONPATH": str(ROOT),
    }
    options = ["-Xmx192m", "-XX:TieredStopAtLevel=1", "-Dspark.master.rest.enabled=false"]
    command = [str(find_java()), *options, "-cp", str(SPARK / "jars" / "*")]
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, f"org.apache.spark.deploy.{main}", *arguments],
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
