"""One cycle of a flow in this process, step after step."""

import time
from collections.abc import Sequence

from tsoffset.cluster import Cluster
from tsoffset.cycle.source_commits import CompetingFlow, preflight
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.arrow_tables import as_arrow
from tsoffset.group_sync.cache import CachedTables
from tsoffset.group_sync.commit import Time
from tsoffset.group_sync.cycle import StepsHere, cycle_tables
from tsoffset.group_sync.rows import ROWS, failed_row, rows_of
from tsoffset.model import Row


def cycle(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    *,
    commit: bool = True,
    competing_flows: Sequence[CompetingFlow] = (),
    cache: CachedTables | None = None,
    clock: Time = time,
) -> list[Row]:
    """One cycle of a flow in this process, without Spark: for tests and small estates.

    Returns one row per group and partition with a source commit, as docs/commands.md
    says. Commits nothing where `commit` is False or the flow is only planned
    (`sync.group.offsets.enabled = false`). `cache` is that of the last cycle; this
    one updates it. `clock` measures how long groups wait. Raises ClusterUnreachable.
    """
    cache = CachedTables() if cache is None else cache
    start = preflight(flow, source, target)
    steps = StepsHere(
        flow, source, target, competing_flows, commit=commit and flow.commits, clock=clock
    )
    done = cycle_tables(flow.name, steps, start.groups, cache)
    cache.learn(done.cache)
    return [
        *(failed_row(flow.name, failure) for failure in start.failures),
        *rows_of(as_arrow(done.rows, ROWS)),
    ]
