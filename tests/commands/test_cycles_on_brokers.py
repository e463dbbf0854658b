"""`plan`, `sync` and `run` as a user runs them: processes on real brokers, with Spark."""

import csv
import io
import json
import socket
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.configured import nowhere, properties_file
from tests.daemons import DaemonProcess, named
from tests.invoking import run_process, start
from tests.producing import Contents, numbered
from tsoffset.model import Row

pytestmark = [pytest.mark.integration, pytest.mark.spark]

SMALL = "spark.master = local[1]\nlisteners = http://127.0.0.1:0\n"


class MirroredTopic:
    """A topic of 100 records on A, copied to B from record 40 on, and a group at record 60."""

    def __init__(self, source: Contents, target: Contents, unique: Callable[[str], str]) -> None:
        self.source, self.target = source, target
        self.topic, self.group = unique("orders"), unique("billing")
        records = numbered(100)
        source.create_topic(self.topic)
        source.produce(self.topic, records)
        target.create_topic(f"A.{self.topic}")
        target.produce(f"A.{self.topic}", records[40:])
        source.commit_offsets(self.group, {(self.topic, 0): (60, "kept")})

    def committed(self) -> dict[tuple[str, int], tuple[int, str]]:
        return self.target.committed_offsets(self.group)

    def configuration(self, folder: Path, more: str = "", source: str | None = None) -> str:
        """A file with the flow A->B for this group alone; its path."""
        folder.mkdir(exist_ok=True)
        lines = [f"C.bootstrap.servers = {nowhere()}", f"groups = {self.group}", SMALL + more]
        given = source or self.source.bootstrap
        file = properties_file(folder, given, self.target.bootstrap, *lines, clusters="A, B, C")
        return str(file)


@pytest.fixture
def mirrored(source, target, unique) -> MirroredTopic:
    return MirroredTopic(source, target, unique)


def rows_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.thorough
def test_plan_commits_nothing_and_sync_what_was_planned(mirrored, tmp_path):
    """`plan` says `would_commit` and changes nothing; `sync` commits that offset with the
    source's metadata. A dead address of two is a warning on standard error, exit 0."""
    dead = nowhere()
    file = mirrored.configuration(tmp_path, source=f"{dead},{mirrored.source.bootstrap}")
    status, out, err = run_process("plan", "-c", file, "--format", "json")
    (row,) = rows_of(out)
    assert (status, row["outcome"], row["target_offset"]) == (0, "would_commit", 20)
    assert tuple(row) == tuple(field.name for field in fields(Row))
    assert f"warning: cluster A: {dead} does not answer" in err
    assert "1 would be committed" in err
    assert mirrored.committed() == {}

    status, out, err = run_process("sync", "-c", file, "--format", "csv")
    (line,) = csv.DictReader(io.StringIO(out))
    assert (status, line["outcome"], line["precision"]) == (0, "committed", "exact")
    assert mirrored.committed() == {(f"A.{mirrored.topic}", 0): (20, "kept")}


@pytest.mark.thorough
def test_state_saves_the_next_process_the_work(mirrored, tmp_path):
    """`sync --state` leaves what it learned to the next `sync`, which reads no record; `run` takes
    it up by `state.dir` and leaves it to the next `run`."""
    folder = tmp_path / "state"
    file = mirrored.configuration(tmp_path, f"state.dir = {folder}\n")
    plain = mirrored.configuration(tmp_path / "plain")

    def sync() -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        words = ("--state", str(folder), "--log-format", "json", "--log-level", "info")
        status, out, err = run_process("sync", "-c", plain, "--format", "json", *words)
        assert status == 0
        (row,) = rows_of(out)
        events = rows_of(err)
        (finished,) = named(events, "cycle_finished", "A->B")
        return row["outcome"], finished, events

    outcome, finished, _ = sync()
    assert (outcome, finished["from_memory"]) == ("committed", 0)
    assert 0 < finished["source_fetches"] < finished["source_requests"]
    assert finished["rounds"] > 0
    assert 0 < finished["source_bytes_read"] < finished["bytes_read"]
    assert 0 < finished["commit_gap_seconds"] <= 2

    outcome, finished, events = sync()
    assert (outcome, finished["from_memory"]) == ("unchanged", 1)
    spent = ("source_fetches", "target_fetches", "time_lookups", "bytes_read")
    assert {finished[name] for name in spent} == {0}
    assert [each for each in events if each["event"].startswith("state_")] == []

    for number in range(2):
        log = tmp_path / f"run-{number}"
        log.mkdir()
        with DaemonProcess("-c", file, folder=log) as daemon:
            daemon.wait_for(lambda events: bool(named(events, "cycle_finished", "A->B")))
            assert daemon.end() == 0
            finished = named(daemon.events(), "cycle_finished", "A->B")[0]
        assert (finished["unchanged"], finished["from_memory"]) == (1, 1)
        assert {finished[name] for name in spent} == {0}


@pytest.mark.thorough
def test_a_flow_turned_off_is_planned_and_says_so(mirrored, tmp_path):
    """`sync.group.offsets.enabled = false`: `sync` behaves as `plan`, exit 0. The reader of
    its rows may go away meanwhile."""
    file = mirrored.configuration(tmp_path, "sync.group.offsets.enabled = false\n")
    with start("sync", "-c", file, "--format", "json") as process:
        process.stdout.close()
        err = process.stderr.read()
    assert process.returncode == 0
    assert "warning: flow A->B: sync.group.offsets.enabled is false" in err
    assert "1 would be committed" in err
    assert "Traceback" not in err
    assert mirrored.committed() == {}


def test_run_goes_on_without_a_cluster_and_ends_on_sigterm(mirrored, tmp_path):
    """Both flows have cycle after cycle although one cluster is away; what the group commits
    meanwhile is followed; SIGTERM ends it with status 0, and Spark's Java with it."""
    file = mirrored.configuration(
        tmp_path, "C->B.enabled = true\nsync.group.offsets.interval.seconds = 1\n"
    )

    def wait_for_commit(offset: int, metadata: str) -> None:
        # Not for a cycle: on a machine that is too busy, a cycle leaves the commit to the next one.
        committed = {(f"A.{mirrored.topic}", 0): (offset, metadata)}
        daemon.wait_for(lambda _: mirrored.committed() == committed)

    with DaemonProcess("-c", file, folder=tmp_path) as daemon:
        wait_for_commit(20, "kept")
        mirrored.source.commit_offsets(mirrored.group, {(mirrored.topic, 0): 80})
        wait_for_commit(40, "")
        daemon.wait_for(lambda events: len(named(events, "cycle_finished", "C->B")) >= 2)
        assert daemon.children
        assert daemon.end() == 0
        events = daemon.events()
    assert {each["failed"] for each in named(events, "cycle_finished", "C->B")} == {1}
    assert len(named(events, "rows_need_attention", "C->B")) == 1
    assert events[-1]["event"] == "run_stopped"
    assert not [each for each in events if each["event"] == "cycle_failed"]


@pytest.mark.thorough
def test_sigterm_ends_a_cycle_that_hangs(mirrored, tmp_path):
    """A cluster that accepts connections and never answers holds a cycle for ten minutes;
    the daemon ends without waiting for it, and so does its Java."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        file = mirrored.configuration(tmp_path, "admin.timeout.ms = 600000\n", source=address)
        with DaemonProcess("-c", file, folder=tmp_path) as daemon:
            daemon.wait_for(lambda events: bool(named(events, "cycle_started", "A->B")))
            assert daemon.children
            assert daemon.end() == 0
            assert daemon.events()[-1]["ending"] == "abandoned"
