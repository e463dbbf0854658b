"""What the daemon's processes hold, as /proc and Java's own tools have it."""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from tests.processes import descendants, is_java, memory_mb

Sample = dict[str, float]

COUNTS = ("threads", "files", "sockets")

_LINE = re.compile(r"^\s*\d+:\s+(?P<count>\d+)\s+(?P<bytes>\d+)\s+(?P<name>\S+)")
_TOTAL = re.compile(r"^Total\s+(?P<count>\d+)\s+(?P<bytes>\d+)")
# What Spark remembers of jobs, stages, tasks and queries that are over.
_RETAINED = re.compile(r"org\.apache\.spark\.(status|sql\.execution\.ui|ui)\.\w*(Wrapper|UIData)$")


def sample(daemon: int, folders: Mapping[str, Path]) -> Sample:
    """Resident memory in MB and COUNTS of the driver's Python, of Java and of the Python workers
    (memory of the largest, counts of all together and the highest of one); the sizes (kB) and files
    of `folders`."""
    below = sorted(descendants(daemon))
    java = [pid for pid in below if is_java(pid)]
    workers = [pid for pid in below if pid not in java and _is_worker(pid)]
    found: Sample = {"worker_processes": len(workers)}
    for name, pids in (("driver", [daemon]), ("java", java), ("workers", workers)):
        held_by = [held(pid) for pid in pids]
        found |= {f"{name}_{key}": sum(each[key] for each in held_by) for key in COUNTS}
        found[f"{name}_mb"] = round(max((each["mb"] for each in held_by), default=0.0), 1)
        if name == "workers":
            # Spark starts a worker more where two have something to do at once.
            found |= {f"worker_{key}": max((e[key] for e in held_by), default=0) for key in COUNTS}
    for name, folder in folders.items():
        sizes = list(_sizes(folder))
        found[f"{name}_kb"] = round(sum(sizes) / 1024, 1)
        found[f"{name}_files"] = len(sizes)
    return found


def java_of(daemon: int) -> int:
    """Spark's Java."""
    (found,) = filter(is_java, descendants(daemon))
    return found


def live_objects(java: int) -> dict[str, tuple[int, int]]:
    """How many objects of each class are in use, and their bytes, after a collection; `Total` is
    the sum."""
    answer = subprocess.run(
        ["jcmd", str(java), "GC.class_histogram"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found = {}
    for line in answer.stdout.splitlines():
        if match := _LINE.match(line) or _TOTAL.match(line):
            name = match.groupdict().get("name", "Total")
            found[name] = int(match["count"]), int(match["bytes"])
    return found


def heap(objects: Mapping[str, tuple[int, int]]) -> Sample:
    """MB in use after a collection, and how many objects Spark keeps of jobs that are over."""
    return {
        "heap_mb": round(objects["Total"][1] / 2**20, 2),
        "retained": sum(count for name, (count, _) in objects.items() if _RETAINED.match(name)),
    }


def held(pid: int) -> Sample:
    """Resident memory in MB, threads, files and sockets of a process."""
    links = list(_links(pid))
    return {
        "mb": memory_mb(pid),
        "threads": _threads(pid),
        "files": len(links),
        "sockets": sum(link.startswith("socket:") for link in links),
    }


def _threads(pid: int) -> int:
    with suppress(OSError):
        return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
    return 0


def _links(pid: int) -> Iterable[str]:
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                yield str(each.readlink())


def _is_worker(pid: int) -> bool:
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"tsoffset.spark.worker_daemon" in words or b"pyspark" in words
    return False


def _sizes(folder: Path) -> Iterable[int]:
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                yield (Path(place) / name).lstat().st_size
