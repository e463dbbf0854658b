"""A model of a replicator, and of what brokers do to both logs meanwhile.

It stands at a source offset. Each step takes the next record and copies it or leaves it out; a
restart leads back, never forwards over what it has not passed. A second one may do the same at
the same time. What lies on both logs is then cleaned and trimmed, as brokers do.
"""

import random
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace

from tests.random_logs import A_DAY_MS, NOW_MS, Kind
from tsoffset.model import TimestampType
from tsoffset.records import OffsetHeader
from tsoffset.testing.memory_cluster import Message, PartitionLog


@dataclass
class ReplicatorHistory:
    """What a replicator has done.

    `runs` are its lives: what each copied, as (offset, offset of the copy), in order. It stands
    at `stands` now, and has read up to `reached` at the most. `left_out` are offsets that it
    does not copy (any more). `aborted` are copies in transactions that were. `equal_to_ours` are
    offsets of others' records among the copies that equal a record of the original.
    """

    runs: list[list[tuple[int, int]]] = field(default_factory=list)
    stands: int = 0
    reached: int = 0
    left_out: set[int] = field(default_factory=set)
    aborted: list[tuple[int, int]] = field(default_factory=list)
    equal_to_ours: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Leg:
    """One run of a replicator: from where a restart leads (None), or from an offset, up to
    `end`; `later` are those after filter and header were changed."""

    start: int | None
    end: int
    later: bool


class Replicator:
    """Copies in order, and begins again further back when it is restarted."""

    def __init__(
        self,
        kind: Kind,
        source: PartitionLog,
        target: PartitionLog,
        life: ReplicatorHistory,
        header: OffsetHeader,
        rng: random.Random,
        look: Callable[[], None],
    ) -> None:
        self.kind = kind
        self.source, self.target = source, target
        self.life = life
        self.header = header
        self.rng = rng
        self.look = look
        self.left_out_first: set[int] = set()
        self.later = False
        self.shift = 0

    def work(self) -> None:
        rng, kind, life = self.rng, self.kind, self.life
        start = self.source.start
        stop = self.source.readable_end(kind.isolation)
        if kind.lag:
            stop -= int((stop - start) * kind.lag * rng.random())
        self._choose_what_is_left_out(start, stop)
        if kind.append_time == "target_first":
            self.target.timestamp_type = TimestampType.LOG_APPEND_TIME
        if kind.exactly_once:
            self.target.clock.now_ms += A_DAY_MS
        life.reached = life.stands = start
        legs = self._legs(start, stop)
        changed = rng.randrange(1, len(legs)) if len(legs) > 1 else 0
        for number, (begin, end) in enumerate(legs):
            at = self._restart() if begin is None else max(begin, self.source.start)
            self._run(_Leg(at, max(at, end), number >= changed))
            self.look()
            if number < len(legs) - 1:
                self._between_runs()

    def _legs(self, start: int, stop: int) -> list[tuple[int | None, int]]:
        """Where each run begins (None: where a restart leads to) and ends."""
        rng, kind = self.rng, self.kind
        ends = sorted(rng.randrange(start, stop + 1) for _ in range(kind.repeats))
        legs: list[tuple[int | None, int]] = [(None, end) for end in [*ends, stop]]
        legs[0] = (rng.randrange(start, stop + 1) if kind.begins_late else start, legs[0][1])
        for _ in range(kind.set_back or kind.begins_late):
            end = stop if rng.random() < 0.4 else rng.randrange(start, stop + 1)
            place = rng.choice((len(legs), rng.randrange(1, len(legs) + 1)))
            legs.insert(place, (start, end))
        end = max(legs[-1][1], legs[-1][0] or 0)
        for _ in range(kind.unfinished_repeats):
            # No run begins behind what the one before it has come to.
            at = rng.randrange(start, end + 1)
            end = min(stop, at + rng.randrange(0, max(20, kind.records // 50)))
            legs.append((at, end))
        return legs

    def _choose_what_is_left_out(self, start: int, stop: int) -> None:
        rng, kind, life = self.rng, self.kind, self.life
        readable = list(self.source.messages(kind.isolation))
        values = {m.value for _, m in readable if rng.random() < kind.dropped}
        gap: set[int] = set()
        if kind.gap:
            first = rng.choice((start, rng.randrange(start, stop + 1)))
            gap = set(range(first, rng.randrange(first, stop + 1)))
        life.left_out = gap.union(offset for offset, m in readable if m.value in values)
        self.left_out_first = life.left_out
        if kind.filter_changes:
            some = {m.value for _, m in readable if m.value in values and rng.random() < 0.5}
            fewer = gap.union(offset for offset, m in readable if m.value in some)
            if kind.filter_changes == "wider":
                life.left_out = fewer
            else:
                self.left_out_first = fewer

    def _restart(self) -> int:
        """Where the next run begins: at what was noted down as done, or earlier."""
        if not self.kind.repeats:
            return self.life.stands
        back = self.rng.randrange(0, 15)
        if self.kind.rewind:
            back = self.rng.randrange(0, 1 + int(self.kind.rewind * self.kind.records))
        return max(self.source.start, self.life.stands - back)

    def _between_runs(self) -> None:
        kind, rng = self.kind, self.rng
        if kind.append_time == "target_later" and rng.random() < 0.5:
            self.target.timestamp_type = TimestampType.LOG_APPEND_TIME
        if kind.append_time == "target_first" and rng.random() < 0.5:
            self.target.timestamp_type = TimestampType.CREATE_TIME
        if kind.compacted_between:
            clean(kind, self.source, self.target, self.life, rng)
            if kind.target_trimmed and rng.random() < 0.3:
                trim(self.target, kind.target_trimmed * rng.random())
            if kind.source_trimmed and rng.random() < 0.3:
                trim(self.source, kind.source_trimmed * rng.random())

    def _run(self, leg: _Leg) -> None:
        rng, life = self.rng, self.life
        assert leg.start is not None
        self.later = leg.later
        if self.kind.offset_header == "off":
            self.shift = rng.choice((0, rng.randrange(-5, 6)))
        runs = [self._copied(leg.start, leg.end)]
        stands = leg.end
        if self.kind.two_at_once and rng.random() < 0.7:
            first = rng.choice((self.source.start, rng.randrange(self.source.start, leg.end + 1)))
            last = rng.choice((leg.end, rng.randrange(first, leg.end + 1)))
            runs.append(self._copied(first, max(first, last)))
            stands = max(first, last)
        while runs:
            one = rng.choice(runs)
            if next(one, None) is None:
                runs.remove(one)
        life.stands = min(stands, leg.end)
        life.reached = max(life.reached, leg.end)

    def _copied(self, start: int, end: int) -> Iterator[bool]:
        """Copy a part of the log, one batch a step."""
        kind, rng = self.kind, self.rng
        run: list[tuple[int, int]] = []
        self.life.runs.append(run)
        left_out = self.life.left_out if self.later else self.left_out_first
        wanted = [
            (offset, message)
            for offset, message in self.source.messages(kind.isolation)
            if start <= offset < end and offset not in left_out
        ]
        while wanted:
            self.target.clock.now_ms += rng.randrange(0, 5)
            self._let_others_write(wanted)
            size = rng.randrange(1, kind.batch + 1)
            if kind.segments and rng.random() * kind.segments < size:
                self.target.roll()
            part, wanted = wanted[:size], wanted[size:]
            written = [self._changed(offset, message) for offset, message in part]
            first, aborted = self._append(written, last=not wanted)
            copied = [(offset, first + n) for n, (offset, _) in enumerate(part)]
            if aborted:
                self.life.aborted += copied
                wanted = part + wanted
            else:
                run += copied
            yield True

    def _let_others_write(self, wanted: list[tuple[int, Message]]) -> None:
        kind, rng = self.kind, self.rng
        if rng.random() < kind.foreign:
            stamp = NOW_MS + rng.randrange(5 * kind.records)
            self.target.append([Message(stamp, b"other", b"%d" % len(wanted))])
        if rng.random() < kind.foreign_equal:
            offset, message = rng.choice(list(self.source.messages(kind.isolation)))
            self.life.equal_to_ours.append(self.target.append([self._changed(offset, message)]))

    def _changed(self, offset: int, message: Message) -> Message:
        if self.kind.stamps and message.timestamp_ms is None:
            message = replace(message, timestamp_ms=self.target.clock.now_ms)
        if self.kind.rewrites == "values":
            message = replace(message, value=b"schema 7 " + (message.value or b""))
        if self.kind.rewrites == "keys":
            message = replace(message, key=b"tenant 7 " + (message.key or b""))
        if self.kind.headers:
            message = replace(message, headers=(*message.headers, ("hop", b"A")))
        said = self._said(offset)
        if said is not None:
            value = said.to_bytes(8, "big", signed=True)
            message = replace(message, headers=(*message.headers, (self.header.name, value)))
        return message

    def _said(self, offset: int) -> int | None:
        """What the offset header says; None where there is none."""
        match self.kind.offset_header:
            case "":
                return None
            case "later" if not self.later:
                return None
            case "some" if self.rng.random() < 0.3:
                return None
            case "stale" if self.rng.random() < 0.2:
                return max(0, offset - self.rng.randrange(1, 30))
            case _:
                return max(0, offset + self.shift)

    def _append(self, messages: list[Message], *, last: bool) -> tuple[int, bool]:
        """The first offset, and whether the transaction that wrote them was aborted."""
        within = self.kind.exactly_once or (self.kind.transactions and self.rng.random() < 0.3)
        if not within:
            return self.target.append(messages), False
        transaction = self.target.begin()
        first = transaction.append(messages)
        if self.rng.random() < 0.2:
            transaction.abort()
            return first, True
        if not (last and self.kind.open_transaction):
            transaction.commit()
        return first, False

    def begin(self, source: PartitionLog, target: PartitionLog) -> None:
        """Start over at the beginning of the source, on another target."""
        self.source, self.target = source, target
        self.life = ReplicatorHistory(stands=source.start, reached=source.start)

    def go_back(self, by: int) -> None:
        self.life.stands = max(self.source.start, self.life.stands - by)

    def copy_on(self, most: int) -> None:
        stop = self.source.readable_end(self.kind.isolation)
        start = max(self.life.stands, self.source.start)
        self._run(_Leg(start, max(start, min(stop, start + most)), later=True))

    # --- while somebody asks --------------------------------------------------------------

    def go_on(self, rng: random.Random) -> None:
        """One thing more: some records are copied, or written; the replicator is restarted; a
        cleaner or retention comes."""
        self.rng = rng
        self.kind = replace(self.kind, two_at_once=False)
        now = self.source.clock.now_ms
        match rng.choice(("copy", "copy", "write", "clean", "trim", "restart")):
            case "copy":
                self.copy_on(rng.randrange(1, 12))
            case "restart":
                self.go_back(rng.randrange(15))
                self.copy_on(rng.randrange(30))
            case "write":
                late = rng.choice((0, 0, 0, rng.randrange(5 * self.kind.records + 1)))
                new = [
                    Message(now + n - late, b"k%d" % rng.randrange(8), b"new %d" % (now + n))
                    for n in range(rng.randrange(1, 6))
                ]
                self.source.clock.now_ms += len(new)
                if self.kind.append_time == "source":
                    stamp = self.source.clock.now_ms
                    new = [replace(message, timestamp_ms=stamp) for message in new]
                self.source.append(new)
            case "clean":
                clean(self.kind, self.source, self.target, self.life, rng)
            case _ if self.kind.source_trimmed and rng.random() < 0.5:
                trim(self.source, self.kind.source_trimmed * rng.random() * 0.2)
            case _ if self.kind.target_trimmed:
                trim(self.target, self.kind.target_trimmed * rng.random() * 0.2)


# --- what happens to logs later ---------------------------------------------------------


def clean(
    kind: Kind,
    source: PartitionLog,
    target: PartitionLog,
    life: ReplicatorHistory,
    rng: random.Random,
) -> None:
    """Log compaction, on the sides that have it."""
    source.clock.now_ms += 5 * kind.records
    if kind.source_compacted:
        _compact(source, source.end, kind, rng)
    if kind.target_compacted:
        # A cleaner reaches into a repeat once its segment has rolled.
        reach = target.end
        if not (kind.segments and rng.random() < 0.5):
            reach = _before_the_repeats(target, kind, life)
        _compact(target, reach, kind, rng)


def _compact(log: PartitionLog, before: int, kind: Kind, rng: random.Random) -> None:
    # The segment that is written to, and one with undecided records, are left alone.
    before = min(before, log.last_stable_offset - rng.randrange(1, 12))
    if kind.cleaned_partly and before > log.start:
        before = rng.randrange(log.start, before + 1)
    log.compact(before=before)
    if kind.tombstones and rng.random() < 0.5:
        # Their retention has passed, too: nothing is left of such a key.
        gone = [offset for offset, m in log.messages() if offset < before and m.value is None]
        log.remove(gone, keep_empty_batches=rng.random() < 0.3)


def _before_the_repeats(target: PartitionLog, kind: Kind, life: ReplicatorHistory) -> int:
    """The lowest first copy of what is being repeated: as if one segment held all from there."""
    firsts: dict[int, int] = {}
    for run in life.runs:
        for origin, copy in run:
            firsts.setdefault(origin, copy)
    repeating = life.runs[len(life.runs) - kind.unfinished_repeats :]
    return min([target.end, *(firsts[origin] for run in repeating for origin, _ in run)])


def trim(log: PartitionLog, share: float) -> None:
    """Retention: so much of what is there is gone."""
    end = log.high_watermark
    before = log.start + int((end - log.start) * share)
    if before > log.start:
        log.delete_records(before)


def lose_later_equals(
    log: PartitionLog, share: float, content: Callable[[Message], Hashable], rng: random.Random
) -> None:
    """Take a share of the records that equal an earlier one (as with keys that the replicator
    rewrites: equal on the target, cleaned apart on the source)."""
    seen: set[Hashable] = set()
    later: list[int] = []
    for offset, message in log.messages():
        it = content(message)
        if it in seen and rng.random() < share:
            later.append(offset)
        seen.add(it)
    # As cleaners, it leaves the segment alone that is written to.
    log.remove([offset for offset in later if offset < log.last_stable_offset - 2])
