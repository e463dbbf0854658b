"""A checkpoint of MirrorMaker 2, as in `<source>.checkpoints.internal`.

The layout is that of org.apache.kafka.connect.mirror.Checkpoint, big-endian, a STRING being an
int16 length and that many bytes of UTF-8. Key: STRING group, STRING topic (its name on the target),
int32 partition. Value: int16 version (0), int64 upstream offset, int64 downstream offset, STRING
metadata.
"""

import struct
from dataclasses import dataclass

from tsoffset.model import TopicPartition

_LENGTH = struct.Struct(">h")
_PARTITION = struct.Struct(">i")
_VALUE = struct.Struct(">hqq")
_VERSION = 0


class MalformedCheckpoint(ValueError):
    """Bytes that are no checkpoint; the text says why."""


@dataclass(frozen=True, slots=True)
class CheckpointKey:
    """A group and a partition of the target."""

    group: str
    target: TopicPartition


@dataclass(frozen=True, slots=True)
class CheckpointValue:
    """The group's committed offset on the source, and its translation."""

    source_offset: int
    target_offset: int


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


def decode_value(content: bytes) -> CheckpointValue:
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
    return CheckpointValue(source_offset, target_offset)


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
