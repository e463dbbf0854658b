"""Open questions: those about a position, and those about a partition."""

from collections.abc import Callable, Generator
from traceback import extract_tb
from typing import Generic, TypeVar

import structlog

from tsoffset.cycle.work import PartitionWork
from tsoffset.model import (
    Failed,
    FailureKind,
    Outcome,
    Position,
    Precision,
    Reason,
    Skipped,
    TopicPartition,
    Translated,
)
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.inquiry import Answer, Question
from tsoffset.rule.translate import Translation, TranslationGenerator, translate

log = structlog.get_logger(__name__)

T = TypeVar("T")

Observe = Callable[[Position, Question, Answer], None]
"""Told each question that a position asks, with its answer, in the order of asking."""


def _note_bug(error: Exception, partition: TopicPartition, offset: int | None = None) -> str:
    """Log the line of code where a translation broke, and return it. A bug fails only the
    translator that meets it.
    The error's text is not logged: it may hold digests of content."""
    frame = extract_tb(error.__traceback__)[-1]
    name, where = type(error).__name__, f"{frame.name} line {frame.lineno}"
    log.error("translation_broke", partition=str(partition), offset=offset, error=name, where=where)
    return f"{name} in {where}"


class PartitionQuestions(Generic[T]):
    """Open questions about the partition as a whole; `then` is called with their result, None if it
    is not known."""

    def __init__(
        self,
        partition: TopicPartition,
        asking: Generator[Question, Answer, T],
        then: Callable[[T | None], None],
    ) -> None:
        self.question: Question | None = None
        self._partition = partition
        self._asking = asking
        self._then = then

    def go_on(self, answer: Answer) -> bool:
        """Send the answer (None to begin); False once it is over."""
        try:
            self.question = self._asking.send(answer)
        except StopIteration as stop:
            self._then(stop.value)
            return False
        except Exception as error:
            _note_bug(error, self._partition)
            self._then(None)
            return False
        return True


class Translator:
    """Translates one position; it may make another attempt once more is known."""

    def __init__(
        self, work: PartitionWork, offset: int, evidence: Evidence, observe: Observe | None
    ) -> None:
        self.work = work
        self.offset = offset
        self.evidence = evidence
        self.question: Question | None = None
        self.translation: Translation | None = None
        self._attempt: TranslationGenerator = translate(offset, evidence)
        self._observe = observe
        self._learned_then = 0
        self._answered_before: Translation | None = None

    def go_on(self, answer: Answer) -> bool:
        """Send the answer (None to begin); True if another question is open."""
        if self._observe is not None and self.question is not None:
            position = Position(self.work.source.topic, self.work.source.partition, self.offset)
            self._observe(position, self.question, answer)
        try:
            self.question = self._attempt.send(answer)
        except StopIteration as stop:
            self.translation = stop.value
            self._learned_then = self.evidence.learned
            before = self._answered_before
            if before is not None and self._is_worse(stop.value.outcome, before.outcome):
                # The first attempt's proof stays valid if this attempt finds or reads less.
                self.translation = before
        except Exception as error:
            broke = _note_bug(error, self.work.source, self.offset)
            self.translation = Translation(
                Failed(
                    FailureKind.INTERNAL,
                    f"translate {self.work.source}@{self.offset}: {broke}; please report it",
                )
            )
        return self.translation is None

    def _is_worse(self, outcome: Outcome, before: Outcome) -> bool:
        """Whether the first attempt's answer is the better one. Not if it may rest on a header that
        has misled, or on a copy that has turned out to be that of a later duplicate."""
        evidence = self.evidence
        misled = evidence.settings.offset_header and not evidence.headers_hold
        match outcome, before:
            case _, Translated(pairs=pairs) if misled or any(
                evidence.may_be_later(pair, self.offset) for pair in pairs
            ):
                return False
            case Failed() | Skipped(reason=Reason.NO_PROOF), _:
                return True
            case Translated(reread_bound=int(now)), Translated(reread_bound=int(then)):
                return now > then
        return False

    def begin_again(self) -> bool:
        """Make another attempt where what has been learned since may improve the answer; True if a
        question is open."""
        assert self.translation is not None
        match self.translation.outcome:
            case (
                Translated(precision=Precision.BOUNDED | Precision.FRONTIER)
                | Skipped(reason=Reason.NO_PROOF)
            ) if self.evidence.learned > self._learned_then:
                if isinstance(self.translation.outcome, Translated):
                    self._answered_before = self.translation
                self.question, self.translation = None, None
                self._attempt = translate(self.offset, self.evidence)
                return self.go_on(None)
        return False
