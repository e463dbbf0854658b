"""What groups get on the target, judged by content against what lies on the source."""

from collections.abc import Iterable, Mapping, Sequence

from tests.copies import CopiedPartition
from tests.scenarios.flows import Flows
from tsoffset.flow.policy import target_topic
from tsoffset.model import OutcomeKind, Precision, Row

DEPTHS = (0.0, 0.001, 0.1, 0.25, 0.333, 0.5, 0.618, 0.75, 0.9, 0.98, 0.999, 1.0)


class CopiedLogs(CopiedPartition):
    """All that can be read now of a source partition, and of its mirror; neither is empty."""

    def __init__(self, flows: Flows, flow: str, topic: str, partition: int = 0) -> None:
        super().__init__()
        self._flows, self._flow = flows, flow
        self._topic, self._partition = topic, partition
        settings = flows.settings.flow(flow)
        renaming = target_topic(settings.policy, *flow.split("->"), topic)
        source, target = flows.sides(flow)
        self._remote = renaming.topic, partition
        self.source = source.read(topic, partition, isolation=settings.isolation)
        self.target = target.read(*self._remote, isolation="read_committed")
        assert self.source
        assert self.target
        self.start, self.end = source.log_range(topic, partition)
        self.target_range = target.log_range(*self._remote)
        self.add_source(self.source)
        self.add_target(self.target)
        assert len(self.written) == len(self.source), "values come twice"

    def unread(self, position: int) -> list[bytes]:
        """What of the source from a position on the target has, in order."""
        return [
            value
            for value, offset in self.written.items()
            if offset >= position and value in self.copies
        ]

    def every(self, step: int = 1) -> Sequence[int]:
        """Every `step`-th position that a group may have committed, and the log's end."""
        return (*range(self.start, self.end, step), self.end)

    def inexact(self, positions: Iterable[int]) -> Mapping[int, Row]:
        """Translate positions, and hold each to its word: nothing skipped, within the target's
        log, and no more read twice than stated; none at all where it says `exact`. Returns those
        that do not say so."""
        positions = sorted(positions)
        translated = self._flows.translate(self._flow, self._topic, positions, self._partition)
        assert [row.source_offset for row in translated] == positions
        start, end = self.target_range
        inexact: dict[int, Row] = {}
        for row in translated:
            assert row.reason is None, row
            assert start <= row.target_offset <= end, row
            assert not self.skipped(row.source_offset, row.target_offset), row
            again = self.reread(row.source_offset, row.target_offset)
            assert len(again) <= row.reread_bound, (row, again)
            if row.precision is Precision.EXACT:
                assert row.reread_bound == 0
            else:
                inexact[row.source_offset] = row
        return inexact

    def fail_over(self) -> None:
        """Groups at several depths are synced, each exactly, and their consumers really get on
        the target what the groups had not processed, all of it and nothing else.

        For mirrors that hold no record twice.
        """
        source, target = self._flows.sides(self._flow)
        length = self.end - self.start
        positions = [self.start + round(depth * length) for depth in DEPTHS]
        place = self._topic, self._partition
        groups = {f"{self._topic}-{position}": position for position in positions}
        for group, position in groups.items():
            source.commit_offsets(group, {place: position})
        rows = self._flows.sync(self._flow, *groups)
        for group, position in groups.items():
            row = rows.of(group, *place)
            assert (row.outcome, row.precision) == (OutcomeKind.COMMITTED, Precision.EXACT), row
            got = target.read(*self._remote, group=group, isolation="read_committed")
            assert [record.value for record in got] == self.unread(position), row
