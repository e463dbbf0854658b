"""One cycle of a flow on Spark, from groups to commits.

The driver lists and filters the groups and reads the ranges of cached logs;
tasks do the rest, as `tsoffset.group_sync.cycle` says. A small cycle is one task. In a larger one
each step is a job of its own, and between two the driver sees to it that what travels is what the
next one needs, once, in packed tables.
"""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import structlog
from pyspark.sql import SparkSession

from tsoffset.cluster import Cluster, all_failed
from tsoffset.cycle.replication import replication
from tsoffset.cycle.schema import joined
from tsoffset.cycle.source_commits import GroupWork, Preflight, preflight
from tsoffset.cycle.values import failed_row, rows_table
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.loops import REMEDY, looped_topics
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync import rows as frames
from tsoffset.group_sync.cache import CarryOver
from tsoffset.group_sync.cycle import CycleTables, ReadGroups, after_read, cycle_tables
from tsoffset.group_sync.state import FlowCarryOver
from tsoffset.model import GroupListings, GroupType, Side, TopicDescription, TopicPartition
from tsoffset.rule.carry_over import binding
from tsoffset.spark import packing
from tsoffset.spark.flow import CycleResult, FlowTask, ResolvedFlow, Rows
from tsoffset.spark.jobs import Jobs, Progress
from tsoffset.spark.spent import Spent, Stage
from tsoffset.spark.steps import SparkSteps
from tsoffset.spark.tasks import StepsInTask
from tsoffset.spark.worker_logs import worker_logs

log = structlog.get_logger(__name__)


def run_cycle(
    session: SparkSession,
    task: FlowTask,
    *,
    commit: bool,
    carry_over: FlowCarryOver | None = None,
    progress: Progress | None = None,
    limit_seconds: float | None = None,
    other_flows: int = 0,
) -> CycleResult:
    """Run one cycle of a flow; with `commit` (and unless the flow's syncing is turned off)
    target groups are moved.

    `carry_over` is brought up to date. `progress` is told the stage, and how many of how many
    tasks are done. The cycle ends after `limit_seconds`. `other_flows` run in the session at
    the same time. Raises ConfigurationError and UsageError for what cannot be run at all,
    CycleFailed where Spark gave up and CycleOverLimit; a cluster that cannot be reached is a failed
    row.
    """
    started = time.perf_counter()
    # Arrow keeps the memory that the rows of the cycle before took.
    pa.default_memory_pool().release_unused()
    carry_over = FlowCarryOver() if carry_over is None else carry_over
    resolved = task.resolve()
    flow, spent = resolved.flow, Spent()
    jobs = Jobs(session, flow.name, progress)

    def whole() -> tuple[Preflight, CycleTables]:
        start = _listed(task, flow, carry_over, spent, progress)
        steps = _on_spark(session, jobs, task, flow, carry_over, spent, commit, other_flows)
        return start, _spread(flow, steps, start.groups, carry_over)

    if limit_seconds is not None:
        limit_seconds -= time.perf_counter() - started
    try:
        start, done = jobs.run(whole, limit_seconds)
    except ClusterUnreachable as error:
        return unreachable_cycle(flow, error, time.perf_counter() - started, spent)
    return _result(resolved, carry_over, start, done, spent, started)


def plan_cycle(
    session: Callable[[], SparkSession],
    task: FlowTask,
    *,
    carry_over: FlowCarryOver | None = None,
    progress: Progress | None = None,
) -> CycleResult:
    """One cycle that commits nothing, by the steps of a task in this process; on Spark, which
    `session` starts, only where so much is to be done that it pays (`packing.POSITIONS_HERE`).

    The rest is as in `run_cycle`.
    """
    started = time.perf_counter()
    carry_over = FlowCarryOver() if carry_over is None else carry_over
    resolved = task.resolve()
    flow, spent = resolved.flow, Spent()
    try:
        start = _listed(task, flow, carry_over, spent, progress)
        groups = start.groups
        done: CycleTables | ReadGroups | None = None
        if packing.fits(len(groups), carry_over.rows, packing.PAIRS_HERE):
            notify = progress or _silent
            notify("sync groups", 0, 1)
            remembered = CarryOver(carry_over.pairs, carry_over.partitions)
            here = _in_tasks(task, spent, commit=False)
            done = here.whole(groups, remembered, packing.PAIRS_HERE, packing.POSITIONS_HERE)
            notify("sync groups", 1, 1)
        if not isinstance(done, CycleTables):
            (progress or _silent)("start Spark", 0, 1)
            spark = session()
            jobs = Jobs(spark, flow.name, progress)
            steps = _on_spark(spark, jobs, task, flow, carry_over, spent, False, 0)
            done = jobs.run(lambda: _spread(flow, steps, groups, carry_over))
    except ClusterUnreachable as error:
        return unreachable_cycle(flow, error, time.perf_counter() - started, spent)
    return _result(resolved, carry_over, start, done, spent, started)


def unreachable_cycle(
    flow: FlowSettings,
    error: ClusterUnreachable,
    seconds: float = 0.0,
    spent: Spent | None = None,
) -> CycleResult:
    """The cycle of a flow with a cluster that could not be reached: one failed row."""
    rows = Rows(rows_table([failed_row(flow.name, all_failed(error))]))
    return CycleResult(flow.name, rows, (), True, seconds, 0, 0, spent=spent or Spent())


def _listed(
    task: FlowTask,
    flow: FlowSettings,
    carry_over: FlowCarryOver,
    spent: Spent,
    progress: Progress | None,
) -> Preflight:
    started = time.perf_counter()
    notify = progress or _silent
    notify("list groups", 0, 1)
    with (
        spent.on(Stage.LIST_GROUPS),
        spent.lease(Side.SOURCE, task.connect, flow.source) as source,
        spent.lease(Side.TARGET, task.connect, flow.target) as target,
    ):
        start = _preflight(flow, source, target, carry_over)
    notify("list groups", 1, 1)
    log.debug("groups_listed", flow=flow.name, groups=len(start.groups), seconds=_since(started))
    return start


def _result(
    resolved: ResolvedFlow,
    carry_over: FlowCarryOver,
    start: Preflight,
    done: CycleTables,
    spent: Spent,
    started: float,
) -> CycleResult:
    """What the cycle came to; `carry_over` learns of it."""
    flow = resolved.flow
    carry_over.learn(done.carry_over)
    carry_over.rows = len(done.rows)
    rows = frames.rows_table(done.rows)
    failures = rows_table(failed_row(flow.name, failure) for failure in start.failures)
    return CycleResult(
        flow=flow.name,
        rows=Rows(joined([failures, rows])),
        warnings=start.warnings
        + _standing_warnings(flow)
        + _loop_warnings(flow, resolved.reverse, rows),
        unreachable=False,
        seconds=time.perf_counter() - started,
        groups=len(start.groups),
        positions=done.positions,
        cost=done.cost,
        spent=spent,
        replication=replication(carry_over.partitions),
        share_groups=frozenset(g.group for g in start.groups if g.type is GroupType.SHARE),
    )


def _in_tasks(task: FlowTask, spent: Spent, *, commit: bool) -> StepsInTask:
    return StepsInTask(task, uuid.uuid4().hex, commit, *worker_logs(), spent=spent)


def _on_spark(
    session: SparkSession,
    jobs: Jobs,
    task: FlowTask,
    flow: FlowSettings,
    carry_over: FlowCarryOver,
    spent: Spent,
    commit: bool,
    other_flows: int,
) -> SparkSteps:
    return SparkSteps(
        session,
        jobs,
        _in_tasks(task, spent, commit=commit and flow.commits),
        coordinators=_coordinators(carry_over),
        leaders=lambda topics: _leaders(task, flow, topics, spent),
        most_tasks=flow.tasks_max,
        most_reads=flow.source.fetch_max_in_flight,
        other_flows=other_flows,
    )


def _spread(
    flow: FlowSettings, steps: SparkSteps, groups: Sequence[GroupWork], carry_over: FlowCarryOver
) -> CycleTables:
    """The cycle of these groups, in one task or in many."""
    remembered = CarryOver(carry_over.pairs, carry_over.partitions)
    if not groups:
        return after_read(flow.name, steps, CarryOver(), ReadGroups.nothing())
    if not packing.fits(len(groups), carry_over.rows, packing.PAIRS_IN_ONE_TASK):
        return cycle_tables(flow.name, steps, groups, remembered)
    done = steps.whole(groups, remembered)
    if isinstance(done, CycleTables):
        return done
    return after_read(flow.name, steps, remembered, done)


def _silent(_stage: str, _done: int, _total: int) -> None:
    """Progress that is not shown."""


def _since(start: float) -> float:
    return round(time.perf_counter() - start, 3)


def _standing_warnings(flow: FlowSettings) -> tuple[str, ...]:
    if flow.translation.proof != "timestamps":
        return ()
    return (
        f"flow {flow.name}: translation.proof = timestamps proves nothing, so re-reads have no "
        "bound and records can be skipped; content is the default",
    )


def _loop_warnings(
    flow: FlowSettings, reverse: FlowSettings | None, rows: pa.Table
) -> tuple[str, ...]:
    if reverse is None:
        return ()
    topics = set(rows["source_topic"].unique().to_pylist()) - {None}
    looped = looped_topics(flow, reverse, topics)
    if not looped:
        return ()
    return (
        f"flows {flow.name} and {reverse.name} both select {', '.join(looped[:3])}"
        f"{' and others' if len(looped) > 3 else ''} under the same name: a replicator in both "
        f"directions copies each record endlessly; {REMEDY}",
    )


# --- the driver's part ------------------------------------------------------------------


def _preflight(
    flow: FlowSettings, source: Cluster, target: Cluster, carry_over: FlowCarryOver
) -> Preflight:
    """The groups to sync; the source is asked for its groups once per refresh interval, the
    target for the state of its own every time."""

    def list_groups() -> GroupListings:
        listing = _remembered_listing(flow, carry_over)
        if listing is None:
            now = time.monotonic()
            listing = carry_over.keep_listing(source.groups(), now)
        return listing

    start = preflight(flow, source, target, list_groups=list_groups)
    if not carry_over.bind(binding(flow, start.cluster_ids)):
        start = _preflight(flow, source, target, carry_over)
        warning = (
            f"flow {flow.name}: the cached translations are from other clusters or settings, or "
            "from another version of tsoffset; they are dropped, and this cycle translates every "
            "offset again"
        )
        return replace(start, warnings=(*start.warnings, warning))
    return start


def _remembered_listing(flow: FlowSettings, carry_over: FlowCarryOver) -> GroupListings | None:
    if carry_over.listing is None or carry_over.listing.failures or carry_over.listed_at is None:
        return None
    age = time.monotonic() - carry_over.listed_at
    if flow.refresh_groups_enabled and age >= flow.refresh_groups_interval_seconds:
        return None
    return carry_over.listing


def _coordinators(carry_over: FlowCarryOver) -> Mapping[str, int | None]:
    if carry_over.listing is None:
        return {}
    return {g.group: g.coordinator for g in carry_over.listing.groups.values()}


def _leaders(
    task: FlowTask, flow: FlowSettings, topics: set[str], spent: Spent
) -> Mapping[TopicPartition, int | None]:
    """Where the source's partitions lead, as far as it says so: it only groups the work."""
    try:
        with spent.lease(Side.SOURCE, task.connect, flow.source) as source:
            described = source.topics(topics)
    except ClusterUnreachable:
        return {}
    return {
        TopicPartition(topic, number): partition.leader
        for topic, description in described.items()
        if isinstance(description, TopicDescription)
        for number, partition in description.partitions.items()
    }
