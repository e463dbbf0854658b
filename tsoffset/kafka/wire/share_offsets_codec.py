"""DescribeShareGroupOffsets and AlterShareGroupOffsets (KIP-932), which kafka-python does not have.

For each partition of a share group, a broker stores the offset from which records are yet to be
acknowledged: the share-partition start offset. These two requests correspond to OffsetFetch and
OffsetCommit, and are decoded to the answers of those. Version 1 of the first also has the group's
lag (KIP-1226). The fields are those of Kafka's message schemas.
"""

from collections import defaultdict
from collections.abc import Sequence
from struct import Struct
from types import SimpleNamespace

import numpy as np
from kafka.errors import GroupIdNotFoundError, KafkaProtocolError, KafkaTimeoutError

from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.wire.flexible_encoding import (
    NO_TAGS,
    NULL,
    behind_tags,
    check_end,
    encoded_count,
    encoded_text,
    make_frame,
    read_count,
    read_text,
    read_unsigned,
    short_text,
)
from tsoffset.kafka.wire.frame_stream import Codec
from tsoffset.kafka.wire.offset_commit_codec import CommitPart, OffsetCommitAnswer
from tsoffset.kafka.wire.offset_fetch_codec import OffsetFetchAnswer


def _request(key: int, name: str, highest: int) -> SimpleNamespace:
    """What kafka-python needs to find the version of a request that a broker supports."""
    limits = {"_min_version": None, "_max_version": None}
    return SimpleNamespace(API_KEY=key, name=name, min_version=0, max_version=highest, **limits)


DESCRIBE = _request(90, "DescribeShareGroupOffsets", 1)
ALTER = _request(91, "AlterShareGroupOffsets", 0)

_ALL_TOPICS = NULL
_GROUP_ID_NOT_FOUND: int = GroupIdNotFoundError.errno

_INT16, _INT32 = Struct(">h"), Struct(">i")
_TOPIC_ID_BYTES = 16
# A partition in a description: index, start offset, leader epoch, lag, error.
_DESCRIBED = {0: Struct(">iqih"), 1: Struct(">iqiqh")}
# A partition to alter: index, start offset, number of tagged fields. In the answer: index, error.
_ALTERED = Struct(">iqb")
_ANSWERED = Struct(">ih")


class DescribeShareOffsetsCodec(Codec[Sequence[str], OffsetFetchAnswer]):
    def __init__(self, client_id: str, deadline: Deadline, version: int) -> None:
        self._version = version
        self._deadline = deadline
        self._begin = short_text(client_id) + NO_TAGS

    def encode(self, groups: Sequence[str], correlation_id: int) -> bytes:
        parts = [self._begin, encoded_count(len(groups))]
        for group in groups:
            parts += (encoded_text(group), _ALL_TOPICS, NO_TAGS)
        return make_frame(DESCRIBE.API_KEY, self._version, correlation_id, [*parts, NO_TAGS])

    def decode(self, frame: memoryview) -> OffsetFetchAnswer:
        """As in OffsetFetch, a group that does not exist has no offsets."""
        raw = bytes(frame)
        position = behind_tags(raw, _INT32.size)
        (throttle_time_ms,) = _INT32.unpack_from(raw, position)
        count, position = read_count(raw, position + _INT32.size)
        groups: list[tuple[str | None, int]] = []
        names: dict[str, int] = {}
        entries: list[tuple[int, ...]] = []
        layout = _DESCRIBED[self._version]
        for group in range(count):
            name, position = read_text(raw, position)
            topics, position = read_count(raw, position)
            for _ in range(topics):
                if self._deadline.over:
                    raise KafkaTimeoutError("an answer that takes longer to read than the call may")
                topic, position = read_text(raw, position)
                topic_index = names.setdefault(topic, len(names))
                partitions, position = read_count(raw, position + _TOPIC_ID_BYTES)
                for _ in range(partitions):
                    index, offset, _, *lag, code = layout.unpack_from(raw, position)
                    entries.append((group, topic_index, index, offset, code, *lag))
                    position = behind_tags(raw, _behind_message(raw, position + layout.size))
                position = behind_tags(raw, position)
            (code,) = _INT16.unpack_from(raw, position)
            position = behind_tags(raw, _behind_message(raw, position + _INT16.size))
            groups.append((name, 0 if code == _GROUP_ID_NOT_FOUND else code))
        if behind_tags(raw, position) != len(raw):
            raise KafkaProtocolError("a share group's offsets with extra bytes at the end")
        columns = np.array(entries, np.int64).reshape(len(entries), -1 if entries else 5).T
        return OffsetFetchAnswer(
            throttle_time_ms,
            tuple(groups),
            tuple(names),
            columns[0].astype(np.int32),
            columns[1].astype(np.int32),
            columns[2].astype(np.int32),
            columns[3],
            # The epoch in the answer is the partition's own, not one that was committed.
            np.full(len(entries), -1, np.int32),
            columns[4].astype(np.int16),
            {},
            columns[5] if len(columns) > 5 else None,
        )


class AlterShareOffsetsCodec(Codec[CommitPart, OffsetCommitAnswer]):
    def __init__(self, client_id: str, version: int) -> None:
        self._version = version
        self._begin = short_text(client_id) + NO_TAGS

    def encode(self, commit: CommitPart, correlation_id: int) -> bytes:
        topics: dict[str, list[bytes]] = defaultdict(list)
        for tp, to in commit.offsets.items():
            topics[tp.topic].append(_ALTERED.pack(tp.partition, to.offset, 0))
        parts = [self._begin, encoded_text(commit.group), encoded_count(len(topics))]
        for topic, partitions in topics.items():
            parts += (encoded_text(topic), encoded_count(len(partitions)), *partitions, NO_TAGS)
        return make_frame(ALTER.API_KEY, self._version, correlation_id, [*parts, NO_TAGS])

    def decode(self, frame: memoryview) -> OffsetCommitAnswer:
        error_codes: dict[tuple[str, int], int] = {}
        raw = bytes(frame)
        position = behind_tags(raw, _INT32.size)
        (throttle_time_ms,) = _INT32.unpack_from(raw, position)
        (error_code,) = _INT16.unpack_from(raw, position + _INT32.size)
        position = _behind_message(raw, position + _INT32.size + _INT16.size)
        topics, position = read_count(raw, position)
        for _ in range(topics):
            topic, position = read_text(raw, position)
            partitions, position = read_count(raw, position + _TOPIC_ID_BYTES)
            for _ in range(partitions):
                partition, code = _ANSWERED.unpack_from(raw, position)
                error_codes[topic, partition] = code
                position = behind_tags(raw, _behind_message(raw, position + _ANSWERED.size))
            position = behind_tags(raw, position)
        if behind_tags(raw, position) != len(raw):
            raise KafkaProtocolError("an AlterShareGroupOffsets answer with extra bytes at the end")
        return OffsetCommitAnswer(throttle_time_ms, error_codes, error_code)


def _behind_message(raw: bytes, position: int) -> int:
    """Where an error's message ends; most errors have none."""
    size, position = read_unsigned(raw, position)
    end = position + max(0, size - 1)
    check_end(raw, end)
    return end
