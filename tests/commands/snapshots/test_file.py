"""`tsoffset snapshot`: what is kept."""

import errno
import json
import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.commands.snapshots.conftest import restore, snapshot
from tests.memory_flows import RaisingGroups, flow
from tsoffset.commands.snapshots.file import Snapshot, take
from tsoffset.errors import SnapshotFailed, UsageError
from tsoffset.model import Failed, FailureKind
from tsoffset.testing.memory_cluster import Verb


def test_a_snapshot_has_all_commits_and_can_be_read_by_a_person(estate, path):
    """A line of JSON that says what it is of, and a line a commit, on whatever topic, with the
    metadata; reading it gives the same again, and it is this user's alone."""
    head, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert head["tsoffset_snapshot"] == 1
    assert (head["flow"], head["cluster"], head["commits"]) == ("A->B", "B", 3)
    assert head["cluster_id"] == estate["B"].describe().cluster_id
    assert lines[0] == {
        "group": "billing",
        "topic": "A.orders",
        "partition": 0,
        "offset": 50,
        "metadata": 'invoice "7"\nü',
    }
    assert [(line["group"], line["topic"]) for line in lines[1:]] == [
        ("billing", "own"),
        ("shipping", "A.orders"),
    ]
    assert path.stat().st_mode & 0o077 == 0
    assert [commit.offset for commit in Snapshot.read(path).commits] == [50, 3, 70]


def test_a_snapshot_is_never_replaced(estate, path, tmp_path):
    """What was kept before something was moved would be gone."""
    before = path.read_bytes()
    with pytest.raises(UsageError, match="the file exists"):
        snapshot(estate, tmp_path)
    assert path.read_bytes() == before


def test_of_two_snapshots_at_once_none_is_lost(estate, tmp_path):
    """One gets the name, the other is told to take another one."""
    path = tmp_path / "at-once.snapshot"
    snapshots = [replace(take(flow(), estate["B"], None), taken_at=str(n)) for n in range(8)]

    def write(snapshot: Snapshot) -> bool:
        try:
            snapshot.write(path)
        except UsageError:
            return False
        return True

    with ThreadPoolExecutor(len(snapshots)) as pool:
        written = list(pool.map(write, snapshots))
    assert written.count(True) == 1
    assert Snapshot.read(path) == snapshots[written.index(True)]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_power_cut_loses_neither_a_snapshot_nor_its_name(estate, tmp_path, monkeypatch):
    """Its content is on the disk before it has its name, and then the folder that names it."""
    kept: list[tuple[bool, list[str]]] = []

    def fsync(number: int) -> None:
        there = [path.name for path in tmp_path.iterdir() if path.stat().st_size]
        kept.append((stat.S_ISDIR(os.fstat(number).st_mode), there))

    monkeypatch.setattr(os, "fsync", fsync)
    take(flow(), estate["B"], None).write(tmp_path / "a.snapshot")
    (of_file, half), (of_folder, whole) = kept
    assert (of_file, of_folder, whole) == (False, True, ["a.snapshot"])
    assert "a.snapshot" not in half


def test_a_snapshot_that_cannot_be_written_leaves_nothing(estate, tmp_path, monkeypatch):
    """Least of all a file of that name, which would keep the next one from being written."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    snapshot = take(flow(), estate["B"], None)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(SnapshotFailed, match="No space left"):
            snapshot.write(tmp_path / "a.snapshot")
    assert list(tmp_path.iterdir()) == []
    snapshot.write(tmp_path / "a.snapshot")


def test_half_a_snapshot_is_not_written(estate, tmp_path):
    """Where one group or topic cannot be read, or the user's filter raises for it, there is no
    file: what it lacks would look as if it had not been there."""
    with pytest.raises(SnapshotFailed, match=r"raised KeyError.*; no file was written"):
        take(flow(group_filter=RaisingGroups("billing")), estate["B"], None)
    refused = Failed(FailureKind.AUTHORIZATION, "no right to read it")
    for verb in (Verb.COMMITTED, Verb.TOPICS):
        estate["B"].fail(refused, verb=verb, times=1)
        with pytest.raises(SnapshotFailed, match="no file was written"):
            snapshot(estate, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda text: text.replace('"tsoffset_snapshot": 1', '"tsoffset_snapshot": 2'), "version"),
        (lambda text: text[: text.rindex("{")], "2 of its 3 committed offsets"),
        (lambda text: text[:-5], "not a complete snapshot"),
        (lambda text: text.replace('"offset"', '"start"'), "not a complete snapshot"),
        (lambda _: "", "not a complete snapshot"),
        (lambda _: "[]\n", "not a complete snapshot"),
    ],
)
def test_what_is_no_whole_snapshot_is_refused(spoil, told, estate, path):
    """Of another version, cut, changed, or something else: nothing is restored of it."""
    path.write_text(spoil(path.read_text()))
    status, _, said = restore(estate, path, "--yes")
    assert (status, told in said) == (2, True)
    assert estate["B"].commits == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("offset", value) for value in ("true", '"5"', "5.0", "NaN", "-1", "null", str(2**63))),
        ("offset", '1, "offset": 2'),
        ("partition", "-1"),
        ("partition", str(2**31)),
        *(("group", value) for value in ("null", '["billing"]', '"\\ud800"', f'"{"g" * 40_000}"')),
        ("topic", "{}"),
        ("metadata", "null"),
        ("commits", "3.0"),
        ("flow", "1"),
        ("groups", "[1]"),
        ("topic_ids", "[]"),
        ("topic_ids", '{"own": 1}'),
    ],
)
def test_a_value_that_no_cluster_has_is_no_snapshots(name, value, path):
    """Kafka would be sent `true` as offset 1, and half a character stops a command midway."""
    before = path.read_text()
    found = re.search(rf'"{name}": ("(?:[^"\\]|\\.)*"|{{.*?}}|[^,}}]+)', before)
    spoilt = before[: found.start(1)] + value + before[found.end(1) :]
    path.write_text(spoilt)
    assert spoilt != before
    with pytest.raises(UsageError, match="not a complete snapshot"):
        Snapshot.read(path)


def test_a_place_has_one_offset_in_a_snapshot(path):
    """With two offsets, it would be unknown which one was meant."""
    head, *commits = path.read_text().splitlines()
    twice = commits[-1].replace('"offset": ', '"offset": 1')
    path.write_text("\n".join([head.replace('"commits": 3', '"commits": 4'), *commits, twice]))
    with pytest.raises(UsageError, match=r"two committed offsets of group shipping in A\.orders-0"):
        Snapshot.read(path)
