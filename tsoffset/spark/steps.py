"""The steps of a cycle on Spark: split into tasks, run, and their results joined.

The results of a job come to the driver as packed tables. If they could exceed
`spark.driver.maxResultSize`, the tasks of a step are split into several jobs (`waves`).
"""

import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, islice
from typing import Any

import numpy as np
import polars as pl
from pyspark.sql import SparkSession

from tsoffset.cycle.source_commits import GroupWork
from tsoffset.cycle.work import Cost
from tsoffset.group_sync.cache import CachedTables
from tsoffset.group_sync.cycle import CycleTables, ReadGroups
from tsoffset.group_sync.flow_cycle import Stage
from tsoffset.group_sync.log_ranges import KnownLogs
from tsoffset.group_sync.steps import DecidedTables, ReadTables
from tsoffset.group_sync.tables import PARTITION, semi_join
from tsoffset.group_sync.translate import TranslatedTables
from tsoffset.model import TopicPartition
from tsoffset.records import Numbers
from tsoffset.spark import packing
from tsoffset.spark.cells import from_cell, to_cell
from tsoffset.spark.jobs import Jobs
from tsoffset.spark.limits import result_bytes, slots
from tsoffset.spark.tasks import StepsInTask, run_step

# A task may commit for this long after its job began: ten minutes, and longer with more
# group-partitions to commit. Spark may have abandoned a worker (its machine was suspended, its
# executor lost, its job canceled) that continues later: it commits nothing then. If a cycle is
# slower than this, its translations are cached, and the next cycle commits them.
COMMIT_SECONDS = 600.0
COMMIT_SECONDS_A_PAIR = 0.01
# The stages of steps with tasks of their own. A task that runs all steps reports its stages itself.
_STAGES = {
    "read": Stage.READ_COMMITS,
    "translate": Stage.TRANSLATE,
    "decide_and_commit": Stage.SETTLE,
}
# The bytes of `spark.driver.maxResultSize` that a row of results may need; measured: 20 to 60.
_BYTES_A_ROW = 256


class SparkSteps:
    """`tsoffset.group_sync.steps.Steps`, spread over Spark's tasks.

    `coordinators` has the coordinator of each source group, and `leaders` returns the leaders of
    source partitions. Both only decide which work shares a task. `other_flows` is the number of
    other flows that use the session.
    """

    def __init__(
        self,
        session: SparkSession,
        jobs: Jobs,
        steps: StepsInTask,
        *,
        coordinators: Mapping[str, int | None],
        leaders: Callable[[set[str]], Mapping[TopicPartition, int | None]],
        most_tasks: int | None,
        most_reads: int | None,
        other_flows: int = 0,
    ) -> None:
        self._context = session.sparkContext
        # A worker has a core. Polars reads this when the worker imports it.
        self._context.environment.setdefault("POLARS_MAX_THREADS", "1")
        self._jobs = jobs
        self._steps = steps
        self._coordinators = coordinators
        self._leaders = leaders
        self._most_reads = most_reads
        self.slots = slots(self._context, other_flows)
        if most_tasks is not None:
            self.slots = min(self.slots, most_tasks)
        # Tasks that cannot run yet wait in the same job, unless they would take other flows' slots.
        self._most_tasks = self.slots if other_flows else most_tasks

    def log_ranges(self, partitions: pl.DataFrame) -> KnownLogs:
        """As `Steps.log_ranges`, in the driver."""
        return self._steps.log_ranges(partitions)

    def source_logs(
        self, topics: Collection[str], epochs: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """As `Steps.source_logs`, in the driver."""
        return self._steps.source_logs(topics, epochs)

    def whole(self, groups: Sequence[GroupWork], cache: CachedTables) -> CycleTables | ReadGroups:
        """As `StepsInTask.whole`, in one task."""
        # The results of its commits have to fit into `spark.driver.maxResultSize`.
        work = (groups, cache, self._most_rows)
        found: CycleTables | ReadGroups
        (found,) = self._run("sync groups", self._commit_steps(0), "whole", [work], [0])
        return found

    def read(self, groups: pl.DataFrame, cached: pl.DataFrame, ranges: pl.DataFrame) -> ReadTables:
        known = groups.select("group").join(
            cached.group_by("group").len(),
            on="group",
            how="left",
            validate="1:1",
            maintain_order="left",
        )
        coordinators = [self._coordinators.get(name) for name in groups["group"]]
        tasks = packing.group_tasks(coordinators, known["len"].fill_null(0).to_list(), self.slots)
        number = np.empty(len(groups), np.int64)
        for index, task in enumerate(tasks):
            number[task] = index
        of_group = groups.select("group", task=pl.Series(number))
        of_row = cached.select("group").join(
            of_group, on="group", how="left", validate="m:1", maintain_order="left"
        )
        parts = _parts(of_row["task"].to_numpy(), len(tasks))
        work = (
            (groups[task], cached[rows], ranges) for task, rows in zip(tasks, parts, strict=True)
        )
        sizes = [
            max(len(rows), packing.PAIRS_A_GROUP * len(task))
            for task, rows in zip(tasks, parts, strict=True)
        ]
        done = self._run("read commits", self._steps, "read", work, sizes)
        rows, rest = (pl.concat(each) for each in zip(*done, strict=True))
        # Tasks have groups by coordinator, and each has them in order.
        if not rows["group"].is_sorted():
            rows = rows.sort("group", maintain_order=True)
        return rows, rest

    def translate(self, offsets: pl.DataFrame, partitions: pl.DataFrame) -> TranslatedTables:
        rows_of = _by_partition(offsets)
        distinct = {partition: len(rows) for partition, rows in rows_of.items()}
        # A task has at least one fetch under way, so the user's limit on these limits tasks, too.
        slots = min(self.slots, self._most_reads or self.slots)
        several = packing.TRANSLATE.tasks(len(offsets), slots) > 1
        leaders = self._leaders({p.topic for p in distinct}) if several else {}
        tasks = packing.partition_tasks(distinct, leaders, slots)
        rows = [np.concatenate([rows_of[partition] for partition in task]) for task in tasks]
        steps = replace(self._steps, translating=min(len(tasks), slots))
        parts = (offsets[own] for own in rows)
        work = ((part, semi_join(partitions, part, PARTITION)) for part in parts)
        sizes = [len(own) for own in rows]
        done = self._run("translate", steps, "translate", work, sizes, at_once=self._most_reads)
        *tables, costs = zip(*done, strict=True)
        cost = Cost()
        for its_cost in costs:
            cost = cost.in_parallel(its_cost)
        found, learned, sources, targets = (pl.concat(each) for each in tables)
        return found, learned, sources, targets, cost

    def decide_and_commit(self, work: pl.DataFrame, topics: pl.DataFrame) -> DecidedTables:
        """As `Steps.decide_and_commit`; no group is split between tasks."""
        sizes = work["group"].rle().struct.field("len").to_list()
        # Limited as in `whole`, for the results of commits.
        size = packing.SETTLE._replace(most=min(packing.SETTLE.most, self._most_rows))
        tasks = packing.cut(range(len(sizes)), size.tasks(len(work), self.slots), sizes.__getitem__)
        rows = [sum(sizes[group] for group in task) for task in tasks]
        ends = accumulate(rows)
        of_tasks = (work[end - size : end] for size, end in zip(rows, ends, strict=True))
        parts = ((own, semi_join(topics, own, ["target_topic"])) for own in of_tasks)
        done = self._run("settle", self._commit_steps(len(work)), "decide_and_commit", parts, rows)
        cost = Cost()
        for _, its_cost in done:
            cost = cost.in_parallel(its_cost)
        return pl.concat([one for one, _ in done]), cost

    def _commit_steps(self, pairs: int) -> StepsInTask:
        until = time.time() + COMMIT_SECONDS + COMMIT_SECONDS_A_PAIR * pairs
        return replace(self._steps, until=until)

    def _run(
        self,
        stage: str,
        steps: StepsInTask,
        step: str,
        work: Iterable[Any],
        sizes: Sequence[int],
        at_once: int | None = None,
    ) -> list[Any]:
        """Run a step on each piece of work, in as few jobs as possible: the size of results, the
        user's limit on tasks and `at_once` limit a job. Only one unpacked piece is held at a
        time."""
        started = time.perf_counter()
        limits = [limit for limit in (self._most_tasks, at_once) if limit is not None]
        found: list[Any] = []
        pieces = iter(work)
        for begin, end in waves(sizes, self._most_rows, min([*limits, len(sizes)])):
            cells = [to_cell(each) for each in islice(pieces, end - begin)]
            job = self._context.parallelize(cells, len(cells)).map(partial(run_step, steps, step))
            found += self._jobs.collect(stage, job.collect)
        results = [from_cell(cell) for cell in found]
        total = self._steps.spent
        for _, spent in results:
            for side, traffic in spent.traffic.items():
                total.traffic[side] += traffic
            if step not in _STAGES:
                for stage_there, seconds in spent.seconds.items():
                    total.seconds[stage_there] += seconds
        if step in _STAGES:
            total.seconds[_STAGES[step]] += time.perf_counter() - started
        return [result for result, _ in results]

    @property
    def _most_rows(self) -> int:
        allowed = result_bytes(self._context)
        return sys.maxsize if allowed is None else max(1, allowed // _BYTES_A_ROW)


def waves(sizes: Sequence[int], most: int, most_tasks: int) -> Iterator[tuple[int, int]]:
    """The range of task numbers of each job, for tasks of these sizes. A job has at most
    `most_tasks` tasks of together at most `most` rows; a single task may exceed `most`."""
    begin, held = 0, 0
    for number, size in enumerate(sizes):
        if number > begin and (held + size > most or number - begin == most_tasks):
            yield begin, number
            begin, held = number, 0
        held += size
    yield begin, len(sizes)


def _parts(number: Numbers, parts: int) -> list[Numbers]:
    """For each number below `parts`, the indices at which `number` has it."""
    order = np.argsort(number, kind="stable")
    return np.split(order, np.searchsorted(number[order], np.arange(1, parts)))


def _by_partition(offsets: pl.DataFrame) -> dict[TopicPartition, Numbers]:
    """The rows of each partition of TO_TRANSLATE, which are in order."""
    each = offsets.group_by(PARTITION, maintain_order=True).len()
    ends = np.cumsum(each["len"].to_numpy())
    rows = np.split(np.arange(len(offsets)), ends[:-1])
    partitions = each.select(PARTITION).iter_rows()
    return {TopicPartition(*key): own for key, own in zip(partitions, rows, strict=True)}
