"""From the bytes of a log to digests: formats, codecs, transactions, damage."""

import struct
import tracemalloc
import zlib
from collections.abc import Sequence
from typing import Any

import lz4.frame
import pytest
import zstandard
from kafka.codec import gzip_encode, snappy_encode
from kafka.errors import CorruptRecordError
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.util import calc_crc32c

from tests.producing import CODECS, Written, batch_of
from tsoffset.kafka.wire.records import fetched_range, raw_fetched_range
from tsoffset.model import Isolation, TimestampType
from tsoffset.records import FetchedRange, RawRecord, Record, content_digest, header_digests

COMMITTED, UNCOMMITTED = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED
END = 1 << 40

Sent = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]

CRC_AT, ATTRIBUTES_AT, RECORDS_AT = 17, 21, 61


def sent(count: int, timestamp_ms: int = 1_000) -> list[Sent]:
    return [(timestamp_ms + n, b"k%d" % n, b"v%d" % n, []) for n in range(count)]


def batch(
    records: Sequence[Sent],
    base_offset: int = 0,
    codec: str = "none",
    **of_producer: Any,
) -> bytearray:
    written = [Written(stamp, value, key, tuple(headers)) for stamp, key, value, headers in records]
    built = bytearray(batch_of(written, CODECS[codec], **of_producer))
    struct.pack_into(">q", built, 0, base_offset)
    return built


def sealed(raw: bytearray) -> bytearray:
    """With the checksum that its content now has."""
    struct.pack_into(">I", raw, CRC_AT, calc_crc32c(memoryview(raw)[ATTRIBUTES_AT:]))
    return raw


def refilled(raw: bytearray, held: bytes, codec: str) -> bytearray:
    """The header of a batch over something else."""
    raw = raw[:RECORDS_AT] + held
    struct.pack_into(">i", raw, 8, len(raw) - 12)
    struct.pack_into(">h", raw, ATTRIBUTES_AT, CODECS[codec])
    return sealed(raw)


def marker(offset: int, producer_id: int, *, abort: bool) -> bytearray:
    """The control batch that ends a transaction."""
    key = struct.pack(">hh", 0, 0 if abort else 1)
    raw = batch([(1, key, b"\0" * 6, [])], offset, producer_id=producer_id, transactional=True)
    (attributes,) = struct.unpack_from(">h", raw, ATTRIBUTES_AT)
    struct.pack_into(">h", raw, ATTRIBUTES_AT, attributes | 0x20)
    return sealed(raw)


def read(
    raw: bytes | bytearray,
    offset: int = 0,
    *,
    log_start: int = 0,
    end: int = END,
    isolation: Isolation = UNCOMMITTED,
    aborted: Sequence[tuple[int, int]] = (),
) -> FetchedRange:
    return fetched_range(memoryview(raw), offset, log_start, end, isolation, aborted)


def offsets(found: FetchedRange) -> list[int]:
    return [record.offset for record in found.records]


def expected(offset: int, of: Sent) -> Record:
    timestamp_ms, key, value, headers = of
    return Record(
        offset, timestamp_ms, content_digest(key), content_digest(value), header_digests(headers)
    )


# --- content ------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_may_unpack_to_many_megabytes(codec):
    """No codec stops at a limit of its own (the library's zstd once did, at one)."""
    values = [bytes([n]) * 700_000 for n in range(6)]
    found = read(batch([(1, None, value, []) for value in values], 0, codec))
    assert [record.value for record in found.records] == [content_digest(v) for v in values]


def test_a_zstd_frame_need_not_say_how_large_it_is():
    """Java's producers compress as they go, and write no size ahead of the content."""
    plain = batch([(1, None, b"x" * 3_000_000, [])])
    packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    content = packer.compress(bytes(plain[RECORDS_AT:])) + packer.flush()
    found = read(refilled(plain, content, "zstd"))
    assert found.records[0].value == content_digest(b"x" * 3_000_000)


def xerial(*blocks: tuple[int, bytes]) -> bytes:
    """A stream of snappy blocks as Java writes it, with the sizes that it names."""
    head = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    return head + b"".join(struct.pack(">i", size) + block for size, block in blocks)


ZEROS = bytes(300_000_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("codec", "pack"),
    [
        ("gzip", lambda: gzip_encode(ZEROS[:100_000_000], 1)),
        ("lz4", lambda: lz4.frame.compress(ZEROS)),
        ("zstd", lambda: zstandard.ZstdCompressor().compress(ZEROS[:50_000_000])),
        ("snappy", lambda: snappy_encode(ZEROS)),
        ("snappy", lambda: b"\xff\xff\xff\xff\x0f" + bytes(100)),
        ("snappy", lambda: xerial((105, b"\xff\xff\xff\xff\x0f" + bytes(100)))),
    ],
    ids=["gzip", "lz4", "zstd", "snappy", "snappy that lies", "snappy in blocks that lies"],
)
def test_a_batch_that_unpacks_to_more_than_brokers_write_is_damaged(codec, pack):
    """1.5 kB may be 50 MB. It is unpacked no further than the limit, whatever it says."""
    raw = refilled(batch(sent(1)), pack(), codec)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecordError, match=f"{codec} .* offset 0 unpacks to more than"):
            read(raw)
        assert tracemalloc.get_traced_memory()[1] < 400_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "content",
    [xerial((-10, b"\0" * 20)), xerial((1 << 30, b"\0")), xerial((0, b"")), xerial((1, b"x"))[:18]],
    ids=["negative", "cut off", "empty", "half a size"],
)
def test_snappy_blocks_of_impossible_sizes_are_damage(content):
    """The walk from block to block ends, and nothing is made up."""
    with pytest.raises(CorruptRecordError, match="snappy"):
        read(refilled(batch(sent(1)), content, "snappy"))


def test_a_header_s_name_need_not_be_utf_8():
    """Names that other clients wrote in other encodings are still told apart."""
    raw = batch([(1, b"k", b"v", [("aa", b"x")]), (1, b"k", b"v", [("bb", b"x")])])
    first, second = raw.index(b"aa"), raw.index(b"bb")
    raw[first : first + 2], raw[second : second + 2] = b"\xff\xfe", b"\xff\xfd"
    one, other = read(sealed(raw)).records
    assert len(one.headers) == 1
    assert one.headers != other.headers


def test_the_broker_s_clock_replaces_the_producer_s():
    """A batch stamped on append gives its largest timestamp to all of its records."""
    raw = batch(sent(3))
    (attributes,) = struct.unpack_from(">h", raw, ATTRIBUTES_AT)
    struct.pack_into(">h", raw, ATTRIBUTES_AT, attributes | 0x08)
    struct.pack_into(">q", raw, 35, 9_999)
    found = read(sealed(raw) + batch(sent(1), 3))
    assert found.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp_ms for record in found.records] == [9_999, 9_999, 9_999, 1_000]


# --- bounds -------------------------------------------------------------------------------


def test_a_fetched_range_begins_with_its_first_batch_and_ends_with_the_last_whole_one():
    """What is cut off at the end of an answer does not count."""
    raw = batch(sent(3), 10) + batch(sent(3), 13) + batch(sent(3), 16)[:-1]
    found = read(raw, 11)
    assert (found.start, found.end) == (10, 16)
    assert offsets(found) == [10, 11, 12, 13, 14, 15]
    assert found.bytes_read == len(raw)


def test_a_hole_before_the_first_batch_belongs_to_the_fetched_range():
    """A fetch inside a hole answers the batch behind it, so the hole holds nothing."""
    found = read(batch(sent(2), 20), 15)
    assert (found.start, found.end, offsets(found)) == (15, 22, [20, 21])


@pytest.mark.parametrize("raw", [b"", bytes(batch(sent(3), 10)[:-1]), bytes(batch(sent(3), 2))])
def test_an_answer_without_a_batch_at_the_offset_is_none(raw):
    """Nothing, half a batch, or only what lies before: the reader would stay where it is. No
    checksum covers a batch's offset: one behind the readable end does not show a hole before it."""
    assert fetched_range(memoryview(raw), 10, 0, END, UNCOMMITTED) is None
    assert fetched_range(memoryview(batch(sent(3), 20)), 10, 0, 20, UNCOMMITTED) is None


# --- transactions -------------------------------------------------------------------------


def test_a_transaction_that_aborts_later_in_the_log_leaves_earlier_ones_alone():
    """The broker lists all transactions that overlap with the answer; each counts from its
    own first offset only."""
    raw = (
        batch(sent(2), 0, producer_id=1, transactional=True)
        + marker(2, 1, abort=False)
        + batch(sent(2), 3, producer_id=1, transactional=True)
        + marker(5, 1, abort=True)
    )
    assert offsets(read(raw, isolation=COMMITTED, aborted=[(1, 3)])) == [0, 1]


def test_each_marker_ends_a_transaction_of_its_producer():
    """What the producer writes after it belongs to the next one, whose end is another; nothing that
    was committed is lost between aborted ones."""
    raw = bytearray()
    for base_offset, abort in ((0, True), (3, False), (6, True), (9, False)):
        raw += batch(sent(2), base_offset, producer_id=1, transactional=True)
        raw += marker(base_offset + 2, 1, abort=abort)
    assert offsets(read(raw, isolation=COMMITTED, aborted=[(1, 6), (1, 0)])) == [3, 4, 9, 10]


def test_records_outside_transactions_are_never_aborted():
    """An idempotent producer's plain batch counts though its producer aborts around it."""
    raw = batch(sent(1), 0, producer_id=1) + batch(sent(1), 1, producer_id=1, transactional=True)
    assert offsets(read(raw, isolation=COMMITTED, aborted=[(1, 0)])) == [0]
    assert read(raw).transactional


def test_what_no_reader_sees_is_not_unpacked():
    """An aborted batch may hold anything; for those who want what records hold, too."""
    aborted = batch(sent(1), 0, producer_id=1, transactional=True)
    aborted[ATTRIBUTES_AT + 1] |= CODECS["zstd"]
    log = sealed(aborted) + marker(1, 1, abort=True) + batch(sent(1), 2)
    assert offsets(read(log, isolation=COMMITTED, aborted=[(1, 0)])) == [2]
    found = raw_fetched_range(memoryview(bytes(log)), 0, 0, END, COMMITTED, [(1, 0)])
    assert found.records == (RawRecord(2, 1_000, b"k0", b"v0"),)


@pytest.mark.parametrize("codec", CODECS)
def test_what_records_hold_is_read_up_to_a_damaged_batch(codec):
    """Nulls are told from what is empty."""
    held: list[Sent] = [(1_000, None, b"", []), (1_001, b"", None, [("a", b"b")])]
    damaged = batch(sent(1), 2)
    damaged[-1] ^= 1
    log = batch(held, 0, codec) + damaged
    found = raw_fetched_range(memoryview(bytes(log)), 0, 0, END, COMMITTED)
    assert found.end == 2
    assert found.records == (RawRecord(0, 1_000, None, b""), RawRecord(1, 1_001, b"", None))


@pytest.mark.parametrize("content", [b"\x7f", b"\x01"])
def test_what_lies_behind_the_readable_end_may_be_malformed(content):
    """It is not decoded for its digest; read as it is, it is damage, and no error of its own."""
    damaged = batch(sent(2))
    second = damaged.index(b"v0") + 3
    damaged[second : second + 1] = content
    sealed(damaged)
    assert offsets(read(damaged, end=1)) == [0]
    with pytest.raises(CorruptRecordError, match="is malformed"):
        raw_fetched_range(memoryview(bytes(damaged)), 0, 0, 1, UNCOMMITTED)


# --- old formats --------------------------------------------------------------------------


def old(magic: int, codec: str, records: Sequence[Sent], base_offset: int = 0) -> bytearray:
    builder = LegacyRecordBatchBuilder(magic, CODECS[codec], batch_size=1 << 20)
    for number, (timestamp_ms, key, value, _) in enumerate(records):
        builder.append(base_offset + number, timestamp_ms, key, value)
    return bytearray(builder.build())


# Format 0 with lz4 has a test of its own: kafka-python writes it with a further library only.
@pytest.mark.parametrize(
    ("magic", "codec"),
    [(0, "none"), (0, "gzip"), (0, "snappy"), (1, "none"), (1, "gzip"), (1, "snappy"), (1, "lz4")],
)
def test_old_message_formats_are_read(magic, codec):
    """Topics that old brokers wrote; format 0 has no timestamps."""
    records: list[Sent] = [(5, b"k", b"v", []), (6, None, b"", []), (7, b"", None, [])]
    found = read(old(magic, codec, records, 3 if codec == "none" else 0))
    first = 3 if codec == "none" else 0
    assert [(r.offset, r.key, r.value) for r in found.records] == [
        (first + n, content_digest(key), content_digest(value))
        for n, (_, key, value, _) in enumerate(records)
    ]
    assert [r.timestamp_ms for r in found.records] == ([None] * 3 if magic == 0 else [5, 6, 7])
    assert found.end == first + 3


def test_a_wrapper_s_offset_is_that_of_its_last_message():
    """Format 1 compresses several messages into one, with relative offsets inside."""
    raw = old(1, "gzip", sent(4))
    struct.pack_into(">q", raw, 0, 103)
    found = read(raw, 102)
    assert (found.start, found.end, offsets(found)) == (100, 104, [100, 101, 102, 103])


def wrapped(content: bytes, magic: int, attributes: int, offset: int = 0) -> bytearray:
    """A message whose value is `content`, packed by whoever calls."""
    fields = struct.pack(">bb", magic, attributes) + (struct.pack(">q", 1) if magic else b"")
    fields += struct.pack(">ii", -1, len(content)) + content
    head = struct.pack(">qiI", offset, len(fields) + 4, zlib.crc32(fields))
    return bytearray(head + fields)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("length", [-12, -1, 0, 1 << 30])
def test_a_message_of_impossible_length_inside_another_is_damage(magic, length):
    """A walk by lengths would stand still, go back, or leave what there is."""
    inner = old(magic, "none", sent(1))
    struct.pack_into(">i", inner, 8, length)
    with pytest.raises(CorruptRecordError, match="offset 0 is malformed"):
        read(wrapped(gzip_encode(inner + old(magic, "none", sent(1))), magic, CODECS["gzip"]))


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_whose_offsets_do_not_rise_are_damage(magic):
    """A search by offset would pass over records."""
    inner = old(magic, "none", sent(1), 5) + old(magic, "none", sent(1), 4)
    with pytest.raises(CorruptRecordError, match="offset 5 is malformed"):
        read(wrapped(gzip_encode(inner), magic, CODECS["gzip"], 5))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_that_packs_none_is_damage(magic):
    """It has no offset of a record."""
    with pytest.raises(CorruptRecordError, match="offset 0 is malformed"):
        read(wrapped(gzip_encode(b""), magic, CODECS["gzip"]))


def test_messages_inside_another_are_not_packed_once_more():
    """Producers pack once; what is inside a second one would be taken for a value."""
    inner = wrapped(gzip_encode(old(1, "none", sent(1))), 1, CODECS["gzip"])
    with pytest.raises(CorruptRecordError, match="offset 0 is malformed"):
        read(wrapped(gzip_encode(inner), 1, CODECS["gzip"]))


def test_messages_that_unpack_to_more_than_brokers_write_are_damage():
    """Format 1 as format 2."""
    with pytest.raises(CorruptRecordError, match="offset 0 unpacks to more than"):
        read(wrapped(gzip_encode(ZEROS[:100_000_000], 1), 1, CODECS["gzip"]))


def test_the_header_of_lz4_in_format_0_has_a_checksum_of_its_own():
    """Kafka computes it over the wrong bytes there, and does not look at it: these two messages are
    as Kafka 2.5.1 writes them."""
    written = (
        "00000000000000010000004e4f3a81160003ffffffff0000004004224d1860401a3100000016000100511286"
        "97724c0f0080026b300000000276060000020090010000001257e7496e0d00a000026b310000000276310000"
        "0000"
    )
    found = read(bytes.fromhex(written))
    assert [record.value for record in found.records] == [
        content_digest(b"v0"),
        content_digest(b"v1"),
    ]


def test_a_damaged_message_of_an_old_format_is_found():
    """By its checksum, as in the new one."""
    raw = old(1, "none", sent(1))
    raw[-1] ^= 1
    with pytest.raises(CorruptRecordError):
        read(raw)


# --- damage -------------------------------------------------------------------------------


def test_a_damaged_batch_ends_the_fetched_range_before_it():
    """What lies before it has been read; whoever reads on meets the damage."""
    good, bad = batch(sent(3), 0), batch(sent(3), 3)
    bad[-1] ^= 1
    assert read(good + bad).end == 3
    with pytest.raises(CorruptRecordError):
        read(bad, 3)
