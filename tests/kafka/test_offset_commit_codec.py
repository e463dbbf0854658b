"""The narrow codec against the library's own, byte for byte, in all versions that are spoken."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import KafkaProtocolError
from kafka.protocol.consumer import OffsetCommitRequest, OffsetCommitResponse

from tsoffset.kafka.group_offsets import OFFSET_COMMIT
from tsoffset.kafka.wire.offset_commit_codec import (
    HIGHEST,
    LOWEST,
    OffsetCommitFrames,
    offset_commit_answer,
)
from tsoffset.model import CommittedOffset, TopicPartition

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
CORRELATION = st.integers(0, 2**31 - 1)
VERSIONS = st.integers(LOWEST, HIGHEST)
# Names and lists longer than a varint of one byte can say, too.
NAMES = st.text(max_size=20) | st.text(min_size=120, max_size=249)
COMMITS = st.builds(CommittedOffset, st.integers(0, 2**63 - 1), NAMES)
PARTITIONS = st.integers(0, 2**31 - 1)
TAGS = bytes([2, 0, 3]) + b"one" + bytes([0x81, 0x01, 0])

Commits = dict[str, dict[int, CommittedOffset]]
Found = dict[str, dict[int, int]]


@st.composite
def commits(draw: st.DrawFn) -> Commits:
    found = draw(
        st.dictionaries(NAMES, st.dictionaries(PARTITIONS, COMMITS, min_size=1), max_size=3)
    )
    if draw(st.booleans()):
        found["many"] = {partition: CommittedOffset(partition) for partition in range(200)}
    return found


@st.composite
def found(draw: st.DrawFn) -> Found:
    answer = draw(st.dictionaries(NAMES, st.dictionaries(INT32, INT16, max_size=5), max_size=3))
    if draw(st.booleans()):
        answer["many"] = {partition: draw(INT16) for partition in range(130)}
    return answer


def library_frame(client: str, version: int, number: int, group: str, topics: Commits) -> bytes:
    topic_class = OffsetCommitRequest.OffsetCommitRequestTopic
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[
            topic_class(
                name=name,
                partitions=[
                    topic_class.OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=commit.offset,
                        committed_leader_epoch=-1,
                        committed_metadata=commit.metadata,
                    )
                    for partition, commit in partitions.items()
                ],
            )
            for name, partitions in topics.items()
        ],
        version=version,
    )
    request.with_header(correlation_id=number, client_id=client)
    return bytes(request.encode(framed=True, header=True))


def library_answer(version: int, number: int, throttle_ms: int, topics: Found) -> bytes:
    topic_class = OffsetCommitResponse.OffsetCommitResponseTopic
    response = OffsetCommitResponse(
        throttle_time_ms=throttle_ms,
        topics=[
            topic_class(
                name=name,
                partitions=[
                    topic_class.OffsetCommitResponsePartition(
                        partition_index=partition, error_code=error_code
                    )
                    for partition, error_code in partitions.items()
                ],
            )
            for name, partitions in topics.items()
        ],
        version=version,
    )
    # The header of a flexible response ends with its tagged fields.
    return struct.pack(">i", number) + b"\0" + bytes(response.encode(version=version))


def test_these_versions_are_spoken() -> None:
    """So these tests compare all that is ever negotiated."""
    assert (OFFSET_COMMIT.lowest, OFFSET_COMMIT.highest) == (LOWEST, HIGHEST)


@given(NAMES, VERSIONS, CORRELATION, NAMES, commits())
def test_requests_are_the_library_s_own(
    client: str, version: int, number: int, group: str, topics: Commits
) -> None:
    """As no member, and without leader epochs, which clients of another cluster can get stuck
    on."""
    asked = {
        TopicPartition(topic, partition): commit
        for topic, partitions in topics.items()
        for partition, commit in partitions.items()
    }
    mine = OffsetCommitFrames(client, version).frame(group, asked, number)
    assert mine == library_frame(client, version, number, group, topics)


@given(VERSIONS, CORRELATION, CORRELATION, found())
def test_answers_are_read_as_the_library_writes_them(
    version: int, number: int, throttle_ms: int, topics: Found
) -> None:
    """Every partition with its error, or that there is none."""
    raw = library_answer(version, number, throttle_ms, topics)
    answer = offset_commit_answer(memoryview(raw))
    assert answer.throttle_time_ms == throttle_ms
    assert not answer.held_back
    assert answer.error_codes == {
        (topic, partition): error_code
        for topic, partitions in topics.items()
        for partition, error_code in partitions.items()
    }


def test_tagged_fields_that_nobody_asked_for_are_passed_over() -> None:
    """A newer broker may add some anywhere: to the header, a partition, a topic, the whole."""
    row = struct.Struct(">ih")
    partitions = b"\4" + row.pack(0, 0) + TAGS + row.pack(1, 25) + b"\0" + row.pack(2, 0) + TAGS
    head = struct.pack(">i", 1) + TAGS + struct.pack(">i", 40)
    answer = offset_commit_answer(memoryview(head + b"\2\6topic" + partitions + TAGS + TAGS))
    assert answer == (40, {("topic", 0): 0, ("topic", 1): 25, ("topic", 2): 0}, 0)


@pytest.mark.parametrize("version", range(LOWEST, HIGHEST + 1))
def test_an_answer_that_is_cut_off_is_an_error(version: int) -> None:
    """Wherever it ends, and where something lies behind it: nothing is made up."""
    raw = library_answer(version, 1, 0, {"one": {0: 0, 1: 25}, "two": {7: 0}})
    for length in range(len(raw)):
        with pytest.raises(KafkaProtocolError):
            offset_commit_answer(memoryview(raw)[:length])
    with pytest.raises(KafkaProtocolError):
        offset_commit_answer(memoryview(raw + b"\0"))


@given(st.binary(max_size=120))
def test_no_bytes_break_the_reader(raw: bytes) -> None:
    """An answer that is none is an error of the protocol, whatever it holds."""
    try:
        answer = offset_commit_answer(memoryview(raw))
    except KafkaProtocolError:
        return
    assert all(isinstance(code, int) for code in answer.error_codes.values())
