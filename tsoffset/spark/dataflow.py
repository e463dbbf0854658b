"""One cycle of a flow on Spark, from groups to commits.

The driver lists and filters the groups; tasks do the rest. Rows are carried on from stage
to stage, so nothing is read twice and no commit is joined to another one's translation:

    groups -> [read] -> by partition -> [translate] -> by group -> [settle] -> rows

A small cycle runs the three stages in one task, without a shuffle, as the smallest kind of job
that Spark has. A larger one takes two actions over tables: the first reads the commits and keeps
them, and learns how much there is to translate; the second translates, settles and is
collected, once.
"""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import structlog
from pyspark.sql import DataFrame, SparkSession

from tsoffset.cluster import Cluster
from tsoffset.cycle.settle import failed_row
from tsoffset.cycle.source_commits import GroupWork, Preflight, preflight
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Failed, FailureKind, GroupListings, TopicDescription, TopicPartition
from tsoffset.rule.carry_over import binding
from tsoffset.spark import schema, values
from tsoffset.spark.carry_over import PartitionRows, merge_reports
from tsoffset.spark.clients import CLIENTS
from tsoffset.spark.flow import CycleResult, FlowCarryOver, FlowTask, Rows
from tsoffset.spark.jobs import Jobs, Progress
from tsoffset.spark.packing import group_tasks, in_one_task, partition_tasks
from tsoffset.spark.tasks import Assignment, Batches, Stages
from tsoffset.spark.worker_logs import worker_logs

log = structlog.get_logger(__name__)


def run_cycle(
    session: SparkSession,
    task: FlowTask,
    *,
    commit: bool,
    carry_over: FlowCarryOver | None = None,
    progress: Progress | None = None,
) -> CycleResult:
    """Run one cycle of a flow; with `commit` (and unless the flow's syncing is turned off)
    target groups are moved.

    `carry_over` is brought up to date. `progress` is told the stage, and how many of how many
    tasks are done. Raises ConfigurationError and UsageError for what cannot be run at all, and
    CycleFailed where Spark gave up; a cluster that cannot be reached is a failed row.
    """
    started = time.perf_counter()
    carry_over = FlowCarryOver() if carry_over is None else carry_over
    flow, _ = task.resolve()
    notify = progress or _silent
    notify("list groups", 0, 1)
    try:
        with (
            CLIENTS.lease(task.connect, flow.source) as source,
            CLIENTS.lease(task.connect, flow.target) as target,
        ):
            start = _preflight(flow, source, target, carry_over)
    except ClusterUnreachable as error:
        return _unreachable(flow, error, time.perf_counter() - started)
    notify("list groups", 1, 1)
    log.debug(
        "groups_listed",
        flow=flow.name,
        groups=len(start.groups),
        seconds=_since(started),
    )
    results = schema.RESULTS.empty_table()
    if start.groups:
        jobs = Jobs(session, flow.name, progress)
        cycle = _Cycle(session, jobs, task, flow, commit=commit and flow.commits)
        results = jobs.run(lambda: cycle.results(start.groups, carry_over))
    reports = results["report"]
    partitions, cost = merge_reports(reports.drop_null().to_pylist())
    found = results.filter(reports.is_null()).select(schema.ROWS.names)
    found = found.sort_by([(name, "ascending") for name in ("group", *_PARTITION)])
    carry_over.learn(found, [work.group for work in start.groups], partitions)
    positions = found.filter(found["source_offset"].is_valid())
    failures = values.rows_table(failed_row(flow.name, failure) for failure in start.failures)
    return CycleResult(
        flow=flow.name,
        rows=Rows(pa.concat_tables([failures, found])),
        warnings=start.warnings + _standing_warnings(flow),
        unreachable=False,
        seconds=time.perf_counter() - started,
        groups=len(start.groups),
        positions=positions.group_by([*_PARTITION, "source_offset"]).aggregate([]).num_rows,
        cost=cost,
    )


_PARTITION = ("source_topic", "partition")

# A task's commits are wanted for this long after its action began: ten minutes, and more where
# there is more to translate. A worker that was given up (its machine was suspended, its executor
# lost, its job cancelled) and that goes on later than this commits nothing any more. Where a
# cycle is slower than that, its translations are remembered and the next one commits.
COMMIT_SECONDS = 600.0
COMMIT_SECONDS_A_POSITION = 0.01


def _commit_until(positions: int = 0) -> float:
    """Until when an action that begins now may commit, in seconds since 1970 UTC."""
    return time.time() + COMMIT_SECONDS + COMMIT_SECONDS_A_POSITION * positions


def _silent(_stage: str, _done: int, _total: int) -> None:
    """Progress that nobody looks at."""


def _since(start: float) -> float:
    return round(time.perf_counter() - start, 3)


def _unreachable(flow: FlowSettings, error: ClusterUnreachable, seconds: float) -> CycleResult:
    row = failed_row(flow.name, Failed(FailureKind.UNREACHABLE, str(error)))
    return CycleResult(flow.name, Rows(values.rows_table([row])), (), True, seconds, 0, 0)


def _standing_warnings(flow: FlowSettings) -> tuple[str, ...]:
    if flow.translation.proof != "timestamps":
        return ()
    return (
        f"flow {flow.name}: translation.proof = timestamps proves nothing, so re-reads have no "
        "bound and records can be skipped; content is the default",
    )


# --- the driver's part ------------------------------------------------------------------


def _preflight(
    flow: FlowSettings, source: Cluster, target: Cluster, carry_over: FlowCarryOver
) -> Preflight:
    """The groups to sync; the source is asked for its groups once per refresh interval, the
    target for the state of its own every time."""
    listing = _remembered_listing(flow, carry_over)
    if listing is None:
        now = time.monotonic()
        listing = source.groups()
        # A broker that could not be asked is asked again in the next cycle.
        carry_over.listing = None if listing.failed_brokers else listing
        carry_over.listed_at = now
    start = preflight(
        flow, source, target, known_groups=[(g.group, g.type) for g in listing.groups.values()]
    )
    if not carry_over.bind(binding(flow, start.cluster_ids)):
        start = _preflight(flow, source, target, carry_over)
        warning = (
            f"flow {flow.name}: what was remembered is of other clusters or settings; it is "
            "dropped, and this cycle looks at every position anew"
        )
        return replace(start, warnings=(*start.warnings, warning))
    return replace(start, failures=(*listing.failed_brokers.values(), *start.failures))


def _remembered_listing(flow: FlowSettings, carry_over: FlowCarryOver) -> GroupListings | None:
    age = time.monotonic() - carry_over.listed_at
    if flow.refresh_groups_enabled and age >= flow.refresh_groups_interval_seconds:
        return None
    return carry_over.listing


def _coordinators(carry_over: FlowCarryOver) -> Mapping[str, int | None]:
    if carry_over.listing is None:
        return {}
    return {g.group: g.coordinator for g in carry_over.listing.groups.values()}


def _map(
    frame: DataFrame, stage: Callable[[Batches], Batches], schema_given: pa.Schema
) -> DataFrame:
    return frame.mapInArrow(stage, schema.spark_schema(schema_given))


def _work(
    tasks: Sequence[Sequence[GroupWork]],
    carry_over: FlowCarryOver,
    partitions: pa.Table | None = None,
) -> pa.Table:
    """WORK with a row for each task; with what is remembered of partitions where the task
    translates, too."""
    return schema.table(
        schema.WORK,
        [
            (
                number,
                schema.to_bytes(values.groups_table(groups)),
                schema.to_bytes(carry_over.of_groups([work.group for work in groups])),
                None if partitions is None else schema.to_bytes(partitions),
            )
            for number, groups in enumerate(tasks)
        ],
    )


class _Cycle:
    """The actions of one cycle."""

    def __init__(
        self,
        session: SparkSession,
        jobs: Jobs,
        task: FlowTask,
        flow: FlowSettings,
        *,
        commit: bool,
    ) -> None:
        self._session = session
        self._collect = jobs.collect
        self._task = task
        self._flow = flow
        self._commit = commit
        self._id = uuid.uuid4().hex
        self._limit = max(1, session.sparkContext.defaultParallelism)
        if flow.tasks_max is not None:
            self._limit = min(self._limit, flow.tasks_max)

    def results(self, groups: tuple[GroupWork, ...], carry_over: FlowCarryOver) -> pa.Table:
        """The rows of all groups and the reports of the tasks, as RESULTS."""
        if in_one_task(len(groups), self._limit, carry_over.rows):
            return self._collect("sync groups", lambda: self._whole(groups, carry_over))
        tasks = group_tasks(groups, _coordinators(carry_over), self._limit)
        stages = self._stages(settle_tasks=len(tasks))
        work = self._session.createDataFrame(_work(tasks, carry_over))
        commits = _map(work, stages.read, schema.COMMITS).persist()
        try:
            distinct = commits.where("distinct_offsets IS NOT NULL")
            counts = self._collect(
                "read commits", distinct.select(*_PARTITION, "distinct_offsets").toArrow
            )
            partitions = self._partition_tasks(counts)
            translated = _map(
                commits.where("distinct_offsets IS NULL"),
                Assignment(partitions).assign,
                schema.TASKED_COMMITS,
            )
            if carry_over.partitions is not None and carry_over.partitions.num_rows:
                translated = translated.union(self._carry_over(partitions, carry_over.partitions))
            translated = translated.repartitionById(max(1, len(partitions)), "translate_task")
            positions = sum(counts["distinct_offsets"].to_pylist())
            stages = replace(
                stages,
                translate_tasks=max(1, len(partitions)),
                commit_until=_commit_until(positions),
            )
            settled = _map(translated, stages.translate, schema.SETTLEMENTS)
            settled = settled.repartitionById(len(tasks), "settle_task")
            rows = _map(settled, stages.settle, schema.RESULTS)
            return self._collect("translate", rows.toArrow)
        finally:
            commits.unpersist()

    def _whole(self, groups: Sequence[GroupWork], carry_over: FlowCarryOver) -> pa.Table:
        """The cycle in one task.

        Measured: a job over tables of this width takes twice the processor time of one that is
        handed bytes, before and after the work itself.
        """
        work = schema.to_bytes(_work([groups], carry_over, carry_over.partitions))
        stages = replace(self._stages(settle_tasks=1), commit_until=_commit_until())
        task = self._session.sparkContext.parallelize([work], 1).mapPartitions(stages.all_in_one)
        return pa.concat_tables(
            [schema.RESULTS.empty_table(), *map(schema.from_bytes, task.collect())]
        )

    def _stages(self, settle_tasks: int) -> Stages:
        format, level = worker_logs()
        return Stages(self._task, self._id, self._commit, settle_tasks, format, level)

    def _carry_over(
        self, tasks: Sequence[Sequence[TopicPartition]], partitions: pa.Table
    ) -> DataFrame:
        """For each task that translates a row with what is remembered of its partitions."""
        rows = PartitionRows(partitions)
        blank = (None,) * len(schema.COMMITS)
        return self._session.createDataFrame(
            schema.table(
                schema.TASKED_COMMITS,
                [
                    (*blank, number, schema.to_bytes(rows.of(task)))
                    for number, task in enumerate(tasks)
                ],
            )
        )

    def _partition_tasks(self, counts: pa.Table) -> list[list[TopicPartition]]:
        distinct: dict[TopicPartition, int] = {}
        for topic, number, count in zip(
            *(counts[name].to_pylist() for name in (*_PARTITION, "distinct_offsets")), strict=True
        ):
            partition = TopicPartition(topic, number)
            distinct[partition] = distinct.get(partition, 0) + count
        # A task has at least one fetch under way, so the user's limit on these limits tasks, too.
        in_flight = self._flow.source.fetch_max_in_flight
        limit = self._limit if in_flight is None else min(self._limit, in_flight)
        leaders = self._leaders({p.topic for p in distinct}) if limit > 1 else {}
        return partition_tasks(distinct, leaders, limit)

    def _leaders(self, topics: set[str]) -> dict[TopicPartition, int | None]:
        """Where the source's partitions lead, as far as it says so: it only groups the work."""
        try:
            with CLIENTS.lease(self._task.connect, self._flow.source) as source:
                described = source.topics(topics)
        except ClusterUnreachable:
            return {}
        return {
            TopicPartition(topic, number): partition.leader
            for topic, description in described.items()
            if isinstance(description, TopicDescription)
            for number, partition in description.partitions.items()
        }
