"""`tsoffset run`: the daemon with its server, history and metrics."""

import os
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from tsoffset.commands.options import SELECTION, command
from tsoffset.commands.scope import warn_of_no_match
from tsoffset.logs import LogLevel
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output

if TYPE_CHECKING:
    import pyarrow as pa

    from tsoffset.config.selection import Selection, Selector
    from tsoffset.daemon.flow_loop import Peers
    from tsoffset.daemon.signals import Ending
    from tsoffset.flow.settings import FlowSettings

log = structlog.get_logger(__name__)

# How long the end waits for pending writes of the history. The loss of a cycle is harmless.
_HISTORY_SECONDS = 1.0


@command(
    "Run as a daemon: a cycle of each flow at every interval.",
    """\b
Examples:
  tsoffset run -c mm2.properties
  tsoffset run -c mm2.properties --log-format json

\b
Exit status:
  0  stopped by SIGTERM or Ctrl-C
  1  Spark could not be started
  2  bad usage or configuration""",
    *SELECTION,
    selects=False,
    log_level=LogLevel.INFO,
)
def run(_output: Output, notices: Notices, **options: Any) -> int:
    """Run as a daemon: a cycle of each flow at every interval.

    The interval is sync.group.offsets.interval.seconds. Each flow runs in its own thread, and all
    flows share one Spark session. A failed cycle is logged and does not stop the daemon; after two
    failures in a row, a cycle runs every second interval. A changed configuration file is loaded
    automatically, or immediately on SIGHUP. SIGTERM and Ctrl-C stop the daemon within ten seconds.
    """
    from tsoffset.config.selection import Selector
    from tsoffset.daemon.signals import Ending

    selector = Selector(**options)
    selection = selector.select()
    notices.configuration_warnings(selection.settings.warnings)
    warn_of_no_match(selection, notices)
    if run_daemon(selector, selection) is Ending.ABANDONED:
        # A thread hangs, so a normal exit would hang, too. Spark's JVM ends with this process.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    return 0


def run_daemon(selector: "Selector", selection: "Selection") -> "Ending":
    """Run cycles until SIGTERM or SIGINT. Raises the error if Spark cannot start, and
    ListenerError before the first cycle."""
    from tsoffset.daemon.cycles import SparkCycles
    from tsoffset.daemon.daemon import Daemon
    from tsoffset.daemon.election import Election
    from tsoffset.daemon.points import RecentCycles
    from tsoffset.daemon.signals import supervise
    from tsoffset.daemon.status import Board, Instance
    from tsoffset.history.reading import last_known
    from tsoffset.history.writing import HistoryWriter
    from tsoffset.metrics.collector import Metrics
    from tsoffset.server.application import application
    from tsoffset.server.listeners import advertised_url, serve
    from tsoffset.spark.sessions import Sessions

    sessions = Sessions.of(selection.settings.spark, len(selection.flows))
    board = Board(Instance.of_this_process())

    def peers(flow: "FlowSettings") -> "Peers | None":
        if not flow.leader_election:
            return None
        election = Election(flow, board.instance, target=lambda: daemon.settings(flow.name).target)
        election.start()
        return election

    metrics = Metrics(board, selection.settings.metrics)
    kept = selection.settings.history
    history = None if kept.directory is None else HistoryWriter(kept, board.instance)
    past = history or RecentCycles()

    def last_known_rows(flow: str) -> "tuple[pa.Table, float] | None":
        return None if kept.directory is None else last_known(kept.directory, flow)

    daemon = Daemon(
        selector,
        selection,
        partial(SparkCycles, sessions),
        board,
        observers=(metrics, past),
        peers=peers,
        last_known=last_known_rows,
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
    make_app = partial(
        application, server, board, daemon, past, metrics=metrics.render, alive=daemon.alive
    )
    with serve(server, make_app) as addresses:
        # Set before the flows begin, because they tell other instances this URL.
        board.instance = replace(board.instance, url=advertised_url(addresses))
        ending = supervise(work, stop=daemon.stop, cancel=sessions.cancel, hang_up=daemon.reload)
    log.info("run_stopped", ending=ending.value)
    return ending
