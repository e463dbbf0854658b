"""One cycle of a flow on Spark, from groups to commits.

The driver lists and filters the groups, and reads the log ranges of cached partitions. Tasks run
the other steps (`tsoffset.group_sync.cycle`). A small cycle is one task. In a larger one, each step
is a job: the driver joins the results of the previous step, and sends each task only its own rows.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import structlog
from pyspark.sql import SparkSession

from tsoffset.cluster import Cluster
from tsoffset.cycle.cache_update import describe_topics
from tsoffset.cycle.source_commits import GroupWork, Preflight, preflight
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import LOOP_REMEDY, FlowSettings, looped_topics
from tsoffset.group_sync.arrow_tables import as_arrow, concat_rows
from tsoffset.group_sync.cache import CachedTables, with_reverse
from tsoffset.group_sync.cycle import CycleTables, ReadGroups, after_read, cycle_tables
from tsoffset.group_sync.flow_cycle import (
    CycleResult,
    FlowTask,
    ResolvedFlow,
    Spent,
    Stage,
    unreachable_cycle,
)
from tsoffset.group_sync.replication import replication
from tsoffset.group_sync.rows import ROWS, Rows, failed_row, rows_table
from tsoffset.group_sync.state import FlowCache
from tsoffset.model import GroupListings, GroupType, Side, TopicDescription, TopicPartition
from tsoffset.rule.partition_cache import binding
from tsoffset.spark import packing
from tsoffset.spark.jobs import Jobs, Progress
from tsoffset.spark.jvm import worker_logs
from tsoffset.spark.steps import SparkSteps
from tsoffset.spark.tasks import StepsInTask

log = structlog.get_logger(__name__)


def run_cycle(
    session: SparkSession,
    task: FlowTask,
    *,
    commit: bool,
    cache: FlowCache | None = None,
    progress: Progress | None = None,
    limit_seconds: float | None = None,
    other_flows: int = 0,
) -> CycleResult:
    """Run one cycle of a flow. It commits only with `commit`, and only if the flow's sync is on.

    `cache` is updated in place. `other_flows` is the number of other flows that use the
    session. Raises ConfigurationError and UsageError if the flow cannot be resolved, CycleFailed if
    Spark fails, and CycleOverLimit after `limit_seconds`. An unreachable cluster is a failed row.
    """
    # Arrow still keeps the memory of the previous cycle's rows.
    pa.default_memory_pool().release_unused()
    cycle = _Cycle.of(task, cache, progress)
    jobs = Jobs(session, task.flow, progress)

    def whole() -> tuple[Preflight, CycleTables]:
        start = cycle.list_groups()
        steps = cycle.on_spark(session, jobs, commit=commit, other_flows=other_flows)
        return start, cycle.spread(steps, start.groups)

    if limit_seconds is not None:
        limit_seconds -= cycle.seconds
    try:
        start, done = jobs.run(whole, limit_seconds)
    except ClusterUnreachable as error:
        return unreachable_cycle(cycle.flow, error, cycle.seconds, cycle.spent)
    return cycle.result(start, done)


def plan_cycle(
    session: Callable[[], SparkSession],
    task: FlowTask,
    *,
    cache: FlowCache | None = None,
    progress: Progress | None = None,
) -> CycleResult:
    """Run one cycle that commits nothing. It runs in this process, without Spark, unless it has
    more than `packing.PAIRS_HERE` group-partitions or `packing.POSITIONS_HERE` source offsets to
    translate. `session` starts Spark. Otherwise as `run_cycle`.
    """
    cycle = _Cycle.of(task, cache, progress)
    try:
        start = cycle.list_groups()
        done = cycle.whole_here(start.groups)
        if not isinstance(done, CycleTables):
            cycle.notify("start Spark", 0, 1)
            spark = session()
            jobs = Jobs(spark, task.flow, progress)
            steps = cycle.on_spark(spark, jobs, commit=False)
            done = jobs.run(lambda: cycle.spread(steps, start.groups))
    except ClusterUnreachable as error:
        return unreachable_cycle(cycle.flow, error, cycle.seconds, cycle.spent)
    return cycle.result(start, done)


@dataclass(frozen=True, slots=True)
class _Cycle:
    """The driver's part of one cycle."""

    task: FlowTask
    resolved: ResolvedFlow
    cache: FlowCache
    notify: Progress
    started: float
    spent: Spent = field(default_factory=Spent)

    @classmethod
    def of(cls, task: FlowTask, cache: FlowCache | None, progress: Progress | None) -> "_Cycle":
        """Raises ConfigurationError and UsageError."""
        started = time.perf_counter()
        if cache is None:
            cache = FlowCache()
        return cls(task, task.resolve(), cache, progress or (lambda *_: None), started)

    @property
    def flow(self) -> FlowSettings:
        return self.resolved.flow

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    # --- groups -----------------------------------------------------------------------------

    def list_groups(self) -> Preflight:
        started = time.perf_counter()
        self.notify("list groups", 0, 1)
        with (
            self.spent.on(Stage.LIST_GROUPS),
            self._lease(Side.SOURCE) as source,
            self._lease(Side.TARGET) as target,
        ):
            start = self._preflight(source, target)
        self.notify("list groups", 1, 1)
        seconds = round(time.perf_counter() - started, 3)
        log.debug("groups_listed", flow=self.flow.name, groups=len(start.groups), seconds=seconds)
        return start

    def _lease(self, side: Side) -> AbstractContextManager[Cluster]:
        settings = self.flow.source if side is Side.SOURCE else self.flow.target
        return self.spent.lease(side, self.task.connect, settings)

    def _preflight(self, source: Cluster, target: Cluster) -> Preflight:
        """The groups to sync. The source's groups are listed once per refresh interval, those of
        the target in each cycle."""
        flow = self.flow
        start = preflight(flow, source, target, list_groups=partial(self._listing, source))
        if not self.cache.bind(binding(flow, start.cluster_ids)):
            start = self._preflight(source, target)
            warning = (
                f"flow {flow.name}: the cached translations are from other clusters or settings, "
                "or from another version of tsoffset; they are dropped, and this cycle translates "
                "every offset again"
            )
            return replace(start, warnings=(*start.warnings, warning))
        return start

    def _listing(self, source: Cluster) -> GroupListings:
        flow, known = self.flow, self.cache
        now = time.monotonic()
        if known.listing is not None and not known.listing.failures and known.listed_at is not None:
            age = now - known.listed_at
            if not flow.refresh_groups_enabled or age < flow.refresh_groups_interval_seconds:
                return known.listing
        return known.keep_listing(source.groups(), now)

    # --- steps ------------------------------------------------------------------------------

    def _cached_tables(self) -> CachedTables:
        cache = self.cache
        return CachedTables(with_reverse(cache.pairs, cache.reverse), cache.partitions)

    def _in_tasks(self, *, commit: bool) -> StepsInTask:
        return StepsInTask(
            self.task,
            uuid.uuid4().hex,
            commit and self.flow.commits,
            *worker_logs(),
            spent=self.spent,
        )

    def whole_here(self, groups: Sequence[GroupWork]) -> CycleTables | ReadGroups | None:
        """The cycle of these groups in this process, without commits. None if there are too many
        group-partitions for it; only what was read if there are too many offsets to translate."""
        if not packing.fits(len(groups), self.cache.rows, packing.PAIRS_HERE):
            return None
        self.notify("sync groups", 0, 1)
        done = self._in_tasks(commit=False).whole(
            groups, self._cached_tables(), packing.PAIRS_HERE, packing.POSITIONS_HERE
        )
        self.notify("sync groups", 1, 1)
        return done

    def on_spark(
        self, session: SparkSession, jobs: Jobs, *, commit: bool, other_flows: int = 0
    ) -> SparkSteps:
        listing = self.cache.listing
        listed = () if listing is None else listing.groups.values()
        return SparkSteps(
            session,
            jobs,
            self._in_tasks(commit=commit),
            coordinators={one.group: one.coordinator for one in listed},
            leaders=self._leaders,
            most_tasks=self.flow.tasks_max,
            most_reads=self.flow.source.fetch_max_in_flight,
            other_flows=other_flows,
        )

    def _leaders(self, topics: set[str]) -> Mapping[TopicPartition, int | None]:
        """The leaders of the source's partitions, as far as they are known. They only decide which
        partitions share a task."""
        with self._lease(Side.SOURCE) as source:
            described = describe_topics(source, topics)
        return {
            TopicPartition(topic, number): partition.leader
            for topic, description in described.items()
            if isinstance(description, TopicDescription)
            for number, partition in description.partitions.items()
        }

    def spread(self, steps: SparkSteps, groups: Sequence[GroupWork]) -> CycleTables:
        """The cycle of these groups, in one task or in many."""
        name = self.flow.name
        if not groups:
            return after_read(name, steps, CachedTables(), ReadGroups.none())
        cached = self._cached_tables()
        if not packing.fits(len(groups), self.cache.rows, packing.PAIRS_IN_ONE_TASK):
            return cycle_tables(name, steps, groups, cached)
        done = steps.whole(groups, cached)
        if isinstance(done, ReadGroups):
            done = after_read(name, steps, cached, done)
        return done

    # --- result -----------------------------------------------------------------------------

    def result(self, start: Preflight, done: CycleTables) -> CycleResult:
        """The result of the cycle; updates `cache`."""
        cache = self.cache
        cache.learn(done.cache)
        cache.rows = len(done.rows)
        rows = as_arrow(done.rows, ROWS)
        failures = rows_table(failed_row(self.flow.name, failure) for failure in start.failures)
        return CycleResult(
            flow=self.flow.name,
            rows=Rows(concat_rows([failures, rows])),
            warnings=(*start.warnings, *self._warnings(rows)),
            unreachable=False,
            seconds=self.seconds,
            groups=len(start.groups),
            positions=done.positions,
            cost=done.cost,
            spent=self.spent,
            replication=replication(cache.partitions),
            share_groups=frozenset(g.group for g in start.groups if g.type is GroupType.SHARE),
        )

    def _warnings(self, rows: pa.Table) -> Iterator[str]:
        flow, reverse = self.resolved.flow, self.resolved.reverse
        if flow.translation.proof == "timestamps":
            yield (
                f"flow {flow.name}: translation.proof = timestamps proves nothing, so re-reads "
                "have no bound and records can be skipped; content is the default"
            )
        topics = set(rows["source_topic"].unique().to_pylist()) - {None}
        looped = looped_topics(flow, reverse, topics)
        if reverse is not None and looped:
            yield (
                f"flows {flow.name} and {reverse.name} both select {', '.join(looped[:3])}"
                f"{' and others' if len(looped) > 3 else ''} under the same name: a replicator in "
                f"both directions copies each record endlessly; {LOOP_REMEDY}"
            )
