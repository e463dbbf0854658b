"""`tsoffset failover` on clusters in memory: when cycles end, the verdicts, and what past cycles
have left where the source is away."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from click.testing import Result

from tests.configured import nowhere, properties_file
from tests.invoking import in_memory, invoke
from tests.memory_flows import (
    Estate,
    RaisingGroups,
    RaisingTopics,
    after_each,
    flow,
    mirrored_estate,
)
from tests.past_cycles import NOON, Past
from tests.waiting import PATIENCE_SECONDS
from tsoffset.commands.failover import run
from tsoffset.commands.failover.verdicts import FailoverVerdict, verdicts
from tsoffset.committed import CommittedColumns
from tsoffset.cycle.values import rows_table
from tsoffset.daemon.pauses import Pauses
from tsoffset.errors import ClusterRefused
from tsoffset.flow.settings import FlowSettings, TranslationSettings
from tsoffset.group_sync.cache import CarryOver
from tsoffset.group_sync.state import FlowCarryOver, StateFile
from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    Failed,
    FailureKind,
    GroupType,
    OutcomeKind,
    Reason,
    TopicPartition,
)
from tsoffset.spark.flow import CycleResult, Rows
from tsoffset.terminal.next_step import next_step
from tsoffset.terminal.notices import Notices
from tsoffset.testing.memory_cluster import MemoryCluster, Verb

PAUSED = "A-%3EB.paused"


def mirrored() -> Estate:
    """A mirrored topic, and a group in the middle of it."""
    return mirrored_estate(100, first_offset=40, billing=60)


def judged(estate: Estate, *active: str, settings: FlowSettings | None = None) -> dict[str, Any]:
    found = verdicts("A->B", estate.sync(settings), active, "now")
    return {one.group or "": (one.verdict, one.reread_bound, one.reason) for one in found}


# --- verdicts -----------------------------------------------------------------------------


def test_a_group_is_ready_where_all_its_partitions_are_exact():
    """It says where its consumers begin and for which commits that stands; a second look finds the
    same."""
    estate = mirrored_estate(100, partitions=2, first_offset=40, billing=60)
    estate.commit("billing", "orders", 70, partition=1)
    for _ in range(2):
        (found,) = verdicts("A->B", estate.sync(), (), "now")
        assert (found.verdict, found.reread_bound, found.partitions) == (
            FailoverVerdict.READY,
            0,
            2,
        )
        assert found.resumes_at == "A.orders-0:100 A.orders-1:110"
        assert found.source_commits == "orders-0:60 orders-1:70"


def test_what_is_read_again_is_added_up():
    """A mirror that lags behind two commits of a group: ready, but for what it lacks."""
    estate = mirrored_estate(100, partitions=2, up_to=50)
    for partition in range(2):
        estate.commit("billing", "orders", 60 + partition, partition=partition)
    assert judged(estate) == {"billing": (FailoverVerdict.BOUNDED, 10 + 11, None)}


def test_what_stands_in_the_way_is_named():
    """Consumers on either side, a commit that has no translation, one on the target that is
    further, and answers that nothing proves: not ready, each with its reason. What a group re-reads
    is counted from where it is, so it is not known where there is no commit, or one too far."""
    estate = mirrored()
    estate.write("lost", 10)
    for group in ("active", "busy", "ahead", "behind", "lost", "both"):
        estate.commit(group, "orders", 60)
    estate.commit("lost", "lost", 5)
    estate.commit("both", "lost", 5)
    estate.commit("ahead", "A.orders", 130, on="B")
    estate.commit("behind", "A.orders", 70, on="B")
    estate["B"].group("busy").state = estate["B"].group("behind").state = "Stable"
    not_ready = FailoverVerdict.NOT_READY
    assert judged(estate, "active", "both") == {
        "active": (not_ready, 0, "SOURCE_ACTIVE"),
        "ahead": (not_ready, None, "TARGET_AHEAD"),
        "behind": (not_ready, 30, "GROUP_ACTIVE"),
        "billing": (FailoverVerdict.READY, 0, None),
        "both": (not_ready, None, "SOURCE_ACTIVE TARGET_MISSING"),
        "busy": (not_ready, None, "GROUP_ACTIVE"),
        "lost": (not_ready, None, "TARGET_MISSING"),
    }
    (ahead,) = [one for one in verdicts("A->B", estate.sync(), (), "now") if one.group == "ahead"]
    assert "target, A.orders-0:130, is 30 past what it has read" in ahead.message
    simple = flow(translation=TranslationSettings(proof="timestamps"))
    fresh = mirrored()
    assert judged(fresh, settings=simple) == {"billing": (not_ready, None, "UNPROVEN")}


# --- cycles -------------------------------------------------------------------------------


@dataclass(slots=True)
class MemoryCycles:
    """Cycles on clusters in memory, run as `flow_cycles` does; `happen` comes between two."""

    estate: Estate
    happen: Callable[[int], None] = lambda _: None
    ran: int = 0
    unreachable: bool = False

    def __call__(self, *, commit: bool, keep: bool) -> CycleResult:
        assert commit is keep
        self.happen(self.ran)
        self.ran += 1
        rows = rows_table(self.estate.sync() if commit else self.estate.plan())
        return CycleResult("A->B", Rows(rows), (), self.unreachable, 0.1, 1, 1)


@dataclass(slots=True)
class FailingOver:
    """The command with clusters in memory; `now` is its clock, which sleeping moves."""

    estate: Estate
    folder: Path
    directory: Path | None
    cycles: MemoryCycles
    history: Path | None = None
    now: float = NOON

    def run(self, *words: str, lines: Sequence[str] = (), form: str = "json") -> int:
        """The exit status; `result` has the rest."""
        folders = {"state.dir": self.directory, "history.dir": self.history}
        lines = [*lines, *(f"{key} = {it}" for key, it in folders.items() if it is not None)]
        words = ("failover", *words, "--format", form)
        self.result = in_memory(self.estate, self.folder, *words, lines=lines)
        return self.result.exit_code

    def run_without_source(
        self, past: Past | None = None, *words: str, after: int = 100, lines: Sequence[str] = ()
    ) -> int:
        """The same while the source is unreachable, some seconds after the first of `past`."""
        if past is not None:
            self.history, self.now = past.directory, NOON + after
        self.estate["A"].unreachable = True
        return self.run(*words, lines=lines)

    def table(self, *words: str, status: int = 0) -> str:
        """What a person reads on standard output, in one line."""
        assert self.run(*words, form="table") == status
        return " ".join(self.result.stdout.split())

    @property
    def rows(self) -> dict[str | None, dict[str, Any]]:
        rows = map(json.loads, self.result.stdout.splitlines())
        return {row["group"]: row for row in rows}

    @property
    def verdicts(self) -> dict[str | None, tuple[str, str | None]]:
        return {group: (row["verdict"], row["reason"]) for group, row in self.rows.items()}

    result: Result = field(init=False)


def silent_broker(cluster: MemoryCluster) -> Callable[[], None]:
    """A broker does not list its groups, until the returned function is called."""
    late = Failed(FailureKind.TIMEOUT, "list groups, broker 0: late")
    fault = cluster.fail(late, verb=Verb.GROUPS, broker=0)
    return lambda: cluster.heal(fault)


def no_leader(cluster: MemoryCluster) -> Callable[[], None]:
    """The groups' partition has no leader, until the returned function is called."""
    cluster.create_topic(GROUP_OFFSETS_TOPIC, internal=True)
    partition = TopicPartition(GROUP_OFFSETS_TOPIC, 0)
    cluster.elect_leader(partition, None)
    return lambda: cluster.elect_leader(partition, 0)


@pytest.fixture
def failing_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FailingOver:
    estate = mirrored()
    found = FailingOver(estate, tmp_path, tmp_path / "state", MemoryCycles(estate))

    @contextmanager
    def cycles(*_: object, **__: object) -> Iterator[Callable[[FlowSettings], MemoryCycles]]:
        yield lambda _: found.cycles

    class Clock:
        def monotonic(self) -> float:
            return found.now

        def time(self) -> float:
            return found.now

        def sleep(self, seconds: float) -> None:
            found.now += seconds

    monkeypatch.setattr(run, "flow_cycles", cycles)
    monkeypatch.setattr(run, "time", Clock())
    return found


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


# --- with a cluster away ------------------------------------------------------------------


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
    past, carry_over = Past(tmp_path / "history"), CarryOver()
    past.keep(*estate.sync(carry_over=carry_over))
    estate.commit("billing", "orders", 30)
    past.keep(*estate.sync(carry_over=carry_over))
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


@pytest.mark.parametrize("reason", [*Reason, *FailureKind, "NO_COMMIT"])
def test_no_next_step_needs_a_lost_source_at_once(reason):
    """Only `failover` works without it."""
    step = next_step("f", "A->B", "billing", reason, source_lost=True)
    assert step is None or (
        step.command.startswith("tsoffset failover ")
        or step.when == "Once the source can be reached again"
    )


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
    carry_over = FlowCarryOver()
    estate.sync(carry_over=carry_over)
    estate.commit("rewound", "orders", 50)
    estate.sync(carry_over=carry_over)
    StateFile(str(failing_over.directory), "A->B").save(carry_over)
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
    both, describe = threading.Barrier(2, timeout=PATIENCE_SECONDS), MemoryCluster.describe

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
