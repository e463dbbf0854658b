"""Findings on the topics of a flow: on the source, on the target, their timestamps, and those that
Kafka Streams applications need on the target beside committed offsets (pure)."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from tsoffset.commands.check.findings import Finding, Scope, cause_and_step
from tsoffset.commands.check.rights import NEEDED, missing_operations
from tsoffset.commands.check.survey import (
    SourceSurvey,
    Stamp,
    SyncedTopic,
    TargetSurvey,
    target_name,
)
from tsoffset.cycle.source_commits import renamings_of
from tsoffset.flow.policy import DEFAULT_SEPARATOR
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Failed, Resource, Side, TimestampType, TopicDescription
from tsoffset.rule.reasons import rewritten
from tsoffset.terminal.output import abridge, plural


def source_topics(flow: FlowSettings, survey: SourceSurvey) -> Iterator[Finding]:
    """Report which topics are selected, and topics with committed offsets that do not exist."""
    at, synced = Scope(flow.name, flow.source.alias), survey.synced
    renamings, failed = renamings_of(flow, sorted(survey.topics))
    for name, failure in failed.items():
        yield at.failure(f"topic {name}", failure)
    passing = sum(renaming is not None for renaming in renamings.values())
    found = (
        f"{passing} of {len(survey.topics)} topics selected; selected groups have committed"
        f" offsets in {len(synced)}"
    )
    unread = sum(isinstance(offsets, Failed) for offsets in survey.commits.values())
    if unread:
        # Other findings report why.
        found += f", without {plural(unread, 'group')} whose offsets cannot be read"
    if passing and (synced or unread):
        yield at.ok("topics", found)
    elif not survey.topics:
        yield at.warning(
            "topics",
            "this user can see no topics",
            "check the addresses, and that this user has DESCRIBE on the topics, unless topics"
            " will be created later",
        )
    else:
        yield at.warning(
            "topics",
            found,
            "correct topics and topics.exclude (or --topics), unless groups will commit offsets"
            " later",
        )
    for topic in synced:
        described = survey.topics.get(topic.source)
        if _is_missing(described):
            yield at.warning(
                f"topic {topic.source}",
                f"does not exist, but {_readers(topic)} have committed offsets in it",
                "delete these offsets, or exclude the topic",
            )
        else:
            yield from _unavailable(at, described, topic.source, topic.partitions)


def target_topics(
    flow: FlowSettings, source: SourceSurvey, survey: TargetSurvey, every: Collection[str]
) -> Iterator[Finding]:
    """Report target topics that are missing, have fewer partitions, or set timestamps themselves.
    `every` has the names of all topics on the target."""
    at, synced = Scope(flow.name, flow.target.alias), source.synced
    missing = [topic for topic in synced if _is_missing(survey.topics.get(topic.target))]
    if missing and len(missing) == len(synced):
        yield _no_copies(at, flow, missing, every)
        return
    refused = missing_operations(survey.rights.topics, NEEDED[Side.TARGET, Resource.TOPIC])
    stamps: list[Stamp] = []
    for topic in synced:
        described = survey.topics.get(topic.target)
        if _is_missing(described):
            yield at.warning(
                f"topic {topic.target}",
                f"does not exist; {_readers(topic)} that read {topic.source} are skipped in it",
                "configure the replicator to copy it, or exclude it with topics.exclude",
            )
            continue
        # Another finding reports missing rights.
        may_read = topic.target not in refused
        if may_read or not isinstance(described, Failed):
            yield from _unavailable(at, described, topic.target, topic.partitions)
        if isinstance(described, TopicDescription):
            yield from _fewer_partitions(flow, source.topics.get(topic.source), described)
        if isinstance(described, TopicDescription) and may_read:
            stamp = survey.stamps.get(topic.target)
            stamps.append(stamp)
            if isinstance(stamp, Failed):
                yield at.failure(f"topic {topic.target}", stamp)
            elif stamp is TimestampType.LOG_APPEND_TIME:
                message = rewritten(topic.target).message
                yield at.error(f"topic {topic.target}", *cause_and_step(message))
    kept, unseen = stamps.count(TimestampType.CREATE_TIME), stamps.count(None)
    if kept or unseen:
        words = f"{kept} of {len(synced)} topics keep the source's timestamps on the target"
        if unseen:
            words += f"; {unseen} have no records yet"
        yield at.ok("timestamps", words)


def _no_copies(
    at: Scope, flow: FlowSettings, missing: Sequence[SyncedTopic], every: Collection[str]
) -> Finding:
    """The error of a flow without any target topic. If the target has topics under other names, it
    names the replication policy that fits."""
    expected = abridge([f"{topic.target} for {topic.source}" for topic in missing])
    words = (
        f"none of the {plural(len(missing), 'topic')} that groups read exists on"
        f" {flow.target.alias} under the name that {type(flow.policy).__name__} gives ({expected}),"
        " so no group can be synced"
    )
    step = f"configure the replicator to copy {abridge([topic.source for topic in missing])}"
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for topic in missing:
        for name in every:
            prefix = name.removesuffix(topic.source)
            if name.endswith(topic.source) and (not prefix or prefix[-1] in "._-"):
                found[prefix[:-1], prefix[-1:]].append(f"{name} for {topic.source}")
    if not found:
        return at.error("topics", words, step)
    # Several policies may fit: prefer the one that most topics follow, then the source's alias.
    (alias, separator), present = max(
        found.items(), key=lambda item: (len(item[1]), item[0][0] == flow.source.alias, item[0])
    )
    policy = "DefaultReplicationPolicy" if separator else "IdentityReplicationPolicy"
    settings = [f"replication.policy.class = org.apache.kafka.connect.mirror.{policy}"]
    if separator not in ("", DEFAULT_SEPARATOR):
        settings.append(f"replication.policy.separator = {separator}")
    if separator and alias != flow.source.alias:
        settings.append(f"the alias {alias} for {flow.source.alias} in `clusters`")
    return at.error(
        "topics",
        f"{words}; the cluster has {abridge(sorted(present))}, so the replicator seems to"
        f" use {policy}",
        f"use the replicator's naming: {', '.join(settings)}; or {step}",
    )


def _is_missing(described: TopicDescription | Failed | None) -> bool:
    return described is None or (isinstance(described, Failed) and described.missing)


def _readers(topic: SyncedTopic) -> str:
    return f"{plural(len(topic.groups), 'group')} ({abridge(topic.groups)})"


def _unavailable(
    at: Scope, described: TopicDescription | Failed | None, topic: str, read: frozenset[int]
) -> Iterator[Finding]:
    if isinstance(described, Failed):
        yield at.failure(f"topic {topic}", described)
        return
    partitions = described.partitions if described is not None else {}
    leaderless = [
        str(number)
        for number, partition in sorted(partitions.items())
        if partition.leader is None and number in read
    ]
    if leaderless:
        yield at.error(
            f"topic {topic}",
            f"no leader for partition {abridge(leaderless)}",
            "start the brokers that hold its replicas",
        )


def _fewer_partitions(
    flow: FlowSettings, original: TopicDescription | Failed | None, copy: TopicDescription
) -> Iterator[Finding]:
    if isinstance(original, TopicDescription) and len(copy.partitions) < len(original.partitions):
        yield Scope(flow.name, flow.target.alias).warning(
            f"topic {copy.topic}",
            f"has {plural(len(copy.partitions), 'partition')}, {original.topic} on"
            f" {flow.source.alias} has {len(original.partitions)}: the missing partitions are"
            " skipped (TARGET_MISSING)",
            "let the replicator add partitions, or add them with kafka-topics --alter",
        )


# The names that Kafka Streams gives its own topics, behind the application's id and a hyphen.
_CHANGELOG = re.compile(r".+-changelog")
_REPARTITION = re.compile(
    r".+-repartition|.+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic"
)


def streams_applications(
    flow: FlowSettings, survey: SourceSurvey, every: Collection[str]
) -> Iterator[Finding]:
    """Report Streams applications whose internal topics the target lacks under the same names.
    `every` has the names of all topics on the target."""
    uncopied = {
        group: missing
        for group, topics in streams_topics(survey).items()
        if (missing := [one for one in topics if target_name(flow, one) != one or one not in every])
    }
    if not uncopied:
        return
    target, topics = flow.target.alias, [topic for some in uncopied.values() for topic in some]
    lost = "starts with empty state stores although its offsets are translated"
    if any(map(_REPARTITION.fullmatch, topics)):
        lost += ", and does not process what waits in its repartition topics"
    keeps_names = flow.policy.format_remote_topic(flow.source.alias, topics[0]) == topics[0]
    copy = (
        "have the replicator copy these topics, and select them with `topics`"
        if keeps_names
        else "use IdentityReplicationPolicy, which keeps topic names, and copy these topics"
    )
    yield Scope(flow.name, target).warning(
        "Kafka Streams",
        f"{plural(len(uncopied), 'application')} ({abridge(list(uncopied))}): {target} has no copy"
        f" of {plural(len(topics), 'topic')} ({abridge(topics)}) under the same name, so the"
        f" application {lost}",
        f"{copy}; or exclude the group and reset the application on {target}, which computes"
        " everything again from its input topics (docs/failover.md, Kafka Streams)",
    )


def streams_topics(survey: SourceSurvey) -> Mapping[str, list[str]]:
    """The changelog and repartition topics of those groups that are Streams applications. Only the
    topics' names show that a group of type `classic` is a Streams application."""
    groups = {group for topic in survey.synced for group in topic.groups}
    committed = {
        (group, partition.topic)
        for group, offsets in survey.commits.items()
        for partition in (() if isinstance(offsets, Failed) else offsets)
    }
    found: defaultdict[str, list[str]] = defaultdict(list)
    for topic in sorted(survey.topics):
        is_changelog = _CHANGELOG.fullmatch(topic) is not None
        if not is_changelog and _REPARTITION.fullmatch(topic) is None:
            continue
        # The longest name wins: with groups `app` and `app-eu`, the topic `app-eu-store-changelog`
        # most likely belongs to `app-eu`, not to a store `eu-store` of `app`.
        hyphens = (one.start() for one in re.finditer("-", topic))
        owner = max((topic[:at] for at in hyphens if topic[:at] in groups), key=len, default=None)
        # An application restores its changelogs without committing offsets. So a group with a
        # committed offset in the topic is an ordinary consumer of it.
        if owner is not None and not (is_changelog and (owner, topic) in committed):
            found[owner].append(topic)
    return found
