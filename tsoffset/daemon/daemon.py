"""The flows of one process: their loops, their controls, and reloads of the configuration."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count

import structlog

from tsoffset.config.overrides import Overrides
from tsoffset.config.overrides_files import seconds_between_looks
from tsoffset.config.selection import Selection, Selector, plan_only_notice
from tsoffset.daemon.cycles import CycleLog, SparkCycles
from tsoffset.daemon.flow_loop import FlowLoop, LastKnown, Peers, Turn, nothing_known
from tsoffset.daemon.pauses import Pauses
from tsoffset.daemon.status import Board, Lead, Observer
from tsoffset.errors import TsoffsetError
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.flow_cycle import FlowTask

log = structlog.get_logger(__name__)

# A start that takes longer is hung: that of Spark, or a read of `state.dir` that does not end.
_START_SECONDS = 300.0

# Settings of the whole process, with their keys.
_NEEDS_A_RESTART = {
    "spark": "spark.*",
    "server": "listeners",
    "history": "history.*",
    "metrics": "metrics.*",
}


class Daemon:
    """Runs the flows that `selector` chooses; `selection` is its first choice.

    `cycles` returns what runs the cycles of one flow, and `peers` its election, if it has one.
    """

    def __init__(
        self,
        selector: Selector,
        selection: Selection,
        cycles: Callable[[CycleLog], SparkCycles],
        board: Board,
        *,
        observers: Sequence[Observer] = (),
        peers: Callable[[FlowSettings], Peers | None] = lambda _: None,
        last_known: LastKnown = nothing_known,
    ) -> None:
        self._selector = selector
        self._selection = selection
        self._first = selection
        self._cycles = cycles
        self._board = board
        self._observers = observers
        self._peers = peers
        self._last_known = last_known
        self._pauses = Pauses(selection.settings.state_dir)
        # For `_loops` and `_selection`. Never held during a read of a file or a cluster.
        self._lock = threading.Lock()
        self._loops: dict[str, FlowLoop] = {}
        self._ending: dict[str, FlowLoop] = {}
        # By the two clusters of a flow, in either direction.
        self._turns: defaultdict[frozenset[str], Turn] = defaultdict(Turn)
        self._numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(1))
        self._rejected: str | None = None
        # When Spark, and then the flows, must have started (monotonic clock); None if they have.
        self._starts_by: float | None = time.monotonic() + _START_SECONDS
        self._stopping = threading.Event()
        self._wake = threading.Event()
        # So that the API shows the flows as starting while Spark starts.
        board.set_flows(selection.flows)
        board.warnings = selection.settings.warnings
        board.config = selection.configuration.path

    def run(self) -> None:
        """Run the flows until `stop`, and reload the configuration when it changes."""
        if self._stopping.is_set():
            return
        log.info("run_started", flows=[flow.name for flow in self._selection.flows])
        self._starts_by = time.monotonic() + _START_SECONDS
        self._read_pauses()
        self._apply(self._selection)
        self._starts_by = None
        while not self._stopping.is_set():
            self._wake.wait(seconds_between_looks(self._selection.settings.state_dir))
            asked = self._wake.is_set()
            self._wake.clear()
            if not self._stopping.is_set():
                self._read_pauses()
                self._reload(asked=asked)
        self.stop()
        for loop in (*self._ending.values(), *self._loops.values()):
            loop.join()

    def stop(self) -> None:
        """Start no further cycle; `run` returns when the running ones have ended."""
        self._stopping.set()
        self._wake.set()
        for loop in list(self._loops.values()):
            loop.stop()

    def reload(self) -> None:
        """Read the configuration now, and log the result."""
        self._wake.set()

    def alive(self) -> bool:
        """True if every flow's thread runs and neither a cycle nor the start is hung. Does not
        depend on Kafka, and does not wait."""
        starts_by = self._starts_by
        if starts_by is not None and time.monotonic() > starts_by:
            return False
        return all(loop.alive() and not loop.is_hung() for loop in list(self._loops.values()))

    # --- controls, from any thread: KeyError for a flow that does not run here ----------------

    def pause(self, flow: str) -> None:
        """Start no further cycle; a running one finishes. With `state.dir`, a restart does not end
        the pause."""
        self._set_paused(flow, True)

    def resume(self, flow: str) -> None:
        self._set_paused(flow, False)

    def sync_now(self, flow: str) -> None:
        """Start the next cycle as soon as none runs; a paused flow stays paused."""
        self._selection.flow(flow)
        # A flow without a loop yet starts with a cycle anyway.
        if (loop := self._loops.get(flow)) is not None:
            loop.sync_now()
        log.info("sync_asked", flow=flow)

    def lead(self, flow: str) -> Lead:
        settings = self._selection.flow(flow)
        loop = self._loops.get(flow)
        # A flow without a loop yet has not joined its election.
        return Lead(here=not settings.leader_election) if loop is None else loop.lead()

    def settings(self, flow: str) -> FlowSettings:
        """The flow's settings; reads its secrets again. Raises ConfigurationError if one cannot be
        read, and UsageError for an unknown flow."""
        selection = self._selection
        return FlowTask(selection.configuration, flow, selection.narrowing).resolve().flow

    def _set_paused(self, flow: str, paused: bool) -> None:
        self._selection.flow(flow)
        self._pauses.set(flow, paused)
        if (loop := self._loops.get(flow)) is not None:
            loop.look_at_pause()

    # --- reloads ----------------------------------------------------------------------------

    def _read_pauses(self) -> None:
        self._pauses.look()
        for loop in list(self._loops.values()):
            loop.look_at_pause()

    def _reload(self, *, asked: bool) -> None:
        try:
            if not asked:
                changed = self._rejected or self._selector.has_changed(self._selection)
                if not changed or self._selector.is_being_written():
                    return
            selection = self._selector.select(self._selection.lists, may_be_none=True)
        except TsoffsetError as error:
            words = str(error)
            if asked or words != self._rejected:
                log.error("configuration_rejected", error=words)
            self._rejected = words
            rejected = (
                "the changed configuration was rejected, and the previous one stays in effect:"
                f" {words}"
            )
            self._board.warnings = (rejected, *self._selection.settings.warnings)
            return
        self._rejected = None
        self._apply(selection)
        waiting = _waiting_for_restart(self._first, selection)
        flows = [flow.name for flow in selection.flows]
        log.info("configuration_loaded", flows=flows, after_a_restart=waiting)
        if not flows:
            log.warning(
                "no_flow_enabled", message="no flow is enabled any more; all flows are stopped"
            )

    def _apply(self, selection: Selection) -> None:
        with self._lock:
            self._selection = selection
            self._board.warnings = (
                *(
                    f"{key}: takes effect after a restart"
                    for key in _waiting_for_restart(self._first, selection)
                ),
                *selection.settings.warnings,
            )
            self._board.set_flows(selection.flows)
            names = {flow.name for flow in selection.flows}
            loops = dict(self._loops)
            for name in loops.keys() - names:
                loops[name].stop()
                self._ending[name] = loops.pop(name)
            ending = {name: loop for name, loop in self._ending.items() if loop.alive()}
            for flow in selection.flows:
                changes = selection.lists.found.get(flow.name, Overrides())
                self._board.update(flow.name, lists=changes.in_words())
                loop = loops.get(flow.name)
                if loop is None:
                    # The last cycle of the flow's previous loop may still be running.
                    loop = loops[flow.name] = self._loop(flow, selection)
                    loop.configure(selection)
                    loop.start(after=ending.pop(flow.name, None))
                else:
                    loop.configure(selection)
            # Replaced, not changed: other threads read them without the lock.
            self._loops, self._ending = loops, ending

    def _loop(self, flow: FlowSettings, selection: Selection) -> FlowLoop:
        if not flow.commits:
            log.warning("flow_only_planned", flow=flow.name, message=plan_only_notice(flow))
        return FlowLoop(
            flow.name,
            selection,
            self._cycles,
            self._board,
            turn=self._turns[frozenset((flow.source.alias, flow.target.alias))],
            observers=self._observers,
            peers=self._peers(flow),
            last_known=self._last_known,
            numbers=self._numbers[flow.name],
            paused=partial(self._pauses.paused, flow.name),
            pauses_unknown=self._pauses.unknown,
        )


def _waiting_for_restart(first: Selection, now: Selection) -> list[str]:
    keys = [
        key
        for name, key in _NEEDS_A_RESTART.items()
        if getattr(first.settings, name) != getattr(now.settings, name)
    ]
    before = {flow.name: flow for flow in first.flows}
    for flow in now.flows:
        known = before.get(flow.name, flow)
        if known.leader_election != flow.leader_election:
            keys.append(f"{flow.name}.leader.election.enabled")
        elif flow.leader_election and known.target != flow.target:
            keys.append(f"{flow.name}: the election on cluster {flow.target.alias}")
    if first.settings.state_dir != now.settings.state_dir:
        keys.append("state.dir (pauses, and what `run` reads at its start)")
    if len(now.flows) > len(first.flows):
        keys.append("number of flows (a share of Spark for each)")
    return keys
