"""Kafka Streams applications, which need more on the target than committed offsets (pure)."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from tsoffset.commands.check.findings import Finding, Scope
from tsoffset.commands.check.survey import SourceSurvey, SyncedTopic, renamed
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Failed, GroupType
from tsoffset.terminal.output import counted, few

# The names that Kafka Streams gives its own topics, behind the application's id and a hyphen.
_CHANGELOG = re.compile(r".+-changelog")
_REPARTITION = re.compile(
    r".+-repartition|.+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic"
)


def streams_applications(
    flow: FlowSettings,
    survey: SourceSurvey,
    synced: Sequence[SyncedTopic],
    every: Collection[str],
) -> Iterator[Finding]:
    """Report whether the target has the internal topics of Streams applications under the names
    that they expect. `every` has the names of all topics on the target."""
    applications = internal_topics(survey, {group for topic in synced for group in topic.groups})
    lacking = {
        group: missing
        for group, topics in applications.items()
        if (missing := [one for one in topics if renamed(flow, one) != one or one not in every])
    }
    at, target = Scope(flow.name, flow.target.alias), flow.target.alias
    if lacking:
        topics = [topic for missing in lacking.values() for topic in missing]
        lost = "starts with empty state stores although its offsets are translated"
        if any(map(_REPARTITION.fullmatch, topics)):
            lost += ", and does not process what waits in its repartition topics"
        keeps_names = flow.policy.format_remote_topic(flow.source.alias, topics[0]) == topics[0]
        copy = (
            "have the replicator copy these topics, and select them with `topics`"
            if keeps_names
            else "use IdentityReplicationPolicy, which keeps topic names, and copy these topics"
        )
        yield at.warning(
            "Kafka Streams",
            f"{_applications(survey, lacking)}: {target} has no copy of"
            f" {counted(len(topics), 'topic')} ({few(topics)}) under the same name, so the"
            f" application {lost}",
            f"{copy}; or exclude the group and reset the application on {target}, which computes"
            " everything again from its input topics (docs/failover.md, Kafka Streams)",
        )
    if complete := [group for group in applications if group not in lacking]:
        yield at.ok(
            "Kafka Streams",
            f"{_applications(survey, complete)}: {target} has a topic of the same name for each"
            " changelog and repartition topic",
            "before a failover, stop the application and wait until these topics are mirrored",
        )


def internal_topics(survey: SourceSurvey, groups: Collection[str]) -> Mapping[str, list[str]]:
    """The changelog and repartition topics of those groups that are Streams applications. Only the
    names tell a classic group's application from a consumer."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for topic in sorted(survey.topics):
        is_changelog = _CHANGELOG.fullmatch(topic) is not None
        if not is_changelog and _REPARTITION.fullmatch(topic) is None:
            continue
        # Of `app` and `app-eu` the longer one: `app` would need a store called `eu-...`.
        hyphens = (one.start() for one in re.finditer("-", topic))
        owner = max((topic[:at] for at in hyphens if topic[:at] in groups), key=len, default=None)
        # An application restores its changelogs without a committed offset. A group that has one
        # consumes the topic, which only looks like a changelog of its own.
        if owner is not None and not (is_changelog and _has_committed(survey, owner, topic)):
            found[owner].append(topic)
    return found


def _has_committed(survey: SourceSurvey, group: str, topic: str) -> bool:
    offsets = survey.commits.get(group, {})
    return not isinstance(offsets, Failed) and any(place.topic == topic for place in offsets)


def _applications(survey: SourceSurvey, groups: Collection[str]) -> str:
    applications = [
        group
        if survey.listings.groups[group].type is GroupType.STREAMS
        else f"{group}, by the names of its topics"
        for group in groups
    ]
    return f"{counted(len(applications), 'application')} ({few(applications)})"
