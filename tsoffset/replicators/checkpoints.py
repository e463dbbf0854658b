"""MirrorMaker 2's checkpoints: their bytes, and the newest of each group and partition in a topic.

The layout is that of org.apache.kafka.connect.mirror.Checkpoint, big-endian, a STRING being
an int16 length and that many bytes of UTF-8. Key: STRING group, STRING topic (its name on the
target), int32 partition. Value: int16 version (0), int64 upstream offset, int64 downstream
offset, STRING metadata.
"""

import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from tsoffset.cluster import Cluster
from tsoffset.model import (
    CommittedOffset,
    Failed,
    GroupOffsets,
    Isolation,
    LogRange,
    ReadFrom,
    TopicPartition,
)
from tsoffset.records import RawRecord

_BYTES_PER_READ = 1_000_000
_LENGTH = struct.Struct(">h")
_PARTITION = struct.Struct(">i")
_VALUE = struct.Struct(">hqq")
_VERSION = 0


class MalformedCheckpoint(ValueError):
    """Bytes that are no checkpoint; the text says why."""


@dataclass(frozen=True, slots=True)
class CheckpointKey:
    """The group and the target partition of a checkpoint."""

    group: str
    target: TopicPartition


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The translation `target_offset` of the committed offset `source_offset`, and when it was
    written."""

    source_offset: int
    target_offset: int
    timestamp_ms: int | None = None


def committed_by_key(
    committed: Mapping[str, GroupOffsets | Failed],
) -> dict[CheckpointKey, int]:
    """The target groups' committed offsets, without those that could not be read."""
    return {
        CheckpointKey(group, partition): commit.offset
        for group, offsets in committed.items()
        if not isinstance(offsets, Failed)
        for partition, commit in offsets.items()
        if isinstance(commit, CommittedOffset)
    }


def decode_key(content: bytes | None) -> CheckpointKey:
    """The key of a checkpoint. Raises MalformedCheckpoint."""
    if content is None:
        raise MalformedCheckpoint("a checkpoint without a key")
    group, position = _string(content, 0)
    topic, position = _string(content, position)
    if position + _PARTITION.size != len(content):
        raise MalformedCheckpoint("a key with bytes after its end")
    (partition,) = _PARTITION.unpack_from(content, position)
    if partition < 0:
        raise MalformedCheckpoint(f"partition {partition}")
    return CheckpointKey(group, TopicPartition(topic, partition))


def decode_value(content: bytes, timestamp_ms: int | None = None) -> Checkpoint:
    """The value of a checkpoint. Raises MalformedCheckpoint."""
    try:
        version, source_offset, target_offset = _VALUE.unpack_from(content)
    except struct.error:
        raise MalformedCheckpoint("a value that is too short") from None
    if version != _VERSION:
        raise MalformedCheckpoint(f"a value of the unknown version {version}")
    _, position = _string(content, _VALUE.size)
    if position != len(content):
        raise MalformedCheckpoint("a value with bytes after its end")
    if source_offset < 0 or target_offset < 0:
        raise MalformedCheckpoint("a negative offset")
    return Checkpoint(source_offset, target_offset, timestamp_ms)


def _string(content: bytes, position: int) -> tuple[str, int]:
    try:
        (length,) = _LENGTH.unpack_from(content, position)
    except struct.error:
        raise MalformedCheckpoint("a string without its length") from None
    start = position + _LENGTH.size
    end = start + length
    if length < 0 or end > len(content):
        raise MalformedCheckpoint(f"a string of {length} bytes that is cut off")
    try:
        return content[start:end].decode(), end
    except UnicodeDecodeError:
        raise MalformedCheckpoint("a string that is not UTF-8") from None


@dataclass(slots=True)
class Checkpoints:
    """The checkpoints of the wanted groups, most often from a checkpoints topic.

    `once` has the keys whose target group has committed the offset of a checkpoint, the newest or
    an earlier one; `committed` are these groups' offsets. `unanswered` says for keys without a
    checkpoint why. `malformed` counts records that are no checkpoints. `missing`: the topic does
    not exist. `failures` are partitions that could not be read; with any of them a checkpoint may
    be outdated.
    """

    committed: Mapping[CheckpointKey, int] = field(default_factory=dict)
    newest: dict[CheckpointKey, Checkpoint] = field(default_factory=dict)
    once: set[CheckpointKey] = field(default_factory=set)
    unanswered: dict[CheckpointKey, str] = field(default_factory=dict)
    malformed: int = 0
    missing: bool = False
    failures: tuple[Failed, ...] = ()

    def add(self, key: CheckpointKey, checkpoint: Checkpoint) -> None:
        """Add a checkpoint that was read later; it replaces the known one unless it is older."""
        if self.committed.get(key) == checkpoint.target_offset:
            self.once.add(key)
        known = self.newest.get(key)
        # In one partition the later record is the newer one. If a key is in several partitions,
        # which should never happen, the time decides.
        if known is None or (known.timestamp_ms or 0) <= (checkpoint.timestamp_ms or 0):
            self.newest[key] = checkpoint


def read_checkpoints(
    cluster: Cluster,
    topic: str,
    *,
    wanted: Callable[[CheckpointKey], bool],
    committed: Mapping[CheckpointKey, int],
    last: int | None = None,
) -> Checkpoints:
    """Read all partitions of the topic to their ends, and keep the wanted checkpoints.

    `committed` are the target groups' offsets; `last` limits the records that are read of each
    partition. Raises ClusterUnreachable.
    """
    found = Checkpoints(committed)
    described = cluster.topics([topic])[topic]
    if isinstance(described, Failed):
        found.missing = described.missing
        found.failures = () if described.missing else (described,)
        return found
    failures: list[Failed] = []
    partitions = [TopicPartition(topic, number) for number in described.partitions]
    for record in _records(cluster, partitions, failures, last):
        _take(found, record, wanted)
    found.failures = tuple(failures)
    return found


def _records(
    cluster: Cluster,
    partitions: Collection[TopicPartition],
    failures: list[Failed],
    last: int | None,
) -> Iterator[RawRecord]:
    """The records of the partitions, each in order, up to its current log end."""
    left: dict[TopicPartition, LogRange] = {}
    for partition, log in cluster.log_ranges(partitions, Isolation.READ_COMMITTED).items():
        if isinstance(log, Failed):
            failures.append(log)
        elif log.start < log.end:
            start = log.start if last is None else max(log.start, log.end - last)
            left[partition] = LogRange(start, log.end)
    while left:
        requests = [ReadFrom(one, log.start, _BYTES_PER_READ) for one, log in left.items()]
        for request, fetched in cluster.read_raw(requests, Isolation.READ_COMMITTED).items():
            end = left.pop(request.partition).end
            if isinstance(fetched, Failed):
                failures.append(fetched)
                continue
            yield from fetched.records
            if request.offset < fetched.end < end:
                left[request.partition] = LogRange(fetched.end, end)


def _take(found: Checkpoints, record: RawRecord, wanted: Callable[[CheckpointKey], bool]) -> None:
    try:
        key = decode_key(record.key)
        value = None if record.value is None else decode_value(record.value, record.timestamp_ms)
    except MalformedCheckpoint:
        found.malformed += 1
        return
    if not wanted(key):
        return
    if value is None:
        found.newest.pop(key, None)
        return
    found.add(key, value)
