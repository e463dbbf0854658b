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
SHORTENED = "shortened"
STAMPED_HERE = "stamped-here"
STAMPED_THERE = "stamped-there"
CHAINED = "chained"
# On B, mirrored to C as B.*, and from there to A as C.B.*.
FROM_B = "from-b"
# On C, but not mirrored to A, where it came from.
COME_ROUND = f"B.A.{CHAINED}"
# On A, mirrored to B under the same name, by a flow that reads committed records only.
SAME = "same-orders"
SAME_RETURNING = "same-returning"
SAME_TRANSACTIONS = "same-transactions"
# On A and on D, both mirrored to B under this name.
FAN_IN = "fan-in"
# On D, whose second node will go away, mirrored to B as D.*.
SOUND = "sound"
DAMAGED = "damaged"
HALF_AWAY = "half-away"
ALL_AWAY = "all-away"

RECORDS = 1000
# What most logs have lost at their start before they are mirrored, so that no offset is the
# same on both sides; and what one mirror has lost since.
TRIMMED = 100
TRIMMED_THERE = 350

TOPICS: Mapping[str, Sequence[str]] = {
    "A->B": (
        *(ORDERS, EQUAL_TIMES, COMPACTED, TRANSACTIONS, RETURNING),
        *(CHAINED, SHORTENED, STAMPED_HERE, STAMPED_THERE),
    ),
    "B->C": (f"A.{CHAINED}", FROM_B),
    "C->A": (COME_ROUND, f"B.{FROM_B}"),
    "X->Y": (SAME, SAME_RETURNING, SAME_TRANSACTIONS, FAN_IN),
    "W->Y": (FAN_IN,),
    "D->B": (SOUND, DAMAGED, HALF_AWAY, ALL_AWAY),
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
    a, d = estate.contents["A"], estate.contents["D"]
    for topic in (
        *(RETURNING, CHAINED, SHORTENED, STAMPED_THERE),
        *(SAME, SAME_RETURNING, FAN_IN),
    ):
        a.create_topic(topic)
        _fill_trimmed(estate, "A", topic)
    stamping = {"message.timestamp.type": "LogAppendTime"}
    a.create_topic(STAMPED_HERE, configs=stamping)
    _fill_trimmed(estate, "A", STAMPED_HERE)
    estate.contents["B"].create_topic(estate.remote("A->B", STAMPED_THERE), configs=stamping)
    a.create_topic(ORDERS, 2)
    _fill_trimmed(estate, "A", ORDERS, partitions=2)
    estate.contents["B"].create_topic(FROM_B)
    _fill_trimmed(estate, "B", FROM_B)
    _fill_equal_times(estate)
    for topic in (TRANSACTIONS, SAME_TRANSACTIONS):
        _fill_transactions(estate, topic)
    for topic, replicas in (
        (SOUND, {0: [1]}),
        (DAMAGED, {0: [1]}),
        (HALF_AWAY, {0: [1], 1: [2]}),
        (ALL_AWAY, {0: [2]}),
    ):
        d.create_topic(topic, replicas=replicas)
        _fill_trimmed(estate, "D", topic, partitions=len(replicas))
    d.create_topic(FAN_IN)
    # At the same time as on A: how far a position is from its copy would be chance otherwise.
    start_ms = a.read(FAN_IN)[0].timestamp_ms - TRIMMED
    estate.contents["W"].produce(FAN_IN, numbered(RECORDS, first=RECORDS, start_ms=start_ms))
    a.create_topic(COMPACTED, configs=_COMPACTION)
    _fill_compacted(estate, first=0)
    _wait_until_compacted(a, COMPACTED, last_batch=_BATCH)


def mirror(estate: Flows) -> None:
    """Wait until all is mirrored; what was compacted before goes on and is compacted again."""
    for flow, topics in TOPICS.items():
        here = [topic for topic in topics if topic not in (FAN_IN, COME_ROUND)]
        estate.wait_until_mirrored(flow, *here)
    fan_in = estate.contents["Y"]
    wait_until(
        lambda: fan_in.log_range(FAN_IN)[1] == 2 * RECORDS - TRIMMED, "both sources have come in"
    )
    estate.contents["B"].delete_records(estate.remote("A->B", SHORTENED), TRIMMED_THERE)
    _fill_compacted(estate, first=RECORDS)
    estate.wait_until_mirrored("A->B", COMPACTED)
    # Later than all before, on either side, so that all before is in closed segments.
    (_, end) = estate.contents["A"].log_range(COMPACTED)
    last = estate.contents["A"].read(COMPACTED, start=end - 1)[0].timestamp_ms
    closing = numbered(_BATCH, first=2 * RECORDS, start_ms=last + 10_000)
    estate.contents["A"].produce(COMPACTED, closing)
    estate.wait_until_mirrored("A->B", COMPACTED)
    for alias, topic in (("A", COMPACTED), ("B", estate.remote("A->B", COMPACTED))):
        _wait_until_compacted(estate.contents[alias], topic, last_batch=_BATCH)


def _fill_trimmed(estate: Flows, alias: str, topic: str, *, partitions: int = 1) -> None:
    """Records with distinct timestamps, of which the first are gone."""
    for partition in range(partitions):
        records = numbered(RECORDS, first=RECORDS * partition)
        estate.contents[alias].produce(topic, records, partition=partition)
        estate.contents[alias].delete_records(topic, TRIMMED, partition=partition)


def _fill_equal_times(estate: Flows) -> None:
    """Runs of 1 to 300 records with one timestamp each, cut into batches anywhere."""
    chance = random.Random(1292)
    estate.contents["A"].create_topic(EQUAL_TIMES)
    records: list[Written] = []
    time_ms = numbered(1)[0].timestamp_ms
    while len(records) < 2 * RECORDS:
        run = chance.choice((1, 2, 10, 100, 300))
        records += numbered(run, first=len(records), start_ms=time_ms, step_ms=0)
        time_ms += chance.choice((1, 1, 50))
    estate.contents["A"].produce(EQUAL_TIMES, records, batch=37)


def _fill_transactions(estate: Flows, topic: str) -> None:
    """Transactions that are committed and such that are aborted, one after the other."""
    estate.contents["A"].create_topic(topic)
    first = 0
    for number, (count, commit) in enumerate(
        ((40, True), (30, False), (60, True), (1, False), (1, True), (25, False), (80, True))
    ):
        records = numbered(count, first=first)
        transaction = estate.contents["A"].begin_transaction(f"{topic}-{number}")
        transaction.add(topic, records, batch=10)
        (transaction.commit if commit else transaction.abort)()
        first += count


def _fill_compacted(estate: Flows, first: int) -> None:
    """As many updates of few keys; each batch begins a new segment."""
    chance = random.Random(first)
    records = [
        Written(record.timestamp_ms, record.value, b"key-%d" % chance.randrange(120))
        for record in numbered(RECORDS, first=first)
    ]
    estate.contents["A"].produce(COMPACTED, records, batch=_BATCH)


def _wait_until_compacted(contents: Contents, topic: str, *, last_batch: int) -> None:
    """Wait until each key is there once, but for the last batch, which is never compacted."""

    def compacted() -> bool:
        keys = [record.key for record in contents.read(topic)][:-last_batch]
        return len(keys) == len({*keys})

    wait_until(compacted, f"{topic} is compacted")
