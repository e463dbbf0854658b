"""The topics of the demo: each has one trait that misleads simpler ways to translate offsets, and
every record has a unique value."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

PARTITIONS = 4

Place = tuple[str, int]
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
# Only closed segments are compacted. The first of these updates are in a segment that is open when
# they are read; the last ones, an hour later, in the one that is open at the end.
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
WRITTEN = PARTITIONS * sum(topic.records for topic in TOPICS)


def two_hours_ago_ms() -> int:
    """When the records begin, by the clock with which brokers delete old data."""
    return int(time.time() * 1_000) - 2 * _HOUR
