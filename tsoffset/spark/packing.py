"""Splitting the work of a step into tasks (pure).

The size of a task has an upper limit, even on few cores, because it bounds a worker's memory.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

from tsoffset.model import TopicPartition

T = TypeVar("T")


class Size(NamedTuple):
    """The size of a task of one step: less than `least` is not worth a task of its own, and `most`
    bounds a worker's memory."""

    least: int
    most: int

    def tasks(self, work: int, slots: int) -> int:
        """The number of tasks for this work, if `slots` tasks run at once."""
        return max(1, min(slots, -(-work // self.least)), -(-work // self.most))


# The limits for a cycle in one task, measured on two cores. Up to this many source offsets to
# translate, a second task costs more time than it saves.
POSITIONS_IN_ONE_TASK = 2_000
# Up to this many group-partitions, one task needs less processor time than a job for each step.
PAIRS_IN_ONE_TASK = 10_000
# The group-partitions that a group is assumed to have while their number is not known.
PAIRS_A_GROUP = 20

# LOOK and SETTLE count group-partitions, TRANSLATE counts source offsets.
LOOK = Size(least=5_000, most=50_000)
TRANSLATE = Size(least=250, most=20_000)
SETTLE = Size(least=500, most=20_000)

# Up to this size, which is that of one task, a cycle that only plans runs in the driver's process.
# Starting Spark and its first workers takes 13 to 22 s on two busy cores. The workers save time in
# proportion to the source offsets, most if the clusters are far away: with 100 ms round trips, four
# workers save 0.4 ms per offset over one (docs/performance.md, Workers), 7 s for 20,000.
POSITIONS_HERE = TRANSLATE.most
PAIRS_HERE = LOOK.most


def fits(groups: int, pairs_before: int | None, most: int) -> bool:
    """True if a cycle is expected to have at most `most` group-partitions. `pairs_before` is the
    number in the last cycle; None if it is not known."""
    expected = groups * PAIRS_A_GROUP if pairs_before is None else pairs_before
    return max(groups, expected) <= most


def group_tasks(
    coordinators: Sequence[int | None], pairs: Sequence[int], slots: int
) -> list[list[int]]:
    """The indices of the groups of each task. Tasks have about equal work, and groups of one
    coordinator are in as few tasks as possible. `pairs` is each group's number of cached
    group-partitions, 0 if none is cached."""

    def sort_key(number: int) -> tuple[int, int]:
        coordinator = coordinators[number]
        return (-1 if coordinator is None else coordinator, number)

    work = [(known or PAIRS_A_GROUP) + 1 for known in pairs]
    tasks = LOOK.tasks(sum(work), slots)
    return cut(sorted(range(len(work)), key=sort_key), tasks, work.__getitem__)


def partition_tasks(
    positions: Mapping[TopicPartition, int],
    leaders: Mapping[TopicPartition, int | None],
    slots: int,
) -> list[list[TopicPartition]]:
    """The partitions of each task. Tasks have about equal work, and partitions of one leader are in
    as few tasks as possible. `positions` is each partition's number of source offsets."""

    def sort_key(partition: TopicPartition) -> tuple[int, TopicPartition]:
        leader = leaders.get(partition)
        return (-1 if leader is None else leader, partition)

    tasks = TRANSLATE.tasks(sum(positions.values()), slots)
    # Each partition costs a few requests, however many offsets it has.
    return cut(sorted(positions, key=sort_key), tasks, lambda p: positions[p] + 2)


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
