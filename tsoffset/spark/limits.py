"""The limits that follow from Spark's settings: tasks at once, and bytes of results."""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from pyspark import SparkContext

# The number of executors to expect if dynamic allocation has no maximum.
_ENDLESS = 64
_NO_LIMIT = 2**31 - 1
_DEFAULT_RESULT_BYTES = 2**30
_UNITS = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SIZE = re.compile(r"(\d+)\s*([bkmgtp]?)b?", re.IGNORECASE)


def slots(context: SparkContext, other_flows: int = 0) -> int:
    """The number of tasks that Spark runs at once for one flow, once all executors that it may have
    are running. Flows share the slots equally, so a flow that waits for silent brokers does not
    block others.

    Spark's own default counts only executors that have registered, and is 2 before the first one.
    """
    conf = _settings(context)
    cores = _number(conf, "spark.executor.cores", 1)
    if conf.get("spark.dynamicAllocation.enabled", "false").lower() == "true":
        executors = _number(conf, "spark.dynamicAllocation.maxExecutors", _ENDLESS)
        executors = executors if executors < _NO_LIMIT else _ENDLESS
    else:
        executors = _number(conf, "spark.executor.instances", 0)
    cpus = _number(conf, "spark.task.cpus", 1)
    there = max(1, context.defaultParallelism // cpus, executors * (cores // cpus))
    return max(1, there // (1 + other_flows))


def processors() -> int:
    """The number of processors that this process may use, as Java counts them for `local[*]`."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        allowed = -(-int(quota) // int(period))
    except (OSError, ValueError):
        # No control group of the second version, or no limit in it.
        return there or 1
    return max(1, min(there or 1, allowed))


@lru_cache(maxsize=1)
def _settings(context: SparkContext) -> Mapping[str, str]:
    """A context's settings, which do not change. Reading them all from Java takes 20 ms."""
    return dict(context.getConf().getAll())


def _number(conf: Mapping[str, str], key: str, default: int) -> int:
    given = conf.get(key)
    return int(given) if given is not None and given.isdecimal() else default


def result_bytes(context: SparkContext) -> int | None:
    """The bytes of results that the driver accepts from one job; None for no limit."""
    given = _settings(context).get("spark.driver.maxResultSize")
    size = None if given is None else _SIZE.fullmatch(given.strip())
    if size is None:
        return _DEFAULT_RESULT_BYTES
    # Spark takes a number without a unit for bytes here.
    return int(size[1]) * 2 ** (10 * _UNITS[size[2].lower()]) or None
