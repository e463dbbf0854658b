"""What the groups of a flow come to on both clusters (pure)."""

from collections.abc import Iterable, Iterator, Sequence

from tsoffset.commands.check.findings import (
    Finding,
    Severity,
    cause_and_step,
    names,
    of_failure,
)
from tsoffset.commands.check.survey import SourceSurvey, SyncedTopic, TargetSurvey, renamed
from tsoffset.cycle.source_commits import SUPPORTED_GROUPS
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Failed, GroupListing, GroupListings
from tsoffset.terminal.output import counted

_FAILURES_NAMED = 20


def source_groups(flow: FlowSettings, survey: SourceSurvey) -> Iterator[Finding]:
    """Which groups pass the filters, of which types, and what their commits say."""
    alias = flow.source.alias
    yield from _silent_brokers(flow.name, alias, survey.listings)
    passing = passing_groups(flow, survey.listings)
    supported = [group for group in passing if group.type in SUPPORTED_GROUPS]
    found = f"passing the filters: {len(supported)} of {len(survey.listings.groups)}"
    if supported:
        yield Finding(Severity.OK, flow.name, alias, "groups", found)
    else:
        yield Finding(
            Severity.WARNING,
            flow.name,
            alias,
            "groups",
            found,
            "correct groups and groups.exclude (or --groups), unless groups are still to come",
        )
    yield from _unsupported(flow.name, alias, passing)
    failed = {
        group: offsets for group, offsets in survey.commits.items() if isinstance(offsets, Failed)
    }
    for group, failure in sorted(failed.items())[:_FAILURES_NAMED]:
        yield of_failure(flow.name, alias, f"group {group}", failure)
    if (more := len(failed) - _FAILURES_NAMED) > 0:
        yield Finding(
            Severity.ERROR,
            flow.name,
            alias,
            "groups",
            f"the commits of {counted(more, 'further group')} cannot be read either",
            "remedy the failures named",
        )
    for group, offsets in sorted(survey.commits.items()):
        if not isinstance(offsets, Failed):
            for place, commit in sorted(offsets.items()):
                if isinstance(commit, Failed) and renamed(flow, place.topic) is not None:
                    yield of_failure(flow.name, alias, f"group {group}, {place}", commit)


def target_groups(
    flow: FlowSettings, survey: TargetSurvey, source: GroupListings
) -> Iterator[Finding]:
    """Groups of the flow that the target knows: active ones are left alone."""
    alias = flow.target.alias
    yield from _silent_brokers(flow.name, alias, survey.listings)
    known = [
        survey.listings.groups[group.group]
        for group in passing_groups(flow, source)
        if group.group in survey.listings.groups
    ]
    yield from _unsupported(flow.name, alias, known)
    active = [group.group for group in known if group.active and group.type in SUPPORTED_GROUPS]
    if active:
        yield Finding(
            Severity.OK,
            flow.name,
            alias,
            "groups",
            f"{counted(len(active), 'group')} have members here ({names(active)}): they are left "
            "alone (GROUP_ACTIVE)",
            "stop their consumers on the target if they are to follow the source",
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
        yield Finding(
            Severity.WARNING,
            flow.name,
            flow.target.alias,
            f"flow {competing.name}",
            f"writes {counted(len(shared), 'topic')} ({names(shared)}) too: a group with commits "
            "on both sources is skipped (SEVERAL_SOURCES)",
            "leave each topic or group to one flow, or give the flows names that differ",
        )


def unknown_competing_flow(flow: FlowSettings, competing: FlowSettings, message: str) -> Finding:
    """Another flow into the same target whose source cannot be asked."""
    cause, _ = cause_and_step(message)
    return Finding(
        Severity.WARNING,
        flow.name,
        competing.source.alias,
        f"flow {competing.name}",
        f"may write the same topics, and its source cannot be asked ({cause})",
        f"make {competing.source.alias} reachable, or disable {competing.name}",
    )


def passing_groups(flow: FlowSettings, listings: GroupListings) -> list[GroupListing]:
    """The groups that pass the flow's filter, by name."""
    return [
        group
        for name, group in sorted(listings.groups.items())
        if flow.group_filter.should_replicate_group(name)
    ]


def _silent_brokers(flow: str, alias: str, listings: GroupListings) -> Iterator[Finding]:
    for node, failed in sorted(listings.failed_brokers.items()):
        yield of_failure(flow, alias, f"broker {node}", failed)


def _unsupported(flow: str, alias: str, groups: Iterable[GroupListing]) -> Iterator[Finding]:
    odd = [
        f"{group.group} ({group.type})" for group in groups if group.type not in SUPPORTED_GROUPS
    ]
    if odd:
        yield Finding(
            Severity.WARNING,
            flow,
            alias,
            "groups",
            f"{counted(len(odd), 'group')} of a type that is not synced: {names(odd)} "
            "(UNSUPPORTED_GROUP)",
            "exclude them by groups.exclude",
        )
