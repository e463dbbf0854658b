"""`tsoffset lists`: a flow's lists changed beside the configuration file, and what heeds that."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.configured import properties_file
from tests.invoking import invoke
from tsoffset.daemon.selecting import Selector


@pytest.fixture
def file(tmp_path: Path) -> Path:
    state = f"state.dir = {tmp_path / 'state'}"
    return properties_file(tmp_path, "a:1", "b:1", state, "A->B.topics = orders, clicks")


def change(file: Path, *words: str, status: int = 0) -> str:
    result = invoke("lists", "-c", str(file), *words)
    assert result.exit_code == status, result.output
    return result.output


def rows(file: Path) -> dict[str, dict[str, Any]]:
    result = invoke("lists", "-c", str(file), "--format", "json")
    return {row["list"]: row for row in map(json.loads, result.stdout.splitlines())}


def test_entries_are_added_and_taken_out(file: Path) -> None:
    """What holds, what the file has, and what was changed stand side by side; all commands that
    read the file heed it."""
    change(file, "--topics-remove", "clicks", "--topics-add", "audit-.*")
    change(file, "--groups-exclude-add", "batch-.*")
    assert rows(file)["topics"] == {
        "flow": "A->B",
        "list": "topics",
        "in_effect": "orders,audit-.*",
        "configured": "orders,clicks",
        "added": "audit-.*",
        "removed": "clicks",
    }
    flow = Selector(file).select().flow("A->B")
    takes = flow.topic_filter.should_replicate_topic
    assert [takes(topic) for topic in ("orders", "clicks", "audit-eu")] == [True, False, True]
    assert not flow.group_filter.should_replicate_group("batch-1")
    assert flow.group_filter.should_replicate_group("billing")


def test_a_change_is_undone_by_its_opposite_and_all_of_them_by_reset(file: Path) -> None:
    """Nothing is left of what was added and then removed."""
    change(file, "--topics-add", "audit")
    change(file, "--topics-remove", "audit")
    assert rows(file)["topics"]["in_effect"] == "orders,clicks"
    change(file, "--topics-add", "audit", "--groups-remove", ".*")
    change(file, "--reset")
    assert {row["in_effect"] == row["configured"] for row in rows(file).values()} == {True}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--topics-add", "["), "--topics-add ["),
        (("--topics-add", "a,b"), "without a comma"),
        (("--flow", "B->A"), "there is no flow B->A"),
    ],
)
def test_what_cannot_be_changed_is_said(file: Path, words: tuple[str, ...], told: str) -> None:
    """Bad usage, with the sentence that tells, and nothing is changed."""
    assert told in change(file, *words, status=2)
    assert rows(file)["topics"]["added"] == ""


def test_without_a_place_there_are_no_changes(tmp_path: Path) -> None:
    """`state.dir` is where they are kept; without it the lists are shown, and that is all."""
    bare = properties_file(tmp_path, "a:1", "b:1")
    assert "state.dir" in change(bare, "--topics-add", "x", status=2)
    assert rows(bare)["topics"]["in_effect"] == ".*"


@pytest.mark.parametrize("content", ["{}", "", "1", "[" * 100_000])
def test_a_damaged_file_is_not_replaced(file: Path, tmp_path: Path, content: str) -> None:
    """What it held would be lost: showing the lists warns, changing them is refused. However deeply
    it is nested: that ended all flows of a daemon, at each start."""
    change(file, "--topics-add", "audit")
    (kept,) = (tmp_path / "state").iterdir()
    kept.write_text(content)
    assert "it is damaged" in change(file)
    assert "remove it" in change(file, "--topics-add", "x", status=2)
    assert kept.read_text() == content
