"""Small cycles that only plan run in the command's own process: no Java is needed for them."""

import io
import json
from pathlib import Path

import pytest

from tests.configured import properties_file
from tests.memory_flows import Estate, mirrored_estate
from tests.test_scope import Command, export, plan, sync
from tsoffset.commands.failover.command import run_failover
from tsoffset.config.selection import Selection
from tsoffset.errors import JavaMissing
from tsoffset.model import Reason, Row
from tsoffset.spark import packing
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark, if it is started, does not start."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.fixture
def estate() -> Estate:
    """Groups of which one is translated, one has members on the target, one is further there."""
    estate = mirrored_estate(100, first_offset=40)
    for group in ("ahead", "billing", "busy"):
        estate.commit(group, "orders", 60)
    estate.commit("ahead", "A.orders", 130, on="B")
    estate["B"].group("busy").state = "Stable"
    return estate


def dry_failover(selection: Selection, estate: Estate, output: Output, _: Path) -> int:
    return run_failover(
        selection,
        output,
        Notices(),
        timeout_seconds=0,
        pause=False,
        resume=False,
        dry_run=True,
        connect=estate.connect,
    )


def ran(command: Command, estate: Estate, folder: Path, *lines: str, clusters: str = "A, B") -> str:
    out = io.StringIO()
    file = properties_file(folder, "a:1", "b:1", *lines, clusters=clusters)
    command(Selection.of(file, (), None, None), estate, Output(out, Format.JSON), folder)
    return out.getvalue()


def test_a_small_plan_has_the_rows_of_a_cycle_and_needs_no_java(
    estate: Estate, tmp_path: Path
) -> None:
    """What a plan learns is kept in `state.dir`, as on Spark."""
    expected = estate.plan()
    state = tmp_path / "state"
    for _ in range(2):
        found = ran(plan, estate, tmp_path, f"state.dir = {state}").splitlines()
        assert [Row(**json.loads(line)) for line in found] == expected
    (kept,) = state.iterdir()
    assert kept.suffix == ".state"


def test_flows_that_compete_count(tmp_path: Path) -> None:
    """Two flows that write the same offsets of a group, under one name."""
    estate = Estate("A", "B", "C")
    for alias in ("A", "C"):
        estate[alias].create_topic("orders")
        estate.commit("billing", "orders", 0, on=alias)
    lines = (
        "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "C.bootstrap.servers = c:1",
        "C->B.enabled = true",
    )
    found = ran(plan, estate, tmp_path, *lines, clusters="A, B, C").splitlines()
    assert {json.loads(line)["reason"] for line in found} == {Reason.SEVERAL_SOURCES}


@pytest.mark.parametrize("command", [plan, export, dry_failover])
def test_other_commands_that_only_plan_need_none_either(
    command: Command, estate: Estate, tmp_path: Path
) -> None:
    assert "billing" in ran(command, estate, tmp_path)
    assert estate["B"].group("billing").offsets == {}


@pytest.mark.parametrize("command", [plan, export, dry_failover])
def test_spark_runs_plans_that_are_large_or_that_it_is_asked_for(
    command: Command, estate: Estate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More groups, more positions to translate than pay without it; or a `spark.master`."""
    with pytest.raises(JavaMissing):
        ran(command, estate, tmp_path, "spark.master = local[1]")
    for limit in ("PAIRS_HERE", "POSITIONS_HERE"):
        with monkeypatch.context() as patched:
            patched.setattr(packing, limit, 0)
            with pytest.raises(JavaMissing):
                ran(command, estate, tmp_path)


def test_what_commits_runs_on_spark(estate: Estate, tmp_path: Path) -> None:
    with pytest.raises(JavaMissing):
        ran(sync, estate, tmp_path)
