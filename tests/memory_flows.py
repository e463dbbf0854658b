"""Flows between clusters in memory, told in a few words: topics, mirrors, groups, cycles."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tsoffset.cycle.source_commits import CompetingFlow
from tsoffset.flow.policy import (
    DefaultGroupFilter,
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    IdentityReplicationPolicy,
    ReplicationPolicy,
)
from tsoffset.flow.settings import ClusterSettings, FlowSettings, TranslationSettings
from tsoffset.group_sync.cache import CachedTables
from tsoffset.group_sync.cycle import cycle
from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    CommittedOffset,
    FailureKind,
    GroupType,
    Isolation,
    OutcomeKind,
    Reason,
    Row,
    TimestampType,
    TopicPartition,
)
from tsoffset.testing.memory_cluster import Clock, MemoryCluster, Message, Verb, mirror_partition

NOW_MS = 1_800_000_000_000
DEFAULT = DefaultReplicationPolicy()

Commit = tuple[str, TopicPartition, CommittedOffset]

# What a cycle asks a cluster of last when it has read the groups, and when it has translated.
GROUPS_READ = (Verb.COMMITTED,)
TRANSLATED = (Verb.READ, Verb.FIRST_AT_TIMES, Verb.YOUNGEST, Verb.LOG_RANGES)


class LoweringPolicy(DefaultReplicationPolicy):
    """A user's own, whose names cannot be told backwards: `Orders` becomes `orders`."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return topic.lower()

    def topic_source(self, topic: str) -> str | None:
        return None

    def upstream_topic(self, topic: str) -> str | None:
        return None


class RaisingGroups(DefaultGroupFilter):
    """A user's own: it selects these groups, and raises KeyError for others."""

    def __init__(self, *selected: str) -> None:
        super().__init__()
        self._selected = dict.fromkeys(selected, True)

    def should_replicate_group(self, group: str) -> bool:
        return self._selected[group]


class RaisingTopics(DefaultTopicFilter):
    """A user's own: it selects `orders`, and raises KeyError for others."""

    def should_replicate_topic(self, topic: str) -> bool:
        return {"orders": True}[topic]


def flow(
    source: str = "A", target: str = "B", policy: ReplicationPolicy = DEFAULT, **changes: Any
) -> FlowSettings:
    """A flow with default filters; `changes` are further fields of FlowSettings."""
    settings = FlowSettings(
        ClusterSettings(source, ("127.0.0.1:1",)),
        ClusterSettings(target, ("127.0.0.1:2",)),
        policy,
        DefaultGroupFilter(),
        DefaultTopicFilter(),
    )
    return replace(settings, **changes)


def identity_flow(source: str = "A", target: str = "B", **changes: Any) -> FlowSettings:
    return flow(source, target, IdentityReplicationPolicy(source), **changes)


def messages(topic: str, numbers: range, *, stamped: bool = True) -> list[Message]:
    """Records with a content of their own, a millisecond apart."""
    return [
        Message(NOW_MS + n if stamped else None, b"k%d" % n, f"{topic} {n}".encode())
        for n in numbers
    ]


class StillTime:
    """A clock that moves only where somebody sleeps, and that knows how often that was."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleeps = 0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return NOW_MS / 1000 + self.now

    def sleep(self, seconds: float, /) -> None:
        self.now += seconds
        self.sleeps += 1


class Estate:
    """Clusters by alias, all with one clock, and what a user of tsoffset does with them."""

    def __init__(self, *aliases: str, brokers: int = 1, max_metadata_length: int = 4096) -> None:
        clock = Clock(NOW_MS)
        self.clusters = {
            alias: MemoryCluster(
                alias, brokers=brokers, max_metadata_length=max_metadata_length, clock=clock
            )
            for alias in aliases or ("A", "B")
        }
        self._mirrored: dict[tuple[str, str, TopicPartition], int] = {}
        self.time = StillTime()

    def __getitem__(self, alias: str) -> MemoryCluster:
        return self.clusters[alias]

    def connect(self, settings: ClusterSettings) -> MemoryCluster:
        """The cluster of these settings, as commands connect to it."""
        return self[settings.alias]

    # --- filling --------------------------------------------------------------------------

    def write(
        self,
        topic: str,
        records: int = 100,
        *,
        on: str = "A",
        partitions: int = 1,
        stamped: bool = True,
        content: str | None = None,
    ) -> None:
        """Append to each partition of a topic, which is made where it is new.

        `content` stands for the topic's name in the values, to tell equal names apart.
        """
        cluster = self[on]
        if topic not in cluster.topics():
            cluster.create_topic(topic, partitions)
        for number in cluster.partition_numbers(topic):
            log = cluster.log(topic, number)
            numbers = range(log.end, log.end + records)
            log.append(messages(content or topic, numbers, stamped=stamped), batch_size=10)

    def mirror(
        self,
        topic: str,
        copy: str | None = None,
        *,
        source: str = "A",
        target: str = "B",
        up_to: int | None = None,
        first_offset: int = 0,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
    ) -> str:
        """Copy a topic from where the last call ended, to `up_to` of each partition.

        The copy is named as by DefaultReplicationPolicy where no name is given, and made
        to begin at `first_offset`. Returns its name.
        """
        there, here = self[target], self[source]
        name = copy or DEFAULT.format_remote_topic(source, topic)
        numbers = here.partition_numbers(topic)
        if name not in there.topics():
            there.create_topic(
                name, len(numbers), first_offset=first_offset, timestamp_type=timestamp_type
            )
        for number in numbers:
            key = (source, name, TopicPartition(topic, number))
            self._mirrored[key] = mirror_partition(
                here.log(topic, number),
                there.log(name, number),
                start=self._mirrored.get(key),
                end=up_to,
                batch_size=7,
                isolation=isolation,
            )
        return name

    def forget(self, topic: str) -> None:
        """Mirror a topic from its beginning next time."""
        for key in [key for key in self._mirrored if key[2].topic == topic]:
            del self._mirrored[key]

    def commit(
        self,
        group: str,
        topic: str,
        offset: int,
        *,
        on: str = "A",
        partition: int = 0,
        metadata: str = "",
        type: GroupType = GroupType.CLASSIC,
        leader_epoch: int | None = None,
    ) -> None:
        """Let a group stand at `offset`."""
        committed = CommittedOffset(offset, metadata, leader_epoch=leader_epoch)
        self[on].group(group, type).offsets[TopicPartition(topic, partition)] = committed

    # --- a cycle --------------------------------------------------------------------------

    def sync(
        self,
        settings: FlowSettings | None = None,
        *,
        commit: bool = True,
        competing_flows: Sequence[FlowSettings] = (),
        cache: CachedTables | None = None,
    ) -> list[Row]:
        settings = settings or flow()
        return cycle(
            settings,
            self[settings.source.alias],
            self[settings.target.alias],
            commit=commit,
            competing_flows=[
                CompetingFlow(competing, self[competing.source.alias])
                for competing in competing_flows
            ],
            cache=cache,
            clock=self.time,
        )

    def plan(self, settings: FlowSettings | None = None) -> list[Row]:
        """One cycle that commits nothing."""
        return self.sync(settings, commit=False)

    # --- what came of it ------------------------------------------------------------------

    def standing(
        self, group: str, topic: str, *, on: str = "B", partition: int = 0
    ) -> CommittedOffset | None:
        """What a group has committed; None where it has nothing."""
        return self[on].group(group).offsets.get(TopicPartition(topic, partition))

    def asked(self, alias: str, verb: Verb) -> int:
        """How many items a cluster was asked of this verb so far."""
        return self[alias].asked(verb)


def after_each(cluster: MemoryCluster, call: str, change: Callable[[Any], Any]) -> None:
    """Let this happen after each call of a cluster. It is given the answer, and what it returns
    takes the answer's place, but for None."""
    method = getattr(cluster, call)

    def answer(*words: Any, **named: Any) -> Any:
        found = method(*words, **named)
        changed = change(found)
        return found if changed is None else changed

    setattr(cluster, call, answer)


@contextmanager
def before_topics(
    cluster: MemoryCluster, *after: Verb, change: Callable[[], object]
) -> Iterator[None]:
    """A block in which this happens once: before a cluster describes topics right after one of
    these verbs, such as GROUPS_READ or TRANSLATED."""
    method, left = cluster.topics, [change]

    def topics(*words: Any, **named: Any) -> Any:
        if left and cluster.requests[-1].verb in after:
            left.pop()()
            return cluster.topics(*words, **named)
        return method(*words, **named)

    cluster.topics = topics  # type: ignore[method-assign]
    yield
    assert not left, "topics were not described then"


def unused_partition(cluster: MemoryCluster, groups: set[str]) -> TopicPartition:
    """A partition of `__consumer_offsets` in which none of the groups is."""
    for number in cluster.partition_numbers(GROUP_OFFSETS_TOPIC):
        partition = TopicPartition(GROUP_OFFSETS_TOPIC, number)
        cluster.elect_leader(partition, None)
        listed = set(cluster.groups().groups)
        cluster.elect_leader(partition, 0)
        if groups <= listed:
            return partition
    raise AssertionError("each partition has one of the groups")


def mirrored_estate(
    records: int = 100,
    *,
    partitions: int = 1,
    first_offset: int = 0,
    up_to: int | None = None,
    stamped: bool = True,
    billing: int | None = None,
    **clusters: int,
) -> Estate:
    """`orders` on A, mirrored to B up to an offset, else all of it; its copy begins at
    `first_offset`. `billing` is where a group of that name stands on A, `clusters` what clusters
    are made with."""
    estate = Estate(**clusters)
    estate.write("orders", records, partitions=partitions, stamped=stamped)
    estate.mirror("orders", first_offset=first_offset, up_to=up_to)
    if billing is not None:
        estate.commit("billing", "orders", billing)
    return estate


def with_floor() -> TranslationSettings:
    return TranslationSettings(floor="log_start")


def row_of(
    rows: Sequence[Row], group: str, topic: str | None = None, partition: int | None = None
) -> Row:
    """The one row of a group (and topic, and partition where given)."""
    [row] = [
        row
        for row in rows
        if row.group == group
        and topic in (None, row.source_topic)
        and partition in (None, row.partition)
    ]
    return row


def verdict(row: Row) -> tuple[OutcomeKind, object]:
    """Outcome and reason of a row, for short comparisons."""
    return row.outcome, row.reason


COMMITTED = (OutcomeKind.COMMITTED, None)
WOULD_COMMIT = (OutcomeKind.WOULD_COMMIT, None)
UNCHANGED = (OutcomeKind.UNCHANGED, None)


def failed(kind: FailureKind) -> tuple[OutcomeKind, FailureKind]:
    return OutcomeKind.FAILED, kind


def skipped(reason: Reason) -> tuple[OutcomeKind, Reason]:
    return OutcomeKind.SKIPPED, reason
