"""Spark's JSON of Kafka offsets, `{"topic":{"0":23,"1":-1}}`: `startingOffsets`, `endOffset` of a
query's progress, and the lines of a checkpoint."""

import json
import re
from typing import Any

from tsoffset.errors import UsageError
from tsoffset.offset_files.document import (
    LARGEST_OFFSET,
    LARGEST_PARTITION,
    LOG_START,
    Document,
    StoredOffset,
    Targets,
    is_topic,
    parse_error,
)

EXPECTED = (
    'JSON such as {"orders":{"0":23,"1":-1}}: offsets by partition by topic, where -1 is the end'
    " of the log and -2 its start"
)


_PARTITION = re.compile(r"0|[1-9][0-9]{0,9}")


def read_spark_json(location: str, text: str, value: dict[str, Any]) -> Document:
    """The offsets of the parsed `text`. Raises UsageError."""
    found = tuple(spark_offsets(location, text, value))
    if not found:
        raise parse_error(location, 1, "no offset", EXPECTED)
    return Document(found, lambda targets: spark_json(found, targets) + "\n")


def spark_offsets(
    location: str, text: str, value: dict[str, Any], *, log: str = "", first_line: int = 1
) -> list[StoredOffset]:
    """The offsets of one object; `first_line` is the line on which `text` begins. Raises
    UsageError."""
    found = []
    for topic, partitions in value.items():
        at = text.find(json.dumps(topic, ensure_ascii=False))
        line = first_line + text.count("\n", 0, max(0, at))
        if not is_topic(topic):
            raise parse_error(location, line, f"the topic {topic[:20]!r}", EXPECTED)
        if not isinstance(partitions, dict) or not partitions:
            raise parse_error(location, line, f"{topic!r} has no offsets by partition", EXPECTED)
        for number, offset in partitions.items():
            if not _PARTITION.fullmatch(number) or int(number) > LARGEST_PARTITION:
                what = f"{topic!r} has the partition {number[:20]!r}"
                raise parse_error(location, line, what, EXPECTED)
            if type(offset) is not int or not LOG_START <= offset <= LARGEST_OFFSET:
                what = f"partition {number} of {topic!r} has the offset {offset!r}"
                raise parse_error(location, line, what, EXPECTED)
            found.append(StoredOffset(topic, int(number), offset, log=log))
    return found


def looks_like_offsets(value: object) -> bool:
    """Whether this is meant as the offsets of a Kafka source, not of another source of Spark. One
    partition number is enough, even if other parts are malformed: offsets that are taken for
    another source's would be copied without a translation."""
    return isinstance(value, dict) and any(
        isinstance(partitions, dict) and any(str(number).isdigit() for number in partitions)
        for partitions in value.values()
    )


def spark_json(offsets: tuple[StoredOffset, ...], targets: Targets) -> str:
    """One line of JSON with the target offsets. Raises UsageError where two source partitions
    become one."""
    found: dict[str, dict[str, int]] = {}
    for one in offsets:
        target = targets[one]
        partitions = found.setdefault(target.topic, {})
        if str(one.partition) in partitions:
            raise UsageError(
                f"several source topics become {target.topic}-{one.partition} on the target; "
                "translate their offsets separately"
            )
        partitions[str(one.partition)] = target.offset
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
