"""Reading the offsets that groups have committed."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from tsoffset.cluster import Cluster, all_failed
from tsoffset.committed import CommittedColumns
from tsoffset.errors import ClusterUnreachable
from tsoffset.group_sync.tables import CURRENT, TARGET_COMMITS, TARGET_PARTITION, select
from tsoffset.model import Failed, GroupOffsets


def committed_columns(
    cluster: Cluster,
    groups: Sequence[str],
    *,
    require_stable: bool,
    within_seconds: float | None = None,
) -> CommittedColumns:
    """Fetches the committed offsets of the groups. A cluster that cannot be reached fails each of
    them; without groups nothing is asked."""
    if not groups:
        return CommittedColumns.of({})
    try:
        return cluster.committed(
            groups, require_stable=require_stable, within_seconds=within_seconds
        )
    except ClusterUnreachable as error:
        failed = all_failed(error)
        return CommittedColumns.of(dict.fromkeys(groups, failed))


def committed_offsets(
    cluster: Cluster, groups: Sequence[str], *, require_stable: bool
) -> Mapping[str, GroupOffsets | Failed]:
    """What `committed_columns` returns, by group."""
    return committed_columns(cluster, groups, require_stable=require_stable).by_group()


def target_commits(found: CommittedColumns) -> pl.DataFrame:
    """The committed offsets of target groups as TARGET_COMMITS."""
    topics = pl.Series(list(found.topics), dtype=pl.String)
    groups = pl.Series(list(found.groups), dtype=pl.String)
    read = pl.DataFrame(
        {
            "group": groups.gather(found.group.astype(np.uint32)),
            "target_topic": topics.gather(found.topic.astype(np.uint32)),
            "partition": found.partition,
            "current_target_offset": found.offset,
        }
    )
    failed = [
        *((group, None, None, no) for group, no in found.failed.items()),
        *((group, at.topic, at.partition, no) for (group, at), no in found.failed_entries.items()),
    ]
    not_read = pl.DataFrame(
        [(*place, None, no.kind, no.message, no.patience_seconds) for *place, no in failed],
        TARGET_COMMITS,
        orient="row",
    )
    rows = pl.concat([select(read, TARGET_COMMITS), not_read])
    # Where a broker names a partition twice, the last answer counts, and a failure before any.
    return rows.unique(TARGET_PARTITION, keep="last", maintain_order=True)


def with_current(rows: pl.DataFrame, current: pl.DataFrame) -> pl.DataFrame:
    """The rows with what their groups have on their target partitions (TARGET_COMMITS)."""
    of_group = pl.col("target_topic").is_null()
    rows = rows.join(
        current.filter(~of_group),
        on=TARGET_PARTITION,
        how="left",
        validate="m:1",
        maintain_order="left",
    )
    not_read = current.filter(of_group).drop("target_topic", "partition")
    if not_read.is_empty():
        return rows
    return (
        rows.join(
            not_read, on="group", how="left", validate="m:1", maintain_order="left", suffix="_group"
        )
        .with_columns(pl.coalesce(f"{name}_group", name).alias(name) for name in CURRENT)
        .drop(f"{name}_group" for name in CURRENT)
    )
