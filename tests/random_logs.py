"""Kinds of random logs, and the applications that write them."""

# ruff: noqa: RUF009 (what `_of` returns is a field)

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from tsoffset.model import Isolation, TimestampType
from tsoffset.testing.memory_cluster import Message, PartitionLog

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
    "late",
    "two_clocks",
    "backfill",
)
A_DAY_MS = 86_400_000


def _of(*choices: Any, usual: Any = None) -> Any:
    """A field that random kinds have one of these choices in, and ordinary logs the first one, or
    `usual`."""
    default = choices[0] if usual is None else usual
    return field(default=default, metadata={"choices": choices})


@dataclass(frozen=True)
class Kind:
    """What a random log and its replicator are like; shares are between 0 and 1.

    Applications: `timestamps` are those of events: some are `late`, two producers have `two_clocks`
    that are apart, a `backfill` writes a series of old ones near the end. `twins` are single
    records written again, `couples` series of two to four (a producer's retry), `replays` those
    of up to thirty, between others' records; `bare` records
    have neither key nor value. `padding` widens values, so that a read of 64 kB holds few records.
    `segments` is about how many records a segment holds
    (0: one segment for all).

    The replicator: `gap`: it leaves a part out for good. `rewind` is how far restarts go
    back, as a share of the log (0: up to 14 records); `unfinished_repeats` counts those under
    way at the end. `set_back`: how often the mirror is copied again from the source's start,
    whole or unfinished; `begins_late`: it first starts inside the log, and is set back once.
    `filter_changes`: its filter (`dropped`) gets `wider` or `narrower` at a restart, that is it
    lets more or less through. `two_at_once`: a second one copies the same source at the same
    time. `exactly_once`: it writes a backlog in transactions, whose markers bear today's time.
    `offset_header`: it writes the source offset into a header: `always`, `later` (switched on
    at a restart), on `some` copies; `off` by some in some of its lives, or `stale` on some
    copies. `rewrites`: `values` or `keys` are changed on the way. `stamps`: a copy of a record
    without a timestamp gets the time of the copying, as from all producers in Java.

    What else happens: `foreign` records are of others, `foreign_equal` ones equal a record of
    the source. `compacted_between`: cleaners and retention run between the replicator's runs,
    too. `cleaned_partly`: they stop anywhere in the log. `loses_later`: the source loses such a
    share of the later ones of equal records. `failback`: the flow goes from the replica to its
    original; what is said of source and target holds for original and replica.
    """

    # Mostly short logs, where everything is near everything; a few long ones.
    records: int = _of(*range(71), *[150] * 15, *[300] * 10, *[1_500] * 3, 5_000, usual=60)
    timestamps: str = _of(*TIMESTAMPS)
    append_time: str = _of(*["never"] * 6, "source", "target_first", "target_later")
    twins: float = _of(0.0, 0.0, 0.05, 0.3, 0.6)
    couples: float = _of(*[0.0] * 6, 0.05)
    replays: float = _of(*[0.0] * 6, 0.03)
    keys: int = _of(0, 1, 3, 12, 1_000, usual=12)
    bare: float = _of(0.0, 0.0, 0.0, 0.1, 1.0)
    tombstones: float = _of(0.0, 0.0, 0.2)
    headers: bool = _of(False, False, True)
    padding: int = _of(0, 0, 0, 0, 3_000, 30_000)
    batch: int = _of(1, 3, 10, 100, 1_000, usual=10)
    segments: int = _of(0, 0, 5, 20)
    transactions: bool = _of(False, True)
    open_transaction: bool = _of(False, False, False, True)
    dropped: float = _of(0.0, 0.0, 0.3)
    rewrites: str = _of(*[""] * 6, "values", "keys")
    stamps: bool = _of(False, True)
    gap: bool = _of(False, False, False, True)
    repeats: int = _of(0, 0, 1, 3)
    rewind: float = _of(0.0, 0.0, 0.3, 1.0)
    set_back: int = _of(0, 0, 0, 0, 1, 2)
    begins_late: bool = _of(*[False] * 5, True)
    filter_changes: str = _of(*[""] * 4, "wider", "narrower")
    two_at_once: bool = _of(*[False] * 6, True)
    exactly_once: bool = _of(*[False] * 8, True)
    offset_header: str = _of(*[""] * 12, "always", "later", "some", "off", "stale")
    unfinished_repeats: int = _of(0, 0, 1, 2)
    lag: float = _of(0.0, 0.0, 0.3, 0.6)
    foreign: float = _of(0.0, 0.0, 0.2)
    foreign_equal: float = _of(*[0.0] * 15, 0.1)
    compacted_between: bool = _of(False, False, True)
    cleaned_partly: bool = _of(False, False, True)
    loses_later: float = _of(*[0.0] * 15, 0.3)
    failback: bool = _of(*[False] * 9, True)
    source_compacted: bool = _of(False, False, True)
    target_compacted: bool = _of(False, False, True)
    source_trimmed: float = _of(0.0, 0.0, 0.3, 0.6)
    target_trimmed: float = _of(0.0, 0.0, 0.3, 0.6)
    isolation: Isolation = _of(*Isolation)

    @property
    def match(self) -> frozenset[str]:
        """What the replicator leaves as it was, for `translation.match`."""
        return frozenset({"timestamp", "key", "value"}) - {self.rewrites.removesuffix("s")}


CHOICES: dict[str, tuple[Any, ...]] = {it.name: it.metadata["choices"] for it in fields(Kind)}
"""What random kinds are made of, each as often as its field names it."""


def only(kind: Kind, names: Iterable[str]) -> Kind:
    """Of a kind these fields alone; the others are as in an ordinary log."""
    return Kind(**{name: getattr(kind, name) for name in names})


def _messages(kind: Kind, rng: random.Random) -> Iterable[tuple[int, Message]]:
    """Messages, each with the time at which it is written."""
    at = NOW_MS
    written: list[Message] = []
    retried: list[Message] = []
    for number in range(kind.records):
        if not retried and len(written) > 1 and rng.random() < kind.couples:
            first = max(0, len(written) - rng.randrange(2, 14))
            retried = written[first : first + rng.randrange(2, 5)]
        if kind.replays and not retried and written and rng.random() < kind.replays:
            first = rng.randrange(len(written))
            retried = written[first : first + rng.randrange(1, 30)]
        if retried and not (kind.replays and rng.random() < 0.2):
            message = retried.pop(0)
        elif written and rng.random() < kind.twins:
            message = rng.choice(written[-8:] if rng.random() < 0.7 else written)
            # Half of the duplicates have the first one's time: an event was written twice.
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
        case "late":
            return at - rng.randrange(5 * kind.records) if rng.random() < 0.02 else at
        case "two_clocks":
            return at - (kind.records if rng.random() < 0.5 else 0)
        case "backfill":
            written = number - kind.records * 3 // 4
            return at - 3 * kind.records if 0 <= written < kind.records // 8 else at
        case "negative":
            return None if rng.random() < 0.3 else at
        case _:
            return at


def write(log: PartitionLog, kind: Kind, rng: random.Random) -> None:
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
