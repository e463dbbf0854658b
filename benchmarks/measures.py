"""Runs, their medians and spread, fits, and the memory of processes."""

import gc
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from tests.processes import descendants, memory_mb

T = TypeVar("T")


def spread(values: Iterable[float]) -> dict[str, Any]:
    """The median of several runs, the lowest and the highest."""
    runs = [float(value) for value in values]
    return {
        "median": rounded(statistics.median(runs)),
        "low": rounded(min(runs)),
        "high": rounded(max(runs)),
        "runs": len(runs),
    }


def ratio_spread(values: Sequence[float], others: Sequence[float]) -> dict[str, Any]:
    """For runs made in turns: each compared with its neighbor, so that a slow machine affects
    both."""
    return spread(value / other for value, other in zip(values, others, strict=True))


def in_turns(works: Mapping[str, Callable[[], T]], runs: int) -> dict[str, list[T]]:
    """The result of each work, `runs` times; one run of each after the other."""
    found: dict[str, list[T]] = {name: [] for name in works}
    for number in range(runs):
        # Every other time backwards, so that none always follows the same one.
        for name in list(works)[:: 1 if number % 2 == 0 else -1]:
            gc.collect()
            found[name].append(works[name]())
    return found


def seconds_of(work: Callable[[], object]) -> float:
    """How long the work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def line(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """The slope and the offset of the straight line through the points (least squares)."""
    slope, offset = statistics.linear_regression(xs, ys)
    return slope, offset


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """p of the fit value ~ size^p: 1 grows as the size does, below 1 more slowly."""
    slope, _ = line([math.log(size) for size in sizes], [math.log(value) for value in values])
    return rounded(slope)


def rounded(value: float) -> float:
    """Four significant figures."""
    return float(f"{value:.4g}")


def peak_mb(pid: int) -> float:
    return memory_mb(pid, "VmHWM")


def forget_peak(pid: int) -> None:
    """Reset the peak to the present memory."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def cpu_seconds(pid: int) -> float:
    """The processor time of the process, and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def processes_below(pid: int) -> dict[int, str]:
    """All descendants of this process, with their command lines."""
    found: dict[int, str] = {}
    for child in descendants(pid):
        with suppress(OSError):
            words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            found[child] = b" ".join(words).decode(errors="replace")
    return found
