"""How much work goes into how many tasks."""

from hypothesis import given
from hypothesis import strategies as st

from tsoffset.cycle.source_commits import GroupWork
from tsoffset.model import TopicPartition
from tsoffset.spark import packing

WORK = st.lists(st.integers(1, 1_000), min_size=1, max_size=60)


def partitions(*counts: int) -> dict[TopicPartition, int]:
    return {TopicPartition("orders", number): count for number, count in enumerate(counts)}


@given(WORK, st.integers(1, 10))
def test_cut_keeps_every_item_and_its_order(work: list[int], pieces: int) -> None:
    """Nothing is lost, doubled or moved, and no piece is empty."""
    found = packing.cut(list(enumerate(work)), pieces, lambda item: item[1])
    assert [item for piece in found for item in piece] == list(enumerate(work))
    assert all(found)
    assert len(found) <= pieces


@given(WORK, st.integers(1, 10))
def test_cut_is_even_but_for_one_item(work: list[int], pieces: int) -> None:
    """No piece has more than its share and the largest item."""
    found = packing.cut(work, pieces, lambda item: item)
    assert max(map(sum, found)) <= sum(work) / pieces + max(work)


def test_a_small_cycle_is_one_task() -> None:
    """Ten groups of which nothing is known, or of which little came last time, take one task."""
    assert packing.in_one_task(groups=10, limit=8, rows_before=None)
    assert packing.in_one_task(groups=5_000, limit=8, rows_before=packing.ROWS_IN_ONE_TASK)
    assert not packing.in_one_task(groups=10, limit=8, rows_before=packing.ROWS_IN_ONE_TASK + 1)
    assert not packing.in_one_task(groups=5_000, limit=8, rows_before=None)
    assert packing.in_one_task(groups=5_000, limit=1, rows_before=None)


def test_groups_are_packed_by_coordinator() -> None:
    """A task's groups have few coordinators; one that nobody knows is no obstacle."""
    groups = [GroupWork(f"g{number:03}") for number in range(200)]
    coordinators = {work.group: number % 4 for number, work in enumerate(groups)}
    tasks = packing.group_tasks(groups, coordinators, 4)
    assert [{coordinators[work.group] for work in task} for task in tasks] == [{0}, {1}, {2}, {3}]
    tasks = packing.group_tasks(groups, {"g007": None}, 4)
    assert sorted(work.group for task in tasks for work in task) == [w.group for w in groups]


def test_groups_take_no_more_tasks_than_pay() -> None:
    """The limit holds, and few groups take fewer tasks."""
    few = [GroupWork(f"g{number}") for number in range(packing.GROUPS_A_TASK + 1)]
    assert len(packing.group_tasks(few, {}, 16)) == 2
    assert len(packing.group_tasks(few, {}, 1)) == 1
    assert packing.group_tasks([], {}, 16) == []


def test_one_heavy_partition_has_a_task_for_itself() -> None:
    """Work counts, not the number of partitions."""
    tasks = packing.partition_tasks(partitions(9_000, *[98] * 90), {}, 2)
    assert [len(task) for task in tasks] == [1, 90]


def test_partitions_are_packed_by_leader() -> None:
    """A task's partitions have few leaders."""
    work = partitions(*[1_000] * 8)
    leaders = {partition: partition.partition % 2 for partition in work}
    tasks = packing.partition_tasks(work, leaders, 2)
    assert [{leaders[partition] for partition in task} for task in tasks] == [{0}, {1}]


def test_few_positions_take_one_task() -> None:
    """A second task has to pay for itself."""
    assert len(packing.partition_tasks(partitions(1, 2, 3), {}, 8)) == 1
    assert packing.partition_tasks({}, {}, 8) == []
