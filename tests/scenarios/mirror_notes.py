"""What MirrorMaker 2 writes down for itself: offset syncs, and the checkpoints made from them."""

import struct

from tests.producing import Contents


def offset_syncs(
    contents: Contents, topic: str, of_topic: str, partition: int = 0
) -> list[tuple[int, int]]:
    """The source and target offsets noted in `topic` for one partition, in their order; empty
    where there is no such topic."""
    if topic not in contents.admin.list_topics():
        return []
    pairs = []
    for record in contents.read(topic):
        assert record.key is not None
        assert record.value is not None
        key, value = _Fields(record.key), _Fields(record.value)
        if (key.string(), key.number("i")) == (of_topic, partition):
            pairs.append((value.number("q"), value.number("q")))
    return pairs


def newest_checkpoints(
    contents: Contents, source_alias: str
) -> dict[tuple[str, str, int], tuple[int, int]]:
    """(group, target topic, partition) to the source and target offset of the newest
    checkpoint; empty where there is none."""
    topic = f"{source_alias}.checkpoints.internal"
    if topic not in contents.admin.list_topics():
        return {}
    newest = {}
    for record in contents.read(topic):
        assert record.key is not None
        assert record.value is not None
        key, value = _Fields(record.key), _Fields(record.value)
        assert value.number("h") == 0, "another version of checkpoints"
        about = key.string(), key.string(), key.number("i")
        newest[about] = value.number("q"), value.number("q")
    return newest


class _Fields:
    """Fields in Kafka's binary layout, read one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, kind: str) -> int:
        layout = ">" + kind
        (value,) = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return int(value)

    def string(self) -> str:
        length = self.number("h")
        start, self._at = self._at, self._at + length
        return self._data[start : self._at].decode()
