"""Checks whether the replicator copied the records before a checkpoint again after it.

A replicator that restarts copies records again. On a target `1..60, 50..100` a group at 55 may
resume at the first copy of 55 or at the second: only repeated records lie between. So a checkpoint
past an exact translation is not unsafe by that alone.
"""

import sys
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from tsoffset.cluster import Cluster
from tsoffset.model import Failed, Isolation, ReadFrom, TopicPartition

_BYTES_PER_READ = 250_000
# The limit for each of a span's three reads: between its offsets, after it, and on the source.
BYTES_PER_SPAN = 2_000_000
# The pieces of a log that are kept for other spans.
_PIECES_KEPT = 32

_Content = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """The target offsets from a translation of `committed` (`start`) to a checkpoint (`end`,
    exclusive). `may_be_originals`: the topics' names do not tell which side is the mirror.

    `last` compares the ends of the logs: it has the target's last offset, and before it the source
    offset that lies as many offsets after an unread record pair of the span; None without such a
    pair. If both offsets have equal records, the replicator has copied nothing twice from that pair
    on (unless a filter dropped exactly as many records). So no second copy of a record of the span
    lies after `end`.
    """

    source: TopicPartition
    committed: int
    target: TopicPartition
    start: int
    end: int
    last: tuple[int, int] | None = None
    may_be_originals: bool = False


class _Unknown(Exception):
    """A limit was reached, or a read failed; the text says which."""


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
        for span in members:
            try:
                equal_ends = _has_equal_ends(span, originals, copies)
                yield span, not equal_ends and _is_repeated(span, originals, copies)
            except _Unknown as error:
                yield span, str(error)


def _has_equal_ends(span: Span, originals: "_Log", copies: "_Log") -> bool:
    """Whether the span's last offsets have equal records; False if one cannot be read."""
    if span.last is None:
        return False
    source_offset, target_offset = span.last
    with suppress(_Unknown):
        copy = copies.content_at(target_offset)
        return copy is not None and copy == originals.content_at(source_offset)
    return False


def _is_repeated(span: Span, originals: "_Log", copies: "_Log") -> bool:
    what = "the records between tsoffset's offset and the compared one"
    skipped, more = copies.read(what, span.start, span.end)
    if more is not None:
        raise _Unknown(more)
    after, more_after = copies.read("the records after the compared offset", span.end)
    unread, more = originals.read("the records from the committed offset on", span.committed)
    # The span begins with the next record to read, and the replicator copies in order. So if a
    # record has a copy only after the span, all later records have copies after the span, too. A
    # record without any copy shows nothing, because a filter may have dropped it.
    for record in unread:
        if record in skipped and record not in after:
            if more_after is not None:
                raise _Unknown(more_after)
            return False
        if record in after and record not in skipped:
            break
    else:
        if more is not None:
            raise _Unknown(more)
    if span.may_be_originals and not skipped.keys() <= after.keys():
        raise _Unknown("the topics' names do not tell which one is the mirror")
    return True


@dataclass(frozen=True, slots=True)
class _Piece:
    """The contents of a log's records from `start` to before `end`, by offset."""

    start: int
    end: int
    contents: Mapping[int, _Content]
    bytes_read: int


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
        self._end = sys.maxsize

    def read(
        self, what: str, position: int, end: int = sys.maxsize
    ) -> tuple[dict[_Content, None], str | None]:
        """The distinct records from `position` to before `end`, or to the log's end, in order; and
        a sentence if there are more than BYTES_PER_SPAN. Raises _Unknown if a read fails."""
        found: dict[_Content, None] = {}
        left = BYTES_PER_SPAN
        while position < min(end, self._end):
            if left <= 0:
                size = f"{BYTES_PER_SPAN // 1_000_000} MB"
                where = f"{what} on {self._cluster.alias}"
                return found, f"{where} are more than the {size} that were read"
            piece = self._piece(position)
            if piece.end <= position:
                # Records that are written later are not part of this comparison.
                self._end = position
                break
            found |= {
                content: None
                for offset, content in piece.contents.items()
                if position <= offset < end
            }
            left -= max(1, piece.bytes_read)
            position = piece.end
        return found, None

    def content_at(self, offset: int) -> _Content | None:
        """The content of the record at an offset; None without a record. Raises _Unknown if the
        read fails."""
        return self._piece(offset).contents.get(offset)

    def _piece(self, position: int) -> _Piece:
        for piece in self._kept:
            if piece.start <= position < piece.end:
                return piece
        request = ReadFrom(self._partition, position, _BYTES_PER_READ)
        fetched = self._cluster.read([request], self._isolation)[request]
        if isinstance(fetched, Failed):
            raise _Unknown(fetched.message)
        key, value = "key" in self._match, "value" in self._match
        contents: dict[int, _Content] = {
            one.offset: (one.timestamp_ms, one.key if key else None, one.value if value else None)
            for one in fetched.records
        }
        piece = _Piece(position, fetched.end, contents, fetched.bytes_read)
        self._kept.append(piece)
        return piece
