"""What a group re-reads and skips on the target, by the content of both logs.

This is the judge of all tests on real clusters. Values are distinct on the source, so a value tells
which record a consumer gets.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tests.producing import Contents, Stored


class CopiedPartition:
    """A source partition and its copy.

    `written` has the source offset of each value, `copies` its target offsets in order: several
    where the replicator copied it again. A record that the target lacks counts neither as skipped
    nor as re-read.
    """

    def __init__(self, written: Mapping[bytes, int] | None = None) -> None:
        self.written = dict(written or {})
        self.copies: defaultdict[bytes, list[int]] = defaultdict(list)
        self.source_end = self.target_end = 0
        self._columns: Any = None

    def add_source(self, records: Iterable[Stored]) -> None:
        """Records of the source behind those added before."""
        for record in records:
            self.written[_value(record)] = record.offset
            self.source_end = record.offset + 1
        self._columns = None

    def add_target(self, records: Iterable[Stored]) -> None:
        """Records of the target behind those added before."""
        for record in records:
            self.copies[_value(record)].append(record.offset)
            self.target_end = record.offset + 1
        self._columns = None

    def read_source(self, contents: Contents, topic: str, partition: int = 0) -> None:
        """Read the source from where the last call ended."""
        self.add_source(contents.read(topic, partition, start=self.source_end or None))

    def read_target(self, contents: Contents, topic: str, partition: int = 0) -> None:
        """Read what is committed on the target from where the last call ended."""
        start = self.target_end or None
        read = contents.read(topic, partition, start=start, isolation="read_committed")
        self.add_target(read)

    @property
    def not_mirrored(self) -> set[bytes]:
        """Values that the source has and the target has not."""
        return self.written.keys() - self.copies.keys()

    @property
    def repeated(self) -> int:
        return sum(len(offsets) - 1 for offsets in self.copies.values())

    def skipped(self, committed: int, target_offset: int) -> list[int]:
        """Source offsets that a group at `committed` has still to read, and does not get from
        `target_offset` on."""
        source, _, last = self._indexed()
        found: list[int] = source[(source >= committed) & (last < target_offset)].tolist()
        return found

    def reread(self, committed: int, target_offset: int) -> list[int]:
        """Source offsets that a group at `committed` has read, and gets again from `target_offset`
        on; not those of which an earlier copy lies before it."""
        source, first, _ = self._indexed()
        found: list[int] = source[(source < committed) & (first >= target_offset)].tolist()
        return found

    def largest_safe(self, committed: int) -> int:
        """The largest target offset from which a group at `committed` skips nothing."""
        source, _, last = self._indexed()
        return int(min(last[source >= committed], default=self.target_end))

    def between(self, start: int, end: int) -> int:
        """How many records the target has with start <= offset < end."""
        return sum(start <= at < end for offsets in self.copies.values() for at in offsets)

    def _indexed(self) -> Any:
        """Source offset, first and last copy of each value that is on both sides."""
        if self._columns is None:
            rows = [
                (offset, self.copies[value][0], self.copies[value][-1])
                for value, offset in self.written.items()
                if value in self.copies
            ]
            self._columns = np.array(sorted(rows), dtype=np.int64).reshape(-1, 3).T
        return self._columns


def _value(record: Stored) -> bytes:
    assert record.value is not None
    return record.value
