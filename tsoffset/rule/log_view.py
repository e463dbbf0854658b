"""The known parts of a log on one side.

Records are indexed by offset and timestamp alone, which a batch gives at little cost. A record's
content is decoded when it is requested, or when another one of the same timestamp is compared with
it.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

from tsoffset.model import LogRange, TimedOffset, TimestampType, TopicPartition
from tsoffset.records import (
    ALL,
    FetchedRange,
    Flags,
    Numbers,
    Record,
    UnreadableRecords,
    compared_content,
    is_within,
)
from tsoffset.rule.found import Unanswered

Identity = tuple[int | None, bytes | None, bytes | None]
"""What must be equal in a record and its copy: the timestamp always, key and value if they
count."""

# A search for a time ends after a row of younger records. Its least length, and its least length as
# a multiple of the records between the lookup's answer and the last older record.
_A_LONG_ROW = 16
_BESIDE_DISORDER = 4

# The most fetched ranges without an index: each question about a time looks at all of them.
_MOST_NOT_INDEXED = 64

_all_of = attrgetter("timestamp_ms", "key", "value")


class LogView:
    """The known parts of one log: which offsets were read, and the data records there.

    Raises Unanswered if a requested record cannot be read.
    """

    def __init__(self, partition: TopicPartition, match: frozenset[str]) -> None:
        self.partition = partition
        self.range: LogRange | None = None
        self.own_range: LogRange | None = None
        self.times: dict[int, TimedOffset | None] = {}
        self.youngest_known = False
        self.youngest: TimedOffset | None = None
        self.rewrites_timestamps = False
        # The highest log start in any answer: retention moves it while a cycle reads.
        self.start_seen = 0
        # The number of time lookups, and of those made before the log start was read again.
        self.lookups = self.lookups_confirmed = 0
        self._match = match
        self._forget()

    def _forget(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._offsets: list[int] = []
        self._timestamps: list[int | None] = []
        self._fetched_ranges: list[FetchedRange] = []
        self._fetched_starts: list[int] = []
        self._looked_at: dict[int, Record] = {}
        # Most timestamps have one record: then its offset. Records of a range are indexed when a
        # time in its range is requested, which happens for few of them.
        self._by_time: dict[int | None, int | Sharing] = {}
        self._not_indexed: list[_NotIndexed] = []
        # Times that no record outside the index has.
        self._indexed_times: set[int | None] = set()
        self._oldest = _OldestFrom()

    @property
    def start(self) -> int:
        assert self.range is not None
        return self.range.start

    @property
    def end(self) -> int:
        """The readable end."""
        assert self.range is not None
        return self.range.end

    @property
    def fetched_ranges(self) -> Sequence[FetchedRange]:
        """The batches that are kept."""
        return self._fetched_ranges

    def identity(self, record: Record) -> Identity:
        """What must be equal in a copy of this record."""
        match = self._match
        if match == ALL:
            found: Identity = _all_of(record)
            return found
        return (record.timestamp_ms, *compared_content((record.key, record.value), match))

    def add(self, fetched: FetchedRange) -> int:
        """Add a batch; returns how many of its records were new.

        Raises UnreadableRecords, and adds nothing, if the batch is malformed.
        """
        if fetched.timestamp_type is TimestampType.LOG_APPEND_TIME:
            self.rewrites_timestamps = True
        self.start_seen = max(self.start_seen, fetched.log_start)
        if fetched.start >= fetched.end or self.covered_to(fetched.start) >= fetched.end:
            return 0
        offsets, timestamps = fetched.offsets, fetched.timestamps
        found = 0
        for start, end in list(self._gaps(fetched.start, fetched.end)):
            fresh = slice(bisect_left(offsets, start), bisect_left(offsets, end))
            self._take_in(start, fetched, offsets[fresh], timestamps[fresh])
            found += fresh.stop - fresh.start
        self._cover(fetched.start, fetched.end)
        return found

    def _gaps(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The unknown parts of [start, end)."""
        while start < end:
            start = self.covered_to(start)
            at = bisect_right(self._starts, start)
            gap_end = min(end, self._starts[at] if at < len(self._starts) else end)
            if start < gap_end:
                yield start, gap_end
            start = gap_end

    def _take_in(
        self,
        start: int,
        fetched: FetchedRange,
        offsets: Sequence[int],
        timestamps: Sequence[int | None],
    ) -> None:
        at = bisect_right(self._fetched_starts, start)
        self._fetched_starts.insert(at, start)
        self._fetched_ranges.insert(at, fetched)
        at = bisect_left(self._offsets, start)
        self._offsets[at:at] = offsets
        self._timestamps[at:at] = timestamps
        if len(offsets):
            self._not_indexed.append(_NotIndexed(offsets, timestamps))
            self._indexed_times.clear()
        if len(self._not_indexed) > _MOST_NOT_INDEXED:
            self._index(self._not_indexed.pop(0))

    def _of_time(self, timestamp_ms: int | None) -> "int | Sharing | None":
        if timestamp_ms not in self._indexed_times:
            for one in [one for one in self._not_indexed if one.may_have(timestamp_ms)]:
                self._not_indexed.remove(one)
                self._index(one)
            self._indexed_times.add(timestamp_ms)
        return self._by_time.get(timestamp_ms)

    def _index(self, records: "_NotIndexed") -> None:
        by_time = self._by_time
        for timestamp_ms, offset in zip(records.timestamps, records.offsets, strict=True):
            known = by_time.setdefault(timestamp_ms, offset)
            if known != offset:
                if isinstance(known, int):
                    known = by_time[timestamp_ms] = Sharing(known)
                known.unsorted.append(offset)

    def forget(self, above: int) -> int:
        """Drop the records, except in batches that begin at or below `above`. Log range and lookups
        are kept. Returns the number of records left."""
        kept = [
            fetched
            for start, fetched in zip(self._fetched_starts, self._fetched_ranges, strict=True)
            if start == fetched.start and start <= above
        ]
        self._forget()
        return sum(self.add(fetched) for fetched in kept)

    def _cover(self, start: int, end: int) -> None:
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        if first < last:
            start = min(start, self._starts[first])
            end = max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def covered_to(self, offset: int) -> int:
        """The end of the known part that holds `offset`; `offset` if none does."""
        at = bisect_right(self._starts, offset) - 1
        return self._ends[at] if at >= 0 and self._ends[at] > offset else offset

    def covers(self, offsets: Numbers) -> Flags:
        """Which of the offsets are in a known part."""
        return is_within(offsets, self._starts, self._ends)

    def covered_from(self, offset: int) -> int:
        """The start of the known part that reaches up to `offset`."""
        at = bisect_left(self._starts, offset) - 1
        return self._starts[at] if at >= 0 and self._ends[at] >= offset else offset

    def at(self, offset: int) -> Record | None:
        record = self._looked_at.get(offset)
        if record is not None:
            return record
        at = bisect_left(self._offsets, offset)
        known = at < len(self._offsets) and self._offsets[at] == offset
        return self._record(offset) if known else None

    def _record(self, offset: int) -> Record:
        """A known record. Raises Unanswered if its batch turns out to be malformed."""
        record = self._looked_at.get(offset)
        if record is None:
            fetched = self._fetched_ranges[bisect_right(self._fetched_starts, offset) - 1]
            try:
                record = fetched.at_or_after(offset)
            except UnreadableRecords as error:
                raise Unanswered.by_malformed(self.partition, offset, error) from error
            assert record is not None
            assert record.offset == offset
            self._looked_at[offset] = record
        return record

    def next_known(self, offset: int) -> Record | None:
        """The first data record at or after `offset` in its known part without a gap."""
        at = bisect_left(self._offsets, offset)
        if at < len(self._offsets) and self._offsets[at] < self.covered_to(offset):
            return self._record(self._offsets[at])
        return None

    def previous_known(self, offset: int) -> Record | None:
        """The last data record before `offset` in the known part up to it."""
        at = bisect_left(self._offsets, offset) - 1
        if at >= 0 and self._offsets[at] >= self.covered_from(offset):
            return self._record(self._offsets[at])
        return None

    def count_known(self, start: int, end: int) -> int:
        """The number of known data records in [start, end)."""
        return bisect_left(self._offsets, end) - bisect_left(self._offsets, start)

    def known_records(self, start: int, end: int) -> list[Record]:
        """The known data records in [start, end), in order."""
        at = slice(bisect_left(self._offsets, start), bisect_left(self._offsets, end))
        return [self._record(offset) for offset in self._offsets[at]]

    def oldest_from(self, offset: int) -> "Oldest | None":
        """The oldest timestamp from `offset` to the log's end; None if some of these records are
        not known."""
        if offset < self.end and self.covered_to(offset) < self.end:
            return None
        first = bisect_left(self._offsets, offset)
        return self._oldest.of(first, bisect_left(self._offsets, self.end), self._timestamps)

    def none_known_is_older(self, offset: int, timestamp_ms: int, end: int | None = None) -> bool:
        """Whether all known records in [offset, end) have a timestamp of at least `timestamp_ms`. A
        record without a timestamp counts as older: a time lookup passes over it."""
        known = slice(
            bisect_left(self._offsets, offset),
            None if end is None else bisect_left(self._offsets, end),
        )
        return all(it is not None and it >= timestamp_ms for it in self._timestamps[known])

    def seems_past(self, timestamp_ms: int, start: int) -> bool:
        """True if a search for a record of that time may end. `start` is the answer of a time
        lookup. From there, a row of records at that time or later follows, long compared with the
        disorder before it. A late record may still follow."""
        first = bisect_left(self._offsets, start)
        last = bisect_left(self._offsets, self.covered_to(start))
        older = first
        for at in range(last - 1, first - 1, -1):
            stamp = self._timestamps[at]
            if stamp is None or stamp < timestamp_ms:
                older = at + 1
                break
        younger = sum(1 for stamp in self._timestamps[older:last] if stamp != timestamp_ms)
        return younger >= max(_A_LONG_ROW, _BESIDE_DISORDER * (older - first))

    def equals(self, identity: Identity) -> Sequence[int]:
        """Offsets of the known records of this identity, ascending."""
        known = self._of_time(identity[0])
        if known is None:
            return ()
        if isinstance(known, int):
            return (known,) if self.identity(self._record(known)) == identity else ()
        while known.unsorted:
            offset = known.unsorted[-1]
            insort(known.equals.setdefault(self.identity(self._record(offset)), []), offset)
            known.unsorted.pop()
        return known.equals.get(identity, ())

    def at_time(self, timestamp_ms: int | None) -> Sequence[int]:
        """The offsets of the known records of a timestamp, unordered."""
        known = self._of_time(timestamp_ms)
        if known is None:
            return ()
        if isinstance(known, int):
            return (known,)
        return [*chain(known.unsorted, *known.equals.values())]


@dataclass(frozen=True, slots=True)
class Oldest:
    """The records from an offset to the log's end: their number, the oldest timestamp (None if
    there is no record), and whether one has no timestamp."""

    records: int
    timestamp_ms: int | None
    untimed: bool


class _OldestFrom:
    """Suffix minima of a log's timestamps, computed backwards from the end as far as needed."""

    def __init__(self) -> None:
        self._known: list[tuple[int | None, bool]] = []
        self._end = -1

    def of(self, first: int, end: int, timestamps: Sequence[int | None]) -> Oldest:
        """For the records `timestamps[first:end]`. They are known without a gap up to the log's
        end, so reading earlier records shifts these indices, but changes no computed minimum."""
        if end - len(timestamps) != self._end:
            self._known, self._end = [], end - len(timestamps)
        known = self._known
        while len(known) < end - first:
            stamp = timestamps[end - 1 - len(known)]
            oldest, untimed = known[-1] if known else (None, False)
            if stamp is None:
                untimed = True
            elif oldest is None or stamp < oldest:
                oldest = stamp
            known.append((oldest, untimed))
        return Oldest(end - first, *(known[end - first - 1] if end > first else (None, False)))


class Sharing:
    """Several records of one timestamp, grouped by content as far as was needed."""

    __slots__ = ("equals", "unsorted")

    def __init__(self, offset: int) -> None:
        self.equals: dict[Identity, list[int]] = {}
        self.unsorted = [offset]


class _NotIndexed:
    """Records of a fetched range whose timestamps were not needed yet."""

    __slots__ = ("_bounds", "offsets", "timestamps")

    def __init__(self, offsets: Sequence[int], timestamps: Sequence[int | None]) -> None:
        self.offsets = offsets
        self.timestamps = timestamps
        stamps = [stamp for stamp in timestamps if stamp is not None]
        self._bounds = (min(stamps), max(stamps)) if len(stamps) == len(timestamps) else None

    def may_have(self, timestamp_ms: int | None) -> bool:
        """Whether one of them may bear this timestamp."""
        if self._bounds is None or timestamp_ms is None:
            return self._bounds is None
        return self._bounds[0] <= timestamp_ms <= self._bounds[1]
