"""Records of many batches as columns: what the records say that are decoded one by one."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kafka.wire.test_batch_records import SENT
from tests.kafka.wire.test_records import END, RECORDS_AT, UNCOMMITTED, Sent, batch, sealed
from tests.producing import CODECS
from tests.random_examples import scaled
from tsoffset.columns import RecordColumns, columns_of
from tsoffset.kafka.wire.batch_records import BatchRecords, RawBatch
from tsoffset.kafka.wire.fetched_records import FetchedRecords
from tsoffset.kafka.wire.lockstep import PAYS_FROM, walk
from tsoffset.kafka.wire.records import fetched_range
from tsoffset.records import NO_TIMESTAMP, FetchedRange, Record, UnreadableRecords

ALL = frozenset({"timestamp", "key", "value"})
CUT = st.integers(0, 200)
PARTS = st.tuples(SENT, st.integers(0, 2**39), st.sampled_from(sorted(CODECS)), CUT, CUT)


def part(records: list[Sent], base: int, codec: str, first: int, last: int) -> FetchedRange:
    """A batch of which the log's start and its readable end may leave a part."""
    end = base + len(records)
    log_start = min(base + first, end - 1)
    found = fetched_range(
        memoryview(bytes(batch(records, base, codec))),
        log_start,
        log_start,
        max(log_start + 1, end - last),
        UNCOMMITTED,
    )
    assert found is not None
    return found


def records_of(columns: RecordColumns) -> list[tuple[int, Record]]:
    found = []
    for index, content in enumerate(columns.contents(np.arange(len(columns)), ALL)):
        assert content is not None
        offset, stamp = int(columns.offset[index]), int(columns.timestamp[index])
        record = Record(offset, None if stamp == NO_TIMESTAMP else stamp, *content)
        found.append((int(columns.log[index]), record))
    return found


def plain(record: Record) -> Record:
    """The record as columns have it: without headers."""
    return Record(record.offset, record.timestamp_ms, record.key, record.value)


@settings(max_examples=scaled(40))
@given(st.lists(PARTS, min_size=1, max_size=6), st.booleans(), st.data())
def test_columns_say_what_the_records_say(logs, many, data):
    """By log and offset, each once, however often it was read, from few batches or many walked
    side by side, from what is settled and from records as such."""
    parts = [(log, part(*one)) for log, one in enumerate(logs)]
    expected = [(log, plain(record)) for log, one in parts for record in tuple(one.records)]
    # These have dropped their bytes; `fresh` are equal ones that have them.
    fresh = [(log, part(*one)) for log, one in enumerate(logs)]
    decoded = [(log, FetchedRange(s.start, s.end, tuple(s.records))) for log, s in parts]
    chosen = data.draw(st.permutations([*parts, *decoded]))
    several = data.draw(st.integers(0, len(chosen)))
    beside = [(len(logs), part([(1, None, b"", [])], 0, "none", 0, 0))] * PAYS_FROM * many
    columns = columns_of([*chosen[:several], *fresh, *beside])
    assert [each for each in records_of(columns) if each[0] < len(logs)] == expected


@settings(max_examples=scaled(60))
@given(SENT, st.integers(0, 10_000), st.integers(0, 255), st.booleans())
def test_a_malformed_batch_is_left_out(records, place, byte, many):
    """Where a walk along the batch finds it malformed, beside many of its length; or where few are
    decoded. Its neighbors are not affected."""
    raw = batch(records)
    raw[RECORDS_AT + place % (len(raw) - RECORDS_AT)] = byte
    odd = fetched_range(memoryview(bytes(sealed(raw))), 0, 0, END, UNCOMMITTED)
    assert odd is not None
    beside = range(1, PAYS_FROM if many else 3)
    columns = columns_of([(0, odd), *((log, part(records, 0, "none", 0, 0)) for log in beside)])
    try:
        expected = [*zip(odd.offsets, odd.timestamps, strict=True)]
    except UnreadableRecords:
        expected = []
    there = columns.log == 0
    stamps = [None if stamp == NO_TIMESTAMP else stamp for stamp in columns.timestamp[there]]
    found = [*zip(columns.offset[there], stamps, strict=True)]
    assert found == expected or (not many and not found)
    columns.contents(np.flatnonzero(there), ALL)  # whatever it is, it is an answer
    assert np.count_nonzero(columns.log > 0) == len(beside) * len(records)


def test_batches_of_other_lengths_are_walked_by_themselves():
    """Side by side each costs as much as the longest: a few long ones are left to a skim."""
    few = [RawBatch(b"", 20_000, 0, 20_000, 0, None, 0, 20_000)]
    short = part([(1, None, b"", [])] * 3, 0, "none", 0, 0)
    assert isinstance(short.records, FetchedRecords)
    (batch_of_three,) = short.records._parts
    assert isinstance(batch_of_three, BatchRecords)
    found = walk([*few, *[batch_of_three.raw] * PAYS_FROM])
    assert found[0] is None
    assert all(piece is not None and len(piece.offset) == 3 for piece in found[1:])


def test_timestamps_that_no_number_holds_are_malformed():
    """A base and a difference that together leave 64 bits, alone or beside many."""
    raw = batch([(2**62, None, b"", []), (2**62 + 5, None, b"", [])])
    base = RECORDS_AT - 34  # of the first timestamp
    assert struct.unpack_from(">q", raw, base) == (2**62,)
    struct.pack_into(">q", raw, base, 2**63 - 2)
    odd = fetched_range(memoryview(bytes(sealed(raw))), 0, 0, END, UNCOMMITTED)
    assert odd is not None
    with pytest.raises(UnreadableRecords):
        _ = odd.timestamps
    for beside in (1, PAYS_FROM + 1):
        others = (
            (log, part([(1, None, b"", [])] * 2, 0, "none", 0, 0)) for log in range(1, beside)
        )
        assert 0 not in columns_of([(0, odd), *others]).log
