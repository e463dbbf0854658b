"""Reads what tsoffset is compared with: MirrorMaker 2's checkpoints, from their topic or a file,
or the answers of KIP-1292's rule for the same committed offsets.

A line of a file is either what the console consumer prints with MirrorMaker 2's own formatter
(org.apache.kafka.connect.mirror.formatters.CheckpointFormatter, by Checkpoint.toString)::

    Checkpoint{consumerGroupId=billing, topicPartition=A.orders-3, upstreamOffset=1050, \
downstreamOffset=809, metadata=}

or a JSON object: `group`, `topic` (its name on the target), `partition`, `source_offset`,
`target_offset` and optionally `timestamp_ms`. The output of `tsoffset compare --format json` is
accepted, too.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter

from tsoffset.cluster import Cluster
from tsoffset.commands.compare.options import CompareOptions
from tsoffset.cycle.source_commits import SourceCommit, renamings_of, selected_groups
from tsoffset.errors import UsageError
from tsoffset.flow.policy import internal_topics
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.open_flow import OpenFlow
from tsoffset.model import TopicPartition, Translated
from tsoffset.replicators.checkpoints import (
    Checkpoint,
    CheckpointKey,
    Checkpoints,
    read_checkpoints,
)
from tsoffset.terminal.output import counted


def checkpoints_of(
    flow: FlowSettings,
    options: CompareOptions,
    target: Cluster,
    committed: Mapping[CheckpointKey, int],
    warnings: list[str],
) -> Checkpoints:
    """The checkpoints of the flow's groups. `committed` are the target groups' offsets. Adds to
    `warnings`. Raises ClusterUnreachable, and UsageError for a file without checkpoints."""

    def wanted(key: CheckpointKey) -> bool:
        return bool(selected_groups(flow, [key.group])[0])

    if options.file is not None:
        found = Checkpoints(committed)
        read_checkpoint_file(options.file, found, wanted)
        where = f"flow {flow.name}: {options.file}"
        ignored, remedy = counted(found.malformed, "line"), "check that the dump is complete"
        if not (found.newest or found.malformed):
            warnings.append(
                f"{where} has no checkpoint of this flow's groups, so there is nothing to compare"
                " with; dump the topic from its beginning, and check which groups the flow selects"
            )
    else:
        topic = internal_topics(flow.policy).checkpoints_topic(flow.source.alias)
        found = read_checkpoints(target, topic, wanted=wanted, committed=committed)
        where = f"flow {flow.name}: {topic} on {target.alias}"
        ignored = counted(found.malformed, "record")
        remedy = "check which other application writes to this topic"
        if found.missing:
            warnings.append(
                f"{where} does not exist, so there is nothing to compare with; start MirrorMaker"
                " 2's checkpoint connector (emit.checkpoints.enabled), or set the same"
                " replication.policy keys in this file as MirrorMaker 2 runs with"
            )
    if found.malformed:
        warnings.append(f"{where}: {ignored} ignored because they are not checkpoints; {remedy}")
    return found


def by_timestamps(
    opened: OpenFlow, commits: Sequence[SourceCommit], committed: Mapping[CheckpointKey, int]
) -> Checkpoints:
    """The answers of KIP-1292's rule for the commits, as if they were checkpoints. Raises
    ClusterUnreachable."""
    found = Checkpoints(committed)
    for one in with_proof(opened, "timestamps").translated(commits):
        commit, position = one.commit, one.position
        if commit.target is None or commit.committed is None or position is None:
            continue
        key, outcome = CheckpointKey(commit.group, commit.target), position.translation.outcome
        if isinstance(outcome, Translated):
            found.add(key, Checkpoint(commit.committed.offset, outcome.target_offset, None))
        else:
            found.unanswered[key] = f"KIP-1292's rule has no answer: {outcome.message}"
    return found


def with_proof(opened: OpenFlow, proof: str) -> OpenFlow:
    flow = opened.settings
    changed = replace(flow, translation=replace(flow.translation, proof=proof))
    return replace(opened, settings=changed)


def source_topic(flow: FlowSettings, topic: str) -> str | None:
    """The source's name of a target topic that the flow syncs; None for other topics, also if a
    class of the user's raises an error for it."""
    policy = flow.policy
    try:
        names = policy.upstream_topic(topic), policy.format_remote_topic(flow.target.alias, topic)
    except Exception:
        return None
    renamings, _ = renamings_of(flow, filter(None, names))
    for name, renaming in renamings.items():
        if renaming is not None and renaming.topic == topic:
            return name
    return None


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
