"""Records as digests, and ranges of a log that were fetched without a gap."""

from abc import abstractmethod
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from tsoffset.model import TimestampType

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# The value of a column for a missing timestamp.
NO_TIMESTAMP = -1

# The digits of the largest offset.
_MOST_DIGITS = 19

# Two digests are equal exactly if the content is (except for a chance of 2**-64 among 2**32
# records). So records of two clusters can be compared without keeping their content.
DIGEST_BYTES = 16

Content = tuple[bytes | None, bytes | None]
"""Digests of a record's key and value, None for null."""


def _digest_of(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST_BYTES).digest()


def content_digest(content: bytes | None) -> bytes | None:
    """The digest of a key or value; None for null, which differs from empty."""
    return None if content is None else _digest_of(content)


def _header_digest(name: str, value: bytes | None) -> bytes:
    """One digest for a header's name and value together; null and empty values differ."""
    encoded = name.encode()
    marker = b"\0" if value is None else b"\1"
    # The length comes first, so that no other name and value give the same bytes.
    return _digest_of(len(encoded).to_bytes(4, "big") + encoded + marker + (value or b""))


def header_digests(headers: Iterable[tuple[str, bytes | None]]) -> frozenset[bytes]:
    """The digests of a record's headers; their order and repetition do not count."""
    return frozenset(_header_digest(name, value) for name, value in headers)


@dataclass(frozen=True, slots=True)
class OffsetHeader:
    """A header in which a replicator keeps the offset of the original: as decimal text, or as 8
    bytes, big end first."""

    name: str
    text: bool = False

    def read(self, value: bytes | None) -> int | None:
        """The offset in a header's value; None if it has none."""
        if value is None:
            return None
        if not self.text:
            return int.from_bytes(value, "big", signed=True) if len(value) == 8 else None
        return int(value) if value.isdigit() and len(value) <= _MOST_DIGITS else None

    def of(self, headers: Iterable[tuple[str, bytes | None]]) -> int | None:
        """The offset in the last header of that name."""
        found = [self.read(value) for name, value in headers if name == self.name]
        return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class Record:
    """A data record reduced to what proofs need.

    `key` and `value` are 128-bit digests, None for null; `headers` has one digest for each (name,
    value). `timestamp_ms` is None if the record has none (or a negative one): no time lookup finds
    such a record. `source_offset` is the offset in its OffsetHeader.
    """

    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: frozenset[bytes] = frozenset()
    source_offset: int | None = None


class UnreadableRecords(Exception):
    """A batch turned out to be malformed when its records were decoded, although its checksum is
    right. Brokers check what producers send, so something else has written this batch."""


# What must be equal in a record and its copy, if nothing is excluded.
ALL = frozenset({"timestamp", "key", "value"})


def compared_content(content: Content, match: frozenset[str]) -> Content:
    """The compared parts of a record's content, by `translation.match`."""
    key, value = content
    return (key if "key" in match else None, value if "value" in match else None)


class Contents(Protocol):
    """The content of records, decoded on demand."""

    def comparable_bytes(self, numbers: Sequence[int]) -> Sequence[bytes | None]:
        """For each record, bytes that are equal only if key and value are; None if there are none,
        or both are null."""

    def digests(self, numbers: Sequence[int]) -> Sequence[Content | None]:
        """The digests of each record; None if it is malformed."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Data records of one log in columns of equal length: `timestamp` is NO_TIMESTAMP for a record
    without one, `contents` has each record under its `number`."""

    offset: Numbers
    timestamp: Numbers
    number: Numbers
    contents: Contents


class Records(Protocol):
    """Data records in order, such as a tuple of them."""

    __slots__ = ()

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Record]: ...

    def __getitem__(self, number: int, /) -> Record: ...


class DecodedContents:
    """Contents of records that are decoded already."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def comparable_bytes(self, numbers: Sequence[int]) -> list[None]:
        return [None] * len(numbers)

    def digests(self, numbers: Sequence[int]) -> list[Content]:
        return [(record.key, record.value) for record in map(self._records.__getitem__, numbers)]


class LazyRecords(Records):
    """Records that are decoded and digested on demand, one by one.

    Access raises UnreadableRecords if a batch is malformed. `offsets` and `timestamps` digest
    nothing.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def offsets(self) -> Sequence[int]:
        """Ascending; a range if no offset is missing."""

    @property
    @abstractmethod
    def timestamps(self) -> Sequence[int | None]:
        """Computed on each call."""

    @classmethod
    @abstractmethod
    def walk(cls, many: Sequence[Self]) -> None:
        """Locate the records of all of them together, which is cheaper than one by one. A malformed
        batch has no records."""

    @abstractmethod
    def pieces(self) -> Sequence[Piece]:
        """The same as columns, without malformed batches."""


@dataclass(frozen=True, slots=True)
class FetchedRange:
    """A part of a log read without a gap.

    Every data record with start <= offset < end is in `records`, in order. Control records, records
    below the log's start and, with READ_COMMITTED, aborted ones do not exist. At the readable end a
    fetched range is empty: start == end. `log_start` is the log's start in the same answer.
    `transactional` is true if it has a batch of a transaction, a marker's included. Records of a
    real cluster are digested on demand (LazyRecords), so access no more than needed.
    """

    start: int
    end: int
    records: Records = ()
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    bytes_read: int = 0
    log_start: int = field(default=0, compare=False)
    transactional: bool = field(default=False, compare=False)

    @property
    def offsets(self) -> Sequence[int]:
        """The offsets of `records`, without decoding them if possible."""
        records = self.records
        if isinstance(records, LazyRecords):
            return records.offsets
        return [record.offset for record in records]

    @property
    def timestamps(self) -> Sequence[int | None]:
        """The timestamps of `records`, without digesting them, computed on each call."""
        records = self.records
        if isinstance(records, LazyRecords):
            return records.timestamps
        return [record.timestamp_ms for record in records]

    def at_or_after(self, offset: int) -> Record | None:
        """The first data record at or after `offset`; None if the range has none."""
        records = self.records
        if isinstance(records, LazyRecords):
            number = bisect_left(records.offsets, offset)
        else:
            number = bisect_left(records, offset, key=lambda record: record.offset)
        return records[number] if number < len(records) else None


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A data record with its content: for the replicator's own topics only, never for data.

    `key` and `value` are None for null, `timestamp_ms` if the record has none.
    """

    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class RawFetchedRange:
    """A `FetchedRange` whose records are raw."""

    start: int
    end: int
    records: tuple[RawRecord, ...] = ()


def walk_side_by_side(fetched_ranges: Iterable[FetchedRange]) -> None:
    """Locate the records of fetched ranges together, before their offsets, timestamps and columns
    are needed."""
    lazy: defaultdict[type[LazyRecords], list[LazyRecords]] = defaultdict(list)
    for fetched in fetched_ranges:
        if isinstance(fetched.records, LazyRecords):
            lazy[type(fetched.records)].append(fetched.records)
    for kind, many in lazy.items():
        kind.walk(many)


def is_within(offsets: Numbers, starts: Sequence[int], ends: Sequence[int]) -> Flags:
    """Which of the offsets lie in a range of a log. `starts` and `ends` are those of the
    ranges, both ascending."""
    if not starts:
        return np.zeros(len(offsets), bool)
    at = np.searchsorted(np.array(starts), offsets, "right") - 1
    found: Flags = (at >= 0) & (np.array(ends)[at] > offsets)
    return found
