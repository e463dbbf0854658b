"""Records that are made where they are looked at: what they are, and what is kept of them."""

import pickle
import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import CorruptRecordError
from kafka.record.memory_records import MemoryRecords

from tests.kafka.wire.test_records import END, RECORDS_AT, UNCOMMITTED, Sent, batch, sealed, sent
from tests.producing import CODECS
from tsoffset.kafka.wire.batch_records import RECORD_BYTES, BatchRecords, RawBatch
from tsoffset.kafka.wire.digested_records import DigestedRecords
from tsoffset.kafka.wire.records import fetched_range
from tsoffset.records import FetchedRange, Record, UnreadableRecords, content_digest, header_digests

CONTENT = st.none() | st.binary(max_size=300)
SENT = st.lists(
    st.tuples(
        st.integers(-1, 2**40),
        CONTENT,
        CONTENT,
        st.lists(st.tuples(st.text(max_size=5), CONTENT), max_size=2),
    ),
    min_size=1,
    max_size=200,
)


def read(raw: bytes | bytearray, offset: int = 0) -> FetchedRange:
    return fetched_range(memoryview(bytes(raw)), offset, 0, END, UNCOMMITTED)


def by_the_library(raw: bytes | bytearray) -> list[Record]:
    return [
        Record(
            record.offset,
            record.timestamp if record.timestamp >= 0 else None,
            content_digest(record.key),
            content_digest(record.value),
            header_digests(record.headers),
        )
        for each in MemoryRecords(bytes(raw))
        for record in each
    ]


@given(SENT, st.integers(0, 2**39), st.sampled_from(sorted(CODECS)))
def test_records_are_those_that_the_library_decodes(records, base_offset, codec):
    """All at once, one by one from behind, and by their offsets."""
    raw = batch(records, base_offset, codec)
    expected = by_the_library(raw)
    found = read(raw, base_offset)
    assert len(found.records) == len(expected)
    assert [found.records[-number] for number in range(1, len(expected) + 1)] == expected[::-1]
    for record in expected:
        assert found.at_or_after(record.offset) == record
    assert tuple(found.records) == tuple(expected)


@given(SENT, st.integers(0, 2**39), st.data())
def test_little_is_told_without_all(records, base_offset, data):
    """Offsets, timestamps and a few of the records, in any order of asking, from the bytes and
    from what is settled."""
    raw = batch(records, base_offset)
    expected = by_the_library(raw)
    found = read(raw, base_offset)
    assert found.offsets == range(base_offset, base_offset + len(expected))
    for _ in range(3):
        first = data.draw(st.integers(0, len(expected)))
        record = found.at_or_after(base_offset + first)
        assert record == (expected[first] if first < len(expected) else None)
        assert list(found.timestamps) == [record.timestamp_ms for record in expected]
        if data.draw(st.booleans()):
            assert tuple(found.records) == tuple(expected)


@given(
    st.lists(
        st.tuples(st.sampled_from([1, 40, 70, 200, 9_000, 70_000]), st.integers(1, 40)), max_size=6
    ),
    st.data(),
)
def test_records_of_one_length_are_found_without_a_walk(runs, data):
    """Where lengths repeat, and where a run of them ends."""
    values = [bytes(size) for size, count in runs for _ in range(count)]
    raw = batch([(1, b"%d" % number, value, []) for number, value in enumerate([b"", *values])])
    expected = by_the_library(raw)
    content, count = bytes(raw[RECORDS_AT:]), len(expected)
    records = BatchRecords(RawBatch(content, count, 0, count - 1, 1, None, 0, count), None)
    for number in data.draw(st.lists(st.integers(0, len(values)), min_size=1, max_size=5)):
        assert records[number] == expected[number]


def compacted(records: Sequence[Sent], left: Sequence[int]) -> bytearray:
    """A batch of which only some records are left, as the cleaner writes it."""
    raw = batch(records)
    kept = b""
    view = bytes(raw[RECORDS_AT:])
    position = 0
    for number in range(len(records)):
        assert view[position] < 0x80
        end = position + 1 + view[position] // 2
        if number in left:
            kept += view[position:end]
        position = end
    made = raw[:RECORDS_AT] + kept
    struct.pack_into(">i", made, 8, len(made) - 12)
    struct.pack_into(">i", made, 57, len(left))
    return sealed(made)


@given(st.sets(st.integers(0, 19)), st.integers(0, 20))
def test_holes_that_compaction_left_are_passed(left, offset):
    """The first record at or after an offset, wherever offsets do not count the records."""
    found = read(compacted(sent(20), sorted(left)))
    assert (found.start, found.end) == (0, 20)
    assert list(found.offsets) == sorted(left)
    assert list(found.timestamps) == [1_000 + offset for offset in sorted(left)]
    for _ in ("from the bytes", "from what is settled"):
        record = found.at_or_after(offset)
        expected = min((each for each in left if each >= offset), default=None)
        assert (None if record is None else record.offset) == expected
        assert [record.offset for record in found.records] == sorted(left)


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.sampled_from([0, 3]),
    st.integers(0, 20),
    st.integers(0, 25),
)
def test_what_lies_outside_the_log_does_not_exist(sizes, gap, log_start, readable_end):
    """A batch may begin below the log's start, and end past what is readable."""
    raw, offsets = bytearray(), []
    for size in sizes:
        base = offsets[-1] + 1 + gap if offsets else 0
        raw += batch(sent(size), base)
        offsets += range(base, base + size)
    found = fetched_range(memoryview(bytes(raw)), 0, log_start, readable_end, UNCOMMITTED)
    if found is None:
        assert readable_end == 0
        return
    inside = [offset for offset in offsets if log_start <= offset < found.end]
    assert found.end <= max(log_start, readable_end)
    assert list(found.offsets) == inside
    assert len(found.timestamps) == len(found.records) == len(inside)
    assert [found.records[number].offset for number in range(len(inside))] == inside
    assert [record.offset for record in found.records] == inside


def test_records_of_several_batches_follow_each_other():
    """And may be asked for one by one across them."""
    found = read(batch(sent(3), 0) + batch(sent(2), 3) + batch(sent(4), 5))
    assert found.offsets == range(9)
    assert [found.records[number].offset for number in (8, 4, 3, 0, -1)] == [8, 4, 3, 0, 8]
    assert found.at_or_after(9) is None
    with pytest.raises(IndexError):
        found.records[9]


def test_nothing_but_digests_leaves_the_process():
    """Pickled, as on the way through Spark, or shown, as in a log."""
    found = read(batch([(1, b"the key", b"the value", [("name", b"a header")])]))
    assert pickle.loads(pickle.dumps(found)) == found
    for text in (pickle.dumps(found), repr(found).encode()):
        for content in (b"the key", b"the value", b"a header"):
            assert content not in text


def test_bytes_are_let_go_once_all_is_looked_at():
    """The records stay what they are, made of their digests from then on."""
    found = read(batch(sent(3)) + batch(sent(4), 3))
    assert all(isinstance(part, BatchRecords) for part in found.records._parts)
    first = tuple(found.records)
    assert all(isinstance(part, DigestedRecords) for part in found.records._parts)
    assert tuple(found.records) == first
    assert [found.records[number] for number in range(7)] == list(first)


def test_bytes_of_large_records_are_never_kept():
    """Where they take more room than the records made of them."""
    small = [(1, None, b"v" * (RECORD_BYTES - 20), [])] * 4
    large = [(1, None, b"v" * (RECORD_BYTES + 20), [])] * 4
    assert isinstance(read(batch(small)).records._parts[0], BatchRecords)
    assert isinstance(read(batch(large)).records._parts[0], DigestedRecords)


@pytest.mark.parametrize("at", [RECORDS_AT, RECORDS_AT + 4, -1])
def test_a_malformed_batch_is_noticed_where_it_is_looked_at(at):
    """Its checksum holds, so it was written past the brokers; no record of it is made up."""
    raw = batch([(1, b"k" * 100, b"v" * 100, [])])
    raw[at] ^= 0x41
    found = read(sealed(raw))
    with pytest.raises(UnreadableRecords, match="the batch at offset 0 is malformed"):
        tuple(found.records)
    with pytest.raises(UnreadableRecords):
        found.at_or_after(0)


def test_a_malformed_batch_of_large_records_is_noticed_at_once():
    """And named as damaged by whoever reads it."""
    raw = batch([(1, None, b"v" * 1_000, [])])
    raw[-1] ^= 0x41
    with pytest.raises(CorruptRecordError, match="offset 0"):
        read(sealed(raw))
