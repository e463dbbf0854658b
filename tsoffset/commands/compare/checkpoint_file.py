"""Reads MirrorMaker 2's checkpoints from a file.

A line is either what the console consumer prints with MirrorMaker 2's own formatter
(org.apache.kafka.connect.mirror.formatters.CheckpointFormatter, by Checkpoint.toString)::

    Checkpoint{consumerGroupId=billing, topicPartition=A.orders-3, upstreamOffset=1050, \
downstreamOffset=809, metadata=}

or a JSON object: `group`, `topic` (its name on the target), `partition`, `source_offset`,
`target_offset` and optionally `timestamp_ms`. The output of `tsoffset compare --format json` is
accepted, too.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter

from tsoffset.errors import UsageError
from tsoffset.model import TopicPartition
from tsoffset.replicators.checkpoints import Checkpoint, CheckpointKey, Checkpoints

_FORMATTED = re.compile(
    r"Checkpoint\{consumerGroupId=(?P<group>(?:(?!, topicPartition=).)*+), "
    r"topicPartition=(?P<topic>[^,]*)-(?P<partition>\d{1,19}), "
    r"upstreamOffset=(?P<source_offset>\d{1,19}), "
    r"downstreamOffset=(?P<target_offset>\d{1,19}), metadata=.*\}"
)
# Names are not quoted in this format, so a name with this text would be ambiguous.
_WORD = ", topicPartition="
_OBJECT = TypeAdapter(dict[str, Any])
_Offset = Annotated[int, Field(ge=0, lt=2**63)]


# The names of these fields in a line of `compare --format json`.
_OF_A_PAIR = {
    "topic": "target_topic",
    "source_offset": "theirs_source_offset",
    "target_offset": "theirs",
    "timestamp_ms": "theirs_timestamp_ms",
}


class _Line(BaseModel):
    group: str
    topic: str
    partition: _Offset
    source_offset: _Offset
    target_offset: _Offset
    timestamp_ms: _Offset | None = None


# The name of a group and metadata have 32 KiB at most.
_LONGEST_LINE = 1 << 20


def read_checkpoint_file(
    path: Path, found: Checkpoints, wanted: Callable[[CheckpointKey], bool]
) -> None:
    """Add the wanted checkpoints of the file; the last one of a key is the newest. Counts malformed
    lines. Raises UsageError if the file cannot be read, or has no checkpoint."""
    good = 0
    try:
        with path.open("rb") as lines:
            while line := lines.readline(_LONGEST_LINE + 1):
                if len(line) > _LONGEST_LINE:
                    raise UsageError(
                        f"read checkpoints, {path}: it has a line of more than 1 MiB, so it is no"
                        " dump of checkpoints; name another file"
                    )
                try:
                    one = checkpoint_of(line)
                except ValueError:
                    found.malformed += 1
                    continue
                good += bool(line.strip())
                if one is not None and wanted(one[0]):
                    found.add(*one)
    except OSError as error:
        why = f"{error.strerror or error}; name a file that this user can read"
        raise UsageError(f"read checkpoints, {path}: {why}") from error
    if found.malformed and not good:
        raise UsageError(
            f"read checkpoints, {path}: none of its {found.malformed} lines is a checkpoint; make"
            " it with kafka-console-consumer.sh and --formatter"
            " org.apache.kafka.connect.mirror.formatters.CheckpointFormatter"
        )


def checkpoint_of(line: bytes) -> tuple[CheckpointKey, Checkpoint] | None:
    """The checkpoint of a line; None for an empty line and for a pair without a checkpoint. Raises
    ValueError if it is malformed."""
    text = line.decode().strip("\r\n")
    if not text.strip():
        return None
    if text.startswith("{"):
        fields = _OBJECT.validate_json(text)
        if "theirs" in fields:
            if fields["theirs"] is None:
                return None
            fields |= {name: fields.get(of_pair) for name, of_pair in _OF_A_PAIR.items()}
        one = _Line.model_validate(fields, strict=True)
    else:
        match = _FORMATTED.fullmatch(text) if text.count(_WORD) == 1 else None
        one = _Line.model_validate({} if match is None else match.groupdict())
    key = CheckpointKey(one.group, TopicPartition(one.topic, one.partition))
    return key, Checkpoint(one.source_offset, one.target_offset, one.timestamp_ms)
