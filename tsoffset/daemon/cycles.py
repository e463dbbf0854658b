"""Running the cycles of one flow on Spark, and logging their warnings."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import structlog

from tsoffset.config.selection import Selection
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.flow_cycle import CycleResult, FlowTask
from tsoffset.group_sync.rows import Rows
from tsoffset.group_sync.state import FlowCache, StateFile, reverse_commits
from tsoffset.model import FailureKind, OutcomeKind, Reason, Row
from tsoffset.spark.dataflow import run_cycle
from tsoffset.spark.sessions import Sessions

log = structlog.get_logger(__name__)

_MESSAGES_PER_CYCLE = 20
_REMINDER_SECONDS = 600.0
_RowKey = tuple[Reason | FailureKind | None, str | None, str | None, int | None]
# Skips that an operator has to resolve. Others end by themselves, or are intended.
_TO_RESOLVE = (
    Reason.SEVERAL_SOURCES,
    Reason.TARGET_REWRITES_TIMESTAMPS,
    Reason.DIVERGED,
    Reason.TARGET_PAST_LOG_END,
    Reason.SOURCE_REWOUND,
    Reason.TARGET_REWOUND,
)


class CycleLog:
    """Logs each warning of a flow once, until it no longer occurs. If no cycle has a result, the
    cause is repeated every ten minutes."""

    def __init__(self, flow: str, now: Callable[[], float] = time.monotonic) -> None:
        self._flow = flow
        self._now = now
        self._warnings: frozenset[str] = frozenset()
        self._rows: frozenset[_RowKey] = frozenset()
        # When rows were last logged, and when the message of each event was.
        self._rows_at = now()
        self._told: dict[str, tuple[str | None, float]] = {}

    def report(self, result: CycleResult) -> None:
        """Log the warnings, and the rows that need attention, which the previous cycle did not
        have."""
        self._log_warnings(result.warnings)
        now = self._now()
        if result.unreachable and now - self._rows_at >= _REMINDER_SECONDS:
            self._rows = frozenset()
        if self._log_rows(Rows(_needing_attention(result.rows.table))):
            self._rows_at = now

    def warn(self, event: str, message: str | None) -> None:
        """Log the message, if more than its duration has changed or if it was logged ten minutes
        ago; None: the problem is gone."""
        now, (told, at) = self._now(), self._told.get(event, (None, 0.0))
        # As in "connect to cluster B (2.4 s): ...".
        new = message and re.sub(r" \([\d.]+ s\)", "", message)
        if new is not None and (told != new or now - at >= _REMINDER_SECONDS):
            log.warning(event, flow=self._flow, message=message)
            at = now
        self._told[event] = new, at

    def _log_warnings(self, warnings: Sequence[str]) -> None:
        for warning in dict.fromkeys(warnings):
            if warning not in self._warnings:
                log.warning("cycle_warning", flow=self._flow, message=warning)
        self._warnings = frozenset(warnings)

    def _log_rows(self, rows: Iterable[Row]) -> bool:
        """False if there is nothing new."""
        found = [(_key(row), row) for row in rows]
        new = Counter((row.reason, row.message) for key, row in found if key not in self._rows)
        self._rows = frozenset(key for key, _ in found)
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
        return bool(new)


def _needing_attention(rows: pa.Table) -> pa.Table:
    outcome, reason = (rows[name].cast(pa.string()) for name in ("outcome", "reason"))
    remedied = pc.is_in(reason, value_set=pa.array(_TO_RESOLVE, pa.string()))
    return rows.filter(pc.or_(pc.equal(outcome, OutcomeKind.FAILED), remedied))


class SparkCycles:
    """Runs the cycles of one flow on Spark. Keeps their cached translations in memory, and in
    `state.dir`."""

    def __init__(self, sessions: Sessions, log_of_flow: CycleLog) -> None:
        self._sessions = sessions
        self._log = log_of_flow
        self._cache = FlowCache()
        self._is_old = True

    def read_state_again(self) -> None:
        """Before the next cycle: another process may run the flow until then."""
        self._is_old = True

    def run(self, selection: Selection, flow: FlowSettings) -> CycleResult:
        """Run one cycle. Raises CycleFailed, and errors of Spark's start."""
        deadline = time.monotonic() + flow.longest_cycle_seconds
        task = FlowTask(selection.configuration, flow.name, selection.narrowing)
        directory = selection.settings.state_dir
        file = None if directory is None else StateFile.of(directory, flow, selection.narrowing)
        cache = self._load(file)
        flows = selection.settings.flows
        cache.reverse = reverse_commits(directory, flow, flows, cache.reverse)
        with self._sessions.lease() as session:
            result = run_cycle(
                session,
                task,
                commit=flow.commits,
                cache=cache,
                # Another instance may lead by now if the state or Spark was waited for too long.
                limit_seconds=deadline - time.monotonic(),
                other_flows=len(selection.flows) - 1,
            )
        if result.groups:
            # A cycle that ended before it used Spark does not show that the session works.
            self._sessions.ended_well()
        if file is not None:
            self._log.warn("state_not_written", file.save(cache))
        return result

    def _load(self, file: StateFile | None) -> FlowCache:
        if self._is_old and file is not None:
            found, warning = file.load()
            self._log.warn("state_not_read", warning)
            # Without a file, and if the cycles are narrowed and so never written, what is cached is
            # the newest state there is.
            is_first = self._cache.binding is None
            if found.binding is not None and (is_first or file.only is None):
                self._cache = replace(found, reverse=self._cache.reverse)
        self._is_old = False
        return self._cache


def _key(row: Row) -> _RowKey:
    """Identifies a row among those that were logged. Messages are not compared, because they may
    contain numbers that change; for a row without a group, the beginning of its message is, which
    names the cluster."""
    group = row.group
    if group is None and row.message is not None:
        # As in "connect to cluster B (2.4 s): ...".
        group = re.split("[(:]", row.message, maxsplit=1)[0]
    return row.reason, group, row.source_topic, row.partition
