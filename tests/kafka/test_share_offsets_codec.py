"""What brokers answer about share groups, made by hand; the contract suite asks real ones."""

import struct

import pytest
from kafka.errors import KafkaProtocolError

from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.wire.flexible_encoding import MALFORMED
from tsoffset.kafka.wire.share_offsets_codec import (
    DescribeShareOffsetsFrames,
    alter_share_offsets_answer,
)

DAY_MS = 86_400_000
# One field that nobody asked for, of two bytes.
TAGS = b"\1\5\2xx"
HEAD = struct.pack(">i", 1) + TAGS + struct.pack(">i", 40)
TOPIC = b"\6topic" + bytes(16)


@pytest.mark.parametrize("version", [0, 1])
def test_start_offsets_lags_and_errors_are_read(version: int) -> None:
    """The lag comes with version 1. Errors have messages or none, a group that does not exist has
    no offsets, and fields of newer brokers are passed over."""

    def partition(number: int, start: int, lag: int, error: int, message: bytes) -> bytes:
        lags = struct.pack(">q", lag) if version else b""
        begin = struct.pack(">iqi", number, start, 0)
        return begin + lags + struct.pack(">h", error) + message + TAGS

    partitions = partition(0, 7, 3, 0, b"\0") + partition(1, -1, -1, 29, b"\4why")
    one = b"\4one" + b"\2" + TOPIC + b"\3" + partitions + TAGS + struct.pack(">h", 0) + b"\0" + TAGS
    gone = b"\5gone" + b"\1" + struct.pack(">h", 69) + b"\3no" + TAGS
    refused = b"\3no" + b"\1" + struct.pack(">h", 30) + b"\0" + TAGS
    frame = memoryview(HEAD + b"\4" + one + gone + refused + TAGS)
    frames = DescribeShareOffsetsFrames("client", version, Deadline.after(DAY_MS))
    found = frames.answer(frame)
    assert found.throttle_time_ms == 40
    assert found.groups == (("one", 0), ("gone", 0), ("no", 30))
    assert found.topics == ("topic",)
    columns = (found.group, found.topic, found.partition, found.offset, found.error_code)
    assert [column.tolist() for column in columns] == [[0, 0], [0, 0], [0, 1], [7, -1], [0, 29]]
    assert (None if found.lag is None else found.lag.tolist()) == ([3, -1] if version else None)
    for end in range(len(frame)):
        with pytest.raises((KafkaProtocolError, *MALFORMED)):
            frames.answer(frame[:end])


def test_an_answer_without_partitions_has_the_error_of_all() -> None:
    """A group with members refuses as a whole; else each partition has its own error."""
    whole = HEAD + struct.pack(">h", 68) + b"\4why" + b"\1" + TAGS
    assert alter_share_offsets_answer(memoryview(whole)) == (40, {}, 68)
    rows = struct.pack(">ih", 0, 0) + b"\0" + TAGS + struct.pack(">ih", 9, 3) + b"\4why" + TAGS
    parts = HEAD + struct.pack(">h", 0) + b"\0" + b"\2" + TOPIC + b"\3" + rows + TAGS + TAGS
    found = alter_share_offsets_answer(memoryview(parts))
    assert found == (40, {("topic", 0): 0, ("topic", 9): 3}, 0)
    for end in range(len(parts)):
        with pytest.raises((KafkaProtocolError, *MALFORMED)):
            alter_share_offsets_answer(memoryview(parts)[:end])
