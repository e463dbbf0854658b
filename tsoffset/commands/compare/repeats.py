"""Whether what a checkpoint leaves out comes again behind it: a replicator that restarts repeats.

Of a target `1..60, 50..100` a group at 55 may resume at the first copy of 55 or at the second:
nothing but repeats lies between. So a checkpoint past an exact translation is no accusation
yet.
"""

import sys
from bisect import bisect_left
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from tsoffset.cluster import Cluster
from tsoffset.model import Failed, Isolation, ReadFrom, TopicPartition
from tsoffset.records import Record

_BYTES_PER_READ = 250_000
# Limit on reads for one span: between the two offsets, after the later one, and on the source.
BYTES_PER_SPAN = 2_000_000
# Of a log so many pieces are kept, for the next span that needs them.
_PIECES_KEPT = 32

_Content = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """What lies on the target between a translation of `committed` and a checkpoint: offsets
    from `start` to before `end`. `unread` is a record pair in it that the group has yet to read, as
    (source offset, target offset), and `log_end` the target's log end; None where not known."""

    source: TopicPartition
    committed: int
    target: TopicPartition
    start: int
    end: int
    unread: tuple[int, int] | None = None
    log_end: int | None = None

    @property
    def last(self) -> tuple[int, int] | None:
        """The target's last offset, and the source offset that is as far from the unread record.

        Where these two hold equal records, nothing from the unread one on was repeated, and there
        is no later record on the target: what lies before `end` does not come again.
        """
        if self.unread is None or self.log_end is None:
            return None
        original, copy = self.unread
        return original + self.log_end - 1 - copy, self.log_end - 1


@dataclass(frozen=True, slots=True)
class RepeatCheck:
    """Whether every record of a span that the group has yet to read lies behind it, too; None
    where that is not known, and `why`."""

    comes_again: bool | None
    why: str | None = None


def come_again(
    spans: Iterable[Span],
    source: Cluster,
    target: Cluster,
    *,
    isolation: Isolation,
    match: Collection[str],
) -> Mapping[Span, RepeatCheck]:
    """What was found of each span, looked at through BYTES_PER_SPAN each time. Spans of one
    partition share what was read. Raises ClusterUnreachable."""
    by_partition: defaultdict[tuple[TopicPartition, TopicPartition], set[Span]]
    by_partition = defaultdict(set)
    for span in spans:
        by_partition[span.source, span.target].add(span)
    found = {}
    for (here, there), of_partition in by_partition.items():
        originals = _Log(source, here, isolation, match)
        copies = _Log(target, there, Isolation.READ_COMMITTED, match)
        level: dict[tuple[int, int], bool] = {}
        for span in sorted(of_partition, key=lambda one: (one.start, one.end)):
            try:
                if (last := span.last) is not None and last not in level:
                    level[last] = _are_equal(last, originals, copies)
                repeated = last is None or not level[last]
                found[span] = RepeatCheck(repeated and _comes_again(span, originals, copies))
            except _NotKnown as error:
                found[span] = RepeatCheck(None, str(error))
    return found


def _are_equal(last: tuple[int, int], originals: "_Log", copies: "_Log") -> bool:
    """Whether a source offset and a target offset hold equal records; False where one of them
    cannot be read."""
    source_offset, target_offset = last
    with suppress(_NotKnown):
        copy = copies.content_at(target_offset)
        return copy is not None and copy == originals.content_at(source_offset)
    return False


def _comes_again(span: Span, originals: "_Log", copies: "_Log") -> bool:
    left_out: list[_Content] = []
    for piece in copies.read(
        span.start, "the records between tsoffset's offset and the compared one", span.end
    ):
        left_out += piece.contents
    # The span begins with the next record to read, and the replicator walks in order: so as
    # many source records from the commit on hold all of them that are not repeats themselves.
    unread: list[_Content] = []
    if left_out:
        for piece in originals.read(span.committed, "the records from the committed offset on"):
            unread += piece.contents
            if len(unread) >= len(left_out):
                break
    wanted = set(left_out) & set(unread[: len(left_out)])
    if wanted:
        for piece in copies.read(span.end, "the records after the compared offset"):
            # Of the size of what is wanted, whatever lies there.
            wanted = wanted - piece.distinct
            if not wanted:
                break
    return not wanted


class _NotKnown(Exception):
    """A bound was met, or a read failed; the text says which."""


@dataclass(frozen=True)
class _Piece:
    """What was read of a log at `start`, up to before `end`: what tells its records apart, with
    their offsets."""

    start: int
    end: int
    offsets: Sequence[int]
    contents: Sequence[_Content]
    bytes_read: int

    @cached_property
    def distinct(self) -> frozenset[_Content]:
        """The contents without their order."""
        return frozenset(self.contents)

    def within(self, start: int, end: int) -> "_Piece":
        """The records with start <= offset < end; itself where these are all."""
        first, last = bisect_left(self.offsets, start), bisect_left(self.offsets, end)
        if last - first == len(self.offsets):
            return self
        return replace(self, offsets=self.offsets[first:last], contents=self.contents[first:last])


class _Log:
    """A partition's log, read in pieces of which the last ones are kept."""

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
        self._kept: OrderedDict[int, _Piece] = OrderedDict()
        self._end: int | None = None

    def read(self, position: int, what: str, end: int = sys.maxsize) -> Iterator[_Piece]:
        """The records from `position` to before `end`, or to the log's own, piece by piece.
        Raises _NotKnown where more than BYTES_PER_SPAN would have to be read, or something cannot
        be."""
        left = BYTES_PER_SPAN
        while position < end and position != self._end:
            if left <= 0:
                raise _NotKnown(
                    f"{what} on {self._cluster.alias} are more than the"
                    f" {BYTES_PER_SPAN // 1_000_000} MB that were read"
                )
            piece = self._piece(position)
            if piece.end <= position:
                # What is written from now on is no concern of this comparison.
                self._end = position
                return
            yield piece.within(position, end)
            left -= max(1, piece.bytes_read)
            position = piece.end

    def content_at(self, offset: int) -> _Content | None:
        """The content of the record at an offset; None where there is none. Raises _NotKnown where
        it cannot be read."""
        piece = self._piece(offset)
        at = bisect_left(piece.offsets, offset)
        there = at < len(piece.offsets) and piece.offsets[at] == offset
        return piece.contents[at] if there else None

    def _piece(self, position: int) -> _Piece:
        for start, piece in self._kept.items():
            if start <= position < piece.end:
                self._kept.move_to_end(start)
                return piece
        request = ReadFrom(self._partition, position, _BYTES_PER_READ)
        stretch = self._cluster.read([request], self._isolation)[request]
        if isinstance(stretch, Failed):
            raise _NotKnown(stretch.message)
        contents = [self._content(one) for one in stretch.records]
        piece = _Piece(position, stretch.end, stretch.offsets, contents, stretch.bytes_read)
        self._kept[position] = piece
        if len(self._kept) > _PIECES_KEPT:
            self._kept.popitem(last=False)
        return piece

    def _content(self, record: Record) -> _Content:
        return (
            record.timestamp_ms,
            record.key if "key" in self._match else None,
            record.value if "value" in self._match else None,
        )
