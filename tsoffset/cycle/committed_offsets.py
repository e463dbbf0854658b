"""Fetching the offsets that groups have committed."""

from collections.abc import Collection, Sequence

from tsoffset.cluster import Cluster, all_failed
from tsoffset.committed import CommittedColumns
from tsoffset.errors import ClusterUnreachable


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
