"""What the groups of a flow come to on both clusters (pure)."""

from collections.abc import Iterable, Iterator, Sequence

from tsoffset.commands.check.findings import Finding, Scope, cause_and_step, names
from tsoffset.commands.check.survey import (
    SourceSurvey,
    SyncedTopic,
    TargetSurvey,
    passing_groups,
    renamed,
)
from tsoffset.cycle.source_commits import SUPPORTED_GROUPS
from tsoffset.flow.loops import REMEDY, looped_topics
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Failed, GroupListing, GroupListings, GroupType
from tsoffset.terminal.output import counted

_FAILURES_NAMED = 20


def source_groups(
    flow: FlowSettings, survey: SourceSurvey, all_flows: Iterable[FlowSettings] = ()
) -> Iterator[Finding]:
    """Which groups pass the filters, of which types, and what their commits say. `all_flows` are
    those that may take what this one leaves out."""
    at = Scope(flow.name, flow.source.alias)
    yield from _silent_brokers(at, survey.listings)
    passing = passing_groups(flow, survey.listings)
    supported = [group for group in passing if group.type in SUPPORTED_GROUPS]
    found = f"{len(supported)} of {len(survey.listings.groups)} groups selected"
    takers = [flow, *(one for one in all_flows if one.source.alias == flow.source.alias)]
    left = [
        group
        for group in sorted(survey.listings.groups)
        if not any(one.enabled and one.group_filter.should_replicate_group(group) for one in takers)
    ]
    if left:
        found += f"; selected by no flow: {names(left)}"
    if supported:
        yield at.ok("groups", found)
    elif not survey.listings.groups:
        yield at.warning(
            "groups",
            "this user can see no consumer groups",
            "check the addresses, and that this user has DESCRIBE on the groups, unless groups"
            " will be created later",
        )
    else:
        yield at.warning(
            "groups",
            found,
            "correct groups and groups.exclude (or --groups), unless groups will be created later",
        )
    yield from _unsupported(at, passing)
    yield from _commits(flow, at, survey)


def _commits(flow: FlowSettings, at: Scope, survey: SourceSurvey) -> Iterator[Finding]:
    """Groups of which no commit could be read, and commits of the others that could not."""
    commits = sorted(survey.commits.items())
    # Another finding tells of those that one may not describe.
    failed = [
        (group, failure)
        for group, failure in commits
        if isinstance(failure, Failed) and survey.rights.groups[group] != frozenset()
    ]
    for group, failure in failed[:_FAILURES_NAMED]:
        yield at.failure(f"group {group}", failure)
    if (more := len(failed) - _FAILURES_NAMED) > 0:
        yield at.error(
            "groups",
            f"the committed offsets of {counted(more, 'more group')} cannot be read either",
            "fix the failures listed above",
        )
    for group, offsets in commits:
        for place, commit in () if isinstance(offsets, Failed) else sorted(offsets.items()):
            if isinstance(commit, Failed) and renamed(flow, place.topic) is not None:
                yield at.failure(f"group {group}, {place}", commit)


def target_groups(
    flow: FlowSettings, survey: TargetSurvey, source: GroupListings
) -> Iterator[Finding]:
    """Groups of the flow that the target knows: active ones are left alone."""
    at = Scope(flow.name, flow.target.alias)
    yield from _silent_brokers(at, survey.listings)
    known = [
        survey.listings.groups[group.group]
        for group in passing_groups(flow, source)
        if group.group in survey.listings.groups
    ]
    yield from _unsupported(at, known)
    yield from _other_types(at, known, source)
    active = [group.group for group in known if group.active and group.type in SUPPORTED_GROUPS]
    if active:
        yield at.ok(
            "groups",
            f"{counted(len(active), 'group')} have active members on the target ({names(active)})"
            " and are skipped (GROUP_ACTIVE)",
            "stop their consumers on the target if these groups should be synced",
        )


def competing_flows(
    flow: FlowSettings,
    synced: Sequence[SyncedTopic],
    competing: FlowSettings,
    competing_topics: Iterable[str],
) -> Iterator[Finding]:
    """Topics that another flow writes under the same name on the same target."""
    theirs = {renamed(competing, topic) for topic in competing_topics}
    shared = sorted(
        topic.target
        for topic in synced
        if topic.target in theirs
        and any(competing.group_filter.should_replicate_group(group) for group in topic.groups)
    )
    if shared:
        yield Scope(flow.name, flow.target.alias).warning(
            f"flow {competing.name}",
            f"also writes {counted(len(shared), 'topic')} ({names(shared)}): a group with"
            " committed offsets on both sources is skipped (SEVERAL_SOURCES)",
            "select each topic or group in one flow only, or use target names that differ",
        )


def replication_loop(
    flow: FlowSettings, synced: Sequence[SyncedTopic], reverse: FlowSettings
) -> Iterator[Finding]:
    """Topics that this flow and the one back both take under one name."""
    looped = looped_topics(flow, reverse, (topic.source for topic in synced))
    if looped:
        yield Scope(flow.name).warning(
            f"flow {reverse.name}",
            f"copies {counted(len(looped), 'topic')} ({names(looped)}) back under the same name: a"
            " replicator in both directions copies each record endlessly",
            REMEDY,
        )


def unknown_competing_flow(flow: FlowSettings, competing: FlowSettings, message: str) -> Finding:
    """Another flow into the same target whose source cannot be asked."""
    cause, _ = cause_and_step(message)
    return Scope(flow.name, competing.source.alias).warning(
        f"flow {competing.name}",
        f"may write the same topics, but its source cannot be checked ({cause})",
        f"make {competing.source.alias} reachable, or disable {competing.name}",
    )


def _silent_brokers(at: Scope, listings: GroupListings) -> Iterator[Finding]:
    for node, failed in sorted(listings.failed_brokers.items()):
        yield at.failure(f"broker {node}", failed)


def _unsupported(at: Scope, groups: Iterable[GroupListing]) -> Iterator[Finding]:
    odd = [
        f"{group.group} ({group.type})" for group in groups if group.type not in SUPPORTED_GROUPS
    ]
    if odd:
        yield at.warning(
            "groups",
            f"{counted(len(odd), 'group')} of a type that tsoffset does not sync: {names(odd)}"
            " (UNSUPPORTED_GROUP)",
            "exclude them with groups.exclude",
        )


def _other_types(
    at: Scope, known: Iterable[GroupListing], source: GroupListings
) -> Iterator[Finding]:
    """A share group and a consumer group of one name."""
    odd = [
        f"{group.group} ({group.type})"
        for group in known
        if group.type in SUPPORTED_GROUPS
        and (group.type is GroupType.SHARE) != (group.group in source.share_groups)
    ]
    if odd:
        yield at.warning(
            "groups",
            f"{counted(len(odd), 'group')} of another type than on the source: {names(odd)}"
            " (UNSUPPORTED_GROUP)",
            "rename them, or delete them on the target",
        )
