"""`tsoffset lists`: a flow's lists changed beside the configuration file, and what heeds that."""

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.configured import nowhere, properties_file
from tests.invoking import invoke
from tests.memory_flows import Estate, mirrored_estate
from tests.serving import ServedFlows
from tsoffset.commands.cycles import flow_cycles
from tsoffset.config.selection import Selector
from tsoffset.errors import CycleFailed
from tsoffset.flow.settings import ServerSettings
from tsoffset.model import Failed, FailureKind
from tsoffset.stores import Folder
from tsoffset.terminal.notices import Notices
from tsoffset.testing.memory_cluster import Verb


@pytest.fixture
def file(tmp_path) -> Path:
    state = f"state.dir = {tmp_path / 'state'}"
    silent = f"listeners = http://{nowhere()}"
    return properties_file(tmp_path, "a:1", "b:1", state, silent, "A->B.topics = orders, clicks")


def change(file: Path, *words: str, status: int = 0, estate: Estate | None = None) -> str:
    result = invoke("lists", "-c", str(file), *words, connect=(estate or Estate()).connect)
    assert result.exit_code == status, result.output
    return result.output


def rows(file: Path) -> dict[str, dict[str, Any]]:
    result = invoke("lists", "-c", str(file), "--format", "json")
    return {row["list"]: row for row in map(json.loads, result.stdout.splitlines())}


def test_entries_are_added_and_taken_out(file):
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


def test_an_added_entry_that_matches_nothing_is_named_with_similar_names(file):
    """A mistyped exclusion excludes nothing. It is saved: the group may be created later, and a
    source that does not list all of its groups cannot tell."""
    estate = mirrored_estate(1, billing=1)
    words = ("--groups-exclude-add", "biling", "--topics-add", "order.*", "--groups-add", "bill.*")
    said = " ".join(change(file, *words, estate=estate).split())
    assert said.count(" matches `") == 1
    assert "No group listed by A matches `biling`. Did you mean `billing`?" in said
    assert "remove it with --groups-exclude-remove" in said
    assert rows(file)["groups.exclude"]["added"] == "biling"
    failed = Failed(FailureKind.TIMEOUT, "list groups of broker 0: late")
    estate["A"].fail(failed, verb=Verb.GROUPS, broker=0)
    assert " matches `" not in change(file, "--groups-add", "sarch", estate=estate)
    estate["A"].unreachable = True
    assert " matches `" not in change(file, "--topics-add", "odrers", estate=estate)


def test_a_change_is_undone_by_its_opposite_and_all_of_them_by_reset(file):
    """Nothing is left of what was added and then removed."""
    change(file, "--topics-add", "audit")
    change(file, "--topics-remove", "audit")
    shown = rows(file)["topics"]
    assert (shown["in_effect"], shown["added"], shown["removed"]) == ("orders,clicks", "", "")
    change(file, "--topics-add", "audit", "--groups-remove", ".*")
    change(file, "--reset")
    assert {row["in_effect"] == row["configured"] for row in rows(file).values()} == {True}


def test_a_list_that_a_change_emptied_is_said_at_once(file):
    """The line of the file has entries, so the warning names who removed them; it goes with the
    change."""
    told = " ".join(change(file, "--topics-remove", "clicks", "--topics-remove", "orders").split())
    assert "`tsoffset lists` removed its entries" in told
    assert "flow A->B syncs nothing" in told
    assert "`tsoffset lists` removed its entries" in change(file)
    change(file, "--reset")
    assert "syncs nothing" not in change(file)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--topics-add", "["), "--topics-add ["),
        (("--topics-add", "a,b"), "without a comma"),
        (("--flow", "B->A"), "there is no flow B->A"),
        (("--topics-remove", "cliks"), "no entry `cliks`. Did you mean `clicks`?"),
        (
            ("--topics-remove", "clicks", "--topics-add", " clicks"),
            "--topics-add and --topics-remove clicks: choose one of them",
        ),
        (("--groups-remove", "nosuch"), "`groups` of flow A->B has no entry `nosuch`."),
    ],
)
def test_what_cannot_be_changed_is_said(file, words, told):
    """Bad usage, with the sentence that tells, and nothing is changed."""
    assert told in change(file, *words, status=2)
    assert rows(file)["topics"]["added"] == ""


def test_without_a_place_there_are_no_changes(tmp_path):
    """`state.dir` is where they are kept; without it the lists are shown, and that is all."""
    bare = properties_file(tmp_path, "a:1", "b:1")
    assert "state.dir" in change(bare, "--topics-add", "x", status=2)
    assert rows(bare)["topics"]["in_effect"] == ".*"


@pytest.mark.parametrize("content", ["{}", "", "1", "[" * 100_000])
def test_a_damaged_file_is_not_replaced(file, tmp_path, content):
    """What it held would be lost: showing the lists warns, changing them is refused. However deeply
    it is nested: that ended all flows of a daemon, at each start."""
    change(file, "--topics-add", "audit")
    (kept,) = (tmp_path / "state").iterdir()
    kept.write_text(content)
    assert "it is damaged" in change(file)
    assert "remove the file" in change(file, "--topics-add", "x", status=2)
    assert kept.read_text() == content
    # They may exclude a group, so nothing commits.
    selection = Selector(file).select()
    (flow,) = selection.flows
    with (
        flow_cycles(selection, Notices(), only_plan=True) as cycles_of,
        pytest.raises(CycleFailed, match=r"it is damaged.*; remove the file.*nothing is committed"),
    ):
        cycles_of(flow)(commit=True)


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EIO, "Input/output error"), PermissionError(errno.EACCES, "Permission denied")],
    ids=["unreachable", "not-allowed"],
)
def test_a_file_that_cannot_be_read_may_exclude_a_group(file, monkeypatch, error):
    """Another user's command may have written it: what it says is unknown, so nothing commits."""
    change(file, "--groups-exclude-add", "secret")

    def read(_store: Folder, _name: str) -> bytes:
        raise error

    monkeypatch.setattr(Folder, "read", read)
    selection = Selector(file).select()
    told = rf"{error.strerror}; check that this user can reach and read it \(nothing is committed"
    with pytest.raises(CycleFailed, match=told):
        selection.require_known_lists(selection.flows[0])


@contextmanager
def running(*told: str) -> Iterator[str]:
    """A daemon that has taken these changes up; its address as a line of the file."""
    daemon = ServedFlows(ServerSettings(("http://127.0.0.1:0",)))
    daemon.board.update("A->B", lists=told)
    with daemon.serve() as (address,):
        yield f"listeners = {address}"


def test_a_running_daemon_is_asked_whether_it_took_the_change_up(tmp_path, monkeypatch):
    """Exit 0 once it has; 1, with what to look at, where it goes on without; and where none
    answers that is said."""
    monkeypatch.setattr("tsoffset.config.overrides_files._SECONDS", 0.05)
    state = f"state.dir = {tmp_path / 'state'}"
    with running("topics with audit") as address:
        file = properties_file(tmp_path, "a:1", "b:1", state, address)
        assert "saved. The `tsoffset run` on here applies the change in its next cycle" in change(
            file, "--topics-add", "audit"
        )
        assert "has not applied the change" in change(file, "--topics-add", "more", status=1)
    assert "none answers at http://127.0.0.1" in change(file, "--topics-remove", "more")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_what_root_changes_the_daemon_of_another_user_can_read(tmp_path):
    """New files and folders belong to the folder's owner. No other user may read them, unless a
    group may write in the folder."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 4321, 4322)
    state = f"state.dir = {home / 'state'}"
    file = properties_file(tmp_path, "a:1", "b:1", state, "listeners =")
    change(file, "--topics-add", "audit")
    (kept,) = (home / "state").iterdir()
    for path in (home / "state", kept):
        assert (path.stat().st_uid, path.stat().st_gid) == (4321, 4322)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    (home / "state").chmod(0o2770)
    change(file, "--topics-add", "more")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o660
