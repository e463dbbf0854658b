"""The statements of `explain`, one value each: its JSON objects, and the source of its text.

They hold offsets, times, counts and names; never a key, a value, a header or a digest of one. Every
field is always present, None where it does not apply.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Self

from tsoffset.model import (
    Basis,
    FailureKind,
    OutcomeKind,
    Precision,
    Proof,
    Reason,
    Row,
    Side,
    TimestampType,
)


class RequestKind(StrEnum):
    LOG_RANGE = "log_range"
    LOG_ITSELF = "log_itself"
    READ = "read"
    FIRST_AT_TIME = "first_at_time"
    YOUNGEST = "youngest"


class AnswerKind(StrEnum):
    RANGE = "range"
    STRETCH = "stretch"
    RECORD = "record"
    NONE = "none"
    FAILED = "failed"


class PairRole(StrEnum):
    """Where the source record of a pair lies, relative to the committed offset."""

    BEFORE_COMMIT = "before_commit"
    NEXT_RECORD = "next_record"
    AFTER_COMMIT = "after_commit"


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
    """One request; `step` counts from 1, `topic` is that on the side asked."""

    kind: str = "question"
    step: int
    side: Side
    cluster: str
    topic: str
    ask: RequestKind
    offset: int | None = None
    max_bytes: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerStatement(Statement):
    """The answer to the request of the same `step`.

    `start` and `end` are the range of a log, or of what was read of it; `end` is one past the last
    offset. `records` counts the data records read; `record_offset` and `record_timestamp_ms` are
    those of the first one at or after the requested offset (or time). `equal_offset` is the lowest
    target record read that equals the next record to read. `equal_records` counts the records that
    equal one read on the other side before; None if none was read there.
    """

    kind: str = "answer"
    step: int
    side: Side
    cluster: str
    topic: str
    answer: AnswerKind
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
    """A source record and an equal target record.

    `source_step` and `target_step` are the steps that first read them; None if no step did.
    `proves`: the translation is based on this pair; else it is only the nearest one.
    """

    kind: str = "pair"
    source_offset: int
    source_step: int | None
    target_offset: int
    target_step: int | None
    timestamp_ms: int | None
    role: PairRole
    proves: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationStatement(Statement):
    """The translation: a target offset with its `basis` and `why`, or a `reason` with its
    `message`. Any offset from `equivalent_from` to `equivalent_to` resumes at the same record.

    `proof` shows that the target offset skips nothing; None if the basis alone does. It refers to
    `proof_source_offset` and `proof_target_offset`: a record pair, or for TIME the offset from
    which the source was read to its end, and the target offset before which none of these records
    lies.
    """

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStatement(Statement):
    """The row that `plan` prints for this committed offset."""

    kind: str = "verdict"
    source_offset: int | None
    source_timestamp_ms: int | None
    target_topic: str | None
    target_offset: int | None
    current_target_offset: int | None
    outcome: OutcomeKind
    reason: Reason | FailureKind | None
    precision: Precision | None
    reread_bound: int | None
    message: str | None
    consumer_lag: int | None

    @classmethod
    def of(cls, row: Row) -> Self:
        return cls(**{field.name: getattr(row, field.name) for field in fields(Row)})


@dataclass(frozen=True, slots=True)
class Explanation:
    """All statements on one committed offset of a flow.

    `position` and `translation` are None if the row needed no translation. `commits` is false for a
    flow whose sync is disabled.
    """

    row: Row
    commits: bool = True
    position: PositionStatement | None = None
    steps: tuple[tuple[RequestStatement, AnswerStatement], ...] = ()
    pairs: tuple[PairStatement, ...] = ()
    translation: TranslationStatement | None = None

    def statements(self) -> Iterator[Statement]:
        if self.position is not None:
            yield self.position
        for request, answer in self.steps:
            yield request
            yield answer
        yield from self.pairs
        if self.translation is not None:
            yield self.translation
        yield RowStatement.of(self.row)
