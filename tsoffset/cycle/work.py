"""The work of translating: partitions with their distinct positions, and what it took."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from operator import add, attrgetter

from tsoffset.cycle.source_commits import SourceCommit
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Isolation, LogRange, TopicPartition
from tsoffset.rule.partition_cache import PartitionCache
from tsoffset.rule.translate import Translation


@dataclass(frozen=True, slots=True)
class PartitionWork:
    """A partition with the distinct positions to translate in it, and what the last cycle cached of
    it. `decided_to`: aborted source records below this offset are omitted, although uncommitted
    ones are read; None if they are not."""

    source: TopicPartition
    target: TopicPartition
    offsets: tuple[int, ...]
    is_remote_topic: bool = False
    failback: bool = False
    cache: PartitionCache | None = None
    decided_to: int | None = None

    def read_with(self, flow: FlowSettings) -> Isolation:
        """The isolation level with which the source is read."""
        return flow.reads_source_with(is_remote_topic=self.is_remote_topic, failback=self.failback)

    def omits_aborted(self, flow: FlowSettings) -> bool:
        """Whether aborted source records are omitted, at once or in a second reading."""
        return flow.omits_aborted(is_remote_topic=self.is_remote_topic, failback=self.failback)


@dataclass(frozen=True, slots=True)
class TranslatedPosition:
    """A translation with what the commit rule needs of the target's log.

    `target_range` and `source_log_end` are None where they were not read. The rule does not use
    `source_log_end`: rows show the consumer lag.
    """

    partition: TopicPartition
    offset: int
    translation: Translation
    target_range: LogRange | None = None
    target_rewrites_timestamps: bool = False
    source_log_end: int | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of translating positions.

    `positions` are distinct; `recalled` of them came from the cache. Fetches and time lookups are
    counted as they were asked for. `bytes_read` are those of fetches on both sides,
    `source_bytes_read` those on the source. `rounds` are the network waits one after the other.
    `source_requests` are all requests that this sent to the source, if its client counts them.
    `commit_gap_seconds` is not a cost but a risk: the longest time between reading a target group
    and sending the commit that was decided on it.
    """

    positions: int = 0
    recalled: int = 0
    source_fetches: int = 0
    target_fetches: int = 0
    lookups: int = 0
    bytes_read: int = 0
    source_bytes_read: int = 0
    rounds: int = 0
    source_requests: int = 0
    commit_gap_seconds: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        total = Cost(*map(add, _values(self), _values(other)))
        longest = max(self.commit_gap_seconds, other.commit_gap_seconds)
        return replace(total, commit_gap_seconds=longest)

    def in_parallel(self, other: "Cost") -> "Cost":
        """The cost of two tasks that run side by side: they wait at the same time."""
        return replace(self + other, rounds=max(self.rounds, other.rounds))


_values = attrgetter(*(each.name for each in fields(Cost)))


def partition_work(commits: Iterable[SourceCommit]) -> list[PartitionWork]:
    """The distinct positions of all commits that need a translation, by partition."""
    offsets: defaultdict[tuple[TopicPartition, TopicPartition, bool, bool], set[int]]
    offsets = defaultdict(set)
    for commit in commits:
        if commit.verdict is None:
            assert commit.partition is not None
            assert commit.target is not None
            assert commit.committed is not None
            key = (commit.partition, commit.target, commit.is_remote_topic, commit.failback)
            offsets[key].add(commit.committed.offset)
    return [
        PartitionWork(source, target, tuple(sorted(found)), is_remote_topic, reverse)
        for (source, target, is_remote_topic, reverse), found in sorted(offsets.items())
    ]
