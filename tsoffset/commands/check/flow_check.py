"""The check of one flow after the other, in the order in which a person would look."""

from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tsoffset.cluster import Cluster
from tsoffset.commands.check import clusters, copies, groups, topics
from tsoffset.commands.check.findings import Finding, Severity
from tsoffset.commands.check.samples import sample_topics
from tsoffset.commands.check.survey import (
    SourceSurvey,
    SyncedTopic,
    TargetSurvey,
    survey_source,
    survey_target,
    synced_topics,
)
from tsoffset.commands.open_flow import Connect
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.model import ClusterDescription, TopicDescription
from tsoffset.terminal.progress import Report


@dataclass(frozen=True, slots=True)
class Checked:
    """All findings, and whether some cluster could not be reached at all."""

    findings: tuple[Finding, ...]
    unreachable: bool

    @property
    def exit_status(self) -> int:
        """3 where a cluster is unreachable, 1 for an error finding, else 0."""
        if self.unreachable:
            return 3
        return int(any(finding.severity is Severity.ERROR for finding in self.findings))


def check(
    flows: Sequence[FlowSettings],
    connect: Connect,
    *,
    all_flows: Sequence[FlowSettings] = (),
    report: Report | None = None,
) -> Checked:
    """Check each of `flows`; `all_flows` are those that may write the same topics."""
    found: list[Finding] = []
    unreachable = False
    with _Clusters(connect) as reach:
        for done, flow in enumerate(flows):
            if report is not None:
                report(flow.name, done, len(flows))
            checking = _FlowCheck(flow, reach, all_flows)
            found += checking.findings()
            unreachable = unreachable or checking.unreachable
    return Checked(tuple(found), unreachable)


class _Clusters:
    """Connections and descriptions, shared by the flows that use the same cluster alike."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._stack = ExitStack()
        self._open: list[tuple[ClusterSettings, Cluster]] = []
        self._described: dict[int, ClusterDescription | ClusterUnreachable] = {}

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
        """What the cluster says of itself, asked once; the error where it cannot be reached."""
        cluster = self.cluster(settings)
        if id(cluster) not in self._described:
            try:
                self._described[id(cluster)] = cluster.describe()
            except ClusterUnreachable as error:
                self._described[id(cluster)] = error
        return self._described[id(cluster)]

    def topics(self, settings: ClusterSettings) -> Collection[str]:
        """The names of its topics. Raises ClusterUnreachable."""
        answer = self.description(settings)
        if isinstance(answer, ClusterUnreachable):
            raise answer
        return self.cluster(settings).topics().keys()


class _FlowCheck:
    """The check of one flow, in the order in which a person would look."""

    def __init__(
        self, flow: FlowSettings, reach: _Clusters, all_flows: Sequence[FlowSettings]
    ) -> None:
        self.flow = flow
        self.unreachable = False
        self._reach = reach
        self._all_flows = all_flows

    def findings(self) -> Iterator[Finding]:
        """All findings; a cluster that goes away on the way ends the part that needs it."""
        flow = self.flow
        yield from clusters.settings_of(flow)
        source = yield from self._connected(flow.source)
        target = yield from self._connected(flow.target)
        if source is not None and target is not None:
            yield from clusters.same_cluster(flow, source, target)
        if source is not None:
            yield from self._part(flow.source, self._source(target))

    def _part(self, cluster: ClusterSettings, findings: Iterator[Finding]) -> Iterator[Finding]:
        """The findings, up to where the cluster goes away."""
        try:
            yield from findings
        except ClusterUnreachable as error:
            yield self._lost(cluster.alias, error)

    def _source(self, target: ClusterDescription | None) -> Iterator[Finding]:
        flow = self.flow
        survey = survey_source(flow, self._reach.cluster(flow.source))
        synced = synced_topics(flow, survey.commits)
        yield from groups.source_groups(flow, survey)
        yield from topics.source_topics(flow, survey, synced)
        if target is not None:
            yield from self._part(flow.target, self._target(survey, synced))
            yield from self._competing_flows(target, synced)

    def _connected(
        self, settings: ClusterSettings
    ) -> Generator[Finding, None, ClusterDescription | None]:
        answer = self._reach.description(settings)
        if isinstance(answer, ClusterUnreachable):
            yield self._lost(settings.alias, answer)
            return None
        yield from clusters.connection(self.flow.name, settings, answer)
        return answer

    def _target(self, survey: SourceSurvey, synced: Sequence[SyncedTopic]) -> Iterator[Finding]:
        flow = self.flow
        there = survey_target(flow, self._reach.cluster(flow.target), synced)
        yield from topics.target_topics(flow, survey.topics, there, synced)
        yield from self._part(flow.target, self._samples(there, synced))
        yield from groups.target_groups(flow, there, survey.listings)

    def _samples(self, there: TargetSurvey, synced: Sequence[SyncedTopic]) -> Iterator[Finding]:
        flow = self.flow
        mirrored = [
            topic
            for topic in synced
            if isinstance(described := there.topics.get(topic.target), TopicDescription)
            and topic.partitions & described.partitions.keys()
        ]
        source, target = self._reach.cluster(flow.source), self._reach.cluster(flow.target)
        samples = sample_topics(flow, source, target, mirrored)
        yield from copies.sampled_copies(flow, samples, there.stamps, len(mirrored))

    def _competing_flows(
        self, target: ClusterDescription, synced: Sequence[SyncedTopic]
    ) -> Iterator[Finding]:
        for competing in self._all_flows:
            if competing.name == self.flow.name or not (competing.enabled and competing.commits):
                continue
            if not self._writes_to(competing, target):
                continue
            try:
                theirs = self._reach.topics(competing.source)
            except ClusterUnreachable as error:
                yield groups.unknown_competing_flow(self.flow, competing, str(error))
            else:
                yield from groups.competing_flows(self.flow, synced, competing, theirs)

    def _writes_to(self, competing: FlowSettings, target: ClusterDescription) -> bool:
        if competing.target.alias == self.flow.target.alias:
            return True
        answer = self._reach.description(competing.target)
        return (
            isinstance(answer, ClusterDescription)
            and answer.cluster_id is not None
            and answer.cluster_id == target.cluster_id
        )

    def _lost(self, alias: str, error: ClusterUnreachable) -> Finding:
        self.unreachable = True
        return clusters.unreachable(self.flow.name, alias, str(error))
