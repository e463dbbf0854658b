"""What a Spark task does: a step of a cycle, or all of it, in a worker process.

A task takes tables and gives tables, each as bytes (`tsoffset.cycle.cells`), and runs the step of
the same name in `tsoffset.cycle.steps`. It does not raise for what goes wrong with the data: what
it was to do becomes failed rows.
"""

import gc
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache

import polars as pl
import pyarrow as pa
import structlog

from tsoffset.cycle.carry_over import CarryOver
from tsoffset.cycle.cells import from_cell, to_cell
from tsoffset.cycle.known_logs import KnownLogs
from tsoffset.cycle.look import unread
from tsoffset.cycle.pipeline import (
    CycleTables,
    Looked,
    after_look,
    first_look,
    position_of_each,
    unknown_positions,
)
from tsoffset.cycle.source_commits import CompetingFlow, GroupWork
from tsoffset.cycle.steps import StepsHere
from tsoffset.cycle.values import (
    translations_table,
    work_of,
)
from tsoffset.cycle.work import Cost, TranslatedPosition
from tsoffset.group_sync.commit import failed_results
from tsoffset.kafka.clients import CLIENTS, Traffic
from tsoffset.logs import LogFormat, LogLevel, configure_logs, hide_secrets
from tsoffset.model import Failed, FailureKind, Side
from tsoffset.rule.translate import Translation
from tsoffset.spark.flow import FlowTask, ResolvedFlow
from tsoffset.spark.packing import PAIRS_IN_ONE_TASK
from tsoffset.spark.spent import Spent, Stage

log = structlog.get_logger(__name__)

_OBJECTS_BETWEEN_LOOKS = 50_000


@dataclass(frozen=True, slots=True)
class StepsInTask:
    """The steps of one cycle as they travel to the workers: `tsoffset.cycle.steps.Steps`, with
    failures made values.

    `cycle` is unique: a worker resolves the configuration once for each cycle, so that a secret
    that was changed holds from the next one on. `log_format` and `log_level` are how workers log.
    From `until` on (seconds since 1970 UTC) nothing is committed: a task that comes so late was
    given up. `translating` is how many tasks translate at once, and share the limits on what is
    read from the source. `tasks` is how many translate in all, and share `translation.verify`.
    `spent` is what these steps have taken so far.
    """

    task: FlowTask
    cycle: str
    commit: bool
    log_format: LogFormat
    log_level: LogLevel
    until: float | None = None
    translating: int = 1
    tasks: int = 1
    spent: Spent = field(default_factory=Spent)

    def logs(self, partitions: pa.Table) -> KnownLogs:
        """As `Steps.logs`; where that breaks nothing is known of any log."""
        try:
            with self._here(Stage.READ_COMMITS) as here:
                return here.logs(partitions)
        except Exception:
            log.exception("logs_broke", flow=self.task.flow)
            return KnownLogs.none()

    def look(self, groups: pa.Table, remembered: pa.Table, logs: pa.Table) -> pa.Table:
        """As `Steps.look`."""
        try:
            with self._here(Stage.READ_COMMITS) as here:
                return here.look(groups, remembered, logs)
        except Exception as error:
            names = ", ".join(groups["group"].to_pylist()[:3])
            failed = self._broken("read_broke", f"read commits of {names}", error)
            return unread(groups, remembered, failed)

    def translate(
        self, positions: pa.Table, partitions: pa.Table
    ) -> tuple[pa.Table, pa.Table, Cost]:
        """As `Steps.translate`."""
        try:
            with self._here(Stage.TRANSLATE) as here:
                before = Traffic.of(here.source)
                *found, cost = here.translate(positions, partitions)
                sent = Traffic.of(here.source) - before
                return *found, replace(cost, source_requests=sent.requests)
        except Exception as error:
            work = work_of(positions, {})
            what = f"translate positions of {work[0].source}"
            failed = Translation(self._broken("translation_broke", what, error))
            each = [
                TranslatedPosition(part.source, offset, failed)
                for part in work
                for offset in part.offsets
            ]
            return translations_table(each, [None] * len(each)), partitions, Cost()

    def decide_and_commit(self, work: pl.DataFrame) -> tuple[pl.DataFrame, Cost]:
        """As `Steps.decide_and_commit`."""
        try:
            with self._here(Stage.SETTLE) as here:
                return here.decide_and_commit(work)
        except Exception as error:
            what = f"settle group {work['group'][0]} and its neighbours"
            return failed_results(work, self._broken("settling_broke", what, error)), Cost()

    def whole(
        self,
        groups: Sequence[GroupWork],
        carry_over: CarryOver,
        most_rows: int,
        most_positions: int = PAIRS_IN_ONE_TASK,
    ) -> CycleTables | Looked:
        """All steps one after the other; only the first look where it finds more to translate than
        is good for one task, or more rows than may be told of."""
        looked = first_look(self, groups, carry_over)
        of_each = position_of_each(looked.commits)
        positions, _ = unknown_positions(looked.commits, of_each)
        if len(positions) > most_positions or len(looked.commits) > most_rows:
            return looked
        return after_look(self.task.flow, self, groups, carry_over, looked)

    @contextmanager
    def _here(self, stage: Stage) -> Iterator[StepsHere]:
        resolved = self._resolve()
        flow, connect = resolved.flow, self.task.connect
        with self.spent.on(stage), ExitStack() as leases:
            source = flow.source.shared_by(self.translating)
            yield StepsHere(
                replace(flow, translation=flow.translation.shared_by(self.tasks)),
                leases.enter_context(self.spent.lease(Side.SOURCE, connect, source)),
                leases.enter_context(self.spent.lease(Side.TARGET, connect, flow.target)),
                [
                    CompetingFlow(one, leases.enter_context(CLIENTS.lease(connect, one.source)))
                    for one in resolved.competing
                ],
                commit=self.commit,
                until=self.until,
            )

    def _resolve(self) -> ResolvedFlow:
        key = (self.cycle, self.task.flow)
        if key not in _resolved:
            if not structlog.is_configured():
                configure_logs(self.log_format, self.log_level)
            settings = self.task.resolve()
            _resolved.clear()
            _resolved[key] = settings
        return _resolved[key]

    def _broken(self, event: str, what: str, error: Exception) -> Failed:
        log.exception(event, flow=self.task.flow)
        cause = hide_secrets(f"{type(error).__name__}: {error}")
        return Failed(
            FailureKind.INTERNAL,
            f"{what}, process on {socket.gethostname()}: {cause}; see the log of that process",
        )


# What this worker resolved for the cycle that it works on.
_resolved: dict[tuple[str, str], ResolvedFlow] = {}


def run_step(steps: StepsInTask, step: str, cell: bytes) -> bytes:
    """A step on what lies in a cell: what it comes to, and what it has taken (Spent)."""
    _keep_what_is_imported()
    steps = replace(steps, spent=Spent())
    return to_cell((getattr(steps, step)(*from_cell(cell)), steps.spent))


@cache
def _keep_what_is_imported() -> None:
    """pyspark collects garbage after each task. To look each time through all that is imported,
    which stays, was more than half of a small task (60 ms); and to look for more after every 700
    objects a sixth of a large one."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_LOOKS)
