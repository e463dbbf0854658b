"""Compares a flow: its checkpoints, the target groups' committed offsets, and the translations.

It reads the target groups' offsets and the newest checkpoints first, and then the committed offsets
on the source: so a checkpoint past the translation is never merely newer than the committed offset
that is translated.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tsoffset.cluster import Connect, all_failed
from tsoffset.commands.compare.checkpoints import (
    by_timestamps,
    checkpoints_of,
    source_topic,
    with_proof,
)
from tsoffset.commands.compare.judgement import (
    CheckpointLookup,
    CheckpointVerdict,
    ComparedPair,
    compare_pair,
    with_repeats,
)
from tsoffset.commands.compare.options import Against, CompareOptions
from tsoffset.commands.compare.repeats import Span, check_repeats
from tsoffset.cycle.committed_offsets import committed_columns, committed_offsets
from tsoffset.cycle.source_commits import SourceCommit, preflight
from tsoffset.cycle.values import failed_row
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.group_sync.commit_rule import decide
from tsoffset.group_sync.open_flow import OpenFlow, open_flow
from tsoffset.group_sync.read import target_commits, with_current
from tsoffset.group_sync.tables import COMMIT_RESULTS, select
from tsoffset.group_sync.translated_commits import TranslatedCommit, commit_work, result_rows
from tsoffset.model import (
    CommittedOffset,
    Failed,
    GroupOffsets,
    GroupType,
    Isolation,
    LogRange,
    OutcomeKind,
    Row,
    TopicPartition,
    Translated,
)
from tsoffset.replicators.checkpoints import CheckpointKey, Checkpoints

_Current = Mapping[str, GroupOffsets | Failed]


@dataclass(frozen=True, slots=True)
class FlowComparison:
    """The comparison of one flow at `at_ms`: its pairs by group, topic and partition.

    `warnings` are sentences for a person, for example on a missing checkpoints topic.
    `unreachable`: a cluster could not be reached at all, and the flow has one failed pair without a
    group.
    """

    flow: str
    at_ms: int
    pairs: tuple[ComparedPair, ...]
    warnings: tuple[str, ...] = ()
    unreachable: bool = False

    @property
    def exit_status(self) -> int:
        """3 if a cluster is unreachable, 1 with a failed pair, else 0."""
        failed = (pair.verdict is CheckpointVerdict.FAILED for pair in self.pairs)
        return 3 if self.unreachable else int(any(failed))


def compare(
    flows: Iterable[FlowSettings],
    connect: Connect,
    *,
    settings: Settings,
    options: CompareOptions | None = None,
) -> Iterator[FlowComparison]:
    """Compare each of `flows`, one after the other; `settings` have their competing flows. Raises
    UsageError for a file without checkpoints."""
    options = options or CompareOptions()
    for flow in flows:
        at_ms = int(time.time() * 1000)
        warnings: list[str] = []
        try:
            with open_flow(flow, connect, settings) as opened:
                pairs = _Comparison(opened, options, at_ms, warnings).pairs()
        except ClusterUnreachable as error:
            failed = compare_pair(at_ms, failed_row(flow.name, all_failed(error)), None)
            yield FlowComparison(flow.name, at_ms, (failed,), tuple(warnings), unreachable=True)
            continue
        ordered = tuple(sorted(pairs, key=_place))
        yield FlowComparison(flow.name, at_ms, ordered, tuple(warnings))


def _place(pair: ComparedPair) -> tuple[str, str, int]:
    partition = -1 if pair.partition is None else pair.partition
    return pair.group or "", pair.source_topic or "", partition


@dataclass(slots=True)
class _Comparison:
    opened: OpenFlow
    options: CompareOptions
    at_ms: int
    warnings: list[str] = field(default_factory=list)

    @property
    def flow(self) -> FlowSettings:
        return self.opened.settings

    def pairs(self) -> list[ComparedPair]:
        """Read, translate, compare. Raises ClusterUnreachable and UsageError."""
        flow, source, target = self.flow, self.opened.source, self.opened.target
        start = preflight(flow, source, target)
        self.warnings += start.warnings
        names = [work.group for work in start.groups]
        shared = {work.group for work in start.groups if work.type is GroupType.SHARE}
        current = committed_columns(target, names, share_groups=shared, require_stable=True)
        offsets = _offsets(current.by_group())
        opened = self.opened
        if self.options.against is Against.TIMESTAMPS:
            commits = opened.commits(start.groups)
            checkpoints = by_timestamps(opened, commits, offsets)
            # Also if the configuration says timestamps: that would compare the rule with itself.
            opened = with_proof(opened, "content")
        else:
            checkpoints = checkpoints_of(flow, self.options, target, offsets, self.warnings)
            commits = opened.commits(start.groups)
        translated = opened.translated(commits)
        work = commit_work(translated)
        decided = decide(with_current(work, target_commits(current)), flow.translation.floor)
        rows = result_rows(flow.name, work, select(decided, COMMIT_RESULTS))
        partitions = {commit.partition for commit in commits if commit.partition is not None}
        ends = source.log_ranges(partitions, Isolation.READ_UNCOMMITTED)
        judged = [
            self._pair(one, row, checkpoints, ends)
            for one, row in zip(translated, rows, strict=True)
        ]
        spans = [_span(one, pair) for one, pair in zip(translated, judged, strict=True)]
        repeats = check_repeats(
            [span for span in spans if span is not None],
            source,
            target,
            isolation=flow.isolation,
            match=flow.translation.match,
        )
        return [
            *(
                compare_pair(self.at_ms, failed_row(flow.name, failure), None)
                for failure in start.failures
            ),
            *(
                pair if span is None else with_repeats(pair, repeats[span])
                for pair, span in zip(judged, spans, strict=True)
            ),
            *self._without_commits(commits, checkpoints),
        ]

    def _pair(
        self,
        translated: TranslatedCommit,
        row: Row,
        checkpoints: Checkpoints,
        ends: Mapping[TopicPartition, LogRange | Failed],
    ) -> ComparedPair:
        commit, position = translated.commit, translated.position
        log = None if commit.partition is None else ends[commit.partition]
        key = None if commit.target is None else CheckpointKey(commit.group, commit.target)
        return compare_pair(
            self.at_ms,
            row,
            translated.answer(row),
            CheckpointLookup.of(checkpoints, key),
            source_end=log.end if isinstance(log, LogRange) else None,
            target_range=None if position is None else position.target_range,
        )

    def _without_commits(
        self, commits: Sequence[SourceCommit], checkpoints: Checkpoints
    ) -> Iterator[ComparedPair]:
        """Checkpoints of groups that no longer have a committed offset on the source, in topics
        that the flow syncs."""
        known = {CheckpointKey(commit.group, commit.target) for commit in commits if commit.target}
        # Nothing is known of a group that failed as a whole.
        failed = {commit.group for commit in commits if commit.target is None}
        left = [key for key in checkpoints.newest if key not in known and key.group not in failed]
        current = _offsets(
            committed_offsets(
                self.opened.target, sorted({key.group for key in left}), require_stable=True
            )
        )
        why = "the group has no committed offset on the source any more: it expired or was deleted"
        for key in left:
            if (topic := source_topic(self.flow, key.target.topic)) is None:
                continue
            row = Row(
                flow=self.flow.name,
                group=key.group,
                source_topic=topic,
                partition=key.target.partition,
                source_offset=None,
                source_timestamp_ms=None,
                target_topic=key.target.topic,
                target_offset=None,
                current_target_offset=current.get(key),
                outcome=OutcomeKind.SKIPPED,
                message=why,
            )
            yield compare_pair(self.at_ms, row, None, CheckpointLookup.of(checkpoints, key))


def _offsets(current: _Current) -> dict[CheckpointKey, int]:
    """The committed offsets of the target groups that are known."""
    return {
        CheckpointKey(group, place): commit.offset
        for group, offsets in current.items()
        if not isinstance(offsets, Failed)
        for place, commit in offsets.items()
        if isinstance(commit, CommittedOffset)
    }


def _span(translated: TranslatedCommit, pair: ComparedPair) -> Span | None:
    """The records between tsoffset's offset and a checkpoint that may skip them, else None."""
    commit, position = translated.commit, translated.position
    if pair.verdict is not CheckpointVerdict.UNSAFE or pair.records is None:
        return None
    assert position is not None
    assert commit.partition is not None
    assert commit.target is not None
    assert pair.theirs is not None
    committed, answer = position.offset, position.translation.outcome
    assert isinstance(answer, Translated)
    start, log = pair.theirs - pair.records, position.target_range
    unread = (
        (source_offset, target_offset)
        for source_offset, target_offset in answer.pairs
        if source_offset >= committed and start <= target_offset < pair.theirs
    )
    return Span(
        commit.partition,
        committed,
        commit.target,
        start,
        pair.theirs,
        next(unread, None),
        None if log is None else log.end,
    )
