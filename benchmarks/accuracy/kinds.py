"""The kinds of logs in the tables of docs/accuracy.md."""

from dataclasses import replace

from tests.random_logs import Kind
from tsoffset.model import Isolation

EVERYTHING = Kind(
    timestamps="equal_runs",
    twins=0.05,
    couples=0.01,
    tombstones=0.1,
    headers=True,
    segments=20,
    transactions=True,
    dropped=0.1,
    repeats=2,
    lag=0.3,
    foreign=0.1,
    source_compacted=True,
    target_compacted=True,
    source_trimmed=0.3,
    target_trimmed=0.3,
)

COMPACTED_AND_SET_BACK = Kind(
    set_back=1,
    repeats=1,
    segments=10,
    source_compacted=True,
    target_compacted=True,
    compacted_between=True,
)

KINDS: dict[str, Kind] = {
    "ordinary: rising times, every record copied once": Kind(),
    "runs of equal timestamps": Kind(timestamps="equal_runs"),
    "one timestamp for all": Kind(timestamps="one"),
    "timestamps that jitter": Kind(timestamps="jitter"),
    "wild timestamps": Kind(timestamps="wild"),
    "a producer's clock that goes back": Kind(timestamps="clock_back"),
    "records 100 years in the future": Kind(timestamps="far_future"),
    "30 % without a timestamp": Kind(timestamps="negative"),
    "LogAppendTime on the source": Kind(append_time="source"),
    "5 % duplicates": Kind(twins=0.05),
    "30 % duplicates": Kind(twins=0.3),
    "60 % duplicates": Kind(twins=0.6),
    "producers that retry": Kind(couples=0.05),
    "30 % without key and value": Kind(bare=0.3),
    "transactions, mirrored with read_uncommitted": Kind(transactions=True),
    "transactions, mirrored with read_committed": Kind(
        transactions=True, isolation=Isolation.READ_COMMITTED
    ),
    "a transaction left open": Kind(
        transactions=True, open_transaction=True, isolation=Isolation.READ_COMMITTED
    ),
    "a filter that drops 30 %": Kind(dropped=0.3),
    "a range never copied": Kind(gap=True),
    "a replicator restarted three times": Kind(repeats=3),
    "a replicator restarted three times, going back up to half of the log": Kind(
        repeats=3, rewind=0.5
    ),
    "a log that ends inside a repeat": Kind(unfinished_repeats=1),
    "a log that ends inside a repeat in a repeat": Kind(unfinished_repeats=2),
    "compaction on the source": Kind(source_compacted=True, segments=20),
    "compaction on the target": Kind(target_compacted=True, segments=20),
    "compaction on both, tombstones": Kind(
        source_compacted=True, target_compacted=True, tombstones=0.2, segments=20
    ),
    "trimmed on both sides": Kind(source_trimmed=0.5, target_trimmed=0.5),
    "a mirror that lags": Kind(lag=0.6),
    "records of other writers on the target": Kind(foreign=0.3),
    "a replicator that rewrites values": Kind(rewrites="values"),
    "an exactly-once mirror of a backlog": Kind(exactly_once=True),
    "a mirror that began midway, later restarted at an earlier record": Kind(
        begins_late=True, repeats=1
    ),
    "a mirror restarted at its beginning": Kind(set_back=1, repeats=1),
    "a mirror restarted at its beginning, compacted before": COMPACTED_AND_SET_BACK,
    "a mirror restarted at its beginning, compacted before, with duplicates": replace(
        COMPACTED_AND_SET_BACK, twins=0.3
    ),
    "a mirror restarted at its beginning, compacted before, with an offset header": replace(
        COMPACTED_AND_SET_BACK, offset_header="always"
    ),
    "a mirror restarted at its beginning, compacted before, with a header since a restart": replace(
        COMPACTED_AND_SET_BACK, offset_header="later"
    ),
    "compaction that stops in mid-log": Kind(
        source_compacted=True,
        target_compacted=True,
        cleaned_partly=True,
        compacted_between=True,
        repeats=2,
        keys=5,
        segments=10,
    ),
    "an offset header, one timestamp, 30 % duplicates": Kind(
        timestamps="one", twins=0.3, offset_header="always"
    ),
    "an offset header on some copies": Kind(offset_header="some", repeats=2, rewind=0.5),
    "an offset header with wrong offsets": Kind(offset_header="off", repeats=2, rewind=0.5),
    "an offset header with old offsets": Kind(offset_header="stale", repeats=2, rewind=0.5),
    "a filter that was widened at a restart": Kind(dropped=0.3, filter_changes="wider", repeats=2),
    "a filter that was narrowed at a restart": Kind(
        dropped=0.3, filter_changes="narrower", repeats=2
    ),
    "two replicators at once": Kind(two_at_once=True, repeats=1),
    "records of other writers that equal the source's": Kind(foreign_equal=0.1),
    "a source that lost the later of equal records": Kind(twins=0.3, loses_later=0.3),
    "failback to the original": Kind(failback=True, repeats=2, lag=0.3),
    "everything at once": EVERYTHING,
    "everything, ending inside a repeat": replace(EVERYTHING, unfinished_repeats=1),
    "everything, with 30 % duplicates": replace(EVERYTHING, twins=0.3),
}


def large(kind: Kind, records: int) -> Kind:
    """The same kind as a long log: real batches and segments, keys in proportion."""
    return replace(
        kind,
        records=records,
        batch=200,
        keys=kind.keys * records // 60,
        segments=kind.segments * records // 60,
    )
