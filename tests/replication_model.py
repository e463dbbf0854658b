"""A model of a replicator over random logs that knows of every copy where it came from.

`World` is one source partition, its mirror, and the truth: which target record is a copy of
which source record. The property tests judge translations by it.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from tsoffset.memory_cluster import Clock, MemoryCluster, Message, PartitionLog
from tsoffset.model import Isolation, TopicPartition

SOURCE = TopicPartition("orders", 0)
TARGET = TopicPartition("A.orders", 0)
NOW_MS = 1_800_000_000_000
FAR_FUTURE_MS = NOW_MS + 100 * 365 * 86_400_000
TIMESTAMPS = ("rising", "equal_runs", "jitter", "one", "wild", "far_future", "negative")


@dataclass(frozen=True)
class Kind:
    """What a random log is like; shares are between 0 and 1."""

    records: int = 60
    timestamps: str = "rising"
    twins: float = 0.0
    keys: int = 12
    batch: int = 10
    transactions: bool = False
    dropped: float = 0.0
    repeats: int = 0
    unfinished_repeat: bool = False
    lag: float = 0.0
    foreign: float = 0.0
    source_compacted: bool = False
    target_compacted: bool = False
    source_trimmed: float = 0.0
    target_trimmed: float = 0.0
    isolation: Isolation = Isolation.READ_UNCOMMITTED


@dataclass
class World:
    """One partition on both sides, with the truth of where each target record came from."""

    source_cluster: MemoryCluster
    target_cluster: MemoryCluster
    isolation: Isolation
    origins: dict[int, int] = field(default_factory=dict)
    reached: int = 0
    dropped: set[int] = field(default_factory=set)

    @property
    def source(self) -> PartitionLog:
        return self.source_cluster.log(SOURCE.topic)

    @property
    def target(self) -> PartitionLog:
        return self.target_cluster.log(TARGET.topic)

    def positions(self) -> range:
        """Every offset that a group can have committed."""
        return range(self.source.start, self.source.end + 1)

    def is_safe(self, committed: int, target_offset: int) -> bool:
        """No source record from `committed` on is on the target below `target_offset` only.

        What compaction took from the source is no source record any more: who reads on there
        does not get it either.
        """
        highest: dict[int, int] = {}
        existing = {offset for offset, _ in self.source.messages(self.isolation)}
        for offset in self._on_target():
            origin = self.origins.get(offset)
            if origin is not None and origin >= committed and origin in existing:
                highest[origin] = offset
        return all(offset >= target_offset for offset in highest.values())

    def rereads(self, committed: int, target_offset: int) -> int:
        """How many source records before `committed` come again from `target_offset` on: those
        whose first image lies there, and those that the replicator has yet to copy."""
        first: dict[int, int] = {}
        for offset, origin in sorted(self.origins.items()):
            first.setdefault(origin, offset)
        there = set(self._on_target())
        existing = {offset for offset, _ in self.source.messages(self.isolation)}
        again = sum(
            1
            for origin, offset in first.items()
            if origin < committed
            and offset >= target_offset
            and offset in there
            and origin in existing
        )
        to_come = sum(
            1
            for offset, _ in self.source.messages(self.isolation)
            if self.reached <= offset < committed
            and offset not in self.dropped
            and offset not in first
        )
        return again + to_come

    def first_images(self, start: int, end: int) -> list[int]:
        """Target offsets in [start, end) that hold the first image of a record that the source
        still has."""
        existing = {offset for offset, _ in self.source.messages(self.isolation)}
        seen: set[int] = set()
        found = []
        for offset, origin in sorted(self.origins.items()):
            if origin not in seen and origin in existing and start <= offset < end:
                found.append(offset)
            seen.add(origin)
        there = set(self._on_target())
        return [offset for offset in found if offset in there]

    def _on_target(self) -> list[int]:
        return [offset for offset, _ in self.target.messages(Isolation.READ_COMMITTED)]


def build(kind: Kind, seed: int) -> World:
    """A random world of this kind; the same for the same seed."""
    rng = random.Random(seed)
    clock = Clock(NOW_MS)
    source, target = MemoryCluster("A", clock=clock), MemoryCluster("B", clock=clock)
    source.create_topic(SOURCE.topic)
    first = rng.choice((0, 0, rng.randrange(50)))
    target.create_topic(TARGET.topic, first_offset=first)
    world = World(source, target, kind.isolation)
    _write(world.source, kind, rng)
    if kind.source_trimmed and rng.random() < 0.5:
        _trim(world.source, kind.source_trimmed * rng.random())
    world.reached = world.source.start
    _replicate(world, kind, rng)
    if kind.source_compacted:
        world.source.compact(before=world.source.end - rng.randrange(1, 12))
    if kind.target_compacted:
        world.target.compact(before=_compactable(world, kind, rng))
    if kind.source_trimmed:
        _trim(world.source, kind.source_trimmed * rng.random())
    if kind.target_trimmed:
        _trim(world.target, kind.target_trimmed * rng.random())
    return world


def _messages(kind: Kind, rng: random.Random) -> Iterable[Message]:
    at, written = NOW_MS, []
    for number in range(kind.records):
        if written and rng.random() < kind.twins:
            again = rng.choice(written[-8:] if rng.random() < 0.7 else written)
            # Half of the twins bear the first one's time: the application wrote an event twice.
            stamp = again.timestamp_ms if rng.random() < 0.5 else at
            message = Message(stamp, again.key, again.value)
        else:
            key = b"k%d" % rng.randrange(kind.keys) if kind.keys else None
            message = Message(_stamp(kind, number, at, rng), key, b"v%d" % number)
        written.append(message)
        at += 0 if kind.timestamps == "equal_runs" and rng.random() < 0.8 else rng.randrange(1, 5)
        yield message


def _stamp(kind: Kind, number: int, at: int, rng: random.Random) -> int | None:
    match kind.timestamps:
        case "jitter":
            return at + rng.randrange(-6, 7)
        case "one":
            return NOW_MS
        case "wild":
            return NOW_MS + rng.randrange(0, 300)
        case "far_future":
            return FAR_FUTURE_MS if number == 2 or rng.random() < 0.03 else at
        case "negative":
            return None if rng.random() < 0.3 else at
        case _:
            return at


def _write(log: PartitionLog, kind: Kind, rng: random.Random) -> None:
    pending = list(_messages(kind, rng))
    while pending:
        size = rng.randrange(1, kind.batch + 1)
        batch, pending = pending[:size], pending[size:]
        if kind.transactions and rng.random() < 0.6:
            transaction = log.begin()
            transaction.append(batch)
            if rng.random() < 0.3:
                transaction.abort()
            else:
                transaction.commit()
        else:
            log.append(batch)


def _replicate(world: World, kind: Kind, rng: random.Random) -> None:
    readable = list(world.source.messages(kind.isolation))
    dropped_values = {m.value for _, m in readable if rng.random() < kind.dropped}
    world.dropped = {offset for offset, m in readable if m.value in dropped_values}
    stop = world.source.end
    if kind.lag and readable:
        stop -= int((world.source.end - world.source.start) * kind.lag * rng.random())
    ends = sorted(rng.randrange(world.source.start, stop + 1) for _ in range(kind.repeats))
    at = world.source.start
    for end in [*ends, stop]:
        _copy(world, kind, rng, readable, at, end)
        world.reached = max(world.reached, end)
        at = max(world.source.start, end - rng.randrange(0, 15)) if kind.repeats else end
    if kind.unfinished_repeat:
        at = rng.randrange(world.source.start, stop + 1)
        _copy(world, kind, rng, readable, at, min(stop, at + rng.randrange(0, 20)))


def _copy(
    world: World,
    kind: Kind,
    rng: random.Random,
    readable: list[tuple[int, Message]],
    start: int,
    end: int,
) -> None:
    wanted = [(o, m) for o, m in readable if start <= o < end and o not in world.dropped]
    while wanted:
        if rng.random() < kind.foreign:
            world.target.append(
                [Message(NOW_MS + rng.randrange(300), b"other", b"%d" % len(wanted))]
            )
        size = rng.randrange(1, kind.batch + 1)
        part, wanted = wanted[:size], wanted[size:]
        if kind.transactions and rng.random() < 0.3:
            transaction = world.target.begin()
            first = transaction.append([m for _, m in part])
            if rng.random() < 0.2:
                transaction.abort()
                wanted = part + wanted
                continue
            transaction.commit()
        else:
            first = world.target.append([m for _, m in part])
        world.origins.update({first + n: offset for n, (offset, _) in enumerate(part)})


def _compactable(world: World, kind: Kind, rng: random.Random) -> int:
    """Brokers never compact the active segment, so never a stretch that is being repeated."""
    if kind.unfinished_repeat:
        firsts: dict[int, int] = {}
        for offset, origin in sorted(world.origins.items()):
            firsts.setdefault(origin, offset)
        repeated = {o for at, o in world.origins.items() if at != firsts[o]}
        return min((firsts[o] for o in repeated), default=world.target.end)
    return world.target.end - rng.randrange(1, 12)


def _trim(log: PartitionLog, share: float) -> None:
    end = log.high_watermark
    before = log.start + int((end - log.start) * share)
    if before > log.start:
        log.delete_records(before)
