"""One cycle of a flow in this process, stage after stage."""

import time
from collections.abc import Mapping, Sequence

from tsoffset.cluster import Cluster
from tsoffset.cycle.rounds import translate_remembering
from tsoffset.cycle.settle import failed_row, settle_groups, whole_topic
from tsoffset.cycle.source_commits import Rival, preflight, read_commits
from tsoffset.cycle.turns import Settlement, Time
from tsoffset.cycle.work import partition_work
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import Row, TopicPartition
from tsoffset.rule.carry_over import PartitionMemory
from tsoffset.rule.decide import Remembered


def cycle(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    *,
    commit: bool = True,
    rivals: Sequence[Rival] = (),
    remembered: Mapping[tuple[str, TopicPartition], Remembered] | None = None,
    memories: dict[TopicPartition, PartitionMemory] | None = None,
    clock: Time = time,
) -> list[Row]:
    """One cycle of a flow in this process, without Spark: for tests and small estates.

    Returns one row per group and partition with a source commit, as docs/design.md section 4
    says. Commits nothing where `commit` is False or the flow is only planned
    (`sync.group.offsets.enabled = false`). `memories` are what the last cycle left of each
    source partition, and are brought up to date. `clock` is what groups that have to wait wait
    by. Raises ClusterUnreachable.
    """
    start = preflight(flow, source, target)
    commits = list(read_commits(flow, source, start.groups, rivals))
    memories = {} if memories is None else memories
    translated = translate_remembering(flow, source, target, partition_work(commits, memories))
    memories.clear()
    memories.update({memory.source: memory for memory in translated.memories})
    positions = {(p.partition, p.offset): p for p in translated.positions}
    rewriting = {p.partition.topic for p in positions.values() if p.target_rewrites_timestamps}
    settlements = []
    for each in commits:
        position = None
        if each.verdict is None and each.partition and each.committed and each.target:
            position = positions[each.partition, each.committed.offset]
            if each.partition.topic in rewriting:
                position = whole_topic(position, each.target.topic)
        last = None
        if remembered is not None and each.partition is not None:
            last = remembered.get((each.group, each.partition))
        settlements.append(Settlement(each, position, last))
    rows = [failed_row(flow.name, failure) for failure in start.failures]
    settled = settle_groups(flow, target, settlements, commit=commit and flow.commits, clock=clock)
    return [*rows, *settled.rows]
