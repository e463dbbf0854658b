"""Infrequent requests, encoded and decoded by the library."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kafka.errors import KafkaProtocolError, KafkaTimeoutError

from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.wire.frame_stream import Codec

Q = TypeVar("Q")

# About the rate at which the library decodes on a busy machine.
_BYTES_A_SECOND = 2_000_000


class LibraryCodec(Codec[Q, Any]):
    """For the requests, all of one kind, that `build` makes in this version. The answers are the
    library's responses, whose throttle time is 0 in versions without this field. An answer that
    would take longer to decode than the call has left is a KafkaTimeoutError."""

    def __init__(
        self, build: Callable[[Q, int], Any], client_id: str, deadline: Deadline, version: int
    ) -> None:
        self._build = build
        self._client_id = client_id
        self._deadline = deadline
        self._version = version
        self._response_class: Any = None

    def encode(self, question: Q, correlation_id: int) -> bytes:
        request = self._build(question, self._version)
        request.with_header(correlation_id=correlation_id, client_id=self._client_id)
        self._response_class = request.header.get_response_class()
        frame: bytes = request.encode(framed=True, header=True)
        return frame

    def decode(self, frame: memoryview) -> Any:
        # The whole call's time: a part of the call may end once an answer has arrived.
        if len(frame) > _BYTES_A_SECOND * max(1.0, self._deadline.of_call.seconds_left):
            raise KafkaTimeoutError(f"{len(frame)} bytes take longer to read than the call may")
        try:
            response = self._response_class.decode(frame, header=True)
        except (ValueError, IndexError) as error:
            raise KafkaProtocolError("an answer that cannot be decoded") from error
        _refuse_null_lists(self._response_class.fields, response, self._version)
        return response


def _refuse_null_lists(fields: Mapping[str, Any], item: Any, version: int) -> None:
    """Raise KafkaProtocolError if a required list is null: the library accepts that."""
    for name, field in fields.items():
        if field.is_struct_array() and field.for_version_q(version):
            inner = getattr(item, name)
            if inner is None and not field.nullable_for_version_q(version):
                raise KafkaProtocolError("a null where the protocol requires a value")
            if any(each.is_struct_array() for each in field.fields.values()):
                for each in inner or ():
                    _refuse_null_lists(field.fields, each, version)
