"""The steps of a cycle over tables: look at groups, translate positions, settle commits.

Here they are done by this process; `tsoffset.spark.steps` spreads the same steps over tasks.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from tsoffset.cluster import Cluster
from tsoffset.cycle.known_logs import KnownLogs, look_at_logs
from tsoffset.cycle.look import look
from tsoffset.cycle.matching import only, woven
from tsoffset.cycle.rounds import translate_with_carry_over
from tsoffset.cycle.settle import settle_groups, whole_topic
from tsoffset.cycle.settle_at_once import settle_at_once
from tsoffset.cycle.source_commits import CompetingFlow
from tsoffset.cycle.turns import Seen, Settlement, Time
from tsoffset.cycle.values import (
    answers_table,
    carry_overs_of,
    groups_of,
    partitions_table,
    settled_table,
    settlements_of,
    translations_table,
    work_of,
)
from tsoffset.cycle.work import Cost
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import OutcomeKind, Row


class Steps(Protocol):
    """Who does the steps of a cycle."""

    def logs(self, partitions: pa.Table) -> KnownLogs:
        """What has become of the logs of which something is remembered (PARTITIONS)."""

    def look(self, groups: pa.Table, remembered: pa.Table, logs: pa.Table) -> pa.Table:
        """What the groups (GROUPS) have committed, as LOOKED, with what is remembered of them
        (REMEMBERED) and of the logs (LOGS)."""

    def translate(
        self, positions: pa.Table, partitions: pa.Table
    ) -> tuple[pa.Table, pa.Table, Cost]:
        """The translations of POSITIONS as TRANSLATIONS, in their order; what is to be carried over
        of their partitions, as `partitions` says what was (PARTITIONS); and what it took."""

    def settle(self, settlements: pa.Table, groups: pa.Table) -> tuple[pa.Table, Cost]:
        """What becomes of the SETTLEMENTS of these groups (GROUPS), as SETTLED in their order; and
        what there is to report of the commits."""


@dataclass(frozen=True, slots=True)
class StepsHere:
    """The steps, done here with these clients. With `commit`, commits are made until `until`
    (seconds since 1970 UTC)."""

    flow: FlowSettings
    source: Cluster
    target: Cluster
    competing_flows: Sequence[CompetingFlow] = ()
    commit: bool = False
    until: float | None = None
    clock: Time = time

    def logs(self, partitions: pa.Table) -> KnownLogs:
        """As `Steps.logs`."""
        return look_at_logs(self.flow, self.source, self.target, partitions)

    def look(self, groups: pa.Table, remembered: pa.Table, logs: pa.Table) -> pa.Table:
        """As `Steps.look`."""
        return look(
            self.flow, self.source, self.target, groups, remembered, logs, self.competing_flows
        )

    def translate(
        self, positions: pa.Table, partitions: pa.Table
    ) -> tuple[pa.Table, pa.Table, Cost]:
        """As `Steps.translate`."""
        work = work_of(positions, carry_overs_of(partitions))
        done = translate_with_carry_over(self.flow, self.source, self.target, work)
        found = woven(
            translations_table(done.conversed, done.holds),
            answers_table(done.answered),
            np.concatenate(
                [
                    np.isin(one.offsets, answered.answers.offset)
                    for one, answered in zip(work, done.answered, strict=True)
                ]
            ),
        )
        return found, partitions_table(done.carry_overs), done.cost

    def settle(self, settlements: pa.Table, groups: pa.Table) -> tuple[pa.Table, Cost]:
        """As `Steps.settle`."""
        names = {number: work.group for number, work in groups_of(groups).items()}
        once = settle_at_once(
            self.target,
            settlements,
            names,
            commit=self.commit,
            until=self.until,
            clock=self.clock,
        )
        if not once.left.any():
            return once.rows, Cost(commit_gap_seconds=once.gap_seconds)
        each = settlements_of(only(settlements, once.left), names)
        before = only(once.rows, once.left)["current_target_offset"].to_pylist()
        settled = settle_groups(
            self.flow,
            self.target,
            [_of_a_rewritten_topic(one) for one in each],
            commit=self.commit,
            until=self.until,
            clock=self.clock,
            seen=Seen(
                {place: before[place] for place in np.flatnonzero(once.ahead[once.left]).tolist()},
                once.failed,
            ),
        )
        rows = [
            _as_sent(row, there) if sent else row
            for row, there, sent in zip(
                settled.rows, before, once.sent[once.left].tolist(), strict=True
            )
        ]
        found = woven(only(once.rows, ~once.left), settled_table(rows), once.left)
        longest = max(once.gap_seconds, settled.cost.commit_gap_seconds)
        return found, replace(settled.cost, commit_gap_seconds=longest)


def _as_sent(row: Row, before: int | None) -> Row:
    """The row as committed where the group has now what was sent for it at once."""
    if row.outcome is not OutcomeKind.UNCHANGED or row.current_target_offset != row.target_offset:
        return row
    return replace(row, outcome=OutcomeKind.COMMITTED, current_target_offset=before)


def _of_a_rewritten_topic(settlement: Settlement) -> Settlement:
    position, target = settlement.position, settlement.commit.target
    if position is None or target is None or not position.target_rewrites_timestamps:
        return settlement
    return replace(settlement, position=whole_topic(position, target.topic))
