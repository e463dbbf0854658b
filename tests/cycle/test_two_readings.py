"""The answer to both readings of a source whose transactions matter."""

from dataclasses import replace

import pytest

from tsoffset.cycle.cache_update import Learned
from tsoffset.cycle.translated_partition import TranslatedPartition
from tsoffset.cycle.two_readings import lower_of
from tsoffset.cycle.work import PartitionWork
from tsoffset.model import (
    Failed,
    FailureKind,
    Outcome,
    Precision,
    Reason,
    Skipped,
    TopicPartition,
    Translated,
)
from tsoffset.rule.fast_path import NO_ANSWERS
from tsoffset.rule.translate import Translation

EXACT, BOUNDED, FRONTIER = Precision.EXACT, Precision.BOUNDED, Precision.FRONTIER
UNPROVEN = Precision.UNPROVEN
SKIPPED = Skipped(Reason.NO_PROOF, "the budget ended")
FAILED = Failed(FailureKind.TIMEOUT, "made to fail")


def reading(outcome: Outcome) -> TranslatedPartition:
    orders = TopicPartition("orders", 0)
    work = PartitionWork(orders, orders, (20,))
    return TranslatedPartition(work, {20: Translation(outcome)}, NO_ANSWERS, Learned(None))


def answer(target_offset: int, precision: Precision, bound: int | None) -> Translated:
    return Translated(target_offset, precision, bound, target_offset, target_offset)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (answer(9, EXACT, 0), answer(9, EXACT, 0), answer(9, EXACT, 0)),
        # Three offsets lie between the two.
        (answer(9, EXACT, 0), answer(6, EXACT, 0), answer(6, BOUNDED, 3)),
        (answer(9, EXACT, 0), answer(6, BOUNDED, 5), answer(6, BOUNDED, 5)),
        (answer(9, BOUNDED, 4), answer(6, EXACT, 0), answer(6, BOUNDED, 7)),
        (answer(9, BOUNDED, 4), answer(6, FRONTIER, 0), answer(6, FRONTIER, 7)),
        (answer(9, UNPROVEN, None), answer(6, UNPROVEN, None), answer(6, UNPROVEN, None)),
        (answer(9, UNPROVEN, None), answer(6, EXACT, 0), answer(6, UNPROVEN, None)),
        (answer(9, EXACT, 0), SKIPPED, SKIPPED),
        (answer(9, EXACT, 0), FAILED, FAILED),
    ],
)
def test_the_lower_answer_counts_with_a_bound_for_both_readings(one, other, both):
    """The bound counts the records between the two answers. A reading without an answer leaves
    none. The order of the readings makes no difference."""
    for first, second in ((one, other), (other, one)):
        found = lower_of(reading(first), reading(second))
        assert found.translations[20].outcome == both


def test_timestamps_that_either_reading_finds_rewritten_count():
    plain = reading(SKIPPED)
    rewritten = replace(plain, target_rewrites_timestamps=True)
    for first, second in ((plain, rewritten), (rewritten, plain)):
        assert lower_of(first, second).target_rewrites_timestamps
