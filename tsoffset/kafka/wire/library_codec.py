"""Requests of which there are few, encoded and decoded by the library."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from kafka.errors import KafkaProtocolError, KafkaTimeoutError

from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.wire.frame_stream import Codec

Q = TypeVar("Q")

# About what the library decodes on a busy machine, all at once.
_BYTES_A_SECOND = 2_000_000


class LibraryAnswer(NamedTuple):
    """A response of the library."""

    response: Any

    @property
    def throttle_time_ms(self) -> int:
        """0 in versions that do not tell it."""
        # What goes on to the controller as it is (DescribeQuorum) has none.
        time_ms: int = getattr(self.response, "throttle_time_ms", 0)
        return time_ms

    @property
    def held_back(self) -> bool:
        """Never: brokers answer before they throttle (KIP-219)."""
        return False


def library_codec(
    build: Callable[[Q, int], Any], version: int, client_id: str, deadline: Deadline
) -> Codec[Q, LibraryAnswer]:
    """The codec for the requests, all of one kind, that `build` makes in this version. An answer
    that would take longer to decode than the call may is a KafkaTimeoutError."""
    response_class: Any = None

    def encode(question: Q, correlation_id: int) -> bytes:
        nonlocal response_class
        request = build(question, version)
        request.with_header(correlation_id=correlation_id, client_id=client_id)
        response_class = request.header.get_response_class()
        frame: bytes = request.encode(framed=True, header=True)
        return frame

    def decode(frame: memoryview) -> LibraryAnswer:
        # Of the whole call: a part of it may end once an answer has come.
        if len(frame) > _BYTES_A_SECOND * max(1.0, deadline.of_call.seconds_left):
            raise KafkaTimeoutError(f"{len(frame)} bytes take longer to read than the call may")
        try:
            return LibraryAnswer(response_class.decode(frame, header=True))
        except (ValueError, IndexError) as error:
            raise KafkaProtocolError("an answer that cannot be decoded") from error

    return Codec(encode, decode)
