"""Reads what `check` needs from the clusters of a flow. It decides nothing."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import uuid4

from tsoffset.cluster import Cluster
from tsoffset.cycle.source_commits import renamings_of, selected_groups
from tsoffset.flow.narrowing import written_groups, written_topics
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    Failed,
    GroupListing,
    GroupListings,
    GroupOffsets,
    Isolation,
    LogRange,
    ReadFrom,
    Rights,
    TimestampType,
    TopicDescription,
    TopicPartition,
)

# How far from a log's end to look for a record, where the end holds only control records.
_STEPS_BACK = (1, 2, 10, 100, 10_000)

NO_NAME = f"tsoffset-check-{uuid4().hex}"
"""A name that no topic and no group has."""
Stamp = TimestampType | Failed | None
"""Whether producer or broker set a topic's timestamps; None if it has no record."""


@dataclass(frozen=True, slots=True)
class SyncedTopic:
    """A source topic in which groups of the flow have committed offsets; its name on the target."""

    source: str
    target: str
    partitions: frozenset[int]
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceSurvey:
    """The source of a flow: groups, topics, the committed offsets of the selected groups, the
    topics with such offsets (`synced`) with their logs.

    `unseen_topics` and `unseen_groups` are names that the filters spell out and no listing has.
    `rights` are those on synced topics, on `__consumer_offsets`, on groups whose offsets could not
    be read, on unseen names, and on NO_NAME.
    """

    listings: GroupListings
    topics: Mapping[str, TopicDescription | Failed]
    commits: Mapping[str, GroupOffsets | Failed]
    synced: tuple[SyncedTopic, ...]
    logs: Mapping[TopicPartition, LogRange | Failed]
    unseen_topics: list[str]
    unseen_groups: list[str]
    rights: Rights


@dataclass(frozen=True, slots=True)
class TargetSurvey:
    """The target of a flow: groups, the synced topics, who sets their timestamps, and rights."""

    listings: GroupListings
    topics: Mapping[str, TopicDescription | Failed]
    stamps: Mapping[str, Stamp]
    rights: Rights


def survey_source(flow: FlowSettings, source: Cluster) -> SourceSurvey:
    listings, topics = source.groups(), source.topics()
    groups, shared = [one.group for one in passing_groups(flow, listings)], listings.share_groups
    commits = source.committed(groups, share_groups=shared, require_stable=False).by_group()
    synced = synced_topics(flow, commits)
    partitions = [
        TopicPartition(topic.source, number)
        for topic in synced
        if topic.source in topics
        for number in topic.partitions
    ]
    logs = source.log_ranges(partitions, Isolation.READ_UNCOMMITTED)
    unseen_topics = [
        topic
        for topic in sorted(written_topics(flow.topic_filter).names)
        if topic not in topics and target_name(flow, topic) is not None
    ]
    written = sorted(written_groups(flow.group_filter).names)
    unseen_groups = [group for group in written if group not in listings.groups]
    synced_names = [topic.source for topic in synced]
    unread = [group for group, found in commits.items() if isinstance(found, Failed)]
    rights = source.rights(
        [*synced_names, *_group_offsets_topic(listings), *unseen_topics, NO_NAME],
        [*unread, *unseen_groups, NO_NAME],
    )
    return SourceSurvey(
        listings, topics, commits, synced, logs, unseen_topics, unseen_groups, rights
    )


def survey_target(flow: FlowSettings, target: Cluster, source: SourceSurvey) -> TargetSurvey:
    listings = target.groups()
    names = {topic.target for topic in source.synced}
    topics = target.topics(names)
    described = [topic for topic in topics.values() if isinstance(topic, TopicDescription)]
    election = [flow.election_group] if flow.leader_election else []
    groups = [one.group for one in passing_groups(flow, source.listings)]
    rights = target.rights(names.union(_group_offsets_topic(listings)), [*groups, *election])
    return TargetSurvey(listings, topics, stamps(target, described), rights)


def _group_offsets_topic(listings: GroupListings) -> list[str]:
    """`__consumer_offsets`, if it exists: before Kafka 2.8 a request that names it creates it."""
    return [GROUP_OFFSETS_TOPIC] if listings.groups else []


def passing_groups(flow: FlowSettings, listings: GroupListings) -> list[GroupListing]:
    """The selected groups, without those that `source_groups` reports as failed."""
    selected, _ = selected_groups(flow, listings.groups)
    return [listings.groups[group] for group in selected]


def synced_topics(
    flow: FlowSettings, commits: Mapping[str, GroupOffsets | Failed]
) -> tuple[SyncedTopic, ...]:
    found: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    for group, offsets in commits.items():
        for partition in () if isinstance(offsets, Failed) else offsets:
            found[partition.topic].add((group, partition.partition))
    return tuple(
        SyncedTopic(
            source,
            target,
            frozenset(partition for _, partition in readers),
            tuple(sorted({group for group, _ in readers})),
        )
        for source, readers in sorted(found.items())
        if (target := target_name(flow, source)) is not None
    )


def target_name(flow: FlowSettings, topic: str) -> str | None:
    """The target's name of a source topic; None if the flow does not select it, or if a class of
    the user's raised an error for it, which `source_topics` reports."""
    renamings, _ = renamings_of(flow, [topic])
    renaming = renamings[topic]
    return None if renaming is None else renaming.topic


def stamps(cluster: Cluster, topics: Collection[TopicDescription]) -> dict[str, Stamp]:
    """Whether producers or brokers set the timestamps of the newest records of each topic, by the
    last batch of its longest log. The topic's configuration is not read: the records count."""
    partitions = [
        TopicPartition(topic.topic, number) for topic in topics for number in topic.partitions
    ]
    found: dict[str, Stamp] = dict.fromkeys((topic.topic for topic in topics), None)
    logs: dict[TopicPartition, LogRange] = {}
    for partition, answer in cluster.log_ranges(partitions, Isolation.READ_COMMITTED).items():
        if isinstance(answer, Failed):
            found[partition.topic] = answer
        elif answer.start < answer.end:
            logs[partition] = answer
    by_length = sorted(logs, key=lambda partition: logs[partition].end - logs[partition].start)
    longest = {partition.topic: (partition, logs[partition]) for partition in by_length}
    # Read farther and farther back from the ends of the logs, until each has shown a record.
    for step in _STEPS_BACK if longest else ():
        requests = [
            ReadFrom(partition, max(log.start, log.end - step))
            for partition, log in longest.values()
        ]
        for request, fetched in cluster.read(requests, Isolation.READ_COMMITTED).items():
            topic = request.partition.topic
            if isinstance(fetched, Failed):
                found[topic] = fetched
            elif fetched.records:
                found[topic] = fetched.timestamp_type
            elif request.offset > longest[topic][1].start:
                continue
            del longest[topic]
        if not longest:
            break
    return found
