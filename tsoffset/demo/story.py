"""The demo from its first broker to its verdict, step by step."""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from tsoffset.config.loading import Configuration
from tsoffset.demo.applications import Applications, Reads
from tsoffset.demo.clusters import FLOW, SOURCE, TARGET, Clusters, remote
from tsoffset.demo.consumers import read_log, topic_names
from tsoffset.demo.groups import GROUPS
from tsoffset.demo.logs import Place
from tsoffset.demo.narration import Narrator, verdict_table, ways_table
from tsoffset.demo.producers import Source
from tsoffset.demo.topics import (
    ACCOUNTS,
    CLICKS,
    IN_CLOSED_SEGMENTS,
    IN_FIRST_SEGMENT,
    ORDERS,
    PARTITIONS,
    PAYMENTS,
    TOPICS,
    WRITTEN,
    two_hours_ago_ms,
)
from tsoffset.demo.verdict import (
    Count,
    GroupVerdict,
    Logs,
    Resumed,
    group_verdict,
    imagined,
    surprises,
    way,
)
from tsoffset.errors import CycleFailed, EmbeddedError
from tsoffset.model import OutcomeKind, Row
from tsoffset.spark.dataflow import run_cycle
from tsoffset.spark.flow import FlowTask
from tsoffset.spark.session import spark_session
from tsoffset.terminal.output import Tally, sorted_rows
from tsoffset.terminal.progress import progress
from tsoffset.terminal.rows import cycle_lines
from tsoffset.testing.embedded import KAFKA_VERSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

Session = Callable[[], "SparkSession"]
Starts = Mapping[tuple[str, Place], int | None]
"""Target offsets by group and source partition; None is no answer."""

_COMPACTION_SECONDS = 60.0
_LOOK_SECONDS = 0.1


class Story:
    """The steps, in the order of the methods."""

    def __init__(
        self, clusters: Clusters, narrator: Narrator, pool: Executor, stack: ExitStack
    ) -> None:
        """What is opened on the way is closed with `stack`."""
        self._clusters = clusters
        self._narrator = narrator
        self._pool = pool
        self._stack = stack
        self._applications = Applications(clusters, pool, stack)

    def tell(self) -> list[GroupVerdict]:
        """Run all steps; return what became of each group. Raises TsoffsetError."""
        self._start_brokers()
        source = self._write_history()
        mirrored = self._start_mirror()
        self._write_and_read(source)
        session = self._start_spark()
        self._mirror_all(mirrored)
        rows, by_timestamp = self._sync(session)
        reads = self._fail_over()
        return self._judge(rows, by_timestamp, reads)

    def _aside(self, work: Callable[[], T]) -> T:
        """Do it in another thread: kafka-python now and then takes Ctrl-C for an error of its
        own, and drops it."""
        return self._pool.submit(work).result()

    def _start_brokers(self) -> None:
        self._narrator.step("Two clusters of one broker each")
        with progress("starting two brokers"):
            self._clusters.start_brokers(self._pool)
        self._narrator.say(
            f"{SOURCE} at {self._clusters.source.bootstrap} is the source, {TARGET} at "
            f"{self._clusters.target.bootstrap} the target. Kafka {KAFKA_VERSION}."
        )

    def _write_history(self) -> Source:
        """What the source has seen before mirroring begins."""
        self._narrator.step(f"{SOURCE} has a past")
        early = [group for group in GROUPS if group.early]
        source = self._stack.enter_context(
            closing(Source(self._clusters.source.bootstrap, two_hours_ago_ms()))
        )

        def happen() -> int:
            source.create(TOPICS)
            source.write(ACCOUNTS, [IN_FIRST_SEGMENT] * PARTITIONS)
            for topic in (ORDERS, CLICKS):
                source.write(topic, topic.deleted)
            self._applications.read_at_source(early, source.written)
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
            "records that are gone by now."
        )
        return source

    def _wait_for_compaction(self) -> int:
        """Wait until closed segments hold each key once; return how many records are left.

        Else source and target would be compacted at the same time, and no two demos be alike.
        """
        open_updates = ACCOUNTS.records - IN_CLOSED_SEGMENTS
        deadline = time.monotonic() + _COMPACTION_SECONDS
        while True:
            log = read_log(self._clusters.source.bootstrap, [ACCOUNTS.name])
            if all(len(entries) == ACCOUNTS.keys + open_updates for entries in log.values()):
                return sum(map(len, log.values()))
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"compact {ACCOUNTS.name} on {SOURCE}: not done after "
                    f"{_COMPACTION_SECONDS:g} s; see {self._clusters.source.log_path}"
                )
            time.sleep(_LOOK_SECONDS)

    def _start_mirror(self) -> Callable[[], None]:
        """Begin to mirror; what is returned waits until everything is copied."""
        self._narrator.step("MirrorMaker 2 and tsoffset read one and the same file")
        telling = self._clusters.write_configuration()
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
            self._aside(lambda: self._applications.read_at_source(groups, source.written))
        self._narrator.say(
            f"{WRITTEN:,} records in {len(TOPICS)} topics of {PARTITIONS} partitions: "
            f"{ORDERS.name}, plain; {CLICKS.name}, hundreds with one timestamp; "
            f"{ACCOUNTS.name}, compacted; {PAYMENTS.name}, in transactions ({source.aborted:,} "
            "more records were aborted).",
            f"{len(GROUPS)} groups have read with real consumers, committed and stopped: some "
            "caught up, some far behind. What each has processed is taken down.",
        )

    def _start_spark(self) -> Session:
        """Start Spark beside all else; what is returned waits for it."""
        context = spark_session(self._configuration().resolve().spark)
        starting = self._pool.submit(context.__enter__)

        def end() -> None:
            if not starting.cancel() and starting.exception() is None:
                context.__exit__(None, None, None)

        self._stack.callback(end)
        return starting.result

    def _mirror_all(self, mirrored: Callable[[], None]) -> None:
        """Wait for MirrorMaker 2, and let two groups read on the target already."""
        self._narrator.step(f"MirrorMaker 2 copies everything to {TARGET}")
        with progress("waiting until all is mirrored"):
            self._aside(mirrored)
        there = [group for group in GROUPS if group.on_target is not None]

        def read() -> list[str]:
            for group in there:
                self._applications.read_at_target(group)
            return self._helper_topics()

        with progress(f"reading from {TARGET}"):
            helpers = self._aside(read)
        stays = next(group.name for group in there if group.member)
        left = next(group.name for group in there if not group.member)
        self._narrator.say(
            f"It is there as {', '.join(remote(topic.name) for topic in TOPICS)}. "
            + _said_of_helpers(helpers),
            f"Two groups have begun to read there on their own: {left}, which has stopped again, "
            f"and {stays}, whose consumer stays.",
        )

    def _helper_topics(self) -> list[str]:
        """Topics of MirrorMaker 2's own translation, which tsoffset does without."""
        clusters = (self._clusters.source, self._clusters.target)
        names = {name for cluster in clusters for name in topic_names(cluster.bootstrap)}
        return sorted(name for name in names if re.search("offset-syncs|checkpoints", name))

    def _sync(self, session: Session) -> tuple[list[Row], Starts]:
        """One cycle, as `tsoffset sync` runs it; the rows, and what timestamps alone answer."""
        configuration = self._configuration()
        self._narrator.step(f"tsoffset sync -c {self._clusters.configuration.name}")
        with progress("starting Spark"):
            spark = session()
        self._applications.stay()
        task = FlowTask(configuration, FLOW)
        with progress(FLOW) as report:
            result = run_cycle(spark, task, commit=True, progress=report)
        rows = sorted_rows(result.rows)
        summary = f"{Tally.of(rows).in_words()}; {result.seconds:.1f} s"
        self._narrator.lines(cycle_lines(FLOW, rows, summary, self._narrator.width))
        self._narrator.items(result.warnings)
        if any(row.outcome is OutcomeKind.FAILED for row in rows):
            raise CycleFailed(
                f"sync {FLOW}: some rows failed, so there is nothing to judge; the table above "
                f"says why, and the brokers' logs are in {self._clusters.folder}"
            )
        with progress("syncing again") as report:
            again = sorted_rows(run_cycle(spark, task, commit=True, progress=report).rows)
        self._narrator.say(f"The same once more: {Tally.of(again).in_words()}.", apart=True)
        with progress("timestamps alone") as report:
            lines = f"{configuration.text}\ntranslation.proof = timestamps\n"
            simple = FlowTask(replace(configuration, text=lines), FLOW)
            other = run_cycle(spark, simple, commit=False, progress=report)
        return _latest(rows, again), _starts(other.rows)

    def _configuration(self) -> Configuration:
        return Configuration.read(self._clusters.configuration)

    # --- the failover -----------------------------------------------------------------------

    def _fail_over(self) -> dict[str, Reads]:
        """All consumers go on on the target; what they got, by group."""
        self._narrator.step(f"Failover: the consumers of all groups resume on {TARGET}")
        found: dict[str, Reads] = {}
        with progress("consumers read on") as report:
            for group, reads in self._applications.go_on(GROUPS):
                found[group.name] = reads
                if report is not None:
                    report("groups", len(found), len(GROUPS))
        return found

    def _judge(
        self, rows: Sequence[Row], by_timestamp: Starts, reads: Mapping[str, Reads]
    ) -> list[GroupVerdict]:
        with progress("comparing by content"):
            logs = self._aside(self._applications.logs)
            verdicts = self._verdicts(rows, logs, reads)
        self._narrator.say(
            "A real consumer of each group reads from the group's offsets to the end. What it "
            "gets is compared, record by record, with what the group had processed."
        )
        stands = {group.name: group.stands for group in GROUPS}
        self._narrator.table(partial(verdict_table, list(verdicts.values()), stands))
        moved = [row for row in rows if row.group is not None and verdicts[row.group].moved]
        self._compare(moved, by_timestamp, logs)
        alone = [row for row in rows if row.group is not None and not verdicts[row.group].moved]
        said = surprises(rows, verdicts, self._at_translations(alone, logs), logs)
        if said:
            self._narrator.step("What may surprise")
            self._narrator.items(said)
        return list(verdicts.values())

    def _verdicts(
        self, rows: Iterable[Row], logs: Mapping[Place, Logs], reads: Mapping[str, Reads]
    ) -> dict[str, GroupVerdict]:
        found = {}
        for group in GROUPS:
            resumed = {}
            for partition, read in reads[group.name].items():
                place = (group.topic.name, partition)
                processed = self._applications.processed[group.name, place]
                resumed[place] = Resumed(processed, read.start, read.entries, read.metadata)
            own = [row for row in rows if row.group == group.name]
            found[group.name] = group_verdict(group.name, own, logs, resumed, group.metadata)
        return found

    def _compare(
        self, rows: Sequence[Row], by_timestamp: Starts, logs: Mapping[Place, Logs]
    ) -> None:
        """What other target offsets would have come to for the same positions."""
        ours = _starts(rows)
        copied = _copied(rows, logs)
        theirs = {key: by_timestamp.get(key) for key in ours}
        processed = self._applications.processed
        self._narrator.say(
            f"Other target offsets for the same {len(ours)} positions, reckoned on the same logs. "
            "Without an answer the group has no valid commit, and its consumer's "
            "auto.offset.reset decides: it re-reads everything, or skips.",
            apart=True,
        )
        self._narrator.table(
            partial(
                ways_table,
                [
                    way("as tsoffset commits them", ours, logs, processed),
                    way("by timestamp alone (KIP-1292's rule)", theirs, logs, processed),
                    way("the source's, copied as they are", copied, logs, processed),
                ],
            )
        )

    def _at_translations(self, rows: Iterable[Row], logs: Mapping[Place, Logs]) -> dict[str, Count]:
        """What groups that were left alone would have got at their translations."""
        found: dict[str, Count] = {}
        for (group, place), start in _starts(rows).items():
            if start is not None:
                count = imagined(logs[place], self._applications.processed[group, place], start)
                found[group] = found.get(group, Count()) + count
        return found


def _said_of_helpers(topics: Sequence[str]) -> str:
    if topics:
        return f"MirrorMaker 2 has made {', '.join(topics)}, for which tsoffset has no use."
    return "Neither cluster has an offset-syncs or a checkpoints topic."


def _latest(rows: Iterable[Row], again: Iterable[Row]) -> list[Row]:
    """The rows, with those that a second cycle committed in place of the first one's."""
    moved = {(row.group, _place(row)): row for row in again if row.outcome is OutcomeKind.COMMITTED}
    return [moved.get((row.group, _place(row)), row) for row in rows]


def _place(row: Row) -> Place:
    assert row.source_topic is not None
    assert row.partition is not None
    return (row.source_topic, row.partition)


def _starts(rows: Iterable[Row]) -> dict[tuple[str, Place], int | None]:
    """Where consumers would begin by the rows."""
    return {(row.group, _place(row)): row.target_offset for row in rows if row.group is not None}


def _copied(rows: Iterable[Row], logs: Mapping[Place, Logs]) -> dict[tuple[str, Place], int | None]:
    """The source's offsets; none where the target's log is not that long: no commit is valid
    there."""
    found: dict[tuple[str, Place], int | None] = {}
    for row in rows:
        if row.group is not None and row.source_offset is not None:
            log = logs[_place(row)].target
            end = log[-1].offset + 1 if log else 0
            found[row.group, _place(row)] = row.source_offset if row.source_offset <= end else None
    return found
