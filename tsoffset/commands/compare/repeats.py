"""Checks whether the replicator copied the records before a checkpoint again after it.

A replicator that restarts copies records again. On a target `1..60, 50..100` a group at 55 may
resume at the first copy of 55 or at the second: only repeated records lie between. So a checkpoint
past an exact translation is not unsafe by that alone.
"""

import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby, takewhile

from tsoffset.cluster import Cluster
from tsoffset.model import Failed, Isolation, ReadFrom, TopicPartition

_BYTES_PER_READ = 250_000
# The limit of each read for a span: between its offsets, after it, and on the source.
BYTES_PER_SPAN = 2_000_000
# The pieces of a log that are kept for other spans.
_PIECES_KEPT = 32

_Content = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """The target offsets from a translation of `committed` (`start`) to a checkpoint (`end`,
    exclusive). `unread` is a record pair among them that the group has not read, as (source offset,
    target offset), and `log_end` the target's log end; None if unknown. With `may_be_originals`,
    names do not tell which side is the mirror."""

    source: TopicPartition
    committed: int
    target: TopicPartition
    start: int
    end: int
    unread: tuple[int, int] | None = None
    log_end: int | None = None
    may_be_originals: bool = False

    @property
    def last(self) -> tuple[int, int] | None:
        """The target's last offset, and the source offset at the same distance from the unread
        record. If both have equal records, nothing from the unread record on was repeated (unless a
        filter dropped exactly as many): no copy of a record before `end` follows."""
        if self.unread is None or self.log_end is None:
            return None
        original, copy = self.unread
        return original + self.log_end - 1 - copy, self.log_end - 1


def check_repeats(
    spans: Iterable[Span],
    source: Cluster,
    target: Cluster,
    isolation: Isolation,
    match: Collection[str],
) -> Iterator[tuple[Span, bool | str]]:
    """For each span, whether every unread record of it was copied again after it, or why that is
    not known. Reads at most BYTES_PER_SPAN in each read; spans of one partition share what was
    read. Raises ClusterUnreachable."""
    ordered = sorted(spans, key=lambda one: (one.source, one.target, one.start, one.end))
    for partitions, members in groupby(ordered, key=lambda one: (one.source, one.target)):
        originals = _Log(source, partitions[0], isolation, match)
        copies = _Log(target, partitions[1], Isolation.READ_COMMITTED, match)
        equal_ends: dict[tuple[int, int], bool] = {}
        for span in members:
            try:
                if (last := span.last) is not None and last not in equal_ends:
                    equal_ends[last] = _are_equal(last, originals, copies)
                repeated = last is None or not equal_ends[last]
                yield span, repeated and _is_repeated(span, originals, copies)
            except _Unknown as error:
                yield span, str(error)


def _are_equal(last: tuple[int, int], originals: "_Log", copies: "_Log") -> bool:
    """Whether a source and a target offset have equal records; False if one cannot be read."""
    source_offset, target_offset = last
    with suppress(_Unknown):
        copy = copies.content_at(target_offset)
        return copy is not None and copy == originals.content_at(source_offset)
    return False


def _is_repeated(span: Span, originals: "_Log", copies: "_Log") -> bool:
    skipped: set[_Content] = set()
    for piece in copies.read(
        span.start, "the records between tsoffset's offset and the compared one", span.end
    ):
        skipped |= piece.distinct
    after = partial(copies.read, span.end, "the records after the compared offset")
    first = next(after(), None)
    behind = frozenset[_Content]() if first is None else first.distinct
    # The span begins with the next record to read, and the replicator copies in order: once a
    # record was copied after the span only, so were all that follow it. A record without any copy
    # shows nothing: a filter may have left it out.
    for piece in originals.read(span.committed, "the records from the committed offset on"):
        unread = list(takewhile(lambda one: one in skipped or one not in behind, piece.contents))
        if not _are_in(skipped.intersection(unread), after()):
            return False
        if len(unread) < len(piece.contents):
            break
    if span.may_be_originals and not _are_in(skipped, after()):
        raise _Unknown("the topics' names do not tell which one is the mirror")
    return True


def _are_in(wanted: set[_Content], pieces: Iterable["_Piece"]) -> bool:
    for piece in pieces:
        # Takes time only for the wanted records, however large the piece is.
        wanted = wanted - piece.distinct
        if not wanted:
            break
    return not wanted


class _Unknown(Exception):
    """A limit was reached, or a read failed; the text says which."""


@dataclass(frozen=True)
class _Piece:
    """The records of a log from `start` to before `end`: their offsets and compared contents."""

    start: int
    end: int
    offsets: Sequence[int]
    contents: Sequence[_Content]
    bytes_read: int

    @cached_property
    def distinct(self) -> frozenset[_Content]:
        return frozenset(self.contents)

    def within(self, start: int, end: int) -> "_Piece":
        first, last = bisect_left(self.offsets, start), bisect_left(self.offsets, end)
        if last - first == len(self.offsets):
            return self
        return replace(self, offsets=self.offsets[first:last], contents=self.contents[first:last])


class _Log:
    """A partition's log, read in pieces; the last pieces are kept."""

    def __init__(
        self,
        cluster: Cluster,
        partition: TopicPartition,
        isolation: Isolation,
        match: Collection[str],
    ) -> None:
        self._cluster = cluster
        self._partition = partition
        self._isolation = isolation
        self._match = match
        self._kept: deque[_Piece] = deque(maxlen=_PIECES_KEPT)
        self._end: int | None = None

    def read(self, position: int, what: str, end: int = sys.maxsize) -> Iterator[_Piece]:
        """Read from `position` to before `end`, or to the log's end, piece by piece. Raises
        _Unknown after BYTES_PER_SPAN, and if a read fails."""
        left = BYTES_PER_SPAN
        while position < end and position != self._end:
            if left <= 0:
                raise _Unknown(
                    f"{what} on {self._cluster.alias} are more than the"
                    f" {BYTES_PER_SPAN // 1_000_000} MB that were read"
                )
            piece = self._piece(position)
            if piece.end <= position:
                # Records that are written later are not part of this comparison.
                self._end = position
                return
            yield piece.within(position, end)
            left -= max(1, piece.bytes_read)
            position = piece.end

    def content_at(self, offset: int) -> _Content | None:
        """The content of the record at an offset; None without a record. Raises _Unknown if the
        read fails."""
        piece = self._piece(offset)
        at = bisect_left(piece.offsets, offset)
        exists = at < len(piece.offsets) and piece.offsets[at] == offset
        return piece.contents[at] if exists else None

    def _piece(self, position: int) -> _Piece:
        for piece in self._kept:
            if piece.start <= position < piece.end:
                return piece
        request = ReadFrom(self._partition, position, _BYTES_PER_READ)
        stretch = self._cluster.read([request], self._isolation)[request]
        if isinstance(stretch, Failed):
            raise _Unknown(stretch.message)
        key, value = "key" in self._match, "value" in self._match
        contents = [
            (one.timestamp_ms, one.key if key else None, one.value if value else None)
            for one in stretch.records
        ]
        piece = _Piece(position, stretch.end, stretch.offsets, contents, stretch.bytes_read)
        self._kept.append(piece)
        return piece
