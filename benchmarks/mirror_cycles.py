"""MirrorMaker 2's checkpoint connector at work: how long its cycles take, by its own log and
the requests that the brokers count."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from benchmarks import filling
from benchmarks.estates import Commits
from tsoffset.embedded import MirrorMaker
from tsoffset.model import TopicPartition
from tsoffset.settings import ClusterSettings

# Its shortest intervals, in seconds: between cycles it rests that long.
INTERVAL = 1
PROPERTIES = {
    "emit.offset-syncs.enabled": "true",
    "emit.checkpoints.enabled": "true",
    "emit.checkpoints.interval.seconds": str(INTERVAL),
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": str(INTERVAL),
    # Half a minute between looks at the groups, as nobody adds any.
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
_QUIET_SECONDS = 8.0

Found = dict[str, dict[TopicPartition, int]]


@dataclass(frozen=True, slots=True)
class Settled:
    """Target offsets that came to rest, and when the last of them was seen to change."""

    offsets: Found
    last_change: float


def settle(target: ClusterSettings, commits: Commits, before: Found, seconds: float) -> Settled:
    """Watch the target's commits until none changes for a while, after one did; or give up."""
    found, last_change, began = before, None, time.time()
    while time.time() < began + seconds:
        now = filling.committed(target, commits)
        if now != found:
            found, last_change = now, time.time()
        elif last_change is not None and time.time() - last_change > _QUIET_SECONDS:
            break
        time.sleep(0.5)
    assert last_change is not None, f"no commit of MirrorMaker's in {seconds:g} s"
    return Settled(found, last_change)


class Log:
    """What MirrorMaker's schedulers write of each cycle."""

    def __init__(self, mirror: MirrorMaker) -> None:
        self._path: Path = mirror.log_path

    def first_words(self) -> float:
        """When the task began to look at groups."""
        for line in self._path.read_text(errors="replace").splitlines():
            if found := _CHECKPOINTING.match(line):
                return _time(found["at"])
        raise AssertionError(f"{self._path} does not say when checkpoints began")

    def cycle_seconds(self, since: float) -> float:
        """How long the jobs of one sync of the target took, on average since then."""
        spent: dict[str, list[float]] = {what: [] for what in _CYCLE}
        for what, milliseconds in self._jobs(since):
            spent[what].append(milliseconds / 1000)
        assert all(spent.values()), f"{self._path} tells of no cycle"
        return sum(sum(times) / len(times) for times in spent.values())

    def cycles(self, since: float) -> int:
        """How many syncs of the target were done since then."""
        return sum(what == _CYCLE[0] for what, _ in self._jobs(since))

    def _jobs(self, since: float) -> Iterator[tuple[str, int]]:
        for line in self._path.read_text(errors="replace").splitlines():
            found = _TOOK.match(line)
            if found and found["what"] in _CYCLE and _time(found["at"]) >= since:
                yield found["what"], int(found["ms"])


def _time(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f").timestamp()
