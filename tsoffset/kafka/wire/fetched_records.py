"""The records of all batches of one read."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, chain, pairwise
from typing import Any, Self

from tsoffset.kafka.wire.batch_records import BatchRecords
from tsoffset.kafka.wire.digested_records import DigestedRecords
from tsoffset.kafka.wire.lockstep import PAYS_FROM, walk
from tsoffset.records import LazyRecords, Piece, Record, UnreadableRecords


class FetchedRecords(LazyRecords):
    """The records of several batches, one after the other.

    It is equal to a tuple of the same records, and becomes one when it is pickled: only digests
    leave the process. When all records have been decoded, their bytes are dropped.
    """

    __slots__ = ("_ends", "_offsets", "_parts")

    def __init__(self, parts: Sequence[BatchRecords | DigestedRecords]) -> None:
        self._parts = parts
        self._offsets: Sequence[int] | None = None
        # One batch is by far the most frequent case, and needs no search for the right one.
        self._ends = () if len(parts) == 1 else tuple(accumulate(map(len, parts)))

    @property
    def offsets(self) -> Sequence[int]:
        if self._offsets is None:
            self._offsets = _concatenate([part.offsets for part in self._parts])
        return self._offsets

    @property
    def timestamps(self) -> Sequence[int | None]:
        return list(chain.from_iterable(part.timestamps for part in self._parts))

    @classmethod
    def walk(cls, many: Sequence[Self]) -> None:
        batches = [
            part
            for records in many
            for part in records._parts
            if isinstance(part, BatchRecords) and part.walked is None
        ]
        if len(batches) >= PAYS_FROM:
            for part, walked in zip(batches, walk([part.raw for part in batches]), strict=True):
                part.walked = walked

    def pieces(self) -> list[Piece]:
        found = []
        for part in self._parts:
            with suppress(UnreadableRecords):
                found.append(part.piece())
        return found

    def __len__(self) -> int:
        if self._ends:
            return self._ends[-1]
        return len(self._parts[0]) if self._parts else 0

    def __iter__(self) -> Iterator[Record]:
        self._parts = parts = [part.to_digests() for part in self._parts]
        return chain.from_iterable(parts)

    def __getitem__(self, at: int) -> Record:
        if len(self._parts) == 1:
            return self._parts[0][at]
        number = range(len(self))[at]
        part = bisect_right(self._ends, number)
        return self._parts[part][number - (self._ends[part - 1] if part else 0)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | FetchedRecords):
            return NotImplemented
        return len(self) == len(other) and tuple(self) == tuple(other)

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


def _concatenate(parts: Sequence[Sequence[int]]) -> Sequence[int]:
    """Offsets of consecutive batches."""
    parts = [part for part in parts if part]
    if not parts:
        return ()
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, range) for part in parts) and all(
        one[-1] + 1 == other[0] for one, other in pairwise(parts)
    ):
        return range(parts[0][0], parts[-1][-1] + 1)
    return array("q", chain.from_iterable(parts))
