"""Offsets as CSV, as the JSON of Kafka's tools, and as an option of Flink SQL."""

import csv
import json
import re
from io import StringIO
from typing import Any

from tsoffset.errors import UsageError
from tsoffset.offset_files.document import (
    LARGEST_OFFSET,
    LARGEST_PARTITION,
    Document,
    StoredOffset,
    Targets,
    is_offset,
    is_partition,
    is_topic,
    parse_error,
)
from tsoffset.terminal.output import csv_line, plural

_THREE = ["topic", "partition", "offset"]
_CSV = "topic,partition,offset or group,topic,partition,offset, the same on every line"
_TOOLS_JSON = '{"partitions":[{"topic":"orders","partition":0,"offset":23}]}'
_FLINK = "partition:0,offset:42;partition:1,offset:300"
_FLINK_ENTRY = re.compile(r"partition:([0-9]{1,10}),offset:([0-9]{1,19})", re.ASCII)


class _Offsets:
    """The offsets of a text, each checked when it is added."""

    def __init__(self, expected: str) -> None:
        self._expected = expected
        self._found: dict[tuple[str | None, str, int], StoredOffset] = {}

    def add(
        self,
        location: str,
        topic: Any,
        partition: Any,
        offset: Any,
        *,
        line: int | None = None,
        group: str | None = None,
    ) -> None:
        """Raises UsageError, also where a partition occurs twice."""
        for name, value, is_valid, expected in (
            ("topic", topic, is_topic, "a topic's name"),
            ("partition", partition, is_partition, f"a number from 0 to {LARGEST_PARTITION}"),
            ("offset", offset, is_offset, f"a number from 0 to {LARGEST_OFFSET}"),
        ):
            if not is_valid(value):
                raise parse_error(location, line, f"the {name} {str(value)[:50]!r}", expected)
        if (group, topic, partition) in self._found:
            raise parse_error(
                location, line, f"{topic}-{partition} occurs twice", "each partition once"
            )
        self._found[group, topic, partition] = StoredOffset(topic, partition, offset, group)

    def all(self, location: str) -> tuple[StoredOffset, ...]:
        """Raises UsageError if there are none."""
        if not self._found:
            raise parse_error(location, None, "no offset", self._expected)
        return tuple(self._found.values())


def read_csv(location: str, text: str) -> Document:
    """Lines `topic,partition,offset` or `group,topic,partition,offset`, with or without a header:
    by hand, or of `kafka-consumer-groups --export`. Raises UsageError."""
    header: list[str] = []
    found = _Offsets(_CSV)
    fields = 0
    lines = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        for values in filter(None, lines):
            words = [value.strip().lower() for value in values]
            if not fields and words in (_THREE, ["group", *_THREE]):
                header, fields = values, len(values)
                continue
            fields = fields or len(values)
            if len(values) != fields or fields not in (3, 4):
                raise parse_error(location, lines.line_num, plural(len(values), "field"), _CSV)
            *group, topic, partition, offset = values
            numbers = map(_number, (partition, offset))
            group_or_none = group[0] if group else None
            found.add(location, topic, *numbers, line=lines.line_num, group=group_or_none)
    except csv.Error as error:
        raise parse_error(location, lines.line_num, str(error), _CSV) from error
    offsets = found.all(location)

    def render(targets: Targets) -> str:
        lines = [csv_line(header)] if header else []
        for one in offsets:
            group = () if one.group is None else (one.group,)
            target = targets[one]
            lines.append(csv_line((*group, target.topic, one.partition, target.offset)))
        return "".join(lines)

    return Document(offsets, render)


def _number(text: str) -> int | str:
    """The text itself if it is no number that Kafka may have."""
    word = text.strip()
    return int(word) if word.isascii() and word.isdigit() and len(word) < 20 else text


def read_tools_json(location: str, value: dict[str, Any]) -> Document:
    """The parsed JSON that `kafka-delete-records --offset-json-file` takes; its `version` and other
    fields stay. Raises UsageError."""
    found = _Offsets(_TOOLS_JSON)
    for number, entry in enumerate(value["partitions"], start=1):
        members = entry if isinstance(entry, dict) else {}
        found.add(f"{location}, entry {number} of `partitions`", *map(members.get, _THREE))
    offsets = found.all(location)

    def render(targets: Targets) -> str:
        entries = [
            {**entry, "topic": targets[one].topic, "offset": targets[one].offset}
            for entry, one in zip(value["partitions"], offsets, strict=True)
        ]
        return json.dumps({**value, "partitions": entries}, ensure_ascii=False) + "\n"

    return Document(offsets, render)


def read_flink(topic: str, text: str) -> Document:
    """The option `scan.startup.specific-offsets` of Flink's Kafka SQL connector, as its
    documentation has it. Flink names the topic in another option, so the result has no topic.
    Raises UsageError."""
    found = _Offsets(_FLINK)
    for entry in text.strip().removesuffix(";").split(";"):
        match = _FLINK_ENTRY.fullmatch(entry.strip())
        if match is None:
            raise parse_error("--flink", None, repr(entry), _FLINK)
        found.add("--flink", topic, *map(int, match.groups()))
    offsets = found.all("--flink")

    def render(targets: Targets) -> str:
        if len({targets[one].topic for one in offsets}) > 1:
            raise UsageError("--flink: the topic becomes several topics on the target")
        entries = (f"partition:{one.partition},offset:{targets[one].offset}" for one in offsets)
        return ";".join(entries) + "\n"

    return Document(offsets, render)
