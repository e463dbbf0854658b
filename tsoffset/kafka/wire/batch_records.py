"""The records of batches, decoded and digested on demand.

Decoding all records of a batch takes several times as long as fetching it, and most of them are
never compared with anything. So a batch whose checksum was verified is kept as it arrived. Its
header tells the offsets. The lengths of the records tell where each begins, and the timestamps are
read there. Keys and values are digested record by record, on demand.

A batch whose bytes take more memory than its records is not kept: it is decoded to
digests at once (`tsoffset.kafka.wire.digested_records`). A batch with a correct checksum
and malformed records was not written through a broker, because brokers verify records: it raises
`UnreadableRecords` when this is noticed.
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from operator import lt

from tsoffset.kafka.wire.digested_records import (
    NO_DIGEST,
    NO_OTHERS,
    NULL_KEY,
    NULL_VALUE,
    Columns,
    DigestedRecords,
    record,
)
from tsoffset.kafka.wire.record_encoding import headers, rest_of_varint
from tsoffset.records import (
    DIGEST_BYTES,
    OffsetHeader,
    Piece,
    Record,
    UnreadableRecords,
    header_digests,
)

# About the memory of a Record with two digests, several times that of a digested one.
RECORD_BYTES = 256

# Length, attributes, timestamp, offset, null key, null value, no headers: a byte each.
SMALLEST_RECORD = 7

# The most records of a batch, before compaction. librdkafka's producers write no more, and Java's
# stop by size; an index of this many takes 160 MB.
MOST_RECORDS = 1 << 20

_MALFORMED = (IndexError, ValueError, OverflowError)


# Offsets and timestamps of some records, and where their keys begin and end.
_Heads = tuple[Sequence[int], Sequence[int], list[int], list[int]]


@dataclass(frozen=True, slots=True)
class RawBatch:
    """A batch as it arrived; `content` is its decompressed records. Those from `start` up to `end`
    exist for the reader; `append_timestamp` is the time of all if the log has set it."""

    content: bytes
    count: int
    base_offset: int
    last_offset: int
    base_timestamp: int
    append_timestamp: int | None
    start: int
    end: int


class BatchRecords:
    """The records of one batch of format 2, in order."""

    __slots__ = (
        "_behind",
        "_first",
        "_header",
        "_is_dense",
        "_offsets",
        "_starts",
        "raw",
        "walked",
    )

    def __init__(self, raw: RawBatch, header: OffsetHeader | None) -> None:
        self.raw = raw
        self._header = header
        # Without gaps, the header gives each offset.
        self._is_dense = raw.count == raw.last_offset - raw.base_offset + 1
        # The records that exist for the reader, counted from the batch's first.
        self._first, self._behind = 0, raw.count
        # The same as columns, if it was walked together with others.
        self.walked: Piece | None = None
        # All offsets, once requested, and where records begin, once skimmed.
        self._offsets: Sequence[int] | None = None
        self._starts: array[int] | None = None

    @property
    def held_bytes(self) -> int:
        return len(self.raw.content)

    def restrict(self, start: int, end: int) -> None:
        """Keep only records with start <= offset < end. Raises UnreadableRecords."""
        offsets = self._all_offsets()
        self._first, self._behind = bisect_left(offsets, start), bisect_left(offsets, end)
        self.raw, self.walked = replace(self.raw, start=start, end=end), None

    @property
    def offsets(self) -> Sequence[int]:
        """Known from the header if none is missing. Raises UnreadableRecords."""
        offsets = self._all_offsets()
        if self._behind - self._first == self.raw.count:
            return offsets
        return offsets[self._first : self._behind]

    @property
    def timestamps(self) -> Sequence[int | None]:
        """Skimmed on each call. Raises UnreadableRecords."""
        if self.walked is not None:
            found: Sequence[int] = self.walked.timestamp.tolist()
            if self.walked.timestamp.min(initial=0) >= 0:
                return found
        else:
            _, stamps = self._skim()
            found = stamps[self._first : self._behind]
        return [stamp if stamp >= 0 else None for stamp in found]

    def piece(self) -> Piece:
        """The same as columns. Raises UnreadableRecords."""
        return self.walked or self.to_digests().piece()

    def to_digests(self) -> DigestedRecords:
        """All of them without their bytes. Raises UnreadableRecords."""
        return DigestedRecords(*self._decode(self._first, self._behind))

    def __len__(self) -> int:
        return self._behind - self._first

    def __getitem__(self, at: int) -> Record:
        number = at + (self._first if at >= 0 else self._behind)
        if not self._first <= number < self._behind:
            raise IndexError(at)
        offsets, stamps, digests, nulls, others = self._decode(number, number + 1)
        key, value = digests
        return record(offsets[0], stamps[0], key, value, nulls[0], others.get(0, NO_OTHERS))

    # --- where records are -----------------------------------------------------------------

    def _all_offsets(self) -> Sequence[int]:
        if self._offsets is None:
            if self._is_dense:
                self._offsets = range(self.raw.base_offset, self.raw.last_offset + 1)
            else:
                self._offsets = array("q", self._skim()[0])
        return self._offsets

    def _start_of(self, number: int) -> int:
        """Where a record begins, with its length: known from a skim, or found by walking."""
        if self._starts is not None:
            return self._starts[number]
        content = self.raw.content
        position = walked = step = 0
        while walked < number:
            before, start = step, position
            byte = content[position]
            if byte & 1:
                raise ValueError("a record of negative length")
            if byte < 0x80:
                position += 1 + (byte >> 1)
            elif (after := content[position + 1]) < 0x80:
                position += 2 + ((byte & 0x7F | after << 7) >> 1)
            else:
                byte, position = rest_of_varint(content, position + 1, byte)
                position += byte >> 1
            step = position - start
            walked += 1
            if step == before:
                # Records of equal length are where their lengths repeat: no walk is needed.
                more = min(_alike(content, start, step) - 1, number - walked)
                walked += more
                position += more * step
        return position

    def _skim(self) -> tuple[Sequence[int], Sequence[int]]:
        """Offsets and timestamps of all records of the batch; their positions are kept."""
        try:
            offsets, stamps, _, ends = self._heads(0, self.raw.count)
        except _MALFORMED as error:
            raise self._unreadable() from error
        self._starts = array("I", [0, *ends])
        return offsets, stamps

    def _heads(self, first: int, behind: int) -> _Heads:
        """The parts of these records before their keys. Raises the errors of _MALFORMED.

        Written out in one piece, like `_decoded`: this runs once per record, and function calls
        dominate the cost. Numbers are zigzag varints, nearly all of one or two bytes.
        """
        if first == behind:
            return (), [], [], []
        content, base_timestamp = self.raw.content, self.raw.base_timestamp
        deltas: list[int] = []
        stamps: list[int] = []
        bodies: list[int] = []
        ends: list[int] = []
        position = self._start_of(first)
        for _ in range(behind - first):
            byte = content[position]
            position += 1
            if byte >= 0x80:
                after = content[position]
                if after < 0x80:
                    byte = byte & 0x7F | after << 7
                    position += 1
                else:
                    byte, position = rest_of_varint(content, position, byte)
            if byte & 1:
                raise ValueError("a record of negative length")
            end = position + (byte >> 1)

            byte = content[position + 1]  # behind the attributes, which are not used
            position += 2
            if byte >= 0x80:
                after = content[position]
                if after < 0x80:
                    byte = byte & 0x7F | after << 7
                    position += 1
                else:
                    byte, position = rest_of_varint(content, position, byte)
            stamps.append(base_timestamp + ((byte >> 1) ^ -(byte & 1)))

            byte = content[position]
            position += 1
            if byte >= 0x80:
                byte, position = rest_of_varint(content, position, byte)
            if byte & 1:
                raise ValueError("a record before its batch")
            deltas.append(byte >> 1)
            bodies.append(position)
            ends.append(end)
            position = end
        if self.raw.append_timestamp is not None:
            stamps = [self.raw.append_timestamp] * len(stamps)
        size = len(content)
        if position > size or (behind == self.raw.count and position != size):
            raise ValueError("the records do not end where the batch does")
        base_offset = self.raw.base_offset
        offsets: Sequence[int]
        if self._is_dense:
            offsets = range(base_offset + first, base_offset + behind)
            in_order = deltas == list(range(first, behind))
        else:
            offsets = [base_offset + delta for delta in deltas]
            rising = all(map(lt, offsets, islice(offsets, 1, None)))
            in_order = rising and offsets[-1] <= self.raw.last_offset
        if not in_order:
            raise ValueError("offsets of records are not in order")
        return offsets, array("q", stamps), bodies, ends

    def _unreadable(self) -> UnreadableRecords:
        return UnreadableRecords(
            f"a record of the batch at offset {self.raw.base_offset} is malformed"
        )

    # --- what records hold -----------------------------------------------------------------

    def _decode(self, first: int, behind: int) -> Columns:
        content, header = self.raw.content, self._header
        digests: list[bytes] = []
        nulls = bytearray(behind - first)
        others: dict[int, tuple[frozenset[bytes], int | None]] = {}
        try:
            offsets, stamps, bodies, ends = self._heads(first, behind)
            for number, position in enumerate(bodies):
                byte = content[position]
                position += 1
                if byte >= 0x80:
                    byte, position = rest_of_varint(content, position, byte)
                if byte & 1:
                    nulls[number] = NULL_KEY
                    digests.append(NO_DIGEST)
                else:
                    end = position + (byte >> 1)
                    digests.append(
                        blake2b(content[position:end], digest_size=DIGEST_BYTES).digest()
                    )
                    position = end

                byte = content[position]
                position += 1
                if byte >= 0x80:
                    after = content[position]
                    if after < 0x80:
                        byte = byte & 0x7F | after << 7
                        position += 1
                    else:
                        byte, position = rest_of_varint(content, position, byte)
                if byte & 1:
                    nulls[number] |= NULL_VALUE
                    digests.append(NO_DIGEST)
                else:
                    end = position + (byte >> 1)
                    digests.append(
                        blake2b(content[position:end], digest_size=DIGEST_BYTES).digest()
                    )
                    position = end

                if content[position]:
                    found, position = headers(content, position, ends[number])
                    source_offset = None if header is None else header.of(found)
                    others[number] = header_digests(found), source_offset
                else:
                    position += 1
                if position != ends[number]:
                    raise ValueError("a record does not end where its length says")
        except _MALFORMED as error:
            raise self._unreadable() from error
        return offsets, stamps, digests, nulls, others


def _alike(content: bytes, start: int, step: int) -> int:
    """The number of records, from the one at `start` on, that begin with the same length, each
    `step` bytes apart."""
    firsts = content[start::step]
    same = len(firsts) - len(firsts.lstrip(firsts[:1]))
    if firsts[0] >= 0x80:
        seconds = content[start + 1 :: step]
        same = min(same, len(seconds) - len(seconds.lstrip(seconds[:1])))
        if seconds[0] >= 0x80:
            return 1
    return same
