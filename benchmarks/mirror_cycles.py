"""When MirrorMaker 2's checkpoint connector commits, and how long its cycles take, from its own log
and the files of the target's broker. Asking the broker would count as requests."""

import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from tsoffset.lab.embedded import EmbeddedBroker, MirrorMaker

T = TypeVar("T")

# Its shortest interval in seconds, between two cycles.
INTERVAL = 1
PROPERTIES = {
    "emit.offset-syncs.enabled": "true",
    "emit.checkpoints.enabled": "true",
    "emit.checkpoints.interval.seconds": str(INTERVAL),
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": str(INTERVAL),
    # Half a minute between refreshes of the groups, because none are added.
    "refresh.groups.interval.seconds": "30",
}

_TOOK = re.compile(
    r"^(?P<at>[\d-]+ [\d:,]+) INFO (?P<what>[\w ]+) took (?P<ms>\d+) ms \(Scheduler\)"
)
_CHECKPOINTING = re.compile(r"^(?P<at>[\d-]+ [\d:,]+) INFO \S+ checkpointing \d+ consumer groups")
_CYCLE = (
    "refreshing idle consumers group offsets at target cluster",
    "sync idle consumer group offset from source to target",
)
_STARTS_WITHIN_SECONDS = 120.0
# After this time without a commit its requests are counted: that may have been the last one.
_PAUSE_SECONDS = 1.0
# It is idle after this many syncs and seconds without a commit.
_QUIET_SYNCS = 2
_QUIET_SECONDS = 8.0
_POLL_SECONDS = 0.2


def last_commit(broker: EmbeddedBroker) -> float:
    """When the broker last wrote to its topic of committed offsets; 0 if it never did."""
    logs = broker.directory.glob("data/__consumer_offsets-*/*.log")
    return max((log.stat().st_mtime for log in logs), default=0.0)


class Log:
    """The log lines of MirrorMaker's schedulers for each cycle."""

    def __init__(self, mirror: MirrorMaker) -> None:
        self._path: Path = mirror.log_path

    def first_look(self) -> float:
        """When the task began to read groups; waits for it."""
        deadline = time.time() + _STARTS_WITHIN_SECONDS
        while time.time() < deadline:
            for line in self._lines():
                if found := _CHECKPOINTING.match(line):
                    return _time(found["at"])
            time.sleep(_POLL_SECONDS)
        raise AssertionError(f"{self._path} does not say when checkpoints began")

    def last_commit_when_idle(
        self, target: EmbeddedBroker, since: float, seconds: float, count: Callable[[], T]
    ) -> tuple[float, T]:
        """When the last commit after `since` was written, and the result of `count` a second later;
        waits until MirrorMaker is idle."""
        deadline = time.time() + seconds
        counted: tuple[float, T] | None = None
        while time.time() < deadline:
            last = last_commit(target)
            quiet = time.time() - last
            if last <= since or quiet < _PAUSE_SECONDS:
                pass
            elif counted is None or counted[0] != last:
                counted = last, count()
            elif quiet > _QUIET_SECONDS and self.syncs(last) >= _QUIET_SYNCS:
                return counted
            time.sleep(_POLL_SECONDS)
        raise AssertionError(f"MirrorMaker is not at rest after {seconds:g} s; see {self._path}")

    def sync_seconds(self, since: float) -> float:
        """The average duration of the jobs of one sync of the target since then."""
        spent: dict[str, list[float]] = {what: [] for what in _CYCLE}
        for what, milliseconds in self._jobs(since):
            spent[what].append(milliseconds / 1000)
        assert all(spent.values()), f"{self._path} tells of no sync"
        return sum(sum(times) / len(times) for times in spent.values())

    def syncs(self, since: float) -> int:
        """The number of syncs of the target since then."""
        return sum(what == _CYCLE[0] for what, _ in self._jobs(since))

    def _jobs(self, since: float) -> Iterator[tuple[str, int]]:
        for line in self._lines():
            found = _TOOK.match(line)
            if found and found["what"] in _CYCLE and _time(found["at"]) >= since:
                yield found["what"], int(found["ms"])

    def _lines(self) -> list[str]:
        return self._path.read_text(errors="replace").splitlines()


def _time(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f").timestamp()
