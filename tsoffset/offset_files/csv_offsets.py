"""Lines `topic,partition,offset` or `group,topic,partition,offset`, with or without a header: by
hand, or of `kafka-consumer-groups --export`."""

import csv
from io import StringIO

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
from tsoffset.terminal.output import csv_line

_THREE = ["topic", "partition", "offset"]
_FOUR = ["group", *_THREE]
_EXPECTED = "topic,partition,offset or group,topic,partition,offset, the same on every line"


def read_csv(place: str, text: str) -> Document:
    """The offsets of the lines. Raises UsageError."""
    header: tuple[str, ...] = ()
    found: list[StoredOffset] = []
    found_at: list[int] = []
    fields = 0
    lines = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        for values in lines:
            if not values:
                continue
            if not fields and [value.strip().lower() for value in values] in (_THREE, _FOUR):
                header, fields = tuple(values), len(values)
                continue
            fields = fields or len(values)
            if len(values) != fields or fields not in (3, 4):
                raise malformed(place, lines.line_num, f"{len(values)} fields", _EXPECTED)
            found.append(_offset(place, lines.line_num, values))
            found_at.append(lines.line_num)
    except csv.Error as error:
        raise malformed(place, lines.line_num, str(error), _EXPECTED) from error
    if not found:
        raise malformed(place, None, "no offset", _EXPECTED)
    require_distinct(place, found, found_at)

    def translated(targets: Targets) -> str:
        lines = [csv_line(header)] if header else []
        for one in found:
            target = targets[one]
            group = () if one.group is None else (one.group,)
            lines.append(csv_line((*group, target.topic, one.partition, target.offset)))
        return "".join(lines)

    return Document(tuple(found), translated)


def _offset(place: str, line: int, values: list[str]) -> StoredOffset:
    *group, topic, partition, offset = values
    if not is_topic(topic):
        raise malformed(place, line, f"the topic {topic!r}", _EXPECTED)
    numbers = []
    for name, value, largest in (
        ("partition", partition, LARGEST_PARTITION),
        ("offset", offset, LARGEST_OFFSET),
    ):
        word = value.strip()
        if not (word.isascii() and word.isdigit()) or len(word) > 19 or int(word) > largest:
            raise malformed(place, line, f"the {name} {value!r}", f"a number from 0 to {largest}")
        numbers.append(int(word))
    return StoredOffset(topic, numbers[0], numbers[1], group[0] if group else None)
