"""`tsoffset run`: when cycles start, what a signal does, how failures are outlived, and what
changes while it runs."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.exceptions import PanicException
from structlog.testing import capture_logs

from tests.configured import nowhere, properties_file
from tests.memory_flows import flow as memory_flow
from tests.memory_flows import mirrored_estate, unused_partition
from tests.waiting import wait_until
from tsoffset.config.loading import Configuration
from tsoffset.config.overrides import ListChange, Overrides
from tsoffset.config.overrides_files import OverridesFiles
from tsoffset.config.selection import Selection, Selector
from tsoffset.cycle.values import failed_row, rows_table
from tsoffset.daemon import cycles
from tsoffset.daemon.cycles import CycleLog, SparkCycles
from tsoffset.daemon.daemon import Daemon
from tsoffset.daemon.flow_loop import FlowLoop, LastKnown, Peers, nothing_known
from tsoffset.daemon.freshness import PAIRS_KNOWN
from tsoffset.daemon.pauses import Pauses
from tsoffset.daemon.schedule import Schedule
from tsoffset.daemon.signals import CANCEL_SECONDS, FINISH_SECONDS, Ending, Signals, supervise
from tsoffset.daemon.status import Board, FlowState, FlowStatus, Instance
from tsoffset.errors import ClusterUnreachable, CycleFailed, CycleOverLimit, JavaMissing
from tsoffset.flow.narrowing import Narrowing
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.group_sync.in_process import cycle
from tsoffset.model import GROUP_OFFSETS_TOPIC, Failed, FailureKind, OutcomeKind, Reason, Row
from tsoffset.spark.flow import CycleResult, Rows
from tsoffset.spark.sessions import FAILURES, Sessions
from tsoffset.stores import Folder
from tsoffset.testing.memory_cluster import MemoryCluster

# --- when cycles start --------------------------------------------------------------------


def starts(interval: float, durations: Sequence[float]) -> list[float]:
    schedule, found, now = Schedule(interval, 0.0), [], 0.0
    for seconds in durations:
        now = max(now, schedule.due)
        found.append(now)
        now += seconds
        schedule.ended(now)
    return found


def test_what_a_long_cycle_runs_past_is_left_out_and_counted():
    """Cycles of 25 s every 10 s stay on the grid; the two that were due are never made up for."""
    assert starts(10, [25, 25, 25]) == [0, 30, 60]
    schedule = Schedule(10, 0.0)
    assert schedule.ended(25) == 2
    assert schedule.ended(31) == 0


def test_what_keeps_failing_is_asked_half_as_often():
    """After the second failure in a row one time is left out, and not counted as late."""
    schedule = Schedule(10, 0.0)
    assert (schedule.ended(1, failures_in_a_row=1), schedule.due) == (0, 10)
    assert (schedule.ended(11, failures_in_a_row=2), schedule.due) == (0, 30)
    assert (schedule.ended(31, failures_in_a_row=9), schedule.due) == (0, 50)


def test_a_cycle_that_was_asked_for_leaves_the_grid_where_it_is():
    """`sync` at 13 s: the next one begins at 20 s as it would have."""
    schedule = Schedule(10, 0.0)
    schedule.ended(1)
    schedule.ended(11)
    schedule.began_early(13)
    assert (schedule.ended(14), schedule.due) == (0, 20)


def test_cycles_that_are_asked_for_and_fail_do_not_put_off_the_next_one():
    """Each failure leaves out a start, but never one that lies beyond it already."""
    schedule = Schedule(10, 0.0)
    for now in range(1, 100):
        schedule.began_early(now)
        schedule.ended(now, failures_in_a_row=now)
        assert schedule.due <= now + 20


@given(st.integers(1, 50), st.lists(st.integers(0, 200), min_size=1))
def test_no_cycle_is_early_none_overlap_and_nothing_drifts(interval, durations):
    """Starts lie on the grid, after the end of the cycle before, and within an interval of it."""
    begun = starts(interval, durations)
    for start, taken, following in zip(begun, durations, begun[1:], strict=False):
        assert following % interval == 0
        assert start + max(taken, interval) <= following < start + max(taken, interval) + interval


# --- what a signal does -------------------------------------------------------------------


def signal_once(started: threading.Event, *numbers: int) -> None:
    """Send this process signals as soon as the work is under way."""

    def send() -> None:
        started.wait()
        for number in numbers:
            os.kill(os.getpid(), number)

    threading.Thread(target=send).start()


class Work:
    """Work that goes on until `end` is called."""

    def __init__(self, error: Exception | None = None) -> None:
        self.started, self.over = threading.Event(), threading.Event()
        self.heard: list[str] = []
        self._error = error

    def __call__(self) -> None:
        self.started.set()
        self.over.wait()
        if self._error is not None:
            raise self._error

    def hear(self, word: str, *, end: bool = False) -> Callable[[], None]:
        def heard() -> None:
            self.heard.append(word)
            if end:
                self.over.set()

        return heard


def supervised(work: Work, ended_by: str, **seconds: float) -> Ending:
    heard = {word: work.hear(word, end=word == ended_by) for word in ("stop", "cancel", "hang_up")}
    return supervise(work, **heard, **seconds)


@pytest.mark.parametrize(
    ("signals", "ended_by", "seconds", "heard"),
    [
        ((signal.SIGTERM,), "stop", {}, ["stop"]),
        ((signal.SIGINT,), "stop", {}, ["stop"]),
        # A hang-up ends nothing.
        ((signal.SIGHUP,), "hang_up", {}, ["hang_up"]),
        # Work that does not stop is canceled after the time to finish.
        ((signal.SIGTERM,), "cancel", {"finish_seconds": 0.05}, ["stop", "cancel"]),
        # Who presses Ctrl-C twice means now.
        ((signal.SIGINT, signal.SIGTERM), "cancel", {"finish_seconds": 600}, ["stop", "cancel"]),
    ],
)
def test_work_that_heeds_what_it_is_told_ends_cleanly(signals, ended_by, seconds, heard):
    """What canceled work raises is expected. The handlers are put back."""
    before = [signal.getsignal(number) for number in signals]
    work = Work(CycleFailed("canceled") if ended_by == "cancel" else None)
    signal_once(work.started, *signals)
    assert supervised(work, ended_by, **seconds) is Ending.CLEAN
    assert work.heard == heard
    assert [signal.getsignal(number) for number in signals] == before


def test_work_that_nothing_ends_is_abandoned():
    """Before `docker stop` kills the process, after ten seconds: its cause of death would be
    unknown."""
    assert FINISH_SECONDS + CANCEL_SECONDS < 10
    work = Work()
    signal_once(work.started, signal.SIGTERM)
    ending = supervised(work, "nothing", finish_seconds=0.05, cancel_seconds=0.05)
    assert ending is Ending.ABANDONED
    work.over.set()


def test_what_the_work_raises_is_raised():
    """What keeps Spark from starting ends the command with its own words."""
    work = Work(JavaMissing("no Java"))
    work.over.set()
    with pytest.raises(JavaMissing, match="no Java"):
        supervised(work, "nothing")


def test_other_signals_wake_nobody():
    """A signal that another part of the program handles is not taken for an end."""
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with Signals() as signals:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert signals.wait(0.01) is None
            signals.wake()
            assert signals.wait(None) == 0
        signals.close()
    finally:
        signal.signal(signal.SIGUSR1, before)


# --- how failures are outlived ------------------------------------------------------------


class MemoryCycles:
    """Cycles on clusters in memory."""

    def __init__(self, clusters: Mapping[str, MemoryCluster]):
        self.clusters = clusters
        self.next_error: BaseException | None = None
        self.also: list[Row] = []

    def run(self, _: Selection, flow: FlowSettings) -> CycleResult:
        error, self.next_error = self.next_error, None
        if error is not None:
            raise error
        source = self.clusters[flow.source.alias]
        target = self.clusters[flow.target.alias]
        rows: list[Row]
        try:
            rows = cycle(flow, source, target, commit=flow.commits)
        except ClusterUnreachable as unreachable:
            rows = [failed_row(flow.name, Failed(FailureKind.UNREACHABLE, str(unreachable)))]
            return CycleResult(flow.name, Rows(rows_table(rows)), (), True, 0.1, 0, 0)
        groups, found = len({row.group for row in rows}), Rows(rows_table([*rows, *self.also]))
        return CycleResult(flow.name, found, (), False, 0.1, groups, len(rows))


def selection_of(*flows: FlowSettings) -> Selection:
    return Selection(
        Configuration("test.properties", ""), Settings(flows, ("A", "B")), flows, Narrowing()
    )


class Estate:
    """A flow A->B with one group, and the log of its cycles."""

    def __init__(self, **changes: Any) -> None:
        estate = mirrored_estate(20)
        estate.commit("billing", "orders", 7)
        self.target = estate["B"]
        self.flow = memory_flow(**changes)
        self.backend = MemoryCycles(estate.clusters)
        self.board = Board(Instance.here())
        self.board.set_flows([self.flow])
        self.seconds = iter(range(0, 10_000, 1))
        self.loop = FlowLoop(
            "A->B",
            selection_of(self.flow),
            lambda _: self.backend,
            self.board,
            now=lambda: float(next(self.seconds)),
        )

    @property
    def status(self) -> FlowStatus:
        (status,) = self.board.statuses()
        return status

    def cycle(self) -> list[dict[str, Any]]:
        with capture_logs() as logs:
            self.loop.cycle()
        return [dict(event) for event in logs if event["log_level"] != "debug"]


def events(logs: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in logs]


def test_a_cycle_is_logged_with_its_counts():
    """`cycle_started` and `cycle_finished`, the latter with the numbers of rows and the seconds
    between both, not those of Spark's part alone."""
    estate = Estate()
    logs = estate.cycle()
    again = estate.cycle()
    assert events(logs) == ["cycle_started", "cycle_finished"]
    finished = logs[-1]
    expected = {"flow": "A->B", "groups": 1, "committed": 1, "failed": 0, "seconds": 1}
    assert {name: finished[name] for name in expected} == expected
    assert (again[-1]["committed"], again[-1]["unchanged"]) == (0, 1)
    assert [commit[2].offset for commit in estate.target.commits] == [7]


@pytest.mark.parametrize(
    "error", [CycleFailed("Spark gave up"), ZeroDivisionError("ours"), PanicException("of Polars")]
)
def test_a_failed_cycle_is_logged_and_the_next_one_is_tried(error):
    """Whatever a cycle raises, `run` goes on in the same session. A panic is no Exception."""
    estate = Estate()
    estate.backend.next_error = error
    failed = estate.cycle()
    good = estate.cycle()
    assert events(failed) == ["cycle_started", "cycle_failed"]
    assert str(error) in failed[-1]["error"]
    assert good[-1]["committed"] == 1


def test_rows_that_nobody_has_to_look_at_are_not_told():
    """What failed is told, and a skip that an operator has to end; what passes is not."""
    estate = Estate()
    reasons = (Reason.NOT_MIRRORED, Reason.DIVERGED, FailureKind.TIMEOUT)
    estate.backend.also = [
        Row(
            *("A->B", "g", "orders", number, *[None] * 5),
            OutcomeKind.FAILED if isinstance(reason, FailureKind) else OutcomeKind.SKIPPED,
            reason,
            message=f"{reason} it is",
        )
        for number, reason in enumerate(reasons)
    ]
    told = [event for event in estate.cycle() if event["event"] == "rows_need_attention"]
    assert [(event["reason"], event["message"], event["rows"]) for event in told] == [
        (reason, f"{reason} it is", 1) for reason in reasons[1:]
    ]


def test_groups_that_nobody_lists_are_told_and_degrade_the_flow():
    """Of each cluster once, though their rows have no group. Such a cycle is not complete."""
    estate = Estate()
    told = []
    for cluster in estate.backend.clusters.values():
        cluster.group("billing")
        cluster.create_topic(GROUP_OFFSETS_TOPIC, 2, internal=True)
        cluster.elect_leader(unused_partition(cluster, {"billing"}), None)
        logs = estate.cycle()
        told += [event["message"] for event in logs if event["event"] == "rows_need_attention"]
    assert [message.split(":")[0] for message in told] == [
        "list groups, cluster A",
        "list groups, cluster B",
    ]
    assert logs[-1]["failed"] == 2
    assert estate.status.state is FlowState.DEGRADED
    assert estate.status.last_success_at is None


def test_a_flow_that_syncs_nothing_says_so():
    """A user that may not see the groups any more gets an empty list, and no error."""
    estate = Estate()
    estate.cycle()
    estate.backend.clusters["A"].delete_group("billing")
    (warning,) = [event for event in estate.cycle() if event["log_level"] == "warning"]
    assert "shows this user no group" in warning["message"]
    assert estate.status.messages == (warning["message"],)


def test_what_was_told_is_not_told_again_until_it_comes_back():
    """A failure that lasts is one line, and one more if it returns after it had gone. Each cycle
    still ends."""
    estate = Estate()
    told = []
    for away in (True, True, False, True):
        estate.target.unreachable = away
        begun, *attention, finished = events(estate.cycle())
        assert (begun, finished) == ("cycle_started", "cycle_finished")
        told.append(attention == ["rows_need_attention"])
    assert told == [True, False, False, True]


def test_a_cycle_that_is_cut_short_by_a_stop_is_no_failure():
    """What a canceled cycle raises is expected, and no error in the log."""
    estate = Estate()
    estate.loop.stop()
    estate.backend.next_error = CycleFailed("canceled")
    logs = estate.cycle()
    assert events(logs) == ["cycle_started", "cycle_ended_by_stop"]
    assert {event["log_level"] for event in logs} == {"info"}


def test_a_cycle_longer_than_its_interval_is_told_with_what_was_left_out():
    """An operator learns that the interval cannot be kept; status counts what was left out. The
    first cycle, which starts Spark's workers and knows nothing, is no reason to say so."""
    estate = Estate(sync_interval_seconds=1)
    assert "cycles_left_out" not in events(estate.cycle())
    assert estate.status.late == 0
    for _ in range(2):
        assert events(estate.cycle())[-1] == "cycles_left_out"
    assert estate.status.late >= 2


# --- what is known of a flow ----------------------------------------------------------------


def test_a_flow_that_is_well_runs():
    """`starting` before the first cycle, `running` after it, with its rows and their freshness."""
    estate = Estate()
    assert (estate.status.state, estate.board.ready) == (FlowState.STARTING, False)
    estate.cycle()
    assert (estate.status.state, estate.board.ready) == (FlowState.RUNNING, True)
    (pair,) = estate.status.pairs.to_pylist()
    assert (pair["group"], pair["outcome"], pair["lag_records"]) == ("billing", "committed", 0)
    assert pair["in_sync_at"] == estate.status.last_success_at


def test_what_is_known_outlives_a_cluster_that_is_away():
    """The flow has failed, with the sentence that says why; its pairs are those of before."""
    estate = Estate()
    estate.cycle()
    before = estate.status
    estate.target.unreachable = True
    estate.cycle()
    now = estate.status
    assert (now.state, now.failures_in_a_row) == (FlowState.FAILED, 1)
    assert "B" in now.messages[0]
    assert now.pairs is before.pairs
    assert now.last_success_at == before.last_success_at


def test_a_cycle_without_rows_is_a_failure_and_one_over_its_limit_is_told_apart():
    """`failed` where Spark gave up, `degraded` where the limit ended it; both say why."""
    estate = Estate()
    estate.backend.next_error = CycleFailed("Spark gave up")
    estate.cycle()
    assert (estate.status.state, estate.status.messages) == (FlowState.FAILED, ("Spark gave up",))
    estate.backend.next_error = CycleOverLimit("too long")
    estate.cycle()
    assert (estate.status.state, estate.status.over_limit) == (FlowState.DEGRADED, 1)
    estate.cycle()
    assert (estate.status.state, estate.status.failures_in_a_row) == (FlowState.RUNNING, 0)


# --- flows side by side, and what changes while they run --------------------------------------


class Gate:
    """Cycles that do nothing; those of a flow that is shut wait until it is opened."""

    def __init__(self, shut: str = "") -> None:
        self.shut = shut
        self.opened = threading.Event()
        self.broken = False
        self.ran: Counter[str] = Counter()
        self.changed = threading.Condition()

    def run(self, _: Selection, flow: FlowSettings) -> CycleResult:
        if flow.name == self.shut:
            self.opened.wait()
        with self.changed:
            self.ran[flow.name] += 1
            self.changed.notify_all()
        rows = pa.table({}) if self.broken else rows_table(())
        return CycleResult(flow.name, Rows(rows), (), False, 0.0, 0, 0)

    def wait(self, flow: str, cycles: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.ran[flow] >= cycles, 30)


FILE = """clusters = A, B, C
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:2
C.bootstrap.servers = 127.0.0.1:3
sync.group.offsets.interval.seconds = 1
A->B.enabled = true
"""


@dataclass
class Running:
    """A daemon that runs on a file, and its log."""

    file: Path
    gate: Gate
    board: Board
    daemon: Daemon
    logs: list[MutableMapping[str, Any]]

    @property
    def status(self) -> FlowStatus:
        """Of the first flow."""
        return self.board.statuses()[0]

    def write(self, *lines: str) -> None:
        write(self.file.with_suffix(".new"), *lines).replace(self.file)

    def wait_for(self, holds: Callable[[], object]) -> None:
        wait_until(holds, "the daemon to take it up")

    def told(self, event: str) -> list[MutableMapping[str, Any]]:
        return [one for one in self.logs if one["event"] == event]


def write(file: Path, *lines: str) -> Path:
    file.write_text(FILE + "\n".join(lines) + "\n", encoding="utf-8")
    return file


@contextmanager
def running(
    folder: Path,
    *lines: str,
    shut: str = "",
    last_known: LastKnown = nothing_known,
    peers: Callable[[FlowSettings], Peers | None] = lambda _: None,
) -> Iterator[Running]:
    file = write(folder / "mm2.properties", *lines)
    selector = Selector(file)
    gate, board = Gate(shut), Board(Instance.here())
    daemon = Daemon(
        selector, selector.select(), lambda _: gate, board, last_known=last_known, peers=peers
    )
    thread = threading.Thread(target=daemon.run)
    with capture_logs() as logs:
        thread.start()
        try:
            yield Running(file, gate, board, daemon, logs)
        finally:
            gate.opened.set()
            daemon.stop()
            thread.join()


@pytest.fixture(autouse=True)
def often(monkeypatch) -> None:
    monkeypatch.setattr("tsoffset.config.overrides_files._SECONDS", 0.02)


def test_what_another_process_knew_is_there_before_the_first_cycle(tmp_path):
    """If the source is unreachable at the start, the offsets that a failover would use are known
    from the history; a history that cannot be read does not stop the process."""
    estate = Estate()
    estate.cycle()

    def known(flow):
        if flow == "B->A":
            raise ValueError("damaged")
        return estate.status.pairs, 1.0

    with running(tmp_path, "B->A.enabled = true", shut="A->B", last_known=known) as now:
        now.gate.wait("B->A", 1)
        now.wait_for(lambda: len(now.status.pairs))
        assert now.status.state is FlowState.STARTING
        assert len(now.told("history_not_read")) == 1


class Standby(Peers):
    """Another instance leads for ever."""

    def leads(self) -> bool:
        return False

    def leader(self) -> Instance:
        return Instance("b", "sync-2", 7, 1.0)


def test_a_flow_on_standby_takes_in_what_its_leader_keeps(tmp_path):
    """Once an interval, as far as it is newer than what is known; and says who leads."""
    empty = rows_table(()).slice(0, 0)
    ended = iter((5.0, 3.0))

    def known(_flow):
        return empty, next(ended, 9.0)

    with running(tmp_path, last_known=known, peers=lambda _: Standby()) as now:
        times = []

        def told():
            times.append(now.status.known_at)
            return times[-1] == 9.0

        now.wait_for(told)
        assert {*times} <= {None, 5.0, 9.0}
        lead = now.daemon.lead("A->B")
        assert (lead.here, lead.leader and lead.leader.host) == (False, "sync-2")
        assert not now.gate.ran


def test_what_another_leader_knows_is_not_taken_for_the_last_cycle_here(tmp_path):
    """An instance that has led before: what its leader keeps is of now, and of no cycle of its
    own."""
    peers, ended = Peers(), time.time() + 1000

    def known(_flow):
        return PAIRS_KNOWN.empty_table(), ended

    with running(tmp_path, last_known=known, peers=lambda _: peers) as now:
        now.wait_for(lambda: now.status.last_reached)
        peers.leads = lambda: False
        now.wait_for(lambda: now.status.known_at == ended)
        (status,) = now.board.statuses()
        assert status.unknown_since(ended + 1) is None
        assert status.last_reached is None


def test_a_flow_that_hangs_does_not_delay_another(tmp_path):
    """Each flow has a thread of its own: B->A goes on while a cycle of A->B has no end."""
    with running(tmp_path, "B->A.enabled = true", shut="A->B") as now:
        now.gate.wait("B->A", 2)
        assert now.gate.ran["A->B"] == 0
        assert now.daemon.alive()


def test_whether_a_cycle_hangs_is_told_by_a_clock_that_nobody_sets(tmp_path):
    """A system clock that is set forward ends no daemon; a cycle that goes on long past its limit
    does."""
    with running(tmp_path, shut="A->B") as now:
        now.wait_for(lambda: now.status.running_since and now.daemon._loops)
        now.board.now = lambda: time.time() + 10**6
        assert now.daemon.alive()
        monotonic = time.monotonic
        (loop,) = now.daemon._loops.values()
        loop._now = lambda: monotonic() + 601
        assert not now.daemon.alive()
        now.gate.opened.set()
        now.wait_for(now.daemon.alive)


def test_a_history_that_cannot_be_read_to_its_end_hangs_the_flow(tmp_path):
    """Its folder is on a server that is silent: no cycle begins, and the probe and the election are
    told, who would take this for a flow on standby."""
    opened = threading.Event()

    class Watched(Peers):
        def leave_while(self, hung: Callable[[], bool]) -> None:
            self.hung = hung

    peers = Watched()

    def known(_flow: str) -> None:
        opened.wait()

    with running(tmp_path, last_known=known, peers=lambda _: peers) as now:
        try:
            now.wait_for(lambda: now.daemon._loops)
            (loop,) = now.daemon._loops.values()
            assert now.daemon.alive()
            loop._now = lambda: time.monotonic() + 601
            assert peers.hung()
            assert not now.daemon.alive()
        finally:
            opened.set()
        now.gate.wait("A->B", 1)
        assert now.daemon.alive()


def test_a_flow_whose_cycles_keep_failing_gives_way(tmp_path):
    """Another instance may reach what this one does not: after five in a row the election knows."""

    class Watched(Peers):
        def give_way_if(self, failing: Callable[[], bool]) -> None:
            self.failing = failing

    peers = Watched()
    with running(tmp_path, shut="A->B", peers=lambda _: peers) as now:
        now.wait_for(lambda: now.daemon._loops)
        for failures in (4, 5):
            now.board.update("A->B", failures_in_a_row=failures)
            assert peers.failing() is (failures == 5)


def test_a_start_that_hangs_is_not_well(tmp_path, monkeypatch):
    """`state.dir` is on a server that is silent: no flow begins, and the probe is told. Who looks
    sees that there is one."""
    opened = threading.Event()
    monkeypatch.setattr(Pauses, "look", lambda _: opened.wait())
    monkeypatch.setattr("tsoffset.daemon.daemon._START_SECONDS", 0.0)
    with running(tmp_path) as now:
        try:
            now.wait_for(lambda: not now.daemon.alive())
            assert (now.status.name, now.status.state) == ("A->B", FlowState.STARTING)
        finally:
            opened.set()
        now.gate.wait("A->B", 1)
        now.wait_for(now.daemon.alive)


def test_a_flow_that_waits_for_a_cycle_that_hangs_is_not_well(tmp_path):
    """The file turned it off and on again meanwhile: no cycle of it would begin any more. When that
    one has ended, it is not told any more, be the flow paused by then."""
    state = f"state.dir = {tmp_path}/state"
    with running(tmp_path, state, shut="A->B") as now:
        now.wait_for(lambda: now.status.running_since and now.daemon._loops)
        (loop,) = now.daemon._loops.values()
        now.write(state, "A->B.enabled = false")
        now.wait_for(lambda: not now.board.statuses())
        Pauses(f"{tmp_path}/state").set("A->B", True)
        now.write(state)
        now.wait_for(lambda: now.daemon._loops)
        assert now.daemon.alive()
        loop._now = lambda: time.monotonic() + 601
        assert not now.daemon.alive()
        # A cycle that fails by then is of a loop that has ended.
        now.gate.changed = None
        now.gate.opened.set()
        now.wait_for(now.daemon.alive)
        now.wait_for(lambda: now.status.state is FlowState.PAUSED)
        assert now.status.messages == ()


def test_flows_come_and_go_with_the_file(tmp_path):
    """A flow that the file turns on begins, one that it turns off ends; the others go on."""
    with running(tmp_path) as now:
        now.gate.wait("A->B", 1)
        now.write("A->C.enabled = true")
        now.gate.wait("A->C", 1)
        now.write()
        now.wait_for(lambda: [status.name for status in now.board.statuses()] == ["A->B"])
        now.gate.wait("A->B", now.gate.ran["A->B"] + 1)


def test_a_file_that_cannot_be_used_is_not_taken_up(tmp_path):
    """It is told once, with file, line and key, in log and status; what ran goes on running."""
    with running(tmp_path) as now:
        now.write("tasks.max = none")
        now.wait_for(lambda: now.board.warnings)
        now.gate.wait("A->B", now.gate.ran["A->B"] + 1)
        assert "tasks.max" in now.board.warnings[0]
        now.write()
        now.wait_for(lambda: not now.board.warnings)
        assert len(now.told("configuration_rejected")) == 1


def test_a_file_that_is_being_written_is_not_taken_up_yet(tmp_path, monkeypatch):
    """Nor after one that was rejected."""
    with running(tmp_path) as now:
        now.write("tasks.max = none")
        now.wait_for(lambda: now.board.warnings)
        written = iter([True] * 20)
        monkeypatch.setattr(Selector, "is_being_written", lambda _: next(written, False))
        now.write()
        now.wait_for(lambda: not now.board.warnings)
        assert next(written, None) is None


def test_what_needs_a_restart_is_said(tmp_path):
    """Spark's settings are those of the start: a change is named until it is undone."""
    with running(tmp_path) as now:
        now.write("spark.app.name = other")
        now.wait_for(lambda: now.board.warnings)
        assert now.board.warnings == ("spark.*: takes effect after a restart",)
        now.write()
        now.wait_for(lambda: not now.board.warnings)


def test_a_changed_secret_is_read_without_a_reload(tmp_path):
    """The election and a translation over the API use it as the next cycle does."""
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("seconds = 7")
    line = f"sync.group.offsets.interval.seconds = ${{file:{secrets}:seconds}}"
    with running(tmp_path, line) as now:
        assert now.daemon.settings("A->B").sync_interval_seconds == 7
        secrets.write_text("seconds = 8")
        assert now.daemon.settings("A->B").sync_interval_seconds == 8


def test_a_paused_flow_stays_paused_until_it_is_resumed(tmp_path):
    """Pausing outlives the process where there is a `state.dir`; the other flow goes on."""
    lines = (f"state.dir = {tmp_path}/state", "B->A.enabled = true")
    with running(tmp_path, *lines) as now:
        now.daemon.pause("A->B")
        now.wait_for(lambda: now.status.state is FlowState.PAUSED)
        now.gate.wait("B->A", now.gate.ran["B->A"] + 1)
    with running(tmp_path, *lines) as again:
        again.gate.wait("B->A", 2)
        assert again.gate.ran["A->B"] == 0
        again.daemon.resume("A->B")
        again.gate.wait("A->B", 1)
        with pytest.raises(KeyError):
            again.daemon.pause("B->C")


def test_a_pause_does_not_wait_until_it_is_written(tmp_path, monkeypatch):
    """To a store that is silent: no cycle starts meanwhile."""
    with running(tmp_path, f"state.dir = {tmp_path}/state") as now:
        now.gate.wait("A->B", 1)
        goes_on = threading.Event()
        monkeypatch.setattr(Folder, "write", lambda *_: goes_on.wait())
        with ThreadPoolExecutor(1) as pool:
            pausing = pool.submit(now.daemon.pause, "A->B")
            try:
                now.wait_for(lambda: now.status.state is FlowState.PAUSED)
                assert not pausing.done()
            finally:
                goes_on.set()


def test_a_pause_of_another_process_is_told_and_taken_up(tmp_path):
    """As `tsoffset failover` leaves one in `state.dir`: the log says why no more cycles come."""
    with running(tmp_path, f"state.dir = {tmp_path}/state") as now:
        now.gate.wait("A->B", 1)
        for paused, event in ((True, "flow_paused"), (False, "flow_resumed")):
            Pauses(f"{tmp_path}/state").set("A->B", paused)
            now.wait_for(lambda event=event: event in events(now.logs))


def test_a_flow_that_comes_back_is_still_paused(tmp_path):
    """A flow that failed over, and that the file turns off and on again, has not one cycle."""
    lines = (f"state.dir = {tmp_path}/state", "B->A.enabled = true")
    Pauses(f"{tmp_path}/state").set("B->A", True)
    with running(tmp_path, *lines[:1]) as now:
        now.gate.wait("A->B", 1)
        now.write(*lines)
        now.gate.wait("A->B", now.gate.ran["A->B"] + 2)
        now.wait_for(lambda: now.board.statuses()[-1].state is FlowState.PAUSED)
        assert now.gate.ran["B->A"] == 0


def test_a_late_pause_does_not_undo_a_resumption(tmp_path, monkeypatch):
    """A store that was away answers while an operator resumes the flow: the last word holds."""
    state = tmp_path / "state"
    state.write_text("no folder")
    pauses = Pauses(str(state))
    pauses.set("A->B", True)
    state.unlink()
    begun, goes_on, write = threading.Event(), threading.Event(), Folder.write

    def late(*words: Any) -> None:
        begun.set()
        goes_on.wait(10)
        write(*words)

    monkeypatch.setattr(Folder, "write", late)
    with ThreadPoolExecutor(2) as pool:
        looked = pool.submit(pauses.look)
        assert begun.wait(10)
        resumed = pool.submit(pauses.set, "A->B", False)
        wait([resumed], 0.2)
        goes_on.set()
        looked.result()
        resumed.result()
    pauses.look()
    assert not pauses.paused("A->B")
    assert not list(state.glob("*.paused"))


def test_a_pause_that_cannot_be_kept_holds_and_is_kept_later(tmp_path):
    """If the disk is full, the flow is still paused, and once there is room the pause outlives the
    process."""
    state = tmp_path / "state"
    state.mkdir()
    lines = (f"state.dir = {state}", "B->A.enabled = true")
    with running(tmp_path, *lines) as now:
        now.gate.wait("A->B", 1)
        state.rmdir()
        state.write_text("no folder")
        now.daemon.pause("A->B")
        now.wait_for(lambda: now.told("pause_not_written"))
        now.wait_for(lambda: now.status.state is FlowState.PAUSED)
        state.unlink()
        now.wait_for(lambda: state.is_dir() and list(state.glob("*.paused")))
        warnings = [one["log_level"] for one in now.told("pause_not_written")]
        assert warnings.count("warning") == 1
        assert len(now.told("pauses_not_read")) == 1
        assert now.status.state is FlowState.PAUSED


def test_a_flow_whose_lists_cannot_be_read_at_the_start_is_held_back(tmp_path):
    """It may be that just its groups were taken out: nothing is committed before that is known."""
    state = tmp_path / "state"
    OverridesFiles(str(state)).write("A->B", Overrides({"groups": ListChange(("app",), (".*",))}))
    (file,) = state.iterdir()
    content = file.read_bytes()
    file.write_text("{")
    with running(tmp_path, f"state.dir = {state}", "B->A.enabled = true") as now:
        now.gate.wait("B->A", 1)
        now.wait_for(lambda: now.status.state is FlowState.FAILED)
        assert "remove the file" in now.status.messages[0]
        assert now.gate.ran["A->B"] == 0
        file.write_bytes(content)
        now.gate.wait("A->B", 1)
        assert now.status.lists == ("groups with app", "groups without .*")


def test_the_last_flow_can_be_turned_off(tmp_path):
    """Who turns it off before a failover is obeyed; the daemon goes on, and takes it up again."""
    with running(tmp_path) as now:
        now.gate.wait("A->B", 1)
        now.write("A->B.enabled = false")
        now.wait_for(lambda: not now.board.statuses())
        assert now.daemon.alive()
        now.write()
        now.gate.wait("A->B", now.gate.ran["A->B"] + 1)


def test_a_loop_that_breaks_goes_on(tmp_path):
    """Whatever a cycle's end raises is told, in log and status, and the next cycle is tried."""
    with running(tmp_path) as now:
        now.gate.wait("A->B", 1)
        now.gate.broken = True
        now.wait_for(lambda: now.told("flow_broke"))
        now.wait_for(
            lambda: (
                (status := now.status).state is FlowState.FAILED
                and status.running_since is None
                and status.next_at is not None
            )
        )
        now.gate.broken = False
        now.wait_for(lambda: now.status.state is FlowState.RUNNING)


def test_cycles_are_numbered_over_the_process_s_life(tmp_path):
    """A flow that leaves and comes back goes on counting: history tells cycles by their numbers."""
    with running(tmp_path, "B->A.enabled = true") as now:
        # Two cycles have ended, not only begun.
        now.wait_for(lambda: (ended := now.board.statuses()[1].last) and ended.number >= 2)
        now.write()
        now.wait_for(lambda: len(now.board.statuses()) == 1)
        now.write("B->A.enabled = true")
        now.wait_for(lambda: len(now.board.statuses()) == 2 and now.board.statuses()[1].last)
        last = now.board.statuses()[1].last
        assert last.number > 2


def test_lists_that_change_are_taken_up_and_shown(tmp_path):
    """`tsoffset lists` writes beside the state; the daemon runs with it, the status names it."""
    with running(tmp_path, f"state.dir = {tmp_path}/state") as now:
        now.gate.wait("A->B", 1)
        change = Overrides({"groups": ListChange(("app-.*",), (".*",))})
        OverridesFiles(f"{tmp_path}/state").write("A->B", change)
        now.wait_for(lambda: now.status.lists)
        (status,) = now.board.statuses()
        assert status.lists == ("groups with app-.*", "groups without .*")
        assert status.flow.group_filter.should_replicate_group("app-1")
        assert not status.flow.group_filter.should_replicate_group("other")


def test_lists_that_cannot_be_read_leave_those_that_are_known(tmp_path):
    """A damaged file is a warning with a next step, and no group that was left out comes back."""
    with running(tmp_path, f"state.dir = {tmp_path}/state") as now:
        OverridesFiles(f"{tmp_path}/state").write(
            "A->B", Overrides({"groups.exclude": ListChange(("secret",))})
        )
        now.wait_for(lambda: now.status.lists)
        (file,) = (tmp_path / "state").glob("*.lists.json")
        file.write_text("{")
        now.daemon.reload()
        now.wait_for(lambda: now.board.warnings)
        (status,) = now.board.statuses()
        assert not status.flow.group_filter.should_replicate_group("secret")
        assert "remove the file" in now.board.warnings[0]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcd")), max_size=8))
def test_the_last_word_on_an_entry_holds(words):
    """Whatever was added and removed before, an entry is in the list if it was added last."""
    change = ListChange()
    for add, entry in words:
        change = change.add(entry) if add else change.remove(entry)
    last = {entry: add for add, entry in words}
    assert set(change.apply(("a", "b"))) == {
        entry for entry in "abcd" if last.get(entry, entry in "ab")
    }
    overrides = Overrides().changed("topics", change)
    assert Overrides.from_json(overrides.to_json()) == overrides


# --- the session that they share --------------------------------------------------------------


class Session:
    """In the place of a session of Spark: it is there, or it has died."""

    def __init__(self) -> None:
        self.stopped = False

    @property
    def sparkContext(self) -> Any:  # noqa: N802 (pyspark's name)
        told = SimpleNamespace(isStopped=lambda: self.stopped)
        jobs = dict.fromkeys(("setJobGroup", "setLocalProperty", "cancelJobGroup"), lambda *_: None)
        return SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: told), **jobs)


class Opened:
    """Sessions that were opened, or why none was; its clock stands still."""

    def __init__(self) -> None:
        self.sessions: list[Any] = []
        self.error: Exception | None = None
        self.now = 0.0

    @contextmanager
    def __call__(self) -> Iterator[Any]:
        if self.error is not None:
            raise self.error
        self.sessions.append(Session())
        yield self.sessions[-1]


def leased(sessions: Sessions, error: Exception | None = None) -> Any:
    """The session that a cycle got, which ended with the error."""
    with suppress(CycleFailed), sessions.lease() as session:
        found = session
        if error is not None:
            raise error
    return found


GAVE_UP = CycleFailed("Spark gave up")


def test_a_session_that_died_is_replaced():
    opened = Opened()
    sessions = Sessions(opened)
    first = leased(sessions)
    assert leased(sessions) is first
    opened.sessions[0].stopped = True
    assert leased(sessions) is opened.sessions[1]


def test_a_session_that_keeps_failing_is_replaced():
    """After three failures in a row, of whichever flow. A cycle that ends well resets the count,
    and one that ends at its limit does not count as a failure of Spark."""
    opened = Opened()
    sessions = Sessions(opened)
    for error in (GAVE_UP, GAVE_UP, None, GAVE_UP, CycleOverLimit("slow"), GAVE_UP):
        assert leased(sessions, error) is opened.sessions[0]
        if error is None:
            sessions.ended_well()
    leased(sessions, GAVE_UP)
    assert leased(sessions) is opened.sessions[1]


def test_a_wait_before_a_cycle_counts_against_its_limit(tmp_path, monkeypatch):
    """For the state or for Spark: another instance may lead by then, so nothing is committed."""
    selection = Selector(properties_file(tmp_path, nowhere(), nowhere())).select()
    (flow,) = selection.flows
    times = iter((0.0, flow.longest_cycle_seconds + 1.0))
    monkeypatch.setattr(cycles, "time", SimpleNamespace(monotonic=lambda: next(times)))
    with pytest.raises(CycleOverLimit):
        SparkCycles(Sessions(Opened()), CycleLog(flow.name)).run(selection, flow)


def test_a_session_in_which_another_flow_works_is_not_taken_from_it():
    """It is replaced once no flow runs in it, and until then no flow starts in it. What ran in an
    old session does not count for the new one."""
    opened = Opened()
    sessions = Sessions(opened)
    with suppress(CycleFailed), sessions.lease() as of_other:
        for _ in range(FAILURES):
            assert leased(sessions, GAVE_UP) is of_other
        with pytest.raises(CycleFailed, match="have ended"):
            sessions.lease().__enter__()
        opened.sessions[0].stopped = True
        assert leased(sessions) is opened.sessions[1]
        raise GAVE_UP
    for _ in range(2):
        assert leased(sessions, GAVE_UP) is opened.sessions[1]
    assert leased(sessions) is opened.sessions[1]


def test_a_spark_that_does_not_start_is_tried_with_growing_pauses():
    """No flow waits for it: each cycle until then fails with why, and the first success ends it."""
    opened = Opened()
    sessions = Sessions(opened, now=lambda: opened.now)
    opened.error = CycleFailed("no memory")
    tried = []
    for second in range(20):
        opened.now = float(second)
        with pytest.raises(CycleFailed) as failure, sessions.lease():
            pass
        if "no memory" in str(failure.value):
            tried.append(second)
    assert tried == [0, 1, 3, 7, 15]
    opened.error, opened.now = None, 40.0
    assert leased(sessions) is opened.sessions[0]
