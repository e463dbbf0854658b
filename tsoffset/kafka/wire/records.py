"""Record batches, made into digests: the only module that sees the content of data."""

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from crc32c import crc32c
from kafka.errors import CorruptRecordError, UnsupportedCodecError

from tsoffset.kafka.wire.batch_records import (
    MOST_RECORDS,
    RECORD_BYTES,
    SMALLEST_RECORD,
    BatchRecords,
    RawBatch,
)
from tsoffset.kafka.wire.digested_records import (
    NO_DIGEST,
    NULL_KEY,
    NULL_VALUE,
    DigestedRecords,
)
from tsoffset.kafka.wire.fetched_records import FetchedRecords
from tsoffset.kafka.wire.message_sets import LOG_APPEND_TIME, messages
from tsoffset.kafka.wire.record_encoding import nullable, varint
from tsoffset.kafka.wire.unpacking import unpack
from tsoffset.model import Isolation, TimestampType
from tsoffset.records import (
    FetchedRange,
    OffsetHeader,
    RawFetchedRange,
    RawRecord,
    UnreadableRecords,
    content_digest,
)

# Base offset, length, leader epoch, magic: in the same places in all formats.
_PREFIX = struct.Struct(">qiib")
_LENGTH_ENDS = 12
# CRC, attributes, last offset delta, base timestamp, max timestamp, producer id, producer epoch,
# base sequence, count: the rest of the header in format 2. The CRC covers everything after it.
_HEADER = struct.Struct(">Ihiqqqhii")
_CHECKED_FROM = _PREFIX.size + 4
_RECORDS_FROM = _PREFIX.size + _HEADER.size

# A fetched range ends after the batch that reaches this size: small batches may decompress to a
# lot.
_HELD_BYTES = 32 << 20

_COMPRESSION = 0x07
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_NEWEST = 2

Aborted = Sequence[tuple[int, int]]
"""Aborted transactions as a Fetch answers them: (producer id, first offset)."""


_Records = BatchRecords | DigestedRecords


class Batch(NamedTuple):
    """One batch with a verified checksum. `read` decodes its records."""

    base_offset: int
    last_offset: int
    attributes: int
    producer_id: int
    view: memoryview
    read: Callable[[], _Records]


def fetched_range(
    view: memoryview,
    offset: int,
    log_start: int,
    readable_end: int,
    isolation: Isolation,
    aborted: Aborted = (),
    header: OffsetHeader | None = None,
) -> FetchedRange | None:
    """The answer to a Fetch from `offset` on; None if no whole batch in it goes past
    `offset`.

    Omitted are a truncated batch at the end, everything at or past `readable_end`, and the rest if
    batches decompress to very much. `aborted` are (producer id, first offset) of the aborted
    transactions; they count with READ_COMMITTED. `header` is where the records have the offsets of
    their originals.

    Raises CorruptRecordError or UnsupportedCodecError if the first batch cannot be read; a later
    one ends the range before it.
    """
    found: list[tuple[Batch, _Records]] = []
    held = 0
    start: int | None = None
    end = offset
    append_time = transactional = 0
    transactions = _Transactions(aborted if isolation is Isolation.READ_COMMITTED else ())
    try:
        for batch in _batches(view, header):
            if start is not None and batch.base_offset < end:
                raise CorruptRecordError(f"the batch at offset {batch.base_offset} goes backwards")
            if batch.base_offset >= readable_end or held > _HELD_BYTES:
                break
            if not (transactions.drop(batch) or batch.attributes & _CONTROL):
                records = batch.read()
                held += records.held_bytes
                found.append((batch, records))
                append_time |= batch.attributes & LOG_APPEND_TIME
            transactional |= batch.attributes & _TRANSACTIONAL
            if start is None:
                start = min(offset, batch.base_offset)
            end = batch.last_offset + 1
    except (CorruptRecordError, UnsupportedCodecError):
        if start is None:
            raise
    if start is None or end <= offset:
        return None
    start = max(start, log_start)
    end = max(start, min(end, readable_end))
    return FetchedRange(
        start=start,
        end=end,
        records=FetchedRecords([_restrict(batch, records, start, end) for batch, records in found]),
        timestamp_type=(
            TimestampType.LOG_APPEND_TIME if append_time else TimestampType.CREATE_TIME
        ),
        bytes_read=len(view),
        log_start=log_start,
        transactional=bool(transactional),
    )


def raw_fetched_range(
    view: memoryview,
    offset: int,
    log_start: int,
    readable_end: int,
    isolation: Isolation,
    aborted: Aborted = (),
) -> RawFetchedRange | None:
    """Like `fetched_range`, with the content of records: for a replicator's own topics.

    `fetched_range` decides which records exist, and checks every batch. These topics are small, so
    decompressing them twice is cheap. Raises CorruptRecordError or UnsupportedCodecError if the
    first batch cannot be read.
    """
    found = fetched_range(view, offset, log_start, readable_end, isolation, aborted)
    if found is None:
        return None
    records: list[RawRecord] = []
    try:
        times = {record.offset: record.timestamp_ms for record in found.records}
        for batch in _batches(view, None):
            first = found.at_or_after(batch.base_offset)
            # Other batches were not checked for whether, and to what size, they decompress.
            if first is not None and first.offset <= batch.last_offset:
                records += [
                    RawRecord(offset, times[offset], key, value)
                    for offset, key, value in _keys_and_values(batch)
                    if offset in times
                ]
            if batch.last_offset + 1 >= found.end:
                break  # the next one may be damaged
    except (UnreadableRecords, IndexError, ValueError) as error:
        raise CorruptRecordError(
            f"a batch at or after offset {found.start} is malformed"
        ) from error
    return RawFetchedRange(found.start, found.end, tuple(records))


class _Transactions:
    """Which batches are aborted. Call it for each batch in the order of the log."""

    def __init__(self, aborted: Aborted) -> None:
        # Descending, so that the next one is popped from the end.
        self._ahead = sorted(aborted, key=lambda each: each[1], reverse=True)
        self._aborting: set[int] = set()

    def drop(self, batch: Batch) -> bool:
        """A producer's records count as aborted from a transaction's first offset up to its marker
        (FetchResponse, AbortedTransactions). That is the producer's next marker: each one ends a
        transaction."""
        while self._ahead and self._ahead[-1][1] <= batch.last_offset:
            self._aborting.add(self._ahead.pop()[0])
        if batch.producer_id not in self._aborting:
            return False
        if batch.attributes & _CONTROL:
            self._aborting.discard(batch.producer_id)
        return bool(batch.attributes & _TRANSACTIONAL)


def _restrict(batch: Batch, records: _Records, start: int, end: int) -> _Records:
    if start > batch.base_offset or batch.last_offset >= end:
        try:
            records.restrict(start, end)
        except UnreadableRecords as error:
            raise CorruptRecordError(str(error)) from error
    return records


def _to_digests(records: BatchRecords) -> DigestedRecords:
    try:
        return records.to_digests()
    except UnreadableRecords as error:
        raise CorruptRecordError(str(error)) from error


def _batches(view: memoryview, header: OffsetHeader | None) -> Iterator[Batch]:
    """The whole batches, each checked. Raises CorruptRecordError or UnsupportedCodecError."""
    position = 0
    while len(view) - position >= _PREFIX.size:
        base_offset, length, _, magic = _PREFIX.unpack_from(view, position)
        end = position + _LENGTH_ENDS + length
        if end > len(view):
            return
        if length <= _PREFIX.size - _LENGTH_ENDS:
            raise CorruptRecordError(f"the batch at offset {base_offset} has no content")
        if magic == _NEWEST:
            yield _batch(view[position:end], base_offset, header)
        elif magic in (0, 1):
            yield _legacy_batch(view[position:end], base_offset, magic)
        else:
            raise UnsupportedCodecError(f"message format {magic} at offset {base_offset}")
        position = end


def _batch(view: memoryview, base_offset: int, header: OffsetHeader | None) -> Batch:
    if len(view) < _RECORDS_FROM:
        raise CorruptRecordError(f"the batch at offset {base_offset} is too short")
    crc, attributes, last_delta, base_timestamp, max_timestamp, producer_id, _, _, count = (
        _HEADER.unpack_from(view, _PREFIX.size)
    )
    if crc32c(view[_CHECKED_FROM:]) != crc:
        raise CorruptRecordError(f"the batch at offset {base_offset} fails its checksum")
    if base_offset < 0 or not 0 <= last_delta < MOST_RECORDS or count > MOST_RECORDS:
        raise CorruptRecordError(f"the batch at offset {base_offset} has no room for records")
    last_offset = base_offset + last_delta

    def read() -> _Records:
        content = _unpacked_content(view, attributes, base_offset)
        # A batch with a count of 0 must be empty: hidden records would be taken for compacted ones.
        if count < 0 or count * SMALLEST_RECORD > len(content) or (content and not count):
            raise CorruptRecordError(f"the batch at offset {base_offset} has no room for records")
        raw = RawBatch(
            content,
            count,
            base_offset,
            last_offset,
            base_timestamp,
            max_timestamp if attributes & LOG_APPEND_TIME else None,
            base_offset,
            last_offset + 1,
        )
        records = BatchRecords(raw, header)
        # Large records take more memory than what is made of them.
        return _to_digests(records) if len(content) > RECORD_BYTES * count else records

    return Batch(base_offset, last_offset, attributes, producer_id, view, read)


def _unpacked_content(view: memoryview, attributes: int, offset: int) -> bytes:
    content = view[_RECORDS_FROM:].tobytes()
    compression = attributes & _COMPRESSION
    return unpack(content, compression, offset) if compression else content


def _keys_and_values(batch: Batch) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of each record of a batch whose header was checked. Raises IndexError
    or ValueError if one is malformed, CorruptRecordError or UnsupportedCodecError."""
    base_offset, _, _, magic = _PREFIX.unpack_from(batch.view)
    if magic < _NEWEST:
        for message in messages(batch.view, base_offset, magic):
            yield message.offset, message.key, message.value
        return
    content = _unpacked_content(batch.view, batch.attributes, base_offset)
    position = 0
    while position < len(content):
        size, position = varint(content, position)
        if size < 0:  # it would lead backwards
            raise ValueError("a record of negative length")
        end = position + size
        _, position = varint(content, position + 1)  # the timestamp, behind the attributes
        delta, position = varint(content, position)
        key, position = nullable(content, position)
        value, _ = nullable(content, position)
        yield base_offset + delta, key, value
        position = end


def _legacy_batch(view: memoryview, offset: int, magic: int) -> Batch:
    """A message of format 0 or 1, or the wrapper of several compressed ones. Format 0 has no
    timestamps."""
    content = messages(view, offset, magic)
    offsets = [message.offset for message in content]
    records = DigestedRecords(
        offsets,
        [message.timestamp for message in content],
        [content_digest(each) or NO_DIGEST for one in content for each in (one.key, one.value)],
        [
            (NULL_KEY if message.key is None else 0) | (NULL_VALUE if message.value is None else 0)
            for message in content
        ],
        {},
    )
    attributes = content[0].attributes & LOG_APPEND_TIME if magic else 0
    return Batch(offsets[0], offsets[-1], attributes, -1, view, lambda: records)
