"""Runs the steps of a cycle for one group of a flow, and observes them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from tsoffset.cluster import Connect, all_failed, committed_columns
from tsoffset.commands.explain.reasons import explain_outcome
from tsoffset.commands.explain.trace import Explanation, Trace
from tsoffset.cycle.source_commits import Preflight, SourceCommit, preflight
from tsoffset.errors import ClusterUnreachable, UsageError
from tsoffset.flow.settings import FlowSettings, Settings, reverse_of
from tsoffset.group_sync.commit import commit_groups
from tsoffset.group_sync.no_match import did_you_mean
from tsoffset.group_sync.open_flow import OpenFlow, open_flow
from tsoffset.group_sync.rows import failed_row
from tsoffset.group_sync.translated_commits import TranslatedCommit, commit_work, result_rows
from tsoffset.model import (
    Failed,
    GroupListing,
    GroupListings,
    GroupType,
    OutcomeKind,
    Position,
    Row,
    TopicPartition,
)
from tsoffset.rule.inquiry import Answer, Question
from tsoffset.terminal.output import abridge, plural


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    group: str
    topic: str | None = None
    partition: int | None = None

    def includes(self, partition: TopicPartition) -> bool:
        is_partition = self.partition in (None, partition.partition)
        return is_partition and self.topic in (None, partition.topic)

    def __str__(self) -> str:
        if self.topic is None:
            return "a topic" if self.partition is None else f"a partition {self.partition}"
        return f"topic {self.topic}" if self.partition is None else f"{self.topic}-{self.partition}"


@dataclass(slots=True)
class ExplainResult:
    """The explanations, in the order of flows, topics and partitions.

    `left_out` has a sentence for each flow that has nothing to explain. `unreachable`: a cluster
    could not be reached at all, and its flow has one failed row.
    """

    explanations: list[Explanation] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unreachable: bool = False

    @property
    def exit_status(self) -> int:
        failed = (one.row.outcome is OutcomeKind.FAILED for one in self.explanations)
        return 3 if self.unreachable else int(any(failed))


def explain(
    options: ExplainOptions, flows: Iterable[FlowSettings], connect: Connect, *, settings: Settings
) -> ExplainResult:
    """Explain the group in each of `flows`; `settings` have the flows that may compete with them.
    Raises UsageError if there is nothing to explain: the group does not exist, is not selected, or
    has no committed offset in the topic or partition of the options."""
    result = ExplainResult()
    for flow in flows:
        with open_flow(flow, connect, settings) as opened:
            try:
                found = _explanations(opened, options, result.warnings)
                has_reverse = reverse_of(flow, settings.flows) is not None
                result.explanations += (replace(one, has_reverse=has_reverse) for one in found)
            except ClusterUnreachable as error:
                result.unreachable = True
                row = failed_row(flow.name, all_failed(error))
                result.explanations.append(Explanation(row, flow.commits))
            except _NothingToExplain as nothing:
                result.left_out.append(str(nothing))
    if not result.explanations:
        raise UsageError("; ".join(result.left_out))
    return result


class _NothingToExplain(Exception):
    """A flow has nothing to explain; the text says why."""


def _explanations(
    opened: OpenFlow, options: ExplainOptions, warnings: list[str]
) -> list[Explanation]:
    """Run the steps of a cycle for the group. Raises ClusterUnreachable and _NothingToExplain."""
    flow = opened.settings
    listings = opened.source.groups()
    start = _preflight(opened, options.group, listings)
    warnings += [*start.warnings, *(failure.message for failure in start.failures)]
    found = opened.commits(start.groups)
    if not found and listings.failures and options.group not in listings.groups:
        row = replace(failed_row(flow.name, listings.failures[0]), group=options.group)
        return [Explanation(row, flow.commits)]
    commits = _select_commits(opened, options, found, listings.share_groups)
    traces = {
        Position(one.partition.topic, one.partition.partition, one.committed.offset): Trace(
            flow, one
        )
        for one in commits
        if one.verdict is None and one.partition and one.committed
    }

    def observe(position: Position, question: Question, answer: Answer) -> None:
        traces[position].add(question, answer)

    translated = opened.translate(commits, observe)
    work = commit_work(translated)
    results = commit_groups(flow, opened.target, work, commit_to=None).rows
    return [
        _explanation(flow, one, row, traces)
        for one, row in zip(translated, result_rows(flow.name, work, results), strict=True)
    ]


def _preflight(opened: OpenFlow, group: str, listings: GroupListings) -> Preflight:
    flow, alias = opened.settings, opened.source.alias
    listed = listings.groups.get(group)
    if listed is None and not listings.failures:
        why = (
            f"flow {flow.name}: group {group} does not exist on {alias}, or this user may not"
            f" DESCRIBE it; {alias} lists {plural(len(listings.groups), 'group')}"
        )
        if group in opened.target.groups().groups:
            why += f"; it exists on {flow.target.alias}, whose offsets this flow does not translate"
        raise _NothingToExplain(f"{why}.{did_you_mean(group, listings.groups)}")
    type_ = GroupType.UNKNOWN if listed is None else listed.type
    listing = GroupListings({group: GroupListing(group, type_, None)})
    start = preflight(flow, opened.source, opened.target, list_groups=lambda: listing)
    if not start.groups:
        raise _NothingToExplain(
            f"flow {flow.name} does not select group {group}; change groups or groups.exclude"
        )
    return start


def _select_commits(
    opened: OpenFlow,
    options: ExplainOptions,
    found: Sequence[SourceCommit],
    share_groups: Collection[str],
) -> list[SourceCommit]:
    """The commits to explain; a group that failed as a whole is always among them."""
    some = [one for one in found if one.partition is None or options.includes(one.partition)]
    if some:
        return some
    group, source = options.group, opened.source
    read = committed_columns(source, [group], share_groups=share_groups, require_stable=False)
    of_group = read.by_group()[group]
    if isinstance(of_group, Failed):
        raise _NothingToExplain(f"flow {opened.settings.name}: {of_group.message}")
    present = [*map(str, sorted(of_group))]
    what = f"flow {opened.settings.name}: group {group} has no committed offset"
    if not present:
        raise _NothingToExplain(
            f"{what} on {source.alias}; it has not committed yet, its offsets expired, or this user"
            " may not DESCRIBE its topics"
        )
    raise _NothingToExplain(
        f"{what} in {options} that the flow selects (topics, topics.exclude, replication policy);"
        f" it has committed offsets in {abridge(present)}"
    )


def _explanation(
    flow: FlowSettings, translated: TranslatedCommit, row: Row, traces: dict[Position, Trace]
) -> Explanation:
    position = translated.position
    if position is None:
        return Explanation(row, flow.commits)
    partition = position.partition
    trace = traces[Position(partition.topic, partition.partition, position.offset)]
    outcome = position.translation.outcome
    answer, pairs = explain_outcome(trace, outcome, translated.answer(row))
    if position.source_log_end is not None:
        row = replace(row, consumer_lag=position.source_log_end - position.offset)
    return Explanation(row, flow.commits, trace.position, tuple(trace.steps), pairs, answer)
