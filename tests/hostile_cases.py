"""What hostile brokers do, as a table: each case with what comes of it for the group it is about.

`kafka/test_hostile_brokers.py` plays each; `python -m tests.hostile_cases` writes the table of
docs/reliability.md anew.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial as bound
from pathlib import Path
from typing import Any

import lz4.frame
import zstandard
from kafka.codec import gzip_encode, snappy_encode

from tests.hostile_broker import (
    API_VERSIONS,
    CONNECT,
    FETCH,
    FIND_COORDINATOR,
    LIST_GROUPS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    Asked,
    Lie,
    broker,
    partition,
)
from tests.kafka.test_records import (
    ATTRIBUTES_AT,
    CODECS,
    CRC_AT,
    RECORDS_AT,
    old,
    sealed,
    sent,
)
from tsoffset.kafka.wire.flexible_encoding import unsigned

CALM, HIT = "g4", "g0"
"""Groups whose coordinators are broker 0 and broker 1."""
QUIET, VICTIM = "orders", "victim"
"""Topics whose leaders are broker 0 and broker 1; the copies have a prefix."""

PAGE = Path(__file__).parent.parent / "docs" / "reliability.md"
BEGIN, END = "<!-- hostile brokers -->\n", "<!-- end of hostile brokers -->\n"

_LENGTH_AT, _MAGIC_AT, _LAST_DELTA_AT, _COUNT_AT = 8, 16, 23, 57
_FOR_EVER = 2**63 - 1
_DAYS_MS = 2**31 - 1
_BOMB = 40 << 20


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that a broker does, where asked for `api`.

    `source` and `target` are what becomes of the group `HIT` where a broker of that cluster does
    it, None where it is not played. With `everybody` it takes the other group, too; one that
    `waits` is played by `make test-all`.
    """

    does: str
    api: int
    lie: Lie
    source: str | None
    target: str | None = None
    everybody: bool = False
    waits: bool = False

    @property
    def node(self) -> int | None:
        """The broker that does it; either (None) of what any broker may be asked."""
        return None if self.api in (METADATA, FIND_COORDINATOR) else 1


# --- of any answer ------------------------------------------------------------------------


def silent(asked: Asked) -> None:
    asked.wait(60)


def closed(_: Asked) -> None:
    return None


def says(data: bytes, asked: Asked) -> bytes:
    asked.wait(0.02)  # so that it is read before the connection ends
    return data


def half(asked: Asked) -> bytes:
    """Half of the answer, and no more for as long as somebody waits."""
    frame = asked.frame()
    return frame[: len(frame) // 2]


def cut_off(asked: Asked) -> bytes | None:
    """Half of the answer, and the end."""
    asked.send(half(asked))
    return None


def shortened(asked: Asked) -> bytes:
    """A whole frame with half of the answer in it."""
    frame = asked.frame()
    body = frame[4 : max(8, len(frame) // 2)]
    return struct.pack(">i", len(body)) + body


def lengthened(asked: Asked) -> bytes:
    frame = asked.frame()[4:] + b"\1" * 20
    return struct.pack(">i", len(frame)) + frame


def slow(asked: Asked) -> bytes:
    """A byte now and then."""
    frame = asked.frame()
    for number in range(40):
        asked.send(frame[number : number + 1])
        asked.wait(0.05)
    return frame[40:]


def wrong_id(asked: Asked) -> bytes:
    asked.correlation_id ^= 0x55
    return asked.frame()


def twice(asked: Asked) -> bytes:
    return asked.frame() * 2


def body_of(content: bytes, asked: Asked) -> bytes:
    """A frame with the right id and then this."""
    return struct.pack(">ii", 4 + len(content), asked.correlation_id) + content


def changed(change: Callable[[Any], None], asked: Asked) -> bytes:
    """The answer with something else in it."""
    change(asked.answer)
    return asked.frame()


def throttled(milliseconds: int, asked: Asked) -> bytes:
    asked.answer.throttle_time_ms = milliseconds
    return asked.frame()


def throttled_emptily(asked: Asked) -> bytes:
    asked.answer.throttle_time_ms = _DAYS_MS
    asked.answer.responses = []
    return asked.frame()


# --- of one kind of answer ----------------------------------------------------------------


def change(does: Callable[[Any], None]) -> Lie:
    return bound(changed, does)


def unsupported(asked: Asked) -> bytes:
    """As brokers answer a version that they do not know."""
    asked.version, asked.answer.error_code = 0, 35
    return asked.frame()


def versions(lowest: int, highest: int) -> Lie:
    def change_all(answer: Any) -> None:
        for each in answer.api_keys:
            each.min_version, each.max_version = lowest, highest

    return change(change_all)


def brokers(*made: Callable[[Asked], Any]) -> Lie:
    """Metadata that names broker 1 so."""

    def lie(asked: Asked) -> bytes:
        asked.answer.brokers = [asked.answer.brokers[0], *(each(asked) for each in made)]
        return asked.frame()

    return lie


def at(port: int, host: str = "127.0.0.1") -> Callable[[Asked], Any]:
    return lambda _: broker(1, port, host)


def no_broker(answer: Any) -> None:
    answer.brokers = []


def many_brokers(answer: Any) -> None:
    answer.brokers = [*answer.brokers, *(broker(n, 1) for n in range(2, 10_000))]


def itself(asked: Asked) -> bytes:
    """One address for all brokers."""
    asked.answer.brokers = [broker(node, asked.brokers.ports[0]) for node in (0, 1)]
    return asked.frame()


def of_victim(does: Callable[[Any], None]) -> Lie:
    """Of the victim's topic in Metadata."""

    def change_topic(answer: Any) -> None:
        for topic in answer.topics:
            if topic.name.endswith(VICTIM):
                does(topic)

    return change(change_topic)


def led_by(leader: int) -> Lie:
    def change_leader(topic: Any) -> None:
        topic.partitions = [partition(each.partition_index, leader) for each in topic.partitions]

    return of_victim(change_leader)


def numbered(*numbers: int) -> Lie:
    def change_numbers(topic: Any) -> None:
        topic.partitions = [partition(each, 1) for each in numbers]

    return of_victim(change_numbers)


def refused(code: int) -> Lie:
    def change_code(topic: Any) -> None:
        topic.error_code, topic.partitions = code, []

    return of_victim(change_code)


def without_name(topic: Any) -> None:
    topic.name = None


def more_topics(asked: Asked) -> bytes:
    topics = asked.answer.topics
    if topics:
        made = type(topics[0])
        same = {"error_code": 0, "topic_id": topics[0].topic_id, "is_internal": False}
        extra = [partition(0, 0)]
        topics += [made(name=f"more-{n}", partitions=extra, **same) for n in range(1_000)]
    return asked.frame()


def other_cluster(answer: Any) -> None:
    answer.cluster_id = "another"


def renamed(api_name: bytes, other: bytes) -> Lie:
    """The same bytes for a name, whatever they are."""

    def lie(asked: Asked) -> bytes:
        return asked.frame().replace(api_name, other)

    return lie


def of_coordinator(does: Callable[[Any], None]) -> Lie:
    def change_coordinator(answer: Any) -> None:
        for each in answer.coordinators:
            if each.key == HIT:
                does(each)

    return change(change_coordinator)


def set_to(**fields: Any) -> Callable[[Any], None]:
    def change_fields(item: Any) -> None:
        for name, value in fields.items():
            setattr(item, name, value)

    return change_fields


def coordinators(*names: str) -> Callable[[Any], None]:
    def leave(answer: Any) -> None:
        answer.coordinators = [each for each in answer.coordinators if each.key in names]

    return leave


def add_groups(answer: Any) -> None:
    made = type(answer).ListedGroup
    kind = {"protocol_type": "consumer", "group_state": "Empty", "group_type": "classic"}
    for name in ("", "g" * 255, "token" * 2_000, "g\u00fcnter \u2603\n\x1b[31m", HIT):
        answer.groups.append(made(group_id=name, **kind))


def many_groups(asked: Asked) -> bytes:
    """All right, and as many as an answer may hold."""
    count = len(asked.answer.groups)
    frame = asked.frame()[8:]
    begin = frame.index(bytes((count + 1,)), 7)
    end = len(frame) - 1
    name = b"\6ghost\1\1\1\0"
    listed = unsigned(count + _MANY_GROUPS + 1) + frame[begin + 1 : end] + name * _MANY_GROUPS
    return body_of(frame[:begin] + listed + frame[end:], asked)


def of_offsets(does: Callable[[Any], None]) -> Lie:
    """Of each offset in an OffsetFetch answer."""

    def change_offsets(answer: Any) -> None:
        for group in answer.groups:
            for topic in group.topics:
                for each in topic.partitions:
                    does(each)

    return change(change_offsets)


def of_group(does: Callable[[Any], None]) -> Lie:
    def change_groups(answer: Any) -> None:
        for group in answer.groups:
            does(group)

    return change(change_groups)


def of_the_other(asked: Asked) -> bytes:
    """The offsets of its own group as those of broker 0's, which has answered by then."""
    asked.wait(0.05)
    return of_group(set_to(group_id=CALM))(asked) or b""


def of_lookup(does: Callable[[Any], None]) -> Lie:
    """Of each partition in a ListOffsets or OffsetCommit answer."""

    def change_partitions(answer: Any) -> None:
        for topic in answer.topics:
            for each in topic.partitions:
                does(each)

    return change(change_partitions)


def backwards(asked: Asked) -> bytes:
    """A log that starts where it ends, and ends where it starts."""
    [asked_topic] = asked.request.topics
    if asked_topic.partitions[0].timestamp < 0:
        found = asked.answer.topics[0].partitions[0]
        found.offset = 1_000 if asked_topic.partitions[0].timestamp == -2 else 3
    return asked.frame()


def of_fetch(does: Callable[[Any], None]) -> Lie:
    """Of the one partition in a Fetch answer."""

    def change_partition(answer: Any) -> None:
        does(answer.responses[0].partitions[0])

    return change(change_partition)


def records(does: Callable[[bytearray], bytes | bytearray]) -> Lie:
    """Of the batches in a Fetch answer, where there are any."""

    def change_records(found: Any) -> None:
        if found.records:
            found.records = bytes(does(bytearray(found.records)))

    return of_fetch(change_records)


def poke(layout: str, at: int, value: int, *, seal: bool = True) -> Lie:
    """Another number in the first batch, under a checksum that holds."""

    def does(raw: bytearray) -> bytearray:
        raw = raw[: 12 + struct.unpack_from(">i", raw, _LENGTH_AT)[0]]
        struct.pack_into(layout, raw, at, value)
        return sealed(raw) if seal else raw

    return records(does)


def content(made: Callable[[bytes], bytes], codec: str = "none") -> Lie:
    """What a batch holds, packed or not, as something else."""

    def does(raw: bytearray) -> bytearray:
        raw = raw[: 12 + struct.unpack_from(">i", raw, _LENGTH_AT)[0]]
        return refilled(raw, made(bytes(raw[RECORDS_AT:])), codec)

    return records(does)


def refilled(raw: bytearray, held: bytes, codec: str) -> bytearray:
    """The header of a batch over something else."""
    raw = raw[:RECORDS_AT] + held
    struct.pack_into(">i", raw, _LENGTH_AT, len(raw) - 12)
    struct.pack_into(">h", raw, ATTRIBUTES_AT, CODECS[codec])
    return sealed(raw)


def snappy_bomb() -> bytes:
    # A copy of 64 bytes takes three: the format itself packs twentyfold at most.
    return bytes.fromhex("ffffffff0f") + b"\0a" + b"\xfe\1\0" * 20_000


_PACKED: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": gzip_encode,
    "snappy": snappy_encode,
    "lz4": lz4.frame.compress,
    "zstd": zstandard.compress,
}


def bomb(codec: str) -> Lie:
    made = snappy_bomb() if codec == "snappy" else _PACKED[codec](bytes(_BOMB))
    return content(lambda _: made, codec)


def truncated(codec: str) -> Lie:
    return content(lambda held: _PACKED[codec](held)[:-9], codec)


def many_bombs(raw: bytearray) -> bytes:
    """Small batches of which each unpacks to 30 MB, as many as a fetch has room for."""
    (base_offset,) = struct.unpack_from(">q", raw)
    packed = zstandard.compress((b"\xbe\1" + bytes(95)) * 300_000)
    found = b""
    for number in range(20):
        one = refilled(raw, packed, "zstd")
        struct.pack_into(">q", one, 0, base_offset + number * 300_000)
        struct.pack_into(">i", one, _LAST_DELTA_AT, 299_999)
        struct.pack_into(">i", one, _COUNT_AT, 300_000)
        found += sealed(one)
    return found


def overlapping(raw: bytearray) -> bytearray:
    raw = raw[: 12 + struct.unpack_from(">i", raw, _LENGTH_AT)[0]]
    return raw + raw


def earlier(raw: bytearray) -> bytearray:
    """A batch that ends before the offset that was asked for."""
    raw = raw[: 12 + struct.unpack_from(">i", raw, _LENGTH_AT)[0]]
    struct.pack_into(">q", raw, 0, max(0, struct.unpack_from(">q", raw)[0] - 20))
    return raw


def empty_batches(raw: bytearray) -> bytes:
    """A batch as compaction leaves it, without any record, for each offset."""
    (base_offset,) = struct.unpack_from(">q", raw)
    one = refilled(raw, b"", "none")
    struct.pack_into(">i", one, _LAST_DELTA_AT, 0)
    struct.pack_into(">i", one, _COUNT_AT, 0)
    return b"".join(bytes(struct.pack(">q", base_offset + n) + sealed(one)[8:]) for n in range(3))


def old_format(does: Callable[[bytearray], None]) -> Lie:
    def lie(raw: bytearray) -> bytearray:
        made = old(1, "none", sent(5), struct.unpack_from(">q", raw)[0])
        does(made)
        return made

    return records(lie)


def old_length(raw: bytearray) -> None:
    struct.pack_into(">i", raw, 34, 2**31 - 1)


def elsewhere(topic: str, number: int) -> Lie:
    """The answer for another partition."""

    def change_place(answer: Any) -> None:
        answer.responses[0].topic = topic
        answer.responses[0].partitions[0].partition_index = number

    return change(change_place)


def sized(size: int) -> Lie:
    """A Fetch answer that says another size of its records."""

    def lie(asked: Asked) -> bytes:
        frame = bytearray(asked.frame())
        records = asked.answer.responses[0].partitions[0].records
        struct.pack_into(">i", frame, len(frame) - len(records) - 4, size)
        return bytes(frame)

    return lie


def aborted(count: int) -> Lie:
    """A Fetch answer that says it lists so many aborted transactions."""

    def lie(asked: Asked) -> bytes:
        frame = bytearray(asked.frame())
        records = asked.answer.responses[0].partitions[0].records
        struct.pack_into(">i", frame, len(frame) - len(records) - 12, count)
        return bytes(frame)

    return lie


_HUGE = 2**31 - 1
_VAST = 40_000_000
_MANY_GROUPS = 1_500_000
_HUGE_COMPACT = b"\xff\xff\xff\xff\x0f"
_COUNTED = unsigned(5_000_001)
_SILENCE = "failed TIMEOUT"
_NONE = "failed UNREACHABLE or failed TIMEOUT"
_NO_KAFKA = "failed INTERNAL"
_DAMAGE = "failed CORRUPT_BATCH"
_ALL = "cluster unreachable"
_WELL = "committed"
_OLD = "failed UNSUPPORTED_VERSION"

CASES = (
    # --- connections
    Case("accepts connections and never answers", CONNECT, silent, _SILENCE, _SILENCE),
    Case("closes each connection at once", CONNECT, closed, _NONE, _NONE, waits=True),
    Case(
        "answers with HTTP",
        CONNECT,
        bound(says, b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
        _NONE,
        _NONE,
        waits=True,
    ),
    Case("announces an answer of -1 bytes", CONNECT, bound(says, b"\xff" * 4), _NONE, waits=True),
    Case(
        "rejects each ApiVersions with UNSUPPORTED_VERSION",
        API_VERSIONS,
        unsupported,
        _SILENCE,
        _SILENCE,
    ),
    Case(
        "announces 2,147,483,647 requests in ApiVersions",
        API_VERSIONS,
        bound(body_of, struct.pack(">h", 0) + _HUGE_COMPACT),
        _NONE,
        waits=True,
    ),
    Case(
        "lists 5,000,000 requests in ApiVersions",
        API_VERSIONS,
        bound(body_of, struct.pack(">h", 0) + _COUNTED + bytes(_VAST)),
        _NONE,
        waits=True,
    ),
    Case("supports only version 0 of each request", API_VERSIONS, versions(0, 0), _OLD),
    Case("has a lowest version above the highest", API_VERSIONS, versions(32_767, -1), _OLD),
    Case("stops in the middle of ApiVersions", API_VERSIONS, half, _SILENCE, waits=True),
    Case(
        "throttles for 24 days after ApiVersions", API_VERSIONS, bound(throttled, _DAYS_MS), _WELL
    ),
    # --- metadata
    Case("lists no broker", METADATA, change(no_broker), _ALL, _ALL),
    Case("gives port 0 for a broker", METADATA, brokers(at(0)), _NONE, _NONE),
    Case("gives port 70000", METADATA, brokers(at(70_000)), _NONE, _NONE, waits=True),
    Case("gives port -1", METADATA, brokers(at(-1)), _NONE, waits=True),
    Case("gives an empty host", METADATA, brokers(at(9092, "")), _NONE, waits=True),
    Case(
        "gives a host of 10,000 letters",
        METADATA,
        brokers(at(9092, "token" * 2_000)),
        _NONE,
        waits=True,
    ),
    Case("gives `a\\0b` as a host", METADATA, brokers(at(9092, "a\0b")), _NONE, waits=True),
    Case("gives one address for all brokers", METADATA, itself, _WELL),
    Case(
        "lists 10,000 brokers",
        METADATA,
        change(many_brokers),
        "committed or failed UNREACHABLE or failed TIMEOUT or cluster unreachable",
        everybody=True,
        waits=True,
    ),
    Case(
        "gives a leader that is not in the list of brokers",
        METADATA,
        led_by(42),
        _NONE,
        _NONE,
        waits=True,
    ),
    Case("gives broker -7 as a leader", METADATA, led_by(-7), "failed NO_LEADER", waits=True),
    Case(
        "numbers partitions -3 and 2147483647",
        METADATA,
        numbered(-3, _HUGE),
        "failed NO_LEADER",
        "skipped TARGET_MISSING",
    ),
    Case("lists a partition three times", METADATA, numbered(0, 0, 0), _WELL),
    Case(
        "reports a topic with an unknown error code",
        METADATA,
        refused(999),
        _NO_KAFKA,
        _NO_KAFKA,
    ),
    Case(
        "gives a topic the name null",
        METADATA,
        of_victim(without_name),
        "failed NO_LEADER",
        waits=True,
    ),
    Case("lists 1,000 topics that were not requested", METADATA, more_topics, _WELL),
    Case("gives another cluster id", METADATA, change(other_cluster), _WELL),
    Case("stops in the middle of Metadata", METADATA, half, _ALL),
    Case("sends only half of Metadata in a complete frame", METADATA, shortened, _ALL, _ALL),
    Case("answers Metadata with invalid bytes", METADATA, bound(body_of, b"\xff" * 64), _ALL),
    Case("sends null as the list of topics", METADATA, change(set_to(topics=None)), _ALL),
    Case(
        "sends null as a topic's list of partitions",
        METADATA,
        of_victim(set_to(partitions=None)),
        _NONE,
        everybody=True,
    ),
    Case(
        "sends a topic's name in invalid UTF-8",
        METADATA,
        renamed(b"victim", b"vic\xfftim"[:6]),
        _NONE,
        everybody=True,
        waits=True,
    ),
    # --- groups
    Case(
        "gives a coordinator that is not in the list of brokers",
        FIND_COORDINATOR,
        of_coordinator(set_to(node_id=42)),
        _NONE,
        _NONE,
        waits=True,
    ),
    Case(
        "gives broker -7 as a coordinator",
        FIND_COORDINATOR,
        of_coordinator(set_to(node_id=-7)),
        "failed COORDINATOR",
        waits=True,
    ),
    Case(
        "refuses FindCoordinator with an unknown error code",
        FIND_COORDINATOR,
        of_coordinator(set_to(error_code=999)),
        _NO_KAFKA,
        _NO_KAFKA,
    ),
    Case(
        "sends null as the list of coordinators",
        FIND_COORDINATOR,
        change(set_to(coordinators=None)),
        _NO_KAFKA,
        everybody=True,
    ),
    Case(
        "omits a group's coordinator",
        FIND_COORDINATOR,
        change(coordinators(CALM)),
        _SILENCE,
        waits=True,
    ),
    Case(
        "lists groups with odd names, and one twice", LIST_GROUPS, change(add_groups), _WELL, _WELL
    ),
    Case(
        "refuses to list groups",
        LIST_GROUPS,
        change(set_to(error_code=-1)),
        "committed and failed INTERNAL",
    ),
    Case(
        "answers ListGroups with 40 MB",
        LIST_GROUPS,
        bound(body_of, bytes(_VAST)),
        "committed and failed INTERNAL",
    ),
    Case(
        "lists 1,500,000 groups",
        LIST_GROUPS,
        many_groups,
        "committed or failed TIMEOUT",
        everybody=True,
        waits=True,
    ),
    Case(
        "answers ListGroups with invalid bytes",
        LIST_GROUPS,
        bound(body_of, _HUGE_COMPACT * 9),
        "committed and failed INTERNAL",
    ),
    Case(
        "answers OffsetFetch with invalid bytes",
        OFFSET_FETCH,
        bound(body_of, b"\xff" * 64),
        _NO_KAFKA,
        _NO_KAFKA,
    ),
    Case(
        "announces 2,147,483,647 groups in OffsetFetch",
        OFFSET_FETCH,
        bound(body_of, bytes(5) + _HUGE_COMPACT),
        _NO_KAFKA,
    ),
    Case(
        "sends only half of OffsetFetch in a complete frame",
        OFFSET_FETCH,
        shortened,
        _NO_KAFKA,
        _NO_KAFKA,
    ),
    Case("adds 20 bytes to OffsetFetch", OFFSET_FETCH, lengthened, _NO_KAFKA),
    Case(
        "says a group has committed -5",
        OFFSET_FETCH,
        of_offsets(set_to(committed_offset=-5)),
        "no row",
    ),
    Case(
        "says a group has committed 2^63-1",
        OFFSET_FETCH,
        of_offsets(set_to(committed_offset=_FOR_EVER)),
        "skipped PAST_LOG_END",
    ),
    Case(
        "says a group has committed in partition -1",
        OFFSET_FETCH,
        of_offsets(set_to(partition_index=-1)),
        "no row",
    ),
    Case(
        "refuses an offset with an unknown error code",
        OFFSET_FETCH,
        of_offsets(set_to(error_code=999)),
        _NO_KAFKA,
        None,
    ),
    Case(
        "answers OffsetFetch for another group",
        OFFSET_FETCH,
        of_group(set_to(group_id="stranger")),
        _SILENCE,
        _SILENCE,
    ),
    Case(
        "answers OffsetFetch for the other broker's group, after that broker has",
        OFFSET_FETCH,
        of_the_other,
        _SILENCE,
        waits=True,
    ),
    Case(
        "throttles for 24 days after OffsetFetch", OFFSET_FETCH, bound(throttled, _DAYS_MS), _WELL
    ),
    # --- lookups
    Case(
        "answers ListOffsets with invalid bytes",
        LIST_OFFSETS,
        bound(body_of, b"\xff" * 64),
        _NO_KAFKA,
        _NO_KAFKA,
    ),
    Case("sends only half of ListOffsets in a complete frame", LIST_OFFSETS, shortened, _NO_KAFKA),
    Case(
        "answers ListOffsets for another partition",
        LIST_OFFSETS,
        of_lookup(set_to(partition_index=5)),
        _SILENCE,
        _SILENCE,
        waits=True,
    ),
    Case(
        "says logs begin and end at -9",
        LIST_OFFSETS,
        of_lookup(set_to(offset=-9)),
        _NO_KAFKA,
        _NO_KAFKA,
    ),
    Case(
        "says logs begin and end at 2^63-1",
        LIST_OFFSETS,
        of_lookup(set_to(offset=_FOR_EVER)),
        _NO_KAFKA,
        _NO_KAFKA,
    ),
    Case("says a log ends before it begins", LIST_OFFSETS, backwards, _NO_KAFKA),
    Case("gives negative timestamps", LIST_OFFSETS, of_lookup(set_to(timestamp=-9)), _WELL, _WELL),
    # --- fetches
    Case(
        "answers Fetch with invalid bytes",
        FETCH,
        bound(body_of, b"\xff" * 64),
        _NO_KAFKA,
        _NO_KAFKA,
    ),
    Case("answers Fetch with an empty frame", FETCH, bound(body_of, b""), _NO_KAFKA, _NO_KAFKA),
    Case("sends only half of Fetch in a complete frame", FETCH, shortened, _NO_KAFKA, _NO_KAFKA),
    Case("closes the connection in the middle of Fetch", FETCH, cut_off, _NONE, _NONE, waits=True),
    Case("stops in the middle of Fetch", FETCH, half, _SILENCE, _SILENCE),
    Case("sends Fetch byte by byte", FETCH, slow, _SILENCE, None, waits=True),
    Case("never answers Fetch", FETCH, silent, _SILENCE, _SILENCE, waits=True),
    Case("answers Fetch with another correlation id", FETCH, wrong_id, _NONE, _NONE),
    Case("answers each Fetch twice", FETCH, twice, _WELL, _WELL),
    Case(
        "announces a frame of 2 GB", FETCH, bound(says, b"\x7f\xff\xff\xff"), _NO_KAFKA, _NO_KAFKA
    ),
    Case("announces a frame of -1 bytes", FETCH, bound(says, b"\xff" * 4), _NO_KAFKA),
    Case("sends a frame of 3 bytes", FETCH, bound(says, b"\0\0\0\3abc"), _NO_KAFKA),
    Case("throttles for 24 days after each Fetch", FETCH, bound(throttled, _DAYS_MS), _WELL, _WELL),
    Case(
        "throttles for 24 days instead of answering Fetch",
        FETCH,
        throttled_emptily,
        _SILENCE,
        _SILENCE,
        waits=True,
    ),
    Case("throttles for -1 ms", FETCH, bound(throttled, -1), _WELL, _WELL),
    Case(
        "refuses Fetch with an unknown error code",
        FETCH,
        of_fetch(set_to(error_code=999)),
        _NO_KAFKA,
        _NO_KAFKA,
    ),
    Case(
        "refuses Fetch with UNKNOWN_SERVER_ERROR",
        FETCH,
        of_fetch(set_to(error_code=-1)),
        _NO_KAFKA,
        None,
    ),
    Case("answers Fetch for another partition", FETCH, elsewhere(VICTIM, 1), _NO_KAFKA, _NO_KAFKA),
    Case("answers Fetch for another topic", FETCH, elsewhere("other", 0), _NO_KAFKA, _NO_KAFKA),
    Case(
        "returns no records below the log end",
        FETCH,
        of_fetch(set_to(records=b"")),
        _SILENCE,
        _SILENCE,
    ),
    Case(
        "gives -1 as high watermark",
        FETCH,
        of_fetch(set_to(high_watermark=-1, last_stable_offset=-1)),
        _NO_KAFKA,
        _NO_KAFKA,
    ),
    Case(
        "says the log starts at 2^63-1",
        FETCH,
        of_fetch(set_to(log_start_offset=_FOR_EVER)),
        _NO_KAFKA,
        _NO_KAFKA,
    ),
    Case("announces -5 bytes of records", FETCH, sized(-5), _SILENCE, _SILENCE),
    Case("announces 2 GB of records", FETCH, sized(_HUGE), _NO_KAFKA, _NO_KAFKA),
    Case(
        "announces 2,147,483,647 aborted transactions", FETCH, aborted(_HUGE), _NO_KAFKA, _NO_KAFKA
    ),
    # --- batches
    Case(
        "sends batches whose checksum is wrong",
        FETCH,
        poke(">I", CRC_AT, 1, seal=False),
        _DAMAGE,
        _DAMAGE,
    ),
    Case(
        "sends batches of -1 bytes", FETCH, poke(">i", _LENGTH_AT, -1, seal=False), _DAMAGE, _DAMAGE
    ),
    Case(
        "sends batches of 10 bytes", FETCH, poke(">i", _LENGTH_AT, 10, seal=False), _DAMAGE, _DAMAGE
    ),
    Case(
        "sends batches of 2 GB that never end",
        FETCH,
        poke(">i", _LENGTH_AT, _HUGE, seal=False),
        _SILENCE,
        _SILENCE,
    ),
    Case(
        "sends batches of message format 9", FETCH, poke(">b", _MAGIC_AT, 9, seal=False), _OLD, _OLD
    ),
    Case("sends batches with compression type 7", FETCH, poke(">h", ATTRIBUTES_AT, 7), _OLD, _OLD),
    *(
        Case(f"sends {codec} that is truncated", FETCH, truncated(codec), _DAMAGE, _DAMAGE)
        for codec in _PACKED
    ),
    *(
        Case(f"sends {codec} that unpacks to 400 MB", FETCH, bomb(codec), _DAMAGE, _DAMAGE)
        for codec in _PACKED
    ),
    Case(
        "sends 20 batches that unpack to 29 MB each", FETCH, records(many_bombs), _DAMAGE, _DAMAGE
    ),
    Case("sends each batch twice", FETCH, records(overlapping), _WELL, _WELL),
    Case(
        "sends batches from before the requested offset",
        FETCH,
        records(earlier),
        _SILENCE,
        _SILENCE,
    ),
    Case(
        "sends batches at 2^63-1", FETCH, poke(">q", 0, _FOR_EVER, seal=False), _SILENCE, _SILENCE
    ),
    Case("sends batches at -1", FETCH, poke(">q", 0, -1, seal=False), _DAMAGE, _DAMAGE),
    Case(
        "sends batches that end before they begin",
        FETCH,
        poke(">i", _LAST_DELTA_AT, -1),
        _DAMAGE,
        _DAMAGE,
    ),
    Case(
        "sends batches over two billion offsets",
        FETCH,
        poke(">i", _LAST_DELTA_AT, _HUGE),
        _DAMAGE,
        _DAMAGE,
    ),
    Case(
        "sends batches with more records than offsets",
        FETCH,
        poke(">i", _LAST_DELTA_AT, 4),
        _DAMAGE,
        _DAMAGE,
    ),
    Case(
        "counts 20 records where there are 10", FETCH, poke(">i", _COUNT_AT, 20), _DAMAGE, _DAMAGE
    ),
    Case("counts 3 records where there are 10", FETCH, poke(">i", _COUNT_AT, 3), _DAMAGE, _DAMAGE),
    Case("counts two billion records", FETCH, poke(">i", _COUNT_AT, _HUGE), _DAMAGE, _DAMAGE),
    Case("counts no records where there are 10", FETCH, poke(">i", _COUNT_AT, 0), _DAMAGE, _DAMAGE),
    Case("counts -1 records", FETCH, poke(">i", _COUNT_AT, -1), _DAMAGE, _DAMAGE),
    Case(
        "sends records whose length never ends",
        FETCH,
        content(lambda held: b"\xff" * len(held)),
        _DAMAGE,
        _DAMAGE,
    ),
    Case(
        "sends records that consist of zeros",
        FETCH,
        content(lambda held: bytes(len(held))),
        _DAMAGE,
        _DAMAGE,
    ),
    Case(
        "sends records with timestamps past 2^63",
        FETCH,
        poke(">q", 27, _FOR_EVER),
        _DAMAGE,
        _DAMAGE,
    ),
    Case(
        "sends batches without records, endlessly",
        FETCH,
        records(empty_batches),
        _SILENCE,
        _SILENCE,
    ),
    Case(
        "sends messages of format 1 that are longer than their batch",
        FETCH,
        old_format(old_length),
        _DAMAGE,
        _DAMAGE,
    ),
    # --- commits
    Case("closes the connection instead of answering commits", OFFSET_COMMIT, closed, None, _WELL),
    Case("never answers commits", OFFSET_COMMIT, silent, None, _WELL),
    Case(
        "answers commits for another partition",
        OFFSET_COMMIT,
        of_lookup(set_to(partition_index=5)),
        None,
        _WELL,
    ),
    Case(
        "refuses commits with an unknown error code",
        OFFSET_COMMIT,
        of_lookup(set_to(error_code=999)),
        None,
        _WELL,
    ),
    Case(
        "answers commits with invalid bytes",
        OFFSET_COMMIT,
        bound(body_of, b"\xff" * 64),
        None,
        _WELL,
    ),
)


def table() -> str:
    """The cases as Markdown."""
    lines = ["| a broker that | of the source | of the target |", "|---|---|---|"]
    for case in CASES:
        both = " (hits both groups)" if case.everybody else ""
        lines.append(f"| {case.does}{both} | {case.source or ''} | {case.target or ''} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    page = PAGE.read_text()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(page[:begin] + table() + page[end:])
