"""How much work goes into how many tasks, and how many tasks into a job."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsoffset.model import TopicPartition
from tsoffset.spark import packing
from tsoffset.spark.packing import PAIRS_A_GROUP, PAIRS_IN_ONE_TASK, Size
from tsoffset.spark.steps import waves

WORK = st.lists(st.integers(1, 1_000), min_size=1, max_size=60)


def partitions(*counts: int) -> dict[TopicPartition, int]:
    return {TopicPartition("orders", number): count for number, count in enumerate(counts)}


@given(WORK, st.integers(1, 10))
def test_cut_keeps_every_item_and_its_order(work, pieces):
    found = packing.cut(list(enumerate(work)), pieces, lambda item: item[1])
    assert [item for piece in found for item in piece] == list(enumerate(work))
    assert all(found)
    assert len(found) <= pieces


@given(WORK, st.integers(1, 10))
def test_cut_is_even_but_for_one_item(work, pieces):
    found = packing.cut(work, pieces, lambda item: item)
    assert max(map(sum, found)) <= sum(work) / pieces + max(work)


@pytest.mark.parametrize(
    ("work", "slots", "tasks"),
    [(0, 8, 1), (10, 8, 1), (11, 8, 2), (1_000, 8, 10), (800, 8, 8), (801, 8, 9), (200, 1, 2)],
)
def test_tasks_of_a_size(work, slots, tasks):
    """As many as pay, up to those that run at once; more only where a task would hold too much."""
    assert Size(least=10, most=100).tasks(work, slots) == tasks


@given(st.integers(0, 10_000), st.integers(1, 20), st.integers(1, 50), st.integers(50, 500))
def test_a_task_is_bounded(work, slots, least, most):
    """However few run at once, none has more than the most; and there are no more than run at once
    unless that needs it."""
    tasks = Size(least, most).tasks(work, slots)
    assert tasks >= 1
    assert work <= tasks * most
    assert tasks <= slots or (tasks - 1) * most < work


@given(st.lists(st.integers(0, 100), min_size=1), st.integers(1, 250), st.integers(1, 5))
def test_waves_have_no_more_than_fits(sizes, most, most_tasks):
    """All tasks in their order, each once; no more of them than are allowed; a wave that holds too
    much is one task alone, and none is begun while there is room in the one before."""
    found = list(waves(sizes, most, most_tasks))
    assert [n for begin, end in found for n in range(begin, end)] == list(range(len(sizes)))
    for begin, end in found:
        assert 1 <= end - begin <= most_tasks
        assert end == begin + 1 or sum(sizes[begin:end]) <= most
        full = end == len(sizes) or end - begin == most_tasks
        assert full or sum(sizes[begin : end + 1]) > most


@pytest.mark.parametrize(
    ("groups", "pairs_before", "one"),
    [
        (10, None, True),
        (PAIRS_IN_ONE_TASK // PAIRS_A_GROUP, None, True),
        (PAIRS_IN_ONE_TASK // PAIRS_A_GROUP + 1, None, False),
        (10, PAIRS_IN_ONE_TASK, True),
        (10, PAIRS_IN_ONE_TASK + 1, False),
        (PAIRS_IN_ONE_TASK + 1, 1, False),
    ],
)
def test_a_small_cycle_is_one_task(groups, pairs_before, one):
    """Few groups of which nothing is known, or of which little came last time, take one task."""
    assert packing.fits(groups, pairs_before, PAIRS_IN_ONE_TASK) is one


def test_groups_are_packed_by_coordinator():
    """A task's groups have few coordinators; an unknown one is no obstacle."""
    coordinators = [number % 4 for number in range(200)]
    tasks = packing.group_tasks(coordinators, [999] * 200, 4)
    assert [{number % 4 for number in task} for task in tasks] == [{0}, {1}, {2}, {3}]
    tasks = packing.group_tasks([None, 3] * 100, [999] * 200, 4)
    assert sorted(number for task in tasks for number in task) == list(range(200))


def test_a_group_that_is_known_to_have_much_has_a_task_for_itself():
    """Group-partitions count, not groups; an unknown group counts as having some."""
    nobody = [None] * 101
    tasks = packing.group_tasks(nobody, [21_000, *[0] * 100], 2)
    assert tasks[0] == [0]
    assert len(tasks) == 2
    assert packing.group_tasks(nobody[1:], [0] * 100, 8) == [list(range(100))]


def test_groups_take_no_more_tasks_than_pay():
    most = 2 * packing.LOOK.least - 1
    assert len(packing.group_tasks([None], [most], 16)) == 1
    assert len(packing.group_tasks([None] * 1_000, [most] * 1_000, 16)) == 200
    assert packing.group_tasks([], [], 16) == []


def test_one_heavy_partition_has_a_task_for_itself():
    tasks = packing.partition_tasks(partitions(9_000, *[98] * 90), {}, 2)
    assert [len(task) for task in tasks] == [1, 90]


def test_partitions_are_packed_by_leader():
    work = partitions(*[1_000] * 8)
    leaders = {partition: partition.partition % 2 for partition in work}
    tasks = packing.partition_tasks(work, leaders, 2)
    assert [{leaders[partition] for partition in task} for task in tasks] == [{0}, {1}]


def test_few_positions_take_one_task():
    assert len(packing.partition_tasks(partitions(1, 2, 3), {}, 8)) == 1
    assert packing.partition_tasks({}, {}, 8) == []
