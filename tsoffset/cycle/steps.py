"""The steps of a cycle over tables: look at groups, translate positions, decide and commit.

Here they are done by this process; `tsoffset.spark.steps` spreads the same steps over tasks.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl
import pyarrow as pa

from tsoffset.cluster import Cluster
from tsoffset.cycle.known_logs import KnownLogs, look_at_logs
from tsoffset.cycle.look import look
from tsoffset.cycle.matching import woven
from tsoffset.cycle.rounds import translate_with_carry_over
from tsoffset.cycle.source_commits import CompetingFlow
from tsoffset.cycle.values import (
    answers_table,
    carry_overs_of,
    partitions_table,
    translations_table,
    work_of,
)
from tsoffset.cycle.work import Cost
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.commit import Time, commit_groups


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

    def decide_and_commit(self, work: pl.DataFrame) -> tuple[pl.DataFrame, Cost]:
        """Decides COMMIT_WORK and commits; COMMIT_RESULTS in its order, and how late the latest
        commit was sent."""


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

    def decide_and_commit(self, work: pl.DataFrame) -> tuple[pl.DataFrame, Cost]:
        """As `Steps.decide_and_commit`."""
        done = commit_groups(
            self.flow,
            self.target,
            work,
            commit=self.commit,
            until=self.until,
            clock=self.clock,
        )
        return done.rows, Cost(commit_gap_seconds=done.longest_gap_seconds)
