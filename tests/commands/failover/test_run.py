"""`tsoffset failover` on clusters in memory: when cycles end, and what is paused."""

from types import SimpleNamespace
from typing import NoReturn

import pytest

from tests.commands.failover.conftest import PAUSED, no_leader, silent_broker
from tests.configured import nowhere, properties_file
from tests.invoking import invoke
from tests.past_cycles import NOON
from tsoffset.daemon.pauses import Pauses
from tsoffset.errors import ClusterRefused
from tsoffset.model import Failed, FailureKind
from tsoffset.terminal.notices import Notices
from tsoffset.testing.memory_cluster import Verb


def test_it_ends_with_the_first_cycle_that_finds_all_ready(failing_over):
    """The flow is paused then, and `--resume` ends that without a cycle."""
    assert failing_over.run() == 0
    assert failing_over.verdicts == {"billing": ("ready", None)}
    assert failing_over.cycles.ran == 1
    assert [file.name for file in failing_over.directory.iterdir()] == [PAUSED]
    assert failing_over.run("--resume") == 0
    assert failing_over.cycles.ran == 1
    assert list(failing_over.directory.iterdir()) == []
    assert "A->B is no longer paused" in failing_over.result.stderr
    assert failing_over.run("--resume") == 0
    assert "A->B was not paused" in failing_over.result.stderr


def test_a_pause_that_cannot_be_ended_is_bad_usage(failing_over):
    """Nor can it be seen whether there is one: that is not taken for none."""
    failing_over.directory.write_text("no folder")
    assert failing_over.run("--resume") == 2
    assert "cannot be written" in failing_over.result.stderr


def test_a_state_dir_that_cannot_be_looked_up_ends_no_failover(failing_over, tmp_path):
    """As one below a folder that this user may not enter: the last step says what to do."""
    failing_over.directory = tmp_path / ("x" * 300) / "state"
    assert "could not be paused" in failing_over.table()


def test_it_waits_for_what_is_still_moving(failing_over):
    """A mirror that comes on and consumers that leave: cycles go on until all are ready."""
    estate = failing_over.estate
    estate.write("orders", 60)
    estate.commit("billing", "orders", 155)
    estate["A"].group("billing").state = "Stable"

    def happen(cycle: int) -> None:
        if 0 < cycle < 6:
            estate.mirror("orders", up_to=100 + 10 * cycle)
        elif cycle == 6:
            estate.mirror("orders")
            estate["A"].group("billing").state = "Empty"

    failing_over.cycles.happen = happen
    assert failing_over.run() == 0
    # Whether it has members is asked before the cycle.
    assert failing_over.cycles.ran == 8
    assert failing_over.verdicts == {"billing": ("ready", None)}


@pytest.mark.parametrize("unlisted", [silent_broker, no_leader])
def test_consumers_that_a_broker_did_not_tell_of_are_not_taken_for_none(failing_over, unlisted):
    """A group that cannot be listed before a cycle, and can be in it: it is ready only once it was
    listed, and the flow is not paused before."""
    listed_again = unlisted(failing_over.estate["A"])

    def happen(_: int) -> None:
        listed_again()
        failing_over.now += 60

    failing_over.cycles.happen = happen
    assert failing_over.run() == 1
    assert failing_over.verdicts == {"billing": ("not_ready", "SOURCE_ACTIVE")}
    assert not failing_over.directory.exists()
    assert failing_over.run() == 0
    assert failing_over.verdicts == {"billing": ("ready", None)}


def test_it_does_not_wait_for_what_does_not_move(failing_over):
    """Consumers that stay on the source: exit 1 once nothing has changed for five seconds, and the
    flow is not paused, for nothing has moved over. Nor does it go on past its time."""
    estate = failing_over.estate
    estate["A"].group("billing").state = "Stable"
    assert failing_over.run() == 1
    assert failing_over.verdicts == {"billing": ("not_ready", "SOURCE_ACTIVE")}
    assert failing_over.now - NOON == 5
    assert not failing_over.directory.exists()

    def happen(cycle: int) -> None:
        estate.commit("billing", "orders", 60 + cycle % 7)

    failing_over.cycles.happen = happen
    before = failing_over.now
    assert failing_over.run("--timeout", "8") == 1
    assert failing_over.now - before == 8


def test_a_pause_is_of_the_whole_flow(failing_over):
    """So it is left out where some groups alone move over, and where it is not wanted. One that an
    earlier failover has made is told."""
    for words in (("--no-pause",), ("--groups", "billing")):
        assert failing_over.run(*words) == 0
        assert not failing_over.directory.exists()
    Pauses(str(failing_over.directory)).set("A->B", True)
    for words in ((), ("--dry-run",)):
        shown = failing_over.table("--groups", "billing", *words)
        assert "A->B is paused, so a running daemon" in shown


def test_a_dry_run_says_all_and_changes_nothing(failing_over):
    """The verdicts and steps that a failover would end with: one cycle, no commit, no pause, no
    state."""
    estate = failing_over.estate
    text = failing_over.table("--dry-run")
    assert "A.orders-0:100" in text
    assert "1. This was a dry run: nothing was committed or paused." in text
    assert "Start the consumers on B" in text
    assert "A->B would be paused" in text
    assert failing_over.cycles.ran == 1
    assert not estate["B"].group("billing").offsets
    assert not failing_over.directory.exists()
    estate["A"].group("billing").state = "Stable"
    assert failing_over.run("--dry-run") == 1
    assert failing_over.verdicts == {"billing": ("not_ready", "SOURCE_ACTIVE")}


def test_consumers_are_started_of_groups_that_are_ready_alone(failing_over):
    """With none ready, as under a wrong replication policy, no step starts consumers or moves
    producers: `auto.offset.reset` would decide what they skip."""
    estate = failing_over.estate
    estate.commit("ahead", "orders", 60)
    estate.commit("ahead", "A.orders", 130, on="B")
    text = failing_over.table("--dry-run", status=1)
    assert "Start the consumers of all other groups on B" in text
    estate["A"].group("billing").offsets.clear()
    text = failing_over.table("--dry-run", status=1)
    assert "No group is ready. Follow the messages" in text
    assert "Start the consumers" not in text
    assert "producers" not in text
    assert "auto.offset.reset" not in text


def test_consumers_that_auto_offset_reset_would_start_are_named(failing_over):
    """Nothing could be committed for the group, and nothing is there: who starts it anyway may skip
    records."""
    denied = Failed(FailureKind.AUTHORIZATION, "commit, cluster B: not authorized; grant READ")
    failing_over.estate["B"].fail(denied, verb=Verb.COMMIT)
    text = failing_over.table("--timeout", "1", status=1)
    assert "partitions that are missing under RESUMES AT have no known offset on B" in text
    assert "`latest` skips unread records" in text


def test_a_source_that_refuses_us_may_be_running(failing_over, monkeypatch):
    """A wrong password is no lost cluster: the first step is to correct it, and the flow is not
    paused."""
    estate = failing_over.estate
    estate.sync()
    source = estate["A"]

    def refuse(*_: object) -> NoReturn:
        raise ClusterRefused("connect to cluster A: the broker does not accept the credentials")

    monkeypatch.setattr(source, "describe", refuse)
    text = failing_over.table(status=3)
    assert "1. A refuses this user, so it may be running" in text
    assert "A->B is not paused, and a running daemon continues to sync it: A may be running" in text
    assert not failing_over.directory.exists()
    monkeypatch.setattr(estate["B"], "describe", refuse)
    assert "1. Follow the message about B" in failing_over.table(status=3)


@pytest.mark.parametrize("why", ["state.dir is not set", "state.dir is not a folder", "full"])
def test_that_a_pause_cannot_be_kept_is_said_before_anything_is_committed(
    failing_over, monkeypatch, tmp_path, why
):
    """Without a usable `state.dir`; a failover that does not pause has nothing to say of it."""
    failing_over.directory = None if why == "state.dir is not set" else tmp_path / "there"
    if why == "state.dir is not a folder":
        failing_over.directory.write_text("a file")
    if why == "full":
        why = "the disk of state.dir is full"
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    done: list[str] = []
    monkeypatch.setattr(Notices, "warning", lambda _, __, told: done.append(told))
    failing_over.cycles.happen = lambda _: done.append("cycle")
    for words, is_told in (((), True), (("--dry-run",), True), (("--no-pause",), False)):
        done.clear()
        assert failing_over.run(*words) == 0
        assert done[-1] == "cycle"
        assert any(f"failover A->B: {why}" in one for one in done) is is_told


def test_names_of_the_lists_that_the_source_does_not_show_are_told(failing_over):
    """A name with a typing error, or without DESCRIBE, has no row, so no verdict tells of it."""
    estate = failing_over.estate
    estate.write("secret", 5)
    denied = Failed(FailureKind.AUTHORIZATION, "describe topic secret: not authorized")
    estate["A"].fail(denied, verb=Verb.TOPICS, topic="secret")
    lines = ["A->B.topics = orders, secret, ordrs", "A->B.groups = billing, shippng, .*x"]
    assert failing_over.run(lines=lines) == 0
    said = " ".join(failing_over.result.stderr.split())
    assert "`topics` of flow A->B names secret, ordrs, which cluster A does not have" in said
    assert "`groups` of flow A->B names shippng, which" in said
    assert failing_over.run(lines=["A->B.topics = orders", "A->B.groups = billing"]) == 0
    assert "of flow A->B names" not in failing_over.result.stderr


def test_a_flow_that_only_plans_does_not_fail_over(tmp_path):
    """Nothing would have moved. Of several flows one is to be named; without `state.dir` there is
    no pause to end."""
    lines = "A->B.sync.group.offsets.enabled = false", "B->A.enabled = true"
    file = str(properties_file(tmp_path, nowhere(), nowhere(), *lines))
    for words, told in (
        ((), "choose one with --flow A->B"),
        (("--flow", "A->B"), "tsoffset export"),
        (("--flow", "A->B", "--resume"), "state.dir, which is not set"),
    ):
        result = invoke("failover", "-c", file, *words)
        assert (result.exit_code, told in result.stderr) == (2, True), result.stderr
