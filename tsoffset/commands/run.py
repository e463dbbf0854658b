"""`tsoffset run`: the cycles of the daemon, and what its log says of them."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from threading import Event
from typing import TYPE_CHECKING, Self

import structlog

from tsoffset.commands.daemon import Ending, serve, supervise
from tsoffset.commands.plan_sync import in_fields
from tsoffset.commands.selection import Selection, only_planned
from tsoffset.errors import TsoffsetError
from tsoffset.model import FailureKind, OutcomeKind, Reason, Row

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from tsoffset.spark.flow import CycleResult, FlowCarryOver
    from tsoffset.spark.state import StateFile

log = structlog.get_logger(__name__)

_MESSAGES_PER_CYCLE = 20
_RowNews = tuple[Reason | FailureKind | None, str | None, str | None, int | None]
# Skips that an operator has to end; the others pass with time or are as they should be.
_TO_BE_REMEDIED = (
    Reason.SEVERAL_SOURCES,
    Reason.TARGET_REWRITES_TIMESTAMPS,
    Reason.DIVERGED,
    Reason.TARGET_PAST_LOG_END,
    Reason.SOURCE_REWOUND,
)


class SparkBackend:
    """Cycles in one Spark session, which may die and be opened anew, with a carry-over of each
    flow, which `state.dir` keeps for the next process."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._stack = ExitStack()
        self._session: SparkSession | None = None
        self._carry_overs: dict[str, FlowCarryOver] = {}
        self._told: dict[tuple[str, str], str | None] = {}

    def open(self) -> None:
        """Start Spark, after what is left of an earlier session is gone."""
        from tsoffset.spark.session import spark_session

        self.close()
        settings = self._selection.settings.spark
        self._session = self._stack.enter_context(spark_session(settings, keep_workers=True))

    def alive(self) -> bool:
        """Ask the session's JVM whether it still runs."""
        from tsoffset.spark.jobs import is_alive

        return self._session is not None and is_alive(self._session)

    def cycle(self, flow: str, *, commit: bool) -> "CycleResult":
        """One cycle, with what the driver remembers of the flow. Raises CycleFailed."""
        from tsoffset.spark.dataflow import run_cycle
        from tsoffset.spark.flow import FlowTask

        assert self._session is not None
        task = FlowTask(self._selection.configuration, flow, self._selection.narrowing)
        carry_over = self._carry_over(flow)
        result = run_cycle(self._session, task, commit=commit, carry_over=carry_over)
        if (file := self._state_file(flow)) is not None:
            self._warn("state_not_written", flow, file.save(carry_over))
        return result

    def _carry_over(self, flow: str) -> "FlowCarryOver":
        from tsoffset.spark.flow import FlowCarryOver

        if flow not in self._carry_overs:
            self._carry_overs[flow] = FlowCarryOver()
            if (file := self._state_file(flow)) is not None:
                self._carry_overs[flow], warning = file.load()
                self._warn("state_not_read", flow, warning)
        return self._carry_overs[flow]

    def _state_file(self, flow: str) -> "StateFile | None":
        from tsoffset.spark.state import StateFile

        directory = self._selection.settings.state_dir
        return None if directory is None else StateFile(directory, flow, self._selection.narrowing)

    def _warn(self, event: str, flow: str, message: str | None) -> None:
        """Say it once, until it has gone away."""
        if message is not None and self._told.get((event, flow)) != message:
            log.warning(event, flow=flow, message=message)
        self._told[event, flow] = message

    def cancel(self) -> None:
        """Cancel Spark's jobs; called from another thread."""
        session = self._session
        if session is not None:
            try:
                session.sparkContext.cancelAllJobs()
            except Exception as error:
                log.debug("cancel_failed", error=f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Stop the session; what a dead one says to that does not matter."""
        self._session = None
        try:
            self._stack.close()
        except Exception as error:
            log.debug("session_close_failed", error=f"{type(error).__name__}: {error}")


class Cycles:
    """The cycles of `run`, and their log."""

    def __init__(
        self,
        selection: Selection,
        backend: SparkBackend,
        *,
        stopping: Callable[[], bool],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._flows = {flow.name: flow for flow in selection.flows}
        self._backend = backend
        self._stopping = stopping
        self._now = now
        self._news = {flow: _News(flow) for flow in self._flows}

    def __enter__(self) -> Self:
        """Make the first session; what keeps it from being made ends `run`."""
        self._backend.open()
        return self

    def __exit__(self, *_: object) -> None:
        self._backend.close()

    def cycle(self, name: str) -> None:
        """One cycle of a flow; whatever goes wrong is logged, and the next one is tried."""
        from tsoffset.spark.flow import Rows
        from tsoffset.terminal.row_columns import tally_of

        flow = self._flows[name]
        started = self._now()
        log.info("cycle_started", flow=name, commits=flow.commits)
        try:
            if not self._backend.alive():
                log.warning("session_replaced", flow=name)
                self._backend.open()
            result = self._backend.cycle(name, commit=flow.commits)
        except Exception as error:
            self._failed(name, error, self._now() - started)
            return
        table = result.rows.table
        self._news[name].tell(result.warnings, Rows(_needing_attention(table)))
        tally = tally_of(table)
        taken = self._now() - started
        fields = in_fields(result, tally, commits=flow.commits, seconds=taken)
        log.info("cycle_finished", **fields)
        if taken > flow.sync_interval_seconds:
            log.warning(
                "interval_exceeded",
                flow=name,
                seconds=round(taken, 1),
                interval_seconds=flow.sync_interval_seconds,
            )

    def _failed(self, flow: str, error: Exception, seconds: float) -> None:
        if self._stopping():
            log.info("cycle_ended_by_stop", flow=flow)
            return
        ours = isinstance(error, TsoffsetError)
        dead = not self._backend.alive()
        log.error(
            "cycle_failed",
            flow=flow,
            error=_in_words(error, dead=dead),
            session_died=dead,
            seconds=round(seconds, 3),
            # What a dying Spark raises says nothing more; anything else is a mistake of ours.
            exc_info=None if ours or dead else error,
        )


class _News:
    """What a flow's cycles have to say, each thing once until it has gone away."""

    def __init__(self, flow: str) -> None:
        self._flow = flow
        self._warnings: frozenset[str] = frozenset()
        self._rows: frozenset[_RowNews] = frozenset()

    def tell(self, warnings: Sequence[str], rows: Iterable[Row]) -> None:
        """Log what the last cycle of the flow did not say, of rows that need attention."""
        for warning in dict.fromkeys(warnings):
            if warning not in self._warnings:
                log.warning("cycle_warning", flow=self._flow, message=warning)
        self._warnings = frozenset(warnings)
        # By what a row is about, not by its words: these may hold numbers that move.
        found = {(row.reason, row.group, row.source_topic, row.partition): row for row in rows}
        new = Counter(
            (row.reason, row.message) for key, row in found.items() if key not in self._rows
        )
        self._rows = frozenset(found)
        for (reason, message), number in list(new.items())[:_MESSAGES_PER_CYCLE]:
            log.warning(
                "rows_need_attention",
                flow=self._flow,
                reason=reason,
                rows=number,
                message=message,
            )
        if (more := len(new) - _MESSAGES_PER_CYCLE) > 0:
            log.warning("further_messages_left_out", flow=self._flow, messages=more)


def _needing_attention(rows: "pa.Table") -> "pa.Table":
    """The rows that failed, and the skips that an operator has to end."""
    import pyarrow as pa
    import pyarrow.compute as pc

    outcome, reason = (rows[name].cast(pa.string()) for name in ("outcome", "reason"))
    remedied = pc.is_in(reason, value_set=pa.array(_TO_BE_REMEDIED, pa.string()))
    return rows.filter(pc.or_(pc.equal(outcome, OutcomeKind.FAILED), remedied))


def run_daemon(selection: Selection) -> Ending:
    """Run cycles until SIGTERM or SIGINT. Raises what keeps Spark from starting at all."""
    backend = SparkBackend(selection)
    for flow in selection.flows:
        if not flow.commits:
            log.warning("flow_only_planned", flow=flow.name, message=only_planned(flow))

    def work(stop: Event) -> None:
        log.info("run_started", flows=[flow.name for flow in selection.flows])
        with Cycles(selection, backend, stopping=stop.is_set) as cycles:
            intervals = {flow.name: flow.sync_interval_seconds for flow in selection.flows}
            serve(intervals, cycles.cycle, wait=stop.wait)

    ending = supervise(work, backend.cancel)
    log.info("run_stopped", ending=ending.value)
    return ending


def _in_words(error: Exception, *, dead: bool) -> str:
    if isinstance(error, TsoffsetError):
        return str(error)
    words = f"{type(error).__name__}: {error}"
    return f"Spark has died ({words}); the next cycle starts a new session" if dead else words
