"""What holds for every translation, whatever the logs: the promises of docs/design.md section 1.

Random logs come from `tests.random_logs`, the replicator and the truth about its copies from
`tests.replication_model`.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.random_logs import APPEND_TIME, TIMESTAMPS, Kind
from tests.replication_model import World, build
from tests.translating import (
    Way,
    conversation,
    remembering,
    silence_logs,
    sliced,
    translations,
)
from tsoffset.model import FirstAtTime, Isolation, Precision, Side, Translated
from tsoffset.records import Stretch
from tsoffset.remembered import PartitionMemory
from tsoffset.settings import TranslationSettings

# How many positions are judged: by `make test-fast`, `make test` and `make test-long`.
POSITIONS_FAST = 20_000
POSITIONS = 100_000
POSITIONS_LONG = 1_000_000
POSITIONS_PER_EXAMPLE = 25

# Of a long log not every position is asked for.
MOST_POSITIONS_OF_A_WORLD = 60

# Time lookups of one position, on both sides together, in logs of up to 1,500 records.
MOST_LOOKUPS = 150


def lengths(drawn: int) -> int:
    """Mostly short logs, where everything is near everything; a few long ones."""
    return drawn if drawn <= 70 else 150 if drawn < 85 else 300 if drawn < 97 else 1_500


def without_repeats_after_a_switch(kind: Kind) -> Kind:
    """Where the target's stamps were switched in mid-log, its time lookups tell nothing of what
    came before: what is repeated behind that may be taken for the first (docs/design.md)."""
    switched = kind.append_time in ("target_first", "target_later")
    return replace(kind, unfinished_repeats=0) if switched else kind


often_none = st.sampled_from((0.0, 0.0, 0.3, 0.6))
kinds = st.builds(
    Kind,
    records=st.integers(0, 99).map(lengths),
    timestamps=st.sampled_from(TIMESTAMPS),
    append_time=st.sampled_from(("never",) * 6 + APPEND_TIME[1:]),
    twins=st.sampled_from((0.0, 0.0, 0.05, 0.3, 0.6)),
    keys=st.sampled_from((0, 1, 3, 12, 1000)),
    bare=st.sampled_from((0.0, 0.0, 0.0, 0.1, 1.0)),
    tombstones=st.sampled_from((0.0, 0.0, 0.2)),
    headers=st.sampled_from((False, False, True)),
    padding=st.sampled_from((0, 0, 0, 0, 3_000, 30_000)),
    batch=st.sampled_from((1, 3, 10, 100, 1_000)),
    segments=st.sampled_from((0, 0, 5, 20)),
    transactions=st.booleans(),
    open_transaction=st.sampled_from((False, False, False, True)),
    dropped=st.sampled_from((0.0, 0.0, 0.3)),
    rewrites=st.sampled_from(("",) * 6 + ("values", "keys")),
    gap=st.sampled_from((False, False, False, True)),
    repeats=st.sampled_from((0, 0, 1, 3)),
    rewind=st.sampled_from((0.0, 0.0, 0.3, 1.0)),
    unfinished_repeats=st.sampled_from((0, 0, 1, 2)),
    lag=often_none,
    foreign=st.sampled_from((0.0, 0.0, 0.2)),
    source_compacted=st.sampled_from((False, False, True)),
    target_compacted=st.sampled_from((False, False, True)),
    source_trimmed=often_none,
    target_trimmed=often_none,
    isolation=st.sampled_from(Isolation),
).map(without_repeats_after_a_switch)
ways = st.builds(
    Way,
    slices=st.sampled_from(("all", "all", "some", "alone")),
    settings=st.sampled_from(
        (
            TranslationSettings(),
            TranslationSettings(),
            TranslationSettings(),
            TranslationSettings(budget=2),
            TranslationSettings(budget=1, scan_bytes=3_000),
            TranslationSettings(budget=4, scan_bytes=1),
            TranslationSettings(scan_bytes=30_000),
        )
    ),
    cut=st.sampled_from((None, None, None, None, 1, 5)),
    name=st.sampled_from(("replica", "replica", "same", "original")),
)
seeds = st.integers(0, 2**32)
retried = st.builds(
    lambda kind, couples: replace(kind, couples=couples),
    kinds,
    st.sampled_from((0.05, 0.2)),
)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """A line per world would be all that is seen of a failure."""
    before = structlog.get_config()
    silence_logs()
    yield
    structlog.configure(**before)


def each_example(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        print_blob=True,
    )


def asked(world: World, seed: int) -> list[int]:
    """The positions to translate: all there are, or some at random of a long log."""
    offsets = list(world.positions())
    most = min(len(offsets), MOST_POSITIONS_OF_A_WORLD)
    return sorted(random.Random(seed).sample(offsets, most))


def assert_holds(world: World, committed: int, found: Translated) -> None:
    """Safe, inside the log, no more re-reads than stated, none where it says exact.

    Two excuses, both for what nobody can tell from content. A record that is passed may equal
    one that the group has read and whose own copy the target never had or has lost: it stands
    in for that one (or, where whole stretches were written again, one that it will read). And
    where the source has lost one of two equal records, what lies between them is not held
    against a bound.
    """
    place = (committed, found)
    target_offset = found.target_offset
    assert world.target.start <= target_offset <= world.target_end, place
    excused = world.passes_equals_alone if world.kind.couples else world.passes_stand_ins_alone
    assert world.is_safe(committed, target_offset) or excused(committed, target_offset), (
        "unsafe",
        place,
    )
    assert found.reread_bound is not None
    assert (found.precision is Precision.EXACT) <= (found.reread_bound == 0), place
    rereads = world.rereads(committed, target_offset)
    certain = world.certain_rereads(committed, target_offset)
    assert certain <= found.reread_bound, ("bound", rereads, certain, place)


def judged_positions(positions: int, of: st.SearchStrategy[Kind] = kinds) -> int:
    """Judge random translations of random worlds; how many positions were asked for."""
    judged = Counter[str]()

    @each_example(positions // POSITIONS_PER_EXAMPLE)
    @given(of, seeds, ways)
    def holds(kind: Kind, seed: int, way: Way) -> None:
        world = build(kind, seed)
        offsets = asked(world, seed)
        for part in sliced(offsets, way, random.Random(seed)):
            for committed, found in translations(world, part, way).items():
                assert_holds(world, committed, found)
                judged["answers"] += 1
                judged["unsafe"] += not world.is_safe(committed, found.target_offset)
        judged["positions"] += len(offsets)

    holds()
    # The excuse of the stand-in is for very few.
    assert judged["unsafe"] * 1_000 <= judged["answers"], judged
    return judged["positions"]


def test_translations_are_safe_and_keep_their_bounds() -> None:
    """Never unsafe, never outside the log, never more re-reads than stated, none for exact:
    for positions everywhere, asked together, alone, or in any order and slices, whatever the
    batches and with budgets of any size."""
    assert judged_positions(POSITIONS_FAST) >= POSITIONS_FAST


@pytest.mark.thorough
@pytest.mark.timeout(1_800)
def test_many_translations_are_safe_and_keep_their_bounds() -> None:
    """The same for five times as many positions."""
    assert judged_positions(POSITIONS) >= POSITIONS


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_many_more_translations_are_safe_and_keep_their_bounds() -> None:
    """The same for ten times as many positions again, new ones each time."""
    assert judged_positions(POSITIONS_LONG) >= POSITIONS_LONG


def test_the_same_holds_where_producers_wrote_stretches_again() -> None:
    """A producer that retries writes several records anew, in order and with their old times:
    the hardest logs once the target has lost the first of two such stretches."""
    assert judged_positions(10_000, retried) >= 10_000


@each_example(150)
@given(kinds, seeds, st.lists(ways, min_size=2, max_size=3))
def test_exact_answers_are_the_same_however_they_are_asked_for(
    kind: Kind, seed: int, asked_in: list[Way]
) -> None:
    """Order, slices, batches and budgets change cost, never where an exact answer resumes."""
    world = build(kind, seed)
    exact: dict[int, Translated] = {}
    for way in asked_in:
        for part in sliced(asked(world, seed), way, random.Random(seed)):
            for committed, found in translations(world, part, way).items():
                assert_holds(world, committed, found)
                assert_same(world, committed, exact.setdefault(committed, found), found)


def assert_same(world: World, committed: int, one: Translated, other: Translated) -> None:
    """Two exact answers resume at the same record (unless one is not exact after all, which is
    the exception of `assert_holds`)."""
    if {one.precision, other.precision} == {Precision.EXACT} and not world.lost_an_equal:
        low, high = sorted((one.target_offset, other.target_offset))
        assert not world.resumes_differ(committed, low, high), (committed, one, other)


def test_memory_changes_no_answer() -> None:
    """A cycle that remembers the ones before, while the mirror goes on and cleaners run between,
    is as safe as one that does not, and says the same where both are exact."""
    recalled = Counter[str]()

    @each_example(150)
    @given(kinds, seeds, ways)
    def holds(kind: Kind, seed: int, way: Way) -> None:
        kept: list[PartitionMemory | None] = [None]

        def look(world: World) -> None:
            _cut_source(world)
            kept[0] = remembering(world, asked(world, seed), way, kept[0])[1]
            world.source.hold_high_watermark(None)

        world = build(kind, seed, look=look)
        offsets = asked(world, seed)
        without, *_ = remembering(world, offsets, way, None)
        answers, _, positions = remembering(world, offsets, way, kept[0])
        recalled["positions"] += positions
        for committed, found in answers.items():
            assert_holds(world, committed, found)
            assert_same(world, committed, found, without.get(committed, found))

    holds()
    assert recalled["positions"] > 1_000


def _cut_source(world: World) -> None:
    """Let the source end about where the replicator has come to, as it did then."""
    for offset in range(max(world.reached, world.source.start), world.source.end):
        try:
            world.source.hold_high_watermark(offset)
        except ValueError:
            continue  # inside a batch
        return


def test_questions_of_a_position_are_bounded() -> None:
    """A position alone makes at most `translation.budget` fetches on each side, and those that
    the partition pays for: together they bring `translation.scan.bytes`, and what the last of
    them had over. Time lookups, which bring nothing, are few."""
    asked_for = Counter[str]()

    @each_example(150)
    @given(kinds, seeds, ways)
    def holds(kind: Kind, seed: int, way: Way) -> None:
        world = build(kind, seed)
        for committed in asked(world, seed)[::7]:
            questions = conversation(world, committed, way)
            asked_for["questions"] += len(questions)
            lookups = sum(isinstance(question.what, FirstAtTime) for question, _ in questions)
            assert lookups <= MOST_LOOKUPS, (committed, lookups)
            for side in Side:
                brought = sorted(
                    max(1, answer.bytes_read)
                    for question, answer in questions
                    if question.side is side and isinstance(answer, Stretch)
                )
                # The largest ones may be those of the budget, and the last of the scans.
                paid = brought[: max(0, len(brought) - way.settings.budget - 1)]
                assert sum(paid) <= way.settings.scan_bytes, (committed, side, brought)

    holds()
    assert asked_for["questions"] > 10_000


ordinary = st.builds(
    Kind,
    records=st.integers(0, 200),
    timestamps=st.sampled_from([stamps for stamps in TIMESTAMPS if stamps != "negative"]),
    append_time=st.sampled_from(("never", "source")),
    headers=st.booleans(),
    batch=st.sampled_from((1, 10, 1_000)),
    segments=st.sampled_from((0, 20)),
    transactions=st.booleans(),
    repeats=st.sampled_from((0, 1, 3)),
    rewind=st.sampled_from((0.0, 0.5)),
    foreign=st.sampled_from((0.0, 0.2)),
    source_trimmed=st.sampled_from((0.0, 0.5)),
    isolation=st.sampled_from(Isolation),
)


def test_ordinary_logs_are_answered_exactly() -> None:
    """Where every record has its copy and no equal one, all positions are exact, whatever the
    timestamps and batches; most of them with transactions (markers in batches of their own
    cost fetches, and their times mislead), restarts and records of others, too, alone."""
    counted = Counter[str]()

    @each_example(200)
    @given(ordinary, seeds, st.sampled_from(("all", "some", "alone")))
    def holds(kind: Kind, seed: int, slices: str) -> None:
        world = build(kind, seed)
        for part in sliced(asked(world, seed), Way(slices), random.Random(seed)):
            answers = translations(world, part)
            inexact = [
                it for it in part if it not in answers or answers[it].precision != Precision.EXACT
            ]
            plain = not (kind.transactions or kind.repeats or kind.foreign)
            assert not (plain and inexact), {it: answers.get(it) for it in inexact}
            for committed, answer in answers.items():
                assert_holds(world, committed, answer)
            counted["all"] += len(part)
            counted["exact"] += len(part) - len(inexact)

    holds()
    assert counted["exact"] >= 0.95 * counted["all"], counted


@pytest.mark.parametrize("rewritten", ["values", "keys"])
def test_rewritten_records_are_matched_by_what_is_left(rewritten: str) -> None:
    """With a match that leaves out what the replicator rewrites, answers are as exact as without
    a rewrite; with the default match such records are no images, and nothing is unsafe."""
    world = build(Kind(rewrites=rewritten, foreign=0.2, repeats=1), seed=7)
    offsets = list(world.positions())
    for committed, found in translations(world, offsets).items():
        assert found.precision is Precision.EXACT, (committed, found)
        assert_holds(world, committed, found)
    taken_for_equal = replace(world, kind=replace(world.kind, rewrites=""))
    for committed, found in translations(taken_for_equal, offsets[1:-1]).items():
        assert world.is_safe(committed, found.target_offset), (committed, found)
        assert found.precision is not Precision.EXACT, (committed, found)
