"""Record batches of a replicator's own topics, with the content of their records."""

from kafka.errors import CorruptRecordError

from tsoffset.kafka.wire.records import Aborted, batches, keys_and_values, stretch
from tsoffset.model import Isolation
from tsoffset.records import RawRecord, RawStretch, UnreadableRecords


def raw_stretch(
    view: memoryview,
    offset: int,
    log_start: int,
    readable_end: int,
    isolation: Isolation,
    aborted: Aborted = (),
) -> RawStretch | None:
    """Like `tsoffset.kafka.wire.records.stretch`, for a Fetch from `offset` on.

    That function decides which records exist, and checks every batch. These topics are small, so
    decompressing them twice is cheap. Raises CorruptRecordError or UnsupportedCodecError if the
    first batch cannot be read.
    """
    found = stretch(view, offset, log_start, readable_end, isolation, aborted)
    if found is None:
        return None
    records: list[RawRecord] = []
    try:
        times = {record.offset: record.timestamp_ms for record in found.records}
        for batch in batches(view, None):
            first = found.at_or_after(batch.base_offset)
            # Other batches were not checked for whether, and to what size, they decompress.
            if first is not None and first.offset <= batch.last_offset:
                records += [
                    RawRecord(offset, times[offset], key, value)
                    for offset, key, value in keys_and_values(batch)
                    if offset in times
                ]
            if batch.last_offset + 1 >= found.end:
                break  # the next one may be damaged
    except (UnreadableRecords, IndexError, ValueError) as error:
        raise CorruptRecordError(
            f"a batch at or after offset {found.start} is malformed"
        ) from error
    return RawStretch(found.start, found.end, tuple(records))
