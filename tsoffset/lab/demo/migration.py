"""The scenario `migration`: from MirrorMaker 2's checkpoint connector to tsoffset, by the steps
that `tsoffset migrate` prints."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tsoffset.cluster import committed_columns
from tsoffset.commands.check.flow_check import run_check
from tsoffset.commands.compare.options import By, CompareOptions
from tsoffset.commands.compare.run import run_compare
from tsoffset.commands.migrate.reading import read_setup
from tsoffset.commands.migrate.run import DEFAULT_FILE, run_migrate
from tsoffset.commands.migrate.sorting import SYNC, migration_of
from tsoffset.commands.migrate.steps import Command, Step, migration_steps
from tsoffset.commands.snapshots.run import run_snapshot
from tsoffset.config.findings import Findings
from tsoffset.config.loading import Configuration
from tsoffset.config.selection import Selection, Selector
from tsoffset.flow.policy import internal_topics
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.flow_cycle import FlowTask
from tsoffset.group_sync.rows import rows_table
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.lab.demo.clusters import FLOW, SOURCE, TARGET, Clusters, change_settings
from tsoffset.lab.demo.consumers import Reads
from tsoffset.lab.demo.narration import WAY_COLUMNS, verdict_columns
from tsoffset.lab.demo.producers import Source
from tsoffset.lab.demo.story import Story
from tsoffset.lab.demo.topics import GROUPS, ORDERS, PARTITIONS
from tsoffset.lab.demo.verdict import GroupResult, conclusion, way
from tsoffset.model import OutcomeKind, Row
from tsoffset.replicators.checkpoints import (
    CheckpointKey,
    Checkpoints,
    committed_by_key,
    read_checkpoints,
)
from tsoffset.spark.dataflow import run_cycle
from tsoffset.terminal.notices import Notices, progress
from tsoffset.terminal.output import Format, Output
from tsoffset.terminal.row_columns import tally_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# With these MirrorMaker 2 writes offset syncs and checkpoints.
_CHECKPOINTS: Mapping[str, str] = {
    "emit.offset-syncs.enabled": "true",
    "emit.checkpoints.enabled": "true",
    "emit.checkpoints.interval.seconds": "1",
    "offset-syncs.topic.replication.factor": "1",
}
_CHECKPOINTS_SECONDS = 90.0
# MirrorMaker 2 checks the groups each second. It counts as done if its checkpoints are the same in
# this many looks in a row.
_CHECKS = 8
# MirrorMaker 2 does not commit for a group with consumers on the target.
_IDLE = frozenset(group.name for group in GROUPS if not group.member)
_TIMEOUT_SECONDS = 60.0
# For each partition, to check that MirrorMaker 2 still copies in the end.
_WRITTEN_LAST = 100


class MigrationStory(Story):
    """The steps after everything is mirrored, with the titles and commands of `tsoffset
    migrate`."""

    about = "its checkpoint connector committing for the groups, and the way from it to tsoffset"
    settings: ClassVar[Mapping[str, str]] = {
        **_CHECKPOINTS,
        f"{FLOW}.{SYNC}": "true",
        "sync.group.offsets.interval.seconds": "1",
    }
    shares_file = False
    _checkpoints = 0

    @property
    def file(self) -> Path:
        return self._clusters.folder / DEFAULT_FILE

    def tell(self) -> tuple[int, list[str]]:
        source, session = self._begin()
        self._show_mirror_maker_offsets()
        self._migrate()
        setup = read_setup([str(self._clusters.configuration)], Findings())
        assert setup is not None
        migration = migration_of(setup)
        look, beside, comparison, off, on, end, delete = migration_steps(migration, str(self.file))
        (flow,) = migration.flows
        status = self._look(look)
        spark = session()
        self._run_side_by_side(beside, spark)
        status |= self._compare(comparison)
        self._switch_off(off)
        rows = self._switch_on(on, spark)
        verdicts = self._judge(rows, self._go_on())
        self._end(end, flow.connectors_topic, [entry.key for entry in flow.topic_entries])
        self._delete(
            delete,
            source,
            [
                (flow.offset_syncs_at, flow.offset_syncs_topic),
                (flow.target, flow.checkpoints_topic),
            ],
        )
        again = self._once_more(spark)
        return self._conclusion(status, verdicts, rows, again)

    # --- what MirrorMaker 2 has ------------------------------------------------------------

    def _start_mirror(self) -> Callable[[], None]:
        """The mirror is complete when all checkpoints are committed, too.

        MirrorMaker 2 compares a checkpoint with the target's offset as it was up to an interval
        ago. While it still commits, it can move a group back that read on the target meanwhile.
        """
        mirrored = super()._start_mirror()

        def wait() -> None:
            mirrored()
            (flow,) = self._configuration().resolve().select((FLOW,))
            self._checkpoints = _wait_for_checkpoints(self._clusters, flow)

        return wait

    def _show_mirror_maker_offsets(self) -> None:
        self._narrator.step(f"MirrorMaker 2 has committed for the groups on {TARGET}")
        self._narrator.say(
            f"Its checkpoint connector has translated {self._checkpoints} commits, and set those "
            f"of idle groups on {TARGET}: this is what consumers would resume from."
        )

    def _migrate(self) -> None:
        made_of = self._clusters.configuration
        self._narrator.step(f"tsoffset migrate {made_of.name} -o {self.file.name}")
        printed, notices = StringIO(), _Heard()
        run_migrate(
            [str(made_of)],
            Output(printed, Format.TABLE),
            notices,
            to=self.file,
            force=False,
            steps_alone=False,
        )
        self._narrator.say(f"{self.file.name} is written, here without its comments:")
        lines = self.file.read_text().splitlines()
        self._narrator.quote(line for line in lines if line and not line.startswith("#"))
        self._narrator.say(
            *(f"{sentence}; the comments name each." for sentence in notices.sentences),
            "It prints these steps, each with its commands and its check. The demo takes them now:",
        )
        titles = re.findall(r"(?m)^\d+\. .*", printed.getvalue())
        self._narrator.quote(titles)

    # --- the steps -------------------------------------------------------------------------

    def _look(self, step: Step) -> int:
        self._begin_step(step, step.check)
        printed = StringIO()
        status = run_check(self._selection(), Output(printed, Format.TABLE), Notices())
        self._narrator.say(
            f"It ends with: {printed.getvalue().splitlines()[-1]}. One warning is expected: "
            "nothing is committed yet."
        )
        return status

    def _run_side_by_side(self, step: Step, spark: "SparkSession") -> None:
        self._begin_step(step, step.check)
        self._consumers.stay()
        with progress("planning") as report:
            planned = run_cycle(spark, self._task(), commit=False, progress=report)
        self._narrator.say(
            f"{tally_of(planned.rows.table).in_words()}.",
            f"Nothing is committed: {SYNC} is false in {self.file.name}.",
        )

    def _compare(self, step: Step) -> int:
        self._begin_step(step, step.check, f" --by {By.GROUP}")
        self._narrator.say(
            "RECORDS is the most records that a group re-reads if it resumes from MirrorMaker 2's"
            " checkpoints."
        )
        self._narrator.lines([])
        wanted = CompareOptions(by=By.GROUP)
        return run_compare(self._selection(), wanted, Output(sys.stdout, Format.TABLE), Notices())

    def _switch_off(self, step: Step) -> None:
        self._begin_step(step, step.todo)
        change_settings(self._clusters.configuration, {f"{FLOW}.{SYNC}": "false"})
        self._restart("MirrorCheckpointConnector connector configured")
        self._narrator.say(f"{TARGET} keeps its offsets; nothing commits for the groups now.")

    def _switch_on(self, step: Step, spark: "SparkSession") -> list[Row]:
        self._begin_step(step, (*step.todo, step.check[0]))
        path = self._clusters.folder / f"{TARGET}.snapshot"
        run_snapshot(self._selection(), path, Output(StringIO(), Format.TABLE), _Heard())
        change_settings(self.file, {f"{FLOW}.{SYNC}": "true"})
        self._consumers.stay()
        rows = self._cycle(spark, self._task())
        self._narrator.say(f"{path.name} is saved. {tally_of(rows_table(rows)).in_words()}.")
        return rows

    def _end(self, step: Step, connectors_topic: str, unwanted: Sequence[str]) -> None:
        self._begin_step(step, step.todo)
        self._narrator.say(
            "With the removed line it would refuse to copy. Its old settings are deleted while it "
            "is stopped; otherwise it would keep the checkpoint connector."
        )
        off = ("emit.checkpoints.enabled", "emit.offset-syncs.enabled")
        change_settings(
            self._clusters.configuration, {f"{FLOW}.{name}": "false" for name in off}, unwanted
        )
        self._restart(
            "Failed to configure MirrorCheckpointConnector",
            lambda: self._clusters.delete_topic(TARGET, connectors_topic),
        )
        self._narrator.say("This failure is expected: there is no checkpoint connector now.")

    def _delete(self, step: Step, source: Source, topics: Iterable[tuple[str, str]]) -> None:
        self._begin_step(step, step.todo)

        def happen() -> list[str]:
            for cluster, topic in topics:
                self._clusters.delete_topic(cluster, topic)
            source.write(ORDERS, [ORDERS.records + _WRITTEN_LAST] * PARTITIONS)
            self._clusters.wait_until_mirrored()
            return self._helper_topics()

        with progress("deleting, and writing more"):
            left = self._aside(happen)
        self._narrator.say(
            f"{PARTITIONS * _WRITTEN_LAST} more records of {ORDERS.name} are written to {SOURCE} "
            "and copied as before, and the topics have not been created again: "
            f"{' and '.join(left) or 'neither cluster'} has one."
        )

    def _once_more(self, spark: "SparkSession") -> list[Row]:
        self._narrator.quote([f"tsoffset sync -c {self.file.name}"])
        self._consumers.stay()
        rows = self._cycle(spark, self._task())
        self._narrator.say(f"{tally_of(rows_table(rows)).in_words()}.")
        return rows

    # --- by content ------------------------------------------------------------------------

    def _judge(self, rows: Sequence[Row], reads: dict[str, Reads]) -> list[GroupResult]:
        resumed, verdicts = self._judge_groups(rows, reads)
        self._narrator.say(
            f"A real consumer of each group reads on {TARGET} to the end. RE-READ counts records "
            "that the group had already processed, by content.",
            apart=True,
        )
        self._narrator.table(verdict_columns({one.name: one.stands for one in GROUPS}), verdicts)
        moved = [one for verdict in verdicts if verdict.moved for one in resumed[verdict.group]]
        self._narrator.table(
            WAY_COLUMNS,
            [
                way(
                    "as MirrorMaker 2 had set them",
                    moved,
                    lambda one: one.row.current_target_offset,
                ),
                way("as tsoffset has set them", moved, lambda one: one.stands_at),
            ],
        )
        return verdicts

    def _conclusion(
        self, status: int, verdicts: Sequence[GroupResult], rows: Sequence[Row], again: list[Row]
    ) -> tuple[int, list[str]]:
        judged, sentences = conclusion(verdicts, TARGET)
        backwards = [
            row
            for row in rows
            if row.outcome is OutcomeKind.COMMITTED
            and (row.target_offset or 0) < (row.current_target_offset or 0)
        ]
        if backwards:
            sentences.append(f"{len(backwards)} offsets went backwards; please report it.")
        else:
            sentences.append("No offset went backwards.")
        if status:
            sentences.append("check or compare did not end with status 0; see what they say above.")
        moved = tally_of(rows_table(again)).outcomes[OutcomeKind.COMMITTED]
        if moved:
            sentences.append(
                f"The last sync moved {moved} offsets of groups that had not committed."
            )
        return max(status, judged, int(bool(backwards or moved))), sentences

    # --- what the steps have in common -----------------------------------------------------

    def _begin_step(self, step: Step, told: Iterable[str], more: str = "") -> None:
        """Print the step's title and its commands, each followed by `more`; file names are shown
        without their folder."""
        self._narrator.step(step.title)
        folder = f"{self._clusters.folder}/"
        commands = (one for one in told if isinstance(one, Command))
        self._narrator.quote(text.replace(folder, "") + more for text in commands)

    def _restart(self, awaited: str, between: Callable[[], None] | None = None) -> None:
        """Start MirrorMaker 2 again, and show what it logs about its connectors."""
        mirror = self._clusters.mirror

        def happen() -> None:
            self._clusters.restart_mirror(between)
            mirror.wait_until(
                lambda: None if awaited in mirror.said() else f"its log does not have: {awaited}",
                seconds=_TIMEOUT_SECONDS,
                doing=f"restart {mirror.name}",
            )

        with progress("restarting MirrorMaker 2"):
            self._aside(happen)
        self._narrator.say("Its log says:")
        lines = mirror.said().splitlines()
        self._narrator.quote(line[line.index(awaited) :] for line in lines if awaited in line)

    def _selection(self) -> Selection:
        return Selector(self.file, (FLOW,)).select()

    def _task(self) -> FlowTask:
        return FlowTask(Configuration.read(self.file), FLOW)


class _Heard(Notices):
    """Keeps a command's notices, to print them later."""

    def __init__(self) -> None:
        super().__init__()
        self.sentences: list[str] = []

    def note(self, sentence: str) -> None:
        self.sentences.append(sentence)


def _wait_for_checkpoints(clusters: Clusters, flow: FlowSettings) -> int:
    """Wait until MirrorMaker 2 has written and committed all checkpoints; returns the number of
    group-partitions with a checkpoint. Raises EmbeddedError."""
    topic = internal_topics(flow.policy).checkpoints_topic(flow.source.alias)
    seen: list[dict[CheckpointKey, int]] = []

    def missing() -> str | None:
        with KafkaCluster(flow.target) as target:
            found = read_checkpoints(target, topic, wanted=lambda _: True, committed={})
            behind = _behind(target, found)
        newest = {key: one.target_offset for key, one in found.newest.items()}
        seen.append(newest)
        if newest and not behind and seen[-_CHECKS:] == [newest] * _CHECKS:
            return None
        return f"{len(newest)} pairs have a checkpoint, {behind} of them are not committed yet"

    clusters.target.wait_until(missing, seconds=_CHECKPOINTS_SECONDS, doing=f"wait for {topic}")
    return len(seen[-1])


def _behind(target: KafkaCluster, found: Checkpoints) -> int:
    """The number of checkpoints of idle groups that are past the target group's committed
    offset."""
    wanted = {key: one for key, one in found.newest.items() if key.group in _IDLE}
    names = sorted({key.group for key in wanted})
    columns = committed_columns(target, names, require_stable=False)
    current = committed_by_key(columns.by_group())
    return sum(current.get(key, -1) < one.target_offset for key, one in wanted.items())
