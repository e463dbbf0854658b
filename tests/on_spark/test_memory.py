"""What a flow remembers between cycles on Spark, and between processes by its state file.

Each rule is checked in both shapes of a cycle: all in one task, and spread over many.
"""

from dataclasses import replace

import pytest

from tests import stored_clusters as shared
from tests.spark_worlds import PARTITIONS, RECORDS, World, by_place, mirrored
from tsoffset.group_sync.state import FlowCarryOver, StateFile
from tsoffset.model import CommittedOffset, TopicPartition
from tsoffset.spark.flow import CycleResult
from tsoffset.testing.memory_cluster import MemoryCluster, Message

pytestmark = pytest.mark.spark


def looked(world: World) -> int:
    """Fetches and time lookups so far."""
    return sum(
        len(world.asked(alias, verb)) for alias in "AB" for verb in ("read", "first_at_times")
    )


def remembered_offsets(carry_over: FlowCarryOver) -> set[tuple[int, int]]:
    known = carry_over.pairs.select("partition", "known_offset").drop_nulls().rows(named=True)
    return {(one["partition"], one["known_offset"]) for one in known}


def committed_offsets(result: CycleResult) -> set[tuple[int | None, int | None]]:
    return {(row.partition, row.source_offset) for row in result.rows}


def test_second_cycle_is_answered_from_carry_over(shape, world):
    """The driver's table goes to the tasks that translate its partitions: nothing is fetched or
    looked up, the rows say what they say without carry-over, and the cost says so."""
    carry_over = FlowCarryOver()
    first = world.cycle(carry_over=carry_over)
    assert first.cost.recalled == 0
    assert first.cost.positions == first.positions
    assert first.cost.source_fetches == len(world.asked("A", "read"))
    assert first.cost.target_fetches == len(world.asked("B", "read"))
    lookups = [len(world.asked(alias, "first_at_times")) for alias in "AB"]
    assert first.cost.lookups == sum(lookups) > 0
    assert first.cost.bytes_read > 0
    assert remembered_offsets(carry_over) == committed_offsets(first)
    before = looked(world)
    second = world.cycle(carry_over=carry_over)
    assert looked(world) == before
    assert second.cost == replace(
        first.cost,
        recalled=first.positions,
        source_fetches=0,
        target_fetches=0,
        lookups=0,
        bytes_read=0,
        source_bytes_read=0,
        rounds=0,
        commit_gap_seconds=0.0,
    )
    assert first.cost.rounds > 0
    assert by_place(second) == by_place(world.cycle())
    assert remembered_offsets(carry_over) == committed_offsets(second)


def test_state_of_other_settings_is_dropped_with_a_warning(world):
    """What was proven by other words is no proof by these; of the same it is, again."""
    carry_over = FlowCarryOver()
    world.cycle(carry_over=carry_over)
    before = looked(world)
    result = world.cycle(world.task(translation_match="timestamp,value"), carry_over=carry_over)
    assert looked(world) > before
    [warning] = result.warnings
    assert "other clusters or settings" in warning
    result = world.cycle(world.task(translation_match="value, timestamp"), carry_over=carry_over)
    assert result.warnings == ()
    assert result.cost.recalled == result.positions


def test_state_of_another_cluster_is_dropped_with_a_warning(world):
    """The addresses are the same, but the cluster has another id, so its groups are listed
    again."""
    carry_over = FlowCarryOver()
    world.cycle(carry_over=carry_over)
    other = MemoryCluster("another")
    other.create_topic("orders", PARTITIONS)
    other.log("orders").append([Message(5_000 + n, b"x%d" % n, b"") for n in range(RECORDS)])
    other.group("newcomer").offsets[TopicPartition("orders", 0)] = CommittedOffset(7)
    shared.store(world.folder, other)
    (world.folder / "another.pickle").rename(world.folder / "A.pickle")
    result = world.cycle(carry_over=carry_over)
    [warning] = result.warnings
    assert "other clusters or settings" in warning
    assert {row.group for row in result.rows} == {"newcomer"}


def test_state_holds_nothing_of_what_records_hold(world, tmp_path):
    """Neither keys nor values, nor commits' metadata, nor a setting: names, offsets, times."""
    carry_over = FlowCarryOver()
    source, target = mirrored()
    source.log("orders", 0).append([Message(9_000, b"canary-key", b"canary-value")])
    target.log("A.orders", 0).append([Message(9_000, b"canary-key", b"canary-value")])
    world.store(source, target)
    world.cycle(carry_over=carry_over)
    file = StateFile(tmp_path / "state", "A->B")
    file.save(carry_over)
    content = file.path.read_bytes()
    assert b"orders" in content
    for secret in (b"canary", b"note ", str(world.folder).encode(), b":9092"):
        assert secret not in content
