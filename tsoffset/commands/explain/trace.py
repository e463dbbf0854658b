"""The values that `explain` prints for one committed offset, as JSON objects or as text. A `Trace`
makes them from a translation's requests, their answers and the records that were read.

They hold offsets, times, counts and names; never a key, a value, a header or a digest of one. Every
field is always present, None where it does not apply; docs/commands.md describes them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tsoffset.cycle.source_commits import SourceCommit
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import (
    Basis,
    Failed,
    FailureKind,
    FirstAtTime,
    LogRange,
    Precision,
    Proof,
    ReadFrom,
    Reason,
    Row,
    Side,
    TimedOffset,
    TimestampType,
    Youngest,
)
from tsoffset.records import FetchedRange, Record
from tsoffset.rule.inquiry import Answer, Question, RangeOf
from tsoffset.rule.log_view import LogView

MATCHED = ("timestamp", "key", "value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The fields of all kinds; topic and partition are those of the source."""

    kind: str
    flow: str
    group: str | None
    source_topic: str | None
    partition: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionStatement(Statement):
    """The committed offset that is translated, and the settings of the rule."""

    kind: str = "position"
    source_offset: int
    source_cluster: str
    target_cluster: str
    target_topic: str
    failback: bool
    isolation: str
    proof: str
    expect: str | None
    match: str
    budget: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStatement(Statement):
    kind: str = "question"
    step: int
    side: Side
    cluster: str
    topic: str
    ask: Literal["log_range", "log_itself", "read", "first_at_time", "youngest"]
    offset: int | None = None
    max_bytes: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerStatement(Statement):
    """The answer to the request of the same `step`."""

    kind: str = "answer"
    step: int
    side: Side
    cluster: str
    topic: str
    answer: Literal["range", "stretch", "record", "none", "failed"]
    start: int | None = None
    end: int | None = None
    records: int | None = None
    record_offset: int | None = None
    record_timestamp_ms: int | None = None
    equal_offset: int | None = None
    equal_records: int | None = None
    bytes_read: int | None = None
    timestamp_type: TimestampType | None = None
    reason: FailureKind | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairStatement(Statement):
    """A source record and an equal target record, and the steps that first read them. `proves`: the
    translation is based on this pair; else it is only the nearest one."""

    kind: str = "pair"
    source_offset: int
    source_step: int | None
    target_offset: int
    target_step: int | None
    timestamp_ms: int | None
    role: Literal["before_commit", "next_record", "after_commit"]
    proves: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationStatement(Statement):
    """The translation: a target offset with its `basis` and `why`, or a `reason` with its
    `message`. `proof` is None if the basis alone shows that nothing is skipped."""

    kind: str = "translation"
    target_offset: int | None = None
    precision: Precision | None = None
    reread_bound: int | None = None
    equivalent_from: int | None = None
    equivalent_to: int | None = None
    basis: Basis | None = None
    proof: Proof | None = None
    proof_source_offset: int | None = None
    proof_target_offset: int | None = None
    why: str | None = None
    reason: Reason | FailureKind | None = None
    message: str | None = None


Step = tuple[RequestStatement, AnswerStatement]


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is printed for one committed offset, and the row that `plan` prints for it.

    `position` and `translation` are None if the row needed no translation. `commits` is false for a
    flow whose sync is disabled. `has_reverse`: a flow in the other direction is enabled, too, so a
    cycle may skip the row with TARGET_REWOUND.
    """

    row: Row
    commits: bool = True
    position: PositionStatement | None = None
    steps: tuple[Step, ...] = ()
    pairs: tuple[PairStatement, ...] = ()
    translation: TranslationStatement | None = None
    has_reverse: bool = False

    def statements(self) -> Iterator[Statement]:
        if self.position is not None:
            yield self.position
        for step in self.steps:
            yield from step
        yield from self.pairs
        if self.translation is not None:
            yield self.translation


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
        self.source = LogView(commit.partition, flow.translation.match)
        self.target = LogView(commit.target, flow.translation.match)
        self.steps: list[Step] = []
        self.common: dict[str, Any] = {
            "flow": flow.name,
            "group": commit.group,
            "source_topic": commit.partition.topic,
            "partition": commit.partition.partition,
        }
        self._of_side = {
            Side.SOURCE: {"cluster": flow.source.alias, "topic": commit.partition.topic},
            Side.TARGET: {"cluster": flow.target.alias, "topic": commit.target.topic},
        }
        self.position = PositionStatement(
            **self.common,
            source_offset=self.offset,
            source_cluster=flow.source.alias,
            target_cluster=flow.target.alias,
            target_topic=commit.target.topic,
            failback=commit.failback,
            isolation=flow.source_isolation(failback=commit.failback),
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
            if answer.side is side and answer.answer == "stretch":
                assert answer.start is not None
                assert answer.end is not None
                if answer.start <= offset < answer.end:
                    return answer.step
        return None

    def add(self, question: Question, answer: Answer) -> None:
        side = question.side
        at: dict[str, Any] = {"step": len(self.steps) + 1, "side": side, **self._of_side[side]}
        at |= self.common
        answered = AnswerStatement(**at, **self._answer(question, answer))
        self.steps.append((RequestStatement(**at, **_request(question)), answered))

    def _answer(self, question: Question, answer: Answer) -> dict[str, Any]:
        view = self.source if question.side is Side.SOURCE else self.target
        match answer:
            case Failed(kind=reason, message=message):
                return {"answer": "failed", "reason": reason, "message": message}
            case LogRange(start=start, end=end):
                if isinstance(question.what, RangeOf) and question.what.log_itself:
                    view.own_range = answer
                else:
                    view.range = answer
                return {"answer": "range", "start": start, "end": end}
            case TimedOffset(offset=at, timestamp_ms=moment):
                return {"answer": "record", "record_offset": at, "record_timestamp_ms": moment}
            case FetchedRange():
                assert isinstance(question.what, ReadFrom)
                view.add(answer)
                return self._fetched_range(question.side, question.what.offset, answer)
            case None:
                return {"answer": "none"}

    def _fetched_range(self, side: Side, offset: int, fetched: FetchedRange) -> dict[str, Any]:
        following = next((r for r in fetched.records if r.offset >= offset), None)
        other = self.target if side is Side.SOURCE else self.source
        # The lowest target record that equals the next record to read.
        equal_offset = None
        wanted = self.next_record
        if side is Side.TARGET and wanted is not None:
            identity = other.identity(wanted)
            equal_offset = next(
                (r.offset for r in fetched.records if self.target.identity(r) == identity), None
            )
        equal_records = None
        if other.range is not None and other.count_known(other.start, other.end):
            equal_records = sum(bool(other.equals(other.identity(r))) for r in fetched.records)
        return {
            "answer": "stretch",
            "start": fetched.start,
            "end": fetched.end,
            "records": len(fetched.records),
            "record_offset": None if following is None else following.offset,
            "record_timestamp_ms": None if following is None else following.timestamp_ms,
            "equal_offset": equal_offset,
            "equal_records": equal_records,
            "bytes_read": fetched.bytes_read,
            "timestamp_type": fetched.timestamp_type if fetched.records else None,
        }


def _request(question: Question) -> dict[str, Any]:
    match question.what:
        case RangeOf(log_itself=itself):
            return {"ask": "log_itself" if itself else "log_range"}
        case ReadFrom(offset=offset, max_bytes=max_bytes):
            return {"ask": "read", "offset": offset, "max_bytes": max_bytes}
        case FirstAtTime(timestamp_ms=timestamp_ms):
            return {"ask": "first_at_time", "timestamp_ms": timestamp_ms}
        case Youngest():
            return {"ask": "youngest"}
