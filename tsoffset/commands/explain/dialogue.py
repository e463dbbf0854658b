"""One position's conversation as it was overheard: the steps, and what was seen in them."""

from typing import Any

from tsoffset.commands.explain.statements import Ask, Asked, Form, Opening, Told
from tsoffset.cycle.source_commits import SourceCommit
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Failed, FirstAtTime, LogRange, ReadFrom, Side, TimedOffset, Youngest
from tsoffset.records import Record, Stretch
from tsoffset.rule.inquiry import Answer, Question, RangeOf
from tsoffset.rule.log_view import LogView

MATCHED = ("timestamp", "key", "value")


class Dialogue:
    """What a position asked and was told, with the records that came along.

    `source` and `target` hold these records for comparisons; they do not leave this object.
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
        self.steps: list[tuple[Asked, Told]] = []
        self.about: dict[str, Any] = {
            "flow": flow.name,
            "group": commit.group,
            "source_topic": commit.partition.topic,
            "partition": commit.partition.partition,
        }
        self.opening = Opening(
            **self.about,
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
        """The next record to read: the first data record at or after the commit, once seen."""
        record = self.source.next_known(self.offset)
        readable = record is not None and self.source.range is not None
        return record if record and readable and record.offset < self.source.end else None

    def step_reading(self, side: Side, offset: int) -> int | None:
        """The first step that read the record at `offset`; None where none did."""
        for _, told in self.steps:
            if told.side is side and told.answer is Form.STRETCH:
                assert told.start is not None
                assert told.end is not None
                if told.start <= offset < told.end:
                    return told.step
        return None

    def hear(self, question: Question, answer: Answer) -> None:
        """Take in one question with its answer."""
        side = question.side
        at: dict[str, Any] = {
            **self.about,
            "step": len(self.steps) + 1,
            "side": side,
            "cluster": self.opening.source_cluster
            if side is Side.SOURCE
            else self.opening.target_cluster,
            "topic": self._view(side).partition.topic,
        }
        self.steps.append((_asked(question, at), self._told(question, answer, at)))

    def _view(self, side: Side) -> LogView:
        return self.source if side is Side.SOURCE else self.target

    def _told(self, question: Question, answer: Answer, at: dict[str, Any]) -> Told:
        view = self._view(question.side)
        match answer:
            case Failed():
                return Told(**at, answer=Form.FAILED, reason=answer.kind, message=answer.message)
            case LogRange():
                if isinstance(question.what, RangeOf) and question.what.log_itself:
                    view.own_range = answer
                else:
                    view.range = answer
                return Told(**at, answer=Form.RANGE, start=answer.start, end=answer.end)
            case TimedOffset():
                return Told(
                    **at,
                    answer=Form.RECORD,
                    record_offset=answer.offset,
                    record_timestamp_ms=answer.timestamp_ms,
                )
            case Stretch():
                assert isinstance(question.what, ReadFrom)
                view.add(answer)
                return self._read(question.side, question.what.offset, answer, at)
            case None:
                return Told(**at, answer=Form.NONE)

    def _read(self, side: Side, asked: int, stretch: Stretch, at: dict[str, Any]) -> Told:
        following = next((r for r in stretch.records if r.offset >= asked), None)
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
        return Told(
            **at,
            answer=Form.STRETCH,
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


def _asked(question: Question, at: dict[str, Any]) -> Asked:
    match question.what:
        case RangeOf(log_itself=itself):
            return Asked(**at, ask=Ask.LOG_ITSELF if itself else Ask.LOG_RANGE)
        case ReadFrom(offset=offset, max_bytes=max_bytes):
            return Asked(**at, ask=Ask.READ, offset=offset, max_bytes=max_bytes)
        case FirstAtTime(timestamp_ms=timestamp_ms):
            return Asked(**at, ask=Ask.FIRST_AT_TIME, timestamp_ms=timestamp_ms)
        case Youngest():
            return Asked(**at, ask=Ask.YOUNGEST)
