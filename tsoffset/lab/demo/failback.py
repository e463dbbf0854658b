"""The scenario `failback`: groups that have worked on the target return to the source, without any
data flow back."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tsoffset.config.loading import Configuration
from tsoffset.flow.narrowing import Narrowing
from tsoffset.group_sync.flow_cycle import FlowTask
from tsoffset.group_sync.rows import rows_table
from tsoffset.lab.demo.clusters import BACK, FLOW, SOURCE, TARGET
from tsoffset.lab.demo.consumers import Reads, read_log
from tsoffset.lab.demo.narration import verdict_columns
from tsoffset.lab.demo.producers import Source
from tsoffset.lab.demo.story import Story
from tsoffset.lab.demo.topics import (
    CLICKS,
    COMPACTED,
    GROUPS,
    ORDERS,
    PARTITIONS,
    TOPICS,
    DemoGroup,
)
from tsoffset.lab.demo.verdict import GroupResult, Logs, conclusion, group_verdict
from tsoffset.model import Row
from tsoffset.terminal.notices import progress
from tsoffset.terminal.row_columns import tally_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# For each partition: the most records that a group reads on the target, and the number written to
# the source after MirrorMaker 2 was stopped.
_READ_THERE = 200
_NEVER_MIRRORED = 150


class Failback(Story):
    about = "a failover, some work on the target, and the way back"

    @property
    def _groups(self) -> Sequence[DemoGroup]:
        """Groups with offsets that can be translated, and that no other program has moved."""
        return [group for group in GROUPS if group.on_target is None and not group.early]

    @property
    def _narrowing(self) -> Narrowing:
        return Narrowing("|".join(group.name for group in self._groups))

    def tell(self) -> tuple[int, list[str]]:
        source, session = self._begin()
        self._narrator.step(f"Failover: tsoffset sync brings the groups to {TARGET}")
        with progress("starting Spark"):
            spark = session()
        rows = self._cycle(spark, FlowTask(self._configuration(), FLOW, self._narrowing))
        self._narrator.say(f"{tally_of(rows_table(rows)).in_words()}.")
        read = self._work_there()
        self._go_on_at_home(source)
        rows = self._come_back(spark)
        return conclusion(self._judge(rows, self._resume(), read), SOURCE)

    def _work_there(self) -> dict[str, int]:
        self._narrator.step(f"Consumers work on {TARGET}")
        with progress(f"reading from {TARGET}"):
            read = self._aside(lambda: self._consumers.work_at_target(self._groups, _READ_THERE))
        self._narrator.say(
            f"Real consumers of {len(self._groups)} groups continue there from the offsets that "
            f"were set, read {sum(read.values()):,} records, commit and stop. {SOURCE} knows "
            "nothing of it."
        )
        return read

    def _go_on_at_home(self, source: Source) -> None:
        """Write records that are never mirrored, on the cluster to which the groups return."""
        self._narrator.step(f"{SOURCE} continues without MirrorMaker 2")

        def happen() -> None:
            self._clusters.stop_mirror()
            for topic in (ORDERS, CLICKS):
                source.write(topic, [topic.records + _NEVER_MIRRORED] * PARTITIONS)

        with progress(f"writing to {SOURCE}"):
            self._aside(happen)
        self._narrator.say(
            f"MirrorMaker 2 is stopped, and {2 * PARTITIONS * _NEVER_MIRRORED:,} more records are "
            f"written to {ORDERS.name} and {CLICKS.name}: {TARGET} never gets them. A group that "
            "resumed at the end of these logs would skip them."
        )

    def _come_back(self, spark: "SparkSession") -> list[Row]:
        path, telling = self._clusters.write_failback_configuration()
        self._narrator.step(f"tsoffset sync -c {path.name}")
        self._narrator.say(
            "A separate configuration for the way back, which MirrorMaker 2 never reads:"
        )
        self._narrator.quote(f"{name} = {value}" for name, value in telling.items())
        self._narrator.say(
            "No records flow back, and neither flow writes offset syncs: tsoffset finds the "
            "originals of the copies that the groups have read by their content."
        )
        rows = self._cycle(spark, FlowTask(Configuration.read(path), BACK, self._narrowing))
        self._show(BACK, rows)
        return rows

    def _resume(self) -> dict[str, Reads]:
        self._narrator.step(f"The consumers resume on {SOURCE}")
        with progress("consumers resume"):
            reads = self._aside(lambda: [*self._consumers.go_on(self._groups, at_source=True)])
        return dict(zip((group.name for group in self._groups), reads, strict=True))

    def _judge(
        self, rows: Sequence[Row], reads: dict[str, Reads], there: dict[str, int]
    ) -> list[GroupResult]:
        names = [topic.name for topic in TOPICS]
        with progress("comparing by content"):
            logs = self._aside(lambda: read_log(self._clusters.at_source, names))
        homes = {
            partition: Logs(log, log, partition[0] in COMPACTED) for partition, log in logs.items()
        }
        resumed = self._resumed_groups(rows, reads, homes, lambda row: row.target_topic)
        verdicts = [group_verdict(it.name, resumed[it.name], it.metadata) for it in self._groups]
        self._narrator.say(
            f"A real consumer of each group reads {SOURCE} to the end. What it gets is "
            f"compared, record by record, with what the group had processed on {SOURCE} before and "
            f"on {TARGET} since."
        )
        stands = {name: f"{number:,} records read on {TARGET}" for name, number in there.items()}
        self._narrator.table(verdict_columns(stands), verdicts)
        return verdicts
