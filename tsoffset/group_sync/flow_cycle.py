"""A flow's cycle as its caller sees it: the input (`FlowTask`), the cost (`Spent`) and the result
(`CycleResult`).

The driver and each task count their own cost. A task returns it with its result.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import pyarrow as pa

from tsoffset.cluster import Cluster, Connect, all_failed
from tsoffset.config.loading import Configuration
from tsoffset.cycle.work import Cost
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.narrowing import Narrowing
from tsoffset.flow.settings import ClusterSettings, FlowSettings, reverse_of
from tsoffset.group_sync.replication import REPLICATION
from tsoffset.group_sync.rows import Rows, failed_row, rows_table
from tsoffset.kafka import kafka_cluster
from tsoffset.kafka.clients import CLIENTS, Traffic
from tsoffset.model import OutcomeKind, Side
from tsoffset.terminal.output import Tally


@dataclass(frozen=True, slots=True)
class FlowTask:
    """The flow of a cycle, as it is sent to every task. References to secrets are not resolved.

    `connect` is a function of an importable module, which the workers call.
    """

    configuration: Configuration
    flow: str
    narrowing: Narrowing = field(default_factory=Narrowing)
    connect: Connect = kafka_cluster

    def resolve(self) -> "ResolvedFlow":
        """The flow's settings in this process. Raises ConfigurationError and UsageError."""
        settings = self.configuration.resolve()
        flow = settings.flow(self.flow)
        return ResolvedFlow(
            self.narrowing.apply(flow),
            settings.competing_flows_of(flow),
            reverse_of(flow, settings.flows),
        )


class ResolvedFlow(NamedTuple):
    """A flow's settings; `competing` are the other flows into its target, `reverse` is the flow
    from its target to its source, if there is one."""

    flow: FlowSettings
    competing: tuple[FlowSettings, ...]
    reverse: FlowSettings | None


class Stage(StrEnum):
    """The stages of a cycle, in their order."""

    LIST_GROUPS = "list_groups"
    READ_COMMITS = "read_commits"
    TRANSLATE = "translate"
    SETTLE = "settle"


@dataclass(slots=True)
class Spent:
    """The cost so far: seconds by stage, and traffic by side."""

    seconds: dict[Stage, float] = field(default_factory=lambda: dict.fromkeys(Stage, 0.0))
    traffic: dict[Side, Traffic] = field(default_factory=lambda: dict.fromkeys(Side, Traffic()))

    @contextmanager
    def on(self, stage: Stage) -> Iterator[None]:
        """Count the block's seconds for the stage."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += time.perf_counter() - started

    @contextmanager
    def lease(self, side: Side, connect: Connect, settings: ClusterSettings) -> Iterator[Cluster]:
        """A client of this side, as `Clients.lease`; its traffic during the block is counted."""
        with CLIENTS.lease(connect, settings) as client:
            before = Traffic.of(client)
            try:
                yield client
            finally:
                self.traffic[side] += Traffic.of(client) - before


@dataclass(frozen=True, slots=True)
class CycleResult:
    """The result of a cycle.

    If `unreachable`, a cluster of the flow could not be reached, and `rows` is one failed row.
    `groups` is the number of selected groups, `positions` the number of distinct source offsets
    that they have committed. `cost` is the cost of translating these, `spent` that of the whole
    cycle. `replication` (REPLICATION) has the cached partitions. `share_groups` are the groups of
    that type.
    """

    flow: str
    rows: Rows
    warnings: tuple[str, ...]
    unreachable: bool
    seconds: float
    groups: int
    positions: int
    cost: Cost = field(default_factory=Cost)
    spent: Spent = field(default_factory=Spent)
    replication: pa.Table = field(default_factory=REPLICATION.empty_table)
    share_groups: frozenset[str] = frozenset()

    def warnings_of(self, flow: FlowSettings) -> tuple[str, ...]:
        """The warnings, and one if there was no offset to sync: brokers hide groups and topics that
        this user may not DESCRIBE, and no request fails."""
        if len(self.rows):
            return self.warnings
        nothing = (
            f"flow {self.flow}: nothing is synced, because cluster {flow.source.alias} shows this"
            " user no group that the filters select, or none with committed offsets in selected"
            " topics; run `tsoffset check` to see why"
        )
        return (*self.warnings, nothing)

    def facts(self, tally: Tally, *, commits: bool, seconds: float) -> dict[str, Any]:
        """The fields of the log event `cycle_finished`. `seconds` is the duration until the rows
        are written and the state is saved."""
        done = OutcomeKind.COMMITTED if commits else OutcomeKind.WOULD_COMMIT
        kinds = (done, OutcomeKind.UNCHANGED, OutcomeKind.SKIPPED, OutcomeKind.FAILED)
        cost, seconds_of, both = self.cost, self.spent.seconds, self.spent.traffic.values()
        return {
            "flow": self.flow,
            "groups": self.groups,
            "positions": self.positions,
            "from_memory": cost.recalled,
            "source_fetches": cost.source_fetches,
            "target_fetches": cost.target_fetches,
            "time_lookups": cost.lookups,
            "bytes_read": cost.bytes_read,
            "source_bytes_read": cost.source_bytes_read,
            "source_requests": cost.source_requests,
            "rounds": cost.rounds,
            "retries": sum(side.retries for side in both),
            "throttle_seconds": round(sum(side.throttle_seconds for side in both), 3),
            "commit_gap_seconds": round(cost.commit_gap_seconds, 3),
            **{kind.value: tally.outcomes[kind] for kind in kinds},
            "reread_bound": tally.reread_bound,
            **{f"{stage}_seconds": round(seconds_of[stage], 3) for stage in Stage},
            "seconds": round(seconds, 3),
        }


def unreachable_cycle(
    flow: FlowSettings,
    error: ClusterUnreachable,
    seconds: float = 0.0,
    spent: Spent | None = None,
) -> CycleResult:
    """The cycle of a flow with a cluster that could not be reached: one failed row."""
    rows = Rows(rows_table([failed_row(flow.name, all_failed(error))]))
    return CycleResult(flow.name, rows, (), True, seconds, 0, 0, spent=spent or Spent())
