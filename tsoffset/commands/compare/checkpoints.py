"""Reads what tsoffset is compared with: MirrorMaker 2's checkpoints from their topic, or the
answers of KIP-1292's rule for the same committed offsets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tsoffset.cluster import Cluster
from tsoffset.cycle.source_commits import SourceCommit, renamings_of, selected_groups
from tsoffset.flow.policy import internal_topics
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.open_flow import OpenFlow
from tsoffset.model import Translated
from tsoffset.replicators.checkpoints import (
    Checkpoint,
    CheckpointKey,
    Checkpoints,
    read_checkpoints,
)
from tsoffset.terminal.output import counted


def checkpoints_of(
    flow: FlowSettings,
    target: Cluster,
    committed: Mapping[CheckpointKey, int],
    warnings: list[str],
) -> Checkpoints:
    """The checkpoints of the flow's groups. `committed` are the target groups' offsets. Adds to
    `warnings`. Raises ClusterUnreachable."""

    def wanted(key: CheckpointKey) -> bool:
        return bool(selected_groups(flow, [key.group])[0])

    topic = internal_topics(flow.policy).checkpoints_topic(flow.source.alias)
    found = read_checkpoints(target, topic, wanted=wanted, committed=committed)
    where = f"flow {flow.name}: {topic} on {target.alias}"
    if found.missing:
        warnings.append(
            f"{where} does not exist, so there is nothing to compare with; start MirrorMaker"
            " 2's checkpoint connector (emit.checkpoints.enabled), or set the same"
            " replication.policy keys in this file as MirrorMaker 2 runs with"
        )
    if found.malformed:
        ignored = counted(found.malformed, "record")
        warnings.append(
            f"{where}: {ignored} ignored because they are not checkpoints; check which other"
            " application writes to this topic"
        )
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
