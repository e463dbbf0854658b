"""What a cycle is given, what it costs and what it returns."""

import pickle
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kafka.test_clients import A, connect
from tests.stored_clusters import configuration
from tsoffset.errors import UsageError
from tsoffset.flow.narrowing import Narrowing
from tsoffset.group_sync.flow_cycle import FlowTask, Spent
from tsoffset.kafka.clients import Traffic
from tsoffset.model import Side
from tsoffset.testing.memory_cluster import MemoryCluster


def test_competing_flows_are_the_other_flows_into_the_same_cluster(tmp_path):
    """Enabled flows that commit on the target, under its own name or another alias of it."""
    task = FlowTask(configuration(tmp_path, "A->B", "C->B", "B->A", "D->E"), "A->B")
    assert [competing.name for competing in task.resolve()[1]] == ["C->B"]
    lines = task.configuration.path
    text = Path(lines).read_text().replace("e:9092", "b:9092").replace("C->B.enabled = true", "")
    Path(lines).write_text(text)
    task = FlowTask(type(task.configuration).read(lines), "A->B")
    assert [competing.name for competing in task.resolve()[1]] == ["D->E"]


def test_flow_that_only_plans_is_no_competing_flow(tmp_path):
    """A flow whose syncing is turned off writes nothing, so nothing can collide with it."""
    settings = configuration(
        tmp_path, "A->B", "C->B", **{"C->B_sync_group_offsets_enabled": "false"}
    )
    assert FlowTask(settings, "A->B").resolve()[1] == ()


def test_task_travels_without_what_its_references_stand_for(tmp_path):
    """The value of a `${...}` is in no pickle that goes to Spark; a worker finds it again."""
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("id = hunter2\n")
    settings = configuration(tmp_path, "A->B", client_id=f"${{file:{secrets}:id}}")
    task = FlowTask(settings, "A->B", Narrowing(groups="billing"))
    sent = pickle.dumps(task)
    assert b"hunter2" not in sent
    flow, _, _ = pickle.loads(sent).resolve()
    assert flow.source.client["client.id"] == "hunter2"
    assert flow.group_filter.should_replicate_group("billing")
    assert not flow.group_filter.should_replicate_group("other")


def test_unknown_flow_is_bad_usage(tmp_path):
    with pytest.raises(UsageError):
        FlowTask(configuration(tmp_path, "A->B"), "X->Y").resolve()


class Busy(MemoryCluster):
    """Counts what it sends."""

    def __init__(self, alias: str) -> None:
        super().__init__(alias)
        self.requests = Counter(fetch=7)
        self.retries = 3
        self.throttle_seconds = 0.5


def test_what_a_client_sends_while_it_is_leased_is_counted():
    """Not what it had sent before, and also where the block fails; a client that does not count
    sends nothing."""
    spent = Spent()
    one = replace(A, alias="busy")
    with suppress(OSError), spent.lease(Side.SOURCE, Busy, one) as busy:
        busy.requests["fetch"] += 2
        busy.retries += 1
        busy.throttle_seconds += 1.5
        raise OSError("in the middle")
    with spent.lease(Side.TARGET, connect, A):
        pass
    assert spent.traffic == {Side.SOURCE: Traffic(2, 1, 1.5), Side.TARGET: Traffic()}
