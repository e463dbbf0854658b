"""Reads what tsoffset is compared with: MirrorMaker 2's checkpoints, from their topic or a file,
or the answers of KIP-1292's rule for the same committed offsets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tsoffset.cluster import Cluster
from tsoffset.commands.compare.checkpoint_files import read_checkpoint_file
from tsoffset.commands.compare.command import Asked
from tsoffset.cycle.source_commits import SourceCommit
from tsoffset.flow.policy import internal_topics, target_topic
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.open_flow import OpenFlow
from tsoffset.model import Translated
from tsoffset.replicators.checkpoint import CheckpointKey
from tsoffset.replicators.checkpoints import Checkpoint, Checkpoints, read_checkpoints
from tsoffset.terminal.output import counted


def checkpoints_of(
    flow: FlowSettings,
    asked: Asked,
    target: Cluster | None,
    committed: Mapping[CheckpointKey, int],
    warnings: list[str],
) -> Checkpoints:
    """The checkpoints of the flow's groups. `committed` is what the target groups have; what a
    person should know goes to `warnings`. `target` is needed only where no file was named. Raises
    ClusterUnreachable, and UsageError for a file that is none."""

    def wanted(key: CheckpointKey) -> bool:
        return flow.group_filter.should_replicate_group(key.group)

    if asked.file is not None:
        found = Checkpoints(committed)
        read_checkpoint_file(asked.file, found, wanted)
        where = f"flow {flow.name}: {asked.file}"
        left_out, remedy = counted(found.malformed, "line"), "check that the dump is complete"
        if not (found.newest or found.malformed):
            warnings.append(
                f"{where} has no checkpoint of this flow's groups, so there is nothing to compare"
                " with; dump the topic from its beginning, and check which groups the flow selects"
            )
    else:
        assert target is not None
        topic = internal_topics(flow.policy).checkpoints_topic(flow.source.alias)
        found = read_checkpoints(target, topic, wanted=wanted, committed=committed)
        where = f"flow {flow.name}: {topic} on {target.alias}"
        left_out, remedy = (
            counted(found.malformed, "record"),
            ("check which other application writes to this topic"),
        )
        if found.missing:
            warnings.append(
                f"{where} does not exist, so there is nothing to compare with; start MirrorMaker"
                " 2's checkpoint connector (emit.checkpoints.enabled), or set the same"
                " replication.policy keys in this file as MirrorMaker 2 runs with"
            )
    if found.malformed:
        warnings.append(f"{where}: {left_out} ignored because they are not checkpoints; {remedy}")
    return found


def by_timestamps(
    opened: OpenFlow, commits: Sequence[SourceCommit], committed: Mapping[CheckpointKey, int]
) -> Checkpoints:
    """What KIP-1292's rule answers for the commits now, as if they were checkpoints. Raises
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
    """The flow translated by another rule."""
    flow = opened.settings
    changed = replace(flow, translation=replace(flow.translation, proof=proof))
    return replace(opened, settings=changed)


def source_topic(flow: FlowSettings, topic: str) -> str | None:
    """The source's name of a target topic that the flow syncs; None for others."""
    here, there = flow.source.alias, flow.target.alias
    for name in (
        flow.policy.upstream_topic(topic),
        flow.policy.format_remote_topic(there, topic),
    ):
        if name is None or not flow.topic_filter.should_replicate_topic(name):
            continue
        renaming = target_topic(flow.policy, here, there, name)
        if renaming is not None and renaming.topic == topic:
            return name
    return None
