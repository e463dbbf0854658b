"""What a Spark task does: a stage of a cycle over Arrow batches, in a worker process.

Each of the three stages takes and gives batches of one of `tsoffset.spark.schema`'s tables
and runs the stage of the same name in `tsoffset.cycle`. A stage does not raise for what goes
wrong with the data: what it was to do becomes failed rows.
"""

import socket
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from zlib import crc32

import pyarrow as pa
import structlog

from tsoffset.cluster import Cluster
from tsoffset.cycle.rounds import translate_with_carry_over
from tsoffset.cycle.settle import Settled, settle_groups, whole_topic
from tsoffset.cycle.source_commits import CompetingFlow, GroupWork, read_commits
from tsoffset.cycle.turns import Settlement
from tsoffset.cycle.work import Cost, PartitionWork, TranslatedWork
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.logs import LogFormat, LogLevel, configure_logs, hide_secrets
from tsoffset.model import Failed, FailureKind, TopicPartition
from tsoffset.rule.carry_over import PartitionCarryOver
from tsoffset.rule.decide import SourceCommit, TranslatedPosition, decide
from tsoffset.rule.translate import Translation
from tsoffset.spark import schema, values
from tsoffset.spark.carry_over import carry_overs_of, report
from tsoffset.spark.clients import CLIENTS, requests_sent
from tsoffset.spark.flow import FlowTask

log = structlog.get_logger(__name__)

Batches = Iterator[pa.RecordBatch]
CarryOvers = Mapping[TopicPartition, PartitionCarryOver]

_GROUPS_AT_ONCE = 500
_ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Stages:
    """One cycle's stages as they travel to the workers.

    `cycle` is unique: a worker resolves the configuration once for each cycle, so that a
    secret that was changed holds from the next one on. `settle_tasks` is how many tasks
    settle groups, `translate_tasks` how many translate at once and share the limit on what is
    read from the source; `log_format` and `log_level` how workers log. From `commit_until` on
    (seconds since 1970 UTC) nothing is committed: a task that comes so late was given up.
    """

    task: FlowTask
    cycle: str
    commit: bool
    settle_tasks: int
    log_format: LogFormat
    log_level: LogLevel
    translate_tasks: int = 1
    commit_until: float | None = None

    def all_in_one(self, streams: Iterable[bytes]) -> Iterator[bytes]:
        """WORK -> RESULTS, each table as an Arrow stream: the whole cycle in this task."""
        for stream in streams:
            work = schema.from_bytes(stream).to_batches()
            commits = (
                batch.filter(batch["distinct_offsets"].is_null()) for batch in self.read(iter(work))
            )
            for batch in self.settle(self._translate(commits, _carry_overs(work))):
                yield schema.to_bytes(pa.Table.from_batches([batch]))

    def read(self, batches: Batches) -> Batches:
        """WORK -> COMMITS: the source commits of the tasks' groups, and at the end how many
        distinct offsets each partition has among them."""
        for batch in batches:
            for settle_task, groups, last_commits, _ in schema.tuples(batch, schema.WORK):
                work = values.groups_of(schema.from_bytes(groups))
                last = values.last_commits_of(schema.from_bytes(last_commits))
                offsets: defaultdict[TopicPartition, set[int]] = defaultdict(set)
                for start in range(0, len(work), _GROUPS_AT_ONCE):
                    commits = self._commits(work[start : start + _GROUPS_AT_ONCE])
                    for commit in commits:
                        if commit.verdict is None and commit.partition and commit.committed:
                            offsets[commit.partition].add(commit.committed.offset)
                    yield from _batches(values.commits_table(settle_task, commits, last))
                counts = {partition: len(found) for partition, found in offsets.items()}
                yield from _batches(values.distinct_offsets_table(settle_task, counts))

    def translate(self, batches: Batches) -> Batches:
        """TASKED_COMMITS -> SETTLEMENTS: each commit with the translation of its position, equal
        positions translated once; word of topics whose target rewrites timestamps; and a report
        to the driver."""
        tasked = list(batches)
        commits = (batch.filter(batch["carry_over"].is_null()) for batch in tasked)
        return self._translate(commits, _carry_overs(tasked))

    def _translate(self, batches: Batches, carry_overs: CarryOvers) -> Batches:
        commits = pa.Table.from_batches(
            [batch.select(schema.COMMITS.names) for batch in batches], schema.COMMITS
        )
        keys, work = _distinct(commits, carry_overs)
        translated = self._translated(work) if work else TranslatedWork((), (), Cost())
        positions = translated.positions
        numbers = {(p.partition, p.offset): number for number, p in enumerate(positions)}
        rewritten = {p.partition.topic for p in positions if p.target_rewrites_timestamps}
        yield from _batches(values.rewritten_topics_table(sorted(rewritten), self.settle_tasks))
        if work:
            told = report(translated.carry_overs, translated.cost)
            messenger = crc32(str(work[0].source).encode()) % self.settle_tasks
            yield from _batches(values.report_table(told, messenger))
        which = pa.array([None if key is None else numbers[key] for key in keys], pa.int32())
        translations = values.translations_table(positions).take(which)
        columns = {
            field.name: translations[field.name]
            if field.name in schema.TRANSLATIONS.names
            else commits[field.name]
            if field.name in commits.column_names
            else pa.nulls(commits.num_rows, field.type)
            for field in schema.SETTLEMENTS
        }
        yield from _batches(pa.table(columns, schema=schema.SETTLEMENTS))

    def settle(self, batches: Batches) -> Batches:
        """SETTLEMENTS -> RESULTS: all rows of this task's groups, committed where they are to
        be, the reports that came along, and one on the commits.

        Nothing is committed before all is read: word of a topic may come last.
        """
        table = pa.Table.from_batches(list(batches), schema.SETTLEMENTS)
        reports = table["report"].drop_null()
        table = table.filter(table["report"].is_null())
        topics = table["rewritten_topic"]
        rewritten = set(topics.drop_null().to_pylist())
        table = table.filter(topics.is_null()).sort_by("group")
        yield from _batches(_results({"report": reports}, len(reports)))
        cost = Cost()
        for part in _by_whole_groups(table):
            settled = self._settled([_in_topic(s, rewritten) for s in values.settlements_of(part)])
            cost += settled.cost
            rows = values.rows_table(settled.rows)
            yield from _batches(_results({n: rows[n] for n in rows.column_names}, rows.num_rows))
        if cost != Cost():
            told = pa.chunked_array([[report((), cost)]], pa.binary())
            yield from _batches(_results({"report": told}, 1))

    # --- the stages of tsoffset.cycle, failures made values --------------------------------

    def _commits(self, groups: Sequence[GroupWork]) -> list[SourceCommit]:
        try:
            flow, competing_flows = self._resolve()
            with ExitStack() as leases:
                source = self._client(leases, flow.source)
                with_sources = [
                    CompetingFlow(one, self._client(leases, one.source)) for one in competing_flows
                ]
                return list(read_commits(flow, source, groups, with_sources))
        except Exception as error:
            names = ", ".join(work.group for work in groups[:3])
            failed = self._broken("read_broke", f"read commits of {names}", error)
            return [SourceCommit(work.group, None, None, None, verdict=failed) for work in groups]

    def _translated(self, work: Sequence[PartitionWork]) -> TranslatedWork:
        try:
            flow, _ = self._resolve()
            with ExitStack() as leases:
                source = self._client(leases, flow.source.shared_by(self.translate_tasks))
                target = self._client(leases, flow.target)
                before = requests_sent(source)
                translated = translate_with_carry_over(flow, source, target, work)
                sent = requests_sent(source) - before
                return replace(translated, cost=replace(translated.cost, source_requests=sent))
        except Exception as error:
            what = f"translate positions of {work[0].source}"
            failed = self._broken("translation_broke", what, error)
            return TranslatedWork(
                tuple(
                    TranslatedPosition(part.source, offset, Translation(failed))
                    for part in work
                    for offset in part.offsets
                ),
                tuple(part.carry_over for part in work if part.carry_over is not None),
                Cost(positions=sum(len(part.offsets) for part in work)),
            )

    def _settled(self, settlements: Sequence[Settlement]) -> Settled:
        try:
            flow, _ = self._resolve()
            with ExitStack() as leases:
                target = self._client(leases, flow.target)
                return settle_groups(
                    flow, target, settlements, commit=self.commit, until=self.commit_until
                )
        except Exception as error:
            what = f"settle group {settlements[0].commit.group} and its neighbours"
            failed = self._broken("settling_broke", what, error)
            rows = (
                decide(self.task.flow, replace(s.commit, verdict=failed), None, None)
                for s in settlements
            )
            return Settled(tuple(rows), Cost())

    def _resolve(self) -> tuple[FlowSettings, tuple[FlowSettings, ...]]:
        key = (self.cycle, self.task.flow)
        if key not in _resolved:
            if not structlog.is_configured():
                configure_logs(self.log_format, self.log_level)
            settings = self.task.resolve()
            _resolved.clear()
            _resolved[key] = settings
        return _resolved[key]

    def _client(self, leases: ExitStack, settings: ClusterSettings) -> Cluster:
        return leases.enter_context(CLIENTS.lease(self.task.connect, settings))

    def _broken(self, event: str, what: str, error: Exception) -> Failed:
        log.exception(event, flow=self.task.flow)
        cause = hide_secrets(f"{type(error).__name__}: {error}")
        return Failed(
            FailureKind.INTERNAL,
            f"{what}, worker on {socket.gethostname()}: {cause}; see the log of the worker",
        )


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which task translates which partitions: their place in `tasks`."""

    tasks: Sequence[Sequence[TopicPartition]]

    def assign(self, batches: Batches) -> Batches:
        """COMMITS -> TASKED_COMMITS: all commits of a partition get the same task."""
        numbers = {
            (partition.topic, partition.partition): number
            for number, partitions in enumerate(self.tasks)
            for partition in partitions
        }
        for batch in batches:
            places = zip(
                batch["source_topic"].to_pylist(), batch["partition"].to_pylist(), strict=True
            )
            # A partition that was not counted has a verdict on all its commits, or was read
            # anew since (a worker was lost): one task for it all the same. Spark takes the
            # number modulo the number of tasks.
            tasks = [numbers.get(p, crc32(f"{p[0]}-{p[1]}".encode()) >> 1) for p in places]
            yield batch.append_column("translate_task", pa.array(tasks, pa.int32())).append_column(
                "carry_over", pa.nulls(batch.num_rows, pa.binary())
            )


# What this worker resolved for the cycle that it works on.
_resolved: dict[tuple[str, str], tuple[FlowSettings, tuple[FlowSettings, ...]]] = {}


def _batches(table: pa.Table) -> Batches:
    if table.num_rows:
        yield from table.combine_chunks().to_batches(max_chunksize=_ROWS_AT_ONCE)


def _carry_overs(batches: Sequence[pa.RecordBatch]) -> CarryOvers:
    """What lies in the cells for carry-over."""
    return {
        partition: carry_over
        for batch in batches
        for cell in batch["carry_over"].drop_null()
        for partition, carry_over in carry_overs_of(schema.from_bytes(cell.as_py())).items()
    }


def _results(columns: Mapping[str, pa.ChunkedArray], rows: int) -> pa.Table:
    """A table like RESULTS of the columns given; the others are absent."""
    return pa.table(
        {
            field.name: columns.get(field.name, pa.nulls(rows, field.type))
            for field in schema.RESULTS
        },
        schema=schema.RESULTS,
    )


def _distinct(
    commits: pa.Table, carry_overs: CarryOvers
) -> tuple[list[tuple[TopicPartition, int] | None], list[PartitionWork]]:
    """The position of each commit (None: its verdict is known), and the work of all of them."""
    columns = [
        commits[name].to_pylist()
        for name in (
            "source_topic",
            "partition",
            "source_offset",
            "target_topic",
            "target_partition",
            "is_remote_topic",
            "failback",
            "verdict_reason",
            "verdict_failure",
        )
    ]
    keys: list[tuple[TopicPartition, int] | None] = []
    places: dict[TopicPartition, tuple[TopicPartition, bool, bool]] = {}
    offsets: defaultdict[TopicPartition, set[int]] = defaultdict(set)
    partitions: dict[tuple[str, int], TopicPartition] = {}
    for topic, number, offset, target, target_number, remote, failback, reason, failure in zip(
        *columns, strict=True
    ):
        if reason is not None or failure is not None:
            keys.append(None)
            continue
        partition = partitions.get((topic, number))
        if partition is None:
            partition = partitions[topic, number] = TopicPartition(topic, number)
            places[partition] = (TopicPartition(target, target_number), remote, failback)
        offsets[partition].add(offset)
        keys.append((partition, offset))
    return keys, [
        PartitionWork(
            partition,
            places[partition][0],
            tuple(sorted(found)),
            *places[partition][1:],
            carry_overs.get(partition),
        )
        for partition, found in sorted(offsets.items())
    ]


def _by_whole_groups(table: pa.Table) -> Iterator[pa.Table]:
    """Pieces of a table sorted by group, of about so many rows, none ending within a group."""
    groups = table["group"].to_pylist()
    start = 0
    while start < len(groups):
        end = min(start + _ROWS_AT_ONCE, len(groups))
        while end < len(groups) and groups[end] == groups[end - 1]:
            end += 1
        yield table.slice(start, end - start)
        start = end


def _in_topic(settlement: Settlement, rewritten: set[str]) -> Settlement:
    position, target = settlement.position, settlement.commit.target
    if position is None or target is None or position.partition.topic not in rewritten:
        return settlement
    return replace(settlement, position=whole_topic(position, target.topic))
