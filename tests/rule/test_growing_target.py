"""The mirror goes on while a position is translated: the target's log grows between questions."""

from collections.abc import Collection

import pytest

from tests.memory_flows import Estate, flow, identity_flow, messages
from tsoffset.cycle.rounds import translate_partitions
from tsoffset.cycle.work import PartitionWork
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.cache import CarryOver
from tsoffset.group_sync.in_process import cycle
from tsoffset.model import Outcome, Precision, Row, Skipped, TopicPartition, Translated
from tsoffset.testing.memory_cluster import mirror_partition

RECORDS = 30
FLOWS = {"renamed": flow(), "same-name": identity_flow()}


class _Growing:
    """A target that answers as any, and whose mirror copies some more records after each answer
    of a kind: `grow_after` names the calls, `step` is how many records it copies then."""

    def __init__(self, estate: Estate, copy: str, grow_after: Collection[str], step: int) -> None:
        self._cluster = estate["B"]
        self._estate = estate
        self._copy = copy
        self._grow_after = grow_after
        self._step = step
        self.copied = 0

    def __getattr__(self, name: str) -> object:
        method = getattr(self._cluster, name)
        if name not in self._grow_after:
            return method

        def answer(*words: object) -> object:
            answered = method(*words)
            self.mirror_to(self.copied + self._step)
            return answered

        return answer

    def mirror_to(self, end: int) -> None:
        end = min(end, RECORDS)
        self.copied = mirror_partition(
            self._estate["A"].log("orders"),
            self._cluster.log(self._copy),
            start=self.copied,
            end=end,
            batch_size=7,
        )


def _estate(settings: FlowSettings, grow_after: Collection[str], step: int, copied: int) -> Estate:
    """A topic of which so many records are mirrored, from target offset 100 on."""
    estate = Estate()
    estate["A"].create_topic("orders")
    estate["A"].log("orders").append(messages("orders", range(RECORDS)), batch_size=4)
    copy = _copy(settings)
    estate["B"].create_topic(copy, first_offset=100)
    growing = _Growing(estate, copy, grow_after, step)
    growing.mirror_to(copied)
    estate.clusters["B"] = growing  # type: ignore[assignment]
    return estate


def _copy(settings: FlowSettings) -> str:
    return "orders" if settings is FLOWS["same-name"] else "A.orders"


def _translated(estate: Estate, settings: FlowSettings, offset: int) -> Outcome:
    copy = _copy(settings)
    places = TopicPartition("orders", 0), TopicPartition(copy, 0)
    work = PartitionWork(*places, (offset,), is_remote_topic=copy != "orders")
    [found] = translate_partitions(settings, estate["A"], estate["B"], [work])
    return found.translation.outcome


def _is_wrong(offset: int, answer: Translated | Row) -> bool:
    assert answer.target_offset is not None
    again = offset - (answer.target_offset - 100)
    return again < 0 or answer.reread_bound is None or again > answer.reread_bound


@pytest.mark.parametrize("settings", FLOWS.values(), ids=FLOWS)
@pytest.mark.parametrize("step", [1, RECORDS])
@pytest.mark.parametrize("grow_after", ["log_ranges", "first_at_times", "read"])
@pytest.mark.parametrize("copied", [0, 11, 29])
def test_the_bound_holds_though_the_target_grows(
    settings: FlowSettings, step: int, grow_after: str, copied: int
) -> None:
    """An answer that was the log's end when it was asked for is not exact if copies of what the
    group has read come behind it, and its bound counts them; and no record is skipped."""
    wrong = []
    for offset in range(RECORDS + 1):
        estate = _estate(settings, [grow_after], step, copied)
        outcome = _translated(estate, settings, offset)
        assert isinstance(outcome, Translated | Skipped)
        if isinstance(outcome, Translated) and _is_wrong(offset, outcome):
            wrong.append((offset, outcome))
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("grow_after", ["log_ranges", "first_at_times", "read"])
def test_the_rows_of_a_cycle_hold_though_the_target_grows(grow_after: str) -> None:
    """The same where it grows as soon as the cycle looks at the logs."""
    settings = FLOWS["renamed"]
    wrong = []
    for offset in range(RECORDS + 1):
        estate = _estate(settings, [grow_after], 5, 11)
        estate.commit("billing", "orders", offset)
        (row,) = estate.sync(settings)
        if _is_wrong(offset, row):
            wrong.append((offset, row))
    assert not wrong


@pytest.mark.parametrize("settings", FLOWS.values(), ids=FLOWS)
def test_the_next_cycle_ends_a_re_read_that_the_growing_target_left(
    settings: FlowSettings,
) -> None:
    """What is remembered of a caught-up group never keeps it before a record that it has read,
    once that record is mirrored."""
    estate = _estate(settings, ["read"], 1, RECORDS - 1)
    estate.commit("billing", "orders", RECORDS)
    carry_over = CarryOver()
    for _ in range(3):
        (row,) = cycle(settings, estate["A"], estate["B"], carry_over=carry_over)
    assert (row.target_offset, row.precision) == (100 + RECORDS, Precision.EXACT)
