"""One cycle of a flow in this process, step after step."""

import time
from collections.abc import Sequence

from tsoffset.cluster import Cluster
from tsoffset.cycle.source_commits import CompetingFlow, preflight
from tsoffset.cycle.values import failed_row, rows_of
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.cache import CarryOver
from tsoffset.group_sync.commit import Time
from tsoffset.group_sync.cycle import StepsHere, cycle_tables
from tsoffset.group_sync.rows import rows_table
from tsoffset.model import Row


def cycle(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    *,
    commit: bool = True,
    competing_flows: Sequence[CompetingFlow] = (),
    carry_over: CarryOver | None = None,
    clock: Time = time,
) -> list[Row]:
    """One cycle of a flow in this process, without Spark: for tests and small estates.

    Returns one row per group and partition with a source commit, as docs/commands.md
    says. Commits nothing where `commit` is False or the flow is only planned
    (`sync.group.offsets.enabled = false`). `carry_over` is what the last cycle left; this
    one updates it. `clock` measures how long groups wait. Raises ClusterUnreachable.
    """
    carry_over = CarryOver() if carry_over is None else carry_over
    start = preflight(flow, source, target)
    steps = StepsHere(
        flow, source, target, competing_flows, commit=commit and flow.commits, clock=clock
    )
    done = cycle_tables(flow.name, steps, start.groups, carry_over)
    carry_over.learn(done.carry_over)
    return [
        *(failed_row(flow.name, failure) for failure in start.failures),
        *rows_of(rows_table(done.rows)),
    ]
