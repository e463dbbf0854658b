"""A model of a replicator over random logs that knows of every copy where it came from.

`World` is one source partition, its mirror, and the truth: which target record is a copy of
which source record. The property tests and the tables of docs/accuracy.md judge translations
by it. `build` makes one from a `Kind` and a seed, the same for the same seed.
"""

import random
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from tests.random_logs import NOW_MS, TIMESTAMPS, Kind, write
from tsoffset.memory_cluster import Clock, MemoryCluster, Message, PartitionLog
from tsoffset.model import Isolation, TimestampType, TopicPartition

__all__ = ["NOW_MS", "SOURCE", "TARGET", "TIMESTAMPS", "Kind", "World", "build"]

SOURCE = TopicPartition("orders", 0)
TARGET = TopicPartition("A.orders", 0)


@dataclass
class World:
    """One partition on both sides, with the truth of where each target record came from.

    `written` is what the source has ever held. `runs` are the replicator's lives: what each
    copied, as (source offset, target offset), in order. `left_out` are source offsets that it
    never copies; it has read the source up to `reached`. What the truth says is computed once:
    do not change the logs after asking.
    """

    source_cluster: MemoryCluster
    target_cluster: MemoryCluster
    kind: Kind
    written: dict[int, Message] = field(default_factory=dict)
    runs: list[list[tuple[int, int]]] = field(default_factory=list)
    reached: int = 0
    left_out: set[int] = field(default_factory=set)

    @property
    def source(self) -> PartitionLog:
        return self.source_cluster.log(SOURCE.topic)

    @property
    def target(self) -> PartitionLog:
        return self.target_cluster.log(TARGET.topic)

    @property
    def isolation(self) -> Isolation:
        """What the replicator reads the source with."""
        return self.kind.isolation

    def positions(self) -> range:
        """Every offset that a group can have committed."""
        return range(self.source.start, self.source.end + 1)

    @cached_property
    def target_end(self) -> int:
        """The end of what can be read there: undecided records lie at it or after."""
        return self.target.readable_end(Isolation.READ_COMMITTED)

    @cached_property
    def origins(self) -> dict[int, int]:
        """Source offset of every copy ever made, by its target offset."""
        return {copy: origin for run in self.runs for origin, copy in run}

    @cached_property
    def data(self) -> list[int]:
        """Offsets of the source's data records: what compaction took is none any more."""
        return [offset for offset, _ in self.source.messages(self.isolation)]

    @cached_property
    def copies(self) -> list[tuple[int, int]]:
        """(target offset, source offset) of all copies of existing records that are there,
        ascending; undecided ones too, for they are readable sooner or later."""
        existing = set(self.data)
        return [
            (copy, self.origins[copy])
            for copy, _ in self.target.messages()
            if self.origins.get(copy) in existing
        ]

    @cached_property
    def _limits(self) -> tuple[list[int], list[int]]:
        """Source records with a copy, and the lowest of the highest copies from each one on."""
        highest = {origin: copy for copy, origin in self.copies}
        origins = sorted(highest)
        limits = [highest[origin] for origin in origins]
        for at in range(len(limits) - 2, -1, -1):
            limits[at] = min(limits[at], limits[at + 1])
        return origins, limits

    def true_position(self, committed: int) -> int:
        """The highest safe target offset: every source record from `committed` on that is on the
        target is there at it or after, at least in one copy. The log end if there is none."""
        origins, limits = self._limits
        at = bisect_left(origins, committed)
        return limits[at] if at < len(limits) else self.target.high_watermark

    def is_safe(self, committed: int, target_offset: int) -> bool:
        """Judged as if the source died now: copies still to be made do not help."""
        return target_offset <= self.true_position(committed)

    def _passed(self, committed: int, target_offset: int) -> set[tuple[object, ...]]:
        """What the records are from `committed` on that lie below the target offset alone."""
        ahead = {origin for copy, origin in self.copies if copy >= target_offset}
        return {
            self._identity(self.written[origin])
            for _, origin in self.copies
            if origin >= committed and origin not in ahead
        }

    def passes_stand_ins_alone(self, committed: int, target_offset: int) -> bool:
        """True where each record that an unsafe answer passes equals one that the group has read
        and that has no copy of its own on the target: the passed one stands in for it there."""
        on_target = {origin for _, origin in self.copies}
        return self._passed(committed, target_offset) <= {
            self._identity(self.written[origin])
            for origin in self.data
            if origin < committed and origin not in on_target
        }

    def passes_equals_alone(self, committed: int, target_offset: int) -> bool:
        """True where each record that an unsafe answer passes equals one that the group has read
        or will read: no content is lost."""
        read = {origin for origin in self.data if origin < committed}
        ahead = {origin for copy, origin in self.copies if copy >= target_offset}
        return self._passed(committed, target_offset) <= {
            self._identity(self.written[origin]) for origin in read | ahead
        }

    @cached_property
    def _first_images(self) -> list[tuple[int, int]]:
        """(target offset, source offset) of all first images that are there, ascending."""
        first: dict[int, int] = {}
        for copy, origin in sorted(self.origins.items()):
            first.setdefault(origin, copy)
        return [(copy, origin) for copy, origin in self.copies if first[origin] == copy]

    @cached_property
    def _to_come(self) -> list[int]:
        """Source offsets of the records that will be copied for the first time, undecided ones
        included."""
        readable = self.source.readable_end(self.isolation)
        undecided = [offset for offset, _ in self.source.messages() if offset >= readable]
        copied = set(self.origins.values())
        return [
            offset
            for offset in [*self.data, *undecided]
            if offset >= self.reached and offset not in self.left_out and offset not in copied
        ]

    def rereads(self, committed: int, target_offset: int) -> int:
        """How many source records before `committed` come again from `target_offset` on: those
        whose first image lies there, and those that the replicator has yet to copy. Copies
        that it made by repeating, and records that the source has lost, are not counted."""
        return len(self._reread(committed, target_offset))

    def _reread(self, committed: int, target_offset: int) -> list[int]:
        images = self._first_images
        again = [origin for _, origin in images[bisect_left(images, (target_offset, -1)) :]]
        to_come = self._to_come[: bisect_left(self._to_come, committed)]
        return [origin for origin in again if origin < committed] + to_come

    def resumes_differ(self, committed: int, low: int, high: int) -> bool:
        """True where a consumer that resumes at `low` gets a first image of a record from
        `committed` on, or one that it has read, which it does not get from `high` on."""
        ahead = {origin for copy, origin in self.copies if copy >= high}
        return any(
            origin not in ahead or origin < committed
            for copy, origin in self._first_images
            if low <= copy < high
        )

    @cached_property
    def _mistakable(self) -> list[tuple[int, int]]:
        """Source offsets of each record that was copied and then lost while an equal one is still
        there, and of that one, in order: a copy of the first is taken for one of the second, and
        all that lies between for copied."""
        present: dict[tuple[object, ...], list[int]] = {}
        for offset in self.data:
            present.setdefault(self._identity(self.written[offset]), []).append(offset)
        spans = []
        for lost in set(self.origins.values()) - set(self.data):
            equals = present.get(self._identity(self.written[lost]), [])
            spans += [(min(lost, equal), max(lost, equal)) for equal in equals]
        return spans

    @property
    def lost_an_equal(self) -> bool:
        """True where the source has lost one of two equal records."""
        return bool(self._mistakable)

    def certain_rereads(self, committed: int, target_offset: int) -> int:
        """`rereads` but for those that nobody can tell of: see `_mistakable`."""
        return sum(
            1
            for offset in self._reread(committed, target_offset)
            if not any(first <= offset <= last for first, last in self._mistakable)
        )

    def _identity(self, message: Message) -> tuple[object, ...]:
        return tuple(
            value
            for name, value in (
                ("timestamp", message.timestamp_ms),
                ("key", message.key),
                ("value", message.value),
            )
            if name in self.kind.match
        )


Look = Callable[["World"], None]


def build(kind: Kind, seed: int, *, look: Look | None = None) -> World:
    """A random world of this kind; the same for the same seed.

    `look` is shown the world whenever a run of the replicator has ended, before cleaners and
    retention come; it must not ask for the truth yet.
    """
    rng = random.Random(seed)
    clock = Clock(NOW_MS)
    source, target = MemoryCluster("A", clock=clock), MemoryCluster("B", clock=clock)
    source.create_topic(SOURCE.topic)
    target.create_topic(TARGET.topic, first_offset=rng.choice((0, 0, rng.randrange(50))))
    world = World(source, target, kind)
    write(world.source, kind, rng)
    world.written = dict(world.source.messages())
    if kind.source_trimmed and rng.random() < 0.5:
        _trim(world.source, kind.source_trimmed * rng.random())
    _Replicator(world, rng, look).work()
    _clean(world, rng)
    if kind.source_trimmed:
        _trim(world.source, kind.source_trimmed * rng.random())
    if kind.target_trimmed:
        _trim(world.target, kind.target_trimmed * rng.random())
    return world


# --- what becomes of logs ---------------------------------------------------------------


def _clean(world: World, rng: random.Random) -> None:
    """Log compaction, on the sides that have it."""
    world.source.clock.now_ms += 5 * world.kind.records
    if world.kind.source_compacted:
        _compact(world.source, world.source.end, world.kind, rng)
    if world.kind.target_compacted:
        _compact(world.target, _compactable(world), world.kind, rng)


def _compact(log: PartitionLog, before: int, kind: Kind, rng: random.Random) -> None:
    # The segment that is written to, and one with undecided records, are left alone.
    before = min(before, log.last_stable_offset - rng.randrange(1, 12))
    log.compact(before=before)
    if kind.tombstones and rng.random() < 0.5:
        # Their retention has passed, too: nothing is left of such a key.
        gone = [offset for offset, m in log.messages() if offset < before and m.value is None]
        log.remove(gone, keep_empty_batches=rng.random() < 0.3)


def _compactable(world: World) -> int:
    """Brokers never compact the active segment, so never a stretch that is being repeated."""
    end = world.target.end
    firsts: dict[int, int] = {}
    for run in world.runs:
        for origin, copy in run:
            firsts.setdefault(origin, copy)
    for run in world.runs[len(world.runs) - world.kind.unfinished_repeats :]:
        end = min([end, *(firsts[origin] for origin, _ in run)])
    return end


def _trim(log: PartitionLog, share: float) -> None:
    end = log.high_watermark
    before = log.start + int((end - log.start) * share)
    if before > log.start:
        log.delete_records(before)


# --- the replicator ---------------------------------------------------------------------


class _Replicator:
    """Copies in order, and begins again further back when it is restarted."""

    def __init__(self, world: World, rng: random.Random, look: Look | None) -> None:
        self.world = world
        self.look = look
        self.kind = world.kind
        self.rng = rng
        self.source, self.target = world.source, world.target

    def work(self) -> None:
        rng, kind, world = self.rng, self.kind, self.world
        readable = list(self.source.messages(kind.isolation))
        values = {m.value for _, m in readable if rng.random() < kind.dropped}
        world.left_out = {offset for offset, m in readable if m.value in values}
        world.reached = start = self.source.start
        stop = self.source.readable_end(kind.isolation)
        if kind.lag:
            stop -= int((stop - start) * kind.lag * rng.random())
        if kind.gap:
            first = rng.choice((start, rng.randrange(start, stop + 1)))
            world.left_out.update(range(first, rng.randrange(first, stop + 1)))
        if kind.append_time == "target_first":
            self.target.timestamp_type = TimestampType.LOG_APPEND_TIME
        ends = sorted(rng.randrange(start, stop + 1) for _ in range(kind.repeats))
        at = rng.randrange(start, stop + 1) if kind.begins_late else start
        for end in [*ends, stop]:
            self._run(at, end)
            world.reached = max(world.reached, end)
            if self.look is not None:
                self.look(world)
            at = self._restart(end)
            if kind.begins_late:
                at, world.reached = start, start
            self._between_runs()
        end = stop
        for _ in range(kind.unfinished_repeats):
            # No run begins behind what the one before it has come to.
            at = rng.randrange(start, end + 1)
            end = min(stop, at + rng.randrange(0, max(20, kind.records // 50)))
            self._run(at, end)

    def _restart(self, end: int) -> int:
        """Where the next run begins: at what was noted down as done, or earlier."""
        if not self.kind.repeats:
            return end
        back = self.rng.randrange(0, 15)
        if self.kind.rewind:
            back = self.rng.randrange(0, 1 + int(self.kind.rewind * self.kind.records))
        return max(self.source.start, end - back)

    def _between_runs(self) -> None:
        late = self.kind.append_time
        if late == "target_later" and self.rng.random() < 0.5:
            self.target.timestamp_type = TimestampType.LOG_APPEND_TIME
        if late == "target_first" and self.rng.random() < 0.5:
            self.target.timestamp_type = TimestampType.CREATE_TIME
        if self.kind.compacted_between:
            _clean(self.world, self.rng)
            if self.kind.target_trimmed and self.rng.random() < 0.3:
                _trim(self.target, self.kind.target_trimmed * self.rng.random())

    def _run(self, start: int, end: int) -> None:
        kind, rng = self.kind, self.rng
        run: list[tuple[int, int]] = []
        self.world.runs.append(run)
        wanted = [
            (offset, self._changed(message))
            for offset, message in self.source.messages(kind.isolation)
            if start <= offset < end and offset not in self.world.left_out
        ]
        while wanted:
            self.target.clock.now_ms += rng.randrange(0, 5)
            if rng.random() < kind.foreign:
                stamp = NOW_MS + rng.randrange(5 * kind.records)
                self.target.append([Message(stamp, b"other", b"%d" % len(wanted))])
            size = rng.randrange(1, kind.batch + 1)
            if kind.segments and rng.random() * kind.segments < size:
                self.target.roll()
            part, wanted = wanted[:size], wanted[size:]
            first = self._append([message for _, message in part], last=not wanted)
            if first is None:
                wanted = part + wanted
                continue
            run.extend((offset, first + n) for n, (offset, _) in enumerate(part))

    def _changed(self, message: Message) -> Message:
        if self.kind.rewrites == "values":
            message = replace(message, value=b"schema 7 " + (message.value or b""))
        if self.kind.rewrites == "keys":
            message = replace(message, key=b"tenant 7 " + (message.key or b""))
        if self.kind.headers:
            message = replace(message, headers=(*message.headers, ("hop", b"A")))
        return message

    def _append(self, messages: list[Message], *, last: bool) -> int | None:
        """The first offset; None where the transaction that wrote them was aborted."""
        if not (self.kind.transactions and self.rng.random() < 0.3):
            return self.target.append(messages)
        transaction = self.target.begin()
        first = transaction.append(messages)
        if self.rng.random() < 0.2:
            transaction.abort()
            return None
        if not (last and self.kind.open_transaction):
            transaction.commit()
        return first
