"""All conversations of a batch of partitions, run in rounds against the two clusters.

Each round collects the open questions, asks equal ones once, and hands them in batches to
the `Cluster`: the sequential network waits of a cycle are the rounds, however many groups.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    Precision,
    ReadFrom,
    Reason,
    Side,
    Skipped,
    Stretch,
    TopicPartition,
    Translated,
)
from tsoffset.plan import TranslatedPosition
from tsoffset.remembered import PartitionMemory
from tsoffset.settings import FlowSettings
from tsoffset.sync.reading import SideReads
from tsoffset.sync.recall import Identities, Recollection, learned, recollect
from tsoffset.sync.work import Cost, PartitionWork, TranslatedWork
from tsoffset.translate import Talk, Translation, translate

log = structlog.get_logger(__name__)

Observe = Callable[[Position, Question, Answer], None]
"""Told each question that a position asks, with its answer, in the order of its conversation."""


def translate_partitions(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    work: Sequence[PartitionWork],
    *,
    observe: Observe | None = None,
) -> Iterator[TranslatedPosition]:
    """Translate all positions of the partitions from the clusters alone, all conversations in
    rounds together.

    Yields one TranslatedPosition per partition and offset. A question that fails ends its
    own conversations only. `observe` listens to all of them.
    """
    parts = [_Part(flow, part, None, observe) for part in work]
    _Run(flow, source, target).converse(parts)
    for part in parts:
        yield from part.positions()


def translate_remembering(
    flow: FlowSettings, source: Cluster, target: Cluster, work: Sequence[PartitionWork]
) -> TranslatedWork:
    """The same with what the last cycle left of the partitions (`PartitionWork.memory`), and
    what is to be left to the next.

    Memory saves questions: what it answers is what the clusters would.
    """
    identities = Identities.of(source, target, work)
    blanks = [identities.blank(part) for part in work]
    parts = [
        _Part(flow, part, _usable(part, blank), None)
        for part, blank in zip(work, blanks, strict=True)
    ]
    run = _Run(flow, source, target)
    run.converse(parts)
    kept = [part.left_to_the_next(blank) for part, blank in zip(parts, blanks, strict=True)]
    return TranslatedWork(
        tuple(position for part in parts for position in part.positions()),
        tuple(memory for memory in kept if memory is not None),
        run.cost(parts),
    )


def _usable(part: PartitionWork, blank: PartitionMemory | None) -> PartitionMemory | None:
    memory = part.memory
    if memory is None or blank is None or not memory.same_logs(blank):
        return None
    return memory


class _Part:
    """One partition's positions, of which some may be recalled and the others are talked about.

    The highest one goes first: the pair that it finds predicts the others, which then need no
    time lookup. Their source batches are read meanwhile.
    """

    def __init__(
        self,
        flow: FlowSettings,
        work: PartitionWork,
        usable: PartitionMemory | None,
        observe: Observe | None,
    ) -> None:
        self.work = work
        self.recalled: Mapping[int, Translation] = {}
        self._usable = usable
        self._observe = observe
        self._talks: dict[int, _Talk] = {}
        self._open: list[_Open] = []
        self._held: Sequence[int] = ()
        self._had_all_turns = False
        self._reads = {side: SideReads() for side in Side}
        self._evidence = Evidence(
            work.source,
            work.target,
            flow.translation,
            isolation=flow.isolation,
            remote_name=work.remote_name,
            reverse=work.reverse,
            predictions=() if usable is None else usable.pairs,
        )
        if usable is None:
            self._talk_of_the_highest(work.offsets)
        else:
            self._open.append(_Recollecting(recollect(work, usable, self._evidence)))

    def questions(self) -> set[Question]:
        """What is to be asked next; empty once nobody asks any more."""
        self._go_on_where_covered()
        while not self._open and not self._had_all_turns:
            if self._held:
                self._talk_of(self._held)
                self._held = ()
            else:
                self._had_all_turns = True
                self._open = [talk for talk in self._talks.values() if talk.begin_again()]
            self._go_on_where_covered()
        asked: set[Question] = set()
        wanted: dict[Side, set[int]] = {Side.SOURCE: self._ahead(), Side.TARGET: set()}
        for one in self._open:
            question = one.question
            assert question is not None
            if isinstance(question.what, ReadFrom) and question.what.max_bytes == 1:
                wanted[question.side].add(question.what.offset)
            else:
                asked.add(question)
        for side, offsets in wanted.items():
            asked |= self._reads[side].choose(side, self._evidence.view(side).partition, offsets)
        return asked

    def _ahead(self) -> set[int]:
        """Source offsets of the positions that wait, to be read for them already."""
        source = self._evidence.source
        if source.range is None:
            return set()
        return {
            offset
            for offset in self._held
            if source.start <= offset < source.end
            and source.covered_to(offset) == offset
            and offset not in self._reads[Side.SOURCE].failed
        }

    def take(self, answers: Mapping[Question, Answer]) -> None:
        """Hand out the answers to what was asked."""
        asked_as = {
            id(one): self._reads[one.question.side].asked_as(one.question)
            for one in self._open
            if one.question is not None
        }
        for reads in self._reads.values():
            reads.take(self._evidence, answers)
        still_open: list[_Open] = []
        for one in self._open:
            asked = asked_as[id(one)]
            if asked not in answers or one.go_on(answers[asked]):
                still_open.append(one)
            elif isinstance(one, _Recollecting):
                self.recalled = one.recalled
                left = [offset for offset in self.work.offsets if offset not in self.recalled]
                self._open = still_open
                self._talk_of_the_highest(left)
        self._open = still_open

    def _go_on_where_covered(self) -> None:
        """A read that another one has covered is answered by that; it costs nothing."""
        still_open: list[_Open] = []
        for one in self._open:
            is_open = True
            while is_open and self._covers(one.question):
                is_open = one.go_on(None)
            if is_open:
                still_open.append(one)
        self._open = still_open

    def _covers(self, question: Question | None) -> bool:
        assert question is not None
        what = question.what
        if not isinstance(what, ReadFrom):
            return False
        return self._evidence.view(question.side).covered_to(what.offset) > what.offset

    def _talk_of_the_highest(self, offsets: Sequence[int]) -> None:
        first = 0 if self._observe is not None else max(0, len(offsets) - 1)
        self._talk_of(offsets[first:])
        self._held = offsets[:first]

    def _talk_of(self, offsets: Sequence[int]) -> None:
        for offset in offsets:
            talk = _Talk(self.work, offset, self._evidence, self._observe)
            self._talks[offset] = talk
            if talk.go_on(None):
                self._open.append(talk)

    def _translations(self) -> dict[int, Translation]:
        found = dict(self.recalled)
        for offset, talk in self._talks.items():
            assert talk.translation is not None
            found[offset] = talk.translation
        return found

    def positions(self) -> Iterator[TranslatedPosition]:
        """All translations, in the order of the offsets; once nobody asks any more."""
        translations = self._translations()
        target = self._evidence.target
        for offset in self.work.offsets:
            yield TranslatedPosition(
                self.work.source,
                offset,
                translations[offset],
                target.range,
                target.rewrites_timestamps,
            )

    def left_to_the_next(self, blank: PartitionMemory | None) -> PartitionMemory | None:
        """What is to be remembered. What could not be looked at is no less true than before."""
        if blank is None:
            memory = self.work.memory
            return None if memory is None else memory.only(self.work.offsets)
        return learned(
            self.work, blank, self._usable, self._evidence, self._translations(), self.recalled
        )


class _Recollecting:
    """A partition under way to what it recalls."""

    def __init__(self, recollection: Recollection) -> None:
        self.recalled: Mapping[int, Translation] = {}
        self._recollection = recollection
        self.question: Question | None = next(recollection)

    def go_on(self, answer: Answer) -> bool:
        """Send the answer; False once it is over."""
        try:
            self.question = self._recollection.send(answer)
        except StopIteration as stop:
            self.recalled = stop.value
            return False
        return True


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
        self._known_then = 0

    def go_on(self, answer: Answer) -> bool:
        """Send the answer (None to begin); True if another question is open."""
        if self._observe is not None and self.question is not None:
            place = Position(self.work.source.topic, self.work.source.partition, self.offset)
            self._observe(place, self.question, answer)
        try:
            self.question = self._talk.send(answer)
        except StopIteration as stop:
            self.translation = stop.value
            self._known_then = self.evidence.known
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

    def begin_again(self) -> bool:
        """Begin anew where the answer may become better by what has been learned since."""
        assert self.translation is not None
        match self.translation.outcome:
            case (
                Translated(precision=Precision.BOUNDED | Precision.FRONTIER)
                | Skipped(reason=Reason.NO_PROOF)
            ) if self.evidence.known > self._known_then:
                self.question, self.translation = None, None
                self._talk = translate(self.offset, self.evidence)
                return self.go_on(None)
        return False


_Open = _Talk | _Recollecting


class _Run:
    """The rounds of a batch of partitions, and what they took."""

    def __init__(self, flow: FlowSettings, source: Cluster, target: Cluster) -> None:
        self._flow = flow.name
        self._sides = {
            Side.SOURCE: (source, flow.isolation),
            Side.TARGET: (target, Isolation.READ_COMMITTED),
        }
        self._fetches = {Side.SOURCE: 0, Side.TARGET: 0}
        self._lookups = 0
        self.rounds = 0
        self._bytes_read = 0

    def converse(self, parts: Sequence[_Part]) -> None:
        """Let all of them ask until nobody does."""
        while asked := [(part, questions) for part in parts if (questions := part.questions())]:
            self.rounds += 1
            answers = self._ask({question for _, questions in asked for question in questions})
            for part, questions in asked:
                part.take({question: answers[question] for question in questions})
        log.debug("partitions_translated", flow=self._flow, rounds=self.rounds)

    def cost(self, parts: Iterable[_Part]) -> Cost:
        """What it all took."""
        parts = list(parts)
        return Cost(
            positions=sum(len(part.work.offsets) for part in parts),
            recalled=sum(len(part.recalled) for part in parts),
            source_fetches=self._fetches[Side.SOURCE],
            target_fetches=self._fetches[Side.TARGET],
            lookups=self._lookups,
            bytes_read=self._bytes_read,
        )

    def _ask(self, questions: Iterable[Question]) -> dict[Question, Answer]:
        """Put the questions of one round, equal ones once, in one batch per side and kind."""
        answers: dict[Question, Answer] = {}
        batches: defaultdict[tuple[Side, type, bool], list[Question]] = defaultdict(list)
        for question in questions:
            itself = isinstance(question.what, RangeOf) and question.what.log_itself
            batches[question.side, type(question.what), itself].append(question)
        for (side, kind, itself), batch in batches.items():
            cluster, isolation = self._sides[side]
            if itself:
                isolation = Isolation.READ_UNCOMMITTED
            try:
                found = _ask_cluster(cluster, isolation, batch)
            except ClusterUnreachable as error:
                failed: Answer = Failed(FailureKind.UNREACHABLE, str(error))
                found = dict.fromkeys(batch, failed)
            answers.update(found)
            if kind is ReadFrom:
                self._fetches[side] += len(batch)
                self._bytes_read += sum(
                    answer.bytes_read for answer in found.values() if isinstance(answer, Stretch)
                )
            elif kind is FirstAtTime:
                self._lookups += len(batch)
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
