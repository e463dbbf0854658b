"""What holds for every translation, whatever the logs: the promises of docs/design.md section 1.

Random logs come from `tests.random_logs`, the replicator and the truth about its copies from
`tests.replication_model`.
"""

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.random_examples import scaled
from tests.random_logs import CHOICES, TIMESTAMPS, Kind, only
from tests.replication_model import World, build
from tests.translating import (
    MADE_TO_FAIL,
    Way,
    asked,
    mistake_of,
    outcomes,
    questions_and_answers,
    sliced,
    translations,
)
from tsoffset.cycle.translator import Translator
from tsoffset.flow.settings import TranslationSettings
from tsoffset.model import Basis, FirstAtTime, Isolation, Precision, Side, Translated
from tsoffset.records import FetchedRange, Record
from tsoffset.rule import inquiry, walk
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.inquiry import MOST_WALKED, Answer, Inquiry, Question

# Like all random tests (tests/conftest.py), but `given` is inside of these.
pytestmark = pytest.mark.no_cover

THOROUGH = (pytest.mark.thorough, pytest.mark.timeout(1_800))
LONG = (pytest.mark.long, pytest.mark.timeout(7_200))
POSITIONS_PER_EXAMPLE = 25
LARGE = 600

# Time lookups of one position, on both sides together, in logs of up to 1,500 records, where the
# partition does not pay for more reads than that.
MOST_LOOKUPS = 150


# Answers that content cannot tell to be wrong, and in how many of a hundred worlds they are seen:
# unsafe ones (`World.excuse`), and bounds that are too low (`World.excuse_bound`).
EXCUSED_IN_A_HUNDRED_WORLDS = {
    "equal": 1.5,
    "lost_equal": 0.5,
    "foreign_equal": 0.5,
    "stamps_switched": 0.5,
    "premise": 1.0,
    "very_late": 0.2,
    "bound: twin_taken": 2.0,
    "bound: premise": 3.0,
    "bound: set_back": 5.0,
    # Safe answers that state less than comes again, for none of these reasons: mistakes that are
    # left. None was seen in the last thousand worlds, and none may be in large logs.
    "bound: unexplained": 0.1,
}

all_at_once = st.builds(
    Kind,
    **{name: st.sampled_from(values) for name, values in CHOICES.items()},
)
kinds = st.one_of(
    all_at_once, st.builds(only, all_at_once, st.sets(st.sampled_from(list(CHOICES)), max_size=12))
)
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
    name=st.sampled_from(("replica", "replica", "same")),
    held=st.sampled_from((Way.held, Way.held, 1, 20, 200)),
    failing=st.sampled_from((0.0,) * 5 + (0.02, 0.1)),
)
seeds = st.integers(0, 2**32)
# Logs of which no scan sees the whole, with what makes time lookups answer too early.
large = st.builds(
    Kind,
    records=st.sampled_from((600, 600, 600, 1_200, 2_500, 6_000)),
    timestamps=st.sampled_from(
        (
            *("late", "two_clocks", "backfill") * 2,
            *("clock_back", "jitter", "rising", "one", "wild"),
        )
    ),
    replays=st.sampled_from((0.0, 0.0, 0.003)),
    keys=st.sampled_from((12, 1_000)),
    padding=st.sampled_from((300, 300, 1_000)),
    batch=st.sampled_from((1, 10, 100)),
    segments=st.sampled_from((0, 0, 200)),
    dropped=st.sampled_from((0.0, 0.0, 0.02, 0.3)),
    gap=st.sampled_from((False, False, True)),
    repeats=st.sampled_from((0, 0, 1)),
    rewind=st.sampled_from((0.0, 0.3, 1.0)),
    set_back=st.sampled_from((0, 0, 1)),
    begins_late=st.sampled_from((False,) * 4 + (True,)),
    unfinished_repeats=st.sampled_from((0, 1, 1)),
    lag=st.sampled_from((0.0, 0.1, 0.3)),
    foreign=st.sampled_from((0.0,) * 4 + (0.05,)),
    source_trimmed=st.sampled_from((0.0, 0.0, 0.5)),
    target_trimmed=st.sampled_from((0.0, 0.0, 0.5)),
    source_compacted=st.sampled_from((False,) * 9 + (True,)),
    target_compacted=st.sampled_from((False,) * 9 + (True,)),
    failback=st.sampled_from((False,) * 4 + (True,)),
)
large_ways = st.builds(
    Way,
    slices=st.sampled_from(("all", "all", "alone")),
    settings=st.sampled_from(
        (
            TranslationSettings(),
            TranslationSettings(),
            TranslationSettings(budget=2),
            TranslationSettings(scan_bytes=100_000),
        )
    ),
    name=st.sampled_from(("replica", "replica", "same")),
    held=st.sampled_from((Way.held, Way.held, 200, 2_000)),
)
retried = st.builds(
    lambda kind, couples, replays: replace(kind, couples=couples, replays=replays),
    kinds,
    st.sampled_from((0.0, 0.05, 0.2)),
    st.sampled_from((0.0, 0.03)),
)


def each_example(
    examples: int, *, shrink: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return settings(
        max_examples=examples,
        phases=[phase for phase in settings().phases if shrink or phase is not Phase.shrink],
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        print_blob=True,
    )


def assert_holds(
    world: World, committed: int, found: Translated, way: Way | None = None, place: object = None
) -> str | None:
    """Safe, inside the log, no more re-reads than stated, none where it says exact; what content
    cannot tell is excused, and the excuse returned."""
    said = mistake_of(world, way or Way(), committed, found)
    if said is None:
        return None
    if said.startswith("bound too low"):
        assert world.kind.records < LARGE, (said, committed, found)
        return "bound: unexplained"
    kind, _, excuse = said.partition(": ")
    assert kind in ("excused", "excused bound"), (said, committed, found, place)
    return excuse if kind == "excused" else f"bound: {excuse}"


def judged_positions(
    positions: int,
    of: st.SearchStrategy[Kind] = kinds,
    in_ways: st.SearchStrategy[Way] = ways,
    *,
    changing: bool = False,
) -> int:
    """Judge random translations of random worlds; how many positions were asked for."""
    judged = Counter[str]()
    excused = Counter[str]()

    # To find the smallest of large logs takes minutes.
    @each_example(positions // POSITIONS_PER_EXAMPLE, shrink=of is not large)
    @given(of, seeds, in_ways)
    def holds(kind: Kind, seed: int, way: Way) -> None:
        way = replace(way, changing=seed) if changing else way
        world = build(kind, seed)
        offsets = asked(world, seed)
        excuses: set[str] = set()
        for part in sliced(offsets, way, random.Random(seed)):
            for committed, found in translations(world, part, way).items():
                excuse = assert_holds(world, committed, found, way)
                excuses |= set() if excuse is None else {excuse}
        excused.update(excuses)
        judged["worlds"] += 1
        judged["positions"] += len(offsets)

    holds()
    for excuse, count in excused.items():
        expected = EXCUSED_IN_A_HUNDRED_WORLDS[excuse] * judged["worlds"] / 100
        # So many by chance in none of ten thousand runs.
        assert count <= expected + 4 * math.sqrt(expected) + 2, (excused, judged)
    return judged["positions"]


def amounts(usual: int, thorough: int, long: int | None = None) -> list[Any]:
    """So many for `make test`, `make test-all` and `make test-long`."""
    found = [
        pytest.param(scaled(usual), id="some"),
        pytest.param(thorough, id="many", marks=THOROUGH),
    ]
    if long is not None:
        found.append(pytest.param(long, id="very many", marks=LONG))
    return found


@pytest.mark.parametrize("positions", amounts(2_000, 15_000, 1_000_000))
def test_translations_are_safe_and_keep_their_bounds(positions):
    """Never unsafe, never outside the log, never more re-reads than stated, none for exact:
    for positions everywhere, asked together, alone, or in any order and slices, whatever the
    batches and with budgets of any size."""
    assert judged_positions(positions) >= positions


@pytest.mark.parametrize("positions", amounts(250, 5_000, 50_000))
def test_large_logs_are_answered_safely(positions):
    """Logs that are too long to be seen whole, with late records, clocks that are apart or were set
    back, backfills, and budgets that end: a lookup or a scan that does not find a record does not
    tell that it is not there."""
    assert judged_positions(positions, large, large_ways) >= positions


@pytest.mark.thorough
@pytest.mark.timeout(1_800)
def test_the_same_holds_where_producers_wrote_series_again():
    """A producer that retries writes several records again, in order and with their old times:
    the hardest logs once the target has lost the first of two such series."""
    assert judged_positions(5_000, retried) >= 5_000


@pytest.mark.thorough
@pytest.mark.timeout(1_800)
def test_the_same_holds_while_both_logs_change():
    """Between the questions of a translator the replicator copies on or is restarted,
    applications write, cleaners and retention come: answers hold for the logs as they are at the
    end."""
    assert judged_positions(5_000, changing=True) >= 5_000


@pytest.mark.thorough
@pytest.mark.timeout(1_800)
@each_example(100)
@given(kinds, seeds, st.lists(ways, min_size=2, max_size=3))
def test_exact_answers_are_the_same_however_they_are_asked_for(kind, seed, asked_in):
    """Order, slices, batches and budgets change cost, never where an exact answer resumes."""
    world = build(kind, seed)
    exact: dict[int, Translated] = {}
    for way in asked_in:
        for part in sliced(asked(world, seed), way, random.Random(seed)):
            for committed, found in translations(world, part, way).items():
                if assert_holds(world, committed, found, way) is None:
                    assert_same(world, committed, exact.setdefault(committed, found), found)


def assert_same(world: World, committed: int, one: Translated, other: Translated) -> None:
    """Two exact answers resume at the same record; but where two replicators wrote at once, each
    has its own copies, and either's will do."""
    if world.lost_an_equal or world.kind.two_at_once:
        return
    if {one.precision, other.precision} == {Precision.EXACT}:
        low, high = sorted((one.target_offset, other.target_offset))
        assert not world.resumes_differ(committed, low, high), (committed, one, other)


def test_questions_of_a_position_are_bounded():
    """A position alone makes, in each reading, at most `translation.budget` fetches on each side,
    and those that the partition pays for: together they bring `translation.scan.bytes`, and what
    the last of them had over. Time lookups, which bring nothing, are few, or go along with
    reads."""
    asked_for = Counter[str]()

    @each_example(scaled(100))
    @given(kinds, seeds, ways)
    def holds(kind: Kind, seed: int, way: Way) -> None:
        world = build(kind, seed)
        for committed in asked(world, seed)[::7]:
            said = questions_and_answers(world, committed, way)
            asked_for["questions"] += len(said)
            # A second reading (`tsoffset.cycle.two_readings`) begins with the same question.
            starts = [at for at, (question, _) in enumerate(said) if question == said[0][0]]
            for start, end in pairwise([*starts, len(said)]):
                assert_bounded(said[start:end], committed, way)

    def assert_bounded(questions: list[tuple[Question, Answer]], committed: int, way: Way) -> None:
        lookups = sum(isinstance(question.what, FirstAtTime) for question, _ in questions)
        reads = sum(isinstance(answer, FetchedRange) for _, answer in questions)
        assert lookups <= max(MOST_LOOKUPS, reads), (committed, lookups)
        for side in Side:
            brought = sorted(
                max(1, answer.bytes_read)
                for question, answer in questions
                if question.side is side and isinstance(answer, FetchedRange)
            )
            # The largest ones may be those of the budget, and the last of the scans.
            paid = brought[: max(0, len(brought) - way.settings.budget - 1)]
            assert sum(paid) <= way.settings.scan_bytes, (committed, side, brought)

    holds()
    assert asked_for["questions"] > scaled(2_500)


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


@pytest.mark.parametrize(
    "worlds",
    [
        # A share of few worlds would vary too much.
        pytest.param(max(35, scaled(70)), id="some", marks=pytest.mark.slow),
        pytest.param(200, id="many", marks=THOROUGH),
        pytest.param(500, id="very many", marks=LONG),
    ],
)
def test_ordinary_logs_are_answered_exactly(worlds):
    """Where every record has its copy and no equal one, all positions are exact, whatever the
    timestamps and batches; most of them with transactions (markers in batches of their own
    cost fetches, and their times mislead), restarts and records of others, too, alone.
    Where the source's oldest records are deleted and later ones have older timestamps, no proof
    may hold of what the target has before: then a position gets the target's log start."""
    counted = Counter[str]()

    @each_example(worlds)
    @given(ordinary, seeds, st.sampled_from(("all", "some", "alone")))
    def holds(kind: Kind, seed: int, slices: str) -> None:
        world = build(kind, seed)
        for part in sliced(asked(world, seed), Way(slices), random.Random(seed)):
            answers = translations(world, part)
            inexact = [
                it for it in part if it not in answers or answers[it].precision != Precision.EXACT
            ]
            deleted = kind.source_trimmed and kind.timestamps in ("clock_back", "wild")
            plain = not (kind.transactions or kind.repeats or kind.foreign)
            wrong = {
                it: answers.get(it)
                for it in inexact
                if not (deleted and it in answers and answers[it].basis is Basis.LOG_START)
            }
            assert not (plain and wrong), wrong
            for committed, answer in answers.items():
                assert_holds(world, committed, answer)
            counted["all"] += len(part)
            counted["exact"] += len(part) - len(inexact)

    holds()
    assert counted["exact"] >= 0.95 * counted["all"], counted


@pytest.mark.parametrize("rewritten", ["values", "keys"])
def test_rewritten_records_are_matched_by_what_is_left(rewritten):
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


@pytest.mark.parametrize("failing", [0.2, 0.4])
def test_questions_that_fail_break_no_translation(failing):
    """A search for the partition that failed goes on later, when the records that it had found were
    dropped to limit memory."""
    world, way = build(Kind(batch=1), seed=0), Way(held=1, failing=failing)
    for committed, found in translations(world, world.positions()[::3], way).items():
        assert_holds(world, committed, found, way)


def test_a_second_attempt_that_fails_costs_no_answer(monkeypatch):
    """Once the clusters no longer answer, the answers of the first attempts stay."""
    begin_again = Translator.begin_again

    def begun(translator: Translator) -> bool:
        for cluster in (world.source_cluster, world.target_cluster):
            cluster.fail(MADE_TO_FAIL)
        return begin_again(translator)

    monkeypatch.setattr(Translator, "begin_again", begun)
    # The mirror lags: a caught-up group could do better once it has gone on.
    world = build(Kind(records=120, batch=1, begins_late=True, target_trimmed=0.3, lag=0.3), 229)
    outcome = outcomes(world, [*range(0, 121, 5)])[120]
    assert isinstance(outcome, Translated)
    assert outcome.precision is Precision.FRONTIER


def test_a_position_does_not_walk_on_from_each_pair_below(monkeypatch):
    """Each pair that is found lies nearer to the position, but the records of one timestamp that
    lie in between tell nothing: all walks together pass so many records, or a log of 600 records
    costs minutes."""
    walked = Counter[Inquiry]()
    match = walk._TargetWalk._match

    def counted(one: walk._TargetWalk, copy: Record, *, adjacent: bool) -> Any:
        walked[one.inquiry] += 1
        return match(one, copy, adjacent=adjacent)

    monkeypatch.setattr(walk._TargetWalk, "_match", counted)
    kind = Kind(records=2_500, timestamps="one", padding=1_000, batch=1, rewind=0.3, set_back=1)
    kind = replace(kind, unfinished_repeats=1, lag=0.3, foreign=0.05, target_trimmed=0.5)
    assert translations(build(kind, seed=1), [1_250], Way(name="same"))
    assert MOST_WALKED <= max(walked.values()) <= MOST_WALKED + 8 * walk.SHORT_WALK


def test_long_walks_leave_enough_for_the_nearest_pair(monkeypatch):
    """The walk that answers is the last one: it begins at the pair nearest to the position."""
    world = build(Kind(dropped=0.3, batch=1), seed=1)
    answers = translations(world, asked(world, 1))
    monkeypatch.setattr(inquiry, "MOST_WALKED", 0)
    assert translations(world, asked(world, 1)) == answers


def test_a_walk_goes_on_behind_no_copy_of_what_it_has_reached():
    """A filter lets more through after a restart: the only copy of a record far below the position
    lies in the repeat, and proves nothing of what lies before the repeat."""
    kind = Kind(records=150, timestamps="late", twins=0.05, couples=0.05, tombstones=0.2)
    kind = replace(kind, headers=True, padding=3_000, batch=1, open_transaction=True, dropped=0.3)
    kind = replace(kind, rewind=1.0, filter_changes="wider", unfinished_repeats=2, foreign=0.2)
    world = build(replace(kind, cleaned_partly=True), seed=737)
    way = Way(settings=TranslationSettings(scan_bytes=30_000), cut=1, name="same")
    answer = translations(world, asked(world, 737), way)[147]
    assert world.is_safe(147, answer.target_offset), answer


def test_a_second_attempt_takes_no_better_answer_away():
    """The first attempt has spent the partition's budget: the second finds less."""
    kind = Kind(couples=0.2, keys=3, tombstones=0.2, begins_late=True, compacted_between=True)
    world, way = build(replace(kind, loses_later=0.3), seed=6), Way("some", held=200)
    [part] = [it for it in sliced(asked(world, 6), way, random.Random(6)) if 51 in it]
    assert (translations(world, part, way)[51].reread_bound or 0) <= 3


def test_a_first_answer_is_not_kept_once_a_later_duplicate_is_known():
    """The trimmed target has the later copy only, which the first attempt took for that of the next
    record. The second one has seen both on the source."""
    world = build(Kind(twins=0.05, couples=0.2, keys=12, target_trimmed=0.6), seed=453262779)
    way = Way(settings=TranslationSettings(scan_bytes=10_000), cut=1, held=20)
    answer = translations(world, asked(world, 453262779), way)[20]
    assert world.is_safe(20, answer.target_offset), answer


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        # In a walk: records with a known duplicate, of which the target may have a later copy.
        pytest.param(Kind(replays=0.05, unfinished_repeats=2, dropped=0.3), 79, id="in a walk"),
        # The copy of a later duplicate is as far from the record as a pair below it.
        pytest.param(
            Kind(records=90, replays=0.05, keys=1_000, dropped=0.3), 223, id="at a pair's distance"
        ),
        # More records are equal than are compared.
        pytest.param(Kind(replays=0.1, dropped=0.3), 6, id="long series"),
        # What lies before the copy is older, so that no lookup tells.
        pytest.param(
            Kind(replays=0.1, timestamps="clock_back", dropped=0.3), 2, id="a clock was set back"
        ),
        pytest.param(Kind(replays=0.1, timestamps="two_clocks"), 0, id="clocks are apart"),
    ],
)
def test_series_that_were_written_again_skip_nothing(kind, seed):
    """Compaction has taken the first ones from the target."""
    kind = replace(kind, padding=3_000, batch=1, target_compacted=True, target_trimmed=0.6)
    world, way = build(kind, seed), Way(held=1)
    for committed, found in translations(world, asked(world, seed), way).items():
        assert_holds(world, committed, found, way)


def test_proofs_by_time_of_one_walk_compare_no_record_anew(monkeypatch):
    """Each record of a walk needs two such proofs, of all target records before it: the next proof
    begins where the last one ended, or failed."""
    compared = Counter[str]()
    may_be_of = Evidence.may_be_of

    def counted(evidence: Evidence, copy: Record, offset: int) -> bool:
        compared["records"] += 1
        return may_be_of(evidence, copy, offset)

    monkeypatch.setattr(Evidence, "may_be_of", counted)
    kind = Kind(records=1_500, timestamps="equal_runs", bare=1.0, foreign=0.5, batch=1)
    assert translations(build(kind, seed=1), [500, 520, 540])
    assert compared["records"] < 100_000  # 644,291 if each proof compares all of them


def test_what_others_have_read_serves_a_second_attempt():
    """The partition's budget ends: an exact answer needs what later positions have read, although
    they prove only pairs that are known."""
    kind = Kind(records=600, timestamps="backfill", keys=1_000, padding=1_000, batch=1, repeats=1)
    world = build(replace(kind, unfinished_repeats=1, lag=0.1, target_trimmed=0.5), seed=15)
    way = Way(settings=TranslationSettings(scan_bytes=100_000), name="same")
    assert translations(world, asked(world, 15), way)[228].precision is Precision.EXACT
