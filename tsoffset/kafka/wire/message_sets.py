"""Messages of formats 0 and 1, which brokers before 0.11 wrote: single, or a set compressed into
the value of another one."""

import struct
import zlib
from itertools import pairwise
from typing import NamedTuple

from kafka.errors import CorruptRecordError

from tsoffset.kafka.wire.batch_records import MOST_RECORDS
from tsoffset.kafka.wire.unpacking import LZ4, lz4_of_format_0, unpack

# Offset, length, CRC, magic, attributes; in format 1 the timestamp. The CRC covers everything after
# it.
_HEADS = {0: struct.Struct(">qiIbb"), 1: struct.Struct(">qiIbbq")}
_LENGTH_ENDS = 12
_CHECKED_FROM = 16
_CHECKSUM = 2
_SIZE = struct.Struct(">i")

_COMPRESSION = 0x07
LOG_APPEND_TIME = 0x08


class LegacyMessage(NamedTuple):
    """`timestamp` is -1 in format 0, which has none."""

    offset: int
    timestamp: int
    attributes: int
    key: bytes | None
    value: bytes | None


def messages(view: memoryview, offset: int, magic: int) -> list[LegacyMessage]:
    """The content of the message at `offset`: itself, or the set compressed in it, with the
    attributes of the whole. Format 1 counts the inner offsets from the first one.

    Raises CorruptRecordError or UnsupportedCodecError.
    """
    try:
        if zlib.crc32(view[_CHECKED_FROM:]) != _HEADS[magic].unpack_from(view)[_CHECKSUM]:
            raise CorruptRecordError(f"the message at offset {offset} fails its checksum")
        (outer,) = _walk(view, magic)
        compression = outer.attributes & _COMPRESSION
        if not compression:
            return [outer]
        packed = outer.value or b""
        if magic == 0 and compression == LZ4:
            packed = lz4_of_format_0(packed)
        found = _walk(memoryview(unpack(packed, compression, offset)), magic)
        if not found or any(message.attributes & _COMPRESSION for message in found):
            raise ValueError("packed twice, or empty")
        if any(one.offset >= other.offset for one, other in pairwise(found)):
            raise ValueError("offsets of messages are not in order")
        # The offset of the whole is that of the last inner message.
        shift = max(0, offset - found[-1].offset) if magic else 0
    except (ValueError, IndexError, struct.error) as error:
        raise CorruptRecordError(f"the message at offset {offset} is malformed") from error
    stamped = outer.attributes & LOG_APPEND_TIME
    return [
        message._replace(
            offset=message.offset + shift,
            timestamp=outer.timestamp if stamped else message.timestamp,
            attributes=outer.attributes,
        )
        for message in found
    ]


def _walk(view: memoryview, magic: int) -> list[LegacyMessage]:
    """All consecutive messages. Raises ValueError or struct.error."""
    head = _HEADS[magic]
    found: list[LegacyMessage] = []
    position = 0
    while position < len(view):
        offset, length, _, _, attributes, *timestamps = head.unpack_from(view, position)
        key, behind = _content(view, position + head.size)
        value, behind = _content(view, behind)
        # This check also makes sure that the walk makes progress.
        position += _LENGTH_ENDS + length
        if behind != position:
            raise ValueError("a message does not end where its length says")
        if len(found) == MOST_RECORDS:
            raise ValueError(f"more than {MOST_RECORDS} messages")
        found.append(LegacyMessage(offset, timestamps[0] if magic else -1, attributes, key, value))
    return found


def _content(view: memoryview, position: int) -> tuple[bytes | None, int]:
    (size,) = _SIZE.unpack_from(view, position)
    position += _SIZE.size
    if size == -1:
        return None, position
    end = position + size
    if not position <= end <= len(view):
        raise ValueError("content outside of its message")
    return view[position:end].tobytes(), end
