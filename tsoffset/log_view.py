"""The known parts of a log on one side.

Records are indexed by offset and timestamp alone, which a batch tells cheaply. What they hold
is looked at where a record is asked for, or another of the same timestamp is compared with it.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from tsoffset.model import (
    Failed,
    FailureKind,
    LogRange,
    Side,
    TimedOffset,
    TimestampType,
    TopicPartition,
)
from tsoffset.records import Record, Stretch, UnreadableRecords

Identity = tuple[int | bytes | None, ...]
Key = Identity | int | None
"""What equal records share at least: their timestamp, where that must match, or all."""

_ALL = frozenset({"timestamp", "key", "value"})
_all_of = attrgetter("timestamp_ms", "key", "value")


class Unanswered(Exception):
    """What has to be known could not be read; `failed` is the position's outcome."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed)
        self.failed = failed

    @classmethod
    def by_malformed(
        cls, partition: TopicPartition, offset: int, error: UnreadableRecords
    ) -> "Unanswered":
        """What a malformed batch ends a position with."""
        text = f"read, {partition}@{offset}: {error}"
        return cls(Failed(FailureKind.CORRUPT_BATCH, text))


class LogView:
    """The known parts of one log: which offsets were read, and the data records there.

    With `header` a source offset that the replicator kept in a header of its copies tells what
    is equal: the side whose log this is. Raises Unanswered where a record that is asked for
    cannot be read.
    """

    def __init__(
        self, partition: TopicPartition, match: frozenset[str], header: Side | None = None
    ) -> None:
        self.partition = partition
        self.header = header
        self.range: LogRange | None = None
        self.own_range: LogRange | None = None
        self.times: dict[int, TimedOffset | None] = {}
        self.youngest_known = False
        self.youngest: TimedOffset | None = None
        self.rewrites_timestamps = False
        self._match = match
        self._forget()

    def _forget(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._offsets: list[int] = []
        self._stretches: list[Stretch] = []
        self._stretch_starts: list[int] = []
        self._looked_at: dict[int, Record] = {}
        # Most keys are those of one record: then its offset.
        self.by_key: dict[Key, int | Sharing] = {}

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

    @property
    def by_time(self) -> bool:
        """Whether a key is a timestamp, which records that are not equal may share."""
        return self.header is None and "timestamp" in self._match

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
        if match == _ALL:
            found: Identity = _all_of(record)
            return found
        return (
            record.timestamp_ms if "timestamp" in match else None,
            record.key if "key" in match else None,
            record.value if "value" in match else None,
        )

    def add(self, stretch: Stretch) -> Sequence[Key]:
        """Take in what was read; returns the keys of the records that were not known yet.

        Raises UnreadableRecords, and takes in nothing, where the batch is seen to be malformed.
        """
        if stretch.timestamp_type is TimestampType.LOG_APPEND_TIME:
            self.rewrites_timestamps = True
        if stretch.start >= stretch.end or self.covered_to(stretch.start) >= stretch.end:
            return ()
        offsets = stretch.offsets
        keys: Sequence[Key]
        if self.by_time:
            keys = stretch.timestamps
        else:
            keys = [self.identity(record) for record in stretch.records]
        found: list[Key] = []
        for start, end in list(self._gaps(stretch.start, stretch.end)):
            fresh = slice(bisect_left(offsets, start), bisect_left(offsets, end))
            self._take_in(start, stretch, offsets[fresh], keys[fresh])
            found += keys[fresh]
        self._cover(stretch.start, stretch.end)
        return found

    def _gaps(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """What of [start, end) is not known."""
        while start < end:
            start = self.covered_to(start)
            at = bisect_right(self._starts, start)
            gap_end = min(end, self._starts[at] if at < len(self._starts) else end)
            if start < gap_end:
                yield start, gap_end
            start = gap_end

    def _take_in(
        self, start: int, stretch: Stretch, offsets: Sequence[int], keys: Sequence[Key]
    ) -> None:
        at = bisect_right(self._stretch_starts, start)
        self._stretch_starts.insert(at, start)
        self._stretches.insert(at, stretch)
        at = bisect_left(self._offsets, start)
        self._offsets[at:at] = offsets
        by_key = self.by_key
        for key, offset in zip(keys, offsets, strict=True):
            known = by_key.setdefault(key, offset)
            if known != offset:
                if isinstance(known, int):
                    known = by_key[key] = Sharing(known)
                known.add(offset)

    def forget(self, above: int) -> Sequence[Key]:
        """Let go of the records, except in stretches that begin at or below `above`; what is known
        of the log as a whole stays. Returns the keys of what is left."""
        kept = [
            stretch
            for start, stretch in zip(self._stretch_starts, self._stretches, strict=True)
            if start == stretch.start and start <= above
        ]
        self._forget()
        return [key for stretch in kept for key in self.add(stretch)]

    def compare_contents(self) -> Sequence[Key]:
        """From now on records are equal by content, whatever a header says. Returns all keys."""
        self.header = None
        stretches = self._stretches
        self._forget()
        return [key for stretch in stretches for key in self.add(stretch)]

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
        record = self._looked_at.get(offset)
        if record is not None:
            return record
        at = bisect_left(self._offsets, offset)
        known = at < len(self._offsets) and self._offsets[at] == offset
        return self._record(offset) if known else None

    def _record(self, offset: int) -> Record:
        """A known record. Raises Unanswered where its batch turns out to be malformed."""
        record = self._looked_at.get(offset)
        if record is None:
            stretch = self._stretches[bisect_right(self._stretch_starts, offset) - 1]
            try:
                record = stretch.at_or_after(offset)
            except UnreadableRecords as error:
                raise Unanswered.by_malformed(self.partition, offset, error) from error
            assert record is not None
            assert record.offset == offset
            self._looked_at[offset] = record
        return record

    def next_known(self, offset: int) -> Record | None:
        """The first data record at or after `offset` in its gap-free known part."""
        at = bisect_left(self._offsets, offset)
        if at < len(self._offsets) and self._offsets[at] < self.covered_to(offset):
            return self._record(self._offsets[at])
        return None

    def previous_known(self, offset: int) -> Record | None:
        """The last data record before `offset` in the gap-free known part up to it."""
        at = bisect_left(self._offsets, offset) - 1
        if at >= 0 and self._offsets[at] >= self.covered_from(offset):
            return self._record(self._offsets[at])
        return None

    def count_known(self, start: int, end: int) -> int:
        """How many known data records lie in [start, end)."""
        return bisect_left(self._offsets, end) - bisect_left(self._offsets, start)

    def known(self, start: int, end: int) -> list[Record]:
        """The known data records in [start, end), in order."""
        at = slice(bisect_left(self._offsets, start), bisect_left(self._offsets, end))
        return [self._record(offset) for offset in self._offsets[at]]

    def sharing(self, key: Key) -> Sequence[int]:
        """Offsets of the known records of this key, ascending."""
        known = self.by_key.get(key)
        if known is None:
            return ()
        return (known,) if isinstance(known, int) else known.offsets

    def equals(self, identity: Identity) -> Sequence[int]:
        """Offsets of the known records of this identity, ascending."""
        if not self.by_time:
            return self.sharing(identity)
        known = self.by_key.get(identity[0])  # type: ignore[arg-type]
        if known is None:
            return ()
        if isinstance(known, int):
            return (known,) if self.content(self._record(known)) == identity else ()
        while known.unsorted:
            offset = known.unsorted[-1]
            known.sort_in(offset, self.content(self._record(offset)))
            known.unsorted.pop()
        return known.equals.get(identity, ())

    def identities(self, key: Key) -> Iterable[Identity]:
        """What the known records of this key are equal by, each once."""
        return dict.fromkeys(self.identity(self._record(o)) for o in self.sharing(key))


class Sharing:
    """Several records of one key: their offsets, and what they are equal by as far as asked."""

    __slots__ = ("equals", "offsets", "unsorted")

    def __init__(self, offset: int) -> None:
        self.offsets = [offset]
        self.equals: dict[Identity, list[int]] = {}
        self.unsorted = [offset]

    def add(self, offset: int) -> None:
        """One more; its place is most often the last."""
        insort(self.offsets, offset)
        self.unsorted.append(offset)

    def sort_in(self, offset: int, identity: Identity) -> None:
        """What the record at an offset is equal by."""
        insort(self.equals.setdefault(identity, []), offset)
