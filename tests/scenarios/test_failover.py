"""A consumer that goes on where its group was synced to: judged by what it really reads."""

from collections.abc import Mapping

import pytest

from tests.scenarios.estate import Estate
from tests.scenarios.flows import read_on
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
from tsoffset.model import OutcomeKind

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
# Where groups stand between the log's start and its end.
DEPTHS = (0.0, 0.001, 0.1, 0.25, 0.333, 0.5, 0.618, 0.75, 0.9, 0.98, 0.999, 1.0)


@pytest.fixture(scope="module")
def committed(estate: Estate) -> Mapping[tuple[str, str, str, int], int]:
    """A sync of one group per depth, each with a commit for all partitions: what was
    committed on the source, by flow, group, topic and partition."""
    found: dict[tuple[str, str, str, int], int] = {}
    for number, depth in enumerate(DEPTHS):
        for flow in ("A->B", "X->Y"):
            group = f"failover-{flow[0]}-{number}"
            offsets: dict[tuple[str, int], int] = {}
            for topic, partition in (place[1:] for place in PLACES if place[0] == flow):
                start, end = estate.contents[flow[0]].log_range(topic, partition)
                offsets[topic, partition] = start + round(depth * (end - start))
                found[flow, group, topic, partition] = offsets[topic, partition]
            estate.contents[flow[0]].commit_offsets(group, offsets)
    for flow in ("A->B", "X->Y"):
        rows = estate.sync(flow, f"failover-{flow[0]}-.*")
        assert all(row.outcome is OutcomeKind.COMMITTED for row in rows.all), rows.all
    return found


@pytest.mark.parametrize(("flow", "topic", "partition"), PLACES)
def test_consumer_gets_exactly_what_was_not_processed(
    estate: Estate,
    committed: Mapping[tuple[str, str, str, int], int],
    flow: str,
    topic: str,
    partition: int,
) -> None:
    """On the target a group's consumer gets the records from the source's commit on, all of
    them and no other: 0 skipped, 0 re-read."""
    settings = estate.flow(flow)
    source = estate.contents[settings.source.alias].read(
        topic, partition, isolation=settings.isolation
    )
    place = (estate.remote(flow, topic), partition)
    for number in range(len(DEPTHS)):
        group = f"failover-{flow[0]}-{number}"
        offset = committed[flow, group, topic, partition]
        got = read_on(estate.contents[settings.target.alias], group, place)
        not_processed = [record.value for record in source if record.offset >= offset]
        assert [record.value for record in got] == not_processed, (group, offset)


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
    estate: Estate, flow: str, topic: str, partition: int, step: int
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
