"""The fast path: what each condition is there for, and that they are right.

In these logs a letter is a record, and its time is that of its place in the alphabet; the same
letter again is an equal record; a capital one has the same time and another content; `.` is an
offset of which nothing is known.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.random_examples import scaled
from tests.random_logs import TIMESTAMPS, Kind
from tests.replication_model import build
from tests.rule.test_frontier_examples import Logs
from tests.rule.test_translation_properties import kinds, large, seeds
from tests.translating import (
    Way,
    mistake_of,
    neighbors,
    outcomes,
    translated_of,
    translated_with_cache,
    translations,
)
from tsoffset.columns import Flags, RecordColumns, columns_of
from tsoffset.cycle import rounds
from tsoffset.flow.settings import TranslationSettings
from tsoffset.model import Isolation, Outcome, Precision, Reason, Skipped, Translated
from tsoffset.records import FetchedRange, OffsetHeader, Record, content_digest
from tsoffset.rule.fast_path import Answers, translate_columns

ALL = frozenset({"timestamp", "key", "value"})
FIRST_MS = 1_700_000_000_000


def record(offset: int, letter: str, *, value: bool = True, stamped: bool = True) -> Record:
    stamp = FIRST_MS + ord(letter.lower()) if stamped else None
    return Record(offset, stamp, None, content_digest(letter.encode()) if value else None)


def known(*records: Record) -> RecordColumns:
    return columns_of([(0, FetchedRange(records[0].offset, records[-1].offset + 1, records))])


def fetched_range(letters: str) -> FetchedRange:
    records = tuple(record(at, letter) for at, letter in enumerate(letters) if letter != ".")
    return FetchedRange(0, len(letters), records)


def log(letters: str) -> RecordColumns:
    return columns_of([(0, fetched_range(letters))])


def answered(
    source: RecordColumns, target: RecordColumns, offset: int, match: frozenset[str] = ALL
) -> bool:
    """Whether this position is answered by the same offset on the target."""
    where = np.array([0]), np.array([offset]), np.array([0])
    (found,), _ = translate_columns(source, target, *where, match)
    return bool(found)


@pytest.mark.parametrize(
    ("source", "target", "is_answered"),
    [
        ("abcde", "abcde", True),
        # c was not copied, and a foreign record lies at its offset.
        ("abcde", "abCde", False),
        ("abcde", "abzde", False),
        # x was written again far behind, where nothing was read yet; its first copy is lost.
        ("abxde", "abxde", True),
        *(("abxde", target, False) for target in ("zbx.e", "zBxde", "abxDe", "abx.e", "a.xde")),
        # The run of its time goes on: the x in mid-run may be a later one's copy.
        ("abxXXd", "abxXXd", True),
        ("abxXX.d", "abxXX.d", False),
        ("abxX", "abxX", False),
        # b, x and d were written twice. Of the first ones nothing was copied, and records of others
        # lie where the second ones' copies would: behind x is what the group has yet to read.
        ("abxdebxdf", "abxdzzzzf", False),
        # The target has two of a series: which one the next repeat takes is not told.
        ("abxde...f", "abxdebxdf", False),
    ],
)
def test_a_position_is_answered_where_neighbours_tell_its_copy(source, target, is_answered):
    """The third record, by the same offset on the target."""
    assert answered(log(source), log(target), 2) is is_answered


def test_nothing_is_told_by_records_that_hold_nothing():
    """Neither key nor value, or none that counts."""
    empty = known(record(0, "a"), record(1, "b", value=False), record(2, "c"))
    assert not answered(empty, empty, 1)
    full = known(record(0, "a"), record(1, "b"), record(2, "c"))
    assert answered(full, full, 1)
    assert not answered(full, full, 1, frozenset({"timestamp", "key"}))


def test_a_record_without_timestamp_cannot_be_looked_for():
    unstamped = known(record(0, "a"), record(1, "b", stamped=False), record(2, "c"))
    assert not answered(unstamped, unstamped, 1)


def test_what_counts_is_compared():
    """Where the replicator rewrites values, keys and times decide."""
    rewritten = log("abcDe")
    assert not answered(log("abcde"), rewritten, 2)
    keyed = [
        known(*(Record(at, FIRST_MS + at, b"k%d" % at, b"%d%d" % (at, side)) for at in range(3)))
        for side in (0, 1)
    ]
    assert not answered(*keyed, 1)
    assert answered(*keyed, 1, frozenset({"timestamp", "key"}))


def test_each_log_is_looked_at_by_itself():
    """Logs of other partitions, in the same call: with the same offsets and records, and distances
    of their own."""
    pieces = ["abcde", "vabcde", "abcde"]
    source = columns_of((at, fetched_range("abcde")) for at in range(3))
    target = columns_of((at, fetched_range(letters)) for at, letters in enumerate(pieces))
    logs, offsets, distances = np.array([0, 1, 2]), np.array([2, 2, 2]), np.array([0, 1, 1])
    found, _ = translate_columns(source, target, logs, offsets, distances, ALL)
    assert found.tolist() == [True, True, False]


def test_offsets_may_be_as_large_as_kafka_has_them():
    """Near the largest, in many logs: no number made of both may wrap."""
    last = 2**63 - 10
    far = [Record(last + at, FIRST_MS + at, None, content_digest(b"%d" % at)) for at in range(5)]
    there = columns_of((at, FetchedRange(last, last + 5, far)) for at in range(40))
    logs = np.arange(40)
    answers, _ = translate_columns(
        there, there, logs, np.full(40, last + 2), np.zeros(40, np.int64), ALL
    )
    assert answers.all()


# --- which positions are answered -----------------------------------------------------------


def test_only_the_outermost_positions_need_the_full_rule():
    """In an ordinary partition the fast path answers all others."""
    logs = Logs("a b c d e f g h i j k l", "a b c d e f g h i j k l")
    clusters = logs.source_cluster, logs.target_cluster
    found = translated_with_cache(*clusters, *range(2, 10))
    assert sorted(found.translations) == [2, 9]
    assert found.answers.offset.tolist() == [*range(3, 9)]
    for offset, translation in translated_of(*clusters, *range(2, 10)).items():
        assert translation.outcome == Translated(offset, Precision.EXACT, 0, offset, offset)


def precisions(logs: Logs) -> dict[int, Precision]:
    """How precise the answer of each position is where all are asked together."""
    *_, everyone = logs.everyone()
    outcomes = logs.outcomes(*everyone)
    return {at: it.precision for at, it in outcomes.items() if isinstance(it, Translated)}


def test_what_comes_again_is_no_ordinary_position():
    """The mirror began at c, came to l, was set back to a and is at c again: a and b, which groups
    from c on have read, were copied behind what answers them."""
    logs = Logs("a b c d e f g h i j k l m", "c d e f g h i j k l a b c")
    found = precisions(logs)
    assert {found[offset] for offset in range(2, 12)} == {Precision.BOUNDED}


def test_each_walk_of_a_mirror_has_a_distance():
    """c was copied twice: before it and behind it offsets are differently far apart."""
    logs = Logs("a b c d e f g h", "a b c c d e f g h")
    assert {*precisions(logs).values()} == {Precision.EXACT}


@pytest.mark.parametrize(
    ("settings", "failback"),
    [
        (TranslationSettings(), True),
        (TranslationSettings(proof="timestamps"), False),
        (TranslationSettings(offset_header=OffsetHeader("from")), False),
    ],
    ids=["failback", "proof by timestamps", "offset header"],
)
def test_other_flows_have_no_fast_path(settings, failback):
    """Where content alone does not tell, or the target is no copy."""
    logs = Logs("a b c d e f g h", "a b c d e f g h")
    clusters = logs.source_cluster, logs.target_cluster
    found = translated_with_cache(
        *clusters, *range(9), is_remote_topic=not failback, failback=failback, translation=settings
    )
    assert sorted(found.translations) == [*range(9)]
    assert not len(found.answers.offset)


def test_a_mistake_of_ours_costs_no_answer(monkeypatch):
    """Then all positions have their translators, and the log says so."""

    def broken(*_: object) -> None:
        raise OverflowError

    monkeypatch.setattr(rounds, "translate_columns", broken)
    with structlog.testing.capture_logs() as logged:
        found = precisions(Logs("a b c d e f g h", "a b c d e f g h"))
    assert {*found.values()} == {Precision.EXACT}
    assert "answering_at_once_broke" in [each["event"] for each in logged]


# --- random worlds --------------------------------------------------------------------------


def seldom(*values: object) -> st.SearchStrategy[object]:
    return st.sampled_from((0,) * 5 + values)


# Longer logs with few oddities each: the fast path answers much, so here mistakes would show.
LONG_KINDS = st.builds(
    Kind,
    records=st.sampled_from((80, 150, 300)),
    timestamps=st.sampled_from(TIMESTAMPS),
    append_time=st.just("never"),
    twins=seldom(0.05, 0.3),
    keys=st.sampled_from((1, 3, 12, 1000)),
    bare=seldom(0.1),
    tombstones=seldom(0.2),
    batch=st.sampled_from((3, 10, 30)),
    segments=st.sampled_from((0, 0, 5, 20)),
    dropped=seldom(0.02, 0.1),
    gap=st.sampled_from((False, False, True)),
    repeats=st.sampled_from((0, 1, 3)),
    rewind=st.sampled_from((0.0, 0.3, 1.0)),
    unfinished_repeats=st.sampled_from((0, 1, 2)),
    lag=seldom(0.3),
    foreign=seldom(0.05),
    source_compacted=seldom(True).map(bool),
    target_compacted=seldom(True).map(bool),
    source_trimmed=st.sampled_from((0.0, 0.3)),
    target_trimmed=st.sampled_from((0.0, 0.0, 0.3)),
    isolation=st.sampled_from(Isolation),
    couples=seldom(0.05, 0.2),
)


SOME_KINDS = st.one_of(LONG_KINDS, LONG_KINDS, kinds)
PLAIN = Way()
# As little as possible is read for a position.
FRUGAL = Way(settings=TranslationSettings(budget=1, scan_bytes=3_000))


def assert_full_rule_agrees(fast: Translated, full: Outcome, place: object) -> None:
    """The full rule has the same answer, from the same pair; its proof may be another one. Only if
    the target sets timestamps itself has it none, and then no row of the topic has an answer."""
    if isinstance(full, Skipped):
        assert full.reason is Reason.TARGET_REWRITES_TIMESTAMPS, (full, place)
        return
    assert isinstance(full, Translated), (full, place)
    assert fast == full, place
    assert (fast.basis, fast.pairs) == (full.basis, full.pairs), place
    assert fast.safety is not None, place
    assert full.safety is not None, place


def judged(
    worlds: int,
    monkeypatch: pytest.MonkeyPatch,
    of: st.SearchStrategy[Kind],
    ways: Sequence[Way],
) -> float:
    """Judge the fast path in random worlds; the share of all positions that it answers."""
    fast: set[int] = set()

    def noted(*asked: Any) -> tuple[Flags, Answers]:
        found = translate_columns(*asked)
        fast.update(found[1].offset.tolist())
        return found

    monkeypatch.setattr(rounds, "translate_columns", noted)
    counts = {"asked": 0, "fast": 0}

    @settings(max_examples=worlds)
    @given(of, seeds, st.sampled_from(ways))
    def holds(kind: Kind, seed: int, way: Way) -> None:
        world = build(kind, seed)
        offsets = neighbors(world, seed)
        fast.clear()
        found = translations(world, offsets, way)
        full = outcomes(world, offsets, replace(way, fast_path=False))
        counts["asked"] += len(offsets)
        counts["fast"] += len(fast)
        for offset in sorted(fast):
            place = kind, seed, way, offset
            assert_full_rule_agrees(found[offset], full[offset], place)
            mistake = mistake_of(world, way, offset, found[offset])
            if mistake is not None and mistake.startswith("bound too low"):
                # Where nothing tells of a re-read: the full rule says the same.
                assert full[offset] == found[offset], place
            else:
                assert mistake is None or mistake.startswith("excused"), place

    holds()
    return counts["fast"] / counts["asked"]


THOROUGH = (pytest.mark.thorough, pytest.mark.timeout(1_800))
LONG = (pytest.mark.long, pytest.mark.timeout(7_200))


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("worlds", "of", "ways", "share"),
    [
        pytest.param(max(5, scaled(30)), SOME_KINDS, (PLAIN, FRUGAL), 0.03, id="some"),
        pytest.param(300, SOME_KINDS, (PLAIN, FRUGAL), 0.1, id="many", marks=THOROUGH),
        # So many worlds that 80,000 positions or more are asked for.
        pytest.param(1_000, SOME_KINDS, (PLAIN, FRUGAL), 0.1, id="very many", marks=LONG),
        # Where no scan sees the whole log.
        pytest.param(2, large, [PLAIN], 0.01, id="large logs", marks=THOROUGH),
        pytest.param(6, large, [PLAIN], 0.01, id="more large logs", marks=LONG),
    ],
)
def test_what_the_fast_path_answers_is_right(worlds, of, ways, share, monkeypatch):
    """By the truth, and by the full rule; and it is a good part of all."""
    assert judged(worlds, monkeypatch, of, ways) > share
