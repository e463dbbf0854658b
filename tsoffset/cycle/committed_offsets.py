"""Fetching the offsets that groups have committed."""

from collections.abc import Collection, Mapping, Sequence

from tsoffset.cluster import Cluster, all_failed
from tsoffset.committed import CommittedColumns
from tsoffset.errors import ClusterUnreachable
from tsoffset.model import Failed, GroupOffsets


def committed_columns(
    cluster: Cluster,
    groups: Sequence[str],
    *,
    share_groups: Collection[str] = (),
    require_stable: bool,
    within_seconds: float | None = None,
) -> CommittedColumns:
    """Fetches the committed offsets of the groups. `share_groups` says which of them are share
    groups, and may name others. A cluster that cannot be reached fails each of them; without groups
    nothing is asked."""
    if not groups:
        return CommittedColumns.of({})
    try:
        return cluster.committed(
            groups,
            share_groups=share_groups,
            require_stable=require_stable,
            within_seconds=within_seconds,
        )
    except ClusterUnreachable as error:
        failed = all_failed(error)
        return CommittedColumns.of(dict.fromkeys(groups, failed))


def committed_offsets(
    cluster: Cluster,
    groups: Sequence[str],
    *,
    share_groups: Collection[str] = (),
    require_stable: bool,
) -> Mapping[str, GroupOffsets | Failed]:
    """What `committed_columns` returns, by group."""
    found = committed_columns(
        cluster, groups, share_groups=share_groups, require_stable=require_stable
    )
    return found.by_group()
