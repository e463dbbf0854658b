"""A consumer that goes on where its group was synced to: judged by what it really reads."""

import pytest

from tests.scenarios.flows import Flows
from tests.scenarios.holdings import (
    COMPACTED,
    EQUAL_TIMES,
    FAN_IN,
    FROM_B,
    ORDERS,
    SAME,
    SAME_TRANSACTIONS,
    TRANSACTIONS,
)
from tests.scenarios.judging import Logs

pytestmark = pytest.mark.integration

PLACES = (
    ("A->B", ORDERS, 0),
    ("A->B", ORDERS, 1),
    ("A->B", EQUAL_TIMES, 0),
    ("A->B", COMPACTED, 0),
    ("A->B", TRANSACTIONS, 0),
    ("X->Y", SAME, 0),
    ("X->Y", SAME_TRANSACTIONS, 0),
)
# Flows that lead back to where topics came from.
BACK = ("B->A", "Y->X")


@pytest.mark.parametrize(("flow", "topic", "partition"), PLACES)
def test_consumer_gets_exactly_what_was_not_processed(
    estate: Flows, flow: str, topic: str, partition: int
) -> None:
    """On the target a group's consumer gets the records from the source's commit on, all of
    them and no other: 0 skipped, 0 re-read."""
    logs = Logs(estate, flow, topic, partition)
    assert not logs.not_mirrored
    logs.fail_over()


@pytest.mark.parametrize(
    ("flow", "topic", "partition", "step"),
    [
        ("A->B", ORDERS, 1, 10),
        ("A->B", EQUAL_TIMES, 0, 3),
        ("A->B", COMPACTED, 0, 1),
        ("A->B", TRANSACTIONS, 0, 1),
        ("B->C", FROM_B, 0, 10),
        ("X->Y", SAME, 0, 10),
        ("X->Y", SAME_TRANSACTIONS, 0, 1),
        ("X->Y", FAN_IN, 0, 10),
        ("W->Y", FAN_IN, 0, 10),
        # Back to where they came from.
        ("B->A", f"A.{ORDERS}", 0, 10),
        ("B->A", f"A.{EQUAL_TIMES}", 0, 13),
        ("B->A", f"A.{COMPACTED}", 0, 3),
        ("B->A", f"A.{TRANSACTIONS}", 0, 1),
        ("Y->X", SAME, 0, 10),
    ],
)
def test_every_position_of_a_log_is_exact(
    estate: Flows, flow: str, topic: str, partition: int, step: int
) -> None:
    """Whatever offset a group may have committed, holes, markers and aborted records
    included: from its translation on lie the records from that offset on, and it says so.
    What lies on one side only does not count: records of another source, and aborted ones
    that the mirror took for records.

    How two mirrors' batches lie among each other in one log is chance. A few positions there may
    be further from a copy than the budget reaches: they read again what they say.
    """
    logs = Logs(estate, flow, topic, partition)
    assert flow in BACK or not logs.not_mirrored
    positions = logs.every(step)
    inexact = logs.judged(positions).inexact
    assert len(inexact) <= (len(positions) // 10 if topic == FAN_IN else 0), inexact
