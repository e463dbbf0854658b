"""Cycles on Spark over clusters in memory that the workers share through a folder.

Each rule is checked in both shapes of a cycle: all in one task, and spread over many.
"""

import json
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import polars as pl
import pytest
from pyspark.sql import SparkSession

from tests import stored_clusters as shared
from tests.processes import runs
from tests.spark_functions import polars_threads
from tests.spark_worlds import PARTITIONS, RECORDS, by_place, mirrored, outcomes, spread
from tests.waiting import wait_until
from tsoffset.errors import CycleFailed
from tsoffset.flow.narrowing import Narrowing
from tsoffset.group_sync.cache import CachedTables, with_reverse
from tsoffset.group_sync.commit import FRESH_SECONDS
from tsoffset.group_sync.cycle import cycle
from tsoffset.group_sync.flow_cycle import Stage
from tsoffset.group_sync.state import FlowCache
from tsoffset.group_sync.tables import REVERSE_COMMITS
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    GroupType,
    OutcomeKind,
    Precision,
    Reason,
    TimestampType,
    TopicPartition,
)
from tsoffset.spark import packing, steps
from tsoffset.spark.dataflow import plan_cycle, run_cycle
from tsoffset.testing.memory_cluster import MemoryCluster, Message, Verb, mirror

pytestmark = pytest.mark.spark


# --- the same as in one process ----------------------------------------------------------


def troubled() -> tuple[MemoryCluster, MemoryCluster]:
    """Groups that cannot be asked, are active or ahead; partitions that are not mirrored or have no
    leader."""
    source, target = mirrored()
    source.group("g1").offsets[TopicPartition("gone", 0)] = CommittedOffset(3)
    source.create_topic("gone")
    target.group("g2").state = "Stable"
    target.group("g3").offsets[TopicPartition("A.orders", 0)] = CommittedOffset(RECORDS)
    source.fail(Failed(FailureKind.COORDINATOR, "made to fail"), verb=Verb.COMMITTED, group="g0")
    no_leader = Failed(FailureKind.NO_LEADER, "no leader")
    source.fail(no_leader, partition=TopicPartition("orders", 2), verb=Verb.READ)
    return source, target


def rewritten(source: MemoryCluster, target: MemoryCluster) -> None:
    """A topic of which one partition shows that the target rewrites timestamps."""
    source.create_topic("payments", PARTITIONS)
    target.create_topic("A.payments", PARTITIONS)
    target.log("A.payments", 1).timestamp_type = TimestampType.LOG_APPEND_TIME
    for partition in range(PARTITIONS):
        place = TopicPartition("payments", partition)
        records = [Message(2_000 + n, b"p%d" % n, b"v") for n in range(RECORDS)]
        source.log("payments", partition).append(records)
        source.group("g1").offsets[place] = CommittedOffset(10 + partition)
    mirror(source, target, {"payments": "A.payments"})


@pytest.mark.parametrize("commit", [True, False])
def test_rows_are_those_of_a_cycle_in_one_process(shape, commit, world):
    """Spark changes where the stages run, not what comes of them: a group or partition that cannot
    be asked costs its own rows there, too."""
    source, target = troubled()
    rewritten(source, target)
    source.group("g1").type = GroupType.SHARE
    source.group("g1").acknowledged[TopicPartition("orders", 0)] = 2
    source.log("orders", 1).delete_records(5)
    target.group("g3").offsets[TopicPartition("A.orders", 1)] = CommittedOffset(1)
    committed = source.group("g3").offsets[TopicPartition("orders", 1)].offset
    reverse = pl.DataFrame([("g3", "orders", 1, 7, committed, True)], REVERSE_COMMITS, orient="row")
    world.store(source, target)
    result = world.cycle(commit=commit, cache=FlowCache(reverse=reverse))
    flow = world.task().resolve()[0]
    cached = CachedTables(with_reverse(FlowCache().pairs, reverse))
    expected = {
        (row.group, row.source_topic, row.partition): row
        for row in cycle(flow, source, target, commit=commit, cache=cached)
    }
    assert by_place(result) == expected
    assert result.groups == 4
    assert result.share_groups == {"g1"}
    assert any(row.precision is Precision.BOUNDED for row in result.rows if row.group == "g1")
    assert result.positions == len(
        {(r.source_topic, r.partition, r.source_offset) for r in result.rows if r.group != "g0"}
    )
    assert not result.unreachable
    reasons = {row.reason for row in result.rows} - {None}
    assert reasons >= {Reason.GROUP_ACTIVE, Reason.TARGET_AHEAD, Reason.TARGET_REWOUND}
    assert Reason.TARGET_MISSING in reasons
    assert reasons >= {FailureKind.COORDINATOR, FailureKind.NO_LEADER}
    assert [r.reason for r in result.rows if r.source_topic == "payments"] == [
        Reason.TARGET_REWRITES_TIMESTAMPS
    ] * PARTITIONS
    assert [(r.group, r.source_topic, r.partition) for r in result.rows] == sorted(expected)


@pytest.mark.parametrize("most", [packing.POSITIONS_HERE, 0])
def test_a_plan_has_the_same_rows_with_and_without_spark(most, shape, world, monkeypatch):
    """With a position too many, what began in this process goes on on Spark. Failures, skips,
    warnings and what is counted are the same, and so is what the next cycle is left, from which it
    has the same rows again."""
    world.store(*troubled())
    monkeypatch.setattr(packing, "POSITIONS_HERE", most)
    started: list[SparkSession] = []

    def session():
        started.append(world.session)
        return world.session

    kept, kept_here = FlowCache(), FlowCache()
    for _ in range(2):
        there = world.cycle(commit=False, cache=kept)
        here = plan_cycle(session, world.task(), cache=kept_here)
        assert list(here.rows) == list(there.rows)
        assert (here.groups, here.positions, here.warnings) == (
            there.groups,
            there.positions,
            there.warnings,
        )
        assert kept_here.pairs.equals(kept.pairs)
        assert kept_here.partitions.equals(kept.partitions)
        assert kept_here.binding == kept.binding
    assert len(started) == (2 if most == 0 else 0)
    assert world.asked("B", Verb.COMMIT) == []


def test_work_is_spread_over_processes(world, monkeypatch):
    """A cycle that is worth it reads groups and partitions in several workers at once, none of
    them the driver; a small one has a single worker."""
    world.cycle(commit=False)
    assert len(shared.processes(world.folder, "A", "committed")) == 1
    spread(monkeypatch)
    world.store(*mirrored())
    world.meet("A", "committed", "read")
    world.cycle(commit=False)
    for verb in ("committed", "read"):
        workers = shared.processes(world.folder, "A", verb)
        assert len(workers) == 2
        assert os.getpid() not in workers


def test_tasks_max_is_an_upper_limit(world, monkeypatch):
    spread(monkeypatch)
    world.cycle(world.task(tasks_max="1"))
    assert len(shared.processes(world.folder, "A", "committed")) == 1


def test_tasks_share_the_limits_on_the_source(world, monkeypatch):
    """Each of the tasks that read at once has its part, so that together they stay within what
    the user allows for; a cycle of one task has all of it, and the target knows no limit."""
    limited = world.task(
        source_fetch_max_bytes_per_second="1001", source_fetch_max_requests_in_flight="7"
    )
    world.cycle(limited)
    assert list(shared.limits(world.folder, "A").values()) == [{("1001", "7")}]
    spread(monkeypatch)
    world.store(*mirrored())
    world.meet("A", "read")
    world.cycle(limited)
    assert list(shared.limits(world.folder, "A").values()) == [{("500", "3")}] * 2
    found = set.union(*shared.limits(world.folder, "B").values())
    assert found == {("None", "None")}


def test_no_more_tasks_read_than_the_user_allows_reads_for(world, monkeypatch):
    """A task has at least one read under way, so where one is all that may be, one task reads."""
    spread(monkeypatch)
    world.meet("A", "committed")
    world.cycle(world.task(source_fetch_max_requests_in_flight="1"))
    assert list(shared.limits(world.folder, "A").values()) == [{("None", "1")}]
    assert len(shared.processes(world.folder, "A", "committed")) == 2


# --- each thing once ---------------------------------------------------------------------


def test_everything_is_asked_once(shape, world):
    """No group's commits are read twice on the source, and each target group's once, just
    before its one commit."""
    result = world.cycle()
    groups = [f"g{number}" for number in range(4)]
    assert sorted(world.asked("A", "committed")) == groups
    assert sorted(world.asked("B", "committed")) == groups
    committed = world.asked("B", "commit")
    assert len(committed) == len(set(committed)) == len(result.rows)
    questions = world.asked("A", "read")
    assert len(questions) == len(set(questions))


def test_worker_that_dies_after_its_commit_commits_nothing_twice(shape, world):
    """A task that runs again reads the target again, and finds what its first run committed."""
    world.order("B", shared.DIE_AFTER_COMMIT)
    result = world.cycle()
    committed = world.asked("B", "commit")
    assert len(committed) == len(set(committed)) == len(result.rows)
    assert set(outcomes(result)) == (
        {OutcomeKind.UNCHANGED}
        if shape == "one task"
        else {OutcomeKind.UNCHANGED, OutcomeKind.COMMITTED}
    )
    for row in result.rows:
        assert world.offset(row.group, row.partition) == row.target_offset
    if shape == "many tasks":
        # The reads are kept from the first action on: only the settling task ran again.
        assert len(world.asked("A", "committed")) == 4


def test_mistake_after_a_commit_is_a_failed_row(shape, world, capfd):
    """What breaks in a worker fails the rows of its groups, and the next cycle mends them. The
    worker's log has where it broke; neither the rows nor the log tell a secret."""
    world.order("B", shared.RAISE_AFTER_COMMIT)
    result = world.cycle()
    failed = [row for row in result.rows if row.outcome is OutcomeKind.FAILED]
    assert failed
    assert {row.reason for row in failed} == {FailureKind.INTERNAL}
    assert all("BrokenOnPurpose" in str(row.message) for row in failed)
    said = ""

    def is_told():
        nonlocal said
        said += capfd.readouterr().err
        return "BrokenOnPurpose: raised after a commit" in said

    wait_until(is_told)
    assert "settling_broke" in said
    assert shared.CANARY not in said + str(failed)
    assert len(result.rows) == 4 * PARTITIONS
    assert outcomes(world.cycle()) == {OutcomeKind.UNCHANGED: 4 * PARTITIONS}
    committed = world.asked("B", "commit")
    assert len(committed) == len(set(committed))


def test_cycle_says_what_its_stages_took_and_how_far_the_replicator_is(shape, world):
    """Each stage that has something to do takes time, in one task or in many; one that has
    nothing takes none. The mirror here lacks nothing."""
    cache = FlowCache()
    spent = world.cycle(cache=cache).spent.seconds
    assert all(spent[stage] > 0 for stage in Stage)
    again = world.cycle(cache=cache)
    assert [stage for stage in Stage if again.spent.seconds[stage] > 0] == [
        Stage.LIST_GROUPS,
        Stage.READ_COMMITS,
    ]
    assert again.replication["lag_records"].to_pylist() == [0] * PARTITIONS


def test_workers_keep_their_connections(world, monkeypatch):
    """A cycle finds the clients that the one before it left open."""
    spread(monkeypatch)
    world.cycle()
    connected = [len(shared.asked(world.folder, alias, "connect")) for alias in "AB"]
    users = len(shared.processes(world.folder, "A", "connect"))
    for _ in range(3):
        world.cycle()
    for alias, before in zip("AB", connected, strict=True):
        # A worker that had another task in the first cycle may come in new.
        assert len(shared.asked(world.folder, alias, "connect")) <= before + users
        assert shared.asked(world.folder, alias, "close") == []


def test_polars_has_one_thread_in_a_worker(world, session):
    world.cycle()
    context = session.sparkContext
    assert context.parallelize([0, 1], 2).map(polars_threads).collect() == [1, 1]


# --- what fails --------------------------------------------------------------------------


def test_worker_that_cannot_resolve_fails_its_groups(shape, world, monkeypatch):
    """A `${env:...}` that only the driver has is named in the rows of the groups."""
    # The workers' environment is that of the session's start.
    monkeypatch.setenv("TSOFFSET_ONLY_HERE", str(world.folder))
    result = world.cycle(world.task(client_id="${env:TSOFFSET_ONLY_HERE}"))
    assert outcomes(result) == {OutcomeKind.FAILED: 4}
    assert {row.reason for row in result.rows} == {FailureKind.INTERNAL}
    assert all("TSOFFSET_ONLY_HERE" in str(row.message) for row in result.rows)


def test_cycle_whose_workers_all_die_fails(world):
    """Spark gives up after some attempts; the session can be used for the next cycle."""
    (world.folder / f"A.{shared.DIE_ON_COMMITTED}").touch()
    with pytest.raises(
        CycleFailed, match=r"flow A->B: Spark gave up: Python worker exited .*; the next cycle"
    ):
        world.cycle()
    (world.folder / f"A.{shared.DIE_ON_COMMITTED}").unlink()
    assert outcomes(world.cycle()) == {OutcomeKind.COMMITTED: 4 * PARTITIONS}


class CycleStopped(Exception):
    """What a program's signal handler raises."""


@pytest.fixture
def stop_on_signal() -> Iterator[Callable[[], None]]:
    """A way for another thread to interrupt this one."""

    def stop(_number, _frame):
        raise CycleStopped

    before = signal.signal(signal.SIGUSR1, stop)
    yield lambda: os.kill(os.getpid(), signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


def test_interrupted_cycle_ends_its_tasks(world, stop_on_signal):
    """A signal ends a cycle in the middle, workers included, and the session goes on."""
    hold = world.folder / f"A.{shared.HOLD}"
    hold.touch()

    def interrupt():
        wait_until(lambda: bool(shared.asked(world.folder, "A", "held")))
        stop_on_signal()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(CycleStopped):
        world.cycle()
    thread.join()
    held = shared.processes(world.folder, "A", "held")
    wait_until(lambda: not any(runs(pid) for pid in held))
    hold.unlink()
    assert world.asked("B", "commit") == []
    assert outcomes(world.cycle()) == {OutcomeKind.COMMITTED: 4 * PARTITIONS}


def test_task_that_was_given_up_commits_nothing_when_it_goes_on(shape, world, monkeypatch):
    """A worker that is held up beyond its cycle's time may have been replaced: what it would
    commit then could come after a newer attempt, and after what an operator did to the group
    since. Its rows say so, and the next cycle commits."""
    seconds = 1.0
    monkeypatch.setattr(steps, "COMMIT_SECONDS", seconds)
    monkeypatch.setattr(steps, "COMMIT_SECONDS_A_PAIR", 0.0)
    hold = world.folder / f"B.{shared.HOLD}"
    hold.touch()

    def go_on():
        wait_until(lambda: bool(shared.asked(world.folder, "B", "held")))
        time.sleep(seconds)
        hold.unlink()

    thread = threading.Thread(target=go_on)
    thread.start()
    late = world.cycle()
    thread.join()
    assert outcomes(late) == {OutcomeKind.FAILED: 4 * PARTITIONS}
    assert {row.reason for row in late.rows} == {FailureKind.TIMEOUT}
    assert all("the deadline of this attempt has passed" in str(row.message) for row in late.rows)
    assert world.asked("B", "commit") == []
    monkeypatch.undo()
    if shape == "many tasks":
        spread(monkeypatch)
    assert outcomes(world.cycle()) == {OutcomeKind.COMMITTED: 4 * PARTITIONS}


def test_time_for_commits_grows_with_the_work(world, monkeypatch):
    """A large cycle is not given up while it translates."""
    spread(monkeypatch)
    monkeypatch.setattr(steps, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(steps, "COMMIT_SECONDS_A_PAIR", 60.0)
    assert outcomes(world.cycle()) == {OutcomeKind.COMMITTED: 4 * PARTITIONS}


def test_longest_time_between_reading_and_committing_is_told(shape, world):
    assert 0 < world.cycle().cost.commit_gap_seconds <= FRESH_SECONDS
    assert world.cycle().cost.commit_gap_seconds == 0.0


# --- across tasks ------------------------------------------------------------------------


def test_two_flows_that_write_the_same_leave_it_to_neither(shape, world):
    """Under Identity a group that has the topic on both sources is not synced; the other
    groups are."""
    source, _ = mirrored()
    other = MemoryCluster("C")
    other.create_topic("orders", PARTITIONS)
    other.group("g1").offsets[TopicPartition("orders", 0)] = CommittedOffset(1)
    plain = MemoryCluster("B")
    mirror(source, plain, {"orders": "orders"})
    world.store(source, plain, other)
    identity = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    task = world.task("A->B", "C->B", replication_policy_class=identity)
    result = world.cycle(task)
    contested = {key for key, row in by_place(result).items() if row.reason is not None}
    assert contested == {("g1", "orders", 0)}
    assert by_place(result)["g1", "orders", 0].reason is Reason.SEVERAL_SOURCES
    assert outcomes(result)[OutcomeKind.COMMITTED] == 4 * PARTITIONS - 1


# --- between cycles ----------------------------------------------------------------------


def test_groups_are_listed_once_per_refresh_interval(world):
    """The source is asked for its groups when the interval is over; the target's groups, whose
    state decides, every time."""
    cache = FlowCache()
    for _ in range(2):
        world.cycle(cache=cache)
    assert len(shared.asked(world.folder, "A", "groups")) == 1
    assert len(shared.asked(world.folder, "B", "groups")) == 2
    with shared.stored(world.folder, "A") as source:
        source.group("new").offsets[TopicPartition("orders", 0)] = CommittedOffset(1)
    cache.listed_at -= world.task().resolve()[0].refresh_groups_interval_seconds
    assert "new" in {row.group for row in world.cycle(cache=cache).rows}
    cache.listed_at -= 1_000_000
    world.cycle(world.task(refresh_groups_enabled="false"), cache=cache)
    assert len(shared.asked(world.folder, "A", "groups")) == 2


# --- what the user said ------------------------------------------------------------------


def test_narrowing_holds_in_the_workers(shape, world):
    source, target = mirrored()
    source.create_topic("payments")
    source.group("g1").offsets[TopicPartition("payments", 0)] = CommittedOffset(0)
    world.store(source, target)
    task = replace(world.task(), narrowing=Narrowing(groups="g[12]", topics="orders"))
    found = by_place(world.cycle(task))
    assert set(found) == {(g, "orders", p) for g in ("g1", "g2") for p in range(PARTITIONS)}


@pytest.mark.parametrize("groups", [0, 3])
def test_groups_without_commits_are_no_rows(groups, shape, world):
    """Nor are none; these take no task."""
    source, target = mirrored(groups=0)
    for number in range(groups):
        source.group(f"g{number}")
    world.store(source, target)
    result = world.cycle()
    assert list(result.rows) == []
    assert (result.groups, result.positions) == (groups, 0)
    assert groups or shared.asked(world.folder, "A", "committed") == []


def test_timestamps_alone_draw_a_warning(world):
    assert world.cycle().warnings == ()
    (warning,) = world.cycle(world.task(translation_proof="timestamps")).warnings
    assert "translation.proof" in warning


def test_a_topic_that_two_flows_mirror_in_a_loop_draws_a_warning(world):
    """Both flows keep the name of `orders`. There is no loop if they rename it."""
    both = ("A->B", "B->A")
    assert world.cycle(world.task(*both)).warnings == ()
    same_names = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    task = world.task(*both, replication_policy_class=same_names)
    (warning,) = world.cycle(task, commit=False).warnings
    assert warning.startswith("flows A->B and B->A both select orders under the same name")


def test_progress_is_told(world, monkeypatch):
    spread(monkeypatch)
    hold = world.folder / f"A.{shared.HOLD}"
    hold.touch()
    told: list[tuple[str, int, int]] = []

    def progress(stage, done, total):
        told.append((stage, done, total))
        if stage == "read commits":
            hold.unlink(missing_ok=True)

    run_cycle(world.session, world.task(), commit=False, progress=progress)
    assert told[0] == ("list groups", 0, 1)
    assert ("read commits", 0, 2) in told
    assert all(0 <= done <= total for _, done, total in told)


def test_nothing_of_the_configuration_is_in_sparks_own(world):
    world.cycle()
    settings = json.dumps(world.session.sparkContext.getConf().getAll())
    assert str(world.folder) not in settings
    assert "9092" not in settings


# Of Spark's network protocol: a request to be answered, with the number 7 and a body of 8 bytes.
_RPC_REQUEST = bytes([3]) + struct.pack(">qi", 7, 8) + bytes(8)


def test_the_driver_hears_nobody_without_its_secret(session):
    """Otherwise it would take the body for a Java object, and make that."""
    port = int(session.sparkContext.getConf().get("spark.driver.port") or 0)
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as stranger:
        stranger.sendall(struct.pack(">q", 8 + len(_RPC_REQUEST)) + _RPC_REQUEST)
        while b"Exception" not in answer and (more := stranger.recv(4096)):
            answer += more
    assert b"ObjectInputStream" not in answer
    assert b"Expected SaslMessage" in answer
