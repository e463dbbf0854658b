"""`translation.verify`: of what is answered at once some positions have their conversation, too."""

from collections import Counter
from random import Random
from typing import Any

import polars as pl
import pytest
import structlog

from tests.memory_flows import Estate, flow, mirrored_estate
from tsoffset.columns import Flags
from tsoffset.cycle import rounds, under_way
from tsoffset.cycle.work import Cost
from tsoffset.flow.settings import FlowSettings, TranslationSettings
from tsoffset.group_sync.cache import CarryOver
from tsoffset.group_sync.cycle import StepsHere
from tsoffset.group_sync.tables import PARTITIONS, SOURCE_OFFSET, TO_TRANSLATE, empty
from tsoffset.model import FailureKind, OutcomeKind
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.fast_path import Answers, translate_columns
from tsoffset.rule.translate import Conversation, translate

POSITIONS = range(10, 50)
# All of a partition but the two between whose pairs they lie.
AT_ONCE = len(POSITIONS) - 2


def verifying(positions: int) -> FlowSettings:
    return flow(translation=TranslationSettings(verify=positions))


def mirrored(partitions: int = 1) -> Estate:
    return mirrored_estate(60, partitions=partitions, first_offset=400)


def translated(estate: Estate, settings: FlowSettings) -> tuple[pl.DataFrame, Cost]:
    """POSITIONS in each partition as TRANSLATIONS, one partition after the other; and what it
    took."""
    steps = StepsHere(settings, estate["A"], estate["B"])
    rows = [
        ("orders", number, offset, "A.orders", True, False)
        for number in estate["A"].partition_numbers("orders")
        for offset in POSITIONS
    ]
    found, *_, cost = steps.translate(
        pl.DataFrame(rows, TO_TRANSLATE, orient="row"), empty(PARTITIONS)
    )
    return found.sort(SOURCE_OFFSET), cost


def one_past(*asked: Any) -> tuple[Flags, Answers]:
    """A rule that leaves out a record."""
    answered, answers = translate_columns(*asked)
    return answered, answers._replace(copy=answers.copy + 1)


def test_nothing_is_verified_unless_wanted(monkeypatch):
    """By default only the outermost positions have a conversation."""
    had = []

    def counted(offset: int, evidence: Evidence) -> Conversation:
        had.append(offset)
        return translate(offset, evidence)

    monkeypatch.setattr(under_way, "translate", counted)
    _, cost = translated(mirrored(), flow())
    assert cost.verified == 0
    assert had == [POSITIONS[0], POSITIONS[-1]]


def test_verifying_changes_no_answer():
    """Where both agree the answers are the same, they hold as long, and the cost tells how many
    were verified."""
    logs = mirrored(3)
    (plain, _), (verified, cost) = translated(logs, flow()), translated(logs, verifying(1_000))
    assert verified.equals(plain)
    assert cost.verified == 3 * AT_ONCE


@pytest.mark.parametrize("budget", [1, 7, 3 * AT_ONCE])
def test_no_more_are_verified_than_wanted(budget, monkeypatch):
    """The number holds for all partitions together."""
    monkeypatch.setattr(rounds, "random", Random(5).random)
    _, cost = translated(mirrored(3), verifying(budget))
    assert 0 < cost.verified <= budget


def test_any_position_may_be_verified(monkeypatch):
    """Those of the first partition are chosen no more often than those of the last."""
    monkeypatch.setattr(rounds, "translate_columns", one_past)
    chosen = Counter[int]()
    logs = mirrored(3)
    for seed in range(30):
        monkeypatch.setattr(rounds, "random", Random(seed).random)
        found, _ = translated(logs, verifying(1))
        failed = found["reason"].is_not_null().to_list()
        chosen.update(place // len(POSITIONS) for place in range(len(found)) if failed[place])
    assert min(chosen.values()) > 4


def test_a_wrong_answer_fails(monkeypatch):
    """A rule that leaves out a record: rows say so, the log says so, nothing is committed and
    nothing remembered; of what had its conversation alone all is as ever."""
    monkeypatch.setattr(rounds, "translate_columns", one_past)
    estate = mirrored()
    for offset in (10, 20, 30):
        estate.commit(f"g{offset}", "orders", offset)
    memory = CarryOver()
    with structlog.testing.capture_logs() as logged:
        rows = estate.sync(verifying(100), carry_over=memory)
    outcomes = {row.group: row.outcome for row in rows}
    committed, failed = OutcomeKind.COMMITTED, OutcomeKind.FAILED
    assert outcomes == {"g10": committed, "g20": failed, "g30": committed}
    (row,) = (row for row in rows if row.group == "g20")
    assert row.reason is FailureKind.INTERNAL
    for words in ("the fast path returns 421", "full rule 420", "please report", "explain"):
        assert words in row.message
    assert [each for each in logged if each["log_level"] == "error"] == [
        {
            "event": "answers_differ",
            "log_level": "error",
            "partition": "orders-0",
            "offset": 20,
            "at_once": 421,
            "conversation": 420,
        }
    ]
    assert estate.standing("g20", "A.orders") is None
    known = memory.pairs.select("group", "known_offset").drop_nulls().rows(named=True)
    assert [one["group"] for one in known] == ["g10", "g30"]


def test_a_conversation_that_fails_tells_nothing(monkeypatch):
    """What was answered at once is answered, as without it, and does not count as verified."""

    def broken(offset: int, evidence: Evidence) -> Conversation:
        if offset == 20:
            raise ZeroDivisionError
        return (yield from translate(offset, evidence))

    monkeypatch.setattr(under_way, "translate", broken)
    found, cost = translated(mirrored(), verifying(100))
    assert cost.verified == AT_ONCE - 1
    assert found["reason"].null_count() == len(found)


# --- on Spark -------------------------------------------------------------------------------


def test_tasks_share_what_is_to_be_verified():
    """Each has its part, rounded up, so that few are not none."""
    parts = {wanted: TranslationSettings(verify=wanted).shared_by(4).verify for wanted in (0, 1, 8)}
    assert parts == {0: 0, 1: 1, 8: 2}
