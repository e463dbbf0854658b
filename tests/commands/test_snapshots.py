"""`snapshot`, `restore` and `sync --allow-rewind` on clusters in memory: what is kept, what comes
back, and what never goes back."""

import errno
import json
import os
import pty
import re
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.configured import nowhere, properties_file
from tests.invoking import in_memory, invoke, logging_kept
from tests.memory_flows import Estate, RaisingGroups, flow, messages, mirrored_estate
from tsoffset.commands.options import command, confirm
from tsoffset.commands.snapshots.file import Snapshot, take
from tsoffset.commands.snapshots.run import rewind, write_snapshot
from tsoffset.config.loading import Configuration
from tsoffset.config.selection import Selection
from tsoffset.daemon.pauses import Pauses
from tsoffset.errors import SnapshotFailed, UsageError
from tsoffset.flow.narrowing import Narrowing
from tsoffset.flow.settings import Settings
from tsoffset.group_sync.open_flow import OpenFlow
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    GroupType,
    OutcomeKind,
    Reason,
    Row,
    TopicPartition,
)
from tsoffset.terminal.notices import Notices
from tsoffset.testing.memory_cluster import Verb

COPY = TopicPartition("A.orders", 0)


@pytest.fixture
def estate() -> Estate:
    """Two groups on B with commits there, one of them with metadata, and one without any."""
    estate = mirrored_estate(100)
    estate.commit("billing", "A.orders", 50, on="B", metadata='invoice "7"\nü')
    estate.commit("billing", "own", 3, on="B", partition=2)
    estate.commit("shipping", "A.orders", 70, on="B")
    estate["B"].create_topic("own", 3)
    estate["B"].group("idle")
    return estate


def snapshot(estate: Estate, tmp_path: Path, groups: str | None = None) -> Path:
    narrowed = Narrowing(groups).apply(flow())
    _, path = write_snapshot(narrowed, estate["B"], groups, tmp_path / "b.snapshot")
    return path


@pytest.fixture
def path(estate: Estate, tmp_path: Path) -> Path:
    """A snapshot of what B holds at first."""
    return snapshot(estate, tmp_path)


def restore(
    estate: Estate, path: Path, *words: str, lines: Sequence[str] = ()
) -> tuple[int, dict[tuple[str, str], tuple[str, str | None, int | None]], str]:
    """The exit status; by group and topic outcome, reason and the offset restored; and what is said
    beside them."""
    given = ("restore", str(path), *words, "--format", "json")
    result = in_memory(estate, path.parent, *given, lines=lines)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    found = {
        (row["group"], row["topic"]): (row["outcome"], row["reason"], row["restored_offset"])
        for row in rows
    }
    return result.exit_code, found, " ".join(result.stderr.split())


# --- the file -----------------------------------------------------------------------------


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
    path = tmp_path / "deep" / "at-once.snapshot"
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


# --- restoring ----------------------------------------------------------------------------


def test_what_was_there_comes_back_also_backwards(estate, path):
    """Offset and metadata, forwards and backwards; a dry run says so and does nothing; what is as
    it was is left alone; what had no commit then is named, and stays. A group that moves forward
    may skip records, and is named."""
    estate.commit("billing", "A.orders", 90, on="B", metadata="later")
    estate.commit("shipping", "A.orders", 20, on="B")
    estate.commit("idle", "A.orders", 5, on="B")
    for option, word in (("--dry-run", "would_commit"), ("--yes", "committed")):
        assert estate["B"].commits == []
        status, rows, said = restore(estate, path, option)
        assert status == 0
        assert "moves shipping forward in 1 partition, by 50 offsets in all" in said
        assert rows == {
            ("billing", "A.orders"): (word, None, 50),
            ("billing", "own"): ("unchanged", None, None),
            ("idle", "A.orders"): ("skipped", "NO_COMMIT_THEN", None),
            ("shipping", "A.orders"): (word, None, 70),
        }
    assert estate.standing("billing", "A.orders") == CommittedOffset(50, 'invoice "7"\nü')
    assert estate.standing("shipping", "A.orders") == CommittedOffset(70)
    assert estate.standing("idle", "A.orders") == CommittedOffset(5)


def test_share_groups_come_back_as_what_they_are(estate, tmp_path):
    """The file says which groups are share groups: one that was deleted is made again as one."""
    estate.commit("shared", "A.orders", 60, on="B", type=GroupType.SHARE)
    path = snapshot(estate, tmp_path)
    _, *lines = map(json.loads, path.read_text().splitlines())
    assert [one["group"] for one in lines if one.get("share_group")] == ["shared"]
    there = ("shared", "A.orders")
    assert restore(estate, path, "--yes")[1][there] == ("unchanged", None, None)
    estate.commit("shared", "A.orders", 80, on="B", type=GroupType.SHARE)
    assert restore(estate, path, "--yes")[1][there] == ("committed", None, 60)
    estate["B"].delete_group("shared")
    assert restore(estate, path, "--yes")[1][there] == ("committed", None, 60)
    assert estate["B"].group("shared").type is GroupType.SHARE
    assert estate.standing("shared", "A.orders") == CommittedOffset(60)


def test_only_what_is_wanted_is_restored(estate, tmp_path):
    """`--groups` and `--topics` narrow it, and so does what the snapshot was narrowed to: groups
    that it did not look at are no news."""
    path = snapshot(estate, tmp_path, groups="billing|idle")
    for group in ("billing", "shipping", "idle"):
        estate.commit(group, "A.orders", 90, on="B")
    estate.commit("billing", "own", 9, on="B", partition=2)
    _, rows, _ = restore(estate, path, "--dry-run")
    assert {group for group, _ in rows} == {"billing", "idle"}
    _, rows, _ = restore(estate, path, "--groups", "bil.*", "--topics", r"A\..*", "--yes")
    assert rows == {("billing", "A.orders"): ("committed", None, 50)}


def test_a_filter_that_was_changed_since_keeps_nothing_back(estate, path):
    """What was kept is restored, whatever the flow takes by now."""
    estate.commit("billing", "A.orders", 90, on="B")
    _, rows, _ = restore(estate, path, "--yes", lines=["groups = shipping"])
    assert rows["billing", "A.orders"] == ("committed", None, 50)


def test_a_restore_commits_only_what_was_confirmed(estate, tmp_path, monkeypatch):
    """Before the first answer a group reads on: the operator is asked again. Before the third one
    the topic is recreated, and the offsets of the snapshot would skip records in it."""
    path = snapshot(estate, tmp_path, groups="billing|shipping")
    asked = []

    def reads_on() -> None:
        estate.commit("shipping", "A.orders", 95, on="B")

    def made_anew() -> None:
        estate["B"].delete_topic("A.orders")
        estate["B"].create_topic("A.orders")

    meanwhile = iter((reads_on, lambda: None, made_anew))

    def answer(question: str, *, yes: bool) -> bool:
        asked.append(question)
        next(meanwhile)()
        return not yes

    monkeypatch.setattr("tsoffset.commands.snapshots.run.confirm", answer)
    for status, reason, offset, questions in ((0, None, 70, 2), (1, "TOPIC_MADE_ANEW", None, 3)):
        for group in ("billing", "shipping"):
            estate.commit(group, "A.orders", 90, on="B")
        found, rows, _ = restore(estate, path, "--topics", r"A\..*")
        assert (found, rows["shipping", "A.orders"][1], len(asked)) == (status, reason, questions)
        present = estate.standing("shipping", "A.orders")
        assert (present and present.offset) == offset


def test_a_filter_that_raises_ends_no_restore(estate, path):
    """It only chooses which later offsets are listed; a restore is needed when all else fails."""
    estate.commit("billing", "A.orders", 90, on="B")
    lines = ["group.filter.class = tests.memory_flows:RaisingGroups"]
    status, rows, said = restore(estate, path, "--yes", lines=lines)
    assert (status, rows["billing", "A.orders"]) == (0, ("committed", None, 50))
    assert "the group filter raised KeyError" in said


def test_groups_with_members_are_left_alone(estate, path):
    """Before the question and at the commit; that is exit 1, for it is not as it was then."""
    for group in ("billing", "shipping"):
        estate.commit(group, "A.orders", 90, on="B")
    estate["B"].group("billing").state = "Stable"
    refused = Failed(FailureKind.COORDINATOR, "it has members now", group_active=True)
    estate["B"].fail(refused, verb=Verb.COMMIT, group="shipping")
    status, rows, _ = restore(estate, path, "--topics", r"A\..*", "--yes")
    assert status == 1
    assert {reason for _, reason, _ in rows.values()} == {"GROUP_ACTIVE"}
    assert estate["B"].commits == []


def test_offsets_of_other_records_are_not_restored(estate, path):
    """A topic that was deleted, recreated or truncated since has other records at these offsets,
    or none: nothing is set there, where a group could skip or be reset. A topic that could not be
    described may be the same one, and is not called missing."""
    estate.commit("billing", "own", 1, on="B", partition=2)
    estate["B"].fail(Failed(FailureKind.TIMEOUT, "no answer"), verb=Verb.TOPICS, times=1)
    status, rows, _ = restore(estate, path, "--topics", "own", "--yes")
    assert (status, rows["billing", "own"]) == (1, ("failed", "TIMEOUT", None))
    estate["B"].delete_topic("own")
    estate["B"].delete_topic("A.orders")
    estate["B"].create_topic("A.orders")
    status, rows, _ = restore(estate, path, "--yes")
    assert (status, rows["billing", "own"]) == (1, ("skipped", "TOPIC_MISSING", None))
    assert rows["billing", "A.orders"] == ("skipped", "TOPIC_MADE_ANEW", None)
    assert estate["B"].commits == []


def test_a_commit_lies_within_its_log(estate, tmp_path):
    """Below the log's start the group gets that: else consumers that begin at `latest` would skip
    all that is left. That skips nothing. Past its end nothing is set."""
    estate.commit("shipping", "A.orders", 101, on="B")
    path = snapshot(estate, tmp_path)
    for group, offset in (("billing", 40), ("shipping", 90)):
        estate.commit(group, "A.orders", offset, on="B")
    estate["B"].log("A.orders").delete_records(60)
    status, rows, said = restore(estate, path, "--topics", r"A\..*", "--yes")
    assert (status, "forward" in said) == (1, False)
    assert rows["billing", "A.orders"] == ("committed", None, 60)
    assert rows["shipping", "A.orders"] == ("skipped", "PAST_LOG_END", None)


def test_a_snapshot_of_another_cluster_is_refused(estate, tmp_path):
    """By the cluster's id, whatever its alias."""
    _, path = write_snapshot(flow(), estate["A"], None, tmp_path / "a.snapshot")
    status, _, said = restore(estate, path, "--yes")
    assert (status, "use the snapshot of" in said) == (2, True)


def test_that_a_running_daemon_would_undo_it_is_said(estate, path, tmp_path):
    """Unless the flow is paused: its next cycle moves the groups forward again."""
    paused = Pauses(str(tmp_path / "state"))
    for is_paused, offset in ((False, 90), (True, 91)):
        paused.set("A->B", is_paused)
        estate.commit("billing", "A.orders", offset, on="B")
        lines = [f"state.dir = {tmp_path / 'state'}"]
        status, _, said = restore(estate, path, "--yes", lines=lines)
        assert (status, "flow A->B is not paused" in said) == (0, not is_paused)


def test_a_flow_that_only_plans_restores_nothing(estate, path):
    """`sync.group.offsets.enabled = false` holds for the operator's own hand, too. The status and a
    warning say that nothing was restored."""
    estate.commit("billing", "A.orders", 90, on="B")
    lines = ["sync.group.offsets.enabled = false"]
    status, rows, said = restore(estate, path, "--yes", lines=lines)
    assert rows["billing", "A.orders"] == ("would_commit", None, 50)
    assert (status, "so this is a plan and nothing is committed" in said) == (1, True)
    assert restore(estate, path, "--dry-run", lines=lines)[0] == 0
    assert estate["B"].commits == []


# --- asking -------------------------------------------------------------------------------


@pytest.mark.parametrize(("typed", "answer"), [("y\n", True), ("\n", False), ("n\n", False)])
def test_a_person_is_asked(typed, answer, monkeypatch):
    """At a terminal, where nothing but yes is yes."""
    master, slave = pty.openpty()
    with os.fdopen(slave) as terminal, os.fdopen(master, "w") as keyboard:
        keyboard.write(typed)
        keyboard.flush()
        monkeypatch.setattr("sys.stdin", terminal)
        assert confirm("Really?", yes=False) is answer


@pytest.mark.parametrize(
    ("commits", "told"),
    [
        (False, "interrupted"),
        (
            True,
            "interrupted; offsets that were committed by then stay committed: run the command again"
            " to finish",
        ),
    ],
)
def test_an_answer_that_never_comes_is_an_interruption(commits, told, monkeypatch, capsys):
    """Ctrl-C and Ctrl-D at the question end the command as Ctrl-C does at any other time. A command
    that commits may have done a part of it."""
    made = command("", "", selects=False, commits=commits)
    asking = made(lambda *_: int(confirm("Really?", yes=False)))
    master, slave = pty.openpty()
    with os.fdopen(slave) as terminal, os.fdopen(master, "w") as keyboard, logging_kept():
        keyboard.write("\x04")
        keyboard.flush()
        monkeypatch.setattr("sys.stdin", terminal)
        with pytest.raises(SystemExit, match="130"):
            asking.main([])
    assert capsys.readouterr().err.endswith(f"{told}\n")


def test_nobody_to_ask_is_bad_usage(tmp_path):
    """Without a terminal `--yes` is needed, and told before anything is done; it and a snapshot are
    for `--allow-rewind` alone."""
    file = str(properties_file(tmp_path, nowhere(), nowhere()))
    for words, told in (
        (("--allow-rewind",), "no terminal to ask for confirmation"),
        (("--yes",), "need --allow-rewind"),
        (("--snapshot", file), "need --allow-rewind"),
        (("--allow-rewind", "--yes", "--snapshot", file), "not a complete snapshot"),
    ):
        result = invoke("sync", "-c", file, *words)
        assert (result.exit_code, told in result.stderr) == (2, True), result.stderr


# --- going back to translations -----------------------------------------------------------


@pytest.fixture
def ahead(estate: Estate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Estate:
    """Two groups that are further on B than on A."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tsoffset.kafka.cluster.KafkaCluster", estate.connect)
    estate.commit("billing", "orders", 30)
    estate.commit("shipping", "orders", 40)
    return estate


def rewound(
    estate: Estate, rows: list[Row] | None = None, before: Path | None = None
) -> dict[str | None, tuple[OutcomeKind, object]]:
    settings = Settings((flow(),), ("A", "B"))
    selection = Selection(Configuration("f", ""), settings, settings.flows, Narrowing())
    known = None if before is None else (Snapshot.read(before), before)
    rows = estate.sync() if rows is None else rows
    found = rewind(selection, flow(), rows, known, Notices(), yes=True)
    return {row.group: (row.outcome, row.reason) for row in found}


def test_groups_that_are_ahead_go_back_after_a_snapshot(ahead, tmp_path):
    """Each to its translation, with the source's metadata; the snapshot that was written brings
    them back to where they were."""
    committed = (OutcomeKind.COMMITTED, None)
    assert rewound(ahead) == {"billing": committed, "shipping": committed}
    assert ahead.standing("billing", "A.orders") == CommittedOffset(30)
    (path,) = tmp_path.glob("B-*.snapshot")
    restore(ahead, path, "--yes")
    assert ahead.standing("billing", "A.orders") == CommittedOffset(50, 'invoice "7"\nü')
    assert ahead.standing("shipping", "A.orders") == CommittedOffset(70)


def test_a_group_goes_back_only_from_what_was_confirmed(ahead, tmp_path):
    """One that moved since a person saw it, that the snapshot does not hold as it is, or that has
    members, stays."""
    rows = ahead.sync()
    path = snapshot(ahead, tmp_path)
    ahead.commit("billing", "A.orders", 60, on="B")
    assert rewound(ahead, rows) == {"shipping": (OutcomeKind.COMMITTED, None)}
    assert rewound(ahead, ahead.sync(), before=path) == {}
    assert ahead.standing("billing", "A.orders") == CommittedOffset(60)
    ahead["B"].group("billing").state = "Stable"
    active = {"billing": (OutcomeKind.SKIPPED, Reason.GROUP_ACTIVE)}
    assert rewound(ahead, ahead.sync()) == active
    assert ahead.standing("billing", "A.orders") == CommittedOffset(60)


def test_a_group_goes_back_from_an_open_transaction(ahead):
    """Its consumer there reads uncommitted records, past the last stable offset."""
    ahead["B"].log("A.orders").begin().append(messages("orders", range(100, 110)))
    ahead.commit("billing", "A.orders", 105, on="B")
    assert rewound(ahead)["billing"] == (OutcomeKind.COMMITTED, None)
    assert ahead.standing("billing", "A.orders") == CommittedOffset(30)


@pytest.mark.parametrize("alias", ["A", "B"])
def test_no_group_goes_back_in_a_topic_made_anew(ahead, monkeypatch, alias):
    """After the translation: its offset lies in the new log, too, after records that the group has
    not read. Or before it: the offset that was read on the source is one of the old log."""
    translated = OpenFlow.translated

    def meanwhile(*given: Any) -> Any:
        found = translated(*given) if alias == "B" else []
        topic = {"A": "orders", "B": "A.orders"}[alias]
        ahead[alias].delete_topic(topic)
        ahead[alias].create_topic(topic)
        ahead[alias].log(topic).append(messages("new orders", range(100)))
        if alias == "A":
            ahead["B"].log("A.orders").append(messages("new orders", range(100)))
        return found or translated(*given)

    monkeypatch.setattr(OpenFlow, "translated", meanwhile)
    failed = (OutcomeKind.FAILED, FailureKind.NO_LEADER)
    assert rewound(ahead) == {"billing": failed, "shipping": failed}
    standing = ahead.standing("billing", "A.orders")
    assert (standing and standing.offset) == {"A": 50, "B": None}[alias]


def test_a_group_that_cannot_be_read_again_is_told(ahead, capsys):
    """A broker that does not list its groups any more, after a person has confirmed."""
    rows = ahead.sync()
    late = Failed(FailureKind.TIMEOUT, "list groups, broker 0: late")
    ahead["A"].fail(late, verb=Verb.GROUPS, broker=0)
    assert rewound(ahead, rows) == {}
    assert "A->B: 2 rows not rewound" in capsys.readouterr().err
    ahead["A"].heal()
    ahead["A"].fail(
        Failed(FailureKind.COORDINATOR, "loading"), verb=Verb.COMMITTED, group="billing"
    )
    assert list(rewound(ahead, rows)) == ["shipping"]
    assert "1 row not rewound, because their offsets on A could not be read again (loading)" in (
        capsys.readouterr().err
    )
    assert ahead.standing("billing", "A.orders").offset == 50


def test_no_group_goes_back_where_none_is_ahead(ahead, tmp_path):
    """Nor is a snapshot written."""
    for group in ("billing", "shipping"):
        ahead.commit(group, "orders", 95)
    assert rewound(ahead) == {}
    assert list(tmp_path.iterdir()) == []
