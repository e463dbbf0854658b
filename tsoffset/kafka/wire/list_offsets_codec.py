"""ListOffsets, versions 4 to 10, encoded and decoded by hand.

Every cycle looks up the ends of each log, and some timestamps in it; the library's general encoder
and decoder, and its handling of single requests, take several times as long as the broker.
Version 4 added the leader epoch, 6 the flexible encoding, 7 (KIP-734) the lookup of the largest
timestamp, 10 (KIP-1075) a timeout for tiered storage. `tsoffset.kafka.wire.frame_stream` sends it.
"""

from collections.abc import Mapping
from struct import Struct
from typing import NamedTuple

from kafka.errors import KafkaProtocolError
from kafka.protocol.consumer import ListOffsetsRequest

from tsoffset.kafka.wire.flexible_encoding import (
    NO_TAGS,
    behind_tags,
    check_end,
    encoded_count,
    encoded_text,
    make_frame,
    read_count,
    read_rows,
    read_text,
    short_text,
)
from tsoffset.kafka.wire.frame_stream import Codec

LOWEST, HIGHEST = 4, 10
YOUNGEST_SINCE = 7
API_KEY: int = ListOffsetsRequest.API_KEY

_FLEXIBLE_SINCE = 6
_TIMEOUT_SINCE = 10
_NO_REPLICA = -1

# A request: client id, replica and isolation, the topics, and the timeout. Of a partition: index,
# leader epoch, time.
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_BODY = Struct(">ib")
_ASKED = Struct(">iiq")
_ASKED_TAGGED = Struct(">iiqx")
# A response: correlation id, throttle time, the topics. For each partition: index, error,
# timestamp, offset, leader epoch. In flexible versions, the number of tagged fields follows each.
_FOUND = Struct(">ihqqi")
_FOUND_TAGGED = Struct(">ihqqib")

Found = tuple[int, int, int, int]
"""Of one partition: index, error, timestamp and offset, as they came."""


class ListOffsetsAnswer(NamedTuple):
    """A broker's answer: the results for each topic, in the order of the answer."""

    throttle_time_ms: int
    topics: tuple[tuple[str, tuple[Found, ...]], ...]


class Lookup(NamedTuple):
    """A time to look up in a partition; `number` is the caller's."""

    leader_epoch: int
    timestamp_ms: int
    number: int = 0


Lookups = Mapping[str, Mapping[int, Lookup]]
"""By topic and partition."""


class ListOffsetsCodec(Codec[Lookups, ListOffsetsAnswer]):
    def __init__(self, client_id: str, isolation_level: int, timeout_ms: int, version: int) -> None:
        self._version = version
        self._flexible = version >= _FLEXIBLE_SINCE
        tags = NO_TAGS if self._flexible else b""
        body = _BODY.pack(_NO_REPLICA, isolation_level)
        self._begin = b"".join((short_text(client_id), tags, body))
        self._tags = tags
        self._end = (_INT32.pack(timeout_ms) if version >= _TIMEOUT_SINCE else b"") + tags
        self._names: dict[str, bytes] = {}

    def encode(self, topics: Lookups, correlation_id: int) -> bytes:
        pack = (_ASKED_TAGGED if self._flexible else _ASKED).pack
        parts = [self._begin, self._count(len(topics))]
        for topic, partitions in topics.items():
            packed = [pack(index, epoch, ms) for index, (epoch, ms, _) in partitions.items()]
            parts += (self._name(topic), self._count(len(packed)), *packed, self._tags)
        parts.append(self._end)
        return make_frame(API_KEY, self._version, correlation_id, parts)

    def _name(self, topic: str) -> bytes:
        known = self._names.get(topic)
        if known is None:
            known = self._names[topic] = (
                encoded_text(topic) if self._flexible else short_text(topic)
            )
        return known

    def _count(self, count: int) -> bytes:
        return encoded_count(count) if self._flexible else _INT32.pack(count)

    def decode(self, frame: memoryview) -> ListOffsetsAnswer:
        position = self._behind_tags(frame, 4)
        (throttle_time_ms,) = _INT32.unpack_from(frame, position)
        count, position = self._read_count(frame, position + _INT32.size)
        topics = []
        for _ in range(count):
            name, position = self._read_name(frame, position)
            found, position = self._read_found(frame, position)
            topics.append((name, found))
            position = self._behind_tags(frame, position)
        self._behind_tags(frame, position)
        return ListOffsetsAnswer(throttle_time_ms, tuple(topics))

    def _read_count(self, frame: memoryview, position: int) -> tuple[int, int]:
        if self._flexible:
            return read_count(frame, position)
        (count,) = _INT32.unpack_from(frame, position)
        return count, position + _INT32.size

    def _read_name(self, frame: memoryview, position: int) -> tuple[str, int]:
        if self._flexible:
            return read_text(frame, position)
        (size,) = _INT16.unpack_from(frame, position)
        position += _INT16.size
        if size < 0:
            raise KafkaProtocolError("a ListOffsets answer with a topic that has no name")
        check_end(frame, position + size)
        return str(frame[position : position + size], "utf-8"), position + size

    def _read_found(self, frame: memoryview, position: int) -> tuple[tuple[Found, ...], int]:
        if self._flexible:
            rows, end = read_rows(frame, position, _FOUND_TAGGED)
        else:
            count, position = self._read_count(frame, position)
            end = position + max(0, count) * _FOUND.size
            check_end(frame, end)
            rows = tuple(_FOUND.iter_unpack(frame[position:end]))
        return tuple(row[:4] for row in rows), end

    def _behind_tags(self, frame: memoryview, position: int) -> int:
        return behind_tags(frame, position) if self._flexible else position
