"""One cycle of a flow in this process, stage after stage."""

import time
from collections.abc import Mapping, Sequence

from tsoffset.cluster import Cluster
from tsoffset.cycle.rounds import translate_with_carry_over
from tsoffset.cycle.settle import failed_row, settle_groups, settlements
from tsoffset.cycle.source_commits import CompetingFlow, preflight, read_commits
from tsoffset.cycle.turns import Time
from tsoffset.cycle.work import partition_work
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Row, TopicPartition
from tsoffset.rule.carry_over import PartitionCarryOver
from tsoffset.rule.decide import LastCommit


def cycle(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    *,
    commit: bool = True,
    competing_flows: Sequence[CompetingFlow] = (),
    last_commits: Mapping[tuple[str, TopicPartition], LastCommit] | None = None,
    carry_overs: dict[TopicPartition, PartitionCarryOver] | None = None,
    clock: Time = time,
) -> list[Row]:
    """One cycle of a flow in this process, without Spark: for tests and small estates.

    Returns one row per group and partition with a source commit, as docs/design.md section 4
    says. Commits nothing where `commit` is False or the flow is only planned
    (`sync.group.offsets.enabled = false`). `last_commits` are by group and source partition;
    `carry_overs` are what the last cycle left of each source partition, and are brought up to
    date. `clock` measures how long groups wait. Raises ClusterUnreachable.
    """
    start = preflight(flow, source, target)
    commits = list(read_commits(flow, source, start.groups, competing_flows))
    carry_overs = {} if carry_overs is None else carry_overs
    translated = translate_with_carry_over(
        flow, source, target, partition_work(commits, carry_overs)
    )
    carry_overs.clear()
    carry_overs.update({carry_over.source: carry_over for carry_over in translated.carry_overs})
    each = settlements(commits, translated.positions, last_commits)
    rows = [failed_row(flow.name, failure) for failure in start.failures]
    settled = settle_groups(flow, target, each, commit=commit and flow.commits, clock=clock)
    return [*rows, *settled.rows]
