"""The bytes of MirrorMaker 2's checkpoints."""

import struct

import pytest

from tsoffset.model import TopicPartition
from tsoffset.replicators.checkpoints import (
    Checkpoint,
    CheckpointKey,
    MalformedCheckpoint,
    decode_key,
    decode_value,
)

# What MirrorMaker 2 of Kafka 4.3.1 wrote: key and value of two groups, one of them not ASCII.
WRITTEN_BY_MIRROR_MAKER = (
    (
        "0014636f6d70617265642d363238392d312d68616c660014656173742e636f6d70617265642d363238392d31"
        "00000001",
        "000000000000000003e800000000000003290000",
        CheckpointKey("compared-6289-1-half", TopicPartition("east.compared-6289-1", 1)),
        Checkpoint(1000, 809),
    ),
    (
        "0021636f6d70617265642d363238392d312d6772c3bcc39f6520617573206bc3b66c6e0014656173742e636f"
        "6d70617265642d363238392d3100000000",
        "000000000000000002bc00000000000000010000",
        CheckpointKey("compared-6289-1-grüße aus köln", TopicPartition("east.compared-6289-1", 0)),
        Checkpoint(700, 1),
    ),
)


def text_field(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def key_of(group: str, topic: str = "A.orders", partition: int = 0) -> bytes:
    return text_field(group) + text_field(topic) + struct.pack(">i", partition)


def value_of(source_offset: int, target_offset: int, metadata: str = "") -> bytes:
    return struct.pack(">hqq", 0, source_offset, target_offset) + text_field(metadata)


@pytest.mark.parametrize(("key", "value", "whose", "what"), WRITTEN_BY_MIRROR_MAKER)
def test_bytes_of_mirror_maker_are_decoded(key, value, whose, what):
    """Group, target topic and partition from the key; the two offsets from the value. The
    checkpoints of these tests are byte by byte like real ones."""
    assert decode_key(bytes.fromhex(key)) == whose
    assert decode_value(bytes.fromhex(value)) == what
    assert key_of(whose.group, whose.target.topic, whose.target.partition).hex() == key
    assert value_of(what.source_offset, what.target_offset).hex() == value


@pytest.mark.parametrize("cut", range(1, 40))
def test_what_is_cut_off_is_malformed(cut):
    """No piece of a key or value passes for a whole one."""
    key, value = key_of("billing"), value_of(100, 50, "noted")
    if cut <= len(key):
        with pytest.raises(MalformedCheckpoint):
            decode_key(key[:-cut])
    if cut <= len(value):
        with pytest.raises(MalformedCheckpoint):
            decode_value(value[:-cut])


@pytest.mark.parametrize(
    ("decode", "content"),
    [
        (decode_key, None),
        (decode_key, b""),
        (decode_key, key_of("billing") + b"\0"),
        (decode_key, key_of("billing", partition=-1)),
        (decode_key, struct.pack(">h", -1) + key_of("billing")),
        (decode_key, struct.pack(">h", 2) + b"\xff\xfe" + text_field("t") + bytes(4)),
        (decode_value, b""),
        (decode_value, value_of(1, 2) + b"\0"),
        (decode_value, value_of(-1, 2)),
        (decode_value, value_of(1, -1)),
        (decode_value, struct.pack(">hqq", 1, 5, 6) + text_field("")),
    ],
)
def test_other_keys_and_values_are_malformed(decode, content):
    """Null, too short or long, negative lengths and numbers, text that is no UTF-8, and versions
    whose layout is not known."""
    with pytest.raises(MalformedCheckpoint):
        decode(content)
