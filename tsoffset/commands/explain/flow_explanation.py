"""Running a cycle's stages for one group of a flow, and listening to them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from tsoffset.cluster import Connect, all_failed
from tsoffset.commands.explain.dialogue import Dialogue
from tsoffset.commands.explain.reasons import conclusion
from tsoffset.commands.explain.statements import Explanation
from tsoffset.commands.scope import did_you_mean
from tsoffset.cycle.committed_offsets import committed_offsets
from tsoffset.cycle.source_commits import Preflight, SourceCommit, preflight
from tsoffset.cycle.values import failed_row
from tsoffset.errors import ClusterUnreachable, UsageError
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.group_sync.commit import commit_groups
from tsoffset.group_sync.open_flow import OpenFlow, open_flow
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
from tsoffset.terminal.output import counted
from tsoffset.terminal.progress import Report

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be explained: a group, and of its commits those on a topic (by its name on
    the source) and a partition, where given."""

    group: str
    topic: str | None = None
    partition: int | None = None

    def holds(self, partition: TopicPartition) -> bool:
        """True for a partition that is meant."""
        return self.topic in (None, partition.topic) and self.partition in (
            None,
            partition.partition,
        )


@dataclass(frozen=True, slots=True)
class Explained:
    """What was explained, in the order of flows, topics and partitions.

    `left_out` says of the other flows why they have nothing of the group; `warnings` what a
    person should know all the same. `unreachable` is true where a cluster could not be
    reached at all: its flow has one failed row.
    """

    explanations: tuple[Explanation, ...]
    left_out: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unreachable: bool = False

    @property
    def exit_status(self) -> int:
        """3 where a cluster is unreachable, 1 for a failed row, else 0."""
        if self.unreachable:
            return 3
        return int(any(one.row.outcome is OutcomeKind.FAILED for one in self.explanations))


def explain(
    wanted: Wanted,
    flows: Sequence[FlowSettings],
    connect: Connect,
    *,
    settings: Settings,
    report: Report | None = None,
) -> Explained:
    """Explain the group in each of `flows` that has it; `settings` tell of their competing flows.

    Raises UsageError where none of them has anything of it: the group does not exist, is
    left out, or has no commit that is meant.
    """
    explanations: list[Explanation] = []
    left_out: list[str] = []
    warnings: list[str] = []
    unreachable = False
    for done, flow in enumerate(flows):
        if report is not None:
            report(flow.name, done, len(flows))
        with open_flow(flow, connect, settings) as opened:
            explaining = _FlowExplanation(opened, wanted)
            try:
                explanations += explaining.explanations()
            except ClusterUnreachable as error:
                unreachable = True
                failed = all_failed(error)
                explanations.append(Explanation(failed_row(flow.name, failed), flow.commits))
            except _NothingOfIt as nothing:
                left_out.append(str(nothing))
            warnings += explaining.warnings
    if not explanations:
        raise UsageError("; ".join(left_out))
    return Explained(tuple(explanations), tuple(left_out), tuple(warnings), unreachable)


class _NothingOfIt(Exception):
    """A flow has nothing of the group to explain; the text says why."""


@dataclass(slots=True)
class _FlowExplanation:
    """One flow's explanations."""

    opened: OpenFlow
    wanted: Wanted
    warnings: list[str] = field(default_factory=list)

    @property
    def flow(self) -> FlowSettings:
        return self.opened.settings

    def explanations(self) -> list[Explanation]:
        """Run the stages of a cycle for the group. Raises ClusterUnreachable."""
        flow, source = self.flow, self.opened.source
        listings = source.groups()
        found = self.opened.commits(self._preflight(listings).groups)
        if not found and listings.failed_brokers and self.wanted.group not in listings.groups:
            failed = next(iter(listings.failed_brokers.values()))
            row = replace(failed_row(flow.name, failed), group=self.wanted.group)
            return [Explanation(row, flow.commits)]
        commits = self._meant(found, listings.share_groups)
        dialogues = {
            Position(
                commit.partition.topic, commit.partition.partition, commit.committed.offset
            ): Dialogue(flow, commit)
            for commit in commits
            if commit.verdict is None and commit.partition and commit.committed
        }

        def observe(position: Position, question: Question, answer: Answer) -> None:
            dialogues[position].hear(question, answer)

        translated = self.opened.translated(commits, observe)
        work = commit_work(translated)
        results = commit_groups(flow, self.opened.target, work, commit=False).rows
        return [
            self._explanation(one, row, dialogues)
            for one, row in zip(translated, result_rows(flow.name, work, results), strict=True)
        ]

    def _preflight(self, listings: GroupListings) -> Preflight:
        """The group as a cycle would list it."""
        group, flow, source = self.wanted.group, self.flow, self.opened.source
        listed = listings.groups.get(group)
        if listed is None and not listings.failed_brokers:
            raise _NothingOfIt(
                f"flow {flow.name}: group {group} does not exist on {source.alias}"
                f", which has {counted(len(listings.groups), 'group')}."
                f"{did_you_mean(group, listings.groups)}"
            )
        type_ = GroupType.UNKNOWN if listed is None else listed.type
        alone = GroupListings({group: GroupListing(group, type_, None)})
        start = preflight(flow, source, self.opened.target, list_groups=lambda: alone)
        if not start.groups:
            raise _NothingOfIt(
                f"flow {flow.name} does not select group {group}; change groups or groups.exclude"
            )
        self.warnings += start.warnings
        self.warnings += [failure.message for failure in start.failures]
        return start

    def _meant(
        self, found: Sequence[SourceCommit], share_groups: Collection[str]
    ) -> list[SourceCommit]:
        """The commits that are wanted. A group that failed as a whole is always meant."""
        meant = [c for c in found if c.partition is None or self.wanted.holds(c.partition)]
        if meant:
            return meant
        what = f"flow {self.flow.name}: group {self.wanted.group} has no committed offset"
        if found:
            there = sorted({commit.partition for commit in found if commit.partition})
            raise _NothingOfIt(
                f"{what} in {_in_words(self.wanted)} that is synced; it has committed offsets in"
                f" {_listed([str(partition) for partition in there])}"
            )
        group, source = self.wanted.group, self.opened.source
        offsets = committed_offsets(
            source, [group], share_groups=share_groups, require_stable=False
        )[group]
        topics = [] if isinstance(offsets, Failed) else sorted({place.topic for place in offsets})
        if not topics:
            raise _NothingOfIt(
                f"{what} on {source.alias}; it has not committed yet, or its offsets expired"
            )
        raise _NothingOfIt(
            f"{what} in a topic that is synced; it has committed offsets in {_listed(topics)},"
            " which topics, topics.exclude or the replication policy exclude"
        )

    def _explanation(
        self, translated: TranslatedCommit, row: Row, dialogues: dict[Position, Dialogue]
    ) -> Explanation:
        position = translated.position
        if position is None:
            return Explanation(row, self.flow.commits)
        partition = position.partition
        seen = dialogues[Position(partition.topic, partition.partition, position.offset)]
        outcome = position.translation.outcome
        answer, pairs = conclusion(seen, outcome, translated.answer(row))
        if position.source_log_end is not None:
            row = replace(row, consumer_lag=position.source_log_end - position.offset)
        return Explanation(row, self.flow.commits, seen.opening, tuple(seen.steps), pairs, answer)


# --- sentences for what is not there --------------------------------------------------------


def _in_words(wanted: Wanted) -> str:
    if wanted.topic is None:
        return f"a partition {wanted.partition}"
    if wanted.partition is None:
        return f"topic {wanted.topic}"
    return f"{wanted.topic}-{wanted.partition}"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown
