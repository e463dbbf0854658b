"""What the topics of a flow come to: originals, copies, and who stamps the copies (pure)."""

from collections.abc import Iterator, Mapping, Sequence

from tsoffset.commands.check.findings import (
    Finding,
    Severity,
    cause_and_step,
    names,
    of_failure,
)
from tsoffset.commands.check.survey import SourceSurvey, SyncedTopic, TargetSurvey, renamed
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Failed, TimestampType, TopicDescription
from tsoffset.rule.reasons import rewritten
from tsoffset.terminal.output import counted


def source_topics(
    flow: FlowSettings, survey: SourceSurvey, synced: Sequence[SyncedTopic]
) -> Iterator[Finding]:
    """Which topics pass the filters, and whether those that groups read are there."""
    alias = flow.source.alias
    passing = [topic for topic in survey.topics if renamed(flow, topic) is not None]
    found = (
        f"passing the filters: {len(passing)} of {len(survey.topics)}, "
        f"with commits of groups that pass: {len(synced)}"
    )
    if passing and synced:
        yield Finding(Severity.OK, flow.name, alias, "topics", found)
    else:
        yield Finding(
            Severity.WARNING,
            flow.name,
            alias,
            "topics",
            found,
            "correct topics and topics.exclude (or --topics), unless commits are still to come",
        )
    for topic in synced:
        described = survey.topics.get(topic.source)
        if described is None or (isinstance(described, Failed) and described.missing):
            yield Finding(
                Severity.WARNING,
                flow.name,
                alias,
                f"topic {topic.source}",
                f"does not exist, though {counted(len(topic.groups), 'group')} "
                f"({names(topic.groups)}) have commits on it",
                "delete these commits, or exclude the topic",
            )
        else:
            yield from _described(flow.name, alias, described, topic.source, topic.partitions)


def target_topics(
    flow: FlowSettings,
    source: Mapping[str, TopicDescription | Failed],
    survey: TargetSurvey,
    synced: Sequence[SyncedTopic],
) -> Iterator[Finding]:
    """Whether the copies are there, as wide as the originals, and keep the timestamps."""
    alias = flow.target.alias
    kept = unseen = 0
    for topic in synced:
        subject = f"topic {topic.target}"
        described = survey.topics.get(topic.target)
        if described is None or (isinstance(described, Failed) and described.missing):
            yield Finding(
                Severity.WARNING,
                flow.name,
                alias,
                subject,
                f"does not exist; {topic.source} is read by {counted(len(topic.groups), 'group')} "
                f"({names(topic.groups)}), which are skipped there",
                "let the replicator mirror it, or exclude it by topics.exclude",
            )
            continue
        yield from _described(flow.name, alias, described, topic.target, topic.partitions)
        if isinstance(described, Failed):
            continue
        yield from _width(flow, source.get(topic.source), described)
        stamp = survey.stamps.get(topic.target)
        if isinstance(stamp, Failed):
            yield of_failure(flow.name, alias, subject, stamp)
        elif stamp is TimestampType.LOG_APPEND_TIME:
            finding, remedy = cause_and_step(rewritten(topic.target).message)
            yield Finding(Severity.ERROR, flow.name, alias, subject, finding, remedy)
        elif stamp is None:
            unseen += 1
        else:
            kept += 1
    if kept or unseen:
        words = f"copies that the target does not stamp itself: {kept} of {len(synced)}"
        if unseen:
            words += f"; {unseen} hold no record to see it by"
        yield Finding(Severity.OK, flow.name, alias, "timestamps", words)


def _described(
    flow: str,
    alias: str,
    described: TopicDescription | Failed,
    topic: str,
    read: frozenset[int],
) -> Iterator[Finding]:
    """A topic that cannot be described, or whose partitions that groups read have no leader."""
    if isinstance(described, Failed):
        yield of_failure(flow, alias, f"topic {topic}", described)
        return
    leaderless = sorted(
        number
        for number, partition in described.partitions.items()
        if partition.leader is None and number in read
    )
    if leaderless:
        yield Finding(
            Severity.ERROR,
            flow,
            alias,
            f"topic {topic}",
            f"no leader for partition {names([str(number) for number in leaderless])}",
            "start the brokers that hold its replicas",
        )


def _width(
    flow: FlowSettings, original: TopicDescription | Failed | None, copy: TopicDescription
) -> Iterator[Finding]:
    if isinstance(original, TopicDescription) and len(copy.partitions) < len(original.partitions):
        yield Finding(
            Severity.WARNING,
            flow.name,
            flow.target.alias,
            f"topic {copy.topic}",
            f"has {counted(len(copy.partitions), 'partition')}, {original.topic} on "
            f"{flow.source.alias} has {len(original.partitions)}: the rest is skipped "
            "(TARGET_MISSING)",
            "let the replicator add partitions, or add them by kafka-topics --alter",
        )
