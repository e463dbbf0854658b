"""Record batches of a replicator's own topics, with what their records hold."""

from kafka.errors import CorruptRecordError
from kafka.record.memory_records import MemoryRecords

from tsoffset.kafka.wire.records import Aborted, stretch
from tsoffset.model import Isolation
from tsoffset.records import RawRecord, RawStretch


def raw_stretch(
    view: memoryview,
    offset: int,
    log_start: int,
    readable_end: int,
    isolation: Isolation,
    aborted: Aborted = (),
) -> RawStretch | None:
    """What a Fetch from `offset` on answered, as `tsoffset.kafka.wire.records.stretch` says.

    That function decides which records exist, and checks every batch; these topics are small,
    so that the library may decode them once more. Raises CorruptRecordError or
    UnsupportedCodecError if the first batch cannot be read.
    """
    found = stretch(view, offset, log_start, readable_end, isolation, aborted)
    if found is None:
        return None
    records: list[RawRecord] = []
    try:
        times = {record.offset: record.timestamp_ms for record in found.records}
        for batch in MemoryRecords(view):
            if batch.base_offset >= found.end:
                break
            first = found.at_or_after(batch.base_offset)
            if batch.magic == 2 and (first is None or first.offset > batch.last_offset):
                continue  # nobody has seen whether it can be unpacked, nor to how much
            records += [
                RawRecord(record.offset, times[record.offset], record.key, record.value)
                for record in batch
                if record.offset in times
            ]
    except Exception as error:  # the library walks it without checks, and cites what it holds
        raise CorruptRecordError(
            f"a batch at or after offset {found.start} is malformed"
        ) from error
    return RawStretch(found.start, found.end, tuple(records))
