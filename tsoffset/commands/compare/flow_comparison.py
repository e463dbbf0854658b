"""Comparing a flow: MirrorMaker 2's checkpoints, the target's commits and our translations.

It reads what the target groups have and the newest checkpoints, and only then what the groups
have committed on the source: so a checkpoint past our translation is past it, and not merely
younger than the commit that we translate.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tsoffset.cluster import Cluster, all_failed
from tsoffset.commands.compare.checkpoint import CheckpointKey
from tsoffset.commands.compare.checkpoints import Checkpoints, read_checkpoints
from tsoffset.commands.compare.judgement import (
    ComparedPair,
    Verdict,
    compared,
    of_repeats,
)
from tsoffset.commands.compare.repeats import Span, come_again
from tsoffset.commands.open_flow import Connect, OpenFlow, open_flow
from tsoffset.cycle.settle import failed_row
from tsoffset.cycle.source_commits import committed_offsets, preflight
from tsoffset.cycle.turns import Settlement, decided
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.policy import internal_topics, target_topic
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.model import (
    CommittedOffset,
    Failed,
    GroupOffsets,
    OutcomeKind,
    Row,
)
from tsoffset.rule.decide import SourceCommit, answer_of
from tsoffset.terminal.output import counted
from tsoffset.terminal.progress import Report


@dataclass(frozen=True, slots=True)
class Compared:
    """One flow compared: its pairs by group, topic and partition.

    `warnings` are sentences for a person: no checkpoints topic, records in it that are none.
    `unreachable` is true where a cluster could not be reached at all; the flow then has one
    failed pair without a group.
    """

    flow: str
    pairs: tuple[ComparedPair, ...]
    warnings: tuple[str, ...] = ()
    unreachable: bool = False

    @property
    def exit_status(self) -> int:
        """3 where a cluster is unreachable, 1 for a failed pair, else 0."""
        if self.unreachable:
            return 3
        return int(any(pair.verdict is Verdict.FAILED for pair in self.pairs))


def compare(
    flows: Sequence[FlowSettings],
    connect: Connect,
    *,
    settings: Settings,
    report: Report | None = None,
) -> Iterator[Compared]:
    """Compare each of `flows`, one after the other; `settings` tell of their competing flows."""
    for done, flow in enumerate(flows):
        if report is not None:
            report(flow.name, done, len(flows))
        with open_flow(flow, connect, settings) as opened:
            comparison = _Comparison(opened)
            try:
                pairs = comparison.pairs()
            except ClusterUnreachable as error:
                failed = all_failed(error)
                lost = compared(failed_row(flow.name, failed), None, None)
                yield Compared(flow.name, (lost,), tuple(comparison.warnings), unreachable=True)
                continue
        yield Compared(flow.name, tuple(sorted(pairs, key=_place)), tuple(comparison.warnings))


def _place(pair: ComparedPair) -> tuple[str, str, int]:
    partition = -1 if pair.partition is None else pair.partition
    return pair.group or "", pair.source_topic or "", partition


@dataclass(slots=True)
class _Comparison:
    """One flow under comparison."""

    opened: OpenFlow
    warnings: list[str] = field(default_factory=list)

    @property
    def flow(self) -> FlowSettings:
        return self.opened.settings

    def pairs(self) -> list[ComparedPair]:
        """Read, translate, compare. Raises ClusterUnreachable."""
        flow, source, target = self.flow, self.opened.source, self.opened.target
        start = preflight(flow, source, target)
        self.warnings += start.warnings
        names = [work.group for work in start.groups]
        current = committed_offsets(target, names, require_stable=True)
        theirs = self._checkpoints(target, current)
        commits = self.opened.commits(start.groups)
        judged = [self._pair(one, current, theirs) for one in self.opened.translated(commits)]
        spans = [_span(commit, pair) for commit, pair in zip(commits, judged, strict=True)]
        repeated = come_again(
            [span for span in spans if span is not None],
            source,
            target,
            isolation=flow.isolation,
            match=flow.translation.match,
        )
        return [
            *(compared(failed_row(flow.name, failure), None, None) for failure in start.failures),
            *(
                of_repeats(pair) if span in repeated else pair
                for pair, span in zip(judged, spans, strict=True)
            ),
            *self._without_commits(commits, target, theirs),
        ]

    def _checkpoints(
        self, target: Cluster, current: Mapping[str, GroupOffsets | Failed]
    ) -> Checkpoints:
        flow = self.flow
        topic = internal_topics(flow.policy).checkpoints_topic(flow.source.alias)
        committed = {
            CheckpointKey(group, place): commit.offset
            for group, offsets in current.items()
            if not isinstance(offsets, Failed)
            for place, commit in offsets.items()
            if isinstance(commit, CommittedOffset)
        }
        found = read_checkpoints(
            target,
            topic,
            wanted=lambda key: flow.group_filter.should_replicate_group(key.group),
            committed=committed,
        )
        where = f"flow {flow.name}: {topic} on {target.alias}"
        if found.missing:
            self.warnings.append(
                f"{where} does not exist, so there is nothing to compare with; let MirrorMaker 2's "
                "checkpoint connector run (emit.checkpoints.enabled), or give this file the "
                "replication.policy settings that it runs with"
            )
        if found.malformed:
            self.warnings.append(
                f"{where}: {counted(found.malformed, 'record')} left out that are no checkpoints; "
                "look who else writes there"
            )
        return found

    def _pair(
        self,
        settlement: Settlement,
        current: Mapping[str, GroupOffsets | Failed],
        theirs: Checkpoints,
    ) -> ComparedPair:
        commit, position = settlement.commit, settlement.position
        row = decided(self.flow, settlement, _current_of(commit, current))
        key = None if commit.target is None else CheckpointKey(commit.group, commit.target)
        return compared(
            row,
            answer_of(row, position),
            None if key is None else theirs.newest.get(key),
            target_range=None if position is None else position.target_range,
            committed_once=key in theirs.once,
            failed=theirs.failures[0] if theirs.failures else None,
        )

    def _without_commits(
        self, commits: Sequence[SourceCommit], target: Cluster, theirs: Checkpoints
    ) -> list[ComparedPair]:
        """Checkpoints of groups that have no commit on the source any more."""
        known = {CheckpointKey(commit.group, commit.target) for commit in commits if commit.target}
        # Of a group that failed as a whole nothing is known.
        failed = {commit.group for commit in commits if commit.target is None}
        left = {
            key: topic
            for key in theirs.newest
            if key not in known
            and key.group not in failed
            and (topic := self._source_topic(key.target.topic)) is not None
        }
        current = committed_offsets(
            target, sorted({key.group for key in left}), require_stable=True
        )
        pairs = []
        for key, topic in left.items():
            offsets = current[key.group]
            commit = None if isinstance(offsets, Failed) else offsets.get(key.target)
            row = Row(
                flow=self.flow.name,
                group=key.group,
                source_topic=topic,
                partition=key.target.partition,
                source_offset=None,
                source_timestamp_ms=None,
                target_topic=key.target.topic,
                target_offset=None,
                current_target_offset=commit.offset
                if isinstance(commit, CommittedOffset)
                else None,
                outcome=OutcomeKind.SKIPPED,
                message="the group has no commit on the source now: it expired, or was deleted",
            )
            pairs.append(compared(row, None, theirs.newest[key], committed_once=key in theirs.once))
        return pairs

    def _source_topic(self, topic: str) -> str | None:
        """The source's name of a target topic that the flow syncs; None for others."""
        flow = self.flow
        here, there = flow.source.alias, flow.target.alias
        for name in (
            flow.policy.upstream_topic(topic),
            flow.policy.format_remote_topic(there, topic),
        ):
            if name is None or not flow.topic_filter.should_replicate_topic(name):
                continue
            renaming = target_topic(flow.policy, here, there, name)
            if renaming is not None and renaming.topic == topic:
                return name
        return None


def _current_of(
    commit: SourceCommit, current: Mapping[str, GroupOffsets | Failed]
) -> CommittedOffset | Failed | None:
    offsets = current.get(commit.group, {})
    if isinstance(offsets, Failed):
        return offsets
    return None if commit.target is None else offsets.get(commit.target)


def _span(commit: SourceCommit, pair: ComparedPair) -> Span | None:
    """What lies between ours and a checkpoint that seems to skip it; None for other pairs."""
    if pair.verdict is not Verdict.UNSAFE or pair.records is None:
        return None
    assert commit.partition is not None
    assert commit.committed is not None
    assert commit.target is not None
    assert pair.theirs is not None
    start = pair.theirs - pair.records
    return Span(commit.partition, commit.committed.offset, commit.target, start, pair.theirs)
