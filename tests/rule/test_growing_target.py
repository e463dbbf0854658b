"""The mirror goes on while a position is translated: the target's log grows between questions."""

import pytest

from tests.memory_flows import Estate, after_each, flow, identity_flow, messages
from tests.replication_model import SOURCE
from tests.translating import translated_of
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.cache import CachedTables
from tsoffset.model import Outcome, Precision, Row, Skipped, TopicPartition, Translated

RECORDS = 30
FLOWS = {"renamed": flow(), "same-name": identity_flow()}


def _estate(settings: FlowSettings, grow_after: str, step: int, copied: int) -> Estate:
    """A topic of which so many records are mirrored, from target offset 100 on. After each call of
    this kind the target's mirror copies so many more."""
    estate = Estate()
    estate["A"].create_topic("orders")
    estate["A"].log("orders").append(messages("orders", range(RECORDS)), batch_size=4)
    copy = _copy(settings)

    def grow(_: object) -> None:
        there = estate["B"].log(copy).end - 100
        estate.mirror("orders", copy, up_to=min(there + step, RECORDS))

    estate.mirror("orders", copy, up_to=copied, first_offset=100)
    after_each(estate["B"], grow_after, grow)
    return estate


def _copy(settings: FlowSettings) -> str:
    return "orders" if settings is FLOWS["same-name"] else "A.orders"


def _translated(estate: Estate, settings: FlowSettings, offset: int) -> Outcome:
    copy = TopicPartition(_copy(settings), 0)
    clusters = estate["A"], estate["B"]
    found = translated_of(*clusters, offset, copy=copy, is_remote_topic=copy != SOURCE)
    return found[offset].outcome


def _is_wrong(offset: int, answer: Translated | Row) -> bool:
    assert answer.target_offset is not None
    again = offset - (answer.target_offset - 100)
    return again < 0 or answer.reread_bound is None or again > answer.reread_bound


@pytest.mark.parametrize("settings", FLOWS.values(), ids=FLOWS)
@pytest.mark.parametrize("step", [1, RECORDS])
@pytest.mark.parametrize("grow_after", ["log_ranges", "first_at_times", "read"])
@pytest.mark.parametrize("copied", [0, 11, 29])
def test_the_bound_holds_though_the_target_grows(settings, step, grow_after, copied):
    """An answer that was the log's end when it was asked for is not exact if copies of what the
    group has read come behind it, and its bound counts them; and no record is skipped."""
    wrong = []
    # Around what is copied at first, and around the end.
    offsets = {0, 5, copied - 1, copied, copied + 1, 20, RECORDS - 1, RECORDS} - {-1}
    for offset in sorted(offsets):
        estate = _estate(settings, grow_after, step, copied)
        outcome = _translated(estate, settings, offset)
        assert isinstance(outcome, Translated | Skipped)
        if isinstance(outcome, Translated) and _is_wrong(offset, outcome):
            wrong.append((offset, outcome))
    assert not wrong


@pytest.mark.parametrize("settings", FLOWS.values(), ids=FLOWS)
def test_the_next_cycle_ends_a_re_read_that_the_growing_target_left(settings):
    """What is remembered of a caught-up group never keeps it before a record that it has read,
    once that record is mirrored."""
    estate = _estate(settings, "read", 1, RECORDS - 1)
    estate.commit("billing", "orders", RECORDS)
    cache = CachedTables()
    for _ in range(3):
        (row,) = estate.sync(settings, cache=cache)
    assert (row.target_offset, row.precision) == (100 + RECORDS, Precision.EXACT)
