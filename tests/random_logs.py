"""Kinds of random logs, and the applications that write them."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tsoffset.memory_cluster import Message, PartitionLog
from tsoffset.model import Isolation, TimestampType

NOW_MS = 1_800_000_000_000
FAR_FUTURE_MS = NOW_MS + 100 * 365 * 86_400_000
TIMESTAMPS = (
    "rising",
    "equal_runs",
    "jitter",
    "one",
    "wild",
    "clock_back",
    "far_future",
    "negative",
)
APPEND_TIME = ("never", "source", "target_first", "target_later")


@dataclass(frozen=True)
class Kind:
    """What a random log and its replicator are like; shares are between 0 and 1.

    `twins` are single records written again, `couples` stretches of two to four (a producer's
    retry); `bare` records have neither key nor value. `padding` widens values, so that a read
    of 64 kB holds few records. `segments` is about how many records a segment holds (0: one
    segment for all). `gap`: the replicator leaves a stretch out for good. `rewind` is how far
    restarts go back, as a share of the log (0: up to 14 records); `unfinished_repeats` counts
    those under way at the end. `compacted_between`: cleaners and retention run between the
    replicator's runs, too. `begins_late`: the first run starts inside the log, the second at
    its beginning. `rewrites`: `values` or `keys` are changed on the way.
    """

    records: int = 60
    timestamps: str = "rising"
    append_time: str = "never"
    twins: float = 0.0
    couples: float = 0.0
    keys: int = 12
    bare: float = 0.0
    tombstones: float = 0.0
    headers: bool = False
    padding: int = 0
    batch: int = 10
    segments: int = 0
    transactions: bool = False
    open_transaction: bool = False
    dropped: float = 0.0
    rewrites: str = ""
    gap: bool = False
    repeats: int = 0
    rewind: float = 0.0
    begins_late: bool = False
    unfinished_repeats: int = 0
    lag: float = 0.0
    foreign: float = 0.0
    compacted_between: bool = False
    source_compacted: bool = False
    target_compacted: bool = False
    source_trimmed: float = 0.0
    target_trimmed: float = 0.0
    isolation: Isolation = Isolation.READ_UNCOMMITTED

    @property
    def match(self) -> frozenset[str]:
        """What the replicator leaves as it was, for `translation.match`."""
        return frozenset({"timestamp", "key", "value"}) - {self.rewrites.removesuffix("s")}


def _messages(kind: Kind, rng: random.Random) -> Iterable[tuple[int, Message]]:
    """Messages, each with the time at which it is written."""
    at = NOW_MS
    written: list[Message] = []
    retried: list[Message] = []
    for number in range(kind.records):
        if not retried and len(written) > 1 and rng.random() < kind.couples:
            first = max(0, len(written) - rng.randrange(2, 14))
            retried = written[first : first + rng.randrange(2, 5)]
        if retried:
            message = retried.pop(0)
        elif written and rng.random() < kind.twins:
            message = rng.choice(written[-8:] if rng.random() < 0.7 else written)
            # Half of the twins bear the first one's time: the application wrote an event twice.
            if rng.random() < 0.5:
                message = replace(message, timestamp_ms=at)
        else:
            message = _message(kind, number, at, rng)
        written.append(message)
        yield at, message
        at += 0 if kind.timestamps == "equal_runs" and rng.random() < 0.8 else rng.randrange(1, 5)


def _message(kind: Kind, number: int, at: int, rng: random.Random) -> Message:
    stamp = _stamp(kind, number, at, rng)
    headers = (("h", b"%d" % number),) if kind.headers else ()
    if kind.bare and rng.random() < kind.bare:
        return Message(stamp, None, None, headers)
    key = b"k%d" % rng.randrange(kind.keys) if kind.keys else None
    if key is not None and kind.tombstones and rng.random() < kind.tombstones:
        return Message(stamp, key, None, headers)
    return Message(stamp, key, b"v%d" % number + b"." * kind.padding, headers)


def _stamp(kind: Kind, number: int, at: int, rng: random.Random) -> int | None:
    match kind.timestamps:
        case "jitter":
            return at + rng.randrange(-6, 7)
        case "one":
            return NOW_MS
        case "wild":
            return NOW_MS + rng.randrange(0, 5 * kind.records)
        case "clock_back":
            return at - (2 * kind.records if number > kind.records // 2 else 0)
        case "far_future":
            return FAR_FUTURE_MS if number == 2 or rng.random() < 0.03 else at
        case "negative":
            return None if rng.random() < 0.3 else at
        case _:
            return at


def write(log: PartitionLog, kind: Kind, rng: random.Random) -> None:
    """Fill a log as the applications of this kind do."""
    pending = list(_messages(kind, rng))
    if kind.append_time == "source":
        log.timestamp_type = TimestampType.LOG_APPEND_TIME
    never_ended = rng.randrange(max(1, len(pending) - 15), len(pending) + 1) if pending else 0
    while pending:
        size = rng.randrange(1, kind.batch + 1)
        part, pending = pending[:size], pending[size:]
        log.clock.now_ms = part[-1][0]
        batch = [message for _, message in part]
        if kind.append_time == "source":
            batch = [replace(message, timestamp_ms=log.clock.now_ms) for message in batch]
        if kind.segments and rng.random() * kind.segments < size:
            log.roll()
        if kind.open_transaction and len(pending) < kind.records - never_ended:
            log.begin().append(batch)
            never_ended = kind.records
        elif kind.transactions and rng.random() < 0.6:
            transaction = log.begin()
            transaction.append(batch)
            if rng.random() < 0.3:
                transaction.abort()
            else:
                transaction.commit()
        else:
            log.append(batch)
