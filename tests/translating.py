"""Translating positions of a random world, as `tsoffset.cycle` does."""

import logging
import random
import re
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar, cast
from unittest.mock import patch

import numpy as np
import structlog

from tests.memory_flows import flow
from tests.replication_model import SOURCE, TARGET, World
from tsoffset.cluster import Cluster
from tsoffset.columns import RecordColumns
from tsoffset.cycle import rounds
from tsoffset.cycle.translated_partition import TranslatedPartition
from tsoffset.cycle.translator import Observe
from tsoffset.cycle.work import PartitionWork
from tsoffset.flow.policy import DefaultReplicationPolicy
from tsoffset.flow.settings import FlowSettings, TranslationSettings
from tsoffset.model import (
    Failed,
    FailureKind,
    FirstAtTime,
    Isolation,
    Outcome,
    Precision,
    ReadFrom,
    Side,
    TopicPartition,
    Translated,
    Youngest,
)
from tsoffset.records import FetchedRange, Flags, Numbers
from tsoffset.rule.fast_path import NO_ANSWERS, Answers
from tsoffset.rule.inquiry import Answer, Question, RangeOf
from tsoffset.rule.translate import Translation
from tsoffset.testing.memory_cluster import Verb

T = TypeVar("T")

# Of a long log not every position is asked for.
MOST_POSITIONS_OF_A_WORLD = 60
# All of a long log whose timestamps no lookup finds would take minutes.
MOST_NEIGHBORS = 400
# Changes of a world while some positions are asked for together.
MOST_CHANGES = 6
MADE_TO_FAIL = Failed(FailureKind.TIMEOUT, "made to fail")


@dataclass(frozen=True)
class Way:
    """How positions are translated: what may change cost and precision, never safety.

    `slices` says which are asked together: `all` of them, each `alone`, or `some` in random
    order. `cut` is how many offsets a batch holds at most, on both sides (None: as written).
    `name` says what the target's name tells: what it is (the `replica`, or in failback the
    original), or nothing (the `same` name, under Identity). `changing` seeds what happens to
    both logs between the questions (None: nothing); the world is another one afterwards. `held` is
    how many records a worker holds (`rounds.RECORDS_HELD`): with few, a partition's positions are
    translated in slices, and records are dropped in between. `failing` is the share of questions
    that fail. Without `fast_path` the full rule answers each position.
    """

    slices: str = "all"
    settings: TranslationSettings = field(default_factory=TranslationSettings)
    cut: int | None = None
    name: str = "replica"
    changing: int | None = None
    held: int = rounds.RECORDS_HELD
    failing: float = 0.0
    fast_path: bool = True


class OffsetsToTranslate(NamedTuple):
    """Offsets of a partition that are translated together, and what names tell of its mirror."""

    source: TopicPartition
    target: TopicPartition
    offsets: tuple[int, ...]
    is_remote_topic: bool = True
    failback: bool = False


def translated_together(
    source: Cluster,
    target: Cluster,
    partitions: Iterable[OffsetsToTranslate],
    *,
    held: int = rounds.RECORDS_HELD,
    **flow_settings: Any,
) -> dict[TopicPartition, dict[int, Translation]]:
    """The outcomes of offsets of several partitions; `held` is that of `Way`."""
    found: dict[TopicPartition, dict[int, Translation]] = {}
    work = [PartitionWork(*one) for one in partitions]
    with patch.object(rounds, "RECORDS_HELD", held):
        for position in rounds.translate_partitions(flow(**flow_settings), source, target, work):
            found.setdefault(position.partition, {})[position.offset] = position.translation
    return found


def translated_of(
    source: Cluster,
    target: Cluster,
    *committed: int,
    copy: TopicPartition = TARGET,
    is_remote_topic: bool = True,
    failback: bool = False,
    **flow_settings: Any,
) -> dict[int, Translation]:
    """The outcomes of offsets of SOURCE that are translated together."""
    asked = OffsetsToTranslate(SOURCE, copy, committed, is_remote_topic, failback)
    return translated_together(source, target, [asked], **flow_settings)[SOURCE]


def translated_with_cache(
    source: Cluster,
    target: Cluster,
    *committed: int,
    cached: Any = None,
    is_remote_topic: bool = True,
    failback: bool = False,
    **flow_settings: Any,
) -> TranslatedPartition:
    """Offsets of SOURCE that are translated together, with what an earlier cycle has `cached`: the
    full rule's translations, the answers of the fast path, and what is cached for the next one."""
    work = PartitionWork(SOURCE, TARGET, committed, is_remote_topic, failback, cache=cached)
    done = rounds.translate_with_cache(flow(**flow_settings), source, target, [work])
    return done.partitions[0]


def ask(asking: Generator[Question, Answer, T], source: Cluster, target: Cluster) -> T:
    """What a part of the rule returns whose questions these clusters answer."""
    clusters = {Side.SOURCE: source, Side.TARGET: target}
    calls = {ReadFrom: "read", FirstAtTime: "first_at_times", Youngest: "youngest"}
    answer: Answer = None
    while True:
        try:
            question = asking.send(answer)
        except StopIteration as stop:
            return cast(T, stop.value)
        call = getattr(clusters[question.side], calls.get(type(question.what), "log_ranges"))
        item = question.what.partition if isinstance(question.what, RangeOf) else question.what
        [answer] = call([item], Isolation.READ_UNCOMMITTED).values()


def asked(world: World, seed: int) -> list[int]:
    """The positions to translate: all there are, or some at random of a long log."""
    offsets = list(world.positions())
    most = min(len(offsets), MOST_POSITIONS_OF_A_WORLD)
    return sorted(random.Random(seed).sample(offsets, most))


def neighbors(world: World, seed: int) -> list[int]:
    """Positions next to each other, as the fast path needs them: all there are, or some of a long
    log."""
    offsets = list(world.positions())
    first = random.Random(seed).randrange(max(1, len(offsets) - MOST_NEIGHBORS + 1))
    return offsets[first : first + MOST_NEIGHBORS]


def sliced(offsets: Sequence[int], way: Way, rng: random.Random) -> list[list[int]]:
    """The positions in the slices in which they are asked."""
    if way.slices == "all":
        return [list(offsets)]
    if way.slices == "alone":
        return [[offset] for offset in offsets]
    shuffled = rng.sample(list(offsets), len(offsets))
    size = rng.randrange(2, 10)
    return [shuffled[at : at + size] for at in range(0, len(shuffled), size)]


def outcomes(
    world: World, offsets: Sequence[int], way: Way | None = None, *, observe: Observe | None = None
) -> dict[int, Outcome]:
    """The outcomes of these offsets, translated together.

    What the world's replicator rewrites does not count for a match.
    """
    way = way or Way()
    source: Cluster = world.source_cluster
    target: Cluster = world.target_cluster
    if way.cut is not None:
        source = cast(Cluster, _Recut(source, way.cut))
        target = cast(Cluster, _Recut(target, way.cut))
    found = rounds.translate_partitions(
        _flow(world, way), source, target, [_work(world, offsets, way)], observe=observe
    )
    rng = random.Random(f"{way.changing} {list(offsets)}")
    translate_columns = rounds.translate_columns if way.fast_path else _answer_nothing
    with (
        patch.object(rounds, "RECORDS_HELD", way.held),
        patch.object(rounds, "translate_columns", translate_columns),
        patch.object(rounds._Run, "_ask", _asking(world, way, rng)),
    ):
        return {position.offset: position.translation.outcome for position in found}


def _answer_nothing(
    source: RecordColumns, target: RecordColumns, log: Numbers, *_: object
) -> tuple[Flags, Answers]:
    """As `translate_columns` where the fast path has no answer."""
    return np.zeros(len(log), bool), NO_ANSWERS


def _asking(world: World, way: Way, rng: random.Random) -> Callable[..., dict[Question, Answer]]:
    """A round of questions, before which mostly nothing happens, and in the end nothing any more;
    some of them fail."""
    ask, still = rounds._Run._ask, [MOST_CHANGES]

    def asked(run: Any, questions: Iterable[Question], executor: Executor) -> Any:
        if way.changing is not None and still[0] and rng.random() < 0.3:
            still[0] -= 1
            world.go_on(rng)
        answers = ask(run, questions, executor)
        if way.failing:
            failed = [it for it in sorted(answers, key=repr) if rng.random() < way.failing]
            answers |= dict.fromkeys(failed, MADE_TO_FAIL)
        return answers

    return asked


def _flow(world: World, way: Way) -> FlowSettings:
    settings = replace(way.settings, match=world.kind.match, offset_header=world.offset_header)
    return flow(isolation=world.isolation, translation=settings)


def _work(world: World, offsets: Sequence[int], way: Way) -> PartitionWork:
    replica = way.name == "replica"
    back = world.kind.failback
    return PartitionWork(SOURCE, TARGET, tuple(offsets), replica and not back, replica and back)


def translations(
    world: World, offsets: Sequence[int], way: Way | None = None
) -> dict[int, Translated]:
    """The answers for these positions, asked together; a position without one is left out."""
    found = {}
    for offset, outcome in outcomes(world, offsets, way).items():
        assert not is_our_mistake(outcome, way), outcome
        if isinstance(outcome, Translated):
            found[offset] = outcome
    return found


def questions_since_last_time(world: World) -> int:
    """Fetches and time lookups that the world's clusters were asked since this was called last.

    Log ranges, topics and their configurations are left out: they are asked for whatever the rule.
    """
    clusters = (world.source_cluster, world.target_cluster)
    asked = sum(
        len(request.items)
        for cluster in clusters
        for request in cluster.requests
        if request.verb not in (Verb.LOG_RANGES, Verb.TOPICS, Verb.TOPIC_CONFIGS)
    )
    for cluster in clusters:
        cluster.requests.clear()
    return asked


def is_our_mistake(outcome: Outcome, way: Way | None) -> bool:
    """True where the position failed, but for what retention took just before it was read, and
    for what was made to fail."""
    gone = way is not None and way.changing is not None
    return (
        isinstance(outcome, Failed)
        and outcome != MADE_TO_FAIL
        and not (gone and "outside the log" in outcome.message)
    )


def questions_and_answers(world: World, committed: int, way: Way) -> list[tuple[Question, Answer]]:
    """All that this position asks when it is translated alone, with the answers."""
    said: list[tuple[Question, Answer]] = []
    outcomes(world, [committed], way, observe=lambda _, *both: said.append(both))
    return said


class _Names(DefaultReplicationPolicy):
    """What the names of a world's topics tell; nothing under the `same` name."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__()
        self._failback = world.kind.failback
        self._name = name

    def topic_source(self, topic: str) -> str | None:
        if self._name == "same":
            return None
        original = SOURCE if self._failback else TARGET
        return ("B" if self._failback else "A") if topic == original.topic else None

    def upstream_topic(self, topic: str) -> str | None:
        return None if self.topic_source(topic) is None else TARGET.topic

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return TARGET.topic


def flow_of(world: World, name: str = "replica") -> FlowSettings:
    """The flow of a world, whose names tell what `Way.name` says."""
    return replace(_flow(world, Way()), policy=_Names(world, name))


def mistake_of(world: World, way: Way, committed: int, outcome: Outcome) -> str | None:
    """What is wrong with this answer; None where nothing is."""
    if isinstance(outcome, Failed) and is_our_mistake(outcome, way):
        return f"FAILED: {re.sub('[0-9]+', 'N', outcome.message)}"
    if not isinstance(outcome, Translated):
        return None
    offset, bound = outcome.target_offset, outcome.reread_bound
    if way.changing is None and not world.target.start <= offset <= world.target_end:
        return "outside the log"
    if bound is None or bound < 0:
        return f"no bound or a negative one, {outcome.precision}"
    if outcome.precision is Precision.EXACT and bound:
        return "exact with a bound"
    if not world.is_safe(committed, offset):
        excuse = world.excuse(committed, outcome)
        return f"excused: {excuse}" if excuse else f"UNSAFE, {outcome.precision}"
    if world.certain_rereads(committed, offset) > bound:
        excuse = world.excuse_bound(committed, outcome)
        return f"excused bound: {excuse}" if excuse else f"bound too low, {outcome.precision}"
    return None


class _Recut:
    """A cluster as if its producers had written smaller batches: a read begins at the multiple of
    `cut` before the offset asked for, and one of a single batch ends at the next."""

    def __init__(self, cluster: Cluster, cut: int) -> None:
        self._cluster = cluster
        self._cut = cut

    def __getattr__(self, name: str) -> object:
        return getattr(self._cluster, name)

    def read(
        self, requests: Collection[ReadFrom], isolation: Isolation
    ) -> Mapping[ReadFrom, FetchedRange | Failed]:
        answers = self._cluster.read(requests, isolation)
        return {
            request: fetched if isinstance(fetched, Failed) else self._piece(request, fetched)
            for request, fetched in answers.items()
        }

    def _piece(self, request: ReadFrom, fetched: FetchedRange) -> FetchedRange:
        batch = request.offset // self._cut * self._cut
        start = max(fetched.start, batch)
        end = min(fetched.end, batch + self._cut) if request.max_bytes == 1 else fetched.end
        records = tuple(record for record in fetched.records if start <= record.offset < end)
        return replace(fetched, start=start, end=end, records=records)


def silence_logs() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
