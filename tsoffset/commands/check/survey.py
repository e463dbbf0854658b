"""What `check` asks the clusters of a flow. It decides nothing."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from tsoffset.cluster import Cluster
from tsoffset.flow.narrowing import written_groups, written_topics
from tsoffset.flow.policy import target_topic
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import (
    Allowed,
    Failed,
    GroupListing,
    GroupListings,
    GroupOffsets,
    Isolation,
    LogRange,
    Operation,
    ReadFrom,
    Rights,
    TimedOffset,
    TimestampType,
    TopicDescription,
    TopicPartition,
    Youngest,
)

# How far from a log's end to look for a record, where the end holds only control records.
_STEPS_BACK = (1, 2, 10, 100, 10_000)

Stamp = TimestampType | Failed | None
"""Whether producer or broker set a topic's timestamps; None if there is no record to tell."""


@dataclass(frozen=True, slots=True)
class SyncedTopic:
    """A source topic that groups of the flow have commits on, and its name on the target."""

    source: str
    target: str
    partitions: frozenset[int]
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordTimes:
    """The times of a topic's records that were looked at, in milliseconds: the least of its first
    batches and the greatest of all; None where not seen."""

    first_ms: int | None = None
    newest_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SourceRights:
    """What the source allows: on the topics that are synced, on the groups that pass, and on the
    names that the filters write out and no listing shows.

    `told` has more: `probe` is a name that nothing has, as topic and as group.
    """

    told: Rights
    topics: Mapping[str, Allowed]
    groups: Mapping[str, Allowed]
    unseen_topics: tuple[str, ...]
    unseen_groups: tuple[str, ...]
    probe: str


@dataclass(frozen=True, slots=True)
class SourceSurvey:
    """What the source of a flow has: groups, topics, the commits of the groups that pass, the logs
    that these are on, and what may be done there."""

    listings: GroupListings
    topics: Mapping[str, TopicDescription | Failed]
    commits: Mapping[str, GroupOffsets | Failed]
    logs: Mapping[TopicPartition, LogRange | Failed]
    rights: SourceRights


@dataclass(frozen=True, slots=True)
class TargetSurvey:
    """What the target of a flow has of the topics that are synced."""

    listings: GroupListings
    topics: Mapping[str, TopicDescription | Failed]
    stamps: Mapping[str, Stamp]
    rights: Rights


def survey_source(flow: FlowSettings, source: Cluster) -> SourceSurvey:
    """Ask the source. Raises ClusterUnreachable."""
    listings, topics = source.groups(), source.topics()
    commits = source.committed(
        syncable_groups(flow, listings),
        share_groups=listings.share_groups,
        require_stable=False,
    ).by_group()
    synced = synced_topics(flow, commits)
    logs = source.log_ranges(
        [
            TopicPartition(topic.source, number)
            for topic in synced
            if topic.source in topics
            for number in topic.partitions
        ],
        Isolation.READ_UNCOMMITTED,
    )
    rights = _source_rights(flow, source, listings, topics, commits, synced)
    return SourceSurvey(listings, topics, commits, logs, rights)


def _source_rights(
    flow: FlowSettings,
    source: Cluster,
    listings: GroupListings,
    topics: Collection[str],
    commits: Mapping[str, GroupOffsets | Failed],
    synced: Sequence[SyncedTopic],
) -> SourceRights:
    """Who gave a group's commits allows to describe it; of the others the rights are asked for."""
    unseen_topics = tuple(
        topic
        for topic in written_topics(flow.topic_filter).names
        if topic not in topics and renamed(flow, topic) is not None
    )
    unseen_groups = tuple(
        group for group in written_groups(flow.group_filter).names if group not in listings.groups
    )
    read = [topic.source for topic in synced]
    failed = {group for group, found in commits.items() if isinstance(found, Failed)}
    probe = f"tsoffset-check-{uuid4().hex}"
    told = source.rights([*read, *unseen_topics, probe], [*failed, *unseen_groups, probe])
    given = frozenset({Operation.DESCRIBE})
    return SourceRights(
        told,
        {topic: told.topics[topic] for topic in read},
        {group: told.groups[group] if group in failed else given for group in commits},
        unseen_topics,
        unseen_groups,
        probe,
    )


def survey_target(
    flow: FlowSettings,
    target: Cluster,
    synced: Sequence[SyncedTopic],
    source: GroupListings,
) -> TargetSurvey:
    """Ask the target about the synced topics, and the groups that the source lists. Raises
    ClusterUnreachable."""
    listings = target.groups()
    names = {topic.target for topic in synced}
    topics = target.topics(names)
    described = [topic for topic in topics.values() if isinstance(topic, TopicDescription)]
    election = [flow.election_group] if flow.leader_election else []
    rights = target.rights(names, [*syncable_groups(flow, source), *election])
    return TargetSurvey(listings, topics, stamps(target, described), rights)


def syncable_groups(flow: FlowSettings, listings: GroupListings) -> list[str]:
    """The names of the groups that pass the flow's filter (pure)."""
    return [group.group for group in passing_groups(flow, listings)]


def passing_groups(flow: FlowSettings, listings: GroupListings) -> list[GroupListing]:
    """The groups that pass the flow's filter, by name (pure)."""
    return [
        group
        for name, group in sorted(listings.groups.items())
        if flow.group_filter.should_replicate_group(name)
    ]


def synced_topics(
    flow: FlowSettings, commits: Mapping[str, GroupOffsets | Failed]
) -> tuple[SyncedTopic, ...]:
    """The topics that the flow's groups have commits on, as far as filter and policy let them
    through (pure)."""
    groups: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    partitions: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for group, offsets in commits.items():
        if isinstance(offsets, Failed):
            continue
        for place in offsets:
            if (target := renamed(flow, place.topic)) is not None:
                groups[place.topic, target].add(group)
                partitions[place.topic, target].add(place.partition)
    return tuple(
        SyncedTopic(source, target, frozenset(partitions[source, target]), tuple(sorted(members)))
        for (source, target), members in sorted(groups.items())
    )


def renamed(flow: FlowSettings, topic: str) -> str | None:
    """The target's name of a source topic; None where the flow leaves it out (pure)."""
    if not flow.topic_filter.should_replicate_topic(topic):
        return None
    renaming = target_topic(flow.policy, flow.source.alias, flow.target.alias, topic)
    return None if renaming is None else renaming.topic


def stamps(cluster: Cluster, topics: Collection[TopicDescription]) -> dict[str, Stamp]:
    """Who stamps the newest records of each topic, seen in the last batch of its longest log.

    The topic's configuration is not asked for: what counts is what lies in the log.
    """
    places = [
        TopicPartition(topic.topic, number) for topic in topics for number in topic.partitions
    ]
    found: dict[str, Stamp] = dict.fromkeys((topic.topic for topic in topics), None)
    logs: dict[TopicPartition, LogRange] = {}
    for place, answer in cluster.log_ranges(places, Isolation.READ_COMMITTED).items():
        if isinstance(answer, Failed):
            found[place.topic] = answer
        elif answer.start < answer.end:
            logs[place] = answer
    by_length = sorted(logs, key=lambda place: logs[place].end - logs[place].start)
    longest = {place.topic: (place, logs[place]) for place in by_length}
    return found | _newest_stamps(cluster, longest)


def record_times(
    flow: FlowSettings, source: Cluster, survey: SourceSurvey, synced: Sequence[SyncedTopic]
) -> dict[str, RecordTimes]:
    """When the first and the newest records of the source's topics were stamped, as two
    partitions of each tell. Raises ClusterUnreachable."""
    logs = {
        place: log
        for topic in synced
        for place in [TopicPartition(topic.source, one) for one in sorted(topic.partitions)[:2]]
        if isinstance(log := survey.logs.get(place), LogRange) and log.start < log.end
    }
    first: defaultdict[str, list[int]] = defaultdict(list)
    requests = [ReadFrom(place, log.start) for place, log in logs.items()]
    for request, stretch in source.read(requests, flow.isolation).items():
        if not isinstance(stretch, Failed):
            times = [one.timestamp_ms for one in stretch.records]
            first[request.partition.topic] += [one for one in times if one is not None]
    newest: defaultdict[str, list[int]] = defaultdict(list)
    for lookup, found in source.youngest([*map(Youngest, logs)], flow.isolation).items():
        if isinstance(found, TimedOffset):
            newest[lookup.partition.topic].append(found.timestamp_ms)
    return {
        topic.source: RecordTimes(
            min(first[topic.source], default=None), max(newest[topic.source], default=None)
        )
        for topic in synced
    }


def _newest_stamps(
    cluster: Cluster, logs: dict[str, tuple[TopicPartition, LogRange]]
) -> dict[str, Stamp]:
    """Further and further back from the ends of the logs, to the first record of each."""
    found: dict[str, Stamp] = {}
    for step in _STEPS_BACK:
        if not logs:
            break
        requests = [ReadFrom(place, max(log.start, log.end - step)) for place, log in logs.values()]
        for request, stretch in cluster.read(requests, Isolation.READ_COMMITTED).items():
            topic = request.partition.topic
            if isinstance(stretch, Failed):
                found[topic] = stretch
            elif stretch.records:
                found[topic] = stretch.timestamp_type
            elif request.offset > logs[topic][1].start:
                continue
            del logs[topic]
    return found
