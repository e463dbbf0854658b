"""The processes of this machine, as /proc has them."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from tests.waiting import wait_until


def runs(pid: int) -> bool:
    """True while there is such a process; a process that was not waited for yet does not run."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if not Path("/proc").exists():
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it ended before the file was opened, or read
        return False


def parent(pid: int) -> int:
    """The process that started this one. (A worker's daemon's is the executor's Java.)"""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def children(pid: int) -> list[int]:
    """The processes that this one has started and that still run."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if parent(int(folder.name)) == pid:
                found.append(int(folder.name))
    return found


def descendants(pid: int) -> set[int]:
    """These, those that they have started, and so on."""
    direct = children(pid)
    return {*direct}.union(*map(descendants, direct))


@cache
def own_mounts() -> Sequence[str]:
    """The command after which a process may mount what it alone sees; empty where none may."""
    for options in ([], ["--map-root-user"]):
        command = ["unshare", "--mount", *options]
        with suppress(FileNotFoundError):
            if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
                return command
    return ()


def memory_mb(pid: int, kind: str = "VmRSS") -> float:
    """The memory of a process, resident now or of another `kind` (VmHWM: the peak); 0 where it has
    ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{kind}:"):
                return int(line.split()[1]) / 1024
    return 0.0


def is_java(pid: int) -> bool:
    """True once the process has become Java (a shell script starts it)."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip() == "java"
    return False


def stop(pid: int) -> None:
    """Let a process stand still. A thread that is running goes on for a moment after the signal,
    long enough to answer a request: this waits for the last one."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: _thread_states(pid) == {"T"}, f"process {pid} stands still")


def _thread_states(pid: int) -> set[str]:
    found = set()
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(OSError):
            found.add(stat.read_text().rpartition(") ")[2][0])
    return found


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that stands still, if it is there to go on afterwards."""
    stop(pid)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
