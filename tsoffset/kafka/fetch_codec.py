"""Fetch of one partition, version 11, encoded and decoded by hand.

Reading is nearly all that a cycle does, one small request for each place it looks at, and
the library's general encoder and decoder take most of that time. Its connections accept
any request with the few members that are defined here. Version 11 (KIP-392; brokers since
2.3) is the last before the flexible encoding and before topic ids, and has all we need.
"""

from dataclasses import dataclass
from struct import Struct
from typing import Any

from kafka.errors import KafkaProtocolError
from kafka.protocol.consumer import FetchRequest

VERSION = 11
API_KEY: int = FetchRequest.API_KEY

# A request's frame: size, then the header (key, version, correlation id, client id), then
# replica, max wait, min bytes, max bytes, isolation, session id, session epoch; one topic
# with one partition (index, leader epoch, offset, log start, max bytes); no forgotten
# topics, no rack.
_HEAD = Struct(">ihhih")
_BODY = Struct(">iiiibiiih")
_PARTITION = Struct(">iiiqqiih")

_INT32 = Struct(">i")
_RESPONSE = Struct(">ihii")
_STRING = Struct(">h")
_PARTITION_ANSWER = Struct(">iihqqqi")
_ABORTED = Struct(">qq")
_RECORDS = Struct(">ii")

_NO_REPLICA = -1
_MIN_BYTES = 1
_MAX_BYTES = 0x7FFFFFFF
_NO_SESSION = 0
_FINAL_EPOCH = -1
_LOG_START_UNKNOWN = -1
_NOTHING = memoryview(b"")


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """What a broker answers for the one partition.

    `aborted` are (producer id, first offset) of the aborted transactions that overlap with
    what was read; `records` the batches as they lie in the log. `present` is false where
    the broker left the partition out, as it does to throttle.
    """

    throttle_time_ms: int
    error_code: int
    present: bool = False
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start: int = -1
    aborted: tuple[tuple[int, int], ...] = ()
    records: memoryview = _NOTHING

    @classmethod
    def parse_header(cls, frame: Any) -> "_ResponseHeader":
        """The correlation id, as the library's connection asks for it."""
        return _ResponseHeader(_INT32.unpack_from(frame)[0])

    @classmethod
    def decode(cls, frame: Any) -> "FetchAnswer":
        """A response after its header. Raises struct.error if it is cut off."""
        view = memoryview(frame)
        throttle_time_ms, error_code, _, topics = _RESPONSE.unpack_from(view, _INT32.size)
        position = _INT32.size + _RESPONSE.size
        if topics == 0 or error_code:
            return cls(throttle_time_ms, error_code)
        position += _STRING.size + _STRING.unpack_from(view, position)[0]
        (partitions, _, error_code, high_watermark, last_stable_offset, log_start, count) = (
            _PARTITION_ANSWER.unpack_from(view, position)
        )
        if topics != 1 or partitions != 1:
            raise KafkaProtocolError("a Fetch answer for partitions that were not asked for")
        position += _PARTITION_ANSWER.size
        aborted = tuple(
            _ABORTED.unpack_from(view, position + index * _ABORTED.size) for index in range(count)
        )
        position += max(0, count) * _ABORTED.size
        _, size = _RECORDS.unpack_from(view, position)
        position += _RECORDS.size
        if position + size > len(view):
            raise KafkaProtocolError("a Fetch answer that ends before its records do")
        return cls(
            throttle_time_ms,
            error_code,
            True,
            high_watermark,
            last_stable_offset,
            log_start,
            aborted,
            view[position : position + max(0, size)],
        )


@dataclass(frozen=True, slots=True)
class _ResponseHeader:
    correlation_id: int


@dataclass(frozen=True, slots=True)
class _RequestHeader:
    correlation_id: int
    client_id: bytes
    api_key: int = API_KEY
    api_version: int = VERSION

    def get_response_class(self) -> type[FetchAnswer]:
        return FetchAnswer


@dataclass(slots=True)
class FetchOne:
    """A request for one partition from `offset` on, with the members of the library's own."""

    topic: str
    partition: int
    leader_epoch: int
    offset: int
    max_bytes: int
    max_wait_ms: int
    isolation_level: int
    header: _RequestHeader | None = None

    API_KEY = API_KEY
    API_VERSION = VERSION

    def with_header(self, correlation_id: int, client_id: str) -> None:
        """Called by the connection just before `encode`."""
        self.header = _RequestHeader(correlation_id, client_id.encode())

    def expect_response(self) -> bool:
        """There is always one."""
        return True

    def encode(self, *, framed: bool, header: bool) -> bytes:
        """The whole frame; the connection never asks for less."""
        if self.header is None or not (framed and header):
            raise ValueError("a Fetch request is sent with its frame and header")
        topic = self.topic.encode()
        client = self.header.client_id
        size = _HEAD.size - 4 + len(client) + _BODY.size + len(topic) + _PARTITION.size
        return b"".join(
            (
                _HEAD.pack(size, API_KEY, VERSION, self.header.correlation_id, len(client)),
                client,
                _BODY.pack(
                    _NO_REPLICA,
                    self.max_wait_ms,
                    _MIN_BYTES,
                    _MAX_BYTES,
                    self.isolation_level,
                    _NO_SESSION,
                    _FINAL_EPOCH,
                    1,
                    len(topic),
                ),
                topic,
                _PARTITION.pack(
                    1,
                    self.partition,
                    self.leader_epoch,
                    self.offset,
                    _LOG_START_UNKNOWN,
                    self.max_bytes,
                    0,
                    0,
                ),
            )
        )
