"""In-memory clusters that several processes share through a folder.

Spark's workers are processes of their own: what one commits the next must find. Each call
takes the cluster from its file, and a commit puts it back; every call leaves a line in a
journal, so that a test can say what was asked, how often and by which process.
"""

import fcntl
import json
import os
import pickle
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from tests.processes import parent
from tests.waiting import wait_until
from tsoffset.committed import CommittedColumns
from tsoffset.config.loading import Configuration
from tsoffset.flow.settings import ClusterSettings
from tsoffset.model import CommittedOffset, Failed, TopicPartition
from tsoffset.testing.memory_cluster import MemoryCluster

# The setting that carries the folder to the workers: text that is not used otherwise.
FOLDER_SETTING = "client.id"
# Files beside a cluster's that order what the next process to come by shall meet.
DIE_AFTER_COMMIT, RAISE_AFTER_COMMIT = "die-after-commit", "raise-after-commit"
KILL_EXECUTOR_AFTER_COMMIT = "kill-executor-after-commit"
KILL_MACHINE_AFTER_COMMIT = "kill-machine-after-commit"
# These hold for every process for as long as the file is there.
DIE_ON_COMMITTED, HOLD, MEET = "die-on-committed", "hold", "meet"
# Asked as they are; the others have events of their own.
VERBS = (
    *("describe", "topics", "topic_configs", "groups", "log_ranges"),
    *("read", "read_raw", "first_at_times", "youngest"),
)
# Stands for a secret, in a variable and in an error, in a worker.
CANARY = "hunter2-canary"


class BrokenOnPurpose(RuntimeError):
    """A mistake in a worker, ordered by a test."""


class StoredCluster:
    """A `MemoryCluster` in `folder`, asked by any number of processes."""

    def __init__(self, folder: Path, settings: ClusterSettings) -> None:
        self._folder = folder
        self._alias = settings.alias
        self._limits = (settings.fetch_max_bytes_per_second, settings.fetch_max_in_flight)

    @property
    def alias(self) -> str:
        return self._alias

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        """What any cluster is asked, put to the stored one."""
        if verb not in VERBS:
            raise AttributeError(verb)

        def ask(*words: Any) -> Any:
            self._meet(verb)
            if verb == "read":
                journal(self._folder, self._alias, "read within", self._limits)
            with stored(self._folder, self._alias, change=False) as cluster:
                journal(self._folder, self._alias, verb, (words[0] if words else None) or ())
                return getattr(cluster, verb)(*words)

        return ask

    def together(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        return [call() for call in calls]

    def committed(self, groups: Collection[str], **how: Any) -> CommittedColumns:
        if (self._folder / f"{self._alias}.{DIE_ON_COMMITTED}").exists():
            os._exit(1)
        self._meet("committed")
        hold = self._folder / f"{self._alias}.{HOLD}"
        if hold.exists():
            journal(self._folder, self._alias, "held", groups)
            wait_until(lambda: not hold.exists(), seconds=600)
        with stored(self._folder, self._alias, change=False) as cluster:
            journal(self._folder, self._alias, "committed", groups)
            return cluster.committed(groups, **how)

    def commit(
        self, commits: Mapping[str, Mapping[TopicPartition, CommittedOffset]], **how: Any
    ) -> Mapping[str, Mapping[TopicPartition, Failed | None]]:
        with stored(self._folder, self._alias) as cluster:
            accepted = len(cluster.commits)
            answer = cluster.commit(commits, **how)
            items = [(g, str(p), c.offset) for g, p, c in cluster.commits[accepted:]]
            journal(self._folder, self._alias, "commit", items)
        if self._ordered(DIE_AFTER_COMMIT):
            os._exit(1)
        if self._ordered(KILL_EXECUTOR_AFTER_COMMIT):
            os.kill(parent(os.getppid()), signal.SIGKILL)
            time.sleep(600)
        if self._ordered(KILL_MACHINE_AFTER_COMMIT):
            executor = parent(os.getppid())
            # The worker first: it would start another executor.
            os.kill(parent(executor), signal.SIGKILL)
            os.kill(executor, signal.SIGKILL)
            time.sleep(600)
        if self._ordered(RAISE_AFTER_COMMIT):
            canary = CANARY
            raise BrokenOnPurpose(f"raised after a commit; password={canary}")
        return answer

    def close(self) -> None:
        journal(self._folder, self._alias, "close", ())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _meet(self, verb: str) -> None:
        """Wait until as many processes ask this as were ordered: none does the work of another."""
        ordered = self._folder / f"{self._alias}.{MEET}-{verb}"
        if ordered.exists():
            journal(self._folder, self._alias, f"{MEET} {verb}", ())
            most = int(ordered.read_text())
            wait_until(lambda: len(processes(self._folder, self._alias, f"{MEET} {verb}")) >= most)

    def _ordered(self, event: str) -> bool:
        """True for the one process that comes first after the event was ordered."""
        try:
            (self._folder / f"{self._alias}.{event}").unlink()
        except FileNotFoundError:
            return False
        return True


def connect(settings: ClusterSettings) -> StoredCluster:
    """What `FlowTask.connect` is in these tests."""
    folder = Path(settings.client[FOLDER_SETTING])
    journal(folder, settings.alias, "connect", ())
    return StoredCluster(folder, settings)


def store(folder: Path, *clusters: MemoryCluster) -> None:
    """Put the clusters into the folder, with a fresh journal."""
    for cluster in clusters:
        (folder / f"{cluster.alias}.pickle").write_bytes(pickle.dumps(cluster))
        (folder / f"{cluster.alias}.journal").write_text("")


@contextmanager
def stored(folder: Path, alias: str, *, change: bool = True) -> Iterator[MemoryCluster]:
    """The cluster as it is now; with `change` it is put back as the block leaves it."""
    path = folder / f"{alias}.pickle"
    with (folder / f"{alias}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if change else fcntl.LOCK_SH)
        cluster: MemoryCluster = pickle.loads(path.read_bytes())
        yield cluster
        if change:
            path.write_bytes(pickle.dumps(cluster))


def order(folder: Path, alias: str, event: str) -> None:
    """Let the next process that commits meet the event."""
    (folder / f"{alias}.{event}").touch()


def meet(folder: Path, alias: str, verb: str, processes: int) -> None:
    """Let as many processes ask this at once."""
    (folder / f"{alias}.{MEET}-{verb}").write_text(str(processes))


def journal(folder: Path, alias: str, verb: str, items: Collection[Any]) -> None:
    with (folder / f"{alias}.journal").open("a") as file:
        file.write(json.dumps([verb, os.getpid(), [str(item) for item in items]]) + "\n")


def calls(folder: Path, alias: str, verb: str) -> Iterator[tuple[int, list[str]]]:
    """Every call of that verb so far: the process and the items."""
    # The last line may not be whole yet.
    complete, _, _ = (folder / f"{alias}.journal").read_text().rpartition("\n")
    for line in complete.splitlines():
        name, pid, items = json.loads(line)
        if name == verb:
            yield pid, items


def asked(folder: Path, alias: str, verb: str) -> list[list[str]]:
    """The items of every call of that verb so far."""
    return [items for _, items in calls(folder, alias, verb)]


def limits(folder: Path, alias: str) -> dict[int, set[tuple[str, ...]]]:
    """For each process that read, the limits that its clients were given: bytes a second, and
    reads under way."""
    found: dict[int, set[tuple[str, ...]]] = {}
    for pid, items in calls(folder, alias, "read within"):
        found.setdefault(pid, set()).add(tuple(items))
    return found


def processes(folder: Path, alias: str, verb: str) -> set[int]:
    return {pid for pid, _ in calls(folder, alias, verb)}


def configuration(folder: Path, *flows: str, **extra: str) -> Configuration:
    """A MirrorMaker 2 file for clusters in `folder`; `extra` keys have `_` for `.`."""
    aliases = dict.fromkeys(alias for flow in flows for alias in flow.split("->"))
    lines = [f"clusters = {', '.join(aliases)}", f"{FOLDER_SETTING} = {folder}"]
    lines += [f"{alias}.bootstrap.servers = {alias.lower()}:9092" for alias in aliases]
    lines += [f"{flow}.enabled = true" for flow in flows]
    lines += [f"{name.replace('_', '.')} = {value}" for name, value in extra.items()]
    path = folder / "mm2.properties"
    path.write_text("\n".join(lines) + "\n")
    return Configuration.read(path)
