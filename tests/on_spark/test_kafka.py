"""A cycle on Spark over real brokers, through the adapter that users get."""

from itertools import product
from pathlib import Path

import pytest

from tests.configured import nowhere, properties_file
from tests.hostile_broker import FETCH, LIST_OFFSETS, Brokers
from tests.kafka.test_answers import under_way
from tests.memory_flows import Estate
from tests.producing import Contents, numbered
from tests.spark_worlds import spread
from tsoffset.config.loading import Configuration
from tsoffset.group_sync.state import FlowCarryOver
from tsoffset.model import FailureKind, OutcomeKind, Precision, Side
from tsoffset.spark.dataflow import run_cycle
from tsoffset.spark.flow import FlowTask

pytestmark = [pytest.mark.integration, pytest.mark.spark]

PARTITIONS, RECORDS, NOT_COPIED, GROUPS = 4, 60, 15, 5


def configuration(folder: Path, source: str, target: str, groups: str, *more: str) -> Configuration:
    lines = f"groups = {groups}.*", *more
    return Configuration.read(properties_file(folder, source, target, *lines))


def mirrored(source: Contents, target: Contents, topic: str, *, batch: int, copied_in: int) -> None:
    """A topic and its copy, which lacks the first records."""
    source.create_topic(topic, PARTITIONS)
    target.create_topic(f"A.{topic}", PARTITIONS)
    records = numbered(RECORDS)
    for partition in range(PARTITIONS):
        source.produce(topic, records, partition=partition, batch=batch)
        target.produce(f"A.{topic}", records[NOT_COPIED:], partition=partition, batch=copied_in)


def test_groups_resume_on_the_target_where_they_were(
    shape, session, source, target, unique, tmp_path
):
    """Every group stands on the copy of its next record afterwards, or at the end of the copy
    where it had read all; the next cycle leaves them there."""
    topic, prefix = unique("orders"), unique("billing")
    mirrored(source, target, topic, batch=7, copied_in=11)
    commits = {
        f"{prefix}-{number}": {
            (topic, partition): (RECORDS - 9 * number - partition, f"note {number}")
            for partition in range(PARTITIONS)
        }
        for number in range(GROUPS)
    }
    for group, offsets in commits.items():
        source.commit_offsets(group, offsets)
    task = FlowTask(configuration(tmp_path, source.bootstrap, target.bootstrap, prefix), "A->B")
    carry_over = FlowCarryOver()
    result = run_cycle(session, task, commit=True, carry_over=carry_over)
    assert {row.outcome for row in result.rows} == {OutcomeKind.COMMITTED}
    assert {row.precision for row in result.rows} == {Precision.EXACT}
    assert result.groups == GROUPS
    for group, offsets in commits.items():
        assert target.committed_offsets(group) == {
            (f"A.{topic}", partition): (offset - NOT_COPIED, metadata)
            for (_, partition), (offset, metadata) in offsets.items()
        }
    again = run_cycle(session, task, commit=True, carry_over=carry_over)
    assert {row.outcome for row in again.rows} == {OutcomeKind.UNCHANGED}


def test_tasks_together_ask_for_no_more_at_once_than_the_user_allows(
    session, tmp_path, monkeypatch
):
    """`source.fetch.max.requests.in.flight` holds for all tasks, as the source's brokers see it."""
    spread(monkeypatch)
    estate = Estate()
    estate.write("orders", RECORDS, partitions=PARTITIONS)
    estate.mirror("orders")
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
        given = configuration(tmp_path, address, there, "polite", limit)
        result = run_cycle(session, FlowTask(given, "A->B"), commit=True)
    assert {row.precision for row in result.rows} == {Precision.EXACT}
    assert 1 <= max(seen) <= 3
    # Beside these only topics are described for the translation, and clients say hello.
    asked = source.requests[FETCH] + source.requests[LIST_OFFSETS]
    sent = result.spent.traffic[Side.SOURCE].requests
    assert asked < result.cost.source_requests < sent <= source.requests.total()


def test_cluster_that_is_away_is_one_failed_row(session, source, unique, tmp_path):
    away = nowhere()
    task = FlowTask(configuration(tmp_path, source.bootstrap, away, unique("none")), "A->B")
    result = run_cycle(session, task, commit=True)
    assert result.unreachable
    (row,) = result.rows
    assert (row.group, row.reason) == (None, FailureKind.UNREACHABLE)
    assert away in str(row.message)
