"""Whether what a checkpoint leaves out comes again behind it: a replicator that restarts repeats.

Of a target `1..60, 50..100` a group at 55 may resume at the first copy of 55 or at the second:
nothing but repeats lies between. So a checkpoint past an exact translation is no accusation
yet.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tsoffset.cluster import Cluster
from tsoffset.model import Failed, Isolation, ReadFrom, TopicPartition
from tsoffset.records import Record

_MOST_SPANS = 100
_BYTES_PER_READ = 250_000
_BYTES_PER_SPAN = 2_000_000

_Content = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """What lies on the target between a translation of `committed` and a checkpoint: offsets
    from `start` to before `end`."""

    source: TopicPartition
    committed: int
    target: TopicPartition
    start: int
    end: int


def come_again(
    spans: Iterable[Span],
    source: Cluster,
    target: Cluster,
    *,
    isolation: Isolation,
    match: Collection[str],
) -> frozenset[Span]:
    """The spans of which every record that the group has yet to read lies behind them, too.

    Looked at are the first _MOST_SPANS, each through a few megabytes: what is not proven
    within these is left out. Raises ClusterUnreachable.
    """
    looked_at = list(dict.fromkeys(spans))[:_MOST_SPANS]
    return frozenset(
        span for span in looked_at if _comes_again(span, source, target, isolation, match)
    )


def _comes_again(
    span: Span, source: Cluster, target: Cluster, isolation: Isolation, match: Collection[str]
) -> bool:
    theirs = Isolation.READ_COMMITTED
    between = _Reading(target, span.target, span.start, theirs, match)
    left_out: list[_Content] = []
    while between.position < span.end:
        records = between.next()
        if records is None:
            return False
        left_out += [content for offset, content in records if offset < span.end]
    # The span begins with the next record to read, and the replicator walks in order: so as
    # many source records from the commit on hold all of them that are not repeats themselves.
    originals = _Reading(source, span.source, span.committed, isolation, match)
    unread: list[_Content] = []
    while len(unread) < len(left_out) and not originals.at_end:
        records = originals.next()
        if records is None:
            return False
        unread += [content for _, content in records]
    wanted = set(left_out) & set(unread[: len(left_out)])
    behind = _Reading(target, span.target, span.end, theirs, match)
    while wanted and not behind.at_end:
        records = behind.next()
        if records is None:
            return False
        wanted -= {content for _, content in records}
    return not wanted


class _Reading:
    """A log read on from an offset, up to _BYTES_PER_SPAN."""

    def __init__(
        self,
        cluster: Cluster,
        partition: TopicPartition,
        start: int,
        isolation: Isolation,
        match: Collection[str],
    ) -> None:
        self.position = start
        self.at_end = False
        self._cluster = cluster
        self._partition = partition
        self._isolation = isolation
        self._match = match
        self._left = _BYTES_PER_SPAN

    def next(self) -> list[tuple[int, _Content]] | None:
        """The next records with what tells them apart; None where no more may be read, or it
        failed. At the log's end there are none."""
        if self._left <= 0:
            return None
        request = ReadFrom(self._partition, self.position, _BYTES_PER_READ)
        stretch = self._cluster.read([request], self._isolation)[request]
        if isinstance(stretch, Failed):
            return None
        self.at_end = stretch.end <= self.position
        records = [
            (record.offset, self._content(record))
            for record in stretch.records
            if record.offset >= self.position
        ]
        self._left -= max(1, stretch.bytes_read)
        self.position = max(self.position, stretch.end)
        return records

    def _content(self, record: Record) -> _Content:
        return (
            record.timestamp_ms,
            record.key if "key" in self._match else None,
            record.value if "value" in self._match else None,
        )
