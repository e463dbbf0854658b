"""The story of a migration: from MirrorMaker 2's checkpoint connector to tsoffset."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tsoffset.commands.migrate.command import run_migrate
from tsoffset.config.loading import Configuration
from tsoffset.demo import checkpoints
from tsoffset.demo.clusters import FLOW, TARGET
from tsoffset.demo.compare import Compare
from tsoffset.demo.failover import Failover
from tsoffset.demo.groups import GROUPS
from tsoffset.demo.narration import verdict_columns
from tsoffset.demo.verdict import GroupVerdict, conclusion, group_verdict
from tsoffset.model import Row
from tsoffset.spark.flow import FlowTask
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output
from tsoffset.terminal.progress import progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OFF, _ON = (f"{FLOW}.sync.group.offsets.enabled = {word}" for word in ("false", "true"))


class Migration(Compare, Failover):
    """The steps after all is mirrored, as `tsoffset migrate` prints them."""

    about = "which syncs the groups' offsets by its checkpoints, and the move to tsoffset"
    settings: ClassVar[Mapping[str, str]] = {
        **checkpoints.SETTINGS,
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
    }

    def tell(self) -> tuple[int, list[str]]:
        """Run all steps; return the exit status and the sentences of the end. Raises
        TsoffsetError."""
        _, session = self._begin()
        self._checkpoint()
        file = self._migrate()
        status = self._set_beside(file)
        with progress("starting Spark"):
            spark = session()
        rows = self._switch(spark, file)
        verdicts = self._judge_moved(rows)
        failed, sentences = conclusion(verdicts, TARGET)
        return max(status, failed), sentences

    def _migrate(self) -> Path:
        there = self._clusters.configuration
        file = there.with_name("tsoffset.properties")
        self._narrator.step(f"tsoffset migrate {there.name} -o {file.name}")
        self._narrator.lines([])
        run_migrate(
            (str(there),),
            Output(sys.stdout, Format.TABLE),
            Notices(),
            to=file,
            force=False,
            steps_alone=False,
        )
        return file

    def _switch(self, spark: "SparkSession", file: Path) -> list[Row]:
        """MirrorMaker 2's sync off, ours on, and one cycle."""
        clusters = self._clusters
        self._narrator.step("The switch")

        def restart() -> None:
            clusters.stop_mirror()
            with clusters.configuration.open("a") as added:
                added.write(f"{_OFF}\n")
            clusters.mirror.start()

        with progress("restarting MirrorMaker 2"):
            self._aside(restart)
        file.write_text(file.read_text().replace(_OFF, _ON))
        self._narrator.say(
            f"{_OFF} in {clusters.configuration.name}, MirrorMaker 2 restarted;",
            f"{_ON} in {file.name}; then tsoffset sync -c {file.name}:",
        )
        self._consumers.stay()
        rows = self._cycle(spark, FlowTask(Configuration.read(file), FLOW))
        self._show(FLOW, rows)
        return rows

    def _judge_moved(self, rows: Sequence[Row]) -> list[GroupVerdict]:
        reads = self._fail_over()
        with progress("comparing by content"):
            resumed = self._aside(lambda: self._resumed(rows, reads))
        verdicts = [
            group_verdict(group.name, resumed[group.name], group.metadata) for group in GROUPS
        ]
        self._narrator.table(verdict_columns({g.name: g.stands for g in GROUPS}), verdicts)
        return verdicts
