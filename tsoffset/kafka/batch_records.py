"""The records of batches, decoded and digested where somebody looks at them.

To decode all records of a batch takes several times as long as to fetch it, and most of them
are never compared with anything. So a batch, its checksum verified, is kept as it came, and a
record is made when it is asked for: all of them in one go, or a few one by one. That is done
only where the bytes take less room than the records would; larger records are digested at
once, and their bytes let go. A batch whose checksum holds and whose records are malformed all
the same was written past the brokers, which verify records: `UnreadableRecords` says so where
it is noticed.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, overload

from tsoffset.digests import DIGEST_BYTES, header_digests
from tsoffset.model import OffsetHeader, Record, UnreadableRecords

# About what a Record with two digests takes.
RECORD_BYTES = 256

_NO_HEADERS: frozenset[bytes] = frozenset()


class BatchRecords(Sequence[Record]):
    """The records of one batch of format 2, in order; `content` is what it holds, unpacked.

    `append_timestamp` is the time of all where the log has stamped them.
    """

    __slots__ = (
        "_append_timestamp",
        "_base_offset",
        "_base_timestamp",
        "_content",
        "_count",
        "_header",
        "_last_offset",
        "_places",
    )

    def __init__(
        self,
        content: bytes,
        count: int,
        base_offset: int,
        last_offset: int,
        base_timestamp: int,
        append_timestamp: int | None,
        header: OffsetHeader | None,
    ) -> None:
        self._content = content
        self._count = max(0, count)
        self._base_offset = base_offset
        self._last_offset = last_offset
        self._base_timestamp = base_timestamp
        self._append_timestamp = append_timestamp
        self._header = header
        self._places: list[int] | None = None

    @property
    def are_large(self) -> bool:
        """Whether the bytes take more room than the records made of them."""
        return len(self._content) > RECORD_BYTES * self._count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records(0, self._count))

    @overload
    def __getitem__(self, at: int) -> Record: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Record]: ...

    def __getitem__(self, at: int | slice) -> Record | Sequence[Record]:
        if isinstance(at, slice):
            return self._records(0, self._count)[at]
        number = range(self._count)[at]
        return self._records(number, number + 1)[0]

    def _records(self, first: int, behind: int) -> list[Record]:
        try:
            if self._places is None:
                self._places = _places(self._content, self._count)
            return self._decoded(self._places, first, behind)
        except (IndexError, ValueError) as error:
            raise UnreadableRecords(
                f"a record of the batch at offset {self._base_offset} is malformed"
            ) from error

    def _decoded(self, places: list[int], first: int, behind: int) -> list[Record]:
        """Written out in one piece: it runs once per record, and calls are what costs here.
        Numbers are zigzag varints, nearly all of one or two bytes."""
        records = []
        content, header, append_timestamp = self._content, self._header, self._append_timestamp
        base_offset, base_timestamp = self._base_offset, self._base_timestamp
        last_offset, before = self._last_offset, base_offset - 1
        for number in range(first, behind):
            position = places[number]
            byte = content[position]
            position += 1
            if byte >= 0x80:
                byte, position = _rest_of_varint(content, position, byte)
            record_end = position + (byte >> 1)

            byte = content[position + 1]  # behind the attributes, of which none is in use
            position += 2
            if byte >= 0x80:
                after = content[position]
                if after < 0x80:
                    byte = byte & 0x7F | after << 7
                    position += 1
                else:
                    byte, position = _rest_of_varint(content, position, byte)
            timestamp = base_timestamp + ((byte >> 1) ^ -(byte & 1))
            if append_timestamp is not None:
                timestamp = append_timestamp

            byte = content[position]
            position += 1
            if byte >= 0x80:
                byte, position = _rest_of_varint(content, position, byte)
            offset = base_offset + ((byte >> 1) ^ -(byte & 1))
            if not before < offset <= last_offset:
                raise ValueError("offsets of records are not in order")
            before = offset

            byte = content[position]
            position += 1
            if byte >= 0x80:
                byte, position = _rest_of_varint(content, position, byte)
            key = None
            if not byte & 1:
                end = position + (byte >> 1)
                key = blake2b(content[position:end], digest_size=DIGEST_BYTES).digest()
                position = end

            byte = content[position]
            position += 1
            if byte >= 0x80:
                after = content[position]
                if after < 0x80:
                    byte = byte & 0x7F | after << 7
                    position += 1
                else:
                    byte, position = _rest_of_varint(content, position, byte)
            value = None
            if not byte & 1:
                end = position + (byte >> 1)
                value = blake2b(content[position:end], digest_size=DIGEST_BYTES).digest()
                position = end

            headers, source_offset = _NO_HEADERS, None
            if content[position]:
                found, position = _headers(content, position)
                headers = header_digests(found)
                if header is not None:
                    source_offset = header.of(found)
            else:
                position += 1
            if position != record_end:
                raise ValueError("a record does not end where its length says")
            stamp = timestamp if timestamp >= 0 else None
            records.append(Record(offset, stamp, key, value, headers, source_offset))
        return records


class StretchRecords(Sequence[Record]):
    """The records of several batches, one after the other.

    It is equal to a tuple of the same records, and becomes one where it is pickled: what
    records hold leaves the process as digests alone. Once all have been looked at, their
    bytes are let go.
    """

    __slots__ = ("_ends", "_parts")

    def __init__(self, parts: Sequence[Sequence[Record]]) -> None:
        self._parts = parts
        self._ends: list[int] = []
        count = 0
        for part in parts:
            count += len(part)
            self._ends.append(count)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Record]:
        return iter(self._all())

    @overload
    def __getitem__(self, at: int) -> Record: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Record]: ...

    def __getitem__(self, at: int | slice) -> Record | Sequence[Record]:
        if isinstance(at, slice):
            return self._all()[at]
        number = range(len(self))[at]
        part = bisect_right(self._ends, number)
        return self._parts[part][number - self._ends[part]]

    def _all(self) -> Sequence[Record]:
        if len(self._parts) != 1 or not isinstance(self._parts[0], tuple):
            every = tuple(record for part in self._parts for record in part)
            self._parts, self._ends = (every,), [len(every)]
        return self._parts[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | StretchRecords):
            return NotImplemented
        return len(self) == len(other) and self._all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return f"<{len(self)} records>"

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


def varint(content: bytes | memoryview, position: int) -> tuple[int, int]:
    """The zigzag varint at `position`, and where it ends. Raises IndexError or ValueError."""
    byte = content[position]
    position += 1
    if byte >= 0x80:
        byte, position = _rest_of_varint(content, position, byte)
    return (byte >> 1) ^ -(byte & 1), position


def _rest_of_varint(content: bytes | memoryview, position: int, byte: int) -> tuple[int, int]:
    """A number, still zigzag, whose first byte is read and says that more follow."""
    result = byte & 0x7F
    shift = 7
    while True:
        byte = content[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _places(content: bytes, count: int) -> list[int]:
    """Where each record begins, with its length; raises where they do not fill the batch."""
    places = []
    position = 0
    for _ in range(count):
        places.append(position)
        byte = content[position]
        position += 1
        if byte >= 0x80:
            after = content[position]
            if after < 0x80:
                byte = byte & 0x7F | after << 7
                position += 1
            else:
                byte, position = _rest_of_varint(content, position, byte)
        if byte & 1:
            raise ValueError("a record of negative length")
        position += byte >> 1
    if position != len(content):
        raise ValueError("the records do not end where the batch does")
    return places


def _headers(content: bytes, position: int) -> tuple[list[tuple[str, bytes | None]], int]:
    count, position = varint(content, position)
    if count < 0:
        raise ValueError("a negative number of headers")
    found = []
    for _ in range(count):
        size, position = varint(content, position)
        name = content[position : position + size]
        position += size
        size, position = varint(content, position)
        value = None
        if size >= 0:
            value = content[position : position + size]
            position += size
        # A name that is no UTF-8 is told apart from others all the same.
        found.append((name.decode("utf-8", "backslashreplace"), value))
    return found, position
