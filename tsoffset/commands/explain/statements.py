"""What `explain` says, one value a statement: the JSON objects, and all that the text is made of.

Offsets, times, counts and names; never a key, a value, a header or a digest of one. Every
field of a kind is always there, None where it does not apply.
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


class Ask(StrEnum):
    """What a question is for."""

    LOG_RANGE = "log_range"
    LOG_ITSELF = "log_itself"
    READ = "read"
    FIRST_AT_TIME = "first_at_time"
    YOUNGEST = "youngest"


class Form(StrEnum):
    """What an answer is."""

    RANGE = "range"
    STRETCH = "stretch"
    RECORD = "record"
    NONE = "none"
    FAILED = "failed"


class Role(StrEnum):
    """Where the source record of a pair stands, seen from the commit."""

    BEFORE_COMMIT = "before_commit"
    NEXT_RECORD = "next_record"
    AFTER_COMMIT = "after_commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What all kinds begin with; topic and partition are the source's."""

    kind: str
    flow: str
    group: str | None
    source_topic: str | None
    partition: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening(Statement):
    """The position that is translated, and what the rule was given for it."""

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
class Asked(Statement):
    """One question; `step` counts from 1, `topic` is that of the side asked."""

    kind: str = "question"
    step: int
    side: Side
    cluster: str
    topic: str
    ask: Ask
    offset: int | None = None
    max_bytes: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Statement):
    """The answer to the question of the same `step`.

    `start` and `end` are the range of a log or of what was read of it; `end` is one past the
    last offset. `records` counts the data records read; `record_offset` and
    `record_timestamp_ms` are those of the first one at or after the offset (or time) asked
    for. Of what was read, `equal_offset` is the lowest target record that equals the next
    record to read, and `equal_records` counts those that equal some record read on the other
    side so far, None where none was.
    """

    kind: str = "answer"
    step: int
    side: Side
    cluster: str
    topic: str
    answer: Form
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
class EqualRecords(Statement):
    """A record of the source and an equal one of the target.

    `source_step` and `target_step` are the steps that read them at first; None, like a time that
    is not known then, where this conversation did not. `proves` is true where the translation
    rests on it; else it is only what came nearest.
    """

    kind: str = "pair"
    source_offset: int
    source_step: int | None
    target_offset: int
    target_step: int | None
    timestamp_ms: int | None
    role: Role
    proves: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion(Statement):
    """What the rule answers: a target offset with its `basis` and `why`, or a `reason` with its
    `message`. Any offset from `equivalent_from` to `equivalent_to` resumes at the same record.

    `proof` is what shows that the target offset skips nothing; None where the basis itself does.
    It rests on `proof_source_offset` and `proof_target_offset`: a record pair, or for TIME the
    offset from which the source was read to its end and the target offset before which none of
    these records lies.
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
class Verdict(Statement):
    """What the commit rule says: the row that `plan` has for this position."""

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
        """The row as a statement."""
        return cls(**{field.name: getattr(row, field.name) for field in fields(Row)})


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is said of one position of a flow.

    `opening` and `conclusion` are None where the verdict is known without a translation;
    `opening` also where not even a partition is. `commits` is false for a flow whose syncing
    is turned off.
    """

    row: Row
    commits: bool = True
    opening: Opening | None = None
    steps: tuple[tuple[Asked, Told], ...] = ()
    pairs: tuple[EqualRecords, ...] = ()
    conclusion: Conclusion | None = None

    def statements(self) -> Iterator[Statement]:
        """Everything in the order in which it came about."""
        if self.opening is not None:
            yield self.opening
        for asked, told in self.steps:
            yield asked
            yield told
        yield from self.pairs
        if self.conclusion is not None:
            yield self.conclusion
        yield Verdict.of(self.row)
