"""What this machine, and the executors of Spark, need. Nothing is started."""

import re
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tsoffset.commands.check.findings import Finding, Scope, cause_and_step
from tsoffset.errors import EmbeddedError
from tsoffset.java import java_version

# Any of these may bring tsoffset to executors.
_BRINGS_PACKAGES = (
    "spark.archives",
    "spark.kubernetes.container.image",
    "spark.kubernetes.executor.container.image",
    "spark.pyspark.python",
    "spark.yarn.dist.archives",
)
_ARCHIVES = ("spark.archives", "spark.yarn.dist.archives")
_SCHEME = re.compile(r"(?:file|local):(?://)?(?=/)")


def machine(
    spark: Mapping[str, str],
    *,
    find_java: Callable[[], int] = java_version,
    find_version: Callable[[str], str] = version,
) -> Iterator[Finding]:
    """Java and Spark of this machine, and how executors elsewhere come by tsoffset. `spark` are
    the user's `spark.*` keys."""
    at = Scope(None)
    told = []
    try:
        told.append(f"PySpark {find_version('pyspark')}")
    except PackageNotFoundError:
        yield at.error("PySpark", "is not installed", "pip install tsoffset")
    try:
        told.append(f"Java {find_java()}")
    except EmbeddedError as error:
        cause, step = cause_and_step(str(error))
        yield at.error("Java", f"{cause}: sync, plan and run start Spark, which needs Java", step)
    master = spark.get("spark.master", "local[*]")
    if len(told) == 2:
        yield at.ok("Spark", f"{' on '.join(told)}, spark.master {master}")
    if not master.startswith("local"):
        yield from _executors(at, master, spark)
    yield from _archives(at, spark)


def _executors(at: Scope, master: str, spark: Mapping[str, str]) -> Iterator[Finding]:
    if not any(spark.get(key) for key in _BRINGS_PACKAGES):
        yield at.warning(
            "executors",
            f"no setting tells the executors of {master} where to import tsoffset from",
            "set spark.archives to a packed environment (examples/pack-environment.sh), or"
            " spark.kubernetes.container.image, unless tsoffset is installed on each executor",
        )


def _archives(at: Scope, spark: Mapping[str, str]) -> Iterator[Finding]:
    for key in _ARCHIVES:
        for archive in filter(None, map(str.strip, spark.get(key, "").split(","))):
            path = _SCHEME.sub("", archive.partition("#")[0])
            if "://" not in path and not Path(path).exists():
                yield at.error(
                    key, f"{path} does not exist", "create it with examples/pack-environment.sh"
                )
