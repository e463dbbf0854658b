"""Answers for many positions of one log, judged by what lies on both sides.

Values are distinct on the source, so a value tells which record a consumer would get.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.producing import Stored
from tests.scenarios.corner_cases.corners import Corners, Translations
from tests.scenarios.estate import read_on
from tests.scenarios.judging import Resumed
from tsoffset.model import OutcomeKind, Precision, Reason, Skipped, Translated

DEPTHS = (0.0, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1.0)


class Logs:
    """All that can be read of a source partition, and of its mirror."""

    def __init__(
        self,
        source: Sequence[Stored],
        target: Sequence[Stored],
        source_range: tuple[int, int],
        target_range: tuple[int, int],
    ) -> None:
        self.source = source
        self.target = target
        self.start, self.end = source_range
        self.target_range = target_range
        self._source_offsets = {_value(record): record.offset for record in source}
        assert len(self._source_offsets) == len(source), "values come twice"
        copies = [(_value(record), record.offset) for record in target]
        self._first_copies = dict(reversed(copies))
        self._last_copies = dict(copies)

    @property
    def not_mirrored(self) -> set[bytes]:
        """Values that the source has and the target has not."""
        return self._source_offsets.keys() - self._first_copies.keys()

    def unread(self, position: int) -> list[bytes]:
        """What of the source from a position on the target has, in order."""
        return [
            _value(record)
            for record in self.source
            if record.offset >= position and record.value in self._first_copies
        ]

    def from_target(self, offset: int) -> list[bytes]:
        """What a consumer reads on the target from an offset on."""
        return [_value(record) for record in self.target if record.offset >= offset]

    def resumed(self, position: int, target_offset: int) -> Resumed:
        """What a group at `position` would skip and read twice from that offset on; what the
        target has not got at all, or only twice itself, does not count."""
        skipped, reread = [], []
        for value, offset in self._source_offsets.items():
            first = self._first_copies.get(value)
            if first is None:
                continue
            if offset >= position and self._last_copies[value] < target_offset:
                skipped.append(offset)
            elif offset < position and first >= target_offset:
                reread.append(offset)
        return Resumed(tuple(skipped), tuple(reread))


def _value(record: Stored) -> bytes:
    assert record.value is not None
    return record.value


def logs_of(corners: Corners, flow: str, topic: str) -> Logs:
    """Both logs as they are now; neither is empty."""
    source, target = corners.sides(flow)
    isolation = corners.settings.flow(flow).isolation
    remote = corners.remote(flow, topic)
    logs = Logs(
        source.read(topic, isolation=isolation),
        target.read(remote, isolation="read_committed"),
        source.log_range(topic),
        target.log_range(remote),
    )
    assert logs.source
    assert logs.target
    return logs


@dataclass(frozen=True, slots=True)
class Judged:
    """How positions fared: which got an answer that is not exact, which
    got none, and all of them with what they cost."""

    inexact: Mapping[int, Translated]
    unproven: Sequence[int]
    translations: Translations

    @property
    def exact(self) -> float:
        """The share of positions that are exact."""
        return 1 - (len(self.inexact) + len(self.unproven)) / len(self.translations.positions)


def judged(
    corners: Corners,
    flow: str,
    topic: str,
    positions: Iterable[int],
    logs: Logs,
    *,
    may_lack_proof: bool = False,
) -> Judged:
    """Translate positions, and hold each to its word: nothing skipped, within the target's
    log, and no more read twice than stated; none at all where it says `exact`.

    Where a log is too large for the budget, some may have no answer, which commits nothing.
    """
    translations = corners.translate(flow, topic, positions)
    start, end = logs.target_range
    inexact: dict[int, Translated] = {}
    unproven: list[int] = []
    for position in translations.positions:
        found = position.translation.outcome
        if may_lack_proof and isinstance(found, Skipped):
            assert found.reason is Reason.NO_PROOF
            unproven.append(position.offset)
            continue
        assert isinstance(found, Translated), (topic, position.offset, found)
        assert start <= found.target_offset <= end, (topic, position)
        resumed = logs.resumed(position.offset, found.target_offset)
        assert resumed.skipped == (), (topic, position)
        assert found.reread_bound is not None
        assert len(resumed.reread) <= found.reread_bound, (topic, position, resumed)
        if found.precision is Precision.EXACT:
            assert found.reread_bound == 0
        else:
            inexact[position.offset] = found
    return Judged(inexact, unproven, translations)


def every(logs: Logs, step: int = 1) -> Sequence[int]:
    """Every `step`-th position that a group may have committed, and the log's end."""
    return (*range(logs.start, logs.end, step), logs.end)


def fail_over(
    corners: Corners, flow: str, topic: str, logs: Logs, positions: Iterable[int] | None = None
) -> None:
    """Groups at several depths are synced, each exactly, and their consumers really get on the
    target what the groups had not processed, all of it and nothing else.

    For mirrors that hold no record twice.
    """
    source, target = corners.sides(flow)
    if positions is None:
        length = logs.end - logs.start
        positions = (logs.start + round(depth * length) for depth in DEPTHS)
    groups = {f"{topic}-{position}": position for position in positions}
    for group, position in groups.items():
        source.commit_offsets(group, {(topic, 0): position})
    rows = corners.sync(flow, *groups)
    for group, position in groups.items():
        row = rows.of(group, topic)
        assert (row.outcome, row.precision) == (OutcomeKind.COMMITTED, Precision.EXACT), row
        got = read_on(target, group, (corners.remote(flow, topic), 0))
        assert [record.value for record in got] == logs.unread(position), row
