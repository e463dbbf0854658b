"""`tsoffset run`: flows side by side, what changes while it runs, and what hangs."""

import errno
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from tests.daemon.test_flow_loop import OneGroupFlow, events
from tests.waiting import TIMEOUT_SECONDS, wait_until
from tsoffset.config.overrides import ListChange, Overrides
from tsoffset.config.overrides_files import OverridesFiles
from tsoffset.config.selection import Selection, Selector
from tsoffset.daemon.daemon import Daemon
from tsoffset.daemon.flow_loop import LastKnown, Peers, nothing_known
from tsoffset.daemon.freshness import PAIRS_KNOWN
from tsoffset.daemon.pauses import Pauses
from tsoffset.daemon.status import Board, FlowState, FlowStatus, Instance
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.flow_cycle import CycleResult
from tsoffset.group_sync.rows import Rows, rows_table
from tsoffset.stores import Folder


class Gate:
    """Cycles that do nothing; those of a flow that is shut wait until it is opened."""

    def __init__(self, shut: str = "") -> None:
        self.shut = shut
        self.opened = threading.Event()
        self.broken = False
        self.ran: Counter[str] = Counter()
        self.changed = threading.Condition()

    def read_state_again(self) -> None:
        pass

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
            assert self.changed.wait_for(lambda: self.ran[flow] >= cycles, TIMEOUT_SECONDS)


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

    def waiting(self) -> list[FlowStatus]:
        """The flows that wait for the flow in the other direction."""
        return [one for one in self.board.statuses() if "waits until" in "".join(one.messages)]

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
    gate, board = Gate(shut), Board(Instance.of_this_process())
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
    estate = OneGroupFlow()
    estate.cycle()

    def known(flow):
        if flow == "A->C":
            raise ValueError("damaged")
        return estate.status.pairs, 1.0

    with running(tmp_path, "A->C.enabled = true", shut="A->B", last_known=known) as now:
        now.gate.wait("A->C", 1)
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
    peers, ended = Peers(), time.time() + 10**6

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
    """Each flow has a thread of its own: A->C goes on while a cycle of A->B has no end. Only B->A
    waits: it has to know what A->B commits."""
    with running(tmp_path, shut="A->B") as now:
        now.wait_for(lambda: now.status.running_since)
        now.write("B->A.enabled = true", "A->C.enabled = true")
        now.gate.wait("A->C", 2)
        now.wait_for(now.waiting)
        assert now.gate.ran["A->B"] == now.gate.ran["B->A"] == 0
        assert now.daemon.alive()
        loops = now.daemon._loops
        loops["A->B"]._now = lambda: time.monotonic() + 601
        now.wait_for(loops["B->A"].is_hung)
        assert not loops["A->C"].is_hung()
        now.gate.opened.set()
        now.gate.wait("B->A", 2)
        now.wait_for(lambda: not now.waiting())


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
            self.is_hung = hung

    peers = Watched()

    def known(_flow: str) -> None:
        opened.wait()

    with running(tmp_path, last_known=known, peers=lambda _: peers) as now:
        try:
            now.wait_for(lambda: now.daemon._loops)
            (loop,) = now.daemon._loops.values()
            assert now.daemon.alive()
            loop._now = lambda: time.monotonic() + 601
            assert peers.is_hung()
            assert not now.daemon.alive()
        finally:
            opened.set()
        now.gate.wait("A->B", 1)
        assert now.daemon.alive()


def test_a_flow_whose_cycles_keep_failing_gives_way(tmp_path):
    """Another instance may reach what this one does not: after five in a row the election knows."""

    class Watched(Peers):
        def give_way_if(self, failing: Callable[[], bool]) -> None:
            self.is_failing = failing

    peers = Watched()
    with running(tmp_path, shut="A->B", peers=lambda _: peers) as now:
        now.wait_for(lambda: now.daemon._loops)
        for failures in (4, 5):
            now.board.update("A->B", failures_in_a_row=failures)
            assert peers.is_failing() is (failures == 5)


def test_a_start_that_hangs_is_not_well(tmp_path, monkeypatch):
    """Spark does not start, or `state.dir` is on a server that is silent: no flow begins, and the
    probe is told. The status has the flows."""
    opened = threading.Event()
    monkeypatch.setattr(Pauses, "look", lambda _: opened.wait())
    monkeypatch.setattr("tsoffset.daemon.daemon._START_SECONDS", -1.0)
    selector = Selector(write(tmp_path / "mm2.properties"))
    before_run = Board(Instance.of_this_process())
    assert not Daemon(selector, selector.select(), lambda _: Gate(""), before_run).alive()
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
        (message,) = now.status.messages
        assert "tsoffset failover --flow 'A->B' --resume" in message


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
        now.wait_for(lambda: now.told("pauses_not_read"))
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


def test_a_flow_whose_pause_cannot_be_read_at_the_start_is_held_back(tmp_path, monkeypatch):
    """It may be paused, for a group that was just reset: nothing is committed before that is
    known. A pause that was read before still applies, and holds nothing else back."""
    state, names = str(tmp_path / "state"), Folder.names
    Pauses(state).set("A->B", True)
    away = threading.Event()
    away.set()

    def names_or_error(folder: Folder) -> list[str]:
        if away.is_set():
            raise PermissionError(errno.EACCES, "Permission denied")
        return names(folder)

    monkeypatch.setattr(Folder, "names", names_or_error)
    with running(tmp_path, f"state.dir = {state}", "B->A.enabled = true") as now:
        now.wait_for(lambda: {one.state for one in now.board.statuses()} == {FlowState.FAILED})
        assert "Permission denied" in now.status.messages[0]
        assert not now.gate.ran
        away.clear()
        now.gate.wait("B->A", 1)
        now.wait_for(lambda: now.status.state is FlowState.PAUSED)
        away.set()
        now.wait_for(lambda: len(now.told("pauses_not_read")) == 2)
        now.gate.wait("B->A", now.gate.ran["B->A"] + 1)
        assert now.gate.ran["A->B"] == 0


@pytest.mark.parametrize("unread", ["lists", "pauses"])
def test_a_flow_that_is_held_back_gives_way(tmp_path, monkeypatch, unread):
    """Another instance may read `state.dir`: while this one cannot, it is not to lead."""

    class Watched(Peers):
        def give_way_if(self, failing: Callable[[], bool]) -> None:
            self.is_failing = failing

    def no_names(_: Folder) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied")

    state, peers = tmp_path / "state", Watched()
    OverridesFiles(str(state)).write("A->B", Overrides({"groups": ListChange(("app",), (".*",))}))
    (file,) = state.iterdir()
    content = file.read_bytes()
    with monkeypatch.context() as patched:
        if unread == "lists":
            file.write_text("{")
        else:
            patched.setattr(Folder, "names", no_names)
        with running(tmp_path, f"state.dir = {state}", peers=lambda _: peers) as now:
            now.wait_for(lambda: now.status.state is FlowState.FAILED)
            assert peers.is_failing()
            file.write_bytes(content)
            patched.undo()
            now.gate.wait("A->B", 1)
            assert not peers.is_failing()


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


@pytest.mark.parametrize(
    ("lose", "step"),
    [
        (lambda file: file.write_text("{"), "remove the file"),
        (Path.unlink, "check that state.dir is mounted"),
    ],
    ids=["damaged", "gone"],
)
def test_lists_that_cannot_be_read_leave_those_that_are_known(tmp_path, lose, step):
    """A warning has a next step, and no group that was excluded comes back."""
    with running(tmp_path, f"state.dir = {tmp_path}/state") as now:
        OverridesFiles(f"{tmp_path}/state").write(
            "A->B", Overrides({"groups.exclude": ListChange(("secret",))})
        )
        now.wait_for(lambda: now.status.lists)
        (file,) = (tmp_path / "state").glob("*.lists.json")
        lose(file)
        now.daemon.reload()
        now.wait_for(lambda: now.board.warnings)
        (status,) = now.board.statuses()
        assert not status.flow.group_filter.should_replicate_group("secret")
        assert step in now.board.warnings[0]
