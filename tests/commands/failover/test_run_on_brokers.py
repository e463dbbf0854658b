"""`failover`, `snapshot`, `restore` and `sync --allow-rewind` as processes of their own, on real
brokers."""

import json
from typing import Any

import pytest

from tests.commands.test_cycles_on_brokers import MirroredTopic
from tests.configured import nowhere
from tests.invoking import run_process
from tests.scenarios.flows import member

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.thorough]


def run(*words: str) -> tuple[int, list[dict[str, Any]], str]:
    status, out, err = run_process(*words)
    return status, [json.loads(line) for line in out.splitlines() if line.startswith("{")], err


def test_a_group_moves_over_goes_back_and_is_restored(source, target, unique, tmp_path):
    """Not ready while it has consumers on the source, ready when they have left, and the flow is
    paused; what it reads on the target is kept in a snapshot, taken back, and restored, metadata
    and all; with the source gone the state tells of which commit it is."""
    mirrored = MirroredTopic(source, target, unique)
    topic, group = mirrored.topic, mirrored.group
    copy = (f"A.{topic}", 0)
    state = tmp_path / "state"
    file = mirrored.configuration(tmp_path, f"state.dir = {state}\n")
    json_rows = "--format", "json"
    with member(source, group, topic):
        status, rows, _ = run("failover", "-c", file, "--timeout", "1", *json_rows)
    assert (status, rows[0]["reason"]) == (1, "SOURCE_ACTIVE")
    assert not list(state.glob("*.paused"))
    source.commit_offsets(group, {(topic, 0): 70})
    status, rows, told = run("failover", "-c", file, *json_rows)
    assert (status, rows[0]["verdict"], rows[0]["resumes_at"]) == (0, "ready", f"A.{topic}-0:30")
    assert "is paused" in told
    assert list(state.glob("*.paused"))
    assert run("failover", "-c", file, "--resume")[0] == 0
    assert not list(state.glob("*.paused"))

    target.commit_offsets(group, {copy: (50, "read there")})
    path = str(tmp_path / "before.snapshot")
    assert run("snapshot", "-c", file, "-o", path)[0] == 0
    status, rows, _ = run(
        "sync", "-c", file, "--allow-rewind", "--snapshot", path, "--yes", *json_rows
    )
    assert [row["outcome"] for row in rows] == ["skipped", "committed"]
    assert target.committed_offsets(group)[copy] == (30, "")
    status, rows, _ = run("restore", "-c", file, path, "--yes", *json_rows)
    assert (status, rows[0]["outcome"]) == (0, "committed")
    assert target.committed_offsets(group)[copy] == (50, "read there")

    target.commit_offsets(group, {copy: 30})
    away = mirrored.configuration(tmp_path, f"state.dir = {state}\n", source=nowhere())
    status, rows, _ = run("failover", "-c", away, *json_rows)
    assert (status, rows[0]["verdict"]) == (3, "unverified")
    assert (rows[0]["resumes_at"], rows[0]["source_commits"]) == (
        f"A.{topic}-0:30",
        f"{topic}-0:70",
    )
