"""Taking a snapshot: what the groups of a flow have committed on its target now."""

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from tsoffset.cluster import Cluster
from tsoffset.commands.snapshots.file import Commit, Snapshot
from tsoffset.cycle.committed_offsets import committed_offsets
from tsoffset.cycle.source_commits import SUPPORTED_GROUPS
from tsoffset.errors import SnapshotFailed
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import CommittedOffset, Failed, TopicDescription


def take(flow: FlowSettings, target: Cluster, groups: str | None) -> Snapshot:
    """The commits of all consumer groups and share groups on the target that the flow's filter lets
    through, on whatever topic; `groups` is what narrowed that filter.

    Raises ClusterUnreachable, and SnapshotFailed where one of them cannot be read: with a part
    missing it would look as if those groups had had nothing.
    """
    cluster_id = target.describe().cluster_id
    listings = target.groups()
    for failed in listings.failed_brokers.values():
        raise _incomplete(target, failed)
    names = sorted(
        listing.group
        for listing in listings.groups.values()
        if listing.type in SUPPORTED_GROUPS
        and flow.group_filter.should_replicate_group(listing.group)
    )
    commits = []
    share_groups = listings.share_groups
    found = committed_offsets(target, names, share_groups=share_groups, require_stable=False)
    for group, offsets in found.items():
        if isinstance(offsets, Failed):
            raise _incomplete(target, offsets)
        for place, commit in sorted(offsets.items()):
            if not isinstance(commit, CommittedOffset):
                raise _incomplete(target, commit)
            at = (place.topic, place.partition, commit.offset)
            commits.append(Commit(group, *at, commit.metadata, group in share_groups))
    return Snapshot(
        flow.name,
        target.alias,
        cluster_id,
        datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        groups,
        topics_of(target, {commit.topic for commit in commits}),
        tuple(commits),
    )


def topics_of(target: Cluster, topics: set[str]) -> dict[str, str | None]:
    """Those of the topics that exist, each with its id; None of brokers that have no ids."""
    described = target.topics(sorted(topics)) if topics else {}
    return {
        name: topic.topic_id
        for name, topic in described.items()
        if isinstance(topic, TopicDescription)
    }


def named_for(snapshot: Snapshot) -> Path:
    """A file in the working directory, named for cluster and time."""
    when = snapshot.taken_at.replace("-", "").replace(":", "")
    return Path(f"{quote(snapshot.cluster, safe='')}-{when}.snapshot")


def _incomplete(target: Cluster, failed: Failed) -> SnapshotFailed:
    return SnapshotFailed(
        f"take snapshot, cluster {target.alias}: {failed.message}; no file was written, because the"
        " snapshot would be incomplete; try again, or exclude the group with --groups"
    )
