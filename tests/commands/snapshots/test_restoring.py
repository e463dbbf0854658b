"""`tsoffset restore`: what comes back, and what never goes back."""

import json

from tests.commands.snapshots.conftest import restore, snapshot
from tests.memory_flows import flow
from tsoffset.commands.snapshots.run import write_snapshot
from tsoffset.daemon.pauses import Pauses
from tsoffset.model import CommittedOffset, Failed, FailureKind, GroupType
from tsoffset.testing.memory_cluster import Verb


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
    """Unless the flow is paused: its next cycle moves the groups forward again. With a flow in the
    other direction it may see that they were reset, and skip them."""
    paused = Pauses(str(tmp_path / "state"))
    for is_paused, offset in ((False, 90), (True, 91)):
        paused.set("A->B", is_paused)
        estate.commit("billing", "A.orders", offset, on="B")
        lines = [f"state.dir = {tmp_path / 'state'}"]
        status, _, said = restore(estate, path, "--yes", lines=lines)
        assert (status, "flow A->B is not paused" in said) == (0, not is_paused)
        assert ("unless it skips them (TARGET_REWOUND)" in said) is not is_paused


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
