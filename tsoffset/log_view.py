"""The known parts of a log on one side, and what both sides together tell of repeats."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from itertools import accumulate

from tsoffset.model import (
    LogRange,
    Record,
    Side,
    Stretch,
    TimedOffset,
    TimestampType,
    TopicPartition,
)

Identity = tuple[int | bytes | None, ...]


class LogView:
    """The known parts of one log: which offsets were read, and the data records there.

    With `header` a source offset that the replicator kept in a header of its copies tells what
    is equal: the side whose log this is.
    """

    def __init__(
        self, partition: TopicPartition, match: frozenset[str], header: Side | None = None
    ) -> None:
        self.partition = partition
        self.header = header
        self.range: LogRange | None = None
        self.own_range: LogRange | None = None
        self.times: dict[int, TimedOffset | None] = {}
        self.rewrites_timestamps = False
        self._match = match
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._offsets: list[int] = []
        self._records: dict[int, Record] = {}
        # Most records have no equal: then the offset itself.
        self._equals: dict[Identity, int | list[int]] = {}

    @property
    def start(self) -> int:
        """The log's start."""
        assert self.range is not None
        return self.range.start

    @property
    def end(self) -> int:
        """The readable end."""
        assert self.range is not None
        return self.range.end

    def identity(self, record: Record) -> Identity:
        """What must be equal for another record to be an image of this one."""
        if self.header is None:
            return self.content(record)
        if self.header is Side.SOURCE:
            return (record.offset,)
        return (
            (record.source_offset,) if record.source_offset is not None else (None, record.offset)
        )

    def content(self, record: Record) -> Identity:
        """What of its content must be equal."""
        match = self._match
        return (
            record.timestamp_ms if "timestamp" in match else None,
            record.key if "key" in match else None,
            record.value if "value" in match else None,
        )

    def add(self, stretch: Stretch) -> Sequence[Identity]:
        """Take in what was read; returns the identities of the records that were not known yet."""
        if stretch.timestamp_type is TimestampType.LOG_APPEND_TIME:
            self.rewrites_timestamps = True
        if stretch.start >= stretch.end or self.covered_to(stretch.start) >= stretch.end:
            return ()
        records = self._records
        identities: list[Identity] = []
        fresh = [record for record in stretch.records if record.offset not in records]
        if fresh:
            offsets = [record.offset for record in fresh]
            records.update(zip(offsets, fresh, strict=True))
            identities = [self.identity(record) for record in fresh]
            for identity, offset in zip(identities, offsets, strict=True):
                self._index(identity, offset)
            at = bisect_left(self._offsets, offsets[0])
            if at == len(self._offsets) or self._offsets[at] > offsets[-1]:
                self._offsets[at:at] = offsets
            else:
                self._offsets = sorted(records)
        self._cover(stretch.start, stretch.end)
        return identities

    def _index(self, identity: Identity, offset: int) -> None:
        known = self._equals.setdefault(identity, offset)
        if known == offset:
            return
        if isinstance(known, int):
            self._equals[identity] = [min(known, offset), max(known, offset)]
        else:
            insort(known, offset)

    def forget(self) -> None:
        """Let go of all records; what is known of the log as a whole stays."""
        self._starts, self._ends, self._offsets = [], [], []
        self._records, self._equals = {}, {}

    def compare_contents(self) -> None:
        """From now on records are equal by content, whatever a header says."""
        self.header = None
        self._equals = {}
        for record in self._records.values():
            self._index(self.content(record), record.offset)

    def _cover(self, start: int, end: int) -> None:
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        if first < last:
            start = min(start, self._starts[first])
            end = max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def covered_to(self, offset: int) -> int:
        """The end of the gap-free known part that holds `offset`; `offset` if none does."""
        at = bisect_right(self._starts, offset) - 1
        return self._ends[at] if at >= 0 and self._ends[at] > offset else offset

    def covered_from(self, offset: int) -> int:
        """The start of the gap-free known part that reaches up to `offset`."""
        at = bisect_left(self._starts, offset) - 1
        return self._starts[at] if at >= 0 and self._ends[at] >= offset else offset

    def at(self, offset: int) -> Record | None:
        """The known record at `offset`."""
        return self._records.get(offset)

    def next_known(self, offset: int) -> Record | None:
        """The first data record at or after `offset` in its gap-free known part."""
        at = bisect_left(self._offsets, offset)
        if at < len(self._offsets) and self._offsets[at] < self.covered_to(offset):
            return self._records[self._offsets[at]]
        return None

    def previous_known(self, offset: int) -> Record | None:
        """The last data record before `offset` in the gap-free known part up to it."""
        at = bisect_left(self._offsets, offset) - 1
        if at >= 0 and self._offsets[at] >= self.covered_from(offset):
            return self._records[self._offsets[at]]
        return None

    def count_known(self, start: int, end: int) -> int:
        """How many known data records lie in [start, end)."""
        return bisect_left(self._offsets, end) - bisect_left(self._offsets, start)

    def known(self, start: int, end: int) -> list[Record]:
        """The known data records in [start, end), in order."""
        at = slice(bisect_left(self._offsets, start), bisect_left(self._offsets, end))
        return [self._records[offset] for offset in self._offsets[at]]

    def equals(self, identity: Identity) -> Sequence[int]:
        """Offsets of the known records of this identity, ascending."""
        known = self._equals.get(identity)
        if known is None:
            return ()
        return (known,) if isinstance(known, int) else known


class Copies:
    """The highest copy seen of each source record, to notice a repeat that was not finished.

    Of equal source records only the lowest is taken: what is seen may be its copy alone. What
    became known is taken in when somebody asks, once for all that came since.
    """

    def __init__(self, source: LogView, target: LogView) -> None:
        self._source = source
        self._target = target
        self._news: dict[Identity, None] = {}
        self._highest: dict[int, int] = {}
        self._offsets: list[int] = []
        self._lowest_after: list[int] = []

    def note(self, identities: Sequence[Identity]) -> None:
        """Take notice of records that became known on either side."""
        self._news.update(dict.fromkeys(identities))

    def below(self, source_offset: int, target_offset: int) -> int | None:
        """A later source record that is known to have copies, and all seen lie below; or None."""
        if self._news:
            self._take_in()
        at = bisect_right(self._offsets, source_offset)
        if at == len(self._offsets) or self._lowest_after[at] >= target_offset:
            return None
        return next(o for o in self._offsets[at:] if self._highest[o] < target_offset)

    def _take_in(self) -> None:
        changed = False
        for identity in self._news:
            copies = self._target.equals(identity)
            if not copies:
                continue
            originals = self._source.equals(identity)
            if not originals:
                continue
            for offset in originals[1:]:
                self._highest.pop(offset, None)
            self._highest[originals[0]] = copies[-1]
            changed = True
        self._news = {}
        if not changed:
            return
        self._offsets = sorted(self._highest)
        lowest = [self._highest[offset] for offset in reversed(self._offsets)]
        self._lowest_after = list(accumulate(lowest, min))
        self._lowest_after.reverse()
