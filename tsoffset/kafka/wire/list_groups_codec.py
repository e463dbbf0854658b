"""ListGroups, versions 3 to 5, encoded and decoded by hand: all groups of a broker.

A broker may have hundreds of thousands of groups, and the library takes several times as long for
each. Version 3 (KIP-482) has the flexible encoding, 4 (KIP-518) the groups' states, 5 (KIP-848)
their types. `tsoffset.kafka.wire.frame_stream` sends it.
"""

from struct import Struct
from typing import NamedTuple

from kafka.errors import KafkaProtocolError, KafkaTimeoutError
from kafka.protocol.admin import ListGroupsRequest

from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.wire.flexible_encoding import (
    NO_TAGS,
    behind_tags,
    encoded_count,
    make_frame,
    read_count,
    read_text,
    short_text,
)
from tsoffset.kafka.wire.frame_stream import Codec
from tsoffset.model import GroupListing, GroupType

LOWEST, HIGHEST = 3, 5
API_KEY: int = ListGroupsRequest.API_KEY

_STATE_SINCE, _TYPE_SINCE = 4, 5
_ALL = encoded_count(0)
_KINDS = {str(kind): kind for kind in GroupType}

# A response: correlation id; then, after tagged fields, throttle time and error code.
_INT32 = Struct(">i")
_OUTCOME = Struct(">ih")
_GROUPS_BETWEEN_LOOKS = 10_000


class ListGroupsAnswer(NamedTuple):
    """A broker's answer; `groups` in its order, each with the broker as its coordinator."""

    throttle_time_ms: int
    error_code: int
    groups: tuple[GroupListing, ...]


class ListGroupsCodec(Codec[int, ListGroupsAnswer]):
    def __init__(self, client_id: str, node: int, deadline: Deadline, version: int) -> None:
        self._version = version
        self._node = node
        self._deadline = deadline
        filters = _ALL * (version + 1 - _STATE_SINCE)
        self._body = short_text(client_id) + NO_TAGS + filters + NO_TAGS

    def encode(self, _: int, correlation_id: int) -> bytes:
        return make_frame(API_KEY, self._version, correlation_id, (self._body,))

    def decode(self, frame: memoryview) -> ListGroupsAnswer:
        raw = bytes(frame)
        position = behind_tags(raw, _INT32.size)
        throttle_time_ms, error_code = _OUTCOME.unpack_from(raw, position)
        count, position = read_count(raw, position + _OUTCOME.size)
        groups: list[GroupListing] = []
        state, kind = None, GroupType.CLASSIC
        for number in range(count):
            if number % _GROUPS_BETWEEN_LOOKS == 0 and self._deadline.over:
                raise KafkaTimeoutError(f"{count} groups take longer to read than the call may")
            name, position = read_text(raw, position)
            protocol_type, position = read_text(raw, position)
            if self._version >= _STATE_SINCE:
                state, position = read_text(raw, position)
            if self._version >= _TYPE_SINCE:
                named, position = read_text(raw, position)
                kind = _KINDS.get(named.lower(), GroupType.UNKNOWN)
            position = behind_tags(raw, position)
            groups.append(GroupListing(name, kind, state or None, protocol_type, self._node))
        if behind_tags(raw, position) != len(raw):
            raise KafkaProtocolError("a ListGroups answer with extra bytes at the end")
        return ListGroupsAnswer(throttle_time_ms, error_code, tuple(groups))
