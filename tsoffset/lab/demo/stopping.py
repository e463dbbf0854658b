"""Stops the processes that `--keep` left running, by a list in the demo's folder."""

import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tsoffset.errors import StartFailed

PREFIX = "tsoffset-demo-"
_KEPT = "kept.json"
_GONE_SECONDS = 10.0


def remember(folder: Path, processes: Mapping[str, int | None]) -> None:
    (folder / _KEPT).write_text(json.dumps(processes))


def stop_kept() -> list[str]:
    """Stop all kept demos of this user, remove their folders, and return sentences about it. Raises
    StartFailed if a process does not end."""
    said = []
    for kept in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{_KEPT}")):
        folder = kept.parent
        if not _is_own(folder):
            continue
        ended = [name for name, pid in json.loads(kept.read_text()).items() if _end(pid, folder)]
        shutil.rmtree(folder)
        what = f"Stopped {', '.join(ended)}" if ended else "No process was running"
        said.append(f"{what}; removed {folder}.")
    return said or [f"There is no kept demo in {tempfile.gettempdir()}."]


def _is_own(folder: Path) -> bool:
    """False for a link, and for another user's folder."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _end(pid: int | None, folder: Path) -> bool:
    """Kill the process if it is still the demo's; returns whether it was. All its data is
    deleted."""
    if pid is None or not _runs_in(pid, folder):
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _GONE_SECONDS
    while _runs_in(pid, folder):
        if time.monotonic() > deadline:
            raise StartFailed(
                f"stop the demo in {folder}: process {pid} does not end; end it by id"
            )
        time.sleep(0.05)
    return True


def _runs_in(pid: int, folder: Path) -> bool:
    """True if the process's command line names the folder: its id may be another process's now."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        if Path("/proc/self").exists():
            return False
        words = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
        command = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return f"{folder}/" in command
