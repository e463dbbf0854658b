"""What a flow remembers between cycles on Spark, and between processes by its state file.

Each rule is checked in both shapes of a cycle: all in one task, and spread over many.
"""

from dataclasses import replace

import pytest

from tests import stored_clusters as shared
from tests.spark_worlds import PARTITIONS, RECORDS, SparkWorld, by_place, mirrored
from tsoffset.group_sync.flow_cycle import CycleResult
from tsoffset.group_sync.state import FlowCache, StateFile
from tsoffset.model import CommittedOffset, TopicPartition
from tsoffset.testing.memory_cluster import MemoryCluster, Message

pytestmark = pytest.mark.spark


def looked(world: SparkWorld) -> int:
    """Fetches and time lookups so far."""
    return sum(
        len(world.asked(alias, verb)) for alias in "AB" for verb in ("read", "first_at_times")
    )


def remembered_offsets(cache: FlowCache) -> set[tuple[int, int]]:
    known = cache.pairs.select("partition", "known_offset").drop_nulls().rows(named=True)
    return {(one["partition"], one["known_offset"]) for one in known}


def committed_offsets(result: CycleResult) -> set[tuple[int | None, int | None]]:
    return {(row.partition, row.source_offset) for row in result.rows}


def test_second_cycle_is_answered_from_the_cache(shape, world):
    """The driver's table goes to the tasks that translate its partitions: nothing is fetched or
    looked up, the rows say what they say without the cache, and the cost says so."""
    cache = FlowCache()
    first = world.cycle(cache=cache)
    assert first.cost.recalled == 0
    assert first.cost.positions == first.positions
    assert first.cost.source_fetches == len(world.asked("A", "read"))
    assert first.cost.target_fetches == len(world.asked("B", "read"))
    lookups = [len(world.asked(alias, "first_at_times")) for alias in "AB"]
    assert first.cost.lookups == sum(lookups) > 0
    assert first.cost.bytes_read > 0
    assert remembered_offsets(cache) == committed_offsets(first)
    before = looked(world)
    second = world.cycle(cache=cache)
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
    assert remembered_offsets(cache) == committed_offsets(second)


def test_state_of_other_settings_is_dropped_with_a_warning(world):
    """What was proven by other words is no proof by these; of the same it is, again."""
    cache = FlowCache()
    world.cycle(cache=cache)
    before = looked(world)
    result = world.cycle(world.task(translation_match="timestamp,value"), cache=cache)
    assert looked(world) > before
    [warning] = result.warnings
    assert "other clusters or settings" in warning
    result = world.cycle(world.task(translation_match="value, timestamp"), cache=cache)
    assert result.warnings == ()
    assert result.cost.recalled == result.positions


def test_state_of_another_cluster_is_dropped_with_a_warning(world):
    """The addresses are the same, but the cluster has another id, so its groups are listed
    again."""
    cache = FlowCache()
    world.cycle(cache=cache)
    other = MemoryCluster("another")
    other.create_topic("orders", PARTITIONS)
    other.log("orders").append([Message(5_000 + n, b"x%d" % n, b"") for n in range(RECORDS)])
    other.group("newcomer").offsets[TopicPartition("orders", 0)] = CommittedOffset(7)
    shared.store(world.folder, other)
    (world.folder / "another.pickle").rename(world.folder / "A.pickle")
    result = world.cycle(cache=cache)
    [warning] = result.warnings
    assert "other clusters or settings" in warning
    assert {row.group for row in result.rows} == {"newcomer"}


def test_state_holds_nothing_of_what_records_hold(world, tmp_path):
    """Neither keys nor values, nor commits' metadata, nor a setting: names, offsets, times."""
    cache = FlowCache()
    source, target = mirrored()
    source.log("orders", 0).append([Message(9_000, b"canary-key", b"canary-value")])
    target.log("A.orders", 0).append([Message(9_000, b"canary-key", b"canary-value")])
    world.store(source, target)
    world.cycle(cache=cache)
    file = StateFile(tmp_path / "state", "A->B")
    file.save(cache)
    content = file.path.read_bytes()
    assert b"orders" in content
    for secret in (b"canary", b"note ", str(world.folder).encode(), b":9092"):
        assert secret not in content
