"""OffsetFetch, versions 7 to 9, encoded and decoded by hand: all offsets of some groups.

A group may have a thousand offsets, and one object for each, as in the library, costs more than all
the rest of reading them. Version 7 (KIP-447) added stable offsets and is for one group, 8 (KIP-709)
for many; 9 (KIP-848) names the member that asks, which tsoffset is not.
`tsoffset.kafka.wire.frame_stream` sends it.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from kafka.errors import KafkaProtocolError, KafkaTimeoutError
from kafka.protocol.consumer import OffsetFetchRequest

from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.wire.flexible_encoding import (
    NO_TAGS,
    NULL,
    behind_tags,
    encoded_count,
    encoded_text,
    make_frame,
    read_count,
    read_text,
    read_unsigned,
    short_text,
)
from tsoffset.kafka.wire.frame_stream import Codec

LOWEST, HIGHEST = 7, 9
MANY_SINCE = 8
API_KEY: int = OffsetFetchRequest.API_KEY

_MEMBER_SINCE = 9
_NO_MEMBER = NULL + Struct(">i").pack(-1)
_ALL_TOPICS = NULL

_INT16 = Struct(">h")
_INT32 = Struct(">i")

# An offset in a response: partition, offset, leader epoch, metadata, error, tagged fields. In most
# of them metadata is null or empty and takes one byte, and there are no tagged fields.
_METADATA, _TAGS, _ENTRY_BYTES = 16, 19, 20
_ENTRY = np.dtype(
    {
        "names": ["partition", "offset", "leader_epoch", "error_code"],
        "formats": [">i4", ">i8", ">i4", ">i2"],
        "offsets": [0, 4, 12, 17],
        "itemsize": _ENTRY_BYTES,
    }
)


class OffsetFetchAnswer(NamedTuple):
    """A broker's answer as it arrived, one entry per offset.

    `groups` are names (None before version 8, which answers for one group) and error codes; `group`
    and `topic` are indices into `groups` and `topics`; `metadata` is by index of entry, for entries
    with metadata. `lag` is a share group's, -1 if the broker does not know it; None if it does not
    tell.
    """

    throttle_time_ms: int
    groups: tuple[tuple[str | None, int], ...]
    topics: tuple[str, ...]
    group: npt.NDArray[np.int32]
    topic: npt.NDArray[np.int32]
    partition: npt.NDArray[np.int32]
    offset: npt.NDArray[np.int64]
    leader_epoch: npt.NDArray[np.int32]
    error_code: npt.NDArray[np.int16]
    metadata: dict[int, str]
    lag: npt.NDArray[np.int64] | None = None


class OffsetFetchCodec(Codec[Sequence[str], OffsetFetchAnswer]):
    """Asks for all offsets of groups; before version 8, of the first one."""

    def __init__(
        self, client_id: str, deadline: Deadline, require_stable: bool, version: int
    ) -> None:
        self._version = version
        self._deadline = deadline
        self._begin = short_text(client_id) + NO_TAGS
        self._end = bytes((require_stable,)) + NO_TAGS

    def encode(self, groups: Sequence[str], correlation_id: int) -> bytes:
        parts = [self._begin]
        if self._version < MANY_SINCE:
            parts += (encoded_text(groups[0]), _ALL_TOPICS)
        else:
            member = _NO_MEMBER if self._version >= _MEMBER_SINCE else b""
            parts.append(encoded_count(len(groups)))
            for group in groups:
                parts += (encoded_text(group), member, _ALL_TOPICS, NO_TAGS)
        parts.append(self._end)
        return make_frame(API_KEY, self._version, correlation_id, parts)

    def decode(self, frame: memoryview) -> OffsetFetchAnswer:
        return _Reading(bytes(frame), self._deadline).answer(self._version)


class _Reading:
    """One response. Each entry is cut to one length, by leaving out its metadata and tagged fields;
    all entries are then joined, and decoded as columns."""

    def __init__(self, raw: bytes, deadline: Deadline) -> None:
        self._raw = raw
        self._deadline = deadline
        self._chunks: list[bytes] = []
        self._metadata: dict[int, str] = {}
        self._topics: dict[bytes, int] = {}
        # For each topic of each group: the two, and the number of its entries.
        self._blocks: list[int] = []
        self._entries = 0

    def answer(self, version: int) -> OffsetFetchAnswer:
        raw = self._raw
        position = behind_tags(raw, _INT32.size)
        (throttle_time_ms,) = _INT32.unpack_from(raw, position)
        position += _INT32.size
        groups: list[tuple[str | None, int]] = []
        if version < MANY_SINCE:
            error_code, position = self._read_group(position, 0)
            groups.append((None, error_code))
        else:
            count, position = read_count(raw, position)
            for number in range(count):
                name, position = read_text(raw, position)
                error_code, position = self._read_group(position, number)
                groups.append((name, error_code))
                position = behind_tags(raw, position)
        if behind_tags(raw, position) != len(raw):
            raise KafkaProtocolError("an OffsetFetch answer with extra bytes at the end")
        blocks = np.array(self._blocks, np.int32).reshape(-1, 3)
        entries = np.frombuffer(b"".join(self._chunks), _ENTRY)
        return OffsetFetchAnswer(
            throttle_time_ms,
            tuple(groups),
            tuple(name.decode() for name in self._topics),
            np.repeat(blocks[:, 0], blocks[:, 2]),
            np.repeat(blocks[:, 1], blocks[:, 2]),
            entries["partition"].astype(np.int32),
            entries["offset"].astype(np.int64),
            entries["leader_epoch"].astype(np.int32),
            entries["error_code"].astype(np.int16),
            self._metadata,
        )

    def _read_group(self, position: int, group: int) -> tuple[int, int]:
        """Read the offsets of a group; returns its error code, and where it ends."""
        raw = self._raw
        topics, position = read_count(raw, position)
        for _ in range(topics):
            if self._deadline.over:
                raise KafkaTimeoutError("an answer that takes longer to read than the call may")
            size, position = read_count(raw, position)
            name, position = raw[position : position + size], position + size
            count, position = read_count(raw, position)
            self._blocks += (group, self._topics.setdefault(name, len(self._topics)), count)
            end = position + count * _ENTRY_BYTES
            # If all entries before it are short, an entry begins where its bytes are expected.
            if (
                end <= len(raw)
                and not raw[position + _METADATA : end : _ENTRY_BYTES].strip(b"\0\1")
                and not raw[position + _TAGS : end : _ENTRY_BYTES].strip(b"\0")
            ):
                self._chunks.append(raw[position:end])
            else:
                end = self._walk(position, count)
            self._entries += count
            position = behind_tags(raw, end)
        (error_code,) = _INT16.unpack_from(raw, position)
        return error_code, position + _INT16.size

    def _walk(self, position: int, count: int) -> int:
        """Read entries of any length, one by one; returns where they end."""
        raw, chunks, metadata = self._raw, self._chunks, self._metadata
        for number in range(self._entries, self._entries + count):
            behind = position + _METADATA
            size = raw[behind]
            begin = behind + 1
            if size > 0x7F:
                size, begin = read_unsigned(raw, behind)
            behind = begin + size - 1 if size else begin
            tags = behind + _INT16.size
            end = tags + 1 if not raw[tags] else behind_tags(raw, tags)
            if size > 1:
                metadata[number] = raw[begin:behind].decode()
            # One byte replaces the metadata, and one the tagged fields.
            chunks.append(raw[position : position + _METADATA])
            chunks.append(raw[behind - 1 : tags + 1])
            position = end
        return position
