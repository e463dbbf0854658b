"""What the topics of a flow come to: originals, copies, and who stamps the copies (pure)."""

from collections.abc import Iterator, Mapping, Sequence

from tsoffset.commands.check.findings import Finding, Scope, cause_and_step, names
from tsoffset.commands.check.rights import lacking, needed
from tsoffset.commands.check.survey import (
    SourceSurvey,
    Stamp,
    SyncedTopic,
    TargetSurvey,
    renamed,
)
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Failed, Resource, Side, TimestampType, TopicDescription
from tsoffset.rule.reasons import rewritten
from tsoffset.terminal.output import counted


def source_topics(
    flow: FlowSettings, survey: SourceSurvey, synced: Sequence[SyncedTopic]
) -> Iterator[Finding]:
    """Which topics pass the filters, and whether those that groups read are there."""
    at = Scope(flow.name, flow.source.alias)
    passing = [topic for topic in survey.topics if renamed(flow, topic) is not None]
    found = (
        f"passing the filters: {len(passing)} of {len(survey.topics)}, "
        f"with commits of groups that pass: {len(synced)}"
    )
    if passing and synced:
        yield at.ok("topics", found)
    else:
        yield at.warning(
            "topics",
            found,
            "correct topics and topics.exclude (or --topics), unless commits are still to come",
        )
    for topic in synced:
        described = survey.topics.get(topic.source)
        if _is_missing(described):
            yield at.warning(
                f"topic {topic.source}",
                f"does not exist, though {_readers(topic)} have commits on it",
                "delete these commits, or exclude the topic",
            )
        else:
            yield from _trouble(at, described, topic.source, topic.partitions)


def target_topics(
    flow: FlowSettings,
    source: Mapping[str, TopicDescription | Failed],
    survey: TargetSurvey,
    synced: Sequence[SyncedTopic],
) -> Iterator[Finding]:
    """Whether the copies are there, as wide as the originals, and keep the timestamps."""
    at = Scope(flow.name, flow.target.alias)
    refused = lacking(survey.rights.topics, needed(Side.TARGET, Resource.TOPIC))
    stamps: list[Stamp] = []
    for topic in synced:
        described = survey.topics.get(topic.target)
        if _is_missing(described):
            yield at.warning(
                f"topic {topic.target}",
                f"does not exist; {topic.source} is read by {_readers(topic)}, which are skipped "
                "there",
                "let the replicator mirror it, or exclude it by topics.exclude",
            )
            continue
        # Another finding tells of what one may not do.
        may_read = topic.target not in refused
        if may_read or not isinstance(described, Failed):
            yield from _trouble(at, described, topic.target, topic.partitions)
        if isinstance(described, TopicDescription):
            yield from _width(flow, source.get(topic.source), described)
        if isinstance(described, TopicDescription) and may_read:
            stamps.append(survey.stamps.get(topic.target))
            yield from _stamped(at, topic.target, stamps[-1])
    kept, unseen = stamps.count(TimestampType.CREATE_TIME), stamps.count(None)
    if kept or unseen:
        words = f"copies that the target does not stamp itself: {kept} of {len(synced)}"
        if unseen:
            words += f"; {unseen} hold no record to see it by"
        yield at.ok("timestamps", words)


def _is_missing(described: TopicDescription | Failed | None) -> bool:
    return described is None or (isinstance(described, Failed) and described.missing)


def _readers(topic: SyncedTopic) -> str:
    return f"{counted(len(topic.groups), 'group')} ({names(topic.groups)})"


def _trouble(
    at: Scope, described: TopicDescription | Failed | None, topic: str, read: frozenset[int]
) -> Iterator[Finding]:
    """A topic that cannot be described, or whose partitions that groups read have no leader."""
    if isinstance(described, Failed):
        yield at.failure(f"topic {topic}", described)
    if not isinstance(described, TopicDescription):
        return
    leaderless = [
        str(number)
        for number, partition in sorted(described.partitions.items())
        if partition.leader is None and number in read
    ]
    if leaderless:
        yield at.error(
            f"topic {topic}",
            f"no leader for partition {names(leaderless)}",
            "start the brokers that hold its replicas",
        )


def _stamped(at: Scope, topic: str, stamp: Stamp) -> Iterator[Finding]:
    if isinstance(stamp, Failed):
        yield at.failure(f"topic {topic}", stamp)
    elif stamp is TimestampType.LOG_APPEND_TIME:
        yield at.error(f"topic {topic}", *cause_and_step(rewritten(topic).message))


def _width(
    flow: FlowSettings, original: TopicDescription | Failed | None, copy: TopicDescription
) -> Iterator[Finding]:
    if isinstance(original, TopicDescription) and len(copy.partitions) < len(original.partitions):
        yield Scope(flow.name, flow.target.alias).warning(
            f"topic {copy.topic}",
            f"has {counted(len(copy.partitions), 'partition')}, {original.topic} on "
            f"{flow.source.alias} has {len(original.partitions)}: the rest is skipped "
            "(TARGET_MISSING)",
            "let the replicator add partitions, or add them by kafka-topics --alter",
        )
