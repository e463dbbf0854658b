"""Checkpoints from a file in place of the topic, as operators can make one.

Either what the console consumer prints with MirrorMaker 2's own formatter
(org.apache.kafka.connect.mirror.formatters.CheckpointFormatter, by Checkpoint.toString)::

    Checkpoint{consumerGroupId=billing, topicPartition=A.orders-3, upstreamOffset=1050, \
downstreamOffset=809, metadata=}

or JSON, an object a line: `group`, `topic` (its name on the target), `partition`,
`source_offset`, `target_offset` and, where it is known, `timestamp_ms`. What
`tsoffset compare --format json` has printed before is taken, too.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tsoffset.errors import UsageError
from tsoffset.model import TopicPartition
from tsoffset.replicators.checkpoint import CheckpointKey, MalformedCheckpoint
from tsoffset.replicators.checkpoints import Checkpoint, Checkpoints

_FORMATTED = re.compile(
    r"Checkpoint\{consumerGroupId=(?P<group>(?:(?!, topicPartition=).)*+), "
    r"topicPartition=(?P<topic>[^,]*)-(?P<partition>\d{1,19}), "
    r"upstreamOffset=(?P<source>\d{1,19}), downstreamOffset=(?P<target>\d{1,19}), metadata=.*\}"
)
# Names are not quoted there, so one that holds this word may be told apart in two ways.
_WORD = ", topicPartition="
_FIELDS = ("group", "topic", "partition", "source_offset", "target_offset", "timestamp_ms")
# What the same are called in a compared pair.
_OF_A_PAIR = (
    *("group", "target_topic", "partition"),
    *("theirs_source_offset", "theirs", "theirs_timestamp_ms"),
)
_OFFSETS_BELOW = 2**63
# The name of a group and metadata have 32 KiB at most.
_LONGEST_LINE = 1 << 20


def read_checkpoint_file(
    path: Path, found: Checkpoints, wanted: Callable[[CheckpointKey], bool]
) -> None:
    """Add the file's checkpoints that are wanted, the last one of a key as the newest. Lines that
    are none are counted. Raises UsageError where it cannot be read, or holds nothing else."""
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
                except (MalformedCheckpoint, UnicodeDecodeError):
                    found.malformed += 1
                    continue
                good += bool(line.strip())
                if one is not None and wanted(one[0]):
                    found.add(*one)
    except OSError as error:
        raise UsageError(
            f"read checkpoints, {path}: {error.strerror or error}; name a file that this user can "
            "read"
        ) from error
    if found.malformed and not good:
        raise UsageError(
            f"read checkpoints, {path}: none of its {found.malformed} lines is a checkpoint; make"
            " it with kafka-console-consumer.sh and --formatter"
            " org.apache.kafka.connect.mirror.formatters.CheckpointFormatter"
        )


def checkpoint_of(line: bytes) -> tuple[CheckpointKey, Checkpoint] | None:
    """The checkpoint of a line; None of an empty one, and of a pair without one. Raises
    MalformedCheckpoint and UnicodeDecodeError."""
    text = line.decode().strip("\r\n")
    if not text.strip():
        return None
    if text.startswith("{"):
        return _of_object(text)
    match = _FORMATTED.fullmatch(text) if text.count(_WORD) == 1 else None
    if match is None:
        raise MalformedCheckpoint("a line that is not a checkpoint")
    partition, source, target = (int(match[name]) for name in ("partition", "source", "target"))
    return _checkpoint(match["group"], match["topic"], partition, source, target, None)


def _of_object(text: str) -> tuple[CheckpointKey, Checkpoint] | None:
    try:
        one = json.loads(text)
    except (ValueError, RecursionError):
        raise MalformedCheckpoint("a line that is not JSON") from None
    pair = "theirs" in one
    if pair and one["theirs"] is None:
        return None
    return _checkpoint(*(one.get(name) for name in (_OF_A_PAIR if pair else _FIELDS)))


def _checkpoint(
    group: Any, topic: Any, partition: Any, source: Any, target: Any, timestamp_ms: Any
) -> tuple[CheckpointKey, Checkpoint]:
    numbers = (partition, source, target, 0 if timestamp_ms is None else timestamp_ms)
    if not (
        isinstance(group, str)
        and isinstance(topic, str)
        # True is an int to Python.
        and all(type(one) is int and 0 <= one < _OFFSETS_BELOW for one in numbers)
    ):
        raise MalformedCheckpoint("a field that is missing or has the wrong type")
    key = CheckpointKey(group, TopicPartition(topic, partition))
    return key, Checkpoint(source, target, timestamp_ms)
