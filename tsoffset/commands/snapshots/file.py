"""A snapshot: the committed offsets of a flow's groups on its target, in a file.

The first line describes the snapshot, each other line is a committed offset; all are JSON. The file
holds names, offsets and the commits' metadata.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, ClassVar
from urllib.parse import quote

from pydantic import AfterValidator, ConfigDict, Field, Strict, TypeAdapter

from tsoffset.cluster import Cluster, committed_columns
from tsoffset.cycle.source_commits import selected_groups
from tsoffset.errors import SnapshotFailed, UsageError
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import CommittedOffset, Failed, TopicDescription, TopicPartition
from tsoffset.offset_files.document import without_repeated_keys
from tsoffset.stores import UNREACHABLE, Folder, in_words
from tsoffset.terminal.output import in_utc

VERSION = 1
_VERSION = "tsoffset_snapshot"


def _storable(text: str) -> str:
    if len(text.encode()) >= 2**15:
        raise ValueError("longer than any text that Kafka can hold")
    return text


_Text = Annotated[str, Strict(), AfterValidator(_storable)]
_Partition = Annotated[int, Strict(), Field(ge=0, lt=2**31)]
_Offset = Annotated[int, Strict(), Field(ge=0, le=2**63 - 1)]


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed offset of a group; of a share group its start offset."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    group: _Text
    topic: _Text
    partition: _Partition
    offset: _Offset
    metadata: _Text = ""
    share_group: Annotated[bool, Strict()] = False

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The committed offsets of a flow's groups on its target.

    `cluster_id` and `topic_ids` identify the cluster and its topics (None: brokers without ids).
    `taken_at` is UTC, as text. `groups` is the value of `--groups`; None if the snapshot has all
    selected groups.
    """

    flow: _Text
    cluster: _Text
    cluster_id: _Text | None
    taken_at: _Text
    groups: _Text | None
    topic_ids: dict[str, _Text | None]
    commits: tuple[Commit, ...]

    def write(self, path: Path) -> None:
        """Write a new file, in one step. Raises UsageError if it exists, and SnapshotFailed if it
        cannot be written."""
        folder = Folder(path.parent)
        try:
            # If two are written at once, only one gets the name.
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
                "can write with `tsoffset snapshot -o FILE` (and `sync --snapshot FILE`)"
            ) from error

    def _lines(self) -> Iterator[str]:
        head = {one.name: getattr(self, one.name) for one in fields(self)}
        # The number shows whether the file is complete.
        yield json.dumps({_VERSION: VERSION, **head, "commits": len(self.commits)}) + "\n"
        for commit in self.commits:
            said = asdict(commit)
            if not commit.share_group:
                del said["share_group"]
            yield json.dumps(said) + "\n"

    @classmethod
    def read(cls, path: Path) -> "Snapshot":
        """Read a file. Raises UsageError if it is no complete snapshot, or of a newer version."""
        try:
            return cls._parse(path.read_text("utf-8"))
        except OSError as error:
            why = f"{error.strerror}; check that this user can read it"
        except _NoSnapshot as error:
            why = str(error)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            why = (
                "it is not a complete snapshot of tsoffset; give a file that `tsoffset snapshot`"
                " wrote"
            )
        raise UsageError(f"read snapshot, {path}: {why}")

    @classmethod
    def _parse(cls, text: str) -> "Snapshot":
        head, *others = (
            json.loads(line, object_pairs_hook=without_repeated_keys)
            for line in text.removesuffix("\n").split("\n")
        )
        version, count = head[_VERSION], head["commits"]
        if version != VERSION:
            raise _NoSnapshot(
                f"it has version {version}, but this tsoffset reads version {VERSION}; use the"
                " tsoffset that wrote it"
            )
        found = TypeAdapter(cls).validate_python({**head, "commits": others})
        if len(found.commits) != TypeAdapter(_Offset).validate_python(count):
            raise _NoSnapshot(
                f"it has only {len(found.commits)} of its {count} committed offsets; use the"
                " complete file"
            )
        topic_partitions = Counter((one.group, one.topic_partition) for one in found.commits)
        for (group, topic_partition), times in topic_partitions.most_common(1):
            if times > 1:
                what = f"it has two committed offsets of group {group} in {topic_partition}"
                raise _NoSnapshot(f"{what}; keep one")
        return found


class _NoSnapshot(Exception):
    """The file cannot be used; the text says why."""


def take(flow: FlowSettings, target: Cluster, groups: str | None) -> Snapshot:
    """The committed offsets of all selected groups and share groups on the target, in any topic;
    `groups` is the value of --groups.

    Raises ClusterUnreachable, and SnapshotFailed if a group or a topic cannot be read: in an
    incomplete snapshot, a group would seem to have no offsets, or a topic no id.
    """
    cluster_id = target.describe().cluster_id
    listings = target.groups()
    names, broken = selected_groups(flow, listings.groups)
    for failed in (*listings.failures, *broken.values()):
        raise _incomplete(target, failed)
    commits = []
    share_groups = listings.share_groups
    found = committed_columns(target, names, share_groups=share_groups, require_stable=False)
    for group, offsets in found.by_group().items():
        if isinstance(offsets, Failed):
            raise _incomplete(target, offsets)
        for topic_partition, commit in sorted(offsets.items()):
            if not isinstance(commit, CommittedOffset):
                raise _incomplete(target, commit)
            at = (topic_partition.topic, topic_partition.partition, commit.offset)
            commits.append(Commit(group, *at, commit.metadata, group in share_groups))
    topic_ids = {}
    for topic, topic_id in topics_of(target, {commit.topic for commit in commits}).items():
        if isinstance(topic_id, Failed):
            raise _incomplete(target, topic_id)
        topic_ids[topic] = topic_id
    return Snapshot(
        flow.name,
        target.alias,
        cluster_id,
        in_utc(time.time() * 1000, "milliseconds"),
        groups,
        topic_ids,
        tuple(commits),
    )


def topics_of(target: Cluster, topics: set[str]) -> dict[str, str | Failed | None]:
    """The topics that exist, with their ids (None: brokers without ids), or why one could not be
    described."""
    described = target.topics(sorted(topics)) if topics else {}
    return {
        name: topic.topic_id if isinstance(topic, TopicDescription) else topic
        for name, topic in described.items()
        if isinstance(topic, TopicDescription) or not topic.missing
    }


def default_path(snapshot: Snapshot) -> Path:
    when = snapshot.taken_at.replace("-", "").replace(":", "")
    return Path(f"{quote(snapshot.cluster, safe='')}-{when}.snapshot")


def _incomplete(target: Cluster, failed: Failed) -> SnapshotFailed:
    return SnapshotFailed(
        f"take snapshot, cluster {target.alias}: {failed.message}; no file was written, because the"
        " snapshot would be incomplete; try again, or exclude the group with --groups"
    )
