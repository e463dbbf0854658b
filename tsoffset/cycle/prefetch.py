"""Prefetches what the outermost positions of a partition will ask.

A translator waits for each of its questions, though most questions of the first translators are
known beforehand: the records at their committed offsets, the ends of both logs, the lookup of the
lowest one's next record and what lies there, and where the mirror begins. These are asked early. A
prefetched answer counts only for the translator that asks for it, so each translator has the
same result as without prefetching.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tsoffset.cycle.side_reads import SideReads
from tsoffset.model import FirstAtTime, Side, TimedOffset
from tsoffset.records import Numbers, UnreadableRecords
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.inquiry import Answer, Question

SOURCE, TARGET = Side.SOURCE, Side.TARGET


class Prefetch:
    """What is asked early for the translators of the lowest and the highest of some offsets,
    and the answers: `reads`, and `found` by time lookups."""

    def __init__(
        self, evidence: Evidence, offsets: Sequence[int], reads: Mapping[Side, SideReads]
    ) -> None:
        self._evidence = evidence
        self._offsets = offsets
        self.reads = {side: SideReads(reads[side].sizes) for side in Side}
        # The time lookups that are known so far.
        self._lookups: dict[Side, Question] = {}
        self.found: dict[Question, Answer] = {}
        settings = evidence.settings
        # Whether to read at the ends of both logs. Not in failback; and with an earlier cycle's
        # pairs that may be unnecessary.
        self.seeks_ends = not (
            evidence.predictions
            or evidence.failback
            or evidence.keeps_offsets
            or settings.proof == "timestamps"
        )

    def questions(self, unread: Callable[[Side, Numbers], set[int]]) -> Iterator[Question]:
        """The questions to ask now; `unread` selects the offsets that were not read yet."""
        reads_to_come = {SOURCE: self._of_source(), TARGET: self._of_target()}
        for side, offsets in reads_to_come.items():
            reads = self.reads[side]
            asked = np.array(sorted(set(offsets)), np.int64)
            wanted = {offset for offset in unread(side, asked) if offset not in reads.failed}
            partition = self._evidence.view(side).partition
            yield from reads.choose(side, partition, wanted, sparse=1)
        for side, lookup in ((TARGET, self._lookup_of_lowest), (SOURCE, self._lookup_of_last)):
            if side not in self._lookups and (question := lookup()) is not None:
                self._lookups[side] = question
        yield from (one for one in self._lookups.values() if one not in self.found)

    def take(self, answers: Mapping[Question, Answer]) -> None:
        for reads in self.reads.values():
            reads.take(answers)
        for question in self._lookups.values():
            if question in answers:
                self.found[question] = answers[question]

    # --- what to prefetch -------------------------------------------------------------------

    def _of_source(self) -> Iterator[int]:
        # The highest offset is mostly the log's end; the one before it is then the last record.
        yield self._offsets[-1] - 1
        if len(self._offsets) > 1:
            yield self._offsets[0]
        if self._evidence.keeps_offsets and self._evidence.target.range is not None:
            yield self._evidence.target.end - 1
        first = self._begins()
        if first is not None:
            yield from (first - 1, first)

    def _of_target(self) -> Iterator[int]:
        target = self._evidence.target
        if self._evidence.keeps_offsets and target.range is not None:
            yield from self._of_source()
        if target.range is None or not self.seeks_ends:
            return
        yield target.end - 1
        found = self.found.get(self._lookups[TARGET]) if TARGET in self._lookups else None
        if isinstance(found, TimedOffset):
            yield found.offset
        if len(self._offsets) > 1:
            yield target.start

    def _begins(self) -> int | None:
        """The source offset of the target's first record; None where that is not known."""
        source, target = self._evidence.source, self._evidence.target
        if source.range is None or target.range is None or not self.seeks_ends:
            return None
        distance = self._evidence.distance_near(target.start)
        return None if distance is None else max(source.start, target.start - distance)

    def _lookup_of_lowest(self) -> Question | None:
        """The time lookup for the copy of the lowest offset's next record."""
        target = self._evidence.target
        if target.range is None or self._evidence.predictions or self._evidence.keeps_offsets:
            return None
        return self._lookup_at(TARGET, self._offsets[0])

    def _lookup_of_last(self) -> Question | None:
        """The time lookup that shows whether the source's last record has an earlier duplicate."""
        source = self._evidence.source
        if source.range is None or not self.seeks_ends or len(self._offsets) == 1:
            return None
        return self._lookup_at(SOURCE, source.end - 1)

    def _lookup_at(self, side: Side, offset: int) -> Question | None:
        """One side's time lookup of the source record at an offset; None if that is not known."""
        held = self.reads[SOURCE].range_with(offset)
        if held is None:
            return None
        try:
            at = bisect_left(held.offsets, offset)
            stamp = held.timestamps[at] if at < len(held.offsets) else None
        except UnreadableRecords:
            return None  # who asks for it is told
        partition = self._evidence.view(side).partition
        return None if stamp is None else Question(side, FirstAtTime(partition, stamp))
