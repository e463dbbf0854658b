"""What the answers of a rule come to, judged by the truth of the worlds."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.accuracy.rivals import KipRule, OffsetSyncRule, PrototypeRule, Rule
from tests.replication_model import World
from tests.translating import translations

TSOFFSET = "tsoffset"
TOGETHER = "tsoffset, all positions together"
RULES: dict[str, type[KipRule] | type[PrototypeRule] | type[OffsetSyncRule]] = {
    "KIP-1292": KipRule,
    "its prototype": PrototypeRule,
    "MM2": OffsetSyncRule,
}


@dataclass(slots=True)
class Tally:
    """Answers of one rule over all worlds of a kind.

    `precisions` counts what tsoffset says of its answers. `too_low` are answers with more
    re-reads than their bound. Re-reads are summed over safe answers.
    """

    positions: int = 0
    answered: int = 0
    unsafe: int = 0
    without_rereads: int = 0
    rereads: int = 0
    most_rereads: int = 0
    too_low: int = 0
    precisions: Counter[str] = field(default_factory=Counter)

    def note(self, world: World, committed: int, target_offset: int | None) -> int | None:
        """Judge one answer; returns its re-reads, None where it is none or unsafe.

        An offset below the target's log start is judged as that start: so resumes a consumer
        with `auto.offset.reset=earliest`.
        """
        self.positions += 1
        if target_offset is None:
            return None
        self.answered += 1
        if not world.is_safe(committed, target_offset):
            self.unsafe += 1
            return None
        rereads = world.rereads(committed, target_offset)
        self.without_rereads += rereads == 0
        self.rereads += rereads
        self.most_rereads = max(self.most_rereads, rereads)
        return rereads

    @property
    def mean_rereads(self) -> float:
        """Per safe answer."""
        return self.rereads / max(1, self.answered - self.unsafe)


def judge(worlds: Iterable[World], positions: int, seed: int) -> dict[str, Tally]:
    """The tallies of tsoffset and of the other rules over the same positions.

    At most `positions` of each world are taken at random, from the first offset to the log's
    end. tsoffset translates each by itself, as for a partition with one group, which has no
    other position to learn from; and once all together.
    """
    tallies = {name: Tally() for name in (TSOFFSET, TOGETHER, *RULES)}
    rng = random.Random(seed)
    for world in worlds:
        offsets = list(world.positions())
        chosen = sorted(rng.sample(offsets, min(positions, len(offsets))))
        _judge_tsoffset(world, [[committed] for committed in chosen], tallies[TSOFFSET])
        _judge_tsoffset(world, [chosen], tallies[TOGETHER])
        for name, rule in _rules(world):
            for committed in chosen:
                tallies[name].note(world, committed, rule.translate(committed))
    return tallies


def _rules(world: World) -> Iterator[tuple[str, Rule]]:
    for name, rule in RULES.items():
        yield name, rule(world)


def _judge_tsoffset(world: World, slices: Iterable[Sequence[int]], tally: Tally) -> None:
    for offsets in slices:
        answers = translations(world, offsets)
        for committed in offsets:
            found = answers.get(committed)
            if found is None:
                tally.note(world, committed, None)
                continue
            tally.precisions[found.precision] += 1
            rereads = tally.note(world, committed, found.target_offset)
            tally.too_low += rereads is not None and rereads > (found.reread_bound or 0)
