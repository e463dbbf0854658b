"""Runs `tsoffset check`: one flow after the other, in the order in which a person would look."""

import time
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby

from rich.text import Text

from tsoffset.cluster import Cluster, Connect
from tsoffset.commands.check import clusters, configs, copies, groups, topics
from tsoffset.commands.check.clusters import machine
from tsoffset.commands.check.findings import Finding, Scope, Severity, cause_and_step
from tsoffset.commands.check.record_times import compared_times, read_record_times
from tsoffset.commands.check.rights import (
    Granting,
    missing_rights,
    source_rights,
    unnoticed_groups,
)
from tsoffset.commands.check.samples import MOST_TOPICS, sample_topics
from tsoffset.commands.check.survey import (
    SourceSurvey,
    SyncedTopic,
    TargetSurvey,
    survey_source,
    survey_target,
)
from tsoffset.commands.scope import require_match
from tsoffset.config.selection import Selection
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import ClusterSettings, FlowSettings, reverse_of
from tsoffset.kafka import kafka_cluster
from tsoffset.model import ClusterDescription, Side, TopicDescription
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output, plural
from tsoffset.terminal.report import Item, head, items, total


@dataclass(frozen=True, slots=True)
class CheckResult:
    findings: tuple[Finding, ...]
    unreachable: bool

    @property
    def exit_status(self) -> int:
        errors = (finding.severity is Severity.ERROR for finding in self.findings)
        return 3 if self.unreachable else int(any(errors))


def check(
    flows: Iterable[FlowSettings], connect: Connect, *, all_flows: Sequence[FlowSettings] = ()
) -> CheckResult:
    """Check each of `flows`; `all_flows` are those that may write the same topics."""
    found: list[Finding] = []
    unreachable = False
    with _Clusters(connect) as connections:
        for flow in flows:
            checking = _FlowCheck(flow, connections, all_flows)
            found += checking.findings()
            unreachable = unreachable or checking.unreachable
    return CheckResult(tuple(found), unreachable)


class _Connected:
    """A cluster with its description, which is requested once."""

    def __init__(self, settings: ClusterSettings, cluster: Cluster) -> None:
        self.settings = settings
        self.cluster = cluster

    @cached_property
    def description(self) -> ClusterDescription | ClusterUnreachable:
        try:
            return self.cluster.describe()
        except ClusterUnreachable as error:
            return error

    def topics(self) -> Collection[str]:
        if isinstance(self.description, ClusterUnreachable):
            raise self.description
        return self.cluster.topics().keys()


class _Clusters(ExitStack):
    """The clusters, shared by flows with the same cluster settings."""

    def __init__(self, connect: Connect) -> None:
        super().__init__()
        self._connect = connect
        self._open: list[_Connected] = []

    def of(self, settings: ClusterSettings) -> _Connected:
        for known in self._open:
            if known.settings == settings:
                return known
        self._open.append(_Connected(settings, self.enter_context(self._connect(settings))))
        return self._open[-1]


class _FlowCheck:
    def __init__(
        self, flow: FlowSettings, connections: _Clusters, all_flows: Sequence[FlowSettings]
    ) -> None:
        self.flow = flow
        self.unreachable = False
        self._clusters = connections
        self._all_flows = all_flows
        self._source, self._target = connections.of(flow.source), connections.of(flow.target)

    def findings(self) -> Iterator[Finding]:
        """All findings. If a cluster becomes unreachable, the part that needs it ends there."""
        flow = self.flow
        yield from clusters.settings_of(flow)
        source = yield from self._check_connection(self._source)
        target = yield from self._check_connection(self._target)
        if source is not None and target is not None:
            yield from clusters.same_cluster(flow, source, target)
        if source is not None:
            yield from self._part(flow.source, self._of_source(target))

    def _check_connection(
        self, one: _Connected
    ) -> Generator[Finding, None, ClusterDescription | None]:
        alias, answer = one.settings.alias, one.description
        if isinstance(answer, ClusterUnreachable):
            yield self._unreachable(alias, answer)
            return None
        yield from clusters.connection(self.flow.name, one.settings, answer)
        return answer

    def _part(self, cluster: ClusterSettings, findings: Iterator[Finding]) -> Iterator[Finding]:
        """The findings, until the cluster becomes unreachable."""
        try:
            yield from findings
        except ClusterUnreachable as error:
            yield self._unreachable(cluster.alias, error)

    def _unreachable(self, alias: str, error: ClusterUnreachable) -> Finding:
        self.unreachable = True
        return Scope(self.flow.name, alias).error("connection", *cause_and_step(str(error)))

    def _of_source(self, target: ClusterDescription | None) -> Iterator[Finding]:
        flow = self.flow
        survey = survey_source(flow, self._source.cluster)
        yield from groups.source_groups(flow, survey, self._all_flows)
        yield from topics.source_topics(flow, survey)
        granting = Granting(flow.name, flow.source, survey.rights.principal)
        yield from source_rights(flow, survey, granting)
        if target is not None:
            yield from self._part(flow.target, self._of_target(survey))
            yield from self._competing_flows(target, survey.synced)
            if (reverse := reverse_of(flow, self._all_flows)) is not None:
                yield from groups.replication_loop(flow, survey.synced, reverse)

    def _of_target(self, survey: SourceSurvey) -> Iterator[Finding]:
        flow, target = self.flow, self._target.cluster
        surveyed = survey_target(flow, target, survey)
        every, rights = self._target.topics(), surveyed.rights
        # The originals on the same cluster do not show how a replicator names copies.
        names = (
            () if clusters.is_same(self._source.description, self._target.description) else every
        )
        yield from topics.target_topics(flow, survey, surveyed, names)
        yield from self._part(flow.target, self._samples(survey, surveyed))
        yield from groups.target_groups(flow, surveyed, survey.listings)
        yield from topics.streams_applications(flow, survey, every)
        granting = Granting(flow.name, flow.target, rights.principal)
        of_topics = {topic.target: rights.topics[topic.target] for topic in survey.synced}
        yield from missing_rights(Side.TARGET, granting, of_topics, rights.groups)
        yield from unnoticed_groups(granting, rights)
        yield from groups.skipped_commits(flow, survey, surveyed.topics)
        yield from self._part(flow.target, self._configs(survey, surveyed))
        yield from groups.other_committer(flow, groups.checkpoints_seen(flow, target), _now_ms())

    def _samples(self, survey: SourceSurvey, surveyed: TargetSurvey) -> Iterator[Finding]:
        mirrored = [
            topic
            for topic in survey.synced
            if isinstance(described := surveyed.topics.get(topic.target), TopicDescription)
            and topic.partitions & described.partitions.keys()
        ]
        samples = sample_topics(self.flow, self._source.cluster, self._target.cluster, mirrored)
        yield from copies.sampled_copies(self.flow, samples, surveyed.stamps, len(mirrored))

    def _configs(self, survey: SourceSurvey, surveyed: TargetSurvey) -> Iterator[Finding]:
        pairs = [
            topic
            for topic in survey.synced
            if isinstance(surveyed.topics.get(topic.target), TopicDescription)
            and isinstance(survey.topics.get(topic.source), TopicDescription)
        ]
        of_source = self._source.cluster.topic_configs([topic.source for topic in pairs])
        of_target = self._target.cluster.topic_configs([topic.target for topic in pairs])
        yield from configs.compared_configs(
            self.flow,
            [
                configs.TopicConfigs(topic, of_source[topic.source], of_target[topic.target])
                for topic in pairs
            ],
            Granting(self.flow.name, self.flow.source, survey.rights.principal),
            Granting(self.flow.name, self.flow.target, surveyed.rights.principal),
            lacks_max_timestamp=clusters.lacks_max_timestamp(self._target.description),
        )
        times = read_record_times(self.flow, self._source.cluster, survey, pairs[:MOST_TOPICS])
        yield from compared_times(self.flow, times, of_target, _now_ms())

    def _competing_flows(
        self, target: ClusterDescription, synced: Sequence[SyncedTopic]
    ) -> Iterator[Finding]:
        for competing in self._all_flows:
            if competing.name == self.flow.name or not (competing.enabled and competing.commits):
                continue
            if competing.target.alias != self.flow.target.alias:
                answer = self._clusters.of(competing.target).description
                if not clusters.is_same(answer, target):
                    continue
            try:
                written = self._clusters.of(competing.source).topics()
            except ClusterUnreachable as error:
                yield groups.unknown_competing_flow(self.flow, competing, str(error))
            else:
                yield from groups.competing_flows(self.flow, synced, competing, written)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


_STYLES = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.ERROR: "bold red"}
_LABEL = max(map(len, Severity)) + 2


def finding_lines(findings: Sequence[Finding], width: int | None) -> Iterator[Text]:
    for flow, members in groupby(findings, key=lambda finding: finding.flow):
        yield head("configuration" if flow is None else f"flow {flow}")
        yield from items([_item(finding) for finding in members], width, below=_LABEL)
        yield Text()
    counts = Counter(finding.severity for finding in findings)
    errors, warnings = counts[Severity.ERROR], counts[Severity.WARNING]
    yield from total(
        f"check: {plural(errors, 'error')}, {plural(warnings, 'warning')}, "
        f"{counts[Severity.OK]} ok",
        width,
    )


def _item(finding: Finding) -> Item:
    label = Text(finding.severity.ljust(_LABEL), _STYLES[finding.severity])
    cluster = "" if finding.cluster is None else f"{finding.cluster}: "
    remedy = [] if finding.remedy is None else [f"-> {finding.remedy}"]
    return Item(label, cluster + finding.subject, [finding.finding, *remedy])


def run_check(selection: Selection, output: Output, notices: Notices) -> int:
    """Check the flows, print the findings and return the exit status. Raises UsageError if no
    group or topic matches; it prints the findings first, which may explain why."""
    with notices.with_progress("checking", selection.flows) as flows:
        result = check(flows, kafka_cluster, all_flows=selection.settings.flows)
    warnings = tuple(
        Scope(None).warning("configuration", warning) for warning in selection.settings.warnings
    )
    findings = warnings + tuple(machine(selection.settings.spark)) + result.findings
    output.show(Finding, findings, partial(finding_lines, findings))
    if not result.unreachable:
        require_match(selection, notices)
    return CheckResult(findings, result.unreachable).exit_status
