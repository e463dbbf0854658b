"""Clusters with generated content: an estate of any size without a broker and almost without
memory, to measure the cycle itself.

All partitions of the topic share one log (and all their copies another one), and the groups'
committed offsets follow from their numbers. Commits are accepted and dropped.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from tsoffset.committed import CommittedColumns
from tsoffset.flow.settings import ClusterSettings
from tsoffset.model import (
    CommittedOffset,
    Failed,
    GroupListing,
    GroupListings,
    GroupType,
    Isolation,
    TopicPartition,
)
from tsoffset.records import Numbers
from tsoffset.testing.memory_cluster import MemoryCluster, Message, PartitionLog, mirror_partition
from tsoffset.testing.memory_cluster.faults import Verb
from tsoffset.testing.memory_cluster.groups import not_sent
from tsoffset.testing.memory_cluster.state import MemoryPartition

TOPIC = "orders"
REMOTE = "A.orders"
RECORDS = 2_000
SHIFT = 200
# The client setting that carries the sizes to workers; nothing else reads it.
SIZES = "client.id"
# Its multiples are spread evenly.
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Sizes:
    """An estate: groups, partitions, and how many of these each group reads. With `settled` the
    target's groups have the right offsets."""

    groups: int
    partitions: int
    each: int
    settled: bool

    def text(self) -> str:
        """For a configuration."""
        return f"{self.groups} {self.partitions} {self.each} {int(self.settled)}"

    @classmethod
    def of(cls, text: str) -> "Sizes":
        """From a configuration."""
        groups, partitions, each, settled = map(int, text.split())
        return cls(groups, partitions, each, bool(settled))

    def offsets(self, groups: Sequence[int]) -> tuple[Numbers, Numbers]:
        """Committed offsets: `each` partitions of every group and their offsets, group by group;
        half of the group-partitions are read to the end."""
        commit = np.arange(self.each) + np.array(groups, np.int64)[:, np.newaxis] * self.each
        chance = (commit.ravel().astype(np.uint64) * _ODD) >> np.uint64(33)
        place = SHIFT + (chance >> np.uint64(1)) % np.uint64(RECORDS - SHIFT)
        offset = np.where(chance & np.uint64(1), np.uint64(RECORDS), place)
        return commit.ravel() % self.partitions, offset.astype(np.int64)


class GeneratedCluster(MemoryCluster):
    """Source or target of such an estate."""

    def __init__(self, alias: str, sizes: Sizes, log: PartitionLog) -> None:
        super().__init__(alias)
        self._sizes = sizes
        self._source = alias == "A"
        self._name = TOPIC if self._source else REMOTE
        self.create_topic(self._name, 1)
        partitions = self._topics[self._name].partitions
        partitions[:] = [MemoryPartition(log, leader=0)] * sizes.partitions

    def groups(self) -> GroupListings:
        if not self._source and not self._sizes.settled:
            return GroupListings({})
        names = [f"group-{number:06}" for number in range(self._sizes.groups)]
        return GroupListings({n: GroupListing(n, GroupType.CLASSIC, "Empty", "", 0) for n in names})

    def committed(self, groups: Collection[str], **_: object) -> CommittedColumns:
        """Derived from the groups' numbers."""
        there = self._source or self._sizes.settled
        numbers = [int(name[-6:]) for name in groups] if there else []
        partition, offset = self._sizes.offsets(numbers)
        group = np.repeat(np.arange(len(numbers), dtype=np.int32), self._sizes.each)
        return CommittedColumns(
            tuple(groups),
            (self._name,),
            group,
            np.zeros_like(group),
            partition.astype(np.int32),
            offset if self._source else offset - SHIFT,
            np.full_like(group, -1),
            {},
            {},
            {},
        )

    def commit(
        self,
        commits: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
        *,
        may_send: Callable[[str], bool] | None = None,
        **_: object,
    ) -> Mapping[str, Mapping[TopicPartition, Failed | None]]:
        """Accept right offsets, and raise for wrong ones."""
        answers: dict[str, Mapping[TopicPartition, Failed | None]] = {}
        for group, offsets in commits.items():
            sent = may_send is None or may_send(group)
            answers[group] = dict.fromkeys(offsets, None if sent else not_sent(group, self.alias))
            places = self._sizes.offsets([int(group[-6:])])
            true = dict(zip(*(column.tolist() for column in places), strict=True))
            for partition, commit in offsets.items():
                assert commit.offset == true[partition.partition] - SHIFT, f"{group} {partition}"
        return answers

    def _asked(
        self, verb: Verb, items: tuple[object, ...], isolation: Isolation | None = None
    ) -> None:
        """Record nothing: the list would grow with the estate."""


@cache
def _logs() -> Mapping[str, PartitionLog]:
    source, target = PartitionLog(), PartitionLog()
    source.append(
        (Message(1_000_000 + n, b"k%d" % n, b"v%d" % n) for n in range(RECORDS)), batch_size=50
    )
    source.delete_records(SHIFT)
    mirror_partition(source, target, batch_size=100)
    return {"A": source, "B": target}


def connect(settings: ClusterSettings) -> GeneratedCluster:
    """The `FlowTask.connect` of these clusters: each process generates its own."""
    sizes = Sizes.of(settings.client[SIZES])
    return GeneratedCluster(settings.alias, sizes, _logs()[settings.alias])
