"""Which commits a flow syncs: groups listed and filtered, source commits read and renamed."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tsoffset.cluster import Cluster, committed_columns
from tsoffset.flow.policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    Renaming,
    target_topic,
)
from tsoffset.flow.settings import FlowSettings
from tsoffset.logs import hide_secrets
from tsoffset.model import (
    ClusterDescription,
    CommittedOffset,
    Failed,
    FailureKind,
    GroupListings,
    GroupOffsets,
    GroupType,
    Reason,
    Skipped,
    TopicPartition,
)
from tsoffset.threads import in_thread

# Groups of these types are synced only to groups of these types, share groups only to share groups.
CONSUMER_GROUPS = frozenset(
    {GroupType.CLASSIC, GroupType.CONSUMER, GroupType.STREAMS, GroupType.UNKNOWN}
)


@dataclass(frozen=True, slots=True)
class GroupWork:
    """One group to sync: its type on the source, and whether it has members on the target."""

    group: str
    type: GroupType = GroupType.CLASSIC
    target_type: GroupType | None = None
    target_active: bool = False


@dataclass(frozen=True, slots=True)
class SourceCommit:
    """The commit of a group on the source for one partition that is synced.

    `verdict` is set where it is already known that nothing can be committed. A group that
    failed before its partitions were known has one, with `partition` and `target` None.
    `is_remote_topic` and `failback` are what the replication policy says of the topic.
    `is_share_group` and `acknowledged` are as in the table SOURCE_COMMITS.
    """

    group: str
    partition: TopicPartition | None
    committed: CommittedOffset | None
    target: TopicPartition | None
    is_remote_topic: bool = False
    failback: bool = False
    target_active: bool = False
    verdict: Skipped | Failed | None = None
    is_share_group: bool = False
    acknowledged: int | None = None


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a cycle starts from.

    `failures` say which groups could not be listed (those of a broker) or selected; `warnings` what
    a person should know although nothing failed. `cluster_ids` are those of source and target.
    """

    groups: tuple[GroupWork, ...]
    failures: tuple[Failed, ...] = ()
    warnings: tuple[str, ...] = ()
    cluster_ids: tuple[str | None, str | None] = (None, None)


@dataclass(frozen=True, slots=True)
class CompetingFlow:
    """Another enabled flow into the same target, and its source."""

    flow: FlowSettings
    source: Cluster


def preflight(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    *,
    list_groups: Callable[[], GroupListings] | None = None,
) -> Preflight:
    """List and filter the groups of a flow, both clusters asked at once. Raises ClusterUnreachable.

    `list_groups` returns the source's groups; by default, the source is asked.
    """
    asked = in_thread(partial(_describe_with_groups, target, target.groups))
    described = {}
    described[source.alias], here = _describe_with_groups(source, list_groups or source.groups)
    described[target.alias], there = asked.result()
    selected, broken = selected_groups(flow, here.groups)
    failures = (*here.failures, *there.failures, *broken.values())
    warnings = [
        f"cluster {alias}: {address} does not answer, or another cluster does; remove it from "
        f"{alias}.bootstrap.servers or repair it"
        for alias, description in described.items()
        for address in description.dead_addresses
    ]
    return Preflight(
        tuple(
            GroupWork(
                group,
                here.groups[group].type,
                there.groups[group].type if group in there.groups else None,
                group in there.groups and there.groups[group].active,
            )
            for group in selected
        ),
        failures,
        tuple(warnings),
        (described[source.alias].cluster_id, described[target.alias].cluster_id),
    )


def _describe_with_groups(
    cluster: Cluster, list_groups: Callable[[], GroupListings]
) -> tuple[ClusterDescription, GroupListings]:
    """The cluster and its groups, which are listed while its addresses are connected to."""
    calls: list[Callable[[], Any]] = [cluster.describe, list_groups]
    described, groups = cluster.together(calls)
    return described, groups


def selected_groups(
    flow: FlowSettings, groups: Iterable[str]
) -> tuple[list[str], dict[str, Failed]]:
    """The groups that the flow syncs, sorted; and those for which a filter of the user's own
    raised an error."""
    selected, failed = [], {}
    for group in sorted(groups):
        try:
            if flow.group_filter.should_replicate_group(group):
                selected.append(group)
        except Exception as error:
            what = f"select group {group}, flow {flow.name}: the group filter"
            failed[group] = _broken_class(what, error)
    return selected, failed


def _broken_class(what: str, error: Exception) -> Failed:
    cause = hide_secrets(f"{type(error).__name__}: {error}")
    return Failed(
        FailureKind.INTERNAL,
        f"{what} raised {cause}; correct the class that the configuration names",
    )


def renaming_of(flow: FlowSettings, topic: str) -> Renaming | None:
    """What a source topic is on the target; None where the flow does not sync it."""
    if not flow.topic_filter.should_replicate_topic(topic):
        return None
    return target_topic(flow.policy, flow.source.alias, flow.target.alias, topic)


def renamings_of(
    flow: FlowSettings, topics: Iterable[str]
) -> tuple[dict[str, Renaming | None], dict[str, Failed]]:
    """What each source topic is on the target, None where it is not synced; and the topics for
    which a filter or policy of the user's own raised; the other topics go on."""
    renamings: dict[str, Renaming | None] = {}
    failed = {}
    for topic in topics:
        try:
            renamings[topic] = renaming_of(flow, topic)
        except Exception as error:
            what = (
                f"name topic {topic}, flow {flow.name}: the topic filter or the replication policy"
            )
            failed[topic] = _broken_class(what, error)
            renamings[topic] = None
    return renamings, failed


def _renamings(
    flow: FlowSettings, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Renaming]:
    """Which of the source's partitions the flow syncs, in order, and the names of their topics on
    the target."""
    in_order = sorted(partitions)
    renamings, _ = renamings_of(flow, dict.fromkeys(one.topic for one in in_order))
    found = {one: renamings[one.topic] for one in in_order}
    return {one: renaming for one, renaming in found.items() if renaming is not None}


class Claims:
    """Which target partitions other flows write for the same group."""

    def __init__(
        self,
        competing_flows: Sequence[CompetingFlow],
        groups: Sequence[str],
        share_groups: Collection[str] = (),
    ) -> None:
        self._competing_flows = competing_flows
        self._groups = groups
        self._share_groups = share_groups
        self._offsets: dict[str, Mapping[str, GroupOffsets | Failed]] = {}
        self._claimed: dict[tuple[str, str], frozenset[TopicPartition]] = {}
        self._may_write: dict[tuple[str, Renaming], bool] = {}

    def may_be_on(self, renaming: Renaming) -> bool:
        """Whether another flow may write the topic that `renaming` names on the target, too."""
        return any(self._may_be_written(competing, renaming) for competing in self._competing_flows)

    def _may_be_written(self, competing: CompetingFlow, renaming: Renaming) -> bool:
        key = (competing.flow.name, renaming)
        if key not in self._may_write:
            self._may_write[key] = _may_write(competing.flow, renaming)
        return self._may_write[key]

    def on(self, group: str, target: TopicPartition, renaming: Renaming) -> Skipped | None:
        """The skip of a partition that another flow writes for the group, too: the larger of the
        two offsets would skip records of the other source. None where no other flow does."""
        for competing in self._competing_flows:
            if not self._may_be_written(competing, renaming):
                continue
            offsets = self._of(competing).get(group, {})
            if isinstance(offsets, Failed):
                why = f"may write it, too, and its offsets cannot be read ({offsets.message})"
            elif target in self._targets(competing, group, offsets):
                why = "writes it, too"
            else:
                continue
            return Skipped(
                Reason.SEVERAL_SOURCES,
                f"{target} of group {group}: flow {competing.flow.name} {why}; select the topic "
                "or the group in one flow only, or use target names that differ",
            )
        return None

    def _of(self, competing: CompetingFlow) -> Mapping[str, GroupOffsets | Failed]:
        name = competing.flow.name
        if name not in self._offsets:
            groups, failed = selected_groups(competing.flow, self._groups)
            found = committed_columns(
                competing.source,
                groups,
                share_groups=self._share_groups,
                require_stable=False,
            )
            self._offsets[name] = {**found.by_group(), **failed}
        return self._offsets[name]

    def _targets(
        self, competing: CompetingFlow, group: str, offsets: GroupOffsets
    ) -> frozenset[TopicPartition]:
        key = (competing.flow.name, group)
        if key not in self._claimed:
            self._claimed[key] = frozenset(
                TopicPartition(renaming.topic, partition.partition)
                for partition, renaming in _renamings(competing.flow, offsets).items()
            )
        return self._claimed[key]


def _may_write(competing: FlowSettings, renaming: Renaming) -> bool:
    """Whether the competing flow may write the topic that `renaming` names on the target, too.

    False if no topic of its source becomes that topic: then its commits need not be read. Also
    false if it could only fail back to a copy that this flow makes: then the competing flow skips
    these rows itself, so this flow needs nothing from its source. Always true if it has a custom
    policy, whose names cannot be traced back.
    """
    policy = competing.policy
    if type(policy) not in (DefaultReplicationPolicy, IdentityReplicationPolicy):
        return True
    return is_written_by(competing, renaming.topic, by_failback=renaming.failback)


def is_written_by(flow: FlowSettings, topic: str, *, by_failback: bool) -> bool:
    """Whether the flow commits on `topic` of its target, because some topic name of the source
    becomes it; the source need not have that topic. `by_failback`: a copy of `topic` on the source
    counts, too."""
    policy, alias = flow.policy, flow.source.alias
    origins = {topic.removeprefix(policy.format_remote_topic(alias, ""))}
    # A policy of the user's own may name copies in another way.
    origins.add(policy.upstream_topic(topic) or topic)
    if by_failback:
        origins.add(policy.format_remote_topic(flow.target.alias, topic))
    theirs = _renamings(flow, [TopicPartition(origin, 0) for origin in origins])
    return any(one.topic == topic for one in theirs.values())
