"""What groups had committed on a cluster at one time, in a file for people and for `restore`.

The first line says what it is of, each other one is a commit; all are JSON. It holds names, offsets
and the commits' metadata.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tsoffset.errors import SnapshotFailed, UsageError
from tsoffset.model import TopicPartition
from tsoffset.stores import UNREACHABLE, Folder, in_words

VERSION = 1
_VERSION = "tsoffset_snapshot"


@dataclass(frozen=True, slots=True)
class Commit:
    """What a group had committed; of a share group its start offset."""

    group: str
    topic: str
    partition: int
    offset: int
    metadata: str = ""
    share_group: bool = False

    @property
    def place(self) -> TopicPartition:
        """Where."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The commits of a flow's groups on its target.

    `cluster_id` says which cluster that was, `topic_ids` which topics those were (None of brokers
    that have no ids). `taken_at` is UTC, as text. `groups` is what `--groups` narrowed it to; None
    where it has all groups that the flow's filter lets through.
    """

    flow: str
    cluster: str
    cluster_id: str | None
    taken_at: str
    groups: str | None
    topic_ids: Mapping[str, str | None]
    commits: tuple[Commit, ...]

    def write(self, path: Path) -> None:
        """Write a new file, in one step. Raises UsageError where there is one of that name, and
        SnapshotFailed where it cannot be written."""
        folder = Folder(path.parent)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Of two at once one gets the name.
            path.touch(0o600, exist_ok=False)
            try:
                folder.write(path.name, "".join(self._lines()).encode())
            except BaseException:
                path.unlink()
                raise
        except FileExistsError:
            raise UsageError(
                f"write snapshot, {path}: the file exists, and a snapshot is never replaced; name"
                " another file"
            ) from None
        except UNREACHABLE as error:
            raise SnapshotFailed(
                f"write snapshot, {path}: {in_words(folder, error)}; name a file that this user "
                "can write"
            ) from error

    def _lines(self) -> Iterator[str]:
        head = {name: getattr(self, name) for name in _OF_ALL}
        # How many there are tells a file that was cut.
        yield json.dumps({_VERSION: VERSION, **head, "commits": len(self.commits)}) + "\n"
        for commit in self.commits:
            said = asdict(commit)
            if not commit.share_group:
                del said["share_group"]
            yield json.dumps(said) + "\n"

    @classmethod
    def read(cls, path: Path) -> "Snapshot":
        """What a file holds. Raises UsageError where that is no snapshot, not all of one, or one
        of a newer version."""
        try:
            return cls._parsed(path.read_text("utf-8"))
        except OSError as error:
            why = f"{error.strerror}; check that this user can read it"
        except _Unusable as error:
            why = str(error)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            why = "it is not a complete snapshot of tsoffset; take a new one"
        raise UsageError(f"read snapshot, {path}: {why}")

    @classmethod
    def _parsed(cls, text: str) -> "Snapshot":
        first, *others = text.removesuffix("\n").split("\n")
        head = _fields(first)
        version = head[_VERSION]
        if version != VERSION:
            raise _Unusable(
                f"it has version {version}, but this tsoffset reads version {VERSION}; use the"
                " tsoffset that wrote it"
            )
        commits = tuple(_checked(Commit(**_fields(line))) for line in others)
        count = _number(head["commits"], 2**63)
        if len(commits) != count:
            raise _Unusable(
                f"it has only {len(commits)} of its {count} committed offsets; use the complete"
                " file"
            )
        known: set[tuple[str, TopicPartition]] = set()
        for one in commits:
            if (one.group, one.place) in known:
                raise _Unusable(
                    f"it has two committed offsets of group {one.group} in {one.place}; keep one"
                )
            known.add((one.group, one.place))
        for name in ("flow", "cluster", "taken_at"):
            _text(head[name])
        for value in (head["cluster_id"], head["groups"], *head["topic_ids"].values()):
            if value is not None:
                _text(value)
        return cls(**{name: head[name] for name in _OF_ALL}, commits=commits)


class _Unusable(Exception):
    """The file cannot be used; the text says why."""


def _fields(line: str) -> dict[str, Any]:
    """The members of a line's object, none of them twice. Raises ValueError."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a member is given twice")
        return found

    fields_found: dict[str, Any] = json.loads(line, object_pairs_hook=unique)
    return fields_found


def _checked(commit: Commit) -> Commit:
    """The commit, whose values Kafka can hold. Raises ValueError."""
    for value in (commit.group, commit.topic, commit.metadata):
        if len(_text(value)) > _LONGEST_TEXT:
            raise ValueError("no text that Kafka can hold")
    if not isinstance(commit.share_group, bool):
        raise ValueError("neither true nor false")
    _number(commit.partition, 2**31)
    _number(commit.offset, 2**63)
    return commit


def _text(value: object) -> bytes:
    if not isinstance(value, str):
        raise ValueError("no text")
    # Half of a character cannot be encoded, which raises ValueError, too.
    return value.encode()


def _number(value: object, end: int) -> int:
    # True is an int to Python.
    if type(value) is not int or not 0 <= value < end:
        raise ValueError("no number that Kafka can hold")
    return value


_LONGEST_TEXT = 2**15 - 1
_OF_ALL = tuple(field.name for field in fields(Snapshot) if field.name != "commits")
