"""`tsoffset topics`: what is printed of what replicators have made."""

import json
import re
from collections.abc import Mapping
from typing import Any
from unittest.mock import ANY

import pytest

from tests.configured import properties_file
from tests.invoking import in_memory, invoke
from tests.producing import numbered
from tests.replicators.test_discovery import with_topics
from tests.waiting import wait_until
from tsoffset.model import Failed, FailureKind
from tsoffset.testing.memory_cluster import Verb


def test_the_command_prints_two_tables_and_exits_with_0(tmp_path):
    """One of the upstream clusters, and one of the topics that a replicator created."""
    estate = with_topics(A=["orders"], B=["A.orders", "A.heartbeats"])
    shown = in_memory(estate, tmp_path, "topics")
    assert shown.exit_code == 0, shown.output
    assert [line.split()[:3] for line in shown.stdout.splitlines() if line] == [
        ["cluster", "A"],
        ["no", "replicated", "topic"],
        ["cluster", "B"],
        ["UPSTREAM", "HOPS", "NEWEST"],
        ["A", "1", ANY],
        ["TOPIC", "KIND", "FROM"],
        ["A.orders", "remote", "A"],
        ["A.heartbeats", "heartbeats", "A"],
    ]


@pytest.mark.parametrize(
    ("target", "unreachable", "told"),
    [
        (["A-orders", "heartbeats"], "", ["B"]),
        (["A.orders"], "", []),
        (["A-orders"], "A", []),
        (["A-orders"], "B", []),
    ],
)
def test_a_target_without_a_remote_topic_may_have_another_policy(
    tmp_path, target, unreachable, told
):
    """The names do not tell; so it is a hint. Nothing is said of what could not be listed."""
    estate = with_topics(A=["orders", "heartbeats"], B=target)
    if unreachable:
        estate[unreachable].unreachable = True
    said = " ".join(in_memory(estate, tmp_path, "topics").stderr.split())
    assert re.findall("Cluster (.) has no remote topic", said) == told
    assert ("check `replication.policy.class`" in said) is bool(told)


@pytest.mark.parametrize(("unreachable", "status"), [(False, 1), (True, 3)])
def test_the_exit_status_tells_a_topic_from_a_cluster(tmp_path, unreachable, status):
    """1 for a topic that cannot be read, 3 for a cluster that cannot be reached."""
    estate = with_topics(A=["orders"], B=["A.heartbeats"])
    estate["A"].unreachable = unreachable
    estate["B"].fail(Failed(FailureKind.AUTHORIZATION, "read: no"), verb=Verb.READ_RAW)
    assert in_memory(estate, tmp_path, "topics").exit_code == status


@pytest.mark.integration
@pytest.mark.thorough
def test_what_mirror_maker_2_has_made(
    source_broker, target_broker, source, target, mirror, unique, tmp_path
):
    """Remote topics, its own topics, and heartbeats that go on: as table, JSON and CSV."""
    topic = unique("orders")
    source.create_topic(topic, partitions=2)
    source.produce(topic, numbered(10))
    running = mirror(
        topic,
        overrides={
            "emit.heartbeats.enabled": "true",
            "emit.heartbeats.interval.seconds": "1",
            # They are emitted on the source by a Connect worker of its own.
            **{
                f"A.{kind}.storage.replication.factor": "1"
                for kind in ("offset", "status", "config")
            },
            "A.offset.storage.partitions": "1",
            "A.status.storage.partitions": "1",
        },
    )
    file = str(properties_file(tmp_path, source_broker.bootstrap, target_broker.bootstrap))

    def rows() -> list[Mapping[str, Any]]:
        shown = invoke("topics", "-c", file, "--format", "json")
        assert shown.exit_code == 0, shown.output
        return [json.loads(line) for line in shown.stdout.splitlines()]

    def upstream() -> Mapping[str, Any]:
        found = [row for row in rows() if row["kind"] == "upstream" and row["cluster"] == "B"]
        return found[0] if found else {}

    wait_until(lambda: bool(upstream().get("heartbeat_timestamp_ms")), "a heartbeat has come")
    first = upstream()
    wait_until(
        lambda: upstream()["heartbeat_timestamp_ms"] > first["heartbeat_timestamp_ms"],
        "another one has come",
    )
    assert (first["source"], first["hops"], first["topic"]) == ("A", 1, "A.heartbeats")
    assert first["replication_lag_ms"] >= 0
    wait_until(lambda: f"A.{topic}" in target.admin.list_topics(), "the topic is mirrored")
    (remote,) = [row for row in rows() if row["topic"] == f"A.{topic}"]
    assert (remote["kind"], remote["original_topic"], remote["hops"]) == ("remote", topic, 1)
    assert remote["partitions"] == 2
    running.stop()
    for form, mark in (("table", "UPSTREAM"), ("csv", "cluster,kind,topic")):
        shown = invoke("topics", "-c", file, "--format", form)
        assert shown.exit_code == 0
        assert mark in shown.stdout
