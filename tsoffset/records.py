"""Records as they are read: digests of what they hold, and pieces of a log without a gap."""

from abc import abstractmethod
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from tsoffset.model import TimestampType

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# Where a column has no timestamp.
NO_TIMESTAMP = -1

Content = tuple[bytes | None, bytes | None]
"""Digests of a record's key and value, None for null."""


@dataclass(frozen=True, slots=True)
class OffsetHeader:
    """A header in which a replicator keeps the offset of the original: as decimal text, or
    as 8 bytes, big end first."""

    name: str
    text: bool = False

    def read(self, value: bytes | None) -> int | None:
        """The offset that a header's value holds; None where it holds none."""
        if value is None:
            return None
        if not self.text:
            return int.from_bytes(value, "big", signed=True) if len(value) == 8 else None
        return int(value) if value.isdigit() else None

    def of(self, headers: Iterable[tuple[str, bytes | None]]) -> int | None:
        """The offset that the last of a record's headers of that name holds."""
        found = [self.read(value) for name, value in headers if name == self.name]
        return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class Record:
    """A data record reduced to what proofs need.

    `key` and `value` are 128-bit digests, None for null; `headers` holds one digest for
    each (name, value). `timestamp_ms` is None where the record carries none (or a negative
    one): such a record cannot be looked up by time. `source_offset` is what an OffsetHeader
    says of it.
    """

    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: frozenset[bytes] = frozenset()
    source_offset: int | None = None


class UnreadableRecords(Exception):
    """A batch turned out to be malformed when its records were looked at, though its checksum
    holds: brokers verify what they are sent, so it was written past them."""


# What must be equal for one record to be a copy of another, if nothing is left out.
ALL = frozenset({"timestamp", "key", "value"})


def matched(content: Content, match: frozenset[str]) -> Content:
    """What counts of a record's content, by `translation.match`."""
    key, value = content
    return (key if "key" in match else None, value if "value" in match else None)


class Contents(Protocol):
    """What records hold, looked at where somebody asks."""

    def encoded(self, numbers: Sequence[int]) -> Sequence[bytes | None]:
        """Of each of them bytes that are equal only where key and value are; None where there are
        none, or both are null."""

    def digests(self, numbers: Sequence[int]) -> Sequence[Content | None]:
        """The digests of each of them; None where it is malformed."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Data records of one log in columns of one length: `timestamp` is NO_TIMESTAMP where a record
    bears none, `contents` has each under its `number`."""

    offset: Numbers
    timestamp: Numbers
    number: Numbers
    contents: Contents


class LazyRecords(Sequence[Record]):
    """Data records in order that are decoded and digested where they are looked at, one by one.

    Whatever looks at them raises UnreadableRecords where a batch is malformed. Only what was
    asked for is decoded; `offsets` and `timestamps` take no digest.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def offsets(self) -> Sequence[int]:
        """Their offsets, ascending: a range where no offset is missing."""

    @property
    @abstractmethod
    def timestamps(self) -> Sequence[int | None]:
        """Their timestamps, found anew each time."""

    @classmethod
    @abstractmethod
    def walk(cls, many: Sequence[Self]) -> None:
        """Find where the records of all of them lie, side by side, which is cheaper than each by
        itself where somebody asks. What is malformed has no records."""

    @abstractmethod
    def pieces(self) -> Sequence[Piece]:
        """The same as columns. What is malformed is left out."""

    @abstractmethod
    def settle(self) -> None:
        """Keep nothing but offsets, timestamps and digests from now on: decode all."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of a log read without a gap.

    Every data record with start <= offset < end is in `records`, in order. Control records,
    records below the log's start and, read with READ_COMMITTED, aborted ones do not exist.
    At the readable end a stretch is empty: start == end. `log_start` is the log's start as the
    answer told it. What a real cluster's records hold is
    digested where they are looked at (LazyRecords), so look at no more than is needed, and
    settle what is kept.
    """

    start: int
    end: int
    records: Sequence[Record] = ()
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    bytes_read: int = 0
    log_start: int = field(default=0, compare=False)

    @property
    def offsets(self) -> Sequence[int]:
        """The offsets of `records`, known without decoding them wherever that can be."""
        records = self.records
        if isinstance(records, LazyRecords):
            return records.offsets
        return [record.offset for record in records]

    @property
    def timestamps(self) -> Sequence[int | None]:
        """The timestamps of `records`, found without digesting them, anew each time."""
        records = self.records
        if isinstance(records, LazyRecords):
            return records.timestamps
        return [record.timestamp_ms for record in records]

    def settle(self) -> None:
        """Let go of the bytes that `records` still holds, if any."""
        if isinstance(self.records, LazyRecords):
            self.records.settle()

    def at_or_after(self, offset: int) -> Record | None:
        """The first data record at or after `offset`; None if the stretch has none."""
        number = self._number(offset)
        return self.records[number] if number < len(self.records) else None

    def before(self, offset: int) -> Record | None:
        """The last data record before `offset`; None if the stretch has none."""
        number = self._number(offset)
        return self.records[number - 1] if number else None

    def _number(self, offset: int) -> int:
        """How many records lie before `offset`."""
        records = self.records
        if isinstance(records, LazyRecords):
            return bisect_left(records.offsets, offset)
        return bisect_left(records, offset, key=lambda record: record.offset)


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A data record with what it holds: for the replicator's own topics only, never for data.

    `key` and `value` are None for null, `timestamp_ms` where the record carries none.
    """

    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class RawStretch:
    """A `Stretch` whose records are raw."""

    start: int
    end: int
    records: tuple[RawRecord, ...] = ()


def walk_side_by_side(stretches: Iterable[Stretch]) -> None:
    """Prepare stretches for looks at their offsets, timestamps and columns."""
    lazy: defaultdict[type[LazyRecords], list[LazyRecords]] = defaultdict(list)
    for stretch in stretches:
        if isinstance(stretch.records, LazyRecords):
            lazy[type(stretch.records)].append(stretch.records)
    for kind, many in lazy.items():
        kind.walk(many)


def is_within(offsets: Numbers, starts: Sequence[int], ends: Sequence[int]) -> Flags:
    """Which of the offsets lie in one of some stretches of a log, of which both the starts and the
    ends are ascending."""
    if not starts:
        return np.zeros(len(offsets), bool)
    at = np.searchsorted(np.array(starts), offsets, "right") - 1
    found: Flags = (at >= 0) & (np.array(ends)[at] > offsets)
    return found
