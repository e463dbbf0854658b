"""The flows of one process: their loops, what can be asked of them, and a configuration that
changes while they run."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import count

import structlog

from tsoffset.config.overrides import Overrides
from tsoffset.config.overrides_files import seconds_between_looks
from tsoffset.config.selection import Selection, Selector, only_planned
from tsoffset.daemon.cycles import CycleLog, Cycles
from tsoffset.daemon.flow_loop import FlowLoop, LastKnown, Peers, nothing_known
from tsoffset.daemon.pauses import Pauses
from tsoffset.daemon.status import Board, Lead, Observer
from tsoffset.errors import TsoffsetError
from tsoffset.flow.settings import FlowSettings

log = structlog.get_logger(__name__)

# What is the whole process's, with the keys that fill it.
_NEEDS_A_RESTART = {
    "spark": "spark.*",
    "server": "listeners",
    "history": "history.*",
    "metrics": "metrics.*",
}


class Daemon:
    """The flows that `selector` chooses; `selection` is what it chose at first.

    `cycles` makes what runs the cycles of one flow, `peers` what knows of other instances with it.
    """

    def __init__(
        self,
        selector: Selector,
        selection: Selection,
        cycles: Callable[[CycleLog], Cycles],
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
        # Of `_loops` and `_selection`; nobody waits for a file or a cluster while it is held.
        self._lock = threading.Lock()
        self._loops: dict[str, FlowLoop] = {}
        self._ending: dict[str, FlowLoop] = {}
        self._numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(1))
        self._rejected: str | None = None
        self._stopping = threading.Event()
        self._look = threading.Event()
        # Spark takes a while to start; until then they are there, and starting.
        board.set_flows(selection.flows)
        board.warnings = selection.settings.warnings
        board.config = selection.configuration.path

    def run(self) -> None:
        """Run the flows until `stop`, and take up what changes."""
        if self._stopping.is_set():
            return
        log.info("run_started", flows=[flow.name for flow in self._selection.flows])
        self._look_at_pauses()
        self._take_up(self._selection)
        while not self._stopping.is_set():
            self._look.wait(self._look_seconds)
            asked = self._look.is_set()
            self._look.clear()
            if not self._stopping.is_set():
                self._look_at_pauses()
                self._reload(asked=asked)
        self.stop()
        for loop in (*self._ending.values(), *self._loops.values()):
            loop.join()

    def stop(self) -> None:
        """No further cycle begins; `run` ends with the last that runs."""
        self._stopping.set()
        self._look.set()
        for loop in list(self._loops.values()):
            loop.stop()

    def reload(self) -> None:
        """Look at the configuration now, and say what comes of it."""
        self._look.set()

    def alive(self) -> bool:
        """True where every flow's thread lives, and none has been in a cycle for much longer than
        its limit. Says nothing of Kafka, and waits for nothing."""
        return all(loop.alive() and not loop.hung() for loop in list(self._loops.values()))

    # --- Controls -------------------------------------------------------------------------

    def pause(self, flow: str) -> None:
        """As `Controls.pause`; with `state.dir` it outlives the process."""
        self._set_paused(flow, True)

    def resume(self, flow: str) -> None:
        """As `Controls.resume`."""
        self._set_paused(flow, False)

    def sync_now(self, flow: str) -> None:
        """As `Controls.sync_now`."""
        self._selection.flow(flow)
        # One that has not begun yet begins with a cycle.
        if (loop := self._loops.get(flow)) is not None:
            loop.sync_now()
        log.info("sync_asked", flow=flow)

    def lead(self, flow: str) -> Lead:
        """As `Controls.lead`."""
        settings = self._selection.flow(flow)
        loop = self._loops.get(flow)
        # One that has not begun yet takes no part in its election.
        return Lead(here=not settings.leader_election) if loop is None else loop.lead()

    def _set_paused(self, flow: str, paused: bool) -> None:
        self._selection.flow(flow)
        self._pauses.set(flow, paused)
        if (loop := self._loops.get(flow)) is not None:
            loop.hold(paused=paused)

    # --- a configuration that changes -------------------------------------------------------

    @property
    def _look_seconds(self) -> float:
        return seconds_between_looks(self._selection.settings.state_dir)

    def _look_at_pauses(self) -> None:
        self._pauses.look([flow.name for flow in self._selection.flows])
        for name, loop in list(self._loops.items()):
            loop.hold(paused=self._pauses.paused(name))

    def _reload(self, *, asked: bool) -> None:
        try:
            if not (asked or self._rejected or self._selector.has_changed(self._selection)):
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
        self._take_up(selection)
        waiting = _for_the_next_start(self._first, selection)
        flows = [flow.name for flow in selection.flows]
        log.info("configuration_loaded", flows=flows, after_a_restart=waiting)
        if not flows:
            log.warning(
                "no_flow_enabled", message="no flow is enabled any more; all flows are stopped"
            )

    def _take_up(self, selection: Selection) -> None:
        with self._lock:
            self._selection = selection
            self._board.warnings = (
                *(
                    f"{key}: takes effect after a restart"
                    for key in _for_the_next_start(self._first, selection)
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
                    # Its last cycle in another life may not be over yet.
                    loop = loops[flow.name] = self._loop(flow, selection)
                    loop.configure(selection)
                    loop.hold(paused=self._pauses.paused(flow.name))
                    loop.start(after=ending.pop(flow.name, None))
                else:
                    loop.configure(selection)
            # As wholes: others look at them without the lock.
            self._loops, self._ending = loops, ending

    def _loop(self, flow: FlowSettings, selection: Selection) -> FlowLoop:
        if not flow.commits:
            log.warning("flow_only_planned", flow=flow.name, message=only_planned(flow))
        return FlowLoop(
            flow.name,
            selection,
            self._cycles,
            self._board,
            observers=self._observers,
            peers=self._peers(flow),
            last_known=self._last_known,
            numbers=self._numbers[flow.name],
        )


def _for_the_next_start(first: Selection, now: Selection) -> list[str]:
    """The keys of which another value than that of the start has no effect yet."""
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
            keys.append(f"{flow.name}: what its election knows of cluster {flow.target.alias}")
    if first.settings.state_dir != now.settings.state_dir:
        keys.append("state.dir, for pauses and for what other instances are told,")
    if len(now.flows) > len(first.flows):
        keys.append("a part of Spark for each further flow")
    return keys
