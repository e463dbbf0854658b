"""Findings on the groups of a flow: on both clusters, in other flows, in checkpoints (pure)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tsoffset.cluster import Cluster
from tsoffset.commands.check.configs import duration
from tsoffset.commands.check.findings import Finding, Scope, cause_and_step
from tsoffset.commands.check.survey import (
    SourceSurvey,
    SyncedTopic,
    TargetSurvey,
    passing_groups,
    target_name,
)
from tsoffset.cycle.source_commits import selected_groups
from tsoffset.flow.policy import internal_topics
from tsoffset.flow.settings import LOOP_REMEDY, FlowSettings, looped_topics
from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    CommittedOffset,
    Failed,
    FailureKind,
    GroupListings,
    GroupType,
    LogRange,
    Reason,
    TopicDescription,
)
from tsoffset.replicators.checkpoints import read_checkpoints
from tsoffset.terminal.output import abridge, by_name, plural


def source_groups(
    flow: FlowSettings, survey: SourceSurvey, all_flows: Iterable[FlowSettings] = ()
) -> Iterator[Finding]:
    """Report which groups are selected, of which types, and which committed offsets are unreadable.
    `all_flows` are the flows that may select the other groups."""
    at = Scope(flow.name, flow.source.alias)
    yield from _unlisted_groups(at, survey.listings)
    passing, broken = selected_groups(flow, survey.listings.groups)
    for group, failure in broken.items():
        yield at.failure(f"group {group}", failure)
    found = f"{len(passing)} of {len(survey.listings.groups)} groups selected"
    left = survey.listings.groups.keys() - broken.keys()
    for one in (flow, *all_flows):
        if one.enabled and one.source.alias == flow.source.alias:
            left -= set(selected_groups(one, left)[0])
    if left:
        found += f"; selected by no flow: {abridge(sorted(left))}"
    if passing:
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
    commits = sorted(survey.commits.items())
    # Another finding reports the groups that this principal may not describe.
    failed: defaultdict[FailureKind, dict[str, Failed]] = defaultdict(dict)
    for group, offsets in commits:
        if isinstance(offsets, Failed) and survey.rights.groups[group] != frozenset():
            failed[offsets.kind][group] = offsets
    for of_kind in failed.values():
        first = next(iter(of_kind.values()))
        yield at.failure(f"{plural(len(of_kind), 'group')} ({abridge([*of_kind])})", first)
    for group, offsets in commits:
        for partition, commit in () if isinstance(offsets, Failed) else sorted(offsets.items()):
            if isinstance(commit, Failed) and target_name(flow, partition.topic) is not None:
                yield at.failure(f"group {group}, {partition}", commit)


def target_groups(
    flow: FlowSettings, survey: TargetSurvey, source: GroupListings
) -> Iterator[Finding]:
    at = Scope(flow.name, flow.target.alias)
    yield from _unlisted_groups(at, survey.listings)
    known = [
        survey.listings.groups[group.group]
        for group in passing_groups(flow, source)
        if group.group in survey.listings.groups
    ]
    other = [
        f"{group.group} ({group.type})"
        for group in known
        if (group.type is GroupType.SHARE) != (group.group in source.share_groups)
    ]
    if other:
        yield at.warning(
            "groups",
            f"{plural(len(other), 'group')} of another type than on the source: {abridge(other)}"
            " (UNSUPPORTED_GROUP)",
            "rename them, or delete them on the target",
        )
    active = [group.group for group in known if group.active]
    if active:
        yield at.ok(
            "groups",
            f"{plural(len(active), 'group')} skipped (GROUP_ACTIVE) because of active members on"
            f" the target: {abridge(active)}",
            "stop their consumers on the target if these groups should be synced",
        )


def competing_flows(
    flow: FlowSettings,
    synced: Sequence[SyncedTopic],
    competing: FlowSettings,
    competing_topics: Iterable[str],
) -> Iterator[Finding]:
    written = {target_name(competing, topic) for topic in competing_topics}
    shared = sorted(
        topic.target
        for topic in synced
        if topic.target in written and selected_groups(competing, topic.groups)[0]
    )
    if shared:
        yield Scope(flow.name, flow.target.alias).warning(
            f"flow {competing.name}",
            f"also writes {plural(len(shared), 'topic')} ({abridge(shared)}): a group with"
            " committed offsets on both sources is skipped (SEVERAL_SOURCES)",
            "select each topic or group in one flow only, or use target names that differ",
        )


def replication_loop(
    flow: FlowSettings, synced: Sequence[SyncedTopic], reverse: FlowSettings
) -> Iterator[Finding]:
    looped = looped_topics(flow, reverse, (topic.source for topic in synced))
    if looped:
        yield Scope(flow.name).warning(
            f"flow {reverse.name}",
            f"copies {plural(len(looped), 'topic')} ({abridge(looped)}) back under the same name: a"
            " replicator in both directions copies each record endlessly",
            LOOP_REMEDY,
        )


def unknown_competing_flow(flow: FlowSettings, competing: FlowSettings, message: str) -> Finding:
    cause, _ = cause_and_step(message)
    return Scope(flow.name, competing.source.alias).warning(
        f"flow {competing.name}",
        f"may write the same topics, but its source cannot be checked ({cause})",
        f"make {competing.source.alias} reachable, or disable {competing.name}",
    )


def _unlisted_groups(at: Scope, listings: GroupListings) -> Iterator[Finding]:
    for node, failed in sorted(listings.failed_brokers.items()):
        yield at.failure(f"broker {node}", failed)
    if listings.leaderless is not None:
        yield at.failure(f"topic {GROUP_OFFSETS_TOPIC}", listings.leaderless)


def skipped_commits(
    flow: FlowSettings, survey: SourceSurvey, target: Mapping[str, TopicDescription | Failed]
) -> Iterator[Finding]:
    """Report committed offsets that no cycle can translate, whatever their records are, and what
    auto.offset.reset means for their groups."""
    found: list[tuple[str, Reason]] = []
    for group, offsets in survey.commits.items():
        for partition, commit in () if isinstance(offsets, Failed) else offsets.items():
            topic, log = target_name(flow, partition.topic), survey.logs.get(partition)
            if topic is None or not isinstance(commit, CommittedOffset):
                continue
            copy = target.get(topic)
            if isinstance(copy, Failed) and not copy.missing:
                continue
            if not isinstance(copy, TopicDescription) or partition.partition not in copy.partitions:
                found.append((group, Reason.TARGET_MISSING))
            elif isinstance(log, LogRange) and commit.offset < log.start:
                found.append((group, Reason.EXPIRED))
            elif isinstance(log, LogRange) and commit.offset > log.end:
                found.append((group, Reason.PAST_LOG_END))
    if found:
        reasons: Counter[str] = Counter(reason for _, reason in found)
        groups = sorted({group for group, _ in found})
        yield Scope(flow.name, flow.source.alias).ok(
            "auto.offset.reset",
            f"{plural(reasons.total(), 'committed offset')} will be skipped{by_name(reasons)}: on"
            f" the target the consumers of {abridge(groups)} start at their auto.offset.reset",
            "set auto.offset.reset to earliest on the target, which re-reads records; latest,"
            " Kafka's default, skips them",
        )


# MirrorMaker 2 writes checkpoints of groups that moved, by default once a minute.
_RECENT_MS = 15 * 60_000
_LAST_RECORDS = 20_000


def checkpoints_seen(flow: FlowSettings, target: Cluster) -> dict[str, int]:
    """The flow's groups at the end of its checkpoints topic, with the time of the newest checkpoint
    of each in milliseconds; none if the topic does not exist or cannot be read. Raises
    ClusterUnreachable."""
    found = read_checkpoints(
        target,
        internal_topics(flow.policy).checkpoints_topic(flow.source.alias),
        wanted=lambda key: bool(selected_groups(flow, [key.group])[0]),
        committed={},
        last=_LAST_RECORDS,
    )
    groups: dict[str, int] = {}
    for key, checkpoint in found.newest.items():
        groups[key.group] = max(groups.get(key.group, 0), checkpoint.timestamp_ms or 0)
    return groups


def other_committer(flow: FlowSettings, seen: Mapping[str, int], now_ms: int) -> Iterator[Finding]:
    """Report that MirrorMaker 2 writes checkpoints of the same groups now; `seen` is from
    `checkpoints_seen` (pure)."""
    moving = {group: stamp for group, stamp in seen.items() if now_ms - stamp < _RECENT_MS}
    if not moving:
        return
    newest_ms = max(0, now_ms - max(moving.values()))
    writes = (
        f"MirrorMaker 2 writes checkpoints of {plural(len(moving), 'group')} of this flow "
        f"({abridge(sorted(moving))}), the newest {duration(newest_ms)} ago"
    )
    at = Scope(flow.name, flow.target.alias)
    topic = internal_topics(flow.policy).checkpoints_topic(flow.source.alias)
    if flow.sync_enabled:
        yield at.warning(
            f"topic {topic}",
            f"{writes}, and with sync.group.offsets.enabled = true in this file it also commits"
            " them: the higher of both offsets stays, even if MirrorMaker 2's skips records",
            "remove sync.group.offsets.enabled from the configuration that MirrorMaker 2 reads",
        )
    else:
        yield at.ok(
            f"topic {topic}",
            writes,
            "make sure that its sync.group.offsets.enabled is not true; `tsoffset compare` shows"
            " the differences",
        )
