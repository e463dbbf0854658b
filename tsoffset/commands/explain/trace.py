"""Traces the translation of one committed offset: its requests, their answers, the records read."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tsoffset.commands.explain.statements import (
    AnswerKind,
    AnswerStatement,
    PositionStatement,
    RequestKind,
    RequestStatement,
)
from tsoffset.cycle.source_commits import SourceCommit
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Failed, FirstAtTime, LogRange, ReadFrom, Side, TimedOffset, Youngest
from tsoffset.records import Record, Stretch
from tsoffset.rule.inquiry import Answer, Question, RangeOf
from tsoffset.rule.log_view import LogView

MATCHED = ("timestamp", "key", "value")


class Trace:
    """The requests and answers of one translation.

    `source` and `target` hold the records that were read, for comparisons; they never leave this
    object.
    """

    def __init__(self, flow: FlowSettings, commit: SourceCommit) -> None:
        assert commit.partition is not None
        assert commit.target is not None
        assert commit.committed is not None
        self.offset = commit.committed.offset
        self.failback = commit.failback
        self.settings = flow.translation
        self.source = LogView(commit.partition, flow.translation.match)
        self.target = LogView(commit.target, flow.translation.match)
        self.steps: list[tuple[RequestStatement, AnswerStatement]] = []
        self.common: dict[str, Any] = {
            "flow": flow.name,
            "group": commit.group,
            "source_topic": commit.partition.topic,
            "partition": commit.partition.partition,
        }
        self.position = PositionStatement(
            **self.common,
            source_offset=self.offset,
            source_cluster=flow.source.alias,
            target_cluster=flow.target.alias,
            target_topic=commit.target.topic,
            failback=commit.failback,
            isolation=flow.isolation,
            proof=flow.translation.proof,
            expect=flow.translation.expect,
            match=",".join(name for name in MATCHED if name in flow.translation.match),
            budget=flow.translation.budget,
        )

    @property
    def next_record(self) -> Record | None:
        """The first data record at or after the committed offset, once it was read."""
        record = self.source.next_known(self.offset)
        readable = record is not None and self.source.range is not None
        return record if record and readable and record.offset < self.source.end else None

    def step_that_read(self, side: Side, offset: int) -> int | None:
        """The first step that read the record at `offset`; None if none did."""
        for _, answer in self.steps:
            if answer.side is side and answer.answer is AnswerKind.STRETCH:
                assert answer.start is not None
                assert answer.end is not None
                if answer.start <= offset < answer.end:
                    return answer.step
        return None

    def add(self, question: Question, answer: Answer) -> None:
        side, position = question.side, self.position
        of_source = side is Side.SOURCE
        at: dict[str, Any] = {
            **self.common,
            "step": len(self.steps) + 1,
            "side": side,
            "cluster": position.source_cluster if of_source else position.target_cluster,
            "topic": position.source_topic if of_source else position.target_topic,
        }
        answered = self._answer(question, answer, partial(AnswerStatement, **at))
        self.steps.append((_request(question, partial(RequestStatement, **at)), answered))

    def _answer(
        self, question: Question, answer: Answer, said: Callable[..., AnswerStatement]
    ) -> AnswerStatement:
        view = self.source if question.side is Side.SOURCE else self.target
        match answer:
            case Failed(kind=reason, message=message):
                return said(answer=AnswerKind.FAILED, reason=reason, message=message)
            case LogRange(start=start, end=end):
                if isinstance(question.what, RangeOf) and question.what.log_itself:
                    view.own_range = answer
                else:
                    view.range = answer
                return said(answer=AnswerKind.RANGE, start=start, end=end)
            case TimedOffset(offset=at, timestamp_ms=moment):
                return said(answer=AnswerKind.RECORD, record_offset=at, record_timestamp_ms=moment)
            case Stretch():
                assert isinstance(question.what, ReadFrom)
                view.add(answer)
                return self._stretch(question.side, question.what.offset, answer, said)
            case None:
                return said(answer=AnswerKind.NONE)

    def _stretch(
        self, side: Side, offset: int, stretch: Stretch, said: Callable[..., AnswerStatement]
    ) -> AnswerStatement:
        following = next((r for r in stretch.records if r.offset >= offset), None)
        other = self.target if side is Side.SOURCE else self.source
        equal_offset = None
        wanted = self.next_record
        if side is Side.TARGET and wanted is not None:
            identity = other.identity(wanted)
            equal_offset = next(
                (r.offset for r in stretch.records if self.target.identity(r) == identity), None
            )
        equal_records = None
        if other.range is not None and other.count_known(other.start, other.end):
            equal_records = sum(bool(other.equals(other.identity(r))) for r in stretch.records)
        return said(
            answer=AnswerKind.STRETCH,
            start=stretch.start,
            end=stretch.end,
            records=len(stretch.records),
            record_offset=None if following is None else following.offset,
            record_timestamp_ms=None if following is None else following.timestamp_ms,
            equal_offset=equal_offset,
            equal_records=equal_records,
            bytes_read=stretch.bytes_read,
            timestamp_type=stretch.timestamp_type if stretch.records else None,
        )


def _request(question: Question, said: Callable[..., RequestStatement]) -> RequestStatement:
    match question.what:
        case RangeOf(log_itself=itself):
            return said(ask=RequestKind.LOG_ITSELF if itself else RequestKind.LOG_RANGE)
        case ReadFrom(offset=offset, max_bytes=max_bytes):
            return said(ask=RequestKind.READ, offset=offset, max_bytes=max_bytes)
        case FirstAtTime(timestamp_ms=timestamp_ms):
            return said(ask=RequestKind.FIRST_AT_TIME, timestamp_ms=timestamp_ms)
        case Youngest():
            return said(ask=RequestKind.YOUNGEST)
