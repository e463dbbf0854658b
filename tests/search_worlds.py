"""Look for worlds that the rule answers wrongly: `python -m tests.search_worlds --seconds 60`.

Draws random kinds, ways and budgets, judges every answer, prints each class of mistakes as soon
as it is met, and at the end its count and the smallest example found, as a line for
`from tests.search_worlds import *`. `--kinds REGEX` keeps the kinds whose expression matches
(for example `set_back` or `failback.*offset_header`).
"""

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, fields, replace

from tests.random_logs import NOW_MS, Kind, brief, random_kind
from tests.replication_model import World, build
from tests.translating import (
    Way,
    asked,
    mistake_of,
    outcomes,
    questions_since_last_time,
    silence_logs,
    sliced,
)
from tsoffset.flow.settings import TranslationSettings
from tsoffset.model import Isolation, Outcome, Translated
from tsoffset.testing.memory_cluster import PartitionLog

__all__ = ["Isolation", "Kind", "TranslationSettings", "Way", "reproduce"]

SECONDS_TO_SHRINK = 5.0

SLICES = ("all", "all", "some", "alone")
SETTINGS = (
    *(TranslationSettings(),) * 4,
    TranslationSettings(budget=2),
    TranslationSettings(budget=1, scan_bytes=3_000),
    TranslationSettings(budget=4, scan_bytes=1),
    TranslationSettings(scan_bytes=30_000),
)
CUTS = (None, None, None, 1, 5)
NAMES = ("replica", "replica", "same")


@dataclass(frozen=True)
class Mistake:
    """One wrong answer: of which class, and where."""

    said: str
    kind: Kind
    seed: int
    way: Way
    committed: int

    @property
    def size(self) -> tuple[int, int]:
        """By how much there is to understand."""
        return self.kind.records, len(brief(self.kind)) + len(brief(self.way))

    def __str__(self) -> str:
        return f"reproduce({brief(self.kind)}, {self.seed}, {brief(self.way)}, {self.committed})"


@dataclass
class Found:
    """What a search came to."""

    counts: Counter[str] = field(default_factory=Counter)
    mistakes: Counter[str] = field(default_factory=Counter)
    smallest: dict[str, Mistake] = field(default_factory=dict)

    def note(self, mistake: Mistake) -> None:
        self.mistakes[mistake.said] += 1
        self.keep(mistake)

    def keep(self, mistake: Mistake) -> None:
        """The smallest one of its class."""
        before = self.smallest.get(mistake.said)
        if before is None or mistake.size < before.size:
            self.smallest[mistake.said] = mistake

    def add(self, other: "Found") -> None:
        self.counts += other.counts
        self.mistakes += other.mistakes
        for mistake in other.smallest.values():
            self.keep(mistake)


def random_way(rng: random.Random) -> Way:
    """A way to ask; in some, both logs change meanwhile."""
    changing = rng.randrange(1_000) if rng.random() < 0.15 else None
    return Way(
        rng.choice(SLICES), rng.choice(SETTINGS), rng.choice(CUTS), rng.choice(NAMES), changing
    )


def answers(world: World, seed: int, way: Way) -> Iterator[tuple[int, Outcome]]:
    """Each position with its outcome; the world is as it is when that is known."""
    for part in sliced(asked(world, seed), way, random.Random(seed)):
        yield from outcomes(world, part, way).items()


def search(seed: int, seconds: float, kinds: re.Pattern[str]) -> Found:
    """Judge random worlds for so long."""
    silence_logs()
    rng = random.Random(seed)
    found = Found()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        kind, way, of = random_kind(rng), random_way(rng), rng.randrange(2**31)
        if kinds.search(brief(kind)):
            judge(kind, of, way, found)
    for said, mistake in list(found.smallest.items()):
        if not said.startswith("excused"):
            found.keep(shrunk(mistake, kinds, time.monotonic() + SECONDS_TO_SHRINK))
    return found


def judge(kind: Kind, seed: int, way: Way, found: Found) -> None:
    """Judge all answers of one world."""
    world = build(kind, seed)
    counts = found.counts
    counts["worlds"] += 1
    for committed, outcome in answers(world, seed, way):
        counts["positions"] += 1
        counts[str(outcome.precision) if isinstance(outcome, Translated) else "none"] += 1
        said = mistake_of(world, way, committed, outcome)
        if said is not None:
            mistake = Mistake(said, kind, seed, way, committed)
            if said not in found.mistakes:
                print(f"{said}: {mistake}", flush=True)
            found.note(mistake)
    counts["questions"] += questions_since_last_time(world)


def shrunk(mistake: Mistake, kinds: re.Pattern[str], deadline: float) -> Mistake:
    """The same mistake in a smaller world of these kinds, as far as there is time."""
    smaller = True
    while smaller:
        smaller = False
        for kind, way in _simpler(mistake):
            if not kinds.search(brief(kind)):
                continue
            for seed in (mistake.seed, *range(12)):
                if time.monotonic() > deadline:
                    return mistake
                again = _the_same(mistake.said, kind, seed, way)
                if again is not None:
                    mistake, smaller = again, True
                    break
            if smaller:
                break
    return mistake


def _simpler(mistake: Mistake) -> Iterator[tuple[Kind, Way]]:
    kind, way = mistake.kind, mistake.way
    for records in sorted({kind.records * n // 8 for n in (1, 2, 4, 6, 7)} | {kind.records - 1}):
        if 0 <= records < kind.records:
            yield replace(kind, records=records), way
    for value in (kind, way):
        for it in fields(value):
            plain = getattr(type(value)(), it.name)
            if it.name != "records" and getattr(value, it.name) != plain:
                simpler = replace(value, **{it.name: plain})
                yield (simpler, way) if value is kind else (kind, simpler)
    if way.slices != "alone":
        yield kind, replace(way, slices="alone")


def _the_same(said: str, kind: Kind, seed: int, way: Way) -> Mistake | None:
    world = build(kind, seed)
    for committed, outcome in answers(world, seed, way):
        if mistake_of(world, way, committed, outcome) == said:
            return Mistake(said, kind, seed, way, committed)
    return None


# --- one example ------------------------------------------------------------------------


def reproduce(kind: Kind, seed: int, way: Way, committed: int) -> None:
    """Print both logs side by side, the answer with what is wrong about it, and what the position
    asked. A letter is a content; `<- 7` the source offset of a copy, `says 8` its header."""
    silence_logs()
    world = build(kind, seed)
    lines: list[str] = []
    for part in sliced(asked(world, seed), way, random.Random(seed)):
        said: list[str] = []
        found = outcomes(
            world,
            part,
            way,
            observe=lambda position, question, answer, said=said: said.append(  # type: ignore[misc]
                f"  {position.offset}: {question.side}: {question.what} -> {_short(answer)}"
            ),
        )
        if committed in found:
            lines = [line for line in said if line.startswith(f"  {committed}:")]
            outcome = found[committed]
            break
    else:
        raise ValueError(f"{committed} is none of the positions that are asked for of this world")
    names: dict[object, str] = {}
    left, right = _listed(world, world.source, names), _listed(world, world.target, names)
    width = max([len(line) for line in left], default=0)
    print(f"{'source':{width}}   target")
    for at in range(max(len(left), len(right))):
        one = left[at] if at < len(left) else ""
        print(f"{one:{width}}   {right[at] if at < len(right) else ''}".rstrip())
    print(f"committed {committed}; the true position is {world.true_position(committed)}")
    print(f"{outcome}")
    print(f"wrong: {mistake_of(world, way, committed, outcome)}")
    if isinstance(outcome, Translated):
        offset = outcome.target_offset
        print(
            f"passed: {world.passed(committed, offset)}; "
            f"re-reads: {world.rereads(committed, offset)}"
        )
    print("\n".join(lines))


def _listed(world: World, log: PartitionLog, names: dict[object, str]) -> list[str]:
    copies = log is (world.source if world.kind.failback else world.target)
    origins = {copy: origin for run in world.runs for origin, copy in run}
    lines = [f"{log.start}..{log.end}"]
    for offset, message in log.messages():
        content = world.content(message)
        name = names.setdefault(content, _letters(len(names)))
        stamp = "-" if message.timestamp_ms is None else str(message.timestamp_ms - NOW_MS)
        key = (message.key or b"-").decode()
        line = f"{offset:>5} {name:<3} @{stamp} {key}"
        if copies:
            line += f" <- {origins.get(offset, 'others')}"
        if world.offset_header is not None and copies:
            line += f" says {world.offset_header.of(message.headers)}"
        lines.append(line)
    return lines


def _letters(number: int) -> str:
    first, last = divmod(number, 26)
    return (_letters(first - 1) if first else "") + chr(ord("a") + last)


def _short(answer: object) -> str:
    records = getattr(answer, "records", None)
    if records is None:
        return str(answer)
    offsets = [record.offset for record in records]
    return f"{getattr(answer, 'start', '')}..{getattr(answer, 'end', '')}: {offsets[:20]}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.search_worlds", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--kinds", type=re.compile, default=re.compile(""), metavar="REGEX")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    found = Found()
    with ProcessPoolExecutor(options.processes) as pool:
        searches = [
            pool.submit(search, seed * 10 + n, options.seconds, options.kinds)
            for n in range(options.processes)
        ]
        for one in as_completed(searches):
            found.add(one.result())
    print(f"\nseed {seed}")
    for said, count in sorted(found.mistakes.items(), key=lambda item: -item[1]):
        print(f"{count:>7,} {said}\n        {found.smallest[said]}")
    positions = max(1, found.counts["positions"])
    shares = ", ".join(
        f"{100 * found.counts[name] / positions:.2f} % {name}"
        for name in ("exact", "frontier", "bounded", "none")
    )
    print(
        f"{found.counts['positions']:,} positions in {found.counts['worlds']:,} worlds: {shares}; "
        f"{found.counts['questions'] / positions:.2f} questions a position"
    )


if __name__ == "__main__":
    main()
