"""All conversations of a batch of partitions, run in rounds against the two clusters.

Each round collects the open questions, asks equal ones once, and hands them in batches to
the `Cluster`: the sequential network waits of a cycle are the rounds, however many groups.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from traceback import extract_tb

import structlog

from tsoffset.cluster import Cluster
from tsoffset.errors import ClusterUnreachable
from tsoffset.evidence import Answer, Evidence, Question, RangeOf
from tsoffset.model import (
    Failed,
    FailureKind,
    FirstAtTime,
    Isolation,
    LogRange,
    Position,
    ReadFrom,
    Side,
    TopicPartition,
)
from tsoffset.plan import SourceCommit, TranslatedPosition
from tsoffset.settings import FlowSettings
from tsoffset.translate import Talk, Translation, translate

log = structlog.get_logger(__name__)

Observe = Callable[[Position, Question, Answer], None]
"""Told each question that a position asks, with its answer, in the order of its conversation."""


@dataclass(frozen=True, slots=True)
class PartitionWork:
    """A partition with the distinct positions to translate in it."""

    source: TopicPartition
    target: TopicPartition
    offsets: tuple[int, ...]
    remote_name: bool = False
    reverse: bool = False


def partition_work(commits: Iterable[SourceCommit]) -> list[PartitionWork]:
    """The distinct positions of all commits that need a translation, by partition."""
    offsets: defaultdict[tuple[TopicPartition, TopicPartition, bool, bool], set[int]]
    offsets = defaultdict(set)
    for commit in commits:
        if commit.verdict is None:
            assert commit.partition is not None
            assert commit.target is not None
            assert commit.committed is not None
            key = (commit.partition, commit.target, commit.remote_name, commit.reverse)
            offsets[key].add(commit.committed.offset)
    return [
        PartitionWork(source, target, tuple(sorted(found)), remote_name, reverse)
        for (source, target, remote_name, reverse), found in sorted(offsets.items())
    ]


def translate_partitions(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    work: Sequence[PartitionWork],
    *,
    observe: Observe | None = None,
) -> Iterator[TranslatedPosition]:
    """Translate all positions of the partitions, all conversations in rounds together.

    Yields one TranslatedPosition per partition and offset. A question that fails ends its
    own conversations only. `observe` listens to all of them.
    """
    talks: list[_Talk] = []
    for part in work:
        evidence = Evidence(
            part.source,
            part.target,
            flow.translation,
            isolation=flow.isolation,
            remote_name=part.remote_name,
            reverse=part.reverse,
        )
        talks += [_Talk(part, offset, evidence, observe) for offset in part.offsets]
    sides = {Side.SOURCE: (source, flow.isolation), Side.TARGET: (target, Isolation.READ_COMMITTED)}
    waiting = [talk for talk in talks if talk.go_on(None)]
    rounds = 0
    while waiting:
        rounds += 1
        questions = {talk.question for talk in waiting if talk.question is not None}
        answers = _ask(questions, sides)
        waiting = [talk for talk in waiting if talk.question and talk.go_on(answers[talk.question])]
    log.debug("positions_translated", flow=flow.name, positions=len(talks), rounds=rounds)
    for talk in talks:
        assert talk.translation is not None
        yield TranslatedPosition(
            talk.work.source,
            talk.offset,
            talk.translation,
            talk.evidence.target.range,
            talk.evidence.target.rewrites_timestamps,
        )


class _Talk:
    """One conversation under way."""

    def __init__(
        self, work: PartitionWork, offset: int, evidence: Evidence, observe: Observe | None
    ) -> None:
        self.work = work
        self.offset = offset
        self.evidence = evidence
        self.question: Question | None = None
        self.translation: Translation | None = None
        self._talk: Talk = translate(offset, evidence)
        self._observe = observe

    def go_on(self, answer: Answer) -> bool:
        """Send the answer (None to begin); True where another question is open."""
        if self._observe is not None and self.question is not None:
            place = Position(self.work.source.topic, self.work.source.partition, self.offset)
            self._observe(place, self.question, answer)
        try:
            self.question = self._talk.send(answer)
        except StopIteration as stop:
            self.translation = stop.value
        except Exception as error:
            # A mistake of ours costs this position, not its neighbours. Its text stays unsaid:
            # it may hold digests of content.
            frame = extract_tb(error.__traceback__)[-1]
            name, where = type(error).__name__, f"{frame.name} line {frame.lineno}"
            log.error(
                "translation_broke",
                partition=str(self.work.source),
                offset=self.offset,
                error=name,
                where=where,
            )
            self.translation = Translation(
                Failed(
                    FailureKind.INTERNAL,
                    f"translate {self.work.source}@{self.offset}: {name} in {where}; "
                    "please report it",
                )
            )
        return self.translation is None


def _ask(
    questions: Iterable[Question], sides: Mapping[Side, tuple[Cluster, Isolation]]
) -> dict[Question, Answer]:
    """Put the questions of one round, equal ones once, in one batch per side and kind."""
    answers: dict[Question, Answer] = {}
    batches: defaultdict[tuple[Side, type, bool], list[Question]] = defaultdict(list)
    for question in questions:
        itself = isinstance(question.what, RangeOf) and question.what.log_itself
        batches[question.side, type(question.what), itself].append(question)
    for (side, _, itself), batch in batches.items():
        cluster, isolation = sides[side]
        try:
            answers.update(
                _ask_cluster(cluster, Isolation.READ_UNCOMMITTED if itself else isolation, batch)
            )
        except ClusterUnreachable as error:
            answers.update(dict.fromkeys(batch, Failed(FailureKind.UNREACHABLE, str(error))))
    return answers


def _ask_cluster(
    cluster: Cluster, isolation: Isolation, batch: Sequence[Question]
) -> dict[Question, Answer]:
    found: Mapping[TopicPartition, LogRange | Failed]
    match batch[0].what:
        case RangeOf():
            found = cluster.log_ranges([q.what.partition for q in batch], isolation)
            return {q: found[q.what.partition] for q in batch}
        case ReadFrom():
            reads = [q.what for q in batch if isinstance(q.what, ReadFrom)]
            stretches = cluster.read(reads, isolation)
            return {q: stretches[q.what] for q in batch if isinstance(q.what, ReadFrom)}
        case FirstAtTime():
            times = [q.what for q in batch if isinstance(q.what, FirstAtTime)]
            offsets = cluster.first_at_times(times, isolation)
            return {q: offsets[q.what] for q in batch if isinstance(q.what, FirstAtTime)}
