"""The content of a log: messages in record batches."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tsoffset.model import Isolation, TimestampType
from tsoffset.records import FetchedRange, OffsetHeader, Record, content_digest, header_digests

_BATCH_HEADER_BYTES = 61
_RECORD_OVERHEAD_BYTES = 8
NO_TIMESTAMP = -1


@dataclass(frozen=True, slots=True)
class Message:
    """A record as a producer writes it; `timestamp_ms` is None if it has none."""

    timestamp_ms: int | None
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def size(self) -> int:
        """Its approximate bytes in a batch."""
        headers = sum(2 + len(name) + len(value or b"") for name, value in self.headers)
        return _RECORD_OVERHEAD_BYTES + len(self.key or b"") + len(self.value or b"") + headers


@dataclass(slots=True)
class MemoryBatch:
    """A record batch. Its offsets stay when compaction removes records."""

    base_offset: int
    last_offset: int
    messages: tuple[tuple[int, Message], ...]
    timestamp_type: TimestampType
    appended_ms: int
    control: bool = False
    producer: int | None = None
    aborted: bool = False
    offset_header: OffsetHeader | None = None
    size: int = field(init=False)
    max_timestamp_ms: int = field(init=False)
    _fetched_ranges: dict[Isolation, FetchedRange] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.size = _BATCH_HEADER_BYTES + sum(message.size for _, message in self.messages)
        stamps = (timestamp for _, timestamp in self.timestamps())
        self.max_timestamp_ms = max(stamps, default=NO_TIMESTAMP)

    def timestamps(self) -> Iterator[tuple[int, int]]:
        """Offset and timestamp of each record, control records included, as in a broker's index."""
        if self.control:
            yield self.last_offset, self.appended_ms
            return
        rewritten = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        for offset, message in self.messages:
            own = NO_TIMESTAMP if message.timestamp_ms is None else message.timestamp_ms
            yield offset, self.appended_ms if rewritten else own

    def fetched_range(self, isolation: Isolation) -> FetchedRange:
        """The batch as a reader with this isolation sees it."""
        known = self._fetched_ranges.get(isolation)
        if known is None:
            hidden = self.control or (self.aborted and isolation is Isolation.READ_COMMITTED)
            known = FetchedRange(
                self.base_offset,
                self.last_offset + 1,
                () if hidden else self._records(),
                TimestampType.CREATE_TIME if hidden else self.timestamp_type,
                self.size,
                transactional=self.control or self.producer is not None,
            )
            self._fetched_ranges[isolation] = known
        return known

    def _records(self) -> tuple[Record, ...]:
        return tuple(
            Record(
                offset,
                timestamp if timestamp >= 0 else None,
                content_digest(message.key),
                content_digest(message.value),
                header_digests(message.headers),
                None if self.offset_header is None else self.offset_header.of(message.headers),
            )
            for (offset, message), (_, timestamp) in zip(
                self.messages, self.timestamps(), strict=True
            )
        )
