"""`tsoffset run` as a process of its own, followed by its log."""

import json
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.invoking import start
from tests.processes import descendants, runs
from tests.waiting import TIMEOUT_SECONDS, wait_until


class DaemonProcess:
    """`tsoffset run` with its log, and the processes that it started; `through` is a command that
    becomes it."""

    def __init__(self, *words: str, folder: Path, through: Sequence[str] = ()) -> None:
        self.log_path = self._log = folder / "run.log"
        with self._log.open("w") as log:
            command = ("run", *words, "--log-format", "json")
            self.process = start(*command, stderr=log.fileno(), through=through)
        self.children: set[int] = set()

    def events(self) -> list[dict[str, Any]]:
        complete, _, _ = self._log.read_text().rpartition("\n")
        return [json.loads(line) for line in complete.splitlines()]

    def wait_for(self, enough: Callable[[list[dict[str, Any]]], bool]) -> None:
        """Wait until the log says enough, and remember which processes run by then."""

        def said() -> bool:
            assert self.process.poll() is None, self._log.read_text()
            return enough(self.events())

        wait_until(said, f"{self._log} says enough")
        self.children = descendants(self.process.pid)

    def end(self) -> int:
        """Send SIGTERM; the status with which it ended. It ends whatever it is at, and so do its
        processes. It plans for the ten seconds that `docker stop` gives (`FINISH_SECONDS` and
        `CANCEL_SECONDS`); a busy machine gets more."""
        self.process.terminate()
        self.process.communicate(timeout=TIMEOUT_SECONDS)
        wait_until(lambda: not any(map(runs, self.children)), f"{self.children} have ended")
        return self.process.returncode

    def __enter__(self) -> "DaemonProcess":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.process.terminate()
            self.process.wait(30)
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def named(
    events: list[dict[str, Any]], event: str, flow: str | None = None
) -> list[dict[str, Any]]:
    return [each for each in events if each["event"] == event and flow in (None, each.get("flow"))]
