"""Running a cycle's stages for one group of a flow, and listening to them."""

import difflib
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from tsoffset.cluster import Cluster
from tsoffset.commands.explain.dialogue import Dialogue
from tsoffset.commands.explain.reasons import conclusion
from tsoffset.commands.explain.statements import Explanation
from tsoffset.cycle.rounds import translate_partitions
from tsoffset.cycle.settle import failed_row, settle_groups, whole_topic
from tsoffset.cycle.source_commits import (
    CompetingFlow,
    Preflight,
    committed_offsets,
    preflight,
    read_commits,
)
from tsoffset.cycle.turns import Settlement
from tsoffset.cycle.work import partition_work
from tsoffset.errors import ClusterUnreachable, UsageError
from tsoffset.flow.settings import ClusterSettings, FlowSettings, Settings
from tsoffset.model import (
    Failed,
    FailureKind,
    GroupListings,
    GroupType,
    OutcomeKind,
    Position,
    Row,
    TopicPartition,
)
from tsoffset.rule.decide import SourceCommit, TranslatedPosition
from tsoffset.rule.inquiry import Answer, Question
from tsoffset.terminal.output import counted
from tsoffset.terminal.progress import Report

Connect = Callable[[ClusterSettings], Cluster]

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
        with ExitStack() as stack:
            explaining = _FlowExplanation(
                flow, wanted, stack, connect, settings.competing_flows_of(flow)
            )
            try:
                explanations += explaining.explanations()
            except ClusterUnreachable as error:
                unreachable = True
                failed = Failed(FailureKind.UNREACHABLE, str(error))
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

    flow: FlowSettings
    wanted: Wanted
    stack: ExitStack
    connect: Connect
    competing_flows: Sequence[FlowSettings]
    warnings: list[str] = field(default_factory=list)

    def explanations(self) -> list[Explanation]:
        """Run the stages of a cycle for the group. Raises ClusterUnreachable."""
        flow = self.flow
        source, target = self._open(flow.source), self._open(flow.target)
        listings = source.groups()
        start = self._preflight(source, target, listings)
        competing_flows = [
            CompetingFlow(one, self._open(one.source)) for one in self.competing_flows
        ]
        found = list(read_commits(flow, source, start.groups, competing_flows))
        if not found and listings.failed_brokers and self.wanted.group not in listings.groups:
            failed = next(iter(listings.failed_brokers.values()))
            return [Explanation(self._of_group(failed), flow.commits)]
        commits = self._meant(found, source)
        dialogues: dict[Position, Dialogue] = {}
        for commit in commits:
            if commit.verdict is None and commit.partition and commit.committed:
                dialogues[_position(commit.partition, commit.committed.offset)] = Dialogue(
                    flow, commit
                )

        def observe(position: Position, question: Question, answer: Answer) -> None:
            dialogues[position].hear(question, answer)

        positions = {
            _position(one.partition, one.offset): one
            for one in translate_partitions(
                flow, source, target, partition_work(commits), observe=observe
            )
        }
        rewriting = {
            one.partition.topic for one in positions.values() if one.target_rewrites_timestamps
        }
        settlements = [_settlement(commit, positions, rewriting) for commit in commits]
        rows = settle_groups(flow, target, settlements, commit=False).rows
        return [
            self._explanation(settlement, row, dialogues)
            for settlement, row in zip(settlements, rows, strict=True)
        ]

    def _open(self, settings: ClusterSettings) -> Cluster:
        return self.stack.enter_context(self.connect(settings))

    def _preflight(self, source: Cluster, target: Cluster, listings: GroupListings) -> Preflight:
        """The group as a cycle would list it."""
        group, flow = self.wanted.group, self.flow
        listed = listings.groups.get(group)
        if listed is None and not listings.failed_brokers:
            raise _NothingOfIt(
                f"flow {flow.name}: group {group} does not exist on {source.alias}"
                f"{_alike(group, listings.groups)}"
            )
        type_ = GroupType.UNKNOWN if listed is None else listed.type
        start = preflight(flow, source, target, known_groups=[(group, type_)])
        if not start.groups:
            raise _NothingOfIt(
                f"flow {flow.name} leaves out group {group}; let it through by groups and "
                "groups.exclude"
            )
        self.warnings += start.warnings
        self.warnings += [failure.message for failure in start.failures]
        return start

    def _meant(self, found: Sequence[SourceCommit], source: Cluster) -> list[SourceCommit]:
        """The commits that are wanted. A group that failed as a whole is always meant."""
        meant = [c for c in found if c.partition is None or self.wanted.holds(c.partition)]
        if meant:
            return meant
        what = f"flow {self.flow.name}: group {self.wanted.group} has no commit"
        if found:
            there = sorted({commit.partition for commit in found if commit.partition})
            raise _NothingOfIt(
                f"{what} on {_in_words(self.wanted)} that is synced; it has commits on "
                f"{_listed([str(partition) for partition in there])}"
            )
        group = self.wanted.group
        offsets = committed_offsets(source, [group], require_stable=False)[group]
        topics = [] if isinstance(offsets, Failed) else sorted({place.topic for place in offsets})
        if not topics:
            raise _NothingOfIt(f"{what} on {source.alias}; it has yet to commit, or they expired")
        raise _NothingOfIt(
            f"{what} on a topic that is synced; it has commits on {_listed(topics)}, which topics, "
            "topics.exclude or the replication policy leave out"
        )

    def _of_group(self, failed: Failed) -> Row:
        row = failed_row(self.flow.name, failed)
        return replace(row, group=self.wanted.group)

    def _explanation(
        self, settlement: Settlement, row: Row, dialogues: dict[Position, Dialogue]
    ) -> Explanation:
        position = settlement.position
        if position is None:
            return Explanation(row, self.flow.commits)
        seen = dialogues[_position(position.partition, position.offset)]
        answer, pairs = conclusion(seen, position, row)
        return Explanation(row, self.flow.commits, seen.opening, tuple(seen.steps), pairs, answer)


def _position(partition: TopicPartition, offset: int) -> Position:
    return Position(partition.topic, partition.partition, offset)


def _settlement(
    commit: SourceCommit, positions: dict[Position, TranslatedPosition], rewriting: set[str]
) -> Settlement:
    """The commit with its translation, as a cycle joins them."""
    if commit.verdict is not None or not (commit.partition and commit.committed and commit.target):
        return Settlement(commit)
    position = positions[_position(commit.partition, commit.committed.offset)]
    if commit.partition.topic in rewriting:
        position = whole_topic(position, commit.target.topic)
    return Settlement(commit, position)


# --- sentences for what is not there --------------------------------------------------------


def _in_words(wanted: Wanted) -> str:
    if wanted.topic is None:
        return f"a partition {wanted.partition}"
    if wanted.partition is None:
        return f"topic {wanted.topic}"
    return f"{wanted.topic}-{wanted.partition}"


def _alike(group: str, known: Collection[str]) -> str:
    """Groups that may be meant instead; letters' case does not count."""
    by_lower = {name.lower(): name for name in sorted(known)}
    wanted = group.lower()
    close = difflib.get_close_matches(wanted, by_lower, n=_SHOWN)
    close += [name for name in by_lower if wanted in name and name not in close]
    if close:
        return f"; is {' or '.join(by_lower[name] for name in close[:_SHOWN])} meant?"
    return f", which has {counted(len(known), 'group')}, none of a like name; correct --group"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown
