"""Checks one flow after the other, in the order in which a person would look."""

import time
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tsoffset.cluster import Cluster, Connect
from tsoffset.commands.check import clusters, configs, copies, groups, streams, topics
from tsoffset.commands.check.findings import Finding, Scope, Severity
from tsoffset.commands.check.rights import Granting, hidden, missing_rights, partial_listings
from tsoffset.commands.check.samples import MOST_TOPICS, sample_topics
from tsoffset.commands.check.survey import (
    RecordTimes,
    SourceSurvey,
    SyncedTopic,
    TargetSurvey,
    record_times,
    survey_source,
    survey_target,
    synced_topics,
)
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.loops import reverse_of
from tsoffset.flow.narrowing import written_groups, written_topics
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.model import ClusterDescription, Resource, Side, TopicDescription
from tsoffset.terminal.notices import Report


@dataclass(frozen=True, slots=True)
class CheckResult:
    """All findings, and whether a cluster could not be reached at all."""

    findings: tuple[Finding, ...]
    unreachable: bool

    @property
    def exit_status(self) -> int:
        """3 if a cluster is unreachable, 1 with an error, else 0."""
        if self.unreachable:
            return 3
        return int(any(finding.severity is Severity.ERROR for finding in self.findings))


def check(
    flows: Sequence[FlowSettings],
    connect: Connect,
    *,
    all_flows: Sequence[FlowSettings] = (),
    report: Report | None = None,
) -> CheckResult:
    """Check each of `flows`; `all_flows` are those that may write the same topics."""
    found: list[Finding] = []
    unreachable = False
    with _Clusters(connect) as connections:
        for done, flow in enumerate(flows):
            if report is not None:
                report(flow.name, done, len(flows))
            checking = _FlowCheck(flow, connections, all_flows)
            found += checking.findings()
            unreachable = unreachable or checking.unreachable
    return CheckResult(tuple(found), unreachable)


class _Clusters:
    """Connections and descriptions, shared by flows with the same cluster settings."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._stack = ExitStack()
        self._open: list[tuple[ClusterSettings, Cluster]] = []
        self._described: dict[int, ClusterDescription | ClusterUnreachable] = {}
        self._ahead_ms: dict[int, int | None] = {}

    def __enter__(self) -> "_Clusters":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def cluster(self, settings: ClusterSettings) -> Cluster:
        for known, cluster in self._open:
            if known == settings:
                return cluster
        cluster = self._stack.enter_context(self._connect(settings))
        self._open.append((settings, cluster))
        return cluster

    def description(self, settings: ClusterSettings) -> ClusterDescription | ClusterUnreachable:
        """The cluster's description, requested once; the error if it cannot be reached."""
        cluster = self.cluster(settings)
        if id(cluster) not in self._described:
            try:
                self._described[id(cluster)] = cluster.describe()
            except ClusterUnreachable as error:
                self._described[id(cluster)] = error
        return self._described[id(cluster)]

    def clock_ahead_ms(self, settings: ClusterSettings) -> int | None:
        """How far its clock is ahead of this host's, requested once; None if it does not tell."""
        cluster = self.cluster(settings)
        if id(cluster) not in self._ahead_ms:
            try:
                self._ahead_ms[id(cluster)] = cluster.clock_ahead_ms()
            except ClusterUnreachable:
                self._ahead_ms[id(cluster)] = None
        return self._ahead_ms[id(cluster)]

    def topics(self, settings: ClusterSettings) -> Collection[str]:
        """The names of its topics. Raises ClusterUnreachable."""
        answer = self.description(settings)
        if isinstance(answer, ClusterUnreachable):
            raise answer
        return self.cluster(settings).topics().keys()


class _FlowCheck:
    """The check of one flow."""

    def __init__(
        self, flow: FlowSettings, connections: _Clusters, all_flows: Sequence[FlowSettings]
    ) -> None:
        self.flow = flow
        self.unreachable = False
        self._clusters = connections
        self._all_flows = all_flows

    def findings(self) -> Iterator[Finding]:
        """All findings. If a cluster becomes unreachable, the part that needs it ends there."""
        flow = self.flow
        yield from clusters.settings_of(flow)
        source = yield from self._connected(flow.source)
        target = yield from self._connected(flow.target)
        if source is not None and target is not None:
            yield from clusters.same_cluster(flow, source, target)
        if source is not None:
            yield from self._part(flow.source, self._source(target))

    def _part(self, cluster: ClusterSettings, findings: Iterator[Finding]) -> Iterator[Finding]:
        """The findings, until the cluster becomes unreachable."""
        try:
            yield from findings
        except ClusterUnreachable as error:
            yield self._unreachable(cluster.alias, error)

    def _source(self, target: ClusterDescription | None) -> Iterator[Finding]:
        flow = self.flow
        survey = survey_source(flow, self._clusters.cluster(flow.source))
        synced = synced_topics(flow, survey.commits)
        yield from groups.source_groups(flow, survey, self._all_flows)
        yield from topics.source_topics(flow, survey, synced)
        yield from self._source_rights(survey)
        if target is not None:
            yield from self._part(flow.target, self._target(survey, synced))
            yield from self._competing_flows(target, synced)
            if (reverse := reverse_of(flow, self._all_flows)) is not None:
                yield from groups.replication_loop(flow, synced, reverse)

    def _connected(
        self, settings: ClusterSettings
    ) -> Generator[Finding, None, ClusterDescription | None]:
        answer = self._clusters.description(settings)
        if isinstance(answer, ClusterUnreachable):
            yield self._unreachable(settings.alias, answer)
            return None
        ahead_ms = self._clusters.clock_ahead_ms(settings)
        yield from clusters.connection(self.flow.name, settings, answer, ahead_ms)
        return answer

    def _target(self, survey: SourceSurvey, synced: Sequence[SyncedTopic]) -> Iterator[Finding]:
        flow = self.flow
        surveyed = survey_target(flow, self._clusters.cluster(flow.target), synced, survey.listings)
        every = self._clusters.topics(flow.target)
        yield from topics.target_topics(flow, survey.topics, surveyed, synced, every)
        yield from self._part(flow.target, self._samples(surveyed, synced))
        yield from groups.target_groups(flow, surveyed, survey.listings)
        yield from streams.streams_applications(flow, survey, synced, every)
        granting = Granting(flow.target, surveyed.rights.principal)
        at, rights = Scope(flow.name, flow.target.alias), surveyed.rights
        yield from missing_rights(at, Side.TARGET, granting, rights.topics, rights.groups)
        yield from groups.skipped_commits(flow, survey, surveyed.topics)
        yield from self._part(flow.target, self._configs(survey, surveyed, synced))
        now_ms = time.time_ns() // 1_000_000
        found = groups.checkpoints_seen(flow, self._clusters.cluster(flow.target))
        yield from groups.other_committer(flow, found, now_ms)

    def _configs(
        self, survey: SourceSurvey, surveyed: TargetSurvey, synced: Sequence[SyncedTopic]
    ) -> Iterator[Finding]:
        flow = self.flow
        pairs = [
            topic
            for topic in synced
            if isinstance(surveyed.topics.get(topic.target), TopicDescription)
            and isinstance(survey.topics.get(topic.source), TopicDescription)
        ]
        source, target = self._clusters.cluster(flow.source), self._clusters.cluster(flow.target)
        originals = source.topic_configs([topic.source for topic in pairs])
        copied = target.topic_configs([topic.target for topic in pairs])
        times = record_times(flow, source, survey, pairs[:MOST_TOPICS])
        compared = [
            configs.TopicConfigs(
                topic,
                originals[topic.source],
                copied[topic.target],
                times.get(topic.source, RecordTimes()),
            )
            for topic in pairs
        ]
        now_ms = time.time_ns() // 1_000_000
        granting = Granting(flow.target, surveyed.rights.principal)
        yield from configs.compared_configs(
            flow, compared, now_ms, Granting(flow.source, survey.rights.answer.principal), granting
        )
        described = self._clusters.description(flow.target)
        yield from configs.allowed_proofs(
            flow,
            compared,
            granting,
            lacks_max_timestamp=isinstance(described, ClusterDescription)
            and clusters.lacks_max_timestamp(described),
        )
        if self._clusters.clock_ahead_ms(flow.source) is None:
            yield from configs.newest_in_the_future(flow, compared, now_ms)

    def _source_rights(self, survey: SourceSurvey) -> Iterator[Finding]:
        flow, rights = self.flow, survey.rights
        at = Scope(flow.name, flow.source.alias)
        granting = Granting(flow.source, rights.answer.principal)
        yield from missing_rights(at, Side.SOURCE, granting, rights.topics, rights.groups)
        complete = not survey.listings.failed_brokers
        for resource, unseen, answers in (
            (Resource.TOPIC, rights.unseen_topics, rights.answer.topics),
            (Resource.GROUP, rights.unseen_groups, rights.answer.groups),
        ):
            yield from hidden(at, granting, resource, answers, unseen, complete=complete)
        written = {
            Resource.TOPIC: written_topics(flow.topic_filter),
            Resource.GROUP: written_groups(flow.group_filter),
        }
        open_ended = [resource for resource, names in written.items() if not names.only]
        yield from partial_listings(at, granting, rights.answer, rights.probe, open_ended)

    def _samples(self, surveyed: TargetSurvey, synced: Sequence[SyncedTopic]) -> Iterator[Finding]:
        flow = self.flow
        mirrored = [
            topic
            for topic in synced
            if isinstance(described := surveyed.topics.get(topic.target), TopicDescription)
            and topic.partitions & described.partitions.keys()
        ]
        source, target = self._clusters.cluster(flow.source), self._clusters.cluster(flow.target)
        samples = sample_topics(flow, source, target, mirrored)
        yield from copies.sampled_copies(flow, samples, surveyed.stamps, len(mirrored))

    def _competing_flows(
        self, target: ClusterDescription, synced: Sequence[SyncedTopic]
    ) -> Iterator[Finding]:
        for competing in self._all_flows:
            if competing.name == self.flow.name or not (competing.enabled and competing.commits):
                continue
            if not self._writes_to(competing, target):
                continue
            try:
                competing_topics = self._clusters.topics(competing.source)
            except ClusterUnreachable as error:
                yield groups.unknown_competing_flow(self.flow, competing, str(error))
            else:
                yield from groups.competing_flows(self.flow, synced, competing, competing_topics)

    def _writes_to(self, competing: FlowSettings, target: ClusterDescription) -> bool:
        if competing.target.alias == self.flow.target.alias:
            return True
        answer = self._clusters.description(competing.target)
        return (
            isinstance(answer, ClusterDescription)
            and answer.cluster_id is not None
            and answer.cluster_id == target.cluster_id
        )

    def _unreachable(self, alias: str, error: ClusterUnreachable) -> Finding:
        self.unreachable = True
        return clusters.unreachable(self.flow.name, alias, str(error))
