"""What a search for a record finds: the record, that it is absent, or neither."""

from enum import Enum, auto

from tsoffset.model import Failed, FailureKind, TopicPartition
from tsoffset.records import Record, UnreadableRecords


class Absent(Enum):
    """There is no such record: the range was read whole, up to the log's start or its end, or all
    known records there are older."""

    LOG_START = auto()
    LOG_END = auto()


class Unknown(Enum):
    """It is not known whether such a record exists; never conclude anything from it.

    NOT_FOUND: not found where its timestamp would place it. NOT_READ: the budget ended.
    """

    NOT_FOUND = auto()
    NOT_READ = auto()


Found = Record | Absent | Unknown
"""The result of a search for a data record. Only `Absent` proves that it does not exist."""


class Unanswered(Exception):
    """A record that the rule needs could not be read; `failed` is the outcome of the source
    offset."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed)
        self.failed = failed

    @classmethod
    def by_malformed(
        cls, partition: TopicPartition, offset: int, error: UnreadableRecords
    ) -> "Unanswered":
        """For a malformed batch."""
        text = f"read, {partition}@{offset}: {error}"
        return cls(Failed(FailureKind.CORRUPT_BATCH, text))
