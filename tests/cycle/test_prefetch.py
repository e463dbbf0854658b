"""How often a partition waits for the network, one time after the other."""

from collections.abc import Iterator

import pytest

from tests.memory_flows import after_each, flow
from tests.replication_model import SOURCE
from tests.rule.test_translate import MemoryMirror, resumes
from tsoffset.cycle import partition as cycle_partition
from tsoffset.cycle.rounds import translate_partitions, translate_with_cache
from tsoffset.cycle.work import PartitionWork
from tsoffset.model import Precision, TopicPartition, Translated
from tsoffset.rule.inquiry import Inquiry, Question

TARGET = TopicPartition(f"A.{SOURCE.topic}", SOURCE.partition)


def work(*offsets: int) -> PartitionWork:
    return PartitionWork(SOURCE, TARGET, offsets, is_remote_topic=True)


@pytest.mark.parametrize("begins", [0, 95], ids=["whole", "begun later"])
@pytest.mark.parametrize("positions", [1, 2, 8, 60])
def test_few_waits_however_many_positions(begins, positions):
    """The ends of both logs, the lowest position's copy and where the mirror begins are asked for
    while the logs' ranges still are; the images of the others as soon as two pairs tell where."""
    mirrored = MemoryMirror().write(range(1_000), batch_size=10).copy(start=begins)
    offsets = sorted({1_000, *(110 + 800 * n // positions for n in range(positions - 1))})
    clusters = mirrored.source_cluster, mirrored.target_cluster
    for position in translate_partitions(flow(), *clusters, [work(*offsets)]):
        outcome = position.translation.outcome
        assert isinstance(outcome, Translated)
        assert (outcome.target_offset, outcome.reread_bound) == (position.offset - begins, 0)
    cost = translate_with_cache(flow(), *clusters, [work(*offsets)]).cost
    assert cost.rounds <= {1: 3, 2: 4, 8: 6}.get(positions, 7)


@pytest.mark.parametrize("committed", [0, 3, 120, 999, 1_000, 1_001])
def test_what_is_asked_before_its_turn_changes_no_answer(committed):
    """Whoever listens is told of each question of a translator, so nothing is foreseen then."""
    mirrored = MemoryMirror().write(range(1_000), batch_size=10).copy(start=95)
    mirrored.source.delete_records(5)
    clusters = mirrored.source_cluster, mirrored.target_cluster
    [foreseen] = translate_partitions(flow(), *clusters, [work(committed)])
    [listened] = translate_partitions(flow(), *clusters, [work(committed)], observe=lambda *_: None)
    assert foreseen == listened


def test_the_ends_are_asked_for_in_their_order():
    """What is on the target by the time its end is told was on the source before."""
    told: list[str] = []

    mirrored = MemoryMirror().write(range(50)).copy()
    clusters = mirrored.source_cluster, mirrored.target_cluster
    for one in clusters:
        after_each(one, "log_ranges", lambda _, alias=one.alias: told.append(alias))
    [position] = translate_partitions(flow(), *clusters, [work(50)])
    assert told == ["B", "A"]
    outcome = position.translation.outcome
    assert isinstance(outcome, Translated)
    assert (outcome.target_offset, outcome.precision) == (50, Precision.EXACT)


def test_a_bug_in_a_search_for_the_partition_costs_no_answer(monkeypatch):
    """What is sought for all source offsets together only saves them questions."""

    def broken(_: Inquiry) -> Iterator[Question]:
        raise ZeroDivisionError

    monkeypatch.setattr(cycle_partition, "prove_ends", broken)
    outcomes = MemoryMirror().write(range(100)).copy().outcomes(10, 50, 90)
    exact = Precision.EXACT
    assert list(map(resumes, outcomes)) == [(10, exact, 0), (50, exact, 0), (90, exact, 0)]
