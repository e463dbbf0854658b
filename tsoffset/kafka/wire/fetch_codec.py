"""Fetch of one partition, version 11, encoded and decoded by hand.

Most of a cycle's requests are small fetches, and the library's general encoder and decoder take
most of their time. Version 11 (KIP-392; brokers since 2.3) is the last one before the flexible
encoding and topic ids. `tsoffset.kafka.wire.frame_stream` sends it.
"""

from struct import Struct
from typing import NamedTuple

from kafka.errors import KafkaProtocolError
from kafka.protocol.consumer import FetchRequest

from tsoffset.kafka.wire.flexible_encoding import short_text

VERSION = 11
API_KEY: int = FetchRequest.API_KEY

# A request's frame: size, then the header (key, version, correlation id, client id), then
# replica, max wait, min bytes, max bytes, isolation, session id, session epoch; one topic
# with one partition (index, leader epoch, offset, log start, max bytes); no forgotten
# topics, no rack.
_HEAD = Struct(">ihh")
_STRING = Struct(">h")
_BODY = Struct(">iiiibiii")

_INT32 = Struct(">i")
# Correlation id, throttle time, error, session id, number of topics; the topic's name.
_RESPONSE = Struct(">iihii")
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


class FetchAnswer(NamedTuple):
    """A broker's answer for one partition.

    `aborted` are (producer id, first offset) of the aborted transactions that overlap with the
    records; `records` are the batches as in the log. `present` is false if the broker omitted the
    partition, as it does to throttle; otherwise `topic` and `partition` say which one it is.
    """

    throttle_time_ms: int
    error_code: int
    present: bool = False
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start: int = -1
    aborted: tuple[tuple[int, int], ...] = ()
    records: memoryview = _NOTHING
    topic: bytes = b""
    partition: int = -1

    def held_back(self) -> bool:
        """True if the answer has neither records nor an error."""
        return not self.present and not self.error_code


class FetchFrames:
    """Request frames of one client and isolation level; repeated parts are packed once per
    topic."""

    def __init__(self, client_id: str, isolation_level: int) -> None:
        self._client = short_text(client_id)
        self._isolation_level = isolation_level
        self._templates: dict[tuple[str, int], tuple[Struct, bytes, bytes]] = {}

    def frame(
        self,
        correlation_id: int,
        topic: str,
        partition: int,
        leader_epoch: int,
        offset: int,
        max_bytes: int,
        max_wait_ms: int = 0,
    ) -> bytes:
        """The whole frame of a request for one partition from `offset` on."""
        template = self._templates.get((topic, max_wait_ms))
        if template is None:
            template = self._templates[topic, max_wait_ms] = self._template(topic, max_wait_ms)
        layout, head, body = template
        return layout.pack(
            head,
            correlation_id,
            body,
            1,
            partition,
            leader_epoch,
            offset,
            _LOG_START_UNKNOWN,
            max_bytes,
            0,
            0,
        )

    def _template(self, topic: str, max_wait_ms: int) -> tuple[Struct, bytes, bytes]:
        body = b"".join(
            (
                self._client,
                _BODY.pack(
                    _NO_REPLICA,
                    max_wait_ms,
                    _MIN_BYTES,
                    _MAX_BYTES,
                    self._isolation_level,
                    _NO_SESSION,
                    _FINAL_EPOCH,
                    1,
                ),
                short_text(topic),
            )
        )
        layout = Struct(f">{_HEAD.size}si{len(body)}siiiqqiih")
        return layout, _HEAD.pack(layout.size - _INT32.size, API_KEY, VERSION), body


def fetch_answer(frame: memoryview) -> FetchAnswer:
    _, throttle_time_ms, error_code, _, topics = _RESPONSE.unpack_from(frame)
    position = _RESPONSE.size
    if topics == 0 or error_code:
        return FetchAnswer(throttle_time_ms, error_code)
    (size,) = _STRING.unpack_from(frame, position)
    begin, position = position + _STRING.size, position + _STRING.size + size
    (partitions, partition, error_code, high_watermark, last_stable_offset, log_start, count) = (
        _PARTITION_ANSWER.unpack_from(frame, position)
    )
    if topics != 1 or partitions != 1:
        raise KafkaProtocolError("a Fetch answer for partitions that were not asked for")
    topic = bytes(frame[begin:position])
    position += _PARTITION_ANSWER.size
    aborted: tuple[tuple[int, int], ...] = ()
    if count > 0:
        end = position + count * _ABORTED.size
        if end > len(frame):
            raise KafkaProtocolError("a Fetch answer that ends within its transactions")
        aborted = tuple(_ABORTED.iter_unpack(frame[position:end]))
        position = end
    _, size = _RECORDS.unpack_from(frame, position)
    position += _RECORDS.size
    if position + size > len(frame):
        raise KafkaProtocolError("a Fetch answer that ends before its records do")
    return FetchAnswer(
        throttle_time_ms,
        error_code,
        True,
        high_watermark,
        last_stable_offset,
        log_start,
        aborted,
        frame[position : position + size] if size > 0 else _NOTHING,
        topic,
        partition,
    )
