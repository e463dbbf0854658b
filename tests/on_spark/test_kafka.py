"""A cycle on Spark through the adapter that users get."""

from itertools import product

import pytest

from tests.configured import properties_file
from tests.hostile_broker import FETCH, LIST_OFFSETS, Brokers
from tests.kafka.test_answers import under_way
from tests.memory_flows import mirrored_estate
from tests.spark_worlds import spread
from tsoffset.config.loading import Configuration
from tsoffset.group_sync.flow_cycle import FlowTask
from tsoffset.model import Precision, Side
from tsoffset.spark.dataflow import run_cycle

pytestmark = pytest.mark.spark

PARTITIONS, RECORDS = 4, 60


def test_tasks_together_ask_for_no_more_at_once_than_the_user_allows(
    session, tmp_path, monkeypatch
):
    """`source.fetch.max.requests.in.flight` holds for all tasks, as the source's brokers see it."""
    spread(monkeypatch)
    estate = mirrored_estate(RECORDS, partitions=PARTITIONS)
    for number, partition in product(range(RECORDS // 2), range(PARTITIONS)):
        at = RECORDS - 2 * number
        estate.commit(f"polite-{number}", "orders", at, partition=partition)
    source, target = Brokers(estate["A"]), Brokers(estate["B"])
    now: dict[int, int] = {}
    seen = []

    def count(asked):
        """Those of each connection that wait for an answer, this one among them."""
        waiting = now[asked.client.fileno()] = under_way(asked)
        seen.append(sum(now.values()))
        now[asked.client.fileno()] = waiting - 1
        return asked.frame()

    source.lies = [(None, FETCH, count)]
    with source.open() as address, target.open() as there:
        limit = "source.fetch.max.requests.in.flight = 3"
        given = Configuration.read(properties_file(tmp_path, address, there, limit))
        result = run_cycle(session, FlowTask(given, "A->B"), commit=True)
    assert {row.precision for row in result.rows} == {Precision.EXACT}
    assert 1 <= max(seen) <= 3
    # Beside these only topics are described for the translation, and clients say hello.
    asked = source.requests[FETCH] + source.requests[LIST_OFFSETS]
    sent = result.spent.traffic[Side.SOURCE].requests
    assert asked < result.cost.source_requests < sent <= source.requests.total()
