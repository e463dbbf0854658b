"""How much work goes into how many tasks (pure)."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from tsoffset.cycle.source_commits import GroupWork
from tsoffset.model import TopicPartition

T = TypeVar("T")

# Measured on two cores: below this many rows one task is done before a second one, with the
# shuffles between, has paid for itself (about half a second).
ROWS_IN_ONE_TASK = 2_000
POSITIONS_A_TASK = 250
GROUPS_A_TASK = 25
# What a group is taken to have while nothing is known of it.
_ROWS_A_GROUP = 20


def in_one_task(groups: int, limit: int, rows_before: int | None) -> bool:
    """True where the whole cycle is best run in one task.

    `limit` is the most tasks there may be, `rows_before` what the last cycle came to.
    """
    expected = groups * _ROWS_A_GROUP if rows_before is None else rows_before
    return limit == 1 or expected <= ROWS_IN_ONE_TASK


def group_tasks(
    groups: Sequence[GroupWork], coordinators: Mapping[str, int | None], limit: int
) -> list[list[GroupWork]]:
    """Groups by task: as many tasks as pay, groups of one coordinator side by side."""

    def place(work: GroupWork) -> tuple[int, str]:
        coordinator = coordinators.get(work.group)
        return (-1 if coordinator is None else coordinator, work.group)

    tasks = max(1, min(limit, -(-len(groups) // GROUPS_A_TASK)))
    return cut(sorted(groups, key=place), tasks, lambda _: 1)


def partition_tasks(
    distinct_offsets: Mapping[TopicPartition, int],
    leaders: Mapping[TopicPartition, int | None],
    limit: int,
) -> list[list[TopicPartition]]:
    """Partitions by task: equal work, partitions of one leader side by side."""

    def place(partition: TopicPartition) -> tuple[int, TopicPartition]:
        leader = leaders.get(partition)
        return (-1 if leader is None else leader, partition)

    positions = sum(distinct_offsets.values())
    tasks = max(1, min(limit, -(-positions // POSITIONS_A_TASK)))
    # A partition costs a few questions of its own, whatever its positions.
    return cut(sorted(distinct_offsets, key=place), tasks, lambda p: distinct_offsets[p] + 2)


def cut(items: Sequence[T], pieces: int, work: Callable[[T], int]) -> list[list[T]]:
    """`items` in their order, cut into at most `pieces` of about equal work; none is empty."""
    ends = [0]
    done = 0
    for item in items:
        done += work(item)
        ends.append(done)
    if not done:
        return []
    # Item i goes to the piece in which the middle of its work lies.
    numbers = [min(pieces - 1, (a + b) * pieces // (2 * done)) for a, b in pairwise(ends)]
    result: list[list[T]] = [[] for _ in range(pieces)]
    for item, number in zip(items, numbers, strict=True):
        result[number].append(item)
    return [piece for piece in result if piece]
