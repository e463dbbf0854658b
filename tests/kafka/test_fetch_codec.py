"""The narrow codec against the library's own, byte for byte, in the version that is spoken."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import KafkaProtocolError
from kafka.protocol.consumer import FetchRequest, FetchResponse

from tsoffset.kafka.reads import FETCH
from tsoffset.kafka.wire.fetch_codec import VERSION, FetchAnswer, FetchFrames, fetch_answer

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.text(max_size=40)


def library_frame(
    client: str,
    isolation_level: int,
    correlation_id: int,
    topic: str,
    partition: int,
    leader_epoch: int,
    offset: int,
    max_bytes: int,
    max_wait_ms: int,
) -> bytes:
    topic_class = FetchRequest.FetchTopic
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=0x7FFFFFFF,
        isolation_level=isolation_level,
        session_id=0,
        session_epoch=-1,
        topics=[
            topic_class(
                topic=topic,
                partitions=[
                    topic_class.FetchPartition(
                        partition=partition,
                        current_leader_epoch=leader_epoch,
                        fetch_offset=offset,
                        log_start_offset=-1,
                        partition_max_bytes=max_bytes,
                    )
                ],
            )
        ],
        forgotten_topics_data=[],
        rack_id="",
        version=VERSION,
    )
    request.with_header(correlation_id=correlation_id, client_id=client)
    return bytes(request.encode(framed=True, header=True))


def test_one_version_is_spoken() -> None:
    """So these tests compare all that is ever negotiated."""
    assert (FETCH.lowest, FETCH.highest) == (VERSION, VERSION)


@given(
    NAMES,
    st.sampled_from([0, 1]),
    st.lists(
        st.tuples(st.integers(0, 2**31 - 1), NAMES, INT32, INT32, INT64, INT32, INT32), max_size=5
    ),
)
def test_requests_are_the_library_s_own(
    client: str, isolation_level: int, asked: list[tuple[int, str, int, int, int, int, int]]
) -> None:
    """Whatever was asked before, whose packed parts are used again."""
    frames = FetchFrames(client, isolation_level)
    for words in asked:
        assert frames.frame(*words) == library_frame(client, isolation_level, *words)


def library_answer(correlation_id: int, response: FetchResponse) -> bytes:
    return struct.pack(">i", correlation_id) + bytes(response.encode(version=VERSION))


def response(
    throttle_ms: int,
    error: int,
    topic: str,
    marks: tuple[int, int, int],
    aborted: list[tuple[int, int]] | None,
    records: bytes | None,
) -> FetchResponse:
    topic_class = FetchResponse.FetchableTopicResponse
    partition_class = topic_class.PartitionData
    high_watermark, last_stable_offset, log_start = marks
    return FetchResponse(
        throttle_time_ms=throttle_ms,
        error_code=0,
        session_id=0,
        responses=[
            topic_class(
                topic=topic,
                partitions=[
                    partition_class(
                        partition_index=3,
                        error_code=error,
                        high_watermark=high_watermark,
                        last_stable_offset=last_stable_offset,
                        log_start_offset=log_start,
                        aborted_transactions=None
                        if aborted is None
                        else [
                            partition_class.AbortedTransaction(
                                producer_id=producer, first_offset=first
                            )
                            for producer, first in aborted
                        ],
                        preferred_read_replica=-1,
                        records=records,
                    )
                ],
            )
        ],
        version=VERSION,
    )


@given(
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.integers(-1, 100),
    NAMES,
    st.tuples(INT64, INT64, INT64),
    st.none() | st.lists(st.tuples(INT64, INT64), max_size=4),
    st.none() | st.binary(max_size=50),
)
def test_answers_are_read_as_the_library_writes_them(
    correlation_id: int,
    throttle_ms: int,
    error: int,
    topic: str,
    marks: tuple[int, int, int],
    aborted: list[tuple[int, int]] | None,
    records: bytes | None,
) -> None:
    """Null and empty lists and records mean the same: nothing."""
    raw = library_answer(
        correlation_id, response(throttle_ms, error, topic, marks, aborted, records)
    )
    found = fetch_answer(memoryview(raw))
    assert found == FetchAnswer(
        throttle_ms,
        error,
        True,
        *marks,
        tuple(aborted or ()),
        memoryview(records or b""),
        topic.encode(),
        3,
    )


def test_an_answer_without_the_partition_is_told_apart() -> None:
    """A broker that throttles leaves out what it has; that is not an empty log."""
    empty = FetchResponse(
        throttle_time_ms=70, error_code=0, session_id=0, responses=[], version=VERSION
    )
    assert fetch_answer(memoryview(library_answer(5, empty))) == FetchAnswer(70, 0)


@given(st.integers(0, 200))
def test_an_answer_that_is_cut_off_is_an_error(length: int) -> None:
    """Wherever it ends, nothing is made up."""
    raw = library_answer(1, response(0, 0, "topic", (9, 9, 0), [(1, 2), (3, 4)], b"r" * 40))
    length = min(length, len(raw) - 1)
    with pytest.raises((KafkaProtocolError, struct.error)):
        fetch_answer(memoryview(raw)[:length])
