"""The common beginning of all scenarios: clusters, topics, groups, the mirror, one sync."""

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from kafka import KafkaConsumer

from tsoffset.config.loading import Configuration
from tsoffset.errors import CycleFailed
from tsoffset.group_sync.flow_cycle import FlowTask
from tsoffset.group_sync.rows import rows_table
from tsoffset.lab.demo.clusters import MECHANISM, SOURCE, TARGET, USER, Clusters, remote
from tsoffset.lab.demo.consumers import Consumers, Reads, read_log
from tsoffset.lab.demo.narration import Narrator
from tsoffset.lab.demo.producers import Source
from tsoffset.lab.demo.topics import (
    ACCOUNTS,
    CLICKS,
    GROUPS,
    IN_CLOSED_SEGMENTS,
    IN_FIRST_SEGMENT,
    ORDERS,
    PARTITIONS,
    PAYMENTS,
    TOPICS,
    WRITTEN,
    TopicAndPartition,
    two_hours_ago_ms,
)
from tsoffset.lab.demo.verdict import GroupResult, Logs, Resumed, group_verdict
from tsoffset.lab.embedded import KAFKA_VERSION
from tsoffset.model import Row
from tsoffset.spark.dataflow import run_cycle
from tsoffset.spark.session import spark_session
from tsoffset.terminal.notices import progress
from tsoffset.terminal.row_columns import tally_of
from tsoffset.terminal.rows import cycle_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

_COMPACTION_SECONDS = 60.0


class Story:
    """The steps, in the order of the methods; each scenario adds its own."""

    about: ClassVar[str]
    """What happens in the scenario: the end of the demo's opening sentence."""
    settings: ClassVar[Mapping[str, str]] = {}
    """Settings that differ from the other scenarios."""
    shares_file: ClassVar[bool] = True
    """Whether tsoffset reads the file that MirrorMaker 2 reads."""

    def __init__(
        self, clusters: Clusters, narrator: Narrator, pool: Executor, stack: ExitStack
    ) -> None:
        """Everything opened on the way is closed with `stack`."""
        self._clusters = clusters
        self._narrator = narrator
        self._pool = pool
        self._stack = stack
        self._consumers = Consumers(clusters, pool, stack)

    @property
    def file(self) -> Path:
        """tsoffset's configuration file at the end of the scenario."""
        return self._clusters.configuration

    @property
    def _spark_settings(self) -> Mapping[str, str]:
        return {}

    def tell(self) -> tuple[int, list[str]]:
        """Run all steps; returns the exit status and the closing sentences. Raises
        TsoffsetError."""
        raise NotImplementedError

    def _begin(self) -> tuple[Source, "Callable[[], SparkSession]"]:
        """The steps up to a complete mirror; returns the writer to the source, and a function that
        waits for Spark, which starts meanwhile."""
        self._start_brokers()
        source = self._write_history()
        mirrored = self._start_mirror()
        self._write_and_read(source)
        session = self._start_spark()
        self._mirror_all(mirrored)
        return source, session

    def _aside(self, work: Callable[[], T]) -> T:
        """Run it in another thread: kafka-python sometimes swallows Ctrl-C as an error of its
        own."""
        return self._pool.submit(work).result()

    def _start_brokers(self) -> None:
        self._narrator.step("Two clusters of one broker each")
        with progress("starting two brokers"):
            self._clusters.start_brokers(self._pool)
        self._narrator.say(
            f"{SOURCE} at {self._clusters.at_source.bootstrap} is the source, {TARGET} at "
            f"{self._clusters.at_target.bootstrap} the target. Kafka {KAFKA_VERSION}."
        )
        if self._clusters.locks is not None:
            self._narrator.say(
                f"All clients need TLS ({self._clusters.at_source.protocol}) and the password of "
                f"{USER} ({MECHANISM}); that of each cluster is in "
                f"{self._clusters.locks.passwords_path}, which only you can read."
            )

    def _write_history(self) -> Source:
        """The records and commits of the source before mirroring begins."""
        self._narrator.step(f"{SOURCE} has a past")
        early = [group for group in GROUPS if group.early]
        source = self._stack.enter_context(closing(Source(self._clusters, two_hours_ago_ms())))

        def happen() -> int:
            source.create(TOPICS)
            source.write(ACCOUNTS, [IN_FIRST_SEGMENT] * PARTITIONS)
            for topic in (ORDERS, CLICKS):
                source.write(topic, topic.deleted)
            self._consumers.read_at_source(early, source.written)
            for topic in (ORDERS, CLICKS):
                source.delete_head(topic)
            for until in (IN_CLOSED_SEGMENTS, ACCOUNTS.records):
                source.write(ACCOUNTS, [until] * PARTITIONS)
            return self._wait_for_compaction()

        with progress(f"writing to {SOURCE}"):
            left = self._aside(happen)
        self._narrator.say(
            f"{sum(ORDERS.deleted) + sum(CLICKS.deleted):,} old records of {ORDERS.name} and "
            f"{CLICKS.name} are deleted again, so offsets on {TARGET} will be lower. "
            f"{ACCOUNTS.name} is compacted: {left:,} of {PARTITIONS * ACCOUNTS.records:,} updates "
            f"are left. Two groups, {' and '.join(group.name for group in early)}, had stopped at "
            "records that no longer exist."
        )
        return source

    def _wait_for_compaction(self) -> int:
        """Wait until closed segments have each key once; returns how many records are left.

        Otherwise source and target would be compacted at the same time, and no two demos would be
        equal.
        """
        broker = self._clusters.source
        wanted = PARTITIONS * (ACCOUNTS.keys + ACCOUNTS.records - IN_CLOSED_SEGMENTS)

        def missing() -> str | None:
            left = sum(map(len, read_log(self._clusters.at_source, [ACCOUNTS.name]).values()))
            return None if left == wanted else f"{left:,} records are left"

        broker.wait_until(missing, seconds=_COMPACTION_SECONDS, doing=f"compact {ACCOUNTS.name}")
        return wanted

    def _start_mirror(self) -> Callable[[], None]:
        """Begin to mirror; returns a function that waits until everything is copied."""
        both, its = ("MirrorMaker 2 and tsoffset read the same file", "MirrorMaker 2's own file")
        self._narrator.step(both if self.shares_file else its)
        telling = self._clusters.write_configuration(self.settings, shared=self.shares_file)
        self._narrator.say(f"{self._clusters.configuration} holds:")
        self._narrator.quote(f"{name} = {value}" for name, value in telling.items())
        starting = self._pool.submit(self._clusters.mirror.start)

        def wait() -> None:
            starting.result()
            self._clusters.wait_until_mirrored()

        return wait

    def _write_and_read(self, source: Source) -> None:
        self._narrator.step(f"Applications write to {SOURCE} and read from it")
        groups = [group for group in GROUPS if not group.early]

        def write() -> None:
            for topic in TOPICS:
                source.write(topic, [topic.records] * PARTITIONS)

        with progress(f"writing to {SOURCE}"):
            self._aside(write)
        with progress(f"reading from {SOURCE}"):
            self._aside(lambda: self._consumers.read_at_source(groups, source.written))
        self._narrator.say(
            f"{WRITTEN:,} records in {len(TOPICS)} topics of {PARTITIONS} partitions: "
            f"{ORDERS.name}, plain; {CLICKS.name}, hundreds with one timestamp; "
            f"{ACCOUNTS.name}, compacted; {PAYMENTS.name}, in transactions ({source.aborted:,} "
            "more records were aborted).",
            f"{len(GROUPS)} groups have read with real consumers, committed and stopped: some "
            "caught up, some far behind. The demo records what each has processed.",
        )

    def _start_spark(self) -> "Callable[[], SparkSession]":
        """Start Spark meanwhile; returns a function that waits for it."""
        settings = self._configuration().resolve().spark
        context = spark_session({**settings, **self._spark_settings})
        starting = self._pool.submit(context.__enter__)

        def end() -> None:
            if not starting.cancel() and starting.exception() is None:
                context.__exit__(None, None, None)

        self._stack.callback(end)
        return starting.result

    def _mirror_all(self, mirrored: Callable[[], None]) -> None:
        """Wait for MirrorMaker 2, while two groups read on the target already."""
        self._narrator.step(f"MirrorMaker 2 copies everything to {TARGET}")
        with progress("waiting until everything is mirrored"):
            self._aside(mirrored)
        there = [group for group in GROUPS if group.on_target is not None]

        def read() -> list[str]:
            for group in there:
                self._consumers.read_at_target(group)
            return self._helper_topics()

        with progress(f"reading from {TARGET}"):
            helpers = self._aside(read)
        stays = next(group.name for group in there if group.member)
        left = next(group.name for group in there if not group.member)
        self._narrator.say(
            f"It is there as {', '.join(remote(topic.name) for topic in TOPICS)}. "
            f"{' and '.join(helpers) or 'Neither cluster'} {'have' if helpers[1:] else 'has'} an "
            "offset-syncs or a checkpoints topic.",
            f"Two groups have started to read there: {left}, whose consumer has stopped again, "
            f"and {stays}, whose consumer keeps running.",
        )

    def _helper_topics(self) -> list[str]:
        """Clusters with topics of MirrorMaker 2's own translation, which tsoffset does not need."""
        found = []
        accesses = {SOURCE: self._clusters.at_source, TARGET: self._clusters.at_target}
        for name, access in accesses.items():
            with closing(KafkaConsumer(**access.settings())) as consumer:
                if re.search("offset-syncs|checkpoints", " ".join(consumer.topics())):
                    found.append(name)
        return found

    def _go_on(self) -> dict[str, Reads]:
        """All consumers continue on the target; returns what they got, by group."""
        found: dict[str, Reads] = {}
        with progress("consumers resume") as report:
            for group, reads in zip(GROUPS, self._consumers.go_on(GROUPS), strict=True):
                found[group.name] = reads
                if report is not None:
                    report("groups", len(found), len(GROUPS))
        return found

    def _judge_groups(
        self, rows: Sequence[Row], reads: Mapping[str, Reads]
    ) -> tuple[dict[str, list[Resumed]], list[GroupResult]]:
        """How each group continued on the target, and the results."""
        with progress("comparing by content"):
            logs = self._aside(self._consumers.logs)
            resumed = self._resumed_groups(rows, reads, logs, lambda row: row.source_topic)
            return resumed, [group_verdict(it.name, resumed[it.name], it.metadata) for it in GROUPS]

    def _resumed_groups(
        self,
        rows: Sequence[Row],
        reads: Mapping[str, Reads],
        logs: Mapping[TopicAndPartition, Logs],
        topic_of: Callable[[Row], str | None],
    ) -> dict[str, list[Resumed]]:
        """How each group continued; `topic_of` is a row's topic under its name on the source."""
        found: dict[str, list[Resumed]] = {group.name: [] for group in GROUPS}
        for row in rows:
            topic = topic_of(row)
            assert row.group is not None
            assert topic is not None
            assert row.partition is not None
            partition = topic, row.partition
            processed = self._consumers.processed[row.group, partition]
            read = reads[row.group][row.partition]
            found[row.group].append(Resumed(row, logs[partition], processed, read))
        return found

    def _cycle(self, spark: "SparkSession", task: FlowTask) -> list[Row]:
        """The rows of one cycle, as `tsoffset sync` runs it. Raises CycleFailed if a row failed,
        after showing all."""
        with progress(task.flow) as report:
            result = run_cycle(spark, task, commit=True, progress=report)
        rows = list(result.rows)
        self._narrator.items(result.warnings)
        if tally_of(result.rows.table).failed:
            self._show(task.flow, rows)
            raise CycleFailed(
                f"sync {task.flow}: some rows failed, so there is nothing to judge; the table "
                f"above says why, and the brokers' logs are in {self._clusters.folder}"
            )
        return rows

    def _show(self, flow: str, rows: Sequence[Row]) -> None:
        summary = tally_of(rows_table(rows)).in_words
        config = str(self._clusters.configuration)
        self._narrator.lines(cycle_lines(flow, rows, summary, config, self._narrator.width))

    def _configuration(self) -> Configuration:
        return Configuration.read(self._clusters.configuration)
