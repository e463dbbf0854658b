"""The JSON of Kafka's own tools: `{"partitions":[{"topic":"orders","partition":0,"offset":23}]}`.

`kafka-delete-records --offset-json-file` takes it; its `version` and other fields stay.
"""

import json
from typing import Any

from tsoffset.offset_files.document import (
    Document,
    StoredOffset,
    Targets,
    is_offset,
    is_partition,
    is_topic,
    malformed,
    require_distinct,
)

_EXPECTED = '{"partitions":[{"topic":"orders","partition":0,"offset":23}]}'


def read_tools_json(place: str, value: dict[str, Any]) -> Document:
    """The offsets of a parsed text. Raises UsageError."""
    found = []
    for number, entry in enumerate(value["partitions"], start=1):
        fields = entry if isinstance(entry, dict) else {}
        topic, partition, offset = (fields.get(key) for key in ("topic", "partition", "offset"))
        if not (is_topic(topic) and is_partition(partition) and is_offset(offset)):
            what = f"entry {number} of `partitions` is {json.dumps(entry)[:200]}"
            raise malformed(place, None, what, _EXPECTED)
        assert isinstance(topic, str)
        assert isinstance(partition, int)
        assert isinstance(offset, int)
        found.append(StoredOffset(topic, partition, offset))
    if not found:
        raise malformed(place, None, "`partitions` is empty", _EXPECTED)
    require_distinct(place, found)

    def translated(targets: Targets) -> str:
        entries = [
            {**entry, "topic": targets[one].topic, "offset": targets[one].offset}
            for entry, one in zip(value["partitions"], found, strict=True)
        ]
        return json.dumps({**value, "partitions": entries}, ensure_ascii=False) + "\n"

    return Document(tuple(found), translated)
