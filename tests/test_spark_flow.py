"""What is kept of a flow between cycles, and what travels to the workers."""

import pickle
from pathlib import Path

import pytest

from tests.stored_clusters import configuration
from tsoffset.errors import UsageError
from tsoffset.flow.narrowing import Narrowing
from tsoffset.model import OutcomeKind, Row
from tsoffset.spark.flow import FlowCarryOver, FlowTask, Rows
from tsoffset.spark.schema import CARRY_OVER
from tsoffset.spark.values import last_commits_of, rows_table


def row(
    group: str,
    outcome: OutcomeKind,
    source: int,
    target: int | None = None,
    current: int | None = None,
    partition: int = 0,
) -> Row:
    return Row(
        "A->B", group, "orders", partition, source, None, "A.orders", target, current, outcome
    )


def learned(carry_over: FlowCarryOver) -> dict[tuple[str, int], tuple[int, int]]:
    assert carry_over.commits is not None
    return {
        (group, place.partition): (last.source_offset, last.target_offset)
        for (group, place), last in last_commits_of(carry_over.commits).items()
    }


def test_carry_over_is_what_was_committed_last() -> None:
    """A commit is remembered with where it led; one that stayed with where it stands."""
    carry_over = FlowCarryOver()
    rows = [
        row("moved", OutcomeKind.COMMITTED, 10, target=20, current=5),
        row("stayed", OutcomeKind.UNCHANGED, 11, target=22, current=21),
        row("planned", OutcomeKind.WOULD_COMMIT, 12, target=24),
        row("left", OutcomeKind.SKIPPED, 13, target=26, current=30),
    ]
    carry_over.learn(
        rows_table(rows), ["moved", "stayed", "planned", "left"], CARRY_OVER.empty_table()
    )
    assert learned(carry_over) == {("moved", 0): (10, 20), ("stayed", 0): (11, 21)}
    assert carry_over.rows == 4


def test_carry_over_outlives_cycles_in_which_nothing_was_committed() -> None:
    """What a cycle skips or fails is remembered as before; a group that is gone is forgotten."""
    carry_over = FlowCarryOver()
    first = [
        row(group, OutcomeKind.COMMITTED, 10, target=20, partition=partition)
        for group in ("a", "b", "c")
        for partition in (0, 1)
    ]
    carry_over.learn(rows_table(first), ["a", "b", "c"], CARRY_OVER.empty_table())
    second = [
        row("a", OutcomeKind.COMMITTED, 11, target=21),
        row("a", OutcomeKind.SKIPPED, 1, target=2, current=20, partition=1),
        row("b", OutcomeKind.FAILED, 10),
    ]
    carry_over.learn(rows_table(second), ["a", "b"], CARRY_OVER.empty_table())
    assert learned(carry_over) == {
        ("a", 0): (11, 21),
        ("a", 1): (10, 20),
        ("b", 0): (10, 20),
        ("b", 1): (10, 20),
    }
    assert learned(FlowCarryOver(commits=carry_over.of_groups(["b"]))).keys() == {
        ("b", 0),
        ("b", 1),
    }


def test_rows_are_a_sequence() -> None:
    """Rows that lie in an Arrow table can be counted, taken, cut and walked through."""
    rows = [row(f"g{number}", OutcomeKind.UNCHANGED, number) for number in range(5)]
    found = Rows(rows_table(rows))
    assert list(found) == rows
    assert len(found) == 5
    assert (found[0], found[-1], found[4]) == (rows[0], rows[4], rows[4])
    assert list(found[1:4:2]) == rows[1:4:2]
    assert list(found[::-1]) == rows[::-1]
    assert rows[3] in found
    with pytest.raises(IndexError):
        found[5]


def test_competing_flows_are_the_other_flows_into_the_same_cluster(tmp_path: Path) -> None:
    """Enabled flows that commit on the target, under its own name or another alias of it."""
    task = FlowTask(configuration(tmp_path, "A->B", "C->B", "B->A", "D->E"), "A->B")
    assert [competing.name for competing in task.resolve()[1]] == ["C->B"]
    lines = task.configuration.path
    text = Path(lines).read_text().replace("e:9092", "b:9092").replace("C->B.enabled = true", "")
    Path(lines).write_text(text)
    task = FlowTask(type(task.configuration).read(lines), "A->B")
    assert [competing.name for competing in task.resolve()[1]] == ["D->E"]


def test_flow_that_only_plans_is_no_competing_flow(tmp_path: Path) -> None:
    """A flow whose syncing is turned off writes nothing, so nothing can collide with it."""
    settings = configuration(
        tmp_path, "A->B", "C->B", **{"C->B_sync_group_offsets_enabled": "false"}
    )
    assert FlowTask(settings, "A->B").resolve()[1] == ()


def test_task_travels_without_what_its_references_stand_for(tmp_path: Path) -> None:
    """The value of a `${...}` is in no pickle that goes to Spark; a worker finds it again."""
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("id = hunter2\n")
    settings = configuration(tmp_path, "A->B", client_id=f"${{file:{secrets}:id}}")
    task = FlowTask(settings, "A->B", Narrowing(groups="billing"))
    sent = pickle.dumps(task)
    assert b"hunter2" not in sent
    flow, _ = pickle.loads(sent).resolve()
    assert flow.source.client["client.id"] == "hunter2"
    assert flow.group_filter.should_replicate_group("billing")
    assert not flow.group_filter.should_replicate_group("other")


def test_unknown_flow_is_bad_usage(tmp_path: Path) -> None:
    """A flow that the configuration does not have cannot be run."""
    with pytest.raises(UsageError):
        FlowTask(configuration(tmp_path, "A->B"), "X->Y").resolve()
