"""Whether MirrorMaker 2's checkpoint connector looks after the same groups."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tsoffset.cluster import Cluster
from tsoffset.commands.check.configs import duration
from tsoffset.commands.check.findings import Finding, Scope, names
from tsoffset.flow.policy import internal_topics
from tsoffset.flow.settings import FlowSettings
from tsoffset.replicators.checkpoints import read_checkpoints
from tsoffset.terminal.output import counted

# MirrorMaker 2 writes a checkpoint where a group has moved on, once a minute by default.
_RECENT_MS = 15 * 60_000
_LAST_RECORDS = 20_000


@dataclass(frozen=True, slots=True)
class CheckpointsSeen:
    """The groups of the flow that have checkpoints in a topic, each with the newest one's time in
    milliseconds."""

    topic: str
    groups: Mapping[str, int]


def seen(flow: FlowSettings, target: Cluster) -> CheckpointsSeen:
    """Read the end of the flow's checkpoints topic; no group where there is none, or it cannot be
    read. Raises ClusterUnreachable."""
    topic = internal_topics(flow.policy).checkpoints_topic(flow.source.alias)
    found = read_checkpoints(
        target,
        topic,
        wanted=lambda key: flow.group_filter.should_replicate_group(key.group),
        committed={},
        last=_LAST_RECORDS,
    )
    groups: dict[str, int] = {}
    for key, checkpoint in found.newest.items():
        groups[key.group] = max(groups.get(key.group, 0), checkpoint.timestamp_ms or 0)
    return CheckpointsSeen(topic, groups)


def other_committer(flow: FlowSettings, found: CheckpointsSeen, now_ms: int) -> Iterator[Finding]:
    """That checkpoints of the same groups are being written, and what that means for commits
    (pure)."""
    moving = {group: stamp for group, stamp in found.groups.items() if now_ms - stamp < _RECENT_MS}
    if not moving:
        return
    newest_ms = max(0, now_ms - max(moving.values()))
    told = (
        f"MirrorMaker 2 writes checkpoints of {counted(len(moving), 'group')} of this flow "
        f"({names(sorted(moving))}), the newest {duration(newest_ms)} ago"
    )
    at = Scope(flow.name, flow.target.alias)
    if flow.sync_enabled:
        yield at.warning(
            f"topic {found.topic}",
            f"{told}, and with sync.group.offsets.enabled = true in this file it also commits"
            " them: no record is skipped, but its offsets may cause re-reads",
            "remove sync.group.offsets.enabled from the configuration that MirrorMaker 2 reads",
        )
    else:
        yield at.ok(
            f"topic {found.topic}",
            told,
            "make sure that its sync.group.offsets.enabled is not true; `tsoffset compare` shows"
            " the differences",
        )
