"""`tsoffset run`: the daemon with all that belongs to it."""

from dataclasses import replace

import pyarrow as pa
import structlog

from tsoffset.config.selection import Selection, Selector
from tsoffset.daemon.cycles import CycleLog, SparkCycles
from tsoffset.daemon.daemon import Daemon
from tsoffset.daemon.election import Election
from tsoffset.daemon.flow_loop import Peers
from tsoffset.daemon.points import RecentCycles
from tsoffset.daemon.signals import Ending, supervise
from tsoffset.daemon.status import Board, Instance
from tsoffset.flow.settings import FlowSettings
from tsoffset.history.reading import last_known_and_when
from tsoffset.history.writing import HistoryWriter
from tsoffset.metrics.collector import Metrics
from tsoffset.server.listeners import advertised_url, serve
from tsoffset.spark.sessions import Sessions

log = structlog.get_logger(__name__)

# For what is under way at the end; what is not written is lost, and harms nothing.
_HISTORY_SECONDS = 1.0


def run_daemon(selector: Selector, selection: Selection) -> Ending:
    """Run cycles until SIGTERM or SIGINT. Raises what keeps Spark from starting at all, and
    ListenerError before the first cycle."""
    sessions = Sessions.of(selection.settings.spark, len(selection.flows))
    board = Board(Instance.here())

    def cycles(news: CycleLog) -> SparkCycles:
        return SparkCycles(sessions, news)

    def peers(flow: FlowSettings) -> Peers | None:
        if not flow.leader_election:
            return None
        election = Election(flow, board.instance)
        election.start()
        return election

    metrics = Metrics(board, selection.settings.metrics)
    kept = selection.settings.history
    history = None if kept.directory is None else HistoryWriter(kept, board.instance)
    past = history or RecentCycles()

    def known(flow: str) -> tuple[pa.Table, float] | None:
        return None if kept.directory is None else last_known_and_when(kept.directory, flow)

    daemon = Daemon(
        selector,
        selection,
        cycles,
        board,
        observers=(metrics, past),
        peers=peers,
        last_known=known,
    )

    def work() -> None:
        try:
            sessions.start()
            daemon.run()
        finally:
            if history is not None and not history.close(_HISTORY_SECONDS):
                log.warning("history_abandoned", waited_seconds=_HISTORY_SECONDS)
            sessions.close()

    server = selection.settings.server
    with serve(
        server, board, daemon, past, metrics=metrics.render, alive=daemon.alive
    ) as addresses:
        # Before the flows begin, which tell other instances of it.
        board.instance = replace(board.instance, url=advertised_url(addresses))
        ending = supervise(work, stop=daemon.stop, cancel=sessions.cancel, hang_up=daemon.reload)
    log.info("run_stopped", ending=ending.value)
    return ending
