"""What a consumer got on the target, judged by content against what was written to the source."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tests.scenarios.estate import Estate, read_on
from tsoffset.model import Row


@dataclass(frozen=True, slots=True)
class Resumed:
    """Source offsets of what a group had not processed and did not get, and of what it got
    though it had processed it.

    A copy that the replicator made by repeating itself counts as `reread` only if the
    consumer resumed before the first copy too.
    """

    skipped: tuple[int, ...]
    reread: tuple[int, ...]


class Judge:
    """All that was written to one source partition, and its mirror, complete by now."""

    def __init__(self, estate: Estate, flow: str, topic: str) -> None:
        settings = estate.settings.flow(flow)
        self.topic = topic
        self._target = estate.contents[settings.target.alias]
        self._remote = estate.remote(flow, topic)
        written = estate.written(settings.source.alias, topic)
        readable = {
            record.value
            for record in estate.contents[settings.source.alias].read(
                topic, isolation=settings.isolation
            )
        }
        self.source: Mapping[bytes, int] = {
            value: offset for value, offset in written.items() if value in readable
        }
        assert self.source.keys() == self.first_copies.keys()

    @cached_property
    def copies(self) -> Mapping[bytes, Sequence[int]]:
        """The target offsets of all copies of each value, ascending."""
        found: defaultdict[bytes, list[int]] = defaultdict(list)
        for record in self._target.read(self._remote, isolation="read_committed"):
            assert record.value is not None
            found[record.value].append(record.offset)
        return found

    @cached_property
    def first_copies(self) -> Mapping[bytes, int]:
        """The target offset of the first copy of each value."""
        return {value: offsets[0] for value, offsets in self.copies.items()}

    @property
    def end(self) -> int:
        """The target's log end."""
        return self._target.log_range(self._remote)[1]

    def resumed(self, row: Row) -> Resumed:
        """Let the row's group, committed by it, go on on the target."""
        assert row.group is not None
        assert row.source_offset is not None
        assert row.target_offset is not None
        place = (self._remote, 0)
        assert self._target.committed_offsets(row.group)[place][0] == row.target_offset
        got = {record.value for record in read_on(self._target, row.group, place)}
        return Resumed(
            tuple(
                offset
                for value, offset in self.source.items()
                if offset >= row.source_offset and value not in got
            ),
            tuple(
                offset
                for value, offset in self.source.items()
                if offset < row.source_offset
                and value in got
                and self.first_copies[value] >= row.target_offset
            ),
        )
