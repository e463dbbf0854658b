"""`tsoffset failover` with a cluster away: what past cycles have left."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from tests.commands.failover.conftest import PAUSED, no_leader, silent_broker
from tests.memory_flows import RaisingGroups, RaisingTopics, after_each, flow
from tests.past_cycles import Past
from tests.waiting import TIMEOUT_SECONDS
from tsoffset.committed import CommittedColumns
from tsoffset.group_sync.cache import CachedTables
from tsoffset.group_sync.state import FlowCache, StateFile
from tsoffset.model import Failed, FailureKind, GroupType, OutcomeKind, Reason, TopicPartition
from tsoffset.terminal.next_step import next_step
from tsoffset.testing.memory_cluster import MemoryCluster, Verb


def test_with_the_source_error_history_tells_how_old_the_commits_are(failing_over, tmp_path):
    """Exit 3; each group resumes from what past cycles have set, of the time when they last saw it
    in place, unless somebody has set something else since; one that has nothing on the target is
    not ready. The flow is paused."""
    estate = failing_over.estate
    for group in ("moved", "lost"):
        estate.commit(group, "orders", 60)
    past = Past(tmp_path / "history")
    past.keep(*estate.sync())
    estate.commit("moved", "A.orders", 130, on="B")
    estate["B"].group("lost").offsets.clear()
    assert failing_over.run_without_source(past) == 3
    rows = failing_over.rows
    assert failing_over.verdicts == {
        "billing": ("unverified", None),
        "lost": ("not_ready", "NO_COMMIT"),
        "moved": ("unverified", None),
    }
    billing = rows["billing"]
    assert (billing["resumes_at"], billing["source_commits"]) == ("A.orders-0:100", "orders-0:60")
    assert 0 < billing["age_seconds"] <= 100
    assert (rows["moved"]["resumes_at"], rows["moved"]["age_seconds"]) == ("A.orders-0:130", None)
    assert "no past cycle has seen them" in rows["moved"]["message"]
    assert (failing_over.directory / PAUSED).exists()
    assert failing_over.cycles.ran == 0


def test_with_the_source_error_what_diverged_is_not_forgotten(failing_over, tmp_path):
    """The last cycle saw that the copy was recreated, so no group counts as ready there."""
    estate = failing_over.estate
    past = Past(tmp_path / "history")
    estate.sync()
    past.keep(
        *(
            replace(row, outcome=OutcomeKind.SKIPPED, reason=Reason.DIVERGED)
            for row in estate.sync()
        )
    )
    assert failing_over.run_without_source(past) == 3
    assert failing_over.verdicts == {"billing": ("not_ready", "DIVERGED")}


def test_with_the_source_error_a_group_that_went_back_is_not_sent_forward(failing_over, tmp_path):
    """It was to read records again, and its consumers on the target would skip these; not so once
    somebody has moved it there."""
    estate = failing_over.estate
    past, cache = Past(tmp_path / "history"), CachedTables()
    past.keep(*estate.sync(cache=cache))
    estate.commit("billing", "orders", 30)
    past.keep(*estate.sync(cache=cache))
    assert failing_over.run_without_source(past, after=200) == 3
    assert failing_over.verdicts == {"billing": ("not_ready", "SOURCE_REWOUND")}
    estate.commit("billing", "A.orders", 70, on="B")
    assert failing_over.run() == 3
    assert failing_over.verdicts == {"billing": ("unverified", None)}


def test_with_the_source_error_a_group_that_was_ahead_is_not_ready(failing_over, tmp_path):
    """Its consumers skip what they have not read on the target. A rewound group is one of these, if
    the last cycle ran without state. The next step needs no source: Kafka's own tool sets the
    translations of the last cycle."""
    past = Past(tmp_path / "history")
    failing_over.estate.commit("billing", "A.orders", 130, on="B")
    past.keep(*failing_over.estate.sync())
    assert failing_over.run_without_source(past) == 3
    assert failing_over.verdicts == {"billing": ("not_ready", "TARGET_AHEAD")}
    assert failing_over.run(form="table") == 3
    assert (
        "target: printf '%s\\n' A.orders,0,100 > reset.csv && kafka-consumer-groups.sh"
        " --bootstrap-server b:1 --group billing --reset-offsets --from-file reset.csv"
        " --execute\n"
    ) in failing_over.result.stdout


def test_with_the_source_error_a_group_that_was_reset_has_no_age(failing_over, tmp_path):
    """It resumes where it was reset to, and no longer where a cycle last had it in sync."""
    estate = failing_over.estate
    past = Past(tmp_path / "history")
    past.keep(*estate.sync())
    estate.commit("billing", "A.orders", 70, on="B")
    [row] = estate.plan()
    past.keep(replace(row, outcome=OutcomeKind.SKIPPED, reason=Reason.TARGET_REWOUND))
    assert failing_over.run_without_source(past, after=200) == 3
    assert failing_over.verdicts == {"billing": ("unverified", None)}
    [billing] = failing_over.rows.values()
    assert billing["resumes_at"] == "A.orders-0:70"
    assert (billing["source_commits"], billing["age_seconds"]) == ("", None)
    assert "whose age is not known" in billing["message"]
    assert (
        "in A.orders-0 it was behind its offset on A (TARGET_REWOUND), and reads"
        in billing["message"]
    )


def test_what_a_command_has_committed_since_the_last_recorded_cycle_is_known(
    failing_over, tmp_path
):
    """`sync` and `failover` write the state, and no history."""
    estate, past, cache = failing_over.estate, Past(tmp_path / "history"), FlowCache()
    past.keep(*estate.sync())
    estate.commit("billing", "orders", 70)
    estate.sync(cache=cache)
    StateFile(str(failing_over.directory), "A->B").save(cache)
    assert failing_over.run_without_source(past) == 3
    billing = failing_over.rows["billing"]
    assert (billing["resumes_at"], billing["source_commits"]) == ("A.orders-0:110", "orders-0:70")
    assert billing["age_seconds"] is None
    assert "skip" not in billing["message"]


@pytest.mark.parametrize("reason", [*Reason, *FailureKind, "NO_COMMIT"])
def test_no_next_step_needs_a_lost_source_at_once(reason):
    """Only `failover` works without it."""
    step = next_step("f", "A->B", "billing", reason, source_lost=True)
    assert step is None or (
        step.command.startswith("tsoffset failover ")
        or step.when == "Once the source can be reached again"
    )


def test_with_the_source_error_and_nothing_ever_synced_consumers_are_warned(failing_over):
    """There is no group to judge, and no offset to resume from."""
    assert failing_over.run_without_source() == 2
    said = " ".join(failing_over.result.stderr.split())
    assert "cluster B shows this user no committed offset" in said
    assert "starts at its consumers' auto.offset.reset, and `latest` skips unread records" in said


def test_without_history_the_state_tells_of_which_commits_they_are(failing_over):
    """Not how old they are. A group that cannot be read, has members there, or is past its last
    translation, is not ready; topics that the flow does not write are no matter of it. A share
    group is read by its start offsets. Offsets that no cycle has seen may be past what was read."""
    estate = failing_over.estate
    for group in ("ahead", "rewound"):
        estate.commit(group, "orders", 60)
    estate.commit("ahead", "A.orders", 130, on="B")
    estate.commit("foreign", "A.orders", 50, on="B")
    for group in ("sharing", "unset"):
        estate.commit(group, "orders", 50, type=GroupType.SHARE)
    for group in ("busy", "unread", "never"):
        estate.commit(group, "orders", 70)
    estate["B"].group("never").state = "Stable"
    cache = FlowCache()
    estate.sync(cache=cache)
    estate.commit("rewound", "orders", 50)
    estate.sync(cache=cache)
    StateFile(str(failing_over.directory), "A->B").save(cache)
    estate.commit("other", "own", 5, on="B")
    estate["B"].group("busy").state = "Stable"
    estate["B"].group("never").state = "Empty"
    estate["B"].group("unset").offsets.clear()
    refused = Failed(FailureKind.AUTHORIZATION, "no right to read it")
    estate["B"].fail(refused, verb=Verb.COMMITTED, group="unread")
    assert failing_over.run_without_source(None, "--no-pause") == 3
    rows = failing_over.rows
    assert failing_over.verdicts == {
        "ahead": ("not_ready", "TARGET_AHEAD"),
        "billing": ("unverified", None),
        "busy": ("not_ready", "GROUP_ACTIVE"),
        "foreign": ("unverified", None),
        "never": ("not_ready", "NO_COMMIT"),
        "rewound": ("not_ready", "SOURCE_REWOUND"),
        "sharing": ("unverified", None),
        "unread": ("not_ready", "AUTHORIZATION"),
        "unset": ("not_ready", "NO_COMMIT"),
    }
    assert rows["sharing"]["resumes_at"] == "A.orders-0:90"
    assert "share.auto.offset.reset" in rows["unset"]["message"]
    billing = rows["billing"]
    assert (billing["resumes_at"], billing["source_commits"]) == ("A.orders-0:100", "orders-0:60")
    assert billing["age_seconds"] is None
    assert "skip" not in billing["message"]
    assert "no past cycle has seen them: if they lie past what" in rows["foreign"]["message"]
    # A group whose offset was never translated is not in the state.
    missing = "groups that never had an offset there may be missing"
    assert missing in failing_over.result.stderr
    assert not (failing_over.directory / PAUSED).exists()


def test_with_the_source_error_a_state_that_cannot_be_read_is_told(failing_over):
    """Groups that have lost their offsets are not known without it."""
    failing_over.estate.sync()
    failing_over.directory.mkdir()
    (failing_over.directory / "A-%3EB.state").write_text("strange")
    assert failing_over.run_without_source(None, "--no-pause") == 3
    assert "not a state file" in failing_over.result.stderr


def test_with_the_source_error_an_offset_outside_its_log_is_none(failing_over):
    """Consumers there are reset, and `latest` skips records: the target has deleted records since,
    or has lost its log's end, or the topic. A share group is set to the log's start."""
    estate = failing_over.estate
    for group, offset in (("below", 20), ("past", 60), ("sharing", 20), ("gone", 60)):
        kind = GroupType.SHARE if group == "sharing" else GroupType.CLASSIC
        estate.commit(group, "orders", offset, type=kind)
    estate.sync()
    estate["B"].log("A.orders", 0).delete_records(70)
    estate.commit("past", "A.orders", 999, on="B")
    estate.commit("gone", "A.lost", 5, on="B")
    assert failing_over.run_without_source(None, "--no-pause") == 3
    rows = failing_over.rows
    no_commit = ("not_ready", "NO_COMMIT")
    assert failing_over.verdicts == {
        "below": no_commit,
        "billing": ("unverified", None),
        "gone": no_commit,
        "past": no_commit,
        "sharing": ("unverified", None),
    }
    assert (rows["below"]["partitions"], rows["below"]["resumes_at"]) == (1, "")
    assert "no usable committed offset on B in A.orders-0" in rows["below"]["message"]
    assert (rows["gone"]["partitions"], rows["gone"]["resumes_at"]) == (2, "A.orders-0:100")
    # Nothing is concluded from a log whose range cannot be read.
    estate["B"].fail(Failed(FailureKind.NO_LEADER, "no leader"), verb=Verb.LOG_RANGES)
    assert failing_over.run("--no-pause") == 3
    not_ready = [group for group, found in failing_over.verdicts.items() if found == no_commit]
    assert not_ready == ["gone"]


def test_with_the_source_error_an_offset_that_cannot_be_read_is_told(failing_over):
    """It is neither left out nor taken for none."""
    estate = failing_over.estate
    estate.sync()
    loading = Failed(FailureKind.COORDINATOR, "the coordinator is loading")
    place = TopicPartition("A.orders", 0)
    after_each(
        estate["B"],
        "committed",
        lambda _: CommittedColumns.of({"billing": {place: loading}}),
    )
    assert failing_over.run_without_source(None, "--no-pause") == 3
    assert failing_over.verdicts == {"billing": ("not_ready", "COORDINATOR")}


def test_with_the_source_error_topics_that_are_not_selected_do_not_count(failing_over, tmp_path):
    """History knows of all topics of the flow, the command may be for some. The clock of the
    daemon's machine is ahead here: no age is negative."""
    estate = failing_over.estate
    estate.write("clicks", 50)
    estate.mirror("clicks")
    estate.commit("billing", "clicks", 30)
    past = Past(tmp_path / "history")
    past.keep(*estate.sync())
    estate["B"].group("billing").offsets.pop(TopicPartition("A.clicks", 0))
    assert failing_over.run_without_source(past, "--topics", "orders", after=0) == 3
    assert failing_over.verdicts == {"billing": ("unverified", None)}
    assert failing_over.rows["billing"]["age_seconds"] == 0


class OnlyBilling(RaisingGroups):
    def __init__(self) -> None:
        super().__init__("billing")


def test_with_the_source_error_classes_that_raise_an_error_are_told(failing_over, tmp_path):
    """The other groups and topics have their verdicts."""
    estate = failing_over.estate
    estate.write("clicks", 50)
    estate.commit("billing", "clicks", 30)
    chosen = flow(group_filter=OnlyBilling(), topic_filter=RaisingTopics())
    past = Past(tmp_path / "history")
    past.keep(*estate.sync(chosen))
    estate.commit("search", "A.orders", 60, on="B")
    estate.commit("billing", "A.clicks", 30, on="B")
    lines = (
        f"group.filter.class = {__name__}:OnlyBilling",
        "topic.filter.class = tests.memory_flows:RaisingTopics",
    )
    assert failing_over.run_without_source(past, lines=lines) == 3
    assert failing_over.verdicts == {
        None: ("not_ready", "INTERNAL"),
        "search": ("not_ready", "INTERNAL"),
        "billing": ("unverified", None),
    }


@pytest.mark.parametrize(
    ("unlisted", "reason"), [(silent_broker, "TIMEOUT"), (no_leader, "NO_LEADER")]
)
def test_with_the_source_error_groups_that_are_not_listed_are_told(failing_over, unlisted, reason):
    """Groups that no cycle has known would be missing without a word."""
    estate = failing_over.estate
    estate.sync()
    unlisted(estate["B"])
    assert failing_over.run_without_source(None, "--no-pause") == 3
    assert failing_over.verdicts[None] == ("not_ready", reason)


def test_both_clusters_are_waited_for_at_once(failing_over, monkeypatch):
    """If both hang, the wait is that of one."""
    both, describe = threading.Barrier(2, timeout=TIMEOUT_SECONDS), MemoryCluster.describe

    def hang(cluster: MemoryCluster) -> Any:
        both.wait()
        return describe(cluster)

    monkeypatch.setattr(MemoryCluster, "describe", hang)
    assert failing_over.run("--dry-run") == 0


def test_without_the_target_there_is_nothing_to_resume_from(failing_over):
    """Exit 3, no verdicts, no pause; and so where a cluster goes away between two cycles."""
    failing_over.estate["B"].unreachable = True
    assert failing_over.run() == 3
    assert failing_over.verdicts == {}
    failing_over.estate["B"].unreachable = False
    failing_over.cycles.unreachable = True
    assert failing_over.run() == 3
    assert "run this command again" in failing_over.result.stderr
    assert not failing_over.directory.exists()
