"""Our codecs against the library's, byte for byte, in all versions that are spoken.

`tests/fuzz` feeds them bytes that are no answers.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.errors import KafkaProtocolError, KafkaTimeoutError
from kafka.protocol.admin import ListGroupsRequest, ListGroupsResponse
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

from tests.library_messages import request_frame, response_body
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.group_offsets import OFFSET_COMMIT, OFFSET_FETCH
from tsoffset.kafka.groups import LIST_GROUPS
from tsoffset.kafka.log_offsets import LIST_OFFSETS
from tsoffset.kafka.reads import FETCH
from tsoffset.kafka.wire import (
    fetch_codec,
    list_groups_codec,
    list_offsets_codec,
    offset_commit_codec,
    offset_fetch_codec,
)
from tsoffset.kafka.wire.fetch_codec import FetchAnswer, FetchFrames, fetch_answer
from tsoffset.kafka.wire.flexible_encoding import MALFORMED
from tsoffset.kafka.wire.list_groups_codec import ListGroupsCodec
from tsoffset.kafka.wire.list_offsets_codec import ListOffsetsCodec, Lookup
from tsoffset.kafka.wire.offset_commit_codec import CommitPart, OffsetCommitCodec
from tsoffset.kafka.wire.offset_fetch_codec import MANY_SINCE, OffsetFetchAnswer, OffsetFetchCodec
from tsoffset.kafka.wire.share_offsets_codec import (
    AlterShareOffsetsCodec,
    DescribeShareOffsetsCodec,
)
from tsoffset.model import CommittedOffset, GroupListing, GroupType, TopicPartition

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
POSITIVE = st.integers(0, 2**31 - 1)
# Names and lists longer than a varint of one byte can say, too.
NAMES = st.text(max_size=20) | st.text(min_size=120, max_size=249)
SHORT_OR_LONG = st.integers(0, 5) | st.sampled_from([126, 127, 128, 300])
# Two fields: three bytes at tag 0, none at tag 129.
TAGS = bytes([2, 0, 3]) + b"one" + bytes([0x81, 0x01, 0])
NODE = 7


def versions(codec: Any) -> st.SearchStrategy[int]:
    return st.integers(codec.LOWEST, codec.HIGHEST)


def rows_of(row: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Some rows, or one of them many times."""
    return st.builds(
        lambda some, one, times: [*some, *[one] * times],
        *(st.lists(row, max_size=4), row, SHORT_OR_LONG),
    )


def of_topics(row: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    """A row for each partition of a few topics: for a few partitions, or for many the same."""
    few = st.dictionaries(POSITIVE, row, min_size=least, max_size=4)
    many = st.builds(lambda one, times: dict.fromkeys(range(times), one), row, SHORT_OR_LONG)
    return st.dictionaries(NAMES, st.builds(dict.__or__, few, many), max_size=3)


# --- Fetch ------------------------------------------------------------------------------


def fetch_response(number: int = 1, **values: Any) -> bytes:
    given_values = {"error_code": 0, "session_id": 0, "responses": []} | values
    version = fetch_codec.VERSION
    return response_body(FetchResponse, version, number, flexible=False, **given_values)


def fetched(**values: Any) -> list[dict[str, Any]]:
    partition = {"partition_index": 3, "error_code": 0, "preferred_read_replica": -1} | values
    return [{"topic": "topic", "partitions": [partition]}]


@given(
    NAMES,
    st.sampled_from([0, 1]),
    st.lists(st.tuples(POSITIVE, NAMES, INT32, INT32, INT64, INT32, INT32), max_size=5),
)
def test_fetch_requests_are_the_library_s_own(client, isolation_level, asked):
    """Whatever was asked before, whose packed parts are used again."""
    frames = FetchFrames(client, isolation_level)
    for number, topic, partition, epoch, offset, max_bytes, max_wait_ms in asked:
        wanted = {
            "partition": partition,
            "current_leader_epoch": epoch,
            "fetch_offset": offset,
            "log_start_offset": -1,
            "partition_max_bytes": max_bytes,
        }
        assert frames.frame(
            number, topic, partition, epoch, offset, max_bytes, max_wait_ms
        ) == request_frame(
            FetchRequest,
            fetch_codec.VERSION,
            number,
            client,
            replica_id=-1,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=0x7FFFFFFF,
            isolation_level=isolation_level,
            session_id=0,
            session_epoch=-1,
            topics=[{"topic": topic, "partitions": [wanted]}],
            forgotten_topics_data=[],
            rack_id="",
        )


@given(
    POSITIVE,
    POSITIVE,
    st.integers(-1, 100),
    NAMES,
    st.tuples(INT64, INT64, INT64),
    st.none() | st.lists(st.tuples(INT64, INT64), max_size=4),
    st.none() | st.binary(max_size=50),
)
def test_fetch_answers_are_read_as_the_library_writes_them(
    number, throttle_ms, error, topic, marks, aborted, records
):
    """Null and empty lists and records mean the same: nothing."""
    names = ("high_watermark", "last_stable_offset", "log_start_offset")
    [answer] = fetched(
        **dict(zip(names, marks, strict=True)),
        error_code=error,
        records=records,
        aborted_transactions=None
        if aborted is None
        else [{"producer_id": producer, "first_offset": first} for producer, first in aborted],
    )
    raw = fetch_response(
        number, throttle_time_ms=throttle_ms, responses=[answer | {"topic": topic}]
    )
    found = (tuple(aborted or ()), memoryview(records or b""), topic.encode(), 3)
    assert fetch_answer(memoryview(raw)) == FetchAnswer(throttle_ms, error, True, *marks, *found)


def test_a_fetch_answer_without_the_partition_is_told_apart():
    """A broker that throttles leaves out what it has; that is not an empty log."""
    raw = fetch_response(throttle_time_ms=70)
    found = fetch_answer(memoryview(raw))
    assert found == FetchAnswer(70, 0)
    assert found.held_back()
    assert not FetchAnswer(70, 3).held_back()
    assert not FetchAnswer(70, 0, True).held_back()


# --- ListOffsets ------------------------------------------------------------------------

Asked = dict[str, dict[int, tuple[int, int]]]
Found = list[tuple[str, list[tuple[int, int, int, int, int]]]]


def list_offsets(version: int) -> ListOffsetsCodec:
    return ListOffsetsCodec("client", 1, 30_000, version)


def list_offsets_frame(
    client: str, version: int, isolation_level: int, timeout_ms: int, number: int, topics: Asked
) -> bytes:
    names = ("partition_index", "current_leader_epoch", "timestamp")
    return request_frame(
        ListOffsetsRequest,
        version,
        number,
        client,
        replica_id=-1,
        isolation_level=isolation_level,
        timeout_ms=timeout_ms,
        topics=[
            {
                "name": name,
                "partitions": [dict(zip(names, (n, *one), strict=True)) for n, one in rows.items()],
            }
            for name, rows in topics.items()
        ],
    )


def list_offsets_response(version: int, number: int, throttle_ms: int, topics: Found) -> bytes:
    names = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch")
    return response_body(
        ListOffsetsResponse,
        version,
        number,
        flexible=version >= 6,
        throttle_time_ms=throttle_ms,
        topics=[
            {"name": name, "partitions": [dict(zip(names, one, strict=True)) for one in rows]}
            for name, rows in topics
        ],
    )


@given(
    NAMES,
    versions(list_offsets_codec),
    st.sampled_from([0, 1]),
    POSITIVE,
    st.lists(
        st.tuples(POSITIVE, of_topics(st.tuples(INT32, INT64))),
        max_size=3,
    ),
)
def test_list_offsets_requests_are_the_library_s_own(
    client, version, isolation_level, timeout_ms, requests
):
    """Whatever was asked before, whose packed parts are used again."""
    codec = ListOffsetsCodec(client, isolation_level, timeout_ms, version)
    for number, topics in requests:
        asked = {
            topic: {index: Lookup(epoch, ms) for index, (epoch, ms) in rows.items()}
            for topic, rows in topics.items()
        }
        assert codec.encode(asked, number) == list_offsets_frame(
            client, version, isolation_level, timeout_ms, number, topics
        )


@given(
    versions(list_offsets_codec),
    POSITIVE,
    POSITIVE,
    st.lists(st.tuples(NAMES, rows_of(st.tuples(INT32, INT16, INT64, INT64, INT32))), max_size=3),
)
def test_list_offsets_answers_are_read_as_the_library_writes_them(
    version, number, throttle_ms, topics
):
    """All partitions of all topics, errors and what was found alike."""
    raw = list_offsets_response(version, number, throttle_ms, topics)
    answer = list_offsets(version).decode(memoryview(raw))
    assert answer.throttle_time_ms == throttle_ms
    assert answer.topics == tuple((name, tuple(row[:4] for row in rows)) for name, rows in topics)


# --- OffsetCommit -----------------------------------------------------------------------

Commits = dict[str, dict[int, CommittedOffset]]


def offset_commit_response(
    version: int, number: int, throttle_ms: int, topics: dict[str, dict[int, int]]
) -> bytes:
    return response_body(
        OffsetCommitResponse,
        version,
        number,
        throttle_time_ms=throttle_ms,
        topics=[
            {
                "name": name,
                "partitions": [
                    {"partition_index": partition, "error_code": code}
                    for partition, code in errors.items()
                ],
            }
            for name, errors in topics.items()
        ],
    )


@given(
    NAMES,
    versions(offset_commit_codec),
    POSITIVE,
    NAMES,
    of_topics(st.builds(CommittedOffset, st.integers(0, 2**63 - 1), NAMES), 1),
)
def test_offset_commit_requests_are_the_library_s_own(client, version, number, group, topics):
    """As no member, and without leader epochs, which clients of another cluster can get stuck
    on."""
    asked = {
        TopicPartition(topic, partition): commit
        for topic, commits in topics.items()
        for partition, commit in commits.items()
    }
    codec = OffsetCommitCodec(client, version)
    assert codec.encode(CommitPart(group, asked), number) == request_frame(
        OffsetCommitRequest,
        version,
        number,
        client,
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[
            {
                "name": topic,
                "partitions": [
                    {
                        "partition_index": partition,
                        "committed_offset": commit.offset,
                        "committed_leader_epoch": -1,
                        "committed_metadata": commit.metadata,
                    }
                    for partition, commit in commits.items()
                ],
            }
            for topic, commits in topics.items()
        ],
    )


@given(versions(offset_commit_codec), POSITIVE, POSITIVE, of_topics(INT16, 0))
def test_offset_commit_answers_are_read_as_the_library_writes_them(
    version, number, throttle_ms, topics
):
    """Every partition with its error, or that there is none."""
    raw = offset_commit_response(version, number, throttle_ms, topics)
    answer = OffsetCommitCodec("client", version).decode(memoryview(raw))
    assert answer.throttle_time_ms == throttle_ms
    assert answer.error_codes == {
        (topic, partition): code
        for topic, errors in topics.items()
        for partition, code in errors.items()
    }


# --- OffsetFetch ------------------------------------------------------------------------

# Of one partition: index, offset, leader epoch, metadata, error.
Entry = tuple[int, int, int, str | None, int]
# Of one group: name, topics, error.
Group = tuple[str, list[tuple[str, list[Entry]]], int]

_NONE = st.sampled_from(["", None])
_SOME = _NONE | st.text(max_size=20) | st.text(min_size=100, max_size=200)
# Of a topic either nearly all offsets have metadata or errors, or none has.
ENTRIES = st.one_of(
    rows_of(st.tuples(INT32, INT64, INT32, metadata, errors))
    for metadata, errors in product((_NONE, _SOME), (st.just(0), INT16))
)
OFFSETS = st.lists(
    st.tuples(NAMES, st.lists(st.tuples(NAMES, ENTRIES), max_size=3), st.just(0) | INT16),
    max_size=3,
    unique_by=lambda group: group[0],
)


def offset_fetch(version: int, client: str = "client", stable: bool = True) -> OffsetFetchCodec:
    return OffsetFetchCodec(client, Deadline.after(60_000), stable, version)


def offset_fetch_response(version: int, number: int, throttle_ms: int, found: list[Group]) -> bytes:
    """Before version 8 about the first group."""
    names = (
        *("partition_index", "committed_offset", "committed_leader_epoch"),
        *("metadata", "error_code"),
    )
    groups = [
        {
            "topics": [
                {"name": topic, "partitions": [dict(zip(names, one, strict=True)) for one in rows]}
                for topic, rows in topics
            ],
            "error_code": code,
        }
        for _, topics, code in found
    ]
    values: dict[str, Any] = groups[0] if version < MANY_SINCE else {}
    if version >= MANY_SINCE:
        ids = [name for name, _, _ in found]
        values["groups"] = [{"group_id": name} | it for name, it in zip(ids, groups, strict=True)]
    return response_body(
        OffsetFetchResponse, version, number, throttle_time_ms=throttle_ms, **values
    )


def rows(answer: OffsetFetchAnswer) -> list[tuple[int, str, int, int, int, str, int]]:
    metadata = answer.metadata
    columns = (
        *(answer.group, answer.topic, answer.partition, answer.offset),
        *(answer.leader_epoch, answer.error_code),
    )
    return [
        (group, answer.topics[topic], partition, offset, epoch, metadata.get(number, ""), code)
        for number, (group, topic, partition, offset, epoch, code) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        )
    ]


@given(
    NAMES,
    versions(offset_fetch_codec),
    st.booleans(),
    POSITIVE,
    st.lists(NAMES, min_size=1, max_size=200),
)
def test_offset_fetch_requests_are_the_library_s_own(client, version, stable, number, names):
    """For all topics of one group or of many, as no member."""
    many = version >= MANY_SINCE
    groups = [{"group_id": name, "member_id": None, "member_epoch": -1} for name in names]
    asked = names if many else names[:1]
    assert offset_fetch(version, client, stable).encode(asked, number) == request_frame(
        OffsetFetchRequest,
        version,
        number,
        client,
        group_id="" if many else names[0],
        topics=None,
        groups=[{**group, "topics": None} for group in groups],
        require_stable=stable,
    )


@given(versions(offset_fetch_codec), POSITIVE, POSITIVE, OFFSETS)
@example(8, 1, 0, [("g", [("t", [(0, 5, 3, "x" * 126, 0), (1, 6, 3, "y" * 127, 0)])], 0)])
@example(8, 1, 0, [("g", [("t", [(0, 1, 2, None, 0), (1, 3, 4, "m", 0)])] * 2, 0)])
def test_offset_fetch_answers_are_read_as_the_library_writes_them(
    version, number, throttle_ms, found
):
    """All offsets of all groups with their metadata, errors, and what no offset is."""
    if version < MANY_SINCE:
        found = [*found, ("", [], 0)][:1]
    raw = offset_fetch_response(version, number, throttle_ms, found)
    answer = offset_fetch(version).decode(memoryview(raw))
    assert answer.throttle_time_ms == throttle_ms
    assert answer.groups == tuple(
        (None if version < MANY_SINCE else name, code) for name, _, code in found
    )
    assert len(set(answer.topics)) == len(answer.topics)
    assert rows(answer) == [
        (place, topic, partition, offset, epoch, metadata or "", code)
        for place, (_, topics, _) in enumerate(found)
        for topic, entries in topics
        for partition, offset, epoch, metadata, code in entries
    ]


# --- ListGroups -------------------------------------------------------------------------


def list_groups(version: int, client: str = "client", ms: int = 60_000) -> ListGroupsCodec:
    return ListGroupsCodec(client, NODE, Deadline.after(ms), version)


def list_groups_response(
    version: int, throttle_ms: int, code: int, groups: list[tuple[str, str, str, str]]
) -> bytes:
    names = ("group_id", "protocol_type", "group_state", "group_type")
    listed = [dict(zip(names, group, strict=True)) for group in groups]
    return response_body(
        ListGroupsResponse, version, 1, throttle_time_ms=throttle_ms, error_code=code, groups=listed
    )


@given(NAMES, versions(list_groups_codec), POSITIVE)
def test_list_groups_requests_are_the_library_s_own(client, version, number):
    """For all groups, of any state and type."""
    assert list_groups(version, client).encode(NODE, number) == request_frame(
        ListGroupsRequest, version, number, client, states_filter=[], types_filter=[]
    )


@given(
    versions(list_groups_codec),
    POSITIVE,
    INT16,
    st.lists(
        st.tuples(NAMES, NAMES, NAMES, NAMES | st.sampled_from(["Classic", "consumer", "share"])),
        max_size=5,
    ),
)
def test_list_groups_answers_are_read_as_the_library_writes_them(
    version, throttle_ms, code, groups
):
    """States are told since version 4, types since 5; a type of a newer broker is unknown."""
    raw = list_groups_response(version, throttle_ms, code, groups)
    answer = list_groups(version).decode(memoryview(raw))
    assert (answer.throttle_time_ms, answer.error_code) == (throttle_ms, code)
    known = {str(kind): kind for kind in GroupType}
    assert list(answer.groups) == [
        GroupListing(
            group,
            known.get(type_.lower(), GroupType.UNKNOWN) if version >= 5 else GroupType.CLASSIC,
            (state or None) if version >= 4 else None,
            protocol,
            NODE,
        )
        for group, protocol, state, type_ in groups
    ]


def test_no_answer_is_read_for_longer_than_the_call_may_take():
    """While it is read the loop does nothing else: a late one is given up, however right."""
    raw = list_groups_response(5, 0, 0, [("one", "consumer", "Stable", "classic")])
    with pytest.raises(KafkaTimeoutError):
        list_groups(5, ms=0).decode(memoryview(raw))


# --- all of them ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Codec:
    """The versions that are asked for and those that these tests compare; in one of them an answer
    as the library writes it, and our reader."""

    asked: tuple[int, int]
    compared: tuple[int, int]
    written: Callable[[int], bytes]
    read: Callable[[int, memoryview], object]
    # Whether bytes behind the answer are an error.
    ends: bool = True

    @property
    def versions(self) -> range:
        return range(self.asked[0], self.asked[1] + 1)


_OFFSETS: list[tuple[str, list[Entry]]] = [
    ("one", [(0, 1, 2, "", 0), (1, 4, 5, "some", 0)]),
    ("two", [(7, 8, 9, "m" * 150, 5)]),
]
_TWO_GROUPS: list[Group] = [("first", _OFFSETS, 0), ("second", _OFFSETS, 0)]
_FETCHED = fetched(
    high_watermark=9,
    last_stable_offset=9,
    log_start_offset=0,
    aborted_transactions=[{"producer_id": n, "first_offset": n + 1} for n in (1, 3)],
    records=b"r" * 40,
)
CODECS = {
    "Fetch": Codec(
        (FETCH.lowest, FETCH.highest),
        (fetch_codec.VERSION, fetch_codec.VERSION),
        lambda _: fetch_response(throttle_time_ms=0, responses=_FETCHED),
        lambda _, raw: fetch_answer(raw),
        ends=False,
    ),
    "ListOffsets": Codec(
        (LIST_OFFSETS.lowest, LIST_OFFSETS.highest),
        (list_offsets_codec.LOWEST, list_offsets_codec.HIGHEST),
        lambda version: list_offsets_response(
            version, 1, 0, [("one", [(0, 0, 1, 2, 3), (1, 0, 4, 5, 6)]), ("two", [(7, 8, 9, 1, 1)])]
        ),
        lambda version, raw: list_offsets(version).decode(raw),
        ends=False,
    ),
    "OffsetCommit": Codec(
        (OFFSET_COMMIT.lowest, OFFSET_COMMIT.highest),
        (offset_commit_codec.LOWEST, offset_commit_codec.HIGHEST),
        lambda version: offset_commit_response(
            version, 1, 0, {"one": {0: 0, 1: 25}, "two": {7: 0}}
        ),
        lambda version, raw: OffsetCommitCodec("client", version).decode(raw),
    ),
    "OffsetFetch": Codec(
        (OFFSET_FETCH.lowest, OFFSET_FETCH.highest),
        (offset_fetch_codec.LOWEST, offset_fetch_codec.HIGHEST),
        lambda version: offset_fetch_response(version, 1, 0, _TWO_GROUPS),
        lambda version, raw: offset_fetch(version).decode(raw),
    ),
    "ListGroups": Codec(
        (LIST_GROUPS.lowest, LIST_GROUPS.highest),
        (list_groups_codec.LOWEST, list_groups_codec.HIGHEST),
        lambda version: list_groups_response(
            version, 0, 0, [("one", "consumer", "Stable", "classic")] * 2
        ),
        lambda version, raw: list_groups(version).decode(raw),
    ),
}
SPOKEN = [(name, version) for name, codec in CODECS.items() for version in codec.versions]


@pytest.mark.parametrize("name", CODECS)
def test_all_versions_that_are_spoken_are_compared(name):
    """What is negotiated, and what these tests ask for."""
    assert CODECS[name].asked == CODECS[name].compared
    assert OFFSET_FETCH.many_since == MANY_SINCE


@pytest.mark.parametrize(("name", "version"), SPOKEN)
def test_an_answer_that_is_cut_off_is_an_error(name, version):
    """Wherever it ends, and where something lies behind it: nothing is made up."""
    codec = CODECS[name]
    raw = codec.written(version)
    codec.read(version, memoryview(raw))
    for length in range(4, len(raw)):
        with pytest.raises((KafkaProtocolError, *MALFORMED)):
            codec.read(version, memoryview(raw)[:length])
    if codec.ends:
        with pytest.raises(KafkaProtocolError):
            codec.read(version, memoryview(raw + b"\0"))


def tagged_list_offsets() -> bytes:
    row = struct.Struct(">ihqqi")
    found = row.pack(0, 0, 70, 7, 3) + TAGS + row.pack(1, 6, -1, -1, -1) + b"\0"
    return b"\2\6topic\3" + found + TAGS + TAGS


def tagged_offset_commit() -> bytes:
    row = struct.Struct(">ih")
    found = row.pack(0, 0) + TAGS + row.pack(1, 25) + b"\0" + row.pack(2, 0) + TAGS
    return b"\2\6topic\4" + found + TAGS + TAGS


def tagged_offset_fetch(version: int) -> bytes:
    row, code = struct.Struct(">iqi"), struct.Struct(">h")
    found = (
        *(row.pack(0, 70, 7), b"\1", code.pack(0), TAGS),
        *(row.pack(1, 71, 7), b"\4abc", code.pack(0), TAGS),
        *(row.pack(2, -1, -1), b"\0", code.pack(3), b"\0"),
        *(row.pack(3, 73, 7), b"\2d", code.pack(0), b"\0"),
    )
    of_group = b"\2\6topic\5" + b"".join(found) + TAGS + code.pack(0) + TAGS
    return b"\2\6group" + of_group + TAGS if version >= MANY_SINCE else of_group


def answer_of(name: str, version: int, content: bytes) -> Any:
    """Of an answer that is throttled by 40 ms and has tagged fields in its header."""
    raw = struct.pack(">i", 1) + TAGS + struct.pack(">i", 40) + content
    answer: Any = CODECS[name].read(version, memoryview(raw))
    assert answer.throttle_time_ms == 40
    return answer


def test_tagged_fields_that_nobody_asked_for_are_passed_over():
    """A newer broker may add some anywhere: to the header, a partition, a topic, a group, the
    whole."""
    for version in range(6, list_offsets_codec.HIGHEST + 1):
        found = answer_of("ListOffsets", version, tagged_list_offsets())
        assert found.topics == (("topic", ((0, 0, 70, 7), (1, 6, -1, -1))),)
    found = answer_of("OffsetCommit", offset_commit_codec.HIGHEST, tagged_offset_commit())
    assert found.error_codes == {("topic", 0): 0, ("topic", 1): 25, ("topic", 2): 0}
    for version in CODECS["OffsetFetch"].versions:
        found = answer_of("OffsetFetch", version, tagged_offset_fetch(version))
        assert found.groups == (("group" if version >= MANY_SINCE else None, 0),)
        assert rows(found) == [
            (0, "topic", 0, 70, 7, "", 0),
            (0, "topic", 1, 71, 7, "abc", 0),
            (0, "topic", 2, -1, -1, "", 3),
            (0, "topic", 3, 73, 7, "d", 0),
        ]


# --- share groups, whose answers are made by hand (the contract suite asks real brokers) ------

HEAD = struct.pack(">i", 1) + TAGS + struct.pack(">i", 40)
TOPIC = b"\6topic" + bytes(16)


@pytest.mark.parametrize("version", [0, 1])
def test_start_offsets_lags_and_errors_are_read(version):
    """The lag comes with version 1. Errors have messages or none, a group that does not exist has
    no offsets, and fields of newer brokers are passed over."""

    def partition(number, start, lag, error, message):
        lags = struct.pack(">q", lag) if version else b""
        begin = struct.pack(">iqi", number, start, 0)
        return begin + lags + struct.pack(">h", error) + message + TAGS

    partitions = partition(0, 7, 3, 0, b"\0") + partition(1, -1, -1, 29, b"\4why")
    one = b"\4one" + b"\2" + TOPIC + b"\3" + partitions + TAGS + struct.pack(">h", 0) + b"\0" + TAGS
    gone = b"\5gone" + b"\1" + struct.pack(">h", 69) + b"\3no" + TAGS
    refused = b"\3no" + b"\1" + struct.pack(">h", 30) + b"\0" + TAGS
    frame = memoryview(HEAD + b"\4" + one + gone + refused + TAGS)
    codec = DescribeShareOffsetsCodec("client", Deadline.after(60_000), version)
    found = codec.decode(frame)
    assert found.throttle_time_ms == 40
    assert found.groups == (("one", 0), ("gone", 0), ("no", 30))
    assert found.topics == ("topic",)
    columns = (found.group, found.topic, found.partition, found.offset, found.error_code)
    assert [column.tolist() for column in columns] == [[0, 0], [0, 0], [0, 1], [7, -1], [0, 29]]
    assert (None if found.lag is None else found.lag.tolist()) == ([3, -1] if version else None)
    for end in range(len(frame)):
        with pytest.raises((KafkaProtocolError, *MALFORMED)):
            codec.decode(frame[:end])


def test_an_answer_without_partitions_has_the_error_of_all():
    """A group with members refuses as a whole; else each partition has its own error."""
    whole = HEAD + struct.pack(">h", 68) + b"\4why" + b"\1" + TAGS
    decode = AlterShareOffsetsCodec("client", 0).decode
    assert decode(memoryview(whole)) == (40, {}, 68)
    rows = struct.pack(">ih", 0, 0) + b"\0" + TAGS + struct.pack(">ih", 9, 3) + b"\4why" + TAGS
    parts = HEAD + struct.pack(">h", 0) + b"\0" + b"\2" + TOPIC + b"\3" + rows + TAGS + TAGS
    found = decode(memoryview(parts))
    assert found == (40, {("topic", 0): 0, ("topic", 9): 3}, 0)
    for end in range(len(parts)):
        with pytest.raises((KafkaProtocolError, *MALFORMED)):
            decode(memoryview(parts)[:end])
