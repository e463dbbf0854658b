"""The scenario `compare`: MirrorMaker 2's own translation and tsoffset's, for the same groups."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tsoffset.commands.compare.options import CompareOptions
from tsoffset.commands.compare.run import run_compare
from tsoffset.config.selection import Selection
from tsoffset.lab.demo import checkpoints
from tsoffset.lab.demo.clusters import FLOW
from tsoffset.lab.demo.story import Story
from tsoffset.terminal.notices import Notices, progress
from tsoffset.terminal.output import Format, Output


class Compare(Story):
    """The steps after everything is mirrored; Spark is not needed."""

    about = "its checkpoint connector, and its checkpoints compared with tsoffset's offsets"
    settings: ClassVar[Mapping[str, str]] = checkpoints.SETTINGS

    def tell(self) -> tuple[int, list[str]]:
        _, mirrored = self._fill()
        self._mirror_all(mirrored)
        self._checkpoint()
        return self._compare_offsets(self._clusters.configuration), [
            "Both translated the same groups at the same time. Nothing was committed."
        ]

    def _checkpoint(self) -> None:
        (flow,) = self._configuration().resolve().select((FLOW,))
        self._narrator.step("MirrorMaker 2 writes checkpoints")
        with progress("waiting for checkpoints"):
            pairs = self._aside(lambda: checkpoints.wait_for_checkpoints(self._clusters, flow))
        self._narrator.say(
            f"It has translated offsets for {pairs} group-partitions, from the offset syncs that it"
            " wrote while it copied."
        )

    def _compare_offsets(self, file: Path) -> int:
        self._narrator.step(f"tsoffset compare -c {file.name}")
        self._narrator.say(
            "VERDICT judges a consumer that resumes from the checkpoint. RECORDS is the most"
            " records that it re-reads or skips, compared with one that resumes from tsoffset's"
            " offset."
        )
        self._narrator.lines([])
        selection = Selection.of(file, (FLOW,), None, None)
        return run_compare(selection, CompareOptions(), Output(sys.stdout, Format.TABLE), Notices())
