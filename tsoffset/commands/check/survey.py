"""What `check` asks the clusters of a flow. It decides nothing."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tsoffset.cluster import Cluster
from tsoffset.flow.policy import target_topic
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import (
    Failed,
    GroupListing,
    GroupListings,
    GroupOffsets,
    GroupType,
    Isolation,
    LogRange,
    ReadFrom,
    TimestampType,
    TopicDescription,
    TopicPartition,
)

# How far from a log's end to look for a record, where the end holds only control records.
_STEPS_BACK = (1, 2, 10, 100, 10_000)

Stamp = TimestampType | Failed | None
"""Who stamps a topic's records; None where there is no record to see it by."""


@dataclass(frozen=True, slots=True)
class SyncedTopic:
    """A source topic that groups of the flow have commits on, and its name on the target."""

    source: str
    target: str
    partitions: frozenset[int]
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceSurvey:
    """What the source of a flow has: groups, topics, the commits of the groups that pass."""

    listings: GroupListings
    topics: Mapping[str, TopicDescription | Failed]
    commits: Mapping[str, GroupOffsets | Failed]


@dataclass(frozen=True, slots=True)
class TargetSurvey:
    """What the target of a flow has of the topics that are synced."""

    listings: GroupListings
    topics: Mapping[str, TopicDescription | Failed]
    stamps: Mapping[str, Stamp]


def survey_source(flow: FlowSettings, source: Cluster) -> SourceSurvey:
    """Ask the source. Raises ClusterUnreachable."""
    listings = source.groups()
    passing = [
        group.group for group in passing_groups(flow, listings) if group.type is not GroupType.SHARE
    ]
    commits = source.committed(passing, require_stable=False)
    return SourceSurvey(listings, source.topics(), commits.by_group())


def survey_target(
    flow: FlowSettings, target: Cluster, synced: Sequence[SyncedTopic]
) -> TargetSurvey:
    """Ask the target about the synced topics. Raises ClusterUnreachable."""
    listings = target.groups()
    names = {topic.target for topic in synced}
    topics = target.topics(names)
    described = [topic for topic in topics.values() if isinstance(topic, TopicDescription)]
    return TargetSurvey(listings, topics, stamps(target, described))


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
