"""Records without their bytes: offset, timestamp and digests, in columns.

A `Record` with its digests takes about 256 bytes, a row of these columns 40 to 48; records are made
from them on demand.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tsoffset.records import DIGEST_BYTES, NO_TIMESTAMP, DecodedContents, Piece, Record

# The value for null in a column of digests.
NO_DIGEST = bytes(DIGEST_BYTES)
NULL_KEY, NULL_VALUE = 1, 2
_ROW_BYTES = 2 * DIGEST_BYTES


Others = tuple[frozenset[bytes], int | None]
"""The digests of a record's headers, and the offset that one of them tells."""

Columns = tuple[Sequence[int], Sequence[int], Sequence[bytes], Sequence[int], Mapping[int, Others]]
"""Data records as they are decoded: what `DigestedRecords` takes."""

NO_OTHERS: Others = (frozenset(), None)


class DigestedRecords:
    """Data records in order, in little memory.

    `stamps` are negative for a record without a timestamp; `digests` alternate key and value;
    `nulls` says which of the two are null; `others` has the records with headers.
    """

    __slots__ = ("_digests", "_nulls", "_offsets", "_others", "_stamps")

    def __init__(
        self,
        offsets: Sequence[int],
        stamps: Sequence[int],
        digests: Sequence[bytes],
        nulls: Sequence[int],
        others: Mapping[int, Others],
    ) -> None:
        self._offsets = offsets if isinstance(offsets, range) else array("q", offsets)
        self._stamps = array("q", stamps)
        self._digests = b"".join(digests)
        self._nulls = bytes(nulls)
        self._others = others

    @property
    def offsets(self) -> Sequence[int]:
        return self._offsets

    @property
    def timestamps(self) -> Sequence[int | None]:
        return [stamp if stamp >= 0 else None for stamp in self._stamps]

    @property
    def held_bytes(self) -> int:
        """The size of the largest columns."""
        return len(self._digests)

    def restrict(self, start: int, end: int) -> None:
        first, behind = bisect_left(self._offsets, start), bisect_left(self._offsets, end)
        self._offsets = self._offsets[first:behind]
        self._stamps, self._nulls = self._stamps[first:behind], self._nulls[first:behind]
        self._digests = self._digests[first * _ROW_BYTES : behind * _ROW_BYTES]
        self._others = {
            number - first: other
            for number, other in self._others.items()
            if first <= number < behind
        }

    def piece(self) -> Piece:
        return Piece(
            np.array(self._offsets, np.int64),
            np.maximum(np.array(self._stamps, np.int64), NO_TIMESTAMP),
            np.arange(len(self)),
            DecodedContents(self),
        )

    def to_digests(self) -> "DigestedRecords":
        return self

    def __len__(self) -> int:
        return len(self._stamps)

    def __iter__(self) -> Iterator[Record]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, at: int) -> Record:
        number = range(len(self))[at]
        begin = number * _ROW_BYTES
        middle = begin + DIGEST_BYTES
        return record(
            self._offsets[number],
            self._stamps[number],
            self._digests[begin:middle],
            self._digests[middle : begin + _ROW_BYTES],
            self._nulls[number],
            self._others.get(number, NO_OTHERS),
        )


def record(offset: int, stamp: int, key: bytes, value: bytes, null: int, others: Others) -> Record:
    headers, source_offset = others
    return Record(
        offset,
        stamp if stamp >= 0 else None,
        None if null & NULL_KEY else key,
        None if null & NULL_VALUE else value,
        headers,
        source_offset,
    )
