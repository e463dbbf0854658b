"""The work of a Spark task: one step of a cycle, or all steps, in a worker process.

A task receives and returns tables as bytes (`tsoffset.spark.cells`), and runs the step of the same
name in `tsoffset.group_sync.steps`. It raises no error of its step: the rows fail instead.
"""

import ctypes
import gc
import socket
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache

import polars as pl
import structlog

from tsoffset.cycle.source_commits import CompetingFlow, GroupWork
from tsoffset.cycle.work import Cost
from tsoffset.group_sync.cache import CachedTables
from tsoffset.group_sync.commit import failed_results
from tsoffset.group_sync.cycle import CycleTables, ReadGroups, after_read, read_groups
from tsoffset.group_sync.flow_cycle import FlowTask, ResolvedFlow, Spent, Stage
from tsoffset.group_sync.log_ranges import KnownLogs
from tsoffset.group_sync.steps import (
    DecidedTables,
    ReadTables,
    StepsHere,
    failed_translations,
    unread,
)
from tsoffset.group_sync.tables import (
    BROKEN,
    EPOCH_ENDS,
    PARTITION,
    SOURCE_TOPICS,
    TARGET_TOPICS,
    empty,
    semi_join,
)
from tsoffset.group_sync.translate import TranslatedTables
from tsoffset.kafka.clients import CLIENTS, Traffic
from tsoffset.logs import LogFormat, LogLevel, configure_logs, hide_secrets
from tsoffset.model import Failed, FailureKind, Side
from tsoffset.spark.cells import from_cell, to_cell
from tsoffset.spark.packing import POSITIONS_IN_ONE_TASK

log = structlog.get_logger(__name__)

_OBJECTS_BETWEEN_LOOKS = 50_000

# Parameters of glibc's mallopt, and what is kept: blocks of up to 32 MiB (it allows no more), and
# 128 MiB of freed memory at the end of its heap.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_KEPT_BYTES = 33_554_432
_KEPT_BYTES = 134_217_728


@dataclass(frozen=True, slots=True)
class StepsInTask:
    """`tsoffset.group_sync.steps.Steps` of one cycle, as they are sent to the workers. An error
    becomes failed rows.

    `cycle` is a unique id: a worker resolves the configuration once for each cycle, so a changed
    secret applies from the next cycle on. `log_format` and `log_level` are those of workers. From
    `until` on (seconds since 1970 UTC), nothing is committed, because Spark may have abandoned the
    task. `translating` is the number of tasks that translate at once and share the fetch limits of
    the source. `spent` is the cost of these steps so far.
    """

    task: FlowTask
    cycle: str
    commit: bool
    log_format: LogFormat
    log_level: LogLevel
    until: float | None = None
    translating: int = 1
    spent: Spent = field(default_factory=Spent)

    def log_ranges(self, partitions: pl.DataFrame) -> KnownLogs:
        """As `Steps.log_ranges`; after an error, no log is known."""
        try:
            with self._steps_here(Stage.READ_COMMITS) as here:
                return here.log_ranges(partitions)
        except BROKEN:
            log.exception("logs_broke", flow=self.task.flow)
            return KnownLogs.none()

    def source_logs(
        self, topics: Collection[str], epochs: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """As `Steps.source_logs`; after an error, nothing is known."""
        try:
            with self._steps_here(Stage.READ_COMMITS) as here:
                return here.source_logs(topics, epochs)
        except BROKEN:
            log.exception("logs_broke", flow=self.task.flow)
            return empty(SOURCE_TOPICS), empty(EPOCH_ENDS)

    def read(self, groups: pl.DataFrame, cached: pl.DataFrame, ranges: pl.DataFrame) -> ReadTables:
        try:
            with self._steps_here(Stage.READ_COMMITS) as here:
                return here.read(groups, cached, ranges)
        except BROKEN as error:
            names = ", ".join(groups["group"].head(3))
            failed = self._internal_failure(
                "read_broke", f"read committed offsets of {names}", error
            )
            return unread(groups, cached, failed)

    def translate(self, offsets: pl.DataFrame, partitions: pl.DataFrame) -> TranslatedTables:
        try:
            with self._steps_here(Stage.TRANSLATE) as here:
                before = Traffic.of(here.source)
                found, learned, sources, targets, cost = here.translate(offsets, partitions)
                requests = (Traffic.of(here.source) - before).requests
                return found, learned, sources, targets, replace(cost, source_requests=requests)
        except BROKEN as error:
            topic, number = offsets.row(0)[:2]
            what = f"translate offsets of {topic}-{number}"
            failed = self._internal_failure("translation_broke", what, error)
            kept = semi_join(partitions, offsets, PARTITION)
            topics = empty(SOURCE_TOPICS), empty(TARGET_TOPICS)
            return failed_translations(offsets, failed), kept, *topics, Cost()

    def decide_and_commit(self, work: pl.DataFrame, topics: pl.DataFrame) -> DecidedTables:
        try:
            with self._steps_here(Stage.SETTLE) as here:
                return here.decide_and_commit(work, topics)
        except BROKEN as error:
            what = f"commit offsets of group {work['group'][0]} and others"
            return failed_results(
                work, self._internal_failure("settling_broke", what, error)
            ), Cost()

    def whole(
        self,
        groups: Sequence[GroupWork],
        cache: CachedTables,
        most_rows: int,
        most_positions: int = POSITIONS_IN_ONE_TASK,
    ) -> CycleTables | ReadGroups:
        """Run all steps. If there are more than `most_positions` source offsets to translate, or
        more than `most_rows` rows, return what was read, and do no more."""
        found = read_groups(self, groups, cache)
        if len(found.to_translate()) > most_positions or len(found) > most_rows:
            return found
        return after_read(self.task.flow, self, cache, found)

    @contextmanager
    def _steps_here(self, stage: Stage) -> Iterator[StepsHere]:
        resolved = self._resolve()
        flow, connect = resolved.flow, self.task.connect
        with self.spent.on(stage), ExitStack() as leases:
            source = flow.source.shared_by(self.translating)
            yield StepsHere(
                flow,
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
        # In the driver, the threads of several flows replace each other's entry.
        settings = _resolved.get(key)
        if settings is None:
            if not structlog.is_configured():
                configure_logs(self.log_format, self.log_level)
            settings = self.task.resolve()
            _resolved.clear()
            _resolved[key] = settings
        return settings

    def _internal_failure(self, event: str, what: str, error: BaseException) -> Failed:
        log.exception(event, flow=self.task.flow)
        cause = hide_secrets(f"{type(error).__name__}: {error}")
        return Failed(
            FailureKind.INTERNAL,
            f"{what}, process on {socket.gethostname()}: {cause}; see the log of that process",
        )


# What this worker resolved for the cycle that it works on.
_resolved: dict[tuple[str, str], ResolvedFlow] = {}


def run_step(steps: StepsInTask, step: str, cell: bytes) -> bytes:
    """Run the step with the arguments in a cell. Returns a cell with its result and its Spent."""
    _keep_what_is_imported()
    keep_freed_memory()
    steps = replace(steps, spent=Spent())
    return to_cell((getattr(steps, step)(*from_cell(cell)), steps.spent))


@cache
def _keep_what_is_imported() -> None:
    """Exclude imported modules from garbage collection, and collect less often. pyspark collects
    after each task: searching all imported objects took more than half of a small task (60 ms), and
    collecting after every 700 new objects a sixth of a large one."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_LOOKS)


@cache
def keep_freed_memory() -> None:
    """Make glibc keep freed memory for the next arrays, which have megabytes and are soon freed. By
    default it returns such blocks to the system at once, and getting them back page by page took
    two fifths of the processor time of a large task. Other C libraries have no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
