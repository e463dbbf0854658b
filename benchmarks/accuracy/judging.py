"""The answers of each rule, judged by the truth of the random logs."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.accuracy.rivals import KipRule, OffsetSyncRule, PrototypeRule, Rule
from tests.replication_model import World
from tests.translating import outcomes, questions_since_last_time
from tsoffset.model import Failed, Precision, Translated

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

    `precisions` counts what tsoffset states of its answers. `too_low` are answers with more
    re-reads than their bound. Re-reads are summed over safe answers. `questions` are the fetches
    and time lookups of both sides together; `failed` are errors of tsoffset. `truly_exact` answers
    are stated to be exact, and are. Content could have shown the `certainly_too_low` bounds, and
    the unsafe answers without a name in `excused`.
    """

    positions: int = 0
    answered: int = 0
    unsafe: int = 0
    without_rereads: int = 0
    rereads: int = 0
    most_rereads: int = 0
    too_low: int = 0
    failed: int = 0
    truly_exact: int = 0
    certainly_too_low: int = 0
    excused: Counter[str] = field(default_factory=Counter)
    questions: int = 0
    precisions: Counter[str] = field(default_factory=Counter)

    def note(self, world: World, committed: int, target_offset: int | None) -> int | None:
        """Judge one answer; returns its re-reads, None if there is no answer or it is unsafe.

        An offset below the target's log start is judged as that start, where a consumer with
        `auto.offset.reset=earliest` resumes.
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
    def without_answer(self) -> int:
        """Source offsets for which nothing is committed."""
        return self.positions - self.answered

    @property
    def mean_questions(self) -> float:
        """Per source offset."""
        return self.questions / max(1, self.positions)

    @property
    def mean_rereads(self) -> float:
        """Per safe answer."""
        return self.rereads / max(1, self.answered - self.unsafe)


def judge(
    worlds: Iterable[World], positions: int, seed: int, *, others: bool = True
) -> dict[str, Tally]:
    """The tallies of tsoffset and (unless `others` is False) of the other rules over the same
    source offsets.

    At most `positions` offsets of each world are chosen at random, from the first offset to the
    log's end. tsoffset translates each alone, as in a partition that one group reads, and then all
    together.
    """
    tallies = {name: Tally() for name in (TSOFFSET, TOGETHER, *RULES)}
    rng = random.Random(seed)
    for world in worlds:
        offsets = list(world.positions())
        chosen = sorted(rng.sample(offsets, min(positions, len(offsets))))
        _judge_tsoffset(world, [[committed] for committed in chosen], tallies[TSOFFSET])
        _judge_tsoffset(world, [chosen], tallies[TOGETHER])
        for name, rule in _rules(world) if others else ():
            for committed in chosen:
                tallies[name].note(world, committed, rule.translate(committed))
    return tallies


def _rules(world: World) -> Iterator[tuple[str, Rule]]:
    for name, rule in RULES.items():
        yield name, rule(world)


def _judge_tsoffset(world: World, slices: Iterable[Sequence[int]], tally: Tally) -> None:
    for offsets in slices:
        answers = outcomes(world, offsets)
        tally.questions += questions_since_last_time(world)
        for committed in offsets:
            found = answers[committed]
            if not isinstance(found, Translated):
                tally.note(world, committed, None)
                tally.failed += isinstance(found, Failed)
                continue
            tally.precisions[found.precision] += 1
            rereads = tally.note(world, committed, found.target_offset)
            if rereads is None:
                tally.excused[world.excuse(committed, found) or ""] += 1
                continue
            tally.truly_exact += found.precision is Precision.EXACT and not rereads
            bound = found.reread_bound or 0
            tally.too_low += rereads > bound
            certain = world.certain_rereads(committed, found.target_offset)
            tally.certainly_too_low += certain > bound
