"""What hostile brokers do, as a table: each case with what comes of it for the group it is about.

`kafka/test_hostile_brokers.py` plays each; `python -m tests.hostile_cases` rewrites the table of
docs/reliability.md.
"""

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
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
    Lie,
    ReceivedRequest,
    broker,
    partition,
)
from tests.kafka.wire.test_records import (
    ATTRIBUTES_AT,
    CRC_AT,
    RECORDS_AT,
    old,
    refilled,
    sealed,
    sent,
)

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
class HostileCase:
    """One thing that a broker does, where asked for `api`.

    `source` and `target` are the result of the group `HIT` if a broker of that cluster does it,
    None if it is not played. With `everybody` it takes the other group, too; one that
    `waits` is played by `make test-all`.
    """

    api: int
    does: str
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


def silent(asked: ReceivedRequest) -> None:
    asked.wait(60)


def closed(_: ReceivedRequest) -> None:
    return None


def says(data: bytes, asked: ReceivedRequest) -> bytes:
    asked.wait(0.02)  # so that it is read before the connection ends
    return data


def half(asked: ReceivedRequest) -> bytes:
    """Half of the answer, and no more for as long as somebody waits."""
    frame = asked.frame()
    return frame[: len(frame) // 2]


def cut_off(asked: ReceivedRequest) -> bytes | None:
    asked.send(half(asked))
    return None


def shortened(asked: ReceivedRequest) -> bytes:
    """A whole frame with half of the answer in it."""
    frame = asked.frame()
    body = frame[4 : max(8, len(frame) // 2)]
    return struct.pack(">i", len(body)) + body


def slow(asked: ReceivedRequest) -> bytes:
    frame = asked.frame()
    for number in range(40):
        asked.send(frame[number : number + 1])
        asked.wait(0.05)
    return frame[40:]


def wrong_id(asked: ReceivedRequest) -> bytes:
    asked.correlation_id ^= 0x55
    return asked.frame()


def twice(asked: ReceivedRequest) -> bytes:
    return asked.frame() * 2


def body_of(content: bytes, asked: ReceivedRequest) -> bytes:
    """A frame with the right id and then this."""
    return struct.pack(">ii", 4 + len(content), asked.correlation_id) + content


def change(does: Callable[[Any], None]) -> Lie:
    """An answer of which this was changed."""

    def lie(asked: ReceivedRequest) -> bytes:
        does(asked.answer)
        return asked.frame()

    return lie


def set_to(**fields: Any) -> Callable[[Any], None]:
    def change_fields(item: Any) -> None:
        for name, value in fields.items():
            setattr(item, name, value)

    return change_fields


def each(items: Callable[[Any], Iterable[Any]]) -> Callable[[Callable[[Any], None]], Lie]:
    """A function that changes all these items of an answer."""

    def of_items(does: Callable[[Any], None]) -> Lie:
        def change_items(answer: Any) -> None:
            for item in items(answer):
                does(item)

        return change(change_items)

    return of_items


def throttled(milliseconds: int) -> Lie:
    return change(set_to(throttle_time_ms=milliseconds))


def throttled_emptily(milliseconds: int) -> Lie:
    return change(set_to(throttle_time_ms=milliseconds, responses=[]))


# --- of one kind of answer ----------------------------------------------------------------


def unsupported(asked: ReceivedRequest) -> bytes:
    """As brokers answer a version that they do not know."""
    asked.version, asked.answer.error_code = 0, 35
    return asked.frame()


version_0 = each(lambda answer: answer.api_keys)(set_to(min_version=0, max_version=0))


def portless(answer: Any) -> None:
    answer.brokers = [answer.brokers[0], broker(1, 0)]


def many_brokers(answer: Any) -> None:
    answer.brokers = [*answer.brokers, *(broker(n, 1) for n in range(2, 10_000))]


def itself(asked: ReceivedRequest) -> bytes:
    """One address for all brokers."""
    asked.answer.brokers = [broker(node, asked.brokers.ports[0]) for node in (0, 1)]
    return asked.frame()


of_victim = each(lambda answer: (it for it in answer.topics if it.name.endswith(VICTIM)))


def led_by(leader: int, *partitions: int) -> Lie:
    """Metadata in which this broker leads these partitions of the victim."""
    return of_victim(set_to(partitions=[partition(number, leader) for number in partitions]))


def refused(code: int) -> Lie:
    return of_victim(set_to(error_code=code, partitions=[]))


of_coordinator = each(lambda answer: (it for it in answer.coordinators if it.key == HIT))


def coordinators(*names: str) -> Callable[[Any], None]:
    def leave(answer: Any) -> None:
        answer.coordinators = [each for each in answer.coordinators if each.key in names]

    return leave


def add_groups(answer: Any) -> None:
    made = type(answer).ListedGroup
    kind = {"protocol_type": "consumer", "group_state": "Empty", "group_type": "classic"}
    for name in ("", "g" * 255, "token" * 2_000, "g\u00fcnter \u2603\n\x1b[31m", HIT):
        answer.groups.append(made(group_id=name, **kind))


of_group = each(lambda answer: answer.groups)
of_offsets = each(
    lambda answer: (
        it for group in answer.groups for topic in group.topics for it in topic.partitions
    )
)


def of_the_other(asked: ReceivedRequest) -> bytes:
    """The offsets of its own group as those of broker 0's, which has answered by then."""
    asked.wait(0.05)
    return of_group(set_to(group_id=CALM))(asked) or b""


# Of each partition in a ListOffsets or OffsetCommit answer.
of_lookup = each(lambda answer: (it for topic in answer.topics for it in topic.partitions))


def backwards(asked: ReceivedRequest) -> bytes:
    """A log that starts where it ends, and ends where it starts."""
    [asked_topic] = asked.request.topics
    if asked_topic.partitions[0].timestamp < 0:
        found = asked.answer.topics[0].partitions[0]
        found.offset = 1_000 if asked_topic.partitions[0].timestamp == -2 else 3
    return asked.frame()


of_fetch = each(lambda answer: answer.responses[0].partitions[:1])


def records(does: Callable[[bytearray], bytes | bytearray]) -> Lie:
    """Of the batches in a Fetch answer, where there are any."""

    def change_records(found: Any) -> None:
        if found.records:
            found.records = bytes(does(bytearray(found.records)))

    return of_fetch(change_records)


def first_batch(raw: bytearray) -> bytearray:
    return raw[: 12 + struct.unpack_from(">i", raw, _LENGTH_AT)[0]]


def poke(layout: str, at: int, value: int, *, seal: bool = True) -> Lie:
    """Another number in the first batch, under a checksum that holds."""

    def does(raw: bytearray) -> bytearray:
        raw = first_batch(raw)
        struct.pack_into(layout, raw, at, value)
        return sealed(raw) if seal else raw

    return records(does)


def content(made: Callable[[bytes], bytes], codec: str = "none") -> Lie:
    """What a batch holds, packed or not, as something else."""

    def does(raw: bytearray) -> bytearray:
        raw = first_batch(raw)
        return refilled(raw, made(bytes(raw[RECORDS_AT:])), codec)

    return records(does)


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
    raw = first_batch(raw)
    return raw + raw


def earlier(raw: bytearray) -> bytearray:
    """A batch that ends before the offset that was asked for."""
    raw = first_batch(raw)
    struct.pack_into(">q", raw, 0, max(0, struct.unpack_from(">q", raw)[0] - 20))
    return raw


def empty_batches(raw: bytearray) -> bytes:
    """A batch as compaction leaves it, without any record, for each offset."""
    (base_offset,) = struct.unpack_from(">q", raw)
    one = refilled(raw, b"", "none")
    struct.pack_into(">i", one, _LAST_DELTA_AT, 0)
    struct.pack_into(">i", one, _COUNT_AT, 0)
    return b"".join(bytes(struct.pack(">q", base_offset + n) + sealed(one)[8:]) for n in range(3))


def old_format(raw: bytearray) -> bytearray:
    """A message of format 1 that says it is longer than all there is."""
    made = old(1, "none", sent(5), struct.unpack_from(">q", raw)[0])
    struct.pack_into(">i", made, 34, _HUGE)
    return made


def elsewhere(topic: str, number: int) -> Lie:

    def change_place(answer: Any) -> None:
        answer.responses[0].topic = topic
        answer.responses[0].partitions[0].partition_index = number

    return change(change_place)


def announced(number: int) -> Lie:
    """A Fetch answer with another number in the place of its records' size."""

    def lie(asked: ReceivedRequest) -> bytes:
        frame = bytearray(asked.frame())
        records = asked.answer.responses[0].partitions[0].records
        struct.pack_into(">i", frame, len(frame) - len(records) - 4, number)
        return bytes(frame)

    return lie


nonsense = bound(body_of, b"\xff" * 64)

_HUGE = 2**31 - 1
_VAST = 40_000_000
_HTTP = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
_HUGE_COMPACT = b"\xff\xff\xff\xff\x0f"
_SILENCE = "failed TIMEOUT"
_NONE = "failed UNREACHABLE or failed TIMEOUT"
_NO_KAFKA = "failed INTERNAL"
_DAMAGE = "failed CORRUPT_BATCH"
_ALL = "cluster unreachable"
_ONE_BROKER = "committed and failed INTERNAL"
_WELL = "committed"
_OLD = "failed UNSUPPORTED_VERSION"


def both(api: int, outcome: str, lies: Mapping[str, Lie]) -> list[HostileCase]:
    """Cases that come to the same whichever side the broker is of."""
    return [HostileCase(api, does, lie, outcome, outcome) for does, lie in lies.items()]


connect, api_versions, metadata, coordinator, groups, offsets, lookup, fetch = (
    bound(HostileCase, api)
    for api in (
        *(CONNECT, API_VERSIONS, METADATA, FIND_COORDINATOR),
        *(LIST_GROUPS, OFFSET_FETCH, LIST_OFFSETS, FETCH),
    )
)
commit = bound(HostileCase, OFFSET_COMMIT, source=None, target=_WELL)

CASES = (
    # --- connections
    connect("accepts connections and never answers", silent, _SILENCE, _SILENCE),
    connect("closes each connection at once", closed, _NONE, _NONE, waits=True),
    connect("answers with HTTP", bound(says, _HTTP), _NONE, _NONE, waits=True),
    api_versions(
        "rejects each ApiVersions with UNSUPPORTED_VERSION", unsupported, _SILENCE, _SILENCE
    ),
    api_versions("supports only version 0 of each request", version_0, _OLD),
    api_versions("stops in the middle of ApiVersions", half, _SILENCE, waits=True),
    api_versions("throttles for 24 days after ApiVersions", throttled(_DAYS_MS), _WELL),
    # --- metadata
    metadata("lists no broker", change(set_to(brokers=[])), _ALL, _ALL),
    metadata("gives port 0 for a broker", change(portless), _NONE, _NONE),
    metadata("gives one address for all brokers", itself, _WELL),
    metadata(
        "lists 10,000 brokers",
        change(many_brokers),
        "committed or failed UNREACHABLE or failed TIMEOUT or cluster unreachable",
        everybody=True,
        waits=True,
    ),
    metadata(
        "gives a leader that is not in the list of brokers", led_by(42, 0), _NONE, _NONE, waits=True
    ),
    metadata(
        "numbers partitions -3 and 2147483647",
        led_by(1, -3, _HUGE),
        "failed NO_LEADER",
        "skipped TARGET_MISSING",
    ),
    metadata("reports a topic with an unknown error code", refused(999), _NO_KAFKA, _NO_KAFKA),
    metadata("gives another cluster id in Metadata", change(set_to(cluster_id="another")), _WELL),
    metadata("stops in the middle of Metadata", half, _ALL),
    metadata("sends only half of Metadata in a complete frame", shortened, _ALL, _ALL),
    metadata("answers Metadata with invalid bytes", nonsense, _ALL),
    metadata(
        "sends null as a topic's list of partitions",
        of_victim(set_to(partitions=None)),
        _NONE,
        everybody=True,
    ),
    # --- groups
    coordinator(
        "gives a coordinator that is not in the list of brokers",
        of_coordinator(set_to(node_id=42)),
        _NONE,
        _NONE,
        waits=True,
    ),
    coordinator(
        "refuses FindCoordinator with an unknown error code",
        of_coordinator(set_to(error_code=999)),
        _NO_KAFKA,
        _NO_KAFKA,
    ),
    coordinator(
        "sends null as the list of coordinators",
        change(set_to(coordinators=None)),
        _NO_KAFKA,
        everybody=True,
    ),
    coordinator("omits a group's coordinator", change(coordinators(CALM)), _SILENCE, waits=True),
    groups("lists groups with odd names, and one twice", change(add_groups), _WELL, _WELL),
    groups("refuses to list groups", change(set_to(error_code=-1)), _ONE_BROKER),
    groups("answers ListGroups with 40 MB", bound(body_of, bytes(_VAST)), _ONE_BROKER),
    groups("answers ListGroups with invalid bytes", bound(body_of, _HUGE_COMPACT * 9), _ONE_BROKER),
    *both(
        OFFSET_FETCH,
        _NO_KAFKA,
        {
            "answers OffsetFetch with invalid bytes": nonsense,
            "sends only half of OffsetFetch in a complete frame": shortened,
        },
    ),
    offsets("says a group has committed -5", of_offsets(set_to(committed_offset=-5)), "no row"),
    offsets(
        "says a group has committed 2^63-1",
        of_offsets(set_to(committed_offset=_FOR_EVER)),
        "skipped PAST_LOG_END",
    ),
    offsets(
        "says a group has committed in partition -1",
        of_offsets(set_to(partition_index=-1)),
        "no row",
    ),
    offsets(
        "refuses an offset with an unknown error code",
        of_offsets(set_to(error_code=999)),
        _NO_KAFKA,
    ),
    offsets(
        "answers OffsetFetch for another group",
        of_group(set_to(group_id="stranger")),
        _SILENCE,
        _SILENCE,
    ),
    offsets(
        "answers OffsetFetch for the other broker's group, later than that broker",
        of_the_other,
        _SILENCE,
        waits=True,
    ),
    offsets("throttles for 24 days after OffsetFetch", throttled(_DAYS_MS), _WELL),
    # --- lookups
    *both(
        LIST_OFFSETS,
        _NO_KAFKA,
        {
            "answers ListOffsets with invalid bytes": nonsense,
            "says logs begin and end at -9": of_lookup(set_to(offset=-9)),
            "says logs begin and end at 2^63-1": of_lookup(set_to(offset=_FOR_EVER)),
        },
    ),
    lookup("sends only half of ListOffsets in a complete frame", shortened, _NO_KAFKA),
    lookup(
        "answers ListOffsets for another partition",
        of_lookup(set_to(partition_index=5)),
        _SILENCE,
        _SILENCE,
        waits=True,
    ),
    lookup("says a log ends before it begins", backwards, _NO_KAFKA),
    lookup("gives negative timestamps", of_lookup(set_to(timestamp=-9)), _WELL, _WELL),
    # --- fetches
    *both(
        FETCH,
        _NO_KAFKA,
        {
            "answers Fetch with invalid bytes": nonsense,
            "answers Fetch with an empty frame": bound(body_of, b""),
            "sends only half of Fetch in a complete frame": shortened,
            "announces a frame of 2 GB": bound(says, b"\x7f\xff\xff\xff"),
            "refuses Fetch with an unknown error code": of_fetch(set_to(error_code=999)),
            "answers Fetch for another partition": elsewhere(VICTIM, 1),
            "answers Fetch for another topic": elsewhere("other", 0),
            "gives -1 as high watermark": of_fetch(
                set_to(high_watermark=-1, last_stable_offset=-1)
            ),
            "says the log starts at 2^63-1": of_fetch(set_to(log_start_offset=_FOR_EVER)),
            "announces 2 GB of records": announced(_HUGE),
        },
    ),
    fetch("closes the connection in the middle of Fetch", cut_off, _NONE, _NONE, waits=True),
    fetch("answers Fetch with another correlation id", wrong_id, _NONE, _NONE),
    *both(
        FETCH,
        _SILENCE,
        {
            "stops in the middle of Fetch": half,
            "returns no records below the log end": of_fetch(set_to(records=b"")),
            "announces -5 bytes of records": announced(-5),
        },
    ),
    fetch("sends Fetch byte by byte", slow, _SILENCE, waits=True),
    fetch("never answers Fetch", silent, _SILENCE, _SILENCE, waits=True),
    fetch(
        "throttles for 24 days instead of answering Fetch",
        throttled_emptily(_DAYS_MS),
        _SILENCE,
        _SILENCE,
        waits=True,
    ),
    *both(
        FETCH,
        _WELL,
        {
            "answers each Fetch twice": twice,
            "throttles for 24 days after each Fetch": throttled(_DAYS_MS),
        },
    ),
    # --- batches
    *both(
        FETCH,
        _DAMAGE,
        {
            "sends batches whose checksum is wrong": poke(">I", CRC_AT, 1, seal=False),
            "sends batches of -1 bytes": poke(">i", _LENGTH_AT, -1, seal=False),
            "sends batches of 10 bytes": poke(">i", _LENGTH_AT, 10, seal=False),
            **{f"sends {codec} that is truncated": truncated(codec) for codec in _PACKED},
            **{f"sends {codec} that unpacks to 400 MB": bomb(codec) for codec in _PACKED},
            "sends 20 batches that unpack to 29 MB each": records(many_bombs),
            "sends batches at -1": poke(">q", 0, -1, seal=False),
            "sends batches that end before they begin": poke(">i", _LAST_DELTA_AT, -1),
            "sends batches over two billion offsets": poke(">i", _LAST_DELTA_AT, _HUGE),
            "sends batches with more records than offsets": poke(">i", _LAST_DELTA_AT, 4),
            "counts 20 records where there are 10": poke(">i", _COUNT_AT, 20),
            "counts 3 records where there are 10": poke(">i", _COUNT_AT, 3),
            "counts two billion records": poke(">i", _COUNT_AT, _HUGE),
            "counts no records where there are 10": poke(">i", _COUNT_AT, 0),
            "counts -1 records": poke(">i", _COUNT_AT, -1),
            "sends records whose length never ends": content(lambda held: b"\xff" * len(held)),
            "sends records that consist of zeros": content(lambda held: bytes(len(held))),
            "sends records with timestamps past 2^63": poke(">q", 27, _FOR_EVER),
            "sends messages of format 1 that are longer than their batch": records(old_format),
        },
    ),
    *both(
        FETCH,
        _SILENCE,
        {
            "sends batches of 2 GB that never end": poke(">i", _LENGTH_AT, _HUGE, seal=False),
            "sends batches from before the requested offset": records(earlier),
            "sends batches at 2^63-1": poke(">q", 0, _FOR_EVER, seal=False),
            "sends batches without records, endlessly": records(empty_batches),
        },
    ),
    fetch("sends batches of message format 9", poke(">b", _MAGIC_AT, 9, seal=False), _OLD, _OLD),
    fetch("sends batches with compression type 7", poke(">h", ATTRIBUTES_AT, 7), _OLD, _OLD),
    fetch("sends each batch twice", records(overlapping), _WELL, _WELL),
    # --- commits
    commit("closes the connection instead of answering commits", closed),
    commit("never answers commits", silent),
    commit("answers commits for another partition", of_lookup(set_to(partition_index=5))),
    commit("refuses commits with an unknown error code", of_lookup(set_to(error_code=999))),
    commit("answers commits with invalid bytes", nonsense),
)


def table() -> str:
    """A row for each pair of results, with the cases that have them."""
    cases: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for case in CASES:
        both = " (hits both groups)" if case.everybody else ""
        cases[case.source or "", case.target or ""].append(f"{case.does}{both}")
    rows = (f"| {' | '.join(results)} | {'; '.join(does)} |" for results, does in cases.items())
    head = ("| result on the source | on the target | a broker that |", "|---|---|---|")
    return "\n".join((*head, *rows)) + "\n"


if __name__ == "__main__":
    page = PAGE.read_text()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(page[:begin] + table() + page[end:])
