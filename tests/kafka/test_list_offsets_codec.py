"""The narrow codec against the library's own, byte for byte, in all versions that are spoken."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import KafkaProtocolError
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse, OffsetSpec

from tsoffset.kafka.log_offsets import LIST_OFFSETS
from tsoffset.kafka.wire.list_offsets_codec import (
    HIGHEST,
    LOWEST,
    YOUNGEST_SINCE,
    ListOffsetsFrames,
)

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
CORRELATION = st.integers(0, 2**31 - 1)
VERSIONS = st.integers(LOWEST, HIGHEST)
# Names and lists longer than a varint of one byte can say, too.
NAMES = st.text(max_size=20) | st.text(min_size=120, max_size=249)
SHORT_OR_LONG = st.integers(0, 5) | st.sampled_from([126, 127, 128, 300])

Asked = dict[str, list[tuple[int, int, int]]]
Found = list[tuple[str, list[tuple[int, int, int, int, int]]]]


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    one = draw(st.tuples(INT32, INT32, INT64))
    return {
        name: [*draw(st.lists(st.tuples(INT32, INT32, INT64), max_size=4))]
        + [one] * draw(SHORT_OR_LONG)
        for name in names
    }


@st.composite
def found(draw: st.DrawFn) -> Found:
    row = st.tuples(INT32, INT16, INT64, INT64, INT32)
    one = draw(row)
    return [
        (name, draw(st.lists(row, max_size=4)) + [one] * draw(SHORT_OR_LONG))
        for name in draw(st.lists(NAMES, max_size=3))
    ]


def frames(version: int, client: str = "client") -> ListOffsetsFrames:
    return ListOffsetsFrames(client, version, 1, 30_000)


def library_frame(
    client: str, version: int, isolation_level: int, timeout_ms: int, number: int, topics: Asked
) -> bytes:
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[
            topic_class(
                name=name,
                partitions=[
                    topic_class.ListOffsetsPartition(
                        partition_index=partition, current_leader_epoch=epoch, timestamp=time
                    )
                    for partition, epoch, time in partitions
                ],
            )
            for name, partitions in topics.items()
        ],
        timeout_ms=timeout_ms,
        version=version,
    )
    request.with_header(correlation_id=number, client_id=client)
    return bytes(request.encode(framed=True, header=True))


def library_answer(version: int, number: int, throttle_ms: int, topics: Found) -> bytes:
    topic_class = ListOffsetsResponse.ListOffsetsTopicResponse
    response = ListOffsetsResponse(
        throttle_time_ms=throttle_ms,
        topics=[
            topic_class(
                name=name,
                partitions=[
                    topic_class.ListOffsetsPartitionResponse(
                        partition_index=partition,
                        error_code=error,
                        timestamp=time,
                        offset=offset,
                        leader_epoch=epoch,
                    )
                    for partition, error, time, offset, epoch in partitions
                ],
            )
            for name, partitions in topics
        ],
        version=version,
    )
    # The header of a flexible response ends with its tagged fields.
    tags = b"\0" if version >= 6 else b""
    return struct.pack(">i", number) + tags + bytes(response.encode(version=version))


def test_these_versions_are_spoken() -> None:
    """So these tests compare all that is ever negotiated."""
    assert (LIST_OFFSETS.lowest, LIST_OFFSETS.highest) == (LOWEST, HIGHEST)


@given(
    NAMES,
    VERSIONS,
    st.sampled_from([0, 1]),
    st.integers(0, 2**31 - 1),
    st.lists(st.tuples(CORRELATION, asked()), max_size=3),
)
def test_requests_are_the_library_s_own(
    client: str,
    version: int,
    isolation_level: int,
    timeout_ms: int,
    requests: list[tuple[int, Asked]],
) -> None:
    """Whatever was asked before, whose packed parts are used again."""
    mine = ListOffsetsFrames(client, version, isolation_level, timeout_ms)
    for number, topics in requests:
        assert mine.frame(number, topics) == library_frame(
            client, version, isolation_level, timeout_ms, number, topics
        )


@pytest.mark.parametrize("version", range(YOUNGEST_SINCE, HIGHEST + 1))
def test_the_question_for_the_largest_timestamp_is_the_library_s_own(version: int) -> None:
    """KIP-734 brought it with version 7, as a timestamp of -3."""
    assert (YOUNGEST_SINCE, OffsetSpec.MAX_TIMESTAMP) == (7, -3)
    topics: Asked = {"orders": [(0, 5, -3), (1, -1, -3)]}
    mine = ListOffsetsFrames("client", version, 1, 30_000)
    assert mine.frame(9, topics) == library_frame("client", version, 1, 30_000, 9, topics)


@given(VERSIONS, CORRELATION, CORRELATION, found())
def test_answers_are_read_as_the_library_writes_them(
    version: int, number: int, throttle_ms: int, topics: Found
) -> None:
    """All partitions of all topics, errors and what was found alike."""
    answer = frames(version).answer(
        memoryview(library_answer(version, number, throttle_ms, topics))
    )
    assert answer.throttle_time_ms == throttle_ms
    assert not answer.held_back
    assert answer.topics == tuple((name, tuple(row[:4] for row in rows)) for name, rows in topics)


@pytest.mark.parametrize("version", range(6, HIGHEST + 1))
def test_tagged_fields_that_nobody_asked_for_are_passed_over(version: int) -> None:
    """A newer broker may add some anywhere: to the header, a partition, a topic, the whole."""
    tags = bytes([2, 0, 3]) + b"one" + bytes([0x81, 0x01, 0])
    row = struct.Struct(">ihqqi")
    raw = b"".join(
        (
            struct.pack(">i", 1) + tags + struct.pack(">i", 40) + b"\2",
            b"\6topic" + b"\3",
            row.pack(0, 0, 70, 7, 3) + tags,
            row.pack(1, 6, -1, -1, -1) + b"\0",
            tags,
            tags,
        )
    )
    answer = frames(version).answer(memoryview(raw))
    assert answer.throttle_time_ms == 40
    assert answer.topics == (("topic", ((0, 0, 70, 7), (1, 6, -1, -1))),)


@given(VERSIONS, st.integers(0, 400))
def test_an_answer_that_is_cut_off_is_an_error(version: int, length: int) -> None:
    """Wherever it ends, nothing is made up."""
    topics: Found = [("one", [(0, 0, 1, 2, 3), (1, 0, 4, 5, 6)]), ("two", [(7, 8, 9, 10, 11)])]
    raw = library_answer(version, 1, 0, topics)
    length = min(length, len(raw) - 1)
    with pytest.raises((KafkaProtocolError, struct.error)):
        frames(version).answer(memoryview(raw)[:length])


@given(VERSIONS, st.binary(max_size=120))
def test_no_bytes_break_the_reader(version: int, raw: bytes) -> None:
    """An answer that is none is an error of the protocol, whatever it holds."""
    try:
        answer = frames(version).answer(memoryview(raw))
    except (KafkaProtocolError, struct.error):
        return
    assert all(len(row) == 4 for _, rows in answer.topics for row in rows)
