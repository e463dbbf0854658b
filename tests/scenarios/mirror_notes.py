"""What MirrorMaker 2 writes down for itself: offset syncs, and the checkpoints made from them."""

import struct

from tests.producing import Contents
from tsoffset.replicators.checkpoints import (
    Checkpoint,
    CheckpointKey,
    decode_key,
    decode_value,
)


def offset_syncs(contents: Contents, topic: str, of_topic: str) -> list[tuple[int, int]]:
    """The source and target offsets noted in `topic` for partition 0 of one topic, in their
    order; empty where there is no such topic."""
    if topic not in contents.admin.list_topics():
        return []
    about = struct.pack(">h", len(of_topic)) + of_topic.encode() + struct.pack(">i", 0)
    return [
        struct.unpack(">qq", record.value or b"")
        for record in contents.read(topic)
        if record.key == about
    ]


def newest_checkpoints(contents: Contents, source_alias: str) -> dict[CheckpointKey, Checkpoint]:
    """The newest checkpoint of each group and partition; empty where there is none."""
    topic = f"{source_alias}.checkpoints.internal"
    if topic not in contents.admin.list_topics():
        return {}
    records = contents.read(topic)
    return {decode_key(one.key): decode_value(one.value or b"") for one in records}
