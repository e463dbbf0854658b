"""Data records of many logs as columns, for questions about all of them at once."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np

from tsoffset.records import (
    NO_TIMESTAMP,
    Content,
    Contents,
    DecodedContents,
    FetchedRange,
    Flags,
    LazyRecords,
    Numbers,
    Piece,
    Records,
    compared_content,
    walk_side_by_side,
)

T = TypeVar("T")

_LARGEST = 2**63

# Records of one timestamp are compared with each other, but no more than this.
MOST_OF_A_TIME = 32


class RecordColumns:
    """Records of several logs, by log and offset, each once.

    `log` is the caller's number of a log. Every method takes indices of records and answers for
    each of them.
    """

    def __init__(self, pieces: Sequence[tuple[int, Piece]]) -> None:
        contents: dict[int, tuple[int, Contents]] = {}
        for _, piece in pieces:
            contents.setdefault(id(piece.contents), (len(contents), piece.contents))
        self._contents = [each for _, each in contents.values()]
        sizes = [len(piece.offset) for _, piece in pieces]
        log = np.repeat(np.array([log for log, _ in pieces], np.int64), sizes)
        offset = _concatenate([piece.offset for _, piece in pieces])
        self._pack = _packing(log, offset)
        keys = self._pack(log, offset)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        fresh = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
        order, self._keys = order[fresh], keys[fresh]
        self.log, self.offset = log[order], offset[order]
        self.timestamp = _concatenate([piece.timestamp for _, piece in pieces])[order]
        held = np.array([contents[id(piece.contents)][0] for _, piece in pieces], np.int64)
        self._held_by = np.repeat(held, sizes)[order]
        self._number = _concatenate([piece.number for _, piece in pieces])[order]

    def __len__(self) -> int:
        return len(self.offset)

    def find(self, log: Numbers, offset: Numbers) -> tuple[Numbers, Flags]:
        """The index of each record, and whether it exists (if not, any index)."""
        if not len(self):
            return np.zeros(len(offset), np.int64), np.zeros(len(offset), bool)
        at = np.minimum(np.searchsorted(self._keys, self._pack(log, offset)), len(self) - 1)
        return at, (self.log[at] == log) & (self.offset[at] == offset)

    @cached_property
    def follows(self) -> Flags:
        """Whether nothing can lie between a record and the one at the index before."""
        found = np.zeros(len(self), bool)
        found[1:] = (self.log[1:] == self.log[:-1]) & (self.offset[1:] == self.offset[:-1] + 1)
        return found

    @cached_property
    def run_ends(self) -> Flags:
        """Whether the run of a record's timestamp is known without a gap up to a record with
        another timestamp."""
        if not len(self):
            return np.zeros(0, bool)
        begins = np.ones(len(self), bool)
        begins[1:] = ~self.follows[1:] | (self.timestamp[1:] != self.timestamp[:-1])
        last = np.append(np.flatnonzero(begins)[1:], len(self)) - 1
        ended: Flags = np.append(self.follows, False)[last + 1]
        found: Flags = ended[np.cumsum(begins) - 1]
        return found

    @cached_property
    def _by_time(self) -> tuple[Numbers, Numbers, Numbers]:
        """All indices, ordered by log and timestamp. For each record, where its timestamp begins in
        this order, and how many records of its log have it."""
        keys = _packing(self.log, self.timestamp)(self.log, self.timestamp)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        begins = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
        first = np.flatnonzero(begins)
        size = np.diff(np.append(first, len(order)))
        number = np.cumsum(begins) - 1
        first_of, size_of = np.empty_like(order), np.empty_like(order)
        first_of[order], size_of[order] = first[number], size[number]
        return order, first_of, size_of

    def contents(self, indices: Numbers, match: frozenset[str]) -> list[Content | None]:
        """The compared parts of each record's content, by `match`; None for a malformed record."""
        contents = self._of_each(indices, lambda held, numbers: held.digests(numbers))
        return [content and compared_content(content, match) for content in contents]

    def comparable_bytes(self, indices: Numbers) -> list[bytes | None]:
        """See `Contents.encoded`."""
        return self._of_each(indices, lambda held, numbers: held.comparable_bytes(numbers))

    def _of_each(
        self, indices: Numbers, look: Callable[[Contents, Sequence[int]], Sequence[T | None]]
    ) -> list[T | None]:
        found: list[T | None] = [None] * len(indices)
        held_by, number = self._held_by[indices], self._number[indices]
        order = np.argsort(held_by, kind="stable")
        held_by, number, rows = held_by[order], number[order].tolist(), order.tolist()
        ends = [*(np.flatnonzero(np.diff(held_by)) + 1).tolist(), len(order)]
        begin = 0
        for end in ends if len(order) else ():
            contents = look(self._contents[held_by[begin]], number[begin:end])
            for row, content in zip(rows[begin:end], contents, strict=True):
                found[row] = content
            begin = end
        return found

    def is_unique(self, indices: Numbers, match: frozenset[str]) -> Flags:
        """Whether no other record of the log is equal in timestamp and in the parts that `match`
        names. False if too many records have the timestamp to compare them."""
        order, first_of, size_of = self._by_time
        found: Flags = size_of[indices] == 1
        for number in np.flatnonzero(~found & (size_of[indices] <= MOST_OF_A_TIME)):
            index = indices[number]
            sharing = order[first_of[index] : first_of[index] + size_of[index]]
            contents = self.contents(sharing, match)
            (own,) = self.contents(indices[number : number + 1], match)
            found[number] = None not in contents and contents.count(own) == 1
        return found


def _packing(log: Numbers, number: Numbers) -> Callable[[Numbers, Numbers], Numbers]:
    """A function that packs a log and one of these numbers into a single number, in the same order.
    For other logs and numbers its result is arbitrary."""
    lowest, highest = int(number.min(initial=0)), int(number.max(initial=0))
    width = highest - lowest + 1
    if (int(log.max(initial=0)) + 1) * width < _LARGEST:
        return lambda log, number: log * width + (np.clip(number, lowest, highest) - lowest)
    # They would not fit; their ranks do.
    ranked = np.unique(number)
    return lambda log, number: log * len(ranked) + np.searchsorted(ranked[:-1], number)


def _concatenate(parts: Sequence[Numbers]) -> Numbers:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def columns_of(fetched_ranges: Iterable[tuple[int, FetchedRange]]) -> RecordColumns:
    """The records of pieces of logs, each with the number of its log."""
    given = list(fetched_ranges)
    walk_side_by_side(fetched for _, fetched in given)
    pieces: list[tuple[int, Piece]] = []
    for log, fetched in given:
        records = fetched.records
        if isinstance(records, LazyRecords):
            pieces += ((log, piece) for piece in records.pieces())
        elif records:
            pieces.append((log, _piece(records)))
    return RecordColumns(pieces)


def _piece(records: Records) -> Piece:
    stamps = [NO_TIMESTAMP if one.timestamp_ms is None else one.timestamp_ms for one in records]
    return Piece(
        np.array([record.offset for record in records]),
        np.array(stamps),
        np.arange(len(records)),
        DecodedContents(records),
    )
