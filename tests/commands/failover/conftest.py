"""The command with clusters in memory."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.invoking import in_memory
from tests.memory_flows import Estate, mirrored_estate
from tests.past_cycles import NOON, Past
from tsoffset.commands.failover import run
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.flow_cycle import CycleResult
from tsoffset.group_sync.rows import Rows, rows_table
from tsoffset.model import GROUP_OFFSETS_TOPIC, Failed, FailureKind, TopicPartition
from tsoffset.testing.memory_cluster import MemoryCluster, Verb

PAUSED = "A-%3EB.paused"


def mirrored() -> Estate:
    """A mirrored topic, and a group in the middle of it."""
    return mirrored_estate(100, first_offset=40, billing=60)


@dataclass(slots=True)
class FailoverCycles:
    """Cycles on clusters in memory, run as `flow_cycles` does; `happen` comes between two."""

    estate: Estate
    happen: Callable[[int], None] = lambda _: None
    ran: int = 0
    unreachable: bool = False

    def __call__(self, *, commit: bool, keep: bool) -> CycleResult:
        assert commit is keep
        self.happen(self.ran)
        self.ran += 1
        rows = rows_table(self.estate.sync() if commit else self.estate.plan())
        return CycleResult("A->B", Rows(rows), (), self.unreachable, 0.1, 1, 1)


@dataclass(slots=True)
class FailingOver:
    """The command with clusters in memory; `now` is its clock, which sleeping moves."""

    estate: Estate
    folder: Path
    directory: Path | None
    cycles: FailoverCycles
    history: Path | None = None
    now: float = NOON

    def run(self, *words: str, lines: Sequence[str] = (), form: str = "json") -> int:
        """The exit status; `result` has the rest."""
        folders = {"state.dir": self.directory, "history.dir": self.history}
        lines = [*lines, *(f"{key} = {it}" for key, it in folders.items() if it is not None)]
        words = ("failover", *words, "--format", form)
        self.result = in_memory(self.estate, self.folder, *words, lines=lines)
        return self.result.exit_code

    def run_without_source(
        self, past: Past | None = None, *words: str, after: int = 100, lines: Sequence[str] = ()
    ) -> int:
        """The same while the source is unreachable, some seconds after the first of `past`."""
        if past is not None:
            self.history, self.now = past.directory, NOON + after
        self.estate["A"].unreachable = True
        return self.run(*words, lines=lines)

    def table(self, *words: str, status: int = 0) -> str:
        """What a person reads on standard output, in one line."""
        assert self.run(*words, form="table") == status
        return " ".join(self.result.stdout.split())

    @property
    def rows(self) -> dict[str | None, dict[str, Any]]:
        rows = map(json.loads, self.result.stdout.splitlines())
        return {row["group"]: row for row in rows}

    @property
    def verdicts(self) -> dict[str | None, tuple[str, str | None]]:
        return {group: (row["verdict"], row["reason"]) for group, row in self.rows.items()}

    result: Result = field(init=False)

    def time(self) -> float:
        return self.now

    monotonic = time

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def silent_broker(cluster: MemoryCluster) -> Callable[[], None]:
    """A broker does not list its groups, until the returned function is called."""
    late = Failed(FailureKind.TIMEOUT, "list groups, broker 0: late")
    fault = cluster.fail(late, verb=Verb.GROUPS, broker=0)
    return lambda: cluster.heal(fault)


def no_leader(cluster: MemoryCluster) -> Callable[[], None]:
    """The groups' partition has no leader, until the returned function is called."""
    cluster.create_topic(GROUP_OFFSETS_TOPIC, internal=True)
    partition = TopicPartition(GROUP_OFFSETS_TOPIC, 0)
    cluster.elect_leader(partition, None)
    return lambda: cluster.elect_leader(partition, 0)


@pytest.fixture
def failing_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FailingOver:
    estate = mirrored()
    found = FailingOver(estate, tmp_path, tmp_path / "state", FailoverCycles(estate))

    @contextmanager
    def cycles(*_: object, **__: object) -> Iterator[Callable[[FlowSettings], FailoverCycles]]:
        yield lambda _: found.cycles

    monkeypatch.setattr(run, "flow_cycles", cycles)
    monkeypatch.setattr(run, "time", found)
    return found
