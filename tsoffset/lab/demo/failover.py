"""The scenario `failover`: one sync, and the consumers of all groups resume on the target."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tsoffset.group_sync.flow_cycle import FlowTask
from tsoffset.lab.demo.clusters import FLOW, TARGET
from tsoffset.lab.demo.consumers import Reads
from tsoffset.lab.demo.narration import WAY_COLUMNS, verdict_columns
from tsoffset.lab.demo.story import Story
from tsoffset.lab.demo.topics import GROUPS
from tsoffset.lab.demo.verdict import GroupResult, Resumed, conclusion, way
from tsoffset.model import Row
from tsoffset.spark.dataflow import run_cycle
from tsoffset.terminal.notices import progress
from tsoffset.terminal.row_columns import tally_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Failover(Story):
    about = "one sync of the consumer groups' offsets, and a failover"

    def tell(self) -> tuple[int, list[str]]:
        _, session = self._begin()
        rows, by_timestamp = self._sync(session)
        self._narrator.step(f"Failover: the consumers of all groups resume on {TARGET}")
        reads = self._go_on()
        return conclusion(self._judge(rows, by_timestamp, reads), TARGET)

    def _sync(self, session: "Callable[[], SparkSession]") -> tuple[list[Row], list[Row]]:
        """Run one cycle as `tsoffset sync` does. Returns its rows, and the rows of a plan by
        timestamps alone."""
        configuration = self._configuration()
        self._narrator.step(f"tsoffset sync -c {self._clusters.configuration.name}")
        with progress("starting Spark"):
            spark = session()
        self._consumers.stay()
        task = FlowTask(configuration, FLOW)
        rows = self._cycle(spark, task)
        self._show(FLOW, rows)
        with progress("syncing again") as report:
            again = run_cycle(spark, task, commit=True, progress=report)
        self._narrator.say(f"A second sync: {tally_of(again.rows.table).in_words()}.", apart=True)
        with progress("timestamps alone") as report:
            lines = f"{configuration.text}\ntranslation.proof = timestamps\n"
            simple = FlowTask(replace(configuration, text=lines), FLOW)
            other = run_cycle(spark, simple, commit=False, progress=report)
        return rows, list(other.rows)

    def _judge(
        self, rows: Sequence[Row], by_timestamp: Sequence[Row], reads: dict[str, Reads]
    ) -> list[GroupResult]:
        resumed, verdicts = self._judge_groups(rows, reads)
        self._narrator.say(
            "A real consumer of each group reads from the group's offsets to the end. What it "
            "gets is compared, record by record, with what the group had processed."
        )
        stands = {group.name: group.stands for group in GROUPS}
        self._narrator.table(verdict_columns(stands), verdicts)
        self._compare(
            [one for verdict in verdicts if verdict.moved for one in resumed[verdict.group]],
            by_timestamp,
        )
        return verdicts

    def _compare(self, moved: Sequence[Resumed], by_timestamp: Sequence[Row]) -> None:
        """The re-reads and skips with other target offsets for the same source offsets."""
        by_place = {
            (row.group, row.source_topic, row.partition): row.target_offset for row in by_timestamp
        }
        self._narrator.say(
            f"Other rules for the same {len(moved)} source offsets, computed on the same logs. "
            "Without an answer the group has no valid commit, and its consumer's "
            "auto.offset.reset applies: it re-reads everything, or skips records.",
            apart=True,
        )
        ways = [
            way("as tsoffset commits them", moved, lambda one: one.row.target_offset),
            way(
                "by timestamp alone (KIP-1292's rule)",
                moved,
                lambda one: by_place[one.row.group, one.row.source_topic, one.row.partition],
            ),
            way("the source's offsets, unchanged", moved, lambda one: one.copied),
        ]
        self._narrator.table(WAY_COLUMNS, ways)
