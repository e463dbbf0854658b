"""All small logs, and their answers: `python -m tests.small_logs --records 3`.

A small log is a source of a few records, a walk of a replicator over it (with up to two jumps back,
a record that a fixed filter leaves out, begun anywhere), and what retention and compaction took of
both sides. Timestamps rise, are equal, late (older than all, or of the first record's millisecond)
or missing; two keys; records may equal earlier ones. `every` are all of so many records, `some` a
sample that is the same for the same seed. `judge` asks for every offset of each, through the real
translation, and judges by identity: an answer is unsafe where it passes a record that the group has
to read, unless that equals one that it has read, or one that lies at the answer or behind it.
"""

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice

from tests.random_logs import NOW_MS, Kind
from tests.replication_model import SOURCE, TARGET, Failback, World
from tests.replicator import ReplicatorHistory
from tests.translating import OffsetsToTranslate, Way, silence_logs, translated_together
from tsoffset.flow.settings import TranslationSettings
from tsoffset.model import Failed, Outcome, TopicPartition, Translated
from tsoffset.testing.memory_cluster import MemoryCluster, Message, PartitionLog

# Of the names of a flow's topics: what the target is known to be.
NAMES = ("replica", "same", "failback")
# So many logs are the partitions of one call.
AT_ONCE = 100
# The first record's timestamp, and by how much they rise.
FIRST, STEP = 100, 10

# (timestamp, key, value)
Record = tuple[int | None, int, int]


@dataclass(frozen=True, slots=True)
class Walk:
    """What a replicator has done: the originals of its copies, where its runs begin among these,
    and up to where it has read."""

    copies: tuple[int, ...]
    runs: tuple[int, ...]
    reached: int


@dataclass(frozen=True, slots=True)
class Side:
    """What is left of a log: its start, and up to where it was compacted (None: it never is)."""

    start: int = 0
    cleaned: int | None = None


@dataclass(frozen=True, slots=True)
class SmallLog:
    """Originals, the replicator's walk, what is left of both, and which one the target is."""

    records: tuple[Record, ...]
    walk: Walk
    left_out: int | None
    original: Side
    replica: Side
    name: str

    def left(self, side: Side, records: list[Record]) -> dict[int, Record]:
        """Offset and content of what is left of this side."""
        before = side.cleaned or 0
        newest = {record[1]: at for at, record in enumerate(records[:before])}
        return {
            at: record
            for at, record in enumerate(records)
            if at >= side.start and (at >= before or newest[record[1]] == at)
        }

    @property
    def copied(self) -> list[Record]:
        """The replica's records, gone ones too."""
        return [self.records[origin] for origin in self.walk.copies]

    def seen(self) -> object:
        """What two logs have in common that look the same and mean the same: timestamps count by
        their order, keys and values by which are equal."""
        originals = self.left(self.original, list(self.records))
        copies = self.left(self.replica, self.copied)
        visible = [*originals.values(), *copies.values()]
        stamps = sorted({record[0] for record in visible if record[0] is not None})
        rank: dict[int | None, int] = {None: -1}
        rank.update((stamp, at) for at, stamp in enumerate(stamps))
        names: dict[Record, int] = {}
        named = [(rank[it[0]], names.setdefault(it, len(names))) for it in visible]
        failback = self.name == "failback"
        return (
            tuple(zip((*originals, *copies), named, strict=True)),
            len(originals),
            tuple(self.walk.copies[at] for at in copies),
            (len(self.records), self.original.start, self.original.cleaned is None),
            (len(self.walk.copies), self.replica.start, self.replica.cleaned is None),
            self.walk.runs if self.replica.cleaned else (),
            self.name,
            (self.walk.copies, self.walk.reached, self.left_out) if failback else (),
        )

    def __str__(self) -> str:
        """As an expression, for `tests.rule.test_frontier_examples`."""
        originals = self._words(range(len(self.records)), self.original, ())
        copies = self._words(self.walk.copies, self.replica, self.walk.runs)
        starts = [("source_from", self.original.start), ("target_from", self.replica.start)]
        words = [originals, copies]
        if self.name == "failback":
            words.reverse()
            starts = [("source_from", self.replica.start), ("target_from", self.original.start)]
        said = "".join(f", {name}={start}" for name, start in starts if start)
        target = self.original if self.name == "failback" else self.replica
        if target.cleaned is not None and not any(it[0] == "-" for it in words[1].split()):
            said += ", compacted=True"
        if self.name == "failback":
            said += ", failback=True"
        return f'Logs("{words[0]}", "{words[1]}"{said}){self._name_said}'

    @property
    def _name_said(self) -> str:
        return "  # identity=True" if self.name == "same" else ""

    def _words(self, originals: Iterable[int], side: Side, runs: tuple[int, ...]) -> str:
        names = self._names()
        records = [self.records[origin] for origin in originals]
        before = side.cleaned or 0
        newest = {record[1]: at for at, record in enumerate(records[:before])}
        words = []
        for at, (origin, record) in enumerate(zip(originals, records, strict=True)):
            gone = at < before and newest[record[1]] != at
            stamp = "-" if record[0] is None else record[0]
            rolled = "| " if at in runs and side.cleaned else ""
            words.append(f"{rolled}{'-' if gone else ''}{names[origin]}@{stamp}")
        return " ".join(words)

    def _names(self) -> list[str]:
        seen: Counter[Record] = Counter()
        names = []
        for record in self.records:
            _, key, value = record
            names.append(f"{'ab'[key]}{value}" + "'" * seen[record])
            seen[record] += 1
        return names


# --- all of them --------------------------------------------------------------------------


@cache
def contents(records: int, *, keys: int) -> tuple[tuple[Record, ...], ...]:
    """Every sequence of so many records, up to the names of keys and values."""
    if not records:
        return ((),)
    return tuple(
        (*before, record)
        for before in contents(records - 1, keys=keys)
        for record in _next_records(before, keys)
    )


def _next_records(before: tuple[Record, ...], keys: int) -> Iterator[Record]:
    yield from dict.fromkeys(before)
    stamps = [stamp for stamp, _, _ in before if stamp is not None]
    new: list[int | None] = [None]
    if stamps:
        # It rises; the first one's time; the last one's; older than all.
        new += [max(stamps) + STEP, stamps[0], stamps[-1], min(stamps) - STEP]
    else:
        new.append(FIRST)
    number = 1 + max((value for _, _, value in before), default=-1)
    for stamp in dict.fromkeys(new):
        for key in range(min(keys, 1 + max((key for _, key, _ in before), default=-1) + 1)):
            yield stamp, key, number


@cache
def walks(records: int, left_out: int | None, jumps: int = 2) -> tuple[Walk, ...]:
    """Every walk over so many records, with up to two `jumps` back."""
    found: dict[Walk, None] = {}
    for begin in range(records + 1):
        for first in range(begin, records + 1):
            ways = [[(begin, first)]]
            for jump in range(first if jumps else 0):
                for second in range(jump + 1, records + 1):
                    ways.append([(begin, first), (jump, second)])
                    ways += [
                        [(begin, first), (jump, second), (again, third)]
                        for again in range(second if jumps > 1 else 0)
                        for third in range(again + 1, records + 1)
                    ]
            for way in ways:
                found.setdefault(_walked(way, left_out))
    return tuple(found)


def _walked(way: list[tuple[int, int]], left_out: int | None) -> Walk:
    copies: list[int] = []
    runs = []
    for start, end in way:
        runs.append(len(copies))
        copies += [offset for offset in range(start, end) if offset != left_out]
    return Walk(tuple(copies), tuple(runs[1:]), max(end for _, end in way))


def sides(records: int, *, compacted: bool = True) -> list[Side]:
    """All that can be left of a log: trimmed, and compacted up to some offset or never."""
    cleaned = [None, *(range(2, records + 1) if compacted else ())]
    return [Side(start, before) for start in range(records + 1) for before in cleaned]


def every(records: int, *, jumps: int = 2, compacted: bool = True) -> Iterator[SmallLog]:
    """All logs of so many records, each once of those that look the same; with up to so many jumps
    back, and compaction or none."""
    seen: set[int] = set()
    left_out: tuple[int | None, ...] = (None, *range(records))
    for originals in sides(records, compacted=compacted):
        for out in left_out:
            for walk in walks(records, out, jumps):
                for replica in sides(len(walk.copies), compacted=compacted):
                    cleaned = originals.cleaned is not None or replica.cleaned is not None
                    for of in contents(records, keys=2 if cleaned else 1):
                        for name in NAMES:
                            log = SmallLog(of, walk, out, originals, replica, name)
                            if (it := hash(log.seen())) not in seen:
                                seen.add(it)
                                yield log


def some(records: int, seed: int) -> Iterator[SmallLog]:
    """Random ones of these for ever, each once."""
    rng = random.Random(f"{records} {seed}")
    seen: set[int] = set()
    while True:
        out = None if rng.random() < 0.5 else rng.randrange(records)
        walk = rng.choice(walks(records, out))
        original, replica = (_some_side(size, rng) for size in (records, len(walk.copies)))
        cleaned = original.cleaned is not None or replica.cleaned is not None
        of = rng.choice(contents(records, keys=2 if cleaned else 1))
        log = SmallLog(of, walk, out, original, replica, rng.choice(NAMES))
        if (it := hash(log.seen())) not in seen:
            seen.add(it)
            yield log


def _some_side(records: int, rng: random.Random) -> Side:
    start = 0 if rng.random() < 0.4 else rng.randrange(records + 1)
    cleaned = None if rng.random() < 0.6 or records < 2 else rng.randrange(2, records + 1)
    return Side(start, cleaned)


# --- asking -------------------------------------------------------------------------------


@dataclass
class Judged:
    """What was asked, answered and wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        counts = self.counts
        positions = max(1, counts["positions"])
        each = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
        share = 100 * counts["exact"] / positions
        return f"{each}; {share:.1f} % exact; {self.seconds:.0f} s"


def judge(
    logs: Iterable[SmallLog],
    *,
    settings: TranslationSettings | None = None,
    held: int = Way.held,
    alone: float = 0.0,
    seconds: float | None = None,
) -> Judged:
    """Ask for every offset of each of these logs, all of one together, and of a share of them each
    `alone`, too; for so long, or until there are no more. `held` is that of `Way`."""
    judged = Judged()
    way = Way(settings=settings or TranslationSettings(), held=held)
    began = time.monotonic()
    rng = random.Random(0)
    logs = iter(logs)
    while part := list(islice(logs, AT_ONCE)):
        _judge_part(part, way, judged, alone=rng.random() < alone)
        judged.seconds = time.monotonic() - began
        if seconds is not None and judged.seconds > seconds:
            break
    return judged


def _judge_part(logs: list[SmallLog], way: Way, judged: Judged, *, alone: bool) -> None:
    clusters = MemoryCluster("A"), MemoryCluster("B")
    worlds = [_world(log, f"{number}", clusters) for number, log in enumerate(logs)]
    judged.counts["logs"] += len(logs)
    asked = [[tuple(world.positions()) for world in worlds]]
    if alone:
        most = max(len(offsets) for offsets in asked[0])
        asked += [[offsets[at : at + 1] for offsets in asked[0]] for at in range(most)]
    for offsets in asked:
        work = [
            OffsetsToTranslate(
                TopicPartition(f"{SOURCE.topic}{number}", 0),
                TopicPartition(f"{TARGET.topic}{number}", 0),
                of,
                log.name == "replica",
                log.name == "failback",
            )
            for number, (log, of) in enumerate(zip(logs, offsets, strict=True))
            if of
        ]
        settled = translated_together(*clusters, work, held=way.held, translation=way.settings)
        for partition, translations in settled.items():
            number = int(partition.topic.removeprefix(SOURCE.topic))
            for offset, translation in translations.items():
                wrong = _note(judged, worlds[number], offset, translation.outcome)
                if wrong is not None:
                    said = "alone" if alone and offsets is not asked[0] else "together"
                    judged.wrong.append(f"{logs[number]}: {offset} ({said}): {wrong}")


def _world(log: SmallLog, suffix: str, clusters: tuple[MemoryCluster, MemoryCluster]) -> World:
    """The log on both clusters, and the truth about it."""
    failback = log.name == "failback"
    copies = [(origin, at) for at, origin in enumerate(log.walk.copies)]
    left_out = set() if log.left_out is None else {log.left_out}
    life = ReplicatorHistory([copies], log.walk.reached, log.walk.reached, left_out)
    kind = Kind(failback=failback)
    world = (Failback if failback else World)(*clusters, kind, life, suffix=suffix)
    sides = (log.original, list(log.records)), (log.replica, log.copied)
    places = reversed(sides) if failback else sides
    for cluster, of, (side, records) in zip(clusters, (SOURCE, TARGET), places, strict=True):
        policy = "delete" if side.cleaned is None else "compact"
        name = f"{of.topic}{suffix}"
        cluster.create_topic(name, configs={"cleanup.policy": policy})
        runs = log.walk.runs if side is log.replica else ()
        written = _fill(cluster.log(name), records, log.left(side, records), side, runs)
        if cluster is world.source_cluster:
            world.written = written
    return world


def _fill(
    log: PartitionLog,
    records: list[Record],
    left: dict[int, Record],
    side: Side,
    runs: tuple[int, ...],
) -> dict[int, Message]:
    """Write what is left; returns all that was ever written."""
    for at, (stamp, key, value) in enumerate(records):
        if at in runs and side.cleaned:
            log.roll()
        time_ms = None if stamp is None else NOW_MS + stamp
        log.append([Message(time_ms, b"ab"[key : key + 1], b"%d" % value)])
    log.clock.now_ms = NOW_MS + 1_000_000
    written = dict(log.messages())
    gone = [at for at in range(len(records)) if at not in left and at >= side.start]
    if gone:
        log.remove(gone)
    if side.start:
        log.delete_records(side.start)
    return written


def _note(judged: Judged, world: World, committed: int, outcome: Outcome) -> str | None:
    """Count an answer; what is wrong with it, if anything is."""
    counts = judged.counts
    counts["positions"] += 1
    if not isinstance(outcome, Translated):
        counts["none"] += 1
        return f"failed: {outcome}" if isinstance(outcome, Failed) else None
    counts[str(outcome.precision)] += 1
    offset, true = outcome.target_offset, world.true_position(committed)
    if not world.target.start <= offset <= world.target_end:
        return f"{offset} is outside the log"
    if offset > true:
        if world.excuse(committed, outcome) != "equal":
            return f"{offset}, at most {true}"
        counts["equal"] += 1
    return None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.small_logs", description=__doc__)
    parser.add_argument("--records", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--sample", type=int, default=None, metavar="SEED")
    options = parser.parse_args()
    silence_logs()
    logs = every(options.records)
    if options.sample is not None:
        logs = some(options.records, options.sample)
    judged = judge(logs, alone=0.1, seconds=options.seconds)
    print("\n".join(judged.wrong[:20]))
    print(judged)


if __name__ == "__main__":
    main()
