"""Flink SQL's `scan.startup.specific-offsets`: `partition:0,offset:42;partition:1,offset:300`.

The form is that of the documentation of Flink's Kafka SQL connector. The topic is another option
there (`topic`).
"""

import re

from tsoffset.errors import UsageError
from tsoffset.offset_files.document import (
    LARGEST_OFFSET,
    LARGEST_PARTITION,
    Document,
    StoredOffset,
    Targets,
    is_topic,
    malformed,
    require_distinct,
)

_ENTRY = re.compile(r"partition:([0-9]{1,10}),offset:([0-9]{1,19})", re.ASCII)
_EXPECTED = "partition:0,offset:42;partition:1,offset:300"


def read_flink(topic: str, text: str) -> Document:
    """The offsets of `text`, which is translated without the topic. Raises UsageError."""
    if not is_topic(topic):
        raise malformed("--flink", None, f"the topic {topic!r}", "a topic's name")
    found = []
    for entry in text.strip().removesuffix(";").split(";"):
        match = _ENTRY.fullmatch(entry.strip())
        partition, offset = (int(word) for word in match.groups()) if match else (-1, -1)
        if not (0 <= partition <= LARGEST_PARTITION and 0 <= offset <= LARGEST_OFFSET):
            raise malformed("--flink", None, repr(entry), _EXPECTED)
        found.append(StoredOffset(topic, partition, offset))
    require_distinct("--flink", found)

    def translated(targets: Targets) -> str:
        if len({targets[one].topic for one in found}) > 1:
            raise UsageError("--flink: the topic becomes several topics on the target")
        entries = (f"partition:{one.partition},offset:{targets[one].offset}" for one in found)
        return ";".join(entries) + "\n"

    return Document(tuple(found), translated)
