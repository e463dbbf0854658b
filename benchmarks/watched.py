"""`python -m benchmarks.watched`: the cost of being observed, for a cycle.

Warm cycles of the daemon's own loop, one a second, in blocks of a quarter of a minute: alone, and
with metrics, REST API and history, while a page asks every 5 s and Prometheus scrapes every 15 s,
both from their own process. In turns, in one process and one Spark session. Processor time is that
of the driver, Java and the workers over a whole block, by cycle.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

from pyspark.sql import SparkSession

from benchmarks.cycles import cpu, cpu_since, session
from benchmarks.estates import FLOW, Clusters, Log, two_brokers
from benchmarks.measures import in_turns, ratio_spread, spread
from benchmarks.results import Result, options, run, shown
from tests.serving import Controls
from tsoffset.config.selection import Selector
from tsoffset.daemon.cycles import SparkCycles
from tsoffset.daemon.flow_loop import FlowLoop
from tsoffset.daemon.status import Board, Instance, Observer
from tsoffset.flow.settings import HistorySettings, ServerSettings
from tsoffset.history.writing import HistoryWriter
from tsoffset.metrics.collector import Metrics
from tsoffset.model import OutcomeKind
from tsoffset.server.application import application
from tsoffset.server.listeners import serve
from tsoffset.spark.sessions import Sessions

ESTATES = ((10, 10), (1_000, 20))
CYCLES, INTERVAL_SECONDS = 15, 1.0
# The requests of a page and of Prometheus, and when within a block.
PAGE = ("/api/v1/flows", "/api/v1/flows/A-%3EB", "/api/v1/flows/A-%3EB/groups")
PAGE_SECONDS = 5.0
_CLIENT = """
import sys, time, urllib.request
pause, base, *paths = sys.argv[1:]
number = 0
while True:
    for path in [*paths, *(["/metrics"] if number % 3 == 0 else [])]:
        with urllib.request.urlopen(base + path, timeout=30) as answer:
            answer.read()
    number += 1
    time.sleep(float(pause))
"""


def _measure(chosen: argparse.Namespace) -> Result:
    estates = ESTATES[:1] if chosen.quick else ESTATES
    found = []
    for groups, partitions in estates:
        log = Log(partitions, 2_000)
        with two_brokers() as clusters, session() as spark:
            clusters.write(log)
            clusters.commit(log.commits(groups))
            found.append(_of(spark, clusters, groups, partitions, chosen.runs))
    return {"interval_seconds": INTERVAL_SECONDS, "sizes": found}


def _of(spark: SparkSession, clusters: Clusters, groups: int, partitions: int, runs: int) -> Result:
    sessions = Sessions(lambda: nullcontext(spark))
    selection = Selector(clusters.flow_file().path, [FLOW]).select()

    def loop(board: Board, observers: Sequence[Observer] = ()) -> FlowLoop:
        board.set_flows(selection.flows)
        return FlowLoop(
            FLOW, selection, lambda news: SparkCycles(sessions, news), board, observers=observers
        )

    boards = {name: Board(Instance.of_this_process()) for name in ("alone", "watched")}
    metrics = Metrics(boards["watched"])
    history = HistoryWriter(
        HistorySettings(str(clusters.folder / "history")), boards["watched"].instance
    )
    loops = {
        "alone": loop(boards["alone"]),
        "watched": loop(boards["watched"], (metrics, history)),
    }

    def block(name: str) -> dict[str, float]:
        before, seconds = cpu(), []
        for number in range(CYCLES):
            began = time.monotonic()
            loops[name].cycle()
            seconds.append(time.monotonic() - began)
            _check(boards[name], groups * partitions, first=number == 0)
            time.sleep(max(0.0, began + INTERVAL_SECONDS - time.monotonic()))
        return {
            "seconds": statistics.median(seconds),
            "cpu_seconds": cpu_since(before)["cpu_seconds"] / CYCLES,
        }

    def watched() -> dict[str, float]:
        board = boards["watched"]
        server = ServerSettings(listeners=("http://127.0.0.1:0",))
        controls = Controls(board)
        make_app = partial(application, server, board, controls, history, metrics=metrics.render)
        with serve(server, make_app) as urls:
            words = (str(PAGE_SECONDS), *urls, *PAGE)
            asking = subprocess.Popen([sys.executable, "-c", _CLIENT, *words])
            try:
                return block("watched")
            finally:
                assert asking.poll() is None, "the client that asks has ended"
                asking.kill()
                asking.wait()

    works: dict[str, Callable[[], dict[str, float]]] = {
        "alone": lambda: block("alone"),
        "watched": watched,
    }
    for one in works.values():
        one()
    blocks = in_turns(works, 2 * runs)
    assert history.close(30)
    of = {
        key: {name: [one[key] for one in blocks[name]] for name in works}
        for key in ("seconds", "cpu_seconds")
    }
    ratios = {key: ratio_spread(both["watched"], both["alone"]) for key, both in of.items()}
    shown(f"{groups} x {partitions}", {key: value["median"] for key, value in ratios.items()})
    return {
        "size": f"{groups}x{partitions}",
        "groups": groups,
        "partitions": partitions,
        "cycles": CYCLES,
        **{
            key: {name: spread(values) for name, values in both.items()} for key, both in of.items()
        },
        "ratios": ratios,
    }


def _check(board: Board, pairs: int, *, first: bool) -> None:
    """The last cycle reached all pairs, and except the first found nothing to do."""
    status = board.status(FLOW)
    assert status is not None
    assert status.failures_in_a_row == 0, status.messages
    assert len(status.pairs) == pairs
    outcomes = {*status.pairs["outcome"].cast("string").to_pylist()}
    assert first or outcomes == {OutcomeKind.UNCHANGED}, outcomes


if __name__ == "__main__":
    run("watched", options("watched", __doc__), _measure)
