"""One partition of a batch: its positions under way to their translations.

A conversation (`tsoffset.rule.translate`) asks one question after the other. Here the open ones of
a partition are held together: a read that covers the questions of several is asked once, and
what waits for a pair that another is about to find waits.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from traceback import extract_tb

import structlog

from tsoffset.cycle.carry_over import Recall, learned, recall_positions
from tsoffset.cycle.read_ahead import SideReads
from tsoffset.cycle.work import PartitionWork
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import (
    Failed,
    FailureKind,
    Position,
    Precision,
    ReadFrom,
    Reason,
    Side,
    Skipped,
    Translated,
)
from tsoffset.rule.carry_over import PartitionCarryOver
from tsoffset.rule.decide import TranslatedPosition
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.inquiry import Answer, Question
from tsoffset.rule.translate import Conversation, Translation, translate

log = structlog.get_logger(__name__)

# Those of a position and their neighbours, on both sides.
_BATCHES_A_POSITION = 4

Observe = Callable[[Position, Question, Answer], None]
"""Told each question that a position asks, with its answer, in the order of its conversation."""


class Partition:
    """One partition's positions, of which some may be recalled and the others are translated.

    The highest and the lowest go first: the pairs that they find predict the others, which then
    need no time lookup. Their source batches are read meanwhile. They follow from the top down, as
    many at once as may have their records held (`share`, which may change on the way).
    """

    def __init__(
        self,
        flow: FlowSettings,
        work: PartitionWork,
        usable: PartitionCarryOver | None,
        observe: Observe | None,
    ) -> None:
        self.work = work
        self.share = 0
        self.recalled: Mapping[int, Translation] = {}
        self._usable = usable
        self._observe = observe
        self._conversations: dict[int, _Conversation] = {}
        self._open: list[_Open] = []
        self._held: Sequence[int] = ()
        self._in_turn: list[_Conversation] = []
        self._reads = {side: SideReads() for side in Side}
        self._evidence = Evidence(
            work.source,
            work.target,
            flow.translation,
            isolation=flow.isolation,
            is_remote_topic=work.is_remote_topic,
            failback=work.failback,
            predictions=() if usable is None else usable.pairs,
            remembered_frontier=None if usable is None else usable.frontier,
        )
        if usable is None:
            self._converse_about_the_outermost(work.offsets)
        else:
            self._open.append(_Recalling(recall_positions(work, usable, self._evidence)))

    def questions(self) -> set[Question]:
        """What is to be asked next; empty once nobody asks any more."""
        self._go_on_where_covered()
        while not self._open and (self._in_turn or self._held):
            if self._in_turn:
                again, self._in_turn = self._in_turn, []
                self._open = [conversation for conversation in again if conversation.begin_again()]
            else:
                self._go_on_with_the_next()
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

    @property
    def records_at_once(self) -> int | None:
        """About how many records a single position has to have held; None while nothing was
        read that tells."""
        sizes = [reads.batch_offsets for reads in self._reads.values() if reads.has_read]
        return _BATCHES_A_POSITION * max(sizes) if sizes else None

    def _ahead(self) -> set[int]:
        """Source offsets of the positions that wait, to be read for them already."""
        source = self._evidence.source
        if source.range is None:
            return set()
        return {
            offset
            for offset in self._next()
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
            elif isinstance(one, _Recalling):
                self.recalled = one.recalled
                left = [offset for offset in self.work.offsets if offset not in self.recalled]
                self._open = still_open
                self._converse_about_the_outermost(left)
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

    def _converse_about_the_outermost(self, offsets: Sequence[int]) -> None:
        if self._observe is None:
            self._converse_about(sorted({*offsets[:1], *offsets[-1:]}))
            self._held = offsets[1:-1]
        else:
            self._converse_about(offsets)

    def _next(self) -> Sequence[int]:
        """The highest of those that wait, as many as may have their batches held on both sides."""
        batch = self._reads[Side.SOURCE].batch_offsets
        # Its images may lie in a longer batch, and a batch is read ahead meanwhile.
        images = max(batch, self._reads[Side.TARGET].batch_offsets)
        batches_left = max(1, self.share // (2 * batch + images))
        first, lowest = len(self._held), None
        while first > 0:
            offset = self._held[first - 1]
            if lowest is None or offset < lowest:
                if batches_left == 0:
                    break
                batches_left -= 1
                lowest = offset - batch
            first -= 1
        return self._held[first:]

    def _go_on_with_the_next(self) -> None:
        following = self._next()
        if self._evidence.known > self.share // 2:
            # What was read ahead for them stays.
            self._evidence.forget_records(following[-1])
        self._held = self._held[: len(self._held) - len(following)]
        self._converse_about(following)

    def _converse_about(self, offsets: Sequence[int]) -> None:
        for offset in offsets:
            conversation = _Conversation(self.work, offset, self._evidence, self._observe)
            self._conversations[offset] = conversation
            self._in_turn.append(conversation)
            if conversation.go_on(None):
                self._open.append(conversation)

    def _translations(self) -> dict[int, Translation]:
        found = dict(self.recalled)
        for offset, conversation in self._conversations.items():
            assert conversation.translation is not None
            found[offset] = conversation.translation
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

    def left_to_the_next(self, blank: PartitionCarryOver | None) -> PartitionCarryOver | None:
        """What is to be remembered. What could not be looked at is no less true than before."""
        if blank is None:
            carry_over = self.work.carry_over
            return None if carry_over is None else carry_over.only(self.work.offsets)
        return learned(
            self.work, blank, self._usable, self._evidence, self._translations(), self.recalled
        )


class _Recalling:
    """The recall of a partition's carried-over translations, under way."""

    def __init__(self, recall: Recall) -> None:
        self.recalled: Mapping[int, Translation] = {}
        self._recall = recall
        self.question: Question | None = next(recall)

    def go_on(self, answer: Answer) -> bool:
        """Send the answer; False once it is over."""
        try:
            self.question = self._recall.send(answer)
        except StopIteration as stop:
            self.recalled = stop.value
            return False
        return True


class _Conversation:
    """One position's conversation under way; it may make another attempt once more is known."""

    def __init__(
        self, work: PartitionWork, offset: int, evidence: Evidence, observe: Observe | None
    ) -> None:
        self.work = work
        self.offset = offset
        self.evidence = evidence
        self.question: Question | None = None
        self.translation: Translation | None = None
        self._attempt: Conversation = translate(offset, evidence)
        self._observe = observe
        self._learned_then = 0

    def go_on(self, answer: Answer) -> bool:
        """Send the answer (None to begin); True if another question is open."""
        if self._observe is not None and self.question is not None:
            place = Position(self.work.source.topic, self.work.source.partition, self.offset)
            self._observe(place, self.question, answer)
        try:
            self.question = self._attempt.send(answer)
        except StopIteration as stop:
            self.translation = stop.value
            self._learned_then = self.evidence.learned
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
        """Make another attempt where what has been learned since may improve the answer; True if a
        question is open."""
        assert self.translation is not None
        match self.translation.outcome:
            case (
                Translated(precision=Precision.BOUNDED | Precision.FRONTIER)
                | Skipped(reason=Reason.NO_PROOF)
            ) if self.evidence.learned > self._learned_then:
                self.question, self.translation = None, None
                self._attempt = translate(self.offset, self.evidence)
                return self.go_on(None)
        return False


_Open = _Conversation | _Recalling
