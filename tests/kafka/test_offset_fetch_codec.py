"""The narrow codec against the library's own, byte for byte, in all versions that are spoken."""

import struct
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.errors import KafkaProtocolError
from kafka.protocol.consumer import OffsetFetchRequest, OffsetFetchResponse

from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.group_offsets import OFFSET_FETCH
from tsoffset.kafka.wire.offset_fetch_codec import (
    HIGHEST,
    LOWEST,
    MANY_SINCE,
    OffsetFetchAnswer,
    OffsetFetchFrames,
)

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
CORRELATION = st.integers(0, 2**31 - 1)
VERSIONS = st.integers(LOWEST, HIGHEST)
# Names and lists longer than a varint of one byte can say, too.
NAMES = st.text(max_size=20) | st.text(min_size=120, max_size=249)
SHORT_OR_LONG = st.integers(0, 5) | st.sampled_from([126, 127, 128, 300])
TAGS = bytes([2, 0, 3]) + b"one" + bytes([0x81, 0x01, 0])

# Of one partition: index, offset, leader epoch, metadata, error.
Entry = tuple[int, int, int, str | None, int]
# Of one group: name, topics, error.
Group = tuple[str, list[tuple[str, list[Entry]]], int]


@st.composite
def groups(draw: st.DrawFn) -> list[Group]:
    none = st.sampled_from(["", None])
    some = none | st.text(max_size=20) | st.text(min_size=100, max_size=200)
    kinds = [
        st.tuples(INT32, INT64, INT32, metadata, errors)
        for metadata in (none, some)
        for errors in (st.just(0), INT16)
    ]
    found = []
    for name in draw(st.lists(NAMES, max_size=3, unique=True)):
        topics = []
        for topic in draw(st.lists(NAMES, max_size=3)):
            kind = draw(st.sampled_from(kinds))
            one = draw(kind)
            entries = draw(st.lists(kind, max_size=4)) + [one] * draw(SHORT_OR_LONG)
            topics.append((topic, entries))
        found.append((name, topics, draw(st.just(0) | INT16)))
    return found


def frames(version: int, client: str = "client", stable: bool = True) -> OffsetFetchFrames:
    return OffsetFetchFrames(client, version, Deadline.after(60_000), require_stable=stable)


def library_frame(
    client: str, version: int, stable: bool, number: int, names: Sequence[str]
) -> bytes:
    group_class = OffsetFetchRequest.OffsetFetchRequestGroup
    request = OffsetFetchRequest(
        group_id=names[0] if version < MANY_SINCE else "",
        topics=None,
        groups=[
            group_class(group_id=name, member_id=None, member_epoch=-1, topics=None)
            for name in names
        ],
        require_stable=stable,
        version=version,
    )
    request.with_header(correlation_id=number, client_id=client)
    return bytes(request.encode(framed=True, header=True))


def library_answer(version: int, number: int, throttle_ms: int, found: list[Group]) -> bytes:
    """Before version 8 about the first group."""
    response_class = OffsetFetchResponse
    if version < MANY_SINCE:
        _, topics, error_code = found[0]
        response = response_class(
            throttle_time_ms=throttle_ms,
            topics=library_topics(response_class.OffsetFetchResponseTopic, topics),
            error_code=error_code,
            version=version,
        )
    else:
        group_class = response_class.OffsetFetchResponseGroup
        response = response_class(
            throttle_time_ms=throttle_ms,
            groups=[
                group_class(
                    group_id=name,
                    topics=library_topics(group_class.OffsetFetchResponseTopics, topics),
                    error_code=error_code,
                )
                for name, topics, error_code in found
            ],
            version=version,
        )
    # The header of a flexible response ends with its tagged fields.
    return struct.pack(">i", number) + b"\0" + bytes(response.encode(version=version))


def library_topics(topic_class: type, topics: list[tuple[str, list[Entry]]]) -> list[object]:
    names = ("OffsetFetchResponsePartition", "OffsetFetchResponsePartitions")
    partition_class = next(
        getattr(topic_class, name) for name in names if hasattr(topic_class, name)
    )
    return [
        topic_class(
            name=topic,
            partitions=[
                partition_class(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=epoch,
                    metadata=metadata,
                    error_code=error_code,
                )
                for partition, offset, epoch, metadata, error_code in entries
            ],
        )
        for topic, entries in topics
    ]


def rows(answer: OffsetFetchAnswer) -> list[tuple[int, str, int, int, str, int]]:
    columns = (answer.group, answer.topic, answer.partition, answer.offset, answer.error_code)
    return [
        (
            group,
            answer.topics[topic],
            partition,
            offset,
            answer.metadata.get(number, ""),
            error_code,
        )
        for number, (group, topic, partition, offset, error_code) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        )
    ]


def test_these_versions_are_spoken() -> None:
    """So these tests compare all that is ever negotiated."""
    assert (OFFSET_FETCH.lowest, OFFSET_FETCH.highest) == (LOWEST, HIGHEST)
    assert OFFSET_FETCH.many_since == MANY_SINCE


@given(NAMES, VERSIONS, st.booleans(), CORRELATION, st.lists(NAMES, min_size=1, max_size=200))
def test_requests_are_the_library_s_own(
    client: str, version: int, stable: bool, number: int, names: list[str]
) -> None:
    """For all topics of one group or of many, as no member."""
    asked = names[:1] if version < MANY_SINCE else names
    mine = frames(version, client, stable).frame(asked, number)
    assert mine == library_frame(client, version, stable, number, names)


@given(VERSIONS, CORRELATION, CORRELATION, groups())
@example(8, 1, 0, [("g", [("t", [(0, 5, 3, "x" * 126, 0), (1, 6, 3, "y" * 127, 0)])], 0)])
@example(8, 1, 0, [("g", [("t", [(0, 1, 2, None, 0), (1, 3, 4, "m", 0)])] * 2, 0)])
def test_answers_are_read_as_the_library_writes_them(
    version: int, number: int, throttle_ms: int, found: list[Group]
) -> None:
    """All offsets of all groups with their metadata, errors, and what no offset is."""
    if version < MANY_SINCE:
        found = [*found, ("", [], 0)][:1]
    raw = library_answer(version, number, throttle_ms, found)
    answer = frames(version).answer(memoryview(raw))
    assert answer.throttle_time_ms == throttle_ms
    assert not answer.held_back
    assert answer.groups == tuple(
        (None if version < MANY_SINCE else name, error_code) for name, _, error_code in found
    )
    assert len(set(answer.topics)) == len(answer.topics)
    assert rows(answer) == [
        (place, topic, partition, offset, metadata or "", error_code)
        for place, (_, topics, _) in enumerate(found)
        for topic, entries in topics
        for partition, offset, _, metadata, error_code in entries
    ]


@pytest.mark.parametrize("version", range(LOWEST, HIGHEST + 1))
def test_tagged_fields_that_nobody_asked_for_are_passed_over(version: int) -> None:
    """A newer broker may add some anywhere: to the header, a partition, a topic, a group, the
    whole."""
    row = struct.Struct(">iqi")
    topics = b"".join(
        (
            b"\2" + b"\6topic" + b"\5",
            row.pack(0, 70, 7) + b"\1" + struct.pack(">h", 0) + TAGS,
            row.pack(1, 71, 7) + b"\4abc" + struct.pack(">h", 0) + TAGS,
            row.pack(2, -1, -1) + b"\0" + struct.pack(">h", 3) + b"\0",
            row.pack(3, 73, 7) + b"\2d" + struct.pack(">h", 0) + b"\0",
            TAGS,
        )
    )
    many = version >= MANY_SINCE
    error_code = struct.pack(">h", 0)
    raw = b"".join(
        (
            struct.pack(">i", 1) + TAGS + struct.pack(">i", 40),
            b"\2" + b"\6group" if many else b"",
            topics + error_code + TAGS,
            TAGS if many else b"",
        )
    )
    answer = frames(version).answer(memoryview(raw))
    assert answer.throttle_time_ms == 40
    assert answer.groups == (("group" if many else None, 0),)
    assert rows(answer) == [
        (0, "topic", 0, 70, "", 0),
        (0, "topic", 1, 71, "abc", 0),
        (0, "topic", 2, -1, "", 3),
        (0, "topic", 3, 73, "d", 0),
    ]


@pytest.mark.parametrize("version", range(LOWEST, HIGHEST + 1))
@pytest.mark.parametrize("metadata", ["", "some", "m" * 150])
def test_an_answer_that_is_cut_off_is_an_error(version: int, metadata: str) -> None:
    """Wherever it ends, and where something lies behind it: nothing is made up."""
    topics = [
        ("one", [(0, 1, 2, metadata, 0), (1, 4, 5, metadata, 0)]),
        ("two", [(7, 8, 9, "", 5)]),
    ]
    found: list[Group] = [("first", topics, 0), ("second", topics, 0)]
    raw = library_answer(version, 1, 0, found)
    for length in range(len(raw)):
        with pytest.raises(KafkaProtocolError):
            frames(version).answer(memoryview(raw)[:length])
    with pytest.raises(KafkaProtocolError):
        frames(version).answer(memoryview(raw + b"\0"))


@given(VERSIONS, st.binary(max_size=120))
def test_no_bytes_break_the_reader(version: int, raw: bytes) -> None:
    """An answer that is none is an error of the protocol, whatever it holds."""
    try:
        answer = frames(version).answer(memoryview(raw))
    except KafkaProtocolError:
        return
    assert len(rows(answer)) == len(answer.offset)


@given(VERSIONS, groups(), st.data())
def test_a_damaged_answer_breaks_nothing(
    version: int, found: list[Group], data: st.DataObject
) -> None:
    """One byte is another one: either that is seen, or some value is another one."""
    if version < MANY_SINCE:
        found = [*found, ("", [], 0)][:1]
    raw = bytearray(library_answer(version, 1, 0, found))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        answer = frames(version).answer(memoryview(raw))
    except KafkaProtocolError:
        return
    assert len(rows(answer)) == len(answer.offset)
