"""Small cycles that only plan run in the command's own process: no Java is needed for them."""

import json

import pytest

from tests.configured import properties_file
from tests.invoking import in_memory
from tests.memory_flows import UNCHANGED, WOULD_COMMIT, Estate, mirrored_estate, skipped, verdict
from tsoffset.commands.cycles import flow_cycles
from tsoffset.config.selection import Selector
from tsoffset.model import Failed, FailureKind, GroupType, Reason, Row
from tsoffset.spark import packing
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format
from tsoffset.testing.memory_cluster import Verb

JSON = "--format", "json"
ONLY_PLANS = [("plan",), ("export",), ("failover", "--dry-run")]


@pytest.fixture(autouse=True)
def no_java(monkeypatch) -> None:
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


def test_a_small_plan_has_the_rows_of_a_cycle_and_needs_no_java(estate, tmp_path):
    """What a plan learns is kept in `state.dir`, as on Spark. A damaged file is a warning, and the
    cycle does without and replaces it."""
    expected = estate.plan()
    state = tmp_path / "state"
    for damaged in (False, False, True, False):
        if damaged:
            (kept,) = state.iterdir()
            kept.write_bytes(kept.read_bytes()[:-9])
        found = in_memory(estate, tmp_path, "plan", *JSON, lines=[f"state.dir = {state}"])
        assert [Row(**json.loads(line)) for line in found.stdout.splitlines()] == expected
        assert ("it is damaged" in found.stderr) is damaged


def test_each_cycle_of_a_command_lists_the_groups(estate, tmp_path, monkeypatch):
    """`failover` says of every group whether it is ready: of one that begins meanwhile, and of one
    that no broker lists any more."""
    estate.commit("sharing", "orders", 60, type=GroupType.SHARE)
    lines = "refresh.groups.enabled = false"
    selection = Selector(properties_file(tmp_path, "a:1", "b:1", lines)).select()
    monkeypatch.setattr("tsoffset.kafka.cluster.KafkaCluster", estate.connect)
    with flow_cycles(selection, Notices(), only_plan=True) as cycles_of:
        run_cycle = cycles_of(selection.flows[0])
        run_cycle(commit=False)
        estate.commit("new", "orders", 70)
        found = run_cycle(commit=False)
        late = Failed(FailureKind.TIMEOUT, "list groups, broker 0: late")
        estate["A"].fail(late, verb=Verb.GROUPS, broker=0)
        unlisted = run_cycle(commit=False)
    groups = ["ahead", "billing", "busy", "new", "sharing"]
    assert [row.group for row in found.rows] == groups
    assert sorted(row.group for row in unlisted.rows if row.group) == groups


@pytest.mark.parametrize("alias", ["A", "B"])
def test_a_group_that_is_reset_on_one_cluster_is_not_moved_forward_from_the_other(alias, tmp_path):
    """Flows go both ways, and both groups are stopped. What a flow has made of an offset is not
    what consumers have read, so it does not end the reset; what they read later does. The state
    tells one from the other."""
    estate = mirrored_estate(100, first_offset=40, billing=60)
    estate.commit("billing", "A.orders", 100, on="B")
    lines = ["B->A.enabled = true", f"state.dir = {tmp_path / 'state'}"]
    there, topic, back, other = (
        ("B", "A.orders", 70, "A->B") if alias == "B" else ("A", "orders", 30, "B->A")
    )

    def row(*lines: str) -> Row:
        found = in_memory(estate, tmp_path, "plan", *JSON, lines=lines)
        rows = [Row(**json.loads(line)) for line in found.stdout.splitlines()]
        [row] = [row for row in rows if row.flow == other]
        return row

    for _ in range(2):
        assert verdict(row(*lines)) == UNCHANGED
    estate.commit("billing", topic, back, on=there)
    for _ in range(2):
        reset = row(*lines)
        assert verdict(reset) == skipped(Reason.TARGET_REWOUND)
        assert f"; the target group is at {back};" in (reset.message or "")
    assert verdict(row(lines[0])) == WOULD_COMMIT
    source = ("orders", 61) if alias == "B" else ("A.orders", 101)
    estate.commit("billing", *source, on="A" if alias == "B" else "B")
    assert verdict(row(*lines)) == WOULD_COMMIT


def test_a_group_that_reads_on_to_its_old_offset_after_a_reset_waits_for_its_next_one(tmp_path):
    """It was reset on both clusters. The flow in the other direction has had no cycle since, so its
    state still has the old offset."""
    estate = mirrored_estate(100, first_offset=40, billing=60)
    estate.commit("billing", "A.orders", 100, on="B")
    lines = ["B->A.enabled = true", f"state.dir = {tmp_path / 'state'}"]

    def outcomes(*words: str) -> dict[str, object]:
        found = in_memory(estate, tmp_path, "plan", *JSON, *words, lines=lines)
        rows = [Row(**json.loads(line)) for line in found.stdout.splitlines()]
        return {row.flow: verdict(row) for row in rows}

    assert outcomes() == {"A->B": UNCHANGED, "B->A": UNCHANGED}
    estate.commit("billing", "orders", 30)
    estate.commit("billing", "A.orders", 70, on="B")
    assert outcomes("--flow", "A->B") == {"A->B": UNCHANGED}
    estate.commit("billing", "orders", 60)
    assert outcomes()["A->B"] == skipped(Reason.TARGET_REWOUND)
    estate.commit("billing", "orders", 61)
    assert outcomes()["A->B"] == WOULD_COMMIT


def test_flows_that_compete_count(tmp_path):
    estate = Estate("A", "B", "C")
    for alias in ("A", "C"):
        estate[alias].create_topic("orders")
        estate.commit("billing", "orders", 0, on=alias)
    lines = (
        "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "C.bootstrap.servers = c:1",
        "C->B.enabled = true",
    )
    found = in_memory(estate, tmp_path, "plan", *JSON, lines=lines, clusters="A, B, C")
    reasons = {json.loads(line)["reason"] for line in found.stdout.splitlines()}
    assert reasons == {Reason.SEVERAL_SOURCES}


@pytest.mark.parametrize("words", ONLY_PLANS)
def test_other_commands_that_only_plan_need_none_either(words, estate, tmp_path):
    assert "billing" in in_memory(estate, tmp_path, *words).stdout
    assert estate["B"].group("billing").offsets == {}


@pytest.mark.parametrize("words", ONLY_PLANS)
def test_spark_runs_plans_that_are_large_or_that_it_is_asked_for(
    words, estate, tmp_path, monkeypatch
):
    """More groups, more positions to translate than pay without it; or a `spark.master`. (What
    commits runs there always: `test_a_machine_without_java_is_told_so`.)"""
    asked_for = in_memory(estate, tmp_path, *words, lines=["spark.master = local[1]"])
    assert "find Java: neither" in asked_for.stderr
    for limit in ("PAIRS_HERE", "POSITIONS_HERE"):
        with monkeypatch.context() as patched:
            patched.setattr(packing, limit, 0)
            assert "find Java: neither" in in_memory(estate, tmp_path, *words).stderr


# --- what is printed of it ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcomes", "reasons", "groups"),
    [
        (("skipped",), (), ["ahead", "busy"]),
        ((), ("GROUP_ACTIVE", "EXPIRED"), ["busy"]),
        (("would_commit",), ("GROUP_ACTIVE",), []),
        (("would_commit", "skipped"), (), ["ahead", "billing", "busy"]),
    ],
)
@pytest.mark.parametrize("format", [Format.JSON, Format.TABLE])
def test_a_filter_narrows_what_is_printed_alone(
    outcomes, reasons, groups, format, estate, tmp_path
):
    """The summary counts all rows, and says how many are printed; the status is that of all."""
    broken = Failed(FailureKind.COORDINATOR, "made to fail")
    estate.commit("broken", "orders", 60)
    estate["A"].fail(broken, verb=Verb.COMMITTED, group="broken")
    words = [word for outcome in outcomes for word in ("--outcome", outcome)]
    words += [word for reason in reasons for word in ("--reason", reason)]
    result = in_memory(estate, tmp_path, "plan", "--format", format, *words)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    if format is Format.JSON:
        assert [json.loads(line)["group"] for line in lines] == groups
        summary = result.stderr
    else:
        named = [line.split()[0] for line in lines if " orders-0 " in line]
        assert named == groups
        summary = lines[-1]
    assert "1 to commit, 0 unchanged, 2 skipped" in summary or "1 would be committed" in summary
    assert "1 failed (1 COORDINATOR)" in summary
    assert f"{len(groups)} of 4 rows printed" in summary
