"""The loop of one flow, in a thread of its own: one cycle per interval.

A failed cycle affects no other flow; a slow one delays the flow in the other direction. The loop
runs until the daemon stops or the flow is removed.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count

import pyarrow as pa
import structlog

from tsoffset.config.selection import Selection
from tsoffset.daemon.cycles import CycleLog, SparkCycles
from tsoffset.daemon.schedule import Schedule
from tsoffset.daemon.status import Board, Cycle, FlowState, Instance, Lead, Observer
from tsoffset.errors import CycleOverLimit, TsoffsetError
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.flow_cycle import CycleResult
from tsoffset.group_sync.tables import BROKEN
from tsoffset.terminal.row_columns import tally_of

log = structlog.get_logger(__name__)

# How often an instance that does not lead a flow checks whether it leads now.
_STANDBY_SECONDS = 1.0
# How often a flow checks whether the cycle of the flow in the other direction has ended.
_TURN_SECONDS = 0.2
# After this many cycles without a result in a row, another instance should lead.
_FAILURES = 5
# A cycle is stopped at its time limit. One that still runs this much later is hung.
_GRACE_SECONDS = 300.0


LastKnown = Callable[[str], tuple[pa.Table, float] | None]
"""From a flow's name to the group-partitions (PAIRS_KNOWN) of its last recorded cycle, of any
process, and the end of that cycle (seconds since 1970 UTC); None if no cycle is recorded."""


def nothing_known(_flow: str) -> None:
    """No history: no cycle of another process is known."""


class Peers:
    """The instances that have the same flow. This class is for a flow without leader election:
    every instance runs it, which is safe, and knows no others. `Election` overrides all methods."""

    def leads(self) -> bool:
        """True if this instance runs the flow."""
        return True

    def leader(self) -> Instance | None:
        """The only instance that runs the flow; None if there may be several, or it is unknown."""
        return None

    def others(self) -> tuple[Instance, ...]:
        """The other instances in the election."""
        return ()

    def problem(self) -> str | None:
        """Why the leader is unknown, as a sentence with a next step; None if it is known."""
        return None

    def leave_while(self, hung: Callable[[], bool]) -> None:
        """Let another instance lead while `hung` returns True."""

    def give_way_if(self, failing: Callable[[], bool]) -> None:
        """Let another instance lead, if there is one for which `failing` does not return True."""

    def close(self) -> None:
        """Leave the election, so that another instance may lead at once."""


class Turn:
    """Shared by a flow and the one in the other direction. Only the `holder` runs a cycle: a cycle
    reads what the other flow has committed, which that one saves at the end of its cycle."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.holder: FlowLoop | None = None

    def take(self, loop: "FlowLoop") -> bool:
        """False if the other flow has it."""
        taken = self._lock.acquire(blocking=False)
        if taken:
            self.holder = loop
        return taken

    def give_back(self) -> None:
        self.holder = None
        self._lock.release()


class FlowLoop:
    """One flow's thread. `selection` has the flow, and applies until `configure`."""

    def __init__(
        self,
        name: str,
        selection: Selection,
        cycles: Callable[[CycleLog], SparkCycles],
        board: Board,
        *,
        turn: Turn | None = None,
        observers: Sequence[Observer] = (),
        peers: Peers | None = None,
        last_known: LastKnown = nothing_known,
        numbers: Iterator[int] | None = None,
        paused: Callable[[], bool] = lambda: False,
        pauses_unknown: Callable[[], str | None] = lambda: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._selection = selection
        self._log = CycleLog(name, now)
        self._cycles = cycles(self._log)
        self._board = board
        self._turn = turn or Turn()
        self._waits_for: FlowLoop | None = None
        self._observers = observers
        self._peers = peers or Peers()
        self._last_known = last_known
        self._now = now
        self._schedule = Schedule(selection.flow(name).sync_interval_seconds, now())
        self._numbers = numbers or count(1)
        self._number = 0
        self._is_paused = paused
        self._pauses_unknown = pauses_unknown
        self._paused = False
        self._after: FlowLoop | None = None
        self._waiting = False
        self._first = True
        # On standby: when to read the flow's history again.
        self._read_history_at = now()
        # When the running cycle, or the running read of the history, started by the monotonic
        # clock; None while none runs.
        self._since: float | None = None
        self._asked = False
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self.run, name=f"flow {name}", daemon=True)
        self._peers.leave_while(self.is_hung)
        self._peers.give_way_if(self.is_failing)

    # --- from other threads -----------------------------------------------------------------

    def start(self, after: "FlowLoop | None" = None) -> None:
        """Start the first cycle at once, or when the last cycle of `after` has ended."""
        self._after = after
        self._thread.start()

    def alive(self) -> bool:
        """True from the start until the last cycle has ended."""
        return self._thread.is_alive()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()

    def join(self, seconds: float | None = None) -> None:
        """Wait for the end of the last cycle, at most `seconds`."""
        self._thread.join(seconds)

    def is_hung(self) -> bool:
        """True if a cycle, or a read of the history, still runs long after the time limit: in this
        loop, or in one that it waits for, the flow's previous one or that of the other
        direction."""
        for other in (self._after, self._waits_for):
            if other is not None and other.alive() and other.is_hung():
                return True
        since, limit = self._since, self._selection.flow(self.name).longest_cycle_seconds
        return since is not None and self._now() - since > limit + _GRACE_SECONDS

    def is_failing(self) -> bool:
        """True if the last cycles here had no result, for whatever reason, or `state.dir` could
        not be read: another instance may reach what this one does not."""
        status = self._board.status(self.name)
        no_results = status is not None and status.failures_in_a_row >= _FAILURES
        return no_results or self._unknown() is not None

    def lead(self) -> Lead:
        here = self._peers.leads()
        if here:
            return Lead()
        return Lead(here, self._peers.leader(), self._peers.problem())

    def configure(self, selection: Selection) -> None:
        """Use this configuration from the next cycle on. After failures that cycle starts at once:
        the change may be the remedy."""
        self._selection = selection
        if self._schedule.waits > 1:
            self._asked = True
        self._wake.set()

    def look_at_pause(self) -> None:
        """Apply a pause now: no cycle starts until its end, and one starts then."""
        if self._is_paused() is not self._paused:
            self._wake.set()

    def sync_now(self) -> None:
        self._asked = True
        self._wake.set()

    # --- in its own thread ------------------------------------------------------------------

    def run(self) -> None:
        if self._after is not None:
            self._wait_for(self._after)
        else:
            self._read_history()
        self._schedule.restart(self._now())
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                seconds = self._next()
            except BROKEN as error:
                log.exception("flow_broke", flow=self.name)
                words = (
                    f"the loop of the flow failed and was restarted: {_unexpected_error(error)}",
                )
                self._since = None
                self._schedule.advance(self._now(), failed=True)
                seconds = max(0.0, self._schedule.due - self._now())
                self._board.update(
                    self.name,
                    state=FlowState.FAILED,
                    messages=words,
                    running_since=None,
                    next_at=self._board.now() + seconds,
                )
            self._wake.wait(seconds)
        self._peers.close()

    def _next(self) -> float | None:
        """Run a cycle if one is due. Returns the seconds until the next one is due; None: wait
        until woken."""
        waited_for, self._waits_for = self._waits_for, None
        if (state := self._held_back()) is not None:
            self._waiting = True
            self._cycles.read_state_again()
            self._board.update(self.name, state=state, next_at=None)
            if state is FlowState.STANDBY and self._now() >= self._read_history_at:
                self._read_history()
            return None if state is FlowState.PAUSED else _STANDBY_SECONDS
        now, interval = self._now(), self._selection.flow(self.name).sync_interval_seconds
        if self._waiting or interval != self._schedule.interval:
            self._schedule.restart(now, interval)
            self._board.resume(self.name)
            self._waiting = False
        if self._asked or now >= self._schedule.due:
            if not self._turn.take(self):
                self._waits_for = self._turn.holder
                words = "waits until the running cycle of the flow in the other direction has ended"
                self._board.update(self.name, messages=(words,))
                return _TURN_SECONDS
            if waited_for is not None:
                self._board.resume(self.name)
            try:
                self._asked = False
                self._schedule.began_early(now)
                self.cycle()
            finally:
                self._turn.give_back()
            if self._stopping.is_set():
                return 0.0
        left = max(0.0, self._schedule.due - self._now())
        self._board.update(self.name, next_at=self._board.now() + left)
        return left

    def _wait_for(self, before: "FlowLoop") -> None:
        while before.alive() and not self._stopping.is_set():
            words = (
                "the previous loop's last cycle may still be running; the flow starts when it"
                " has ended",
            )
            self._board.update(self.name, messages=words)
            before.join(_STANDBY_SECONDS)
        self._after = None
        self._board.update(self.name, messages=())

    def _read_history(self) -> None:
        """Use the last recorded cycle of another process, if it is newer than what is known."""
        self._since = self._now()
        self._read_history_at = self._since + self._selection.flow(self.name).sync_interval_seconds
        try:
            known = self._last_known(self.name)
        except BROKEN:
            log.exception("history_not_read", flow=self.name)
            return
        finally:
            self._since = None
        status = self._board.status(self.name)
        if known is None or status is None:
            return
        pairs, ended_at = known
        if status.known_at is None or status.known_at < ended_at:
            self._board.update(self.name, pairs=pairs, known_at=ended_at, last_reached=None)

    def cycle(self) -> None:
        selection = self._selection
        flow = selection.flow(self.name)
        self._number = next(self._numbers)
        started_at, started = self._board.now(), self._now()
        self._since = started
        self._board.update(self.name, running_since=started_at, next_at=None)
        log.info("cycle_started", flow=self.name, commits=flow.commits)
        result, error = None, None
        try:
            result = self._cycles.run(selection, flow)
        except BROKEN as raised:
            error = raised
        if error is not None and self._stopping.is_set():
            log.info("cycle_ended_by_stop", flow=self.name)
            return
        self._since = None
        self._report(self._finish_cycle(flow, result, error, started_at, started), error)

    def _finish_cycle(
        self,
        flow: FlowSettings,
        result: CycleResult | None,
        error: BaseException | None,
        started_at: float,
        started: float,
    ) -> Cycle:
        seconds = self._now() - started
        cycle = Cycle(self.name, self._number, started_at, seconds, flow.commits)
        if result is None:
            assert error is not None
            words = str(error) if isinstance(error, TsoffsetError) else _unexpected_error(error)
            return replace(cycle, error=words, over_limit=isinstance(error, CycleOverLimit))
        result = replace(result, warnings=result.warnings_of(flow))
        self._log.report(result)
        tally = tally_of(result.rows.table)
        facts = result.facts(tally, commits=flow.commits, seconds=seconds)
        return replace(cycle, result=result, tally=tally, facts=facts)

    def _report(self, cycle: Cycle, error: BaseException | None) -> None:
        """Log the result of the cycle, and update the board and the observers."""
        if error is None:
            log.info("cycle_finished", **cycle.facts)
        else:
            log.error(
                "cycle_failed",
                flow=self.name,
                error=cycle.error,
                seconds=round(cycle.seconds, 3),
                # An unexpected error is a bug of tsoffset.
                exc_info=None if isinstance(error, TsoffsetError) else error,
            )
        self._board.update(self.name, others=self._peers.others())
        status = self._board.cycle_ended(cycle)
        if status is None:
            return
        for observer in self._observers:
            try:
                observer.cycle_ended(cycle, status)
            except BROKEN:
                log.exception("observer_failed", flow=self.name, observer=type(observer).__name__)
        ended = self._now()
        late = self._schedule.advance(ended, failed=not cycle.reached, refused=cycle.refused)
        if cycle.refused and self._schedule.waits > 1:
            self._report_wait(self._schedule.due - ended, status.messages)
        # The first cycle starts Spark's workers and translates everything, so its duration does not
        # show that the interval is too short.
        first, self._first = self._first, False
        if late and not first:
            self._board.update(self.name, late=status.late + late)
            log.warning(
                "cycles_left_out",
                flow=self.name,
                cycles=late,
                seconds=round(cycle.seconds, 1),
                interval_seconds=self._schedule.interval,
            )

    def _report_wait(self, seconds: float, messages: tuple[str, ...]) -> None:
        starts = time.strftime("%H:%M:%S", time.gmtime(self._board.now() + seconds))
        words = (
            f"the next cycle starts at {starts} UTC, because repeated refused logins may lock"
            " tsoffset's account; a changed configuration file, SIGHUP, or `sync` of the REST API"
            " starts one at once"
        )
        log.warning("login_refused", flow=self.name, message=words)
        self._board.update(self.name, messages=(*messages, words))

    def _held_back(self) -> FlowState | None:
        """The state of the flow if no cycle may start now; None if one may."""
        paused = self._is_paused()
        if paused is not self._paused:
            self._paused = paused
            log.info("flow_paused" if paused else "flow_resumed", flow=self.name)
        if paused:
            words = (
                f"no cycle starts, because an operator or `tsoffset failover` has paused the flow;"
                f" to end the pause: `tsoffset failover --flow '{self.name}' --resume`, or `resume`"
                " of the REST API",
            )
            self._board.update(self.name, messages=words)
            return FlowState.PAUSED
        self._log.warn("lists_unknown", self._selection.lists.unknown(self.name))
        if (unknown := self._unknown()) is not None:
            self._board.update(self.name, messages=(unknown,))
            return FlowState.FAILED
        if self._peers.leads():
            return None
        problem = self._peers.problem()
        self._log.warn("lead_unknown", problem)
        messages = () if problem is None else (problem,)
        self._board.update(self.name, others=self._peers.others(), messages=messages)
        return FlowState.STANDBY if problem is None else FlowState.FAILED

    def _unknown(self) -> str | None:
        """What is not known yet of `state.dir`: an unread list may exclude groups, and an unread
        pause the flow, so no cycle may run. None if all is known."""
        return self._selection.lists.unknown(self.name) or self._pauses_unknown()


def _unexpected_error(error: BaseException) -> str:
    return (
        f"{type(error).__name__}: {error}; this is an internal error; please report it with the"
        " traceback from the log"
    )
