"""The story of a comparison: MirrorMaker 2's own translation beside ours, on the same groups."""

import sys
from collections.abc import Mapping
from typing import ClassVar

from tsoffset.commands.compare.checkpoints import read_checkpoints
from tsoffset.commands.compare.command import Wanted, run_compare
from tsoffset.config.selection import Selection
from tsoffset.demo.clusters import FLOW
from tsoffset.demo.story import Story
from tsoffset.flow.policy import internal_topics
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output
from tsoffset.terminal.progress import progress

_PATIENCE_SECONDS = 90.0
# MirrorMaker 2 looks at the groups each second. What so many looks, half a second apart, do not
# change, it has nothing to add to.
_LOOKS = 8


class Compare(Story):
    """The steps after all is mirrored; Spark is not needed."""

    about = "its checkpoint connector at work, and what it says beside what tsoffset says"
    settings: ClassVar[Mapping[str, str]] = {
        "emit.offset-syncs.enabled": "true",
        "emit.checkpoints.enabled": "true",
        "emit.checkpoints.interval.seconds": "1",
        "offset-syncs.topic.replication.factor": "1",
    }

    def tell(self) -> tuple[int, list[str]]:
        """Run all steps; return the exit status and the sentences of the end. Raises
        TsoffsetError."""
        _, mirrored = self._fill()
        self._mirror_all(mirrored)
        selection = Selection.of(self._clusters.configuration, (FLOW,), None, None)
        self._narrator.step("MirrorMaker 2 writes checkpoints")
        with progress("waiting for checkpoints"):
            pairs = self._aside(lambda: self._wait_for_checkpoints(selection))
        self._narrator.say(
            f"It translates offsets for {pairs} pairs of a group and a partition, from the offset "
            "syncs that it wrote while it copied."
        )
        self._narrator.step(f"tsoffset compare -c {self._clusters.configuration.name}")
        self._narrator.say(
            "VERDICT is about a consumer that resumes from the checkpoint; RECORDS is how many it "
            "reads again, or skips, at most, beside one that resumes from ours."
        )
        self._narrator.lines([])
        status = run_compare(selection, Wanted(), Output(sys.stdout, Format.TABLE), Notices())
        return status, [
            "Both were asked for the same groups at the same time, and nothing was committed."
        ]

    def _wait_for_checkpoints(self, selection: Selection) -> int:
        """Wait until there are no more to come; how many pairs have one."""
        (flow,) = selection.flows
        topic = internal_topics(flow.policy).checkpoints_topic(flow.source.alias)
        counts: list[int] = []

        def missing() -> str | None:
            with KafkaCluster(flow.target) as target:
                found = read_checkpoints(target, topic, wanted=lambda _: True, committed={})
            counts.append(len(found.newest))
            still = len(counts) >= _LOOKS and counts[-1] and len({*counts[-_LOOKS:]}) == 1
            return None if still else f"{counts[-1]} pairs have a checkpoint"

        self._clusters.target.wait_until(
            missing, seconds=_PATIENCE_SECONDS, doing=f"wait for {topic}"
        )
        return counts[-1]
