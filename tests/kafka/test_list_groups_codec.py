"""The narrow codec against the library's own, byte for byte, in all versions that are spoken."""

import struct
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import KafkaProtocolError, KafkaTimeoutError
from kafka.protocol.admin import ListGroupsRequest, ListGroupsResponse

from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.groups import LIST_GROUPS
from tsoffset.kafka.wire.list_groups_codec import HIGHEST, LOWEST, ListGroupsFrames
from tsoffset.model import GroupListing, GroupType

NODE = 7
VERSIONS = st.integers(LOWEST, HIGHEST)
NAMES = st.text(max_size=20) | st.text(min_size=120, max_size=300)


class Group(NamedTuple):
    group_id: str
    protocol_type: str
    group_state: str
    group_type: str


GROUPS = st.lists(
    st.builds(
        Group, NAMES, NAMES, NAMES, NAMES | st.sampled_from(["Classic", "consumer", "share"])
    ),
    max_size=5,
)


def frames(version: int, client: str = "client", ms: int = 60_000) -> ListGroupsFrames:
    return ListGroupsFrames(client, version, NODE, Deadline.after(ms))


def library_answer(version: int, throttle_ms: int, code: int, groups: list[Group]) -> bytes:
    listed = [ListGroupsResponse.ListedGroup(**group._asdict()) for group in groups]
    made = ListGroupsResponse(throttle_time_ms=throttle_ms, error_code=code, groups=listed)
    return struct.pack(">i", 1) + b"\0" + bytes(made.encode(version=version))


def test_these_versions_are_spoken() -> None:
    """So these tests compare all that is ever negotiated."""
    assert (LIST_GROUPS.lowest, LIST_GROUPS.highest) == (LOWEST, HIGHEST)


@given(NAMES, VERSIONS, st.integers(0, 2**31 - 1))
def test_requests_are_the_library_s_own(client: str, version: int, number: int) -> None:
    """For all groups, of any state and type."""
    request = ListGroupsRequest(states_filter=[], types_filter=[], version=version)
    request.with_header(correlation_id=number, client_id=client)
    assert frames(version, client).frame(None, number) == request.encode(framed=True, header=True)


@given(VERSIONS, st.integers(0, 2**31 - 1), st.integers(-(2**15), 2**15 - 1), GROUPS)
def test_answers_are_read_as_the_library_writes_them(
    version: int, throttle_ms: int, code: int, groups: list[Group]
) -> None:
    """States are told since version 4, types since 5; a type of a newer broker is unknown."""
    raw = library_answer(version, throttle_ms, code, groups)
    answer = frames(version).answer(memoryview(raw))
    assert (answer.throttle_time_ms, answer.error_code) == (throttle_ms, code)
    known = {str(kind): kind for kind in GroupType}
    assert list(answer.groups) == [
        GroupListing(
            one.group_id,
            known.get(one.group_type.lower(), GroupType.UNKNOWN)
            if version >= 5
            else GroupType.CLASSIC,
            (one.group_state or None) if version >= 4 else None,
            one.protocol_type,
            NODE,
        )
        for one in groups
    ]


@pytest.mark.parametrize("version", range(LOWEST, HIGHEST + 1))
def test_an_answer_that_is_cut_off_is_an_error(version: int) -> None:
    """Wherever it ends, and where something lies behind it: nothing is made up."""
    raw = library_answer(version, 0, 0, [Group("one", "consumer", "Stable", "classic")] * 2)
    for length in range(4, len(raw)):
        with pytest.raises(KafkaProtocolError):
            frames(version).answer(memoryview(raw)[:length])
    with pytest.raises(KafkaProtocolError):
        frames(version).answer(memoryview(raw + b"\0"))


def test_no_answer_is_read_for_longer_than_the_call_may_take() -> None:
    """While it is read the loop does nothing else: a late one is given up, however right."""
    raw = library_answer(5, 0, 0, [Group("one", "consumer", "Stable", "classic")])
    with pytest.raises(KafkaTimeoutError):
        frames(5, ms=0).answer(memoryview(raw))
