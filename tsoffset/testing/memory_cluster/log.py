"""One partition's log as a broker stores it: batches in segments, transactions, holes."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from tsoffset.model import Failed, Isolation, TimedOffset, TimestampType
from tsoffset.records import FetchedRange, OffsetHeader, RawFetchedRange, RawRecord
from tsoffset.testing.memory_cluster.batches import NO_TIMESTAMP, MemoryBatch, Message


@dataclass(slots=True)
class Clock:
    """The time of a cluster, in milliseconds; it changes only by hand."""

    now_ms: int = 1_700_000_000_000


@dataclass(slots=True)
class _Segment:
    """A file of the log. If no record in it has a timestamp (compaction may have emptied it), its
    largest one is the time of its last write (LogSegment.largestTimestamp)."""

    base_offset: int
    largest_record_ms: int = NO_TIMESTAMP
    youngest: int | None = None
    written_ms: int = NO_TIMESTAMP

    @property
    def largest_ms(self) -> int:
        return self.largest_record_ms if self.largest_record_ms >= 0 else self.written_ms


class PartitionLog:
    """The log of one partition, to be filled by a test.

    Offsets ascend. `timestamp_type` may change in between, like a topic's `message.timestamp.type`.
    A log can be pickled and copied.
    """

    def __init__(
        self,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        *,
        first_offset: int = 0,
        clock: Clock | None = None,
        offset_header: OffsetHeader | None = None,
    ) -> None:
        self.timestamp_type = timestamp_type
        self.offset_header = offset_header
        self.clock = clock or Clock()
        self._start = first_offset
        self._end = first_offset
        self._held: int | None = None
        self._batches: list[MemoryBatch] = []
        self._last_offsets: list[int] = []
        self._largest_so_far: list[int] = []
        self._segments = [_Segment(first_offset)]
        self._open: dict[int, int] = {}
        self._producers = 0

    @property
    def start(self) -> int:
        """The first offset that exists."""
        return self._start

    @property
    def end(self) -> int:
        """The offset after the last record, replicated or not."""
        return self._end

    @property
    def high_watermark(self) -> int:
        """The offset up to which readers see the log."""
        return self._end if self._held is None else self._held

    @property
    def last_stable_offset(self) -> int:
        """The high watermark, or the first offset of the oldest open transaction; never below the
        log's start, even if records of the transaction were deleted."""
        end = self.high_watermark
        return max(self._start, min(end, *self._open.values())) if self._open else end

    def readable_end(self, isolation: Isolation) -> int:
        """The offset up to which a reader with this isolation sees the log."""
        if isolation is Isolation.READ_COMMITTED:
            return self.last_stable_offset
        return self.high_watermark

    # --- writing --------------------------------------------------------------------------

    def append(self, messages: Iterable[Message], *, batch_size: int | None = None) -> int:
        """Append in batches of `batch_size` messages (None: one batch); returns the first
        offset."""
        return self._append(tuple(messages), batch_size, producer=None)

    def begin(self) -> "Transaction":
        """A new transaction on this partition."""
        self._producers += 1
        return Transaction(self, self._producers)

    def roll(self) -> None:
        """Begin a new segment; a time lookup chooses one segment and searches no further."""
        if self._segments[-1].base_offset != self._end:
            self._segments.append(_Segment(self._end))

    def remove(self, offsets: Collection[int], *, keep_empty_batches: bool = False) -> None:
        """Remove records, as compaction does: the other records keep their offsets.

        An empty batch is removed, too, unless `keep_empty_batches` (the broker keeps the last batch
        of an idempotent producer). The offset of a control record removes its marker.
        """
        gone = frozenset(offsets)
        kept: list[MemoryBatch] = []
        touched: set[int] = set()
        for batch in self._batches:
            left = tuple(pair for pair in batch.messages if pair[0] not in gone)
            marker_gone = batch.control and batch.last_offset in gone
            if len(left) == len(batch.messages) and not marker_gone:
                kept.append(batch)
                continue
            touched.add(self._segment_of(batch))
            if left or (keep_empty_batches and not marker_gone):
                kept.append(replace(batch, messages=left))
        self._batches = kept
        # The cleaner rewrites the segments that it touches: now is their file time.
        for index in touched:
            segment = self._segments[index]
            segment.largest_record_ms = NO_TIMESTAMP
            segment.youngest = None
            segment.written_ms = self.clock.now_ms
        self._index()

    def compact(self, *, before: int | None = None) -> None:
        """Remove what log compaction would: each record with a later one of its key.

        Only records below `before` (the broker: the active segment) and below the last stable
        offset count.
        """
        end = self.last_stable_offset if before is None else min(before, self.last_stable_offset)
        dirty = [(offset, message.key) for offset, message in self.messages() if offset < end]
        newest = {key: offset for offset, key in dirty}
        self.remove([offset for offset, key in dirty if key is not None and offset < newest[key]])

    def delete_records(self, before: int) -> None:
        """Raise the log's start to `before`, as DeleteRecords and retention do."""
        if not self._start <= before <= self.high_watermark:
            raise ValueError(f"{before} lies outside {self._start}..{self.high_watermark}")
        self._start = before
        self._batches = [batch for batch in self._batches if batch.last_offset >= before]
        # Only whole segments are removed, and never the last one.
        while len(self._segments) > 1 and self._segments[1].base_offset <= before:
            del self._segments[0]
        self._index()

    def truncate(self, end: int) -> None:
        """Remove the records from `end` on, as on a replica that has not copied them yet. Raises
        ValueError if a batch lies on both sides, and while transactions are open."""
        if end == self._end:
            return
        kept = [batch for batch in self._batches if batch.last_offset < end]
        if self._open or any(batch.base_offset < end for batch in self._batches[len(kept) :]):
            raise ValueError(f"the log cannot end at {end}")
        self._batches = kept
        self._end = end
        self._segments = [one for one in self._segments if one.base_offset <= end]
        active = self._segments[-1]
        active.largest_record_ms, active.youngest = NO_TIMESTAMP, None
        self._held = None
        self._index()

    def hold_high_watermark(self, offset: int | None) -> None:
        """Stop replication at `offset`, the end of a batch; None lets it catch up."""
        if offset is not None and offset not in (self._start, *(n + 1 for n in self._last_offsets)):
            raise ValueError(f"{offset} is not the end of a batch")
        self._held = offset

    # --- reading --------------------------------------------------------------------------

    def messages(
        self, isolation: Isolation = Isolation.READ_UNCOMMITTED
    ) -> Iterator[tuple[int, Message]]:
        """Offset and message of every data record that a reader sees, in order."""
        end = self.readable_end(isolation)
        for batch in self._batches:
            if batch.base_offset >= end:
                return
            if not (batch.aborted and isolation is Isolation.READ_COMMITTED):
                yield from (pair for pair in batch.messages if pair[0] >= self._start)

    def read(self, offset: int, max_bytes: int, isolation: Isolation) -> FetchedRange | None:
        """The range of whole batches from `offset` on (`ReadFrom`), all of one segment; None if
        the log has more offsets and no batch for them, because compaction removed them."""
        end = self.readable_end(isolation)
        if offset >= end:
            return FetchedRange(offset, offset, log_start=self._start)
        index = bisect_left(self._last_offsets, offset)
        if index == len(self._batches) or self._batches[index].base_offset >= end:
            return None
        first = self._batches[index]
        left = max_bytes - first.size
        fetched = first.fetched_range(isolation)
        if left > 0:
            fetched = self._widen(fetched, index, left, end, isolation)
        if first.base_offset < self._start or offset < first.base_offset:
            start = max(self._start, min(offset, first.base_offset))
            records = tuple(record for record in fetched.records if record.offset >= start)
            fetched = replace(fetched, start=start, records=records)
        return replace(fetched, log_start=self._start)

    def raw(self, fetched: FetchedRange | Failed) -> RawFetchedRange | Failed:
        """The range with the content of its records; a failure stays one."""
        if isinstance(fetched, Failed):
            return fetched
        index = bisect_left(self._last_offsets, fetched.start)
        held = {
            offset: message
            for batch in islice(self._batches, index, None)
            if batch.base_offset < fetched.end
            for offset, message in batch.messages
        }
        return RawFetchedRange(
            fetched.start,
            fetched.end,
            tuple(
                RawRecord(it.offset, it.timestamp_ms, held[it.offset].key, held[it.offset].value)
                for it in fetched.records
            ),
        )

    def first_at(self, timestamp_ms: int, isolation: Isolation) -> TimedOffset | None:
        """ListOffsets for a timestamp: the first record in log order, control and aborted ones
        included, of the first segment whose largest timestamp reaches it."""
        index = 0
        for number, segment in enumerate(self._segments, 1):
            stop = len(self._batches)
            if number < len(self._segments):
                stop = bisect_left(self._last_offsets, self._segments[number].base_offset)
            if segment.largest_ms >= timestamp_ms:
                index = bisect_left(self._largest_so_far, timestamp_ms, index, stop)
                return self._first_in(index, stop, timestamp_ms, isolation)
            index = stop
        return None

    def youngest(self, isolation: Isolation) -> TimedOffset | None:
        """ListOffsets for the largest timestamp: the first record with it, control and aborted ones
        included, of the first segment that has it, also below the log's start."""
        segment = max(self._segments, key=lambda each: each.largest_record_ms)
        offset = segment.youngest
        if offset is None or offset >= self.readable_end(isolation):
            return None
        return TimedOffset(offset, segment.largest_record_ms)

    def _first_in(
        self, index: int, stop: int, timestamp_ms: int, isolation: Isolation
    ) -> TimedOffset | None:
        for number in range(index, stop):
            for offset, timestamp in self._batches[number].timestamps():
                if timestamp >= timestamp_ms and offset >= self._start:
                    readable = offset < self.readable_end(isolation)
                    return TimedOffset(offset, timestamp) if readable else None
        return None

    def _widen(
        self, fetched: FetchedRange, index: int, left: int, end: int, isolation: Isolation
    ) -> FetchedRange:
        fetched_ranges = [fetched]
        following = self._segments[self._segment_of(self._batches[index]) + 1 :]
        stop = min(end, following[0].base_offset) if following else end
        for batch in islice(self._batches, index + 1, None):
            left -= batch.size
            if left < 0 or batch.base_offset >= stop:
                break
            fetched_ranges.append(batch.fetched_range(isolation))
        rewritten = any(s.timestamp_type is TimestampType.LOG_APPEND_TIME for s in fetched_ranges)
        return FetchedRange(
            fetched.start,
            fetched_ranges[-1].end,
            tuple(record for s in fetched_ranges for record in s.records),
            TimestampType.LOG_APPEND_TIME if rewritten else TimestampType.CREATE_TIME,
            sum(s.bytes_read for s in fetched_ranges),
            transactional=any(s.transactional for s in fetched_ranges),
        )

    # --- keeping --------------------------------------------------------------------------

    def _append(
        self, messages: tuple[Message, ...], batch_size: int | None, producer: int | None
    ) -> int:
        first = self._end
        step = batch_size or max(1, len(messages))
        for cut in range(0, len(messages), step):
            base = self._end
            numbered = tuple(enumerate(messages[cut : cut + step], base))
            self._add(
                MemoryBatch(
                    base,
                    base + len(numbered) - 1,
                    numbered,
                    self.timestamp_type,
                    self.clock.now_ms,
                    producer=producer,
                    offset_header=self.offset_header,
                )
            )
        if producer is not None and messages:
            self._open.setdefault(producer, first)
        return first

    def _finish(self, producer: int, *, abort: bool) -> None:
        first = self._open.pop(producer, None)
        if first is None:
            return
        if abort:
            for batch in self._batches[bisect_left(self._last_offsets, first) :]:
                batch.aborted = batch.aborted or batch.producer == producer
        now = self.clock.now_ms
        self._add(MemoryBatch(self._end, self._end, (), self.timestamp_type, now, control=True))

    def _add(self, batch: MemoryBatch) -> None:
        self._batches.append(batch)
        self._end = batch.last_offset + 1
        self._segments[-1].written_ms = self.clock.now_ms
        self._note(batch, len(self._segments) - 1)

    def _note(self, batch: MemoryBatch, segment_index: int) -> None:
        """Update the indexes for `batch`, the next one."""
        segment = self._segments[segment_index]
        starts = not self._last_offsets or self._last_offsets[-1] < segment.base_offset
        before = NO_TIMESTAMP if starts else self._largest_so_far[-1]
        self._last_offsets.append(batch.last_offset)
        self._largest_so_far.append(max(before, batch.max_timestamp_ms))
        if batch.max_timestamp_ms > segment.largest_record_ms:
            segment.largest_record_ms = batch.max_timestamp_ms
            segment.youngest = next(
                offset for offset, time in batch.timestamps() if time == batch.max_timestamp_ms
            )

    def _index(self) -> None:
        self._last_offsets = []
        self._largest_so_far = []
        for batch in self._batches:
            self._note(batch, self._segment_of(batch))

    def _segment_of(self, batch: MemoryBatch) -> int:
        bases = [segment.base_offset for segment in self._segments]
        return max(0, bisect_left(bases, batch.base_offset + 1) - 1)


@dataclass(slots=True)
class Transaction:
    """Records of one producer that count only once it commits.

    Its end writes a control record, if anything was appended.
    """

    log: PartitionLog
    producer: int

    def append(self, messages: Iterable[Message], *, batch_size: int | None = None) -> int:
        return self.log._append(tuple(messages), batch_size, self.producer)

    def commit(self) -> None:
        """The records count from now on."""
        self.log._finish(self.producer, abort=False)

    def abort(self) -> None:
        """The records do not exist for readers of committed ones."""
        self.log._finish(self.producer, abort=True)
