"""The topics of the demo: each has one trait that misleads simpler ways to translate offsets, and
every record has a unique value."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

PARTITIONS = 4

TopicAndPartition = tuple[str, int]
"""A topic's name on the source, and a partition."""

_SECOND = 1_000
_HOUR = 3_600 * _SECOND
# The number of records with one timestamp.
_RUN = 400


@dataclass(frozen=True, slots=True)
class DemoRecord:
    """A record in a log, or one that a consumer got."""

    offset: int
    key: bytes | None
    value: bytes


@dataclass(frozen=True, slots=True)
class Fresh:
    timestamp_ms: int
    key: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class DemoTopic:
    """One topic of the source.

    `records` are written to each partition. The first `deleted` ones (by partition) are deleted
    from the source before mirroring begins, so that target offsets are lower. `stamp_ms` is the
    time of record n, counted from 0, after the first one; its key is that of n modulo `keys`.
    """

    name: str
    records: int
    stamp_ms: Callable[[int], int]
    configs: Mapping[str, str] = field(default_factory=dict)
    deleted: Sequence[int] = (0,) * PARTITIONS
    keys: int = 1_000
    compacted: bool = False
    transactional: bool = False

    def fresh(self, partition: int, first: int, end: int, start_ms: int) -> Iterator[Fresh]:
        """The records `first` to `end` (not included) of a partition."""
        for number in range(first, end):
            name = f"{self.name}-{partition}-{number}"
            yield Fresh(
                start_ms + self.stamp_ms(number),
                b"%s-%d" % (self.name.encode(), number % self.keys),
                b'{"id": "%s", "amount": %d.%02d}'
                % (name.encode(), number * 7919 % 500, number % 100),
            )


ORDERS = DemoTopic("orders", 5_500, lambda number: 40 * number, deleted=(400, 537, 674, 811))
CLICKS = DemoTopic(
    "clicks", 4_000, lambda number: _SECOND * (number // _RUN), deleted=(250, 300, 350, 400)
)
# Kafka compacts only closed segments. Groups read the first updates while their segment is open.
# The timestamps of the last updates are an hour later, so their segment is still open at the end.
IN_FIRST_SEGMENT = 390
IN_CLOSED_SEGMENTS = 1_900
ACCOUNTS = DemoTopic(
    "accounts",
    2_000,
    lambda number: 3 * _SECOND * number // 2 + _HOUR * (number >= IN_CLOSED_SEGMENTS),
    configs={
        "cleanup.policy": "compact",
        # By the records' own time.
        "segment.ms": str(_HOUR // 3),
        "min.cleanable.dirty.ratio": "0.01",
    },
    keys=100,
    compacted=True,
)
PAYMENTS = DemoTopic("payments", 1_500, lambda number: 100 * number, transactional=True)

TOPICS = (ORDERS, CLICKS, ACCOUNTS, PAYMENTS)
COMPACTED = frozenset(topic.name for topic in TOPICS if topic.compacted)
WRITTEN = PARTITIONS * sum(topic.records for topic in TOPICS)


def two_hours_ago_ms() -> int:
    """When the records begin, by the clock with which brokers delete old data."""
    return int(time.time() * 1_000) - 2 * _HOUR


Stand = int | tuple[int, ...] | None
"""The index of the first record that a group has not processed, in all partitions or (a tuple) in
each. A negative index counts from the end of the log; None: all records are processed."""


@dataclass(frozen=True, slots=True)
class DemoGroup:
    """A group that reads one topic.

    `at` is its offset, and `stands` describes it. An `early` group stops before the source deletes
    and compacts its records. `on_target` is its offset on the target before the sync, if it has
    read there; `member`: its consumer still runs on the target during the sync.
    """

    name: str
    topic: DemoTopic
    stands: str
    at: Stand
    early: bool = False
    metadata: str = ""
    on_target: Stand = None
    member: bool = False


GROUPS = (
    DemoGroup("billing", ORDERS, "caught up", None, metadata="invoice run 2041"),
    DemoGroup("shipping", ORDERS, "10 records behind", -10),
    DemoGroup("invoices", ORDERS, "1, 50, 500 and 2,500 records behind", (-1, -50, -500, -2_500)),
    DemoGroup("analytics", ORDERS, "3,000 records behind", -3_000),
    DemoGroup("archive", ORDERS, "at records that were deleted later", 150, early=True),
    DemoGroup("alerts", ORDERS, "has a consumer on the target", -200, on_target=1_000, member=True),
    DemoGroup("sessions", CLICKS, "caught up", None),
    DemoGroup("ranking", CLICKS, "among equal timestamps", (-123, -456, -789, -1_011)),
    DemoGroup("fraud", CLICKS, "far behind, at equal timestamps", -3_333),
    DemoGroup("pricing", CLICKS, "is ahead on the target", -1_000, on_target=-100),
    DemoGroup("profiles", ACCOUNTS, "caught up", None),
    DemoGroup("search", ACCOUNTS, "at records that were compacted later", 310, early=True),
    DemoGroup("ledger", PAYMENTS, "caught up, after a marker", None),
    DemoGroup("refunds", PAYMENTS, "before an aborted transaction", -325),
    DemoGroup("reporting", PAYMENTS, "at offset 0", 0),
)
