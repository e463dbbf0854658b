"""OffsetCommit of one group, versions 8 and 9, encoded and decoded by hand.

A cycle commits each group separately, without membership. Version 8 (brokers since 2.4) added the
flexible encoding; 10 has topic ids. `tsoffset.kafka.wire.frame_stream` sends it.
"""

from collections import defaultdict
from collections.abc import Mapping
from struct import Struct
from typing import NamedTuple

from kafka.errors import KafkaProtocolError
from kafka.protocol.consumer import OffsetCommitRequest

from tsoffset.kafka.wire.flexible_encoding import (
    NO_TAGS,
    NULL,
    behind_tags,
    encoded_count,
    encoded_text,
    make_frame,
    read_count,
    read_rows,
    read_text,
    short_text,
)
from tsoffset.kafka.wire.frame_stream import Codec
from tsoffset.model import CommittedOffset, TopicPartition

LOWEST, HIGHEST = 8, 9
API_KEY: int = OffsetCommitRequest.API_KEY

# A request: client id, group, generation, member, instance, and the topics. Of a partition: index,
# offset, leader epoch, metadata.
_INT32 = Struct(">i")
_PARTITION = Struct(">iqi")
_NO_GENERATION = -1
_NO_MEMBER = _INT32.pack(_NO_GENERATION) + encoded_text("") + NULL
# A consumer that gets an epoch unknown to its cluster refreshes metadata endlessly.
_NO_LEADER_EPOCH = -1
# A partition in a response: index, error, number of tagged fields.
_ANSWERED = Struct(">ihb")


class OffsetCommitAnswer(NamedTuple):
    """A broker's answer: the error code of each topic and partition, 0 for none, and `error_code`
    for partitions that it does not name."""

    throttle_time_ms: int
    error_codes: Mapping[tuple[str, int], int]
    error_code: int = 0


class CommitPart(NamedTuple):
    """What one request commits: offsets of a group, without membership and leader epochs. `number`
    is the caller's."""

    group: str
    offsets: Mapping[TopicPartition, CommittedOffset]
    number: int = 0


class OffsetCommitCodec(Codec[CommitPart, OffsetCommitAnswer]):
    def __init__(self, client_id: str, version: int) -> None:
        self._version = version
        self._begin = short_text(client_id) + NO_TAGS

    def encode(self, commit: CommitPart, correlation_id: int) -> bytes:
        topics: dict[str, list[bytes]] = defaultdict(list)
        for tp, to in commit.offsets.items():
            numbers = _PARTITION.pack(tp.partition, to.offset, _NO_LEADER_EPOCH)
            topics[tp.topic].append(numbers + encoded_text(to.metadata) + NO_TAGS)
        parts = [self._begin, encoded_text(commit.group), _NO_MEMBER, encoded_count(len(topics))]
        for topic, partitions in topics.items():
            parts += (encoded_text(topic), encoded_count(len(partitions)), *partitions, NO_TAGS)
        return make_frame(API_KEY, self._version, correlation_id, [*parts, NO_TAGS])

    def decode(self, frame: memoryview) -> OffsetCommitAnswer:
        error_codes: dict[tuple[str, int], int] = {}
        position = behind_tags(frame, _INT32.size)
        (throttle_time_ms,) = _INT32.unpack_from(frame, position)
        topics, position = read_count(frame, position + _INT32.size)
        for _ in range(topics):
            topic, position = read_text(frame, position)
            rows, position = read_rows(frame, position, _ANSWERED)
            error_codes.update(((topic, partition), code) for partition, code, _ in rows)
            position = behind_tags(frame, position)
        if behind_tags(frame, position) != len(frame):
            raise KafkaProtocolError("an OffsetCommit answer with extra bytes at the end")
        return OffsetCommitAnswer(throttle_time_ms, error_codes)
