"""What a search for a record comes to: the record, proof that there is none, or neither."""

from enum import Enum, auto

from tsoffset.records import Record


class Absent(Enum):
    """There is no such record: the range was read whole, up to the log's start or its end, or all
    of it is known to be older."""

    LOG_START = auto()
    LOG_END = auto()


class Unknown(Enum):
    """Whether there is such a record is not known, so nothing follows from its not being found.

    NOT_FOUND: it was looked for where its timestamp would have it. NOT_READ: the budget ended.
    """

    NOT_FOUND = auto()
    NOT_READ = auto()


Found = Record | Absent | Unknown
"""What a search for a data record came to. Only `Absent` says that there is none."""
