"""What all formats share: offsets to translate, and the same text with target offsets."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tsoffset.errors import UsageError

LOG_END, LOG_START = -1, -2
"""In Spark's JSON: begin at the log's end, at its start. They mean the same on the target."""

LARGEST_OFFSET = 2**63 - 1
LARGEST_PARTITION = 2**31 - 1
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """The next record that an application reads of a partition, or LOG_END, or LOG_START.

    `group` is the group that the file names with it, if any. A partition may occur once in each of
    several logs, as in a Spark checkpoint: `log` names the one of this offset.
    """

    topic: str
    partition: int
    offset: int
    group: str | None = None
    log: str = ""


@dataclass(frozen=True, slots=True)
class TargetOffset:
    """Where the application resumes on the target; the partition's number stays."""

    topic: str
    offset: int


Targets = Mapping[StoredOffset, TargetOffset]


@dataclass(frozen=True, slots=True)
class Document:
    """The offsets of a text, in its order. `translated` returns the text with each offset replaced
    by its translation, and raises UsageError where two source partitions become one target
    partition."""

    offsets: tuple[StoredOffset, ...]
    render: Callable[[Targets], str]


def parse_error(location: str, line: int | None, found: str, expected: str) -> UsageError:
    """The error for input that cannot be read: file, line, what is there, what is expected."""
    where = location if line is None else f"{location}:{line}"
    return UsageError(f"{where}: {found}; expected {expected}")


def is_partition(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_PARTITION


def is_offset(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_OFFSET


def is_topic(value: object) -> bool:
    return isinstance(value, str) and _TOPIC.fullmatch(value) is not None


def without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An `object_pairs_hook` for `json`. Raises ValueError where a key occurs twice: the last one
    would silently win."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} occurs twice")
    return found
