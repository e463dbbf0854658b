"""What lies in the clusters of the estate before a test begins: topics, and how they are filled."""

import random
from collections.abc import Mapping, Sequence

from tests.producing import Contents, Written, numbered
from tests.scenarios.flows import Flows
from tests.waiting import wait_until

# On A, mirrored to B as A.*.
ORDERS = "orders"
EQUAL_TIMES = "equal-times"
COMPACTED = "compacted"
TRANSACTIONS = "transactions"
RETURNING = "returning"
# On A, mirrored to B under the same name, by a flow that reads committed records only.
SAME = "same-orders"
SAME_RETURNING = "same-returning"
SAME_TRANSACTIONS = "same-transactions"

RECORDS = 1000
# What most logs have lost at their start before they are mirrored, so that no offset is the
# same on both sides.
TRIMMED = 100

TOPICS: Mapping[str, Sequence[str]] = {
    "A->B": (ORDERS, EQUAL_TIMES, COMPACTED, TRANSACTIONS, RETURNING),
    "X->Y": (SAME, SAME_RETURNING, SAME_TRANSACTIONS),
}

_BATCH = 50
_COMPACTION = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0",
    # A batch whose times are later by more than this begins a new segment, and only
    # segments that are closed are compacted.
    "segment.ms": "1",
}


def fill(estate: Flows) -> None:
    """Create and fill all topics, before anything is mirrored."""
    source = estate.contents["A"]
    for topic, partitions in {ORDERS: 2, RETURNING: 1, SAME: 1, SAME_RETURNING: 1}.items():
        source.create_topic(topic, partitions)
        _fill_trimmed(source, topic, partitions)
    _fill_equal_times(source)
    for topic in (TRANSACTIONS, SAME_TRANSACTIONS):
        _fill_transactions(source, topic)
    source.create_topic(COMPACTED, configs=_COMPACTION)
    _fill_compacted(source, first=0)
    _wait_until_compacted(source, COMPACTED)


def mirror(estate: Flows) -> None:
    """Wait until all is mirrored; what was compacted before goes on and is compacted again."""
    for flow, topics in TOPICS.items():
        estate.wait_until_mirrored(flow, *topics)
    source, target = estate.sides("A->B")
    _fill_compacted(source, first=RECORDS)
    estate.wait_until_mirrored("A->B", COMPACTED)
    # Later than all before, on either side, so that all before is in closed segments.
    (_, end) = source.log_range(COMPACTED)
    last = source.read(COMPACTED, start=end - 1)[0].timestamp_ms
    source.produce(COMPACTED, numbered(_BATCH, first=2 * RECORDS, start_ms=last + 10_000))
    estate.wait_until_mirrored("A->B", COMPACTED)
    _wait_until_compacted(source, COMPACTED)
    _wait_until_compacted(target, estate.remote("A->B", COMPACTED))


def _fill_trimmed(contents: Contents, topic: str, partitions: int) -> None:
    """Records with distinct timestamps, of which the first are gone."""
    for partition in range(partitions):
        records = numbered(RECORDS, first=RECORDS * partition)
        contents.produce(topic, records, partition=partition)
        contents.delete_records(topic, TRIMMED, partition=partition)


def _fill_equal_times(contents: Contents) -> None:
    """Runs of 1 to 300 records with one timestamp each, cut into batches anywhere."""
    chance = random.Random(1292)
    contents.create_topic(EQUAL_TIMES)
    records: list[Written] = []
    time_ms = numbered(1)[0].timestamp_ms
    while len(records) < 2 * RECORDS:
        run = chance.choice((1, 2, 10, 100, 300))
        records += numbered(run, first=len(records), start_ms=time_ms, step_ms=0)
        time_ms += chance.choice((1, 1, 50))
    contents.produce(EQUAL_TIMES, records, batch=37)


def _fill_transactions(contents: Contents, topic: str) -> None:
    """Transactions that are committed and such that are aborted, one after the other."""
    contents.create_topic(topic)
    first = 0
    for number, (count, commit) in enumerate(
        ((40, True), (30, False), (60, True), (1, False), (1, True), (25, False), (80, True))
    ):
        records = numbered(count, first=first)
        transaction = contents.begin_transaction(f"{topic}-{number}")
        transaction.add(topic, records, batch=10)
        (transaction.commit if commit else transaction.abort)()
        first += count


def _fill_compacted(contents: Contents, first: int) -> None:
    """As many updates of few keys; each batch begins a new segment."""
    chance = random.Random(first)
    records = [
        Written(record.timestamp_ms, record.value, b"key-%d" % chance.randrange(120))
        for record in numbered(RECORDS, first=first)
    ]
    contents.produce(COMPACTED, records, batch=_BATCH)


def _wait_until_compacted(contents: Contents, topic: str) -> None:
    """Wait until each key is there once, but for the last batch, which is never compacted."""

    def compacted() -> bool:
        keys = [record.key for record in contents.read(topic)][:-_BATCH]
        return len(keys) == len({*keys})

    wait_until(compacted, f"{topic} is compacted")
