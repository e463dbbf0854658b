"""Committed offsets of many groups as columns, for hundreds of thousands of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Self

import numpy as np
import numpy.typing as npt

from tsoffset.model import CommittedOffset, Failed, GroupOffsets, TopicPartition

GroupPartition = tuple[str, TopicPartition]


@dataclass(frozen=True, slots=True, eq=False)
class CommittedColumns:
    """Committed offsets of groups, one entry each.

    `groups` are the requested groups, each once and in that order, including those without offsets.
    `topics` names each topic once. The columns are equally long: `group` and `topic` are indices
    into these two, `partition` is the partition's number, `offset` the next record to read (>= 0),
    and `leader_epoch` the epoch in the commit (-1: none). The entries of a group are contiguous.
    `metadata` and `lag` are by index of entry, for entries that have them. `failed` are groups that
    could not be read at all, and `failed_entries` single offsets; neither has an entry.
    """

    groups: Sequence[str]
    topics: Sequence[str]
    group: npt.NDArray[np.int32]
    topic: npt.NDArray[np.int32]
    partition: npt.NDArray[np.int32]
    offset: npt.NDArray[np.int64]
    leader_epoch: npt.NDArray[np.int32]
    metadata: Mapping[int, str]
    failed: Mapping[str, Failed]
    failed_entries: Mapping[GroupPartition, Failed]
    lag: Mapping[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offset)

    @classmethod
    def of(cls, answers: Mapping[str, GroupOffsets | Failed]) -> Self:
        """The columns of what `by_group` returns."""
        topics: dict[str, int] = {}
        entries: list[tuple[int, int, int, int, int]] = []
        metadata: dict[int, str] = {}
        lag: dict[int, int] = {}
        failed: dict[str, Failed] = {}
        failed_entries: dict[GroupPartition, Failed] = {}
        for index, (name, offsets) in enumerate(answers.items()):
            if isinstance(offsets, Failed):
                failed[name] = offsets
                continue
            for one, commit in offsets.items():
                if isinstance(commit, Failed):
                    failed_entries[name, one] = commit
                    continue
                if commit.metadata:
                    metadata[len(entries)] = commit.metadata
                if commit.lag is not None:
                    lag[len(entries)] = commit.lag
                number = topics.setdefault(one.topic, len(topics))
                epoch = -1 if commit.leader_epoch is None else commit.leader_epoch
                entries.append((index, number, one.partition, commit.offset, epoch))
        group, topic, partition, offset, epoch_of = (
            np.array(entries, np.int64).reshape(-1, 5).T.copy()
        )
        return cls(
            tuple(answers),
            tuple(topics),
            group.astype(np.int32),
            topic.astype(np.int32),
            partition.astype(np.int32),
            offset,
            epoch_of.astype(np.int32),
            metadata,
            failed,
            failed_entries,
            lag,
        )

    def by_group(self) -> dict[str, GroupOffsets | Failed]:
        """The same as values, for callers that need few: for every requested group its offsets
        (none for an unknown one), or the failure."""
        found: dict[str, dict[TopicPartition, CommittedOffset | Failed]] = {
            name: {} for name in self.groups
        }
        offsets = list(found.values())
        known: dict[tuple[int, int], TopicPartition] = {}
        columns = (self.group, self.topic, self.partition, self.offset, self.leader_epoch)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for number, (group, topic, partition, offset, epoch) in enumerate(rows):
            one = known.get((topic, partition))
            if one is None:
                one = known[topic, partition] = TopicPartition(self.topics[topic], partition)
            metadata, lag = self.metadata.get(number, ""), self.lag.get(number)
            leader_epoch = None if epoch < 0 else epoch
            offsets[group][one] = CommittedOffset(offset, metadata, lag, leader_epoch)
        for (name, one), failed in self.failed_entries.items():
            found[name][one] = failed
        return {**found, **self.failed}


def join_columns(parts: Sequence[CommittedColumns]) -> CommittedColumns:
    """Combines answers about the same groups, at least one; each has entries and failures of other
    groups."""
    topics: dict[str, int] = {}
    topic = []
    metadata: dict[int, str] = {}
    lag: dict[int, int] = {}
    size = 0
    for part in parts:
        indices = [topics.setdefault(name, len(topics)) for name in part.topics]
        topic.append(np.array(indices, np.int32)[part.topic])
        metadata.update((size + number, text) for number, text in part.metadata.items())
        lag.update((size + number, each) for number, each in part.lag.items())
        size += len(part)
    return CommittedColumns(
        parts[0].groups,
        tuple(topics),
        np.concatenate([part.group for part in parts]),
        np.concatenate(topic),
        np.concatenate([part.partition for part in parts]),
        np.concatenate([part.offset for part in parts]),
        np.concatenate([part.leader_epoch for part in parts]),
        metadata,
        dict(chain.from_iterable(part.failed.items() for part in parts)),
        dict(chain.from_iterable(part.failed_entries.items() for part in parts)),
        lag,
    )
