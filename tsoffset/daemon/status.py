"""The status of the daemon's flows, which metrics, API and status page read.

Only a flow's own thread writes its status. All others read snapshots, which do not change. Times
are seconds since 1970 UTC.
"""

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tsoffset.daemon.freshness import PAIRS_KNOWN, pairs_known
from tsoffset.daemon.summary import Summary, SummaryKey
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.flow_cycle import CycleResult
from tsoffset.group_sync.replication import REPLICATION
from tsoffset.model import FailureKind, OutcomeKind, Reason
from tsoffset.terminal.output import IN_PLACE, Tally, by_name, plural
from tsoffset.version import __version__


class FlowState(StrEnum):
    STARTING = "starting"
    """No cycle has ended yet."""
    RUNNING = "running"
    """The last cycle has rows, and none of them failed."""
    DEGRADED = "degraded"
    """Some rows of the last cycle failed, no group could be synced, or the cycle hit its time
    limit."""
    FAILED = "failed"
    """The last cycle has no result (a cluster was unreachable, or Spark failed), or no cycle may
    start."""
    PAUSED = "paused"
    """An operator paused it."""
    STANDBY = "standby"
    """Another instance leads this flow."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A tsoffset process. `url` is the address of its API for other machines; None if it serves
    none."""

    id: str
    host: str
    pid: int
    started_at: float
    version: str = __version__
    url: str | None = None

    @classmethod
    def of_this_process(cls) -> "Instance":
        return cls(uuid.uuid4().hex[:12], socket.gethostname(), os.getpid(), time.time())


@dataclass(frozen=True, slots=True)
class Lead:
    """The instance that runs a flow: this one if `here` is true, otherwise `leader`, which is None
    if it is unknown. `problem` says why, if something is wrong."""

    here: bool = True
    leader: Instance | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle that has ended.

    `number` counts from 1 in this process. `result` and `tally` are None if it has no rows; `error`
    says why. `over_limit` is true if it was stopped at its time limit. `facts` are the fields of
    the log event `cycle_finished`.
    """

    flow: str
    number: int
    started_at: float
    seconds: float
    commits: bool
    result: CycleResult | None = None
    tally: Tally | None = None
    error: str | None = None
    over_limit: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def ended_at(self) -> float:
        return self.started_at + self.seconds

    @property
    def reached(self) -> bool:
        """True if both clusters were reached, so the cycle has rows of groups."""
        return self.result is not None and not self.result.unreachable

    @property
    def refused(self) -> bool:
        """True if a cluster refused tsoffset's login."""
        result = self.result
        reasons = (row.reason for row in result.rows) if result and result.unreachable else ()
        return FailureKind.AUTHENTICATION in reasons

    @property
    def succeeded(self) -> bool:
        """True if both clusters were reached and no row failed."""
        return self.reached and self.tally is not None and not self.tally.failed


@dataclass(frozen=True, slots=True)
class FlowStatus:
    """A snapshot of one flow.

    `messages` say what is wrong and what to do, the most urgent one first. `cycles` is the number
    of cycles since the start, `failures` the number of those without rows of groups, and
    `failures_in_a_row` the number of these since `last_reached`. `late` counts cycles skipped
    because the previous one was still running, `over_limit` cycles stopped at their time limit.
    `last` is the last cycle, `last_reached` the last one with rows of groups, `last_success_at` the
    end of the last one without failed rows. `running_since` is set while a cycle runs; `next_at` is
    when the next one is due. `pairs` (PAIRS_KNOWN) has all group-partitions as of the cycle that
    ended at `known_at`. That cycle is `last_reached` or, if there is none, one of another process;
    if no cycle is known, `known_at` is None. `lists` are the changes made by `tsoffset lists`, in
    words. `others` are the other instances in the election. `records_per_second` is the last known
    growth rate of the source groups' committed offsets. `emptied`: the last cycle that reached both
    clusters has no rows, but an earlier one had. `began_at` is when this process was given the flow
    or, if later, last left standby; since then `taken_over` is true until a cycle reaches both
    clusters.
    """

    flow: FlowSettings
    state: FlowState = FlowState.STARTING
    state_since: float = 0.0
    messages: tuple[str, ...] = ()
    cycles: int = 0
    failures: int = 0
    failures_in_a_row: int = 0
    late: int = 0
    over_limit: int = 0
    last: Cycle | None = None
    last_reached: Cycle | None = None
    last_success_at: float | None = None
    running_since: float | None = None
    next_at: float | None = None
    pairs: pa.Table = field(default_factory=PAIRS_KNOWN.empty_table)
    known_at: float | None = None
    lists: tuple[str, ...] = ()
    others: tuple[Instance, ...] = ()
    records_per_second: float | None = None
    emptied: bool = False
    began_at: float = 0.0
    taken_over: bool = False

    def unknown_since(self, now: float) -> float | None:
        """The end of the last cycle with rows, if `pairs` is outdated: if that cycle is longer ago
        than two intervals, and than twice its own duration; else None."""
        last, usual = self.last_reached, float(self.flow.sync_interval_seconds)
        if last is None:
            # A cycle of another process, if any.
            seen = self.known_at
        else:
            seen, usual = last.ended_at, max(usual, last.seconds)
        return None if seen is None or now - seen <= 2 * usual else float(seen)

    def lag_estimate(self, known: int, now: float) -> int | None:
        """The records that consumers would re-read by now, if `pairs` is outdated: the `known` ones
        plus those read since then at the last known rate. None if it is not outdated, or no rate is
        known."""
        since = self.unknown_since(now)
        if since is None or self.records_per_second is None:
            return None
        return known + round(self.records_per_second * (now - since))

    @property
    def replication(self) -> pa.Table:
        """REPLICATION of the last cycle with rows; empty if there was none in this process."""
        last = self.last_reached
        if last is None or last.result is None:
            return REPLICATION.empty_table()
        return last.result.replication

    @property
    def name(self) -> str:
        return self.flow.name


class Observer(Protocol):
    """Called after every cycle, in the thread of its flow."""

    def cycle_ended(self, cycle: Cycle, status: FlowStatus) -> None:
        """`status` is the flow's status after this cycle."""


class Board:
    """The status of every flow of this process, in the order of the configuration file."""

    def __init__(self, instance: Instance, now: Callable[[], float] = time.time) -> None:
        self.instance = instance
        self.now = now
        self.config = "FILE"
        """The configuration file's name, for commands in next steps."""
        self.warnings: tuple[str, ...] = ()
        """The configuration's warnings, and why a changed file was rejected, if it was."""
        self._summing = threading.Lock()
        self._summaries: dict[tuple[str, SummaryKey], tuple[pa.Table, Summary]] = {}
        self._lock = threading.Lock()
        self._statuses: dict[str, FlowStatus] = {}
        self._attempted = False

    def statuses(self) -> tuple[FlowStatus, ...]:
        with self._lock:
            return tuple(self._statuses.values())

    def status(self, flow: str) -> FlowStatus | None:
        with self._lock:
            return self._statuses.get(flow)

    def summary(self, status: FlowStatus, key: SummaryKey) -> Summary:
        """The summary of the flow's group-partitions, cached until the next cycle."""
        # Locked, so that two requests do not make the same summary.
        with self._summing:
            known = self._summaries.get((status.name, key))
            if known is None or known[0] is not status.pairs:
                known = status.pairs, Summary(status.pairs, key)
                self._summaries[status.name, key] = known
            return known[1]

    @property
    def ready(self) -> bool:
        """True once the configuration is loaded and a cycle of any flow has ended, with or without
        success, or if no flow may start one: each is paused, on standby, or failed before it."""
        with self._lock:
            waiting = (FlowState.PAUSED, FlowState.STANDBY, FlowState.FAILED)
            states = [status.state for status in self._statuses.values()]
            return self._attempted or (bool(states) and all(one in waiting for one in states))

    def set_flows(self, flows: Iterable[FlowSettings]) -> None:
        """Set the flows, in this order; keeps the status of those that stay."""
        with self._lock:
            before, now = self._statuses, self.now()
            self._statuses = {
                flow.name: replace(before[flow.name], flow=flow)
                if flow.name in before
                else FlowStatus(flow, state_since=now, began_at=now)
                for flow in flows
            }

    def update(self, flow: str, **changes: Any) -> FlowStatus | None:
        """Change fields of a flow's status, and return it; None if the flow was removed."""
        with self._lock:
            status = self._statuses.get(flow)
            if status is None:
                return None
            if changes.get("state", status.state) is not status.state:
                changes["state_since"] = self.now()
                if status.state is FlowState.STANDBY:
                    changes |= {"began_at": changes["state_since"], "taken_over": True}
            self._statuses[flow] = status = replace(status, **changes)
            return status

    def resume(self, flow: str) -> None:
        """After a pause or standby: set the state to that of the last cycle."""
        status = self.status(flow)
        if status is not None:
            starting: tuple[FlowState, tuple[str, ...]] = (FlowState.STARTING, ())
            state, messages = starting if status.last is None else _state_after(status.last)
            self.update(flow, state=state, messages=messages)

    def cycle_ended(self, cycle: Cycle) -> FlowStatus | None:
        """Update a flow's status after a cycle, and return it; None if the flow was removed."""
        status = self.status(cycle.flow)
        if status is None:
            return None
        state, messages = _state_after(cycle)
        changes: dict[str, Any] = {
            "state": state,
            "messages": messages,
            "cycles": status.cycles + 1,
            "failures": status.failures + (not cycle.reached),
            "failures_in_a_row": 0 if cycle.reached else status.failures_in_a_row + 1,
            "over_limit": status.over_limit + cycle.over_limit,
            "running_since": None,
            "last": cycle,
        }
        if cycle.reached:
            assert cycle.result is not None
            # Groups that this user may not see any more are not listed, and no request fails.
            emptied = not len(cycle.result.rows) and (status.emptied or len(status.pairs) > 0)
            changes["emptied"] = emptied
            if emptied and state is FlowState.RUNNING:
                changes["state"] = FlowState.DEGRADED
            changes["last_reached"] = cycle
            changes["pairs"] = pairs_known(cycle.result.rows.table, status.pairs, cycle.ended_at)
            changes["known_at"] = cycle.ended_at
            changes["taken_over"] = False
            changes["records_per_second"] = _records_per_second(status, cycle)
        if cycle.succeeded:
            changes["last_success_at"] = cycle.ended_at
        self._attempted = True
        return self.update(cycle.flow, **changes)


# Skips that are normal for groups that consume, or have consumed, on the target.
_USUAL = frozenset({Reason.GROUP_ACTIVE, Reason.TARGET_AHEAD})
# Skips for the target group's committed offset, which `check` does not read.
_NOT_IN_CHECK = _USUAL | {
    Reason.TARGET_PAST_LOG_END,
    Reason.SOURCE_REWOUND,
    Reason.TARGET_REWOUND,
}


def _nothing_synced(tally: Tally) -> str | None:
    """Why no group of a flow can be synced; None if one can, or if that is normal."""
    if tally.reasons.keys() <= _USUAL or any(tally.outcomes[kind] for kind in IN_PLACE):
        return None
    skipped = plural(tally.outcomes[OutcomeKind.SKIPPED], "row")
    step = "run `tsoffset check` to see why"
    if tally.reasons.keys() <= _NOT_IN_CHECK:
        step = "the message of each group says what to do"
    return f"no group can be synced: all {skipped} are skipped{by_name(tally.reasons)}; {step}"


def _records_per_second(before: FlowStatus, cycle: Cycle) -> float | None:
    """The growth of the source groups' committed offsets since the previous cycle, in records per
    second; the last known rate if the number of group-partitions has changed."""
    last = before.last_reached
    if last is None or last.result is None or cycle.result is None:
        return before.records_per_second
    old, new = (one.result.rows.table["source_offset"] for one in (last, cycle) if one.result)
    seconds = cycle.ended_at - last.ended_at
    if len(new) - new.null_count != len(old) - old.null_count or seconds <= 0 or not len(new):
        return before.records_per_second
    grown = (pc.sum(new).as_py() or 0) - (pc.sum(old).as_py() or 0)
    return max(0, grown) / seconds


def _state_after(cycle: Cycle) -> tuple[FlowState, tuple[str, ...]]:
    """The state after a cycle, and the messages that say why."""
    if cycle.result is None:
        return (FlowState.DEGRADED if cycle.over_limit else FlowState.FAILED), (cycle.error or "",)
    warnings = cycle.result.warnings
    if cycle.result.unreachable:
        return FlowState.FAILED, tuple(row.message or "" for row in cycle.result.rows)
    if cycle.tally is not None and cycle.tally.failed:
        rows = plural(cycle.tally.failed, "row")
        failed = f"{rows} failed; see the groups with outcome failed"
        return FlowState.DEGRADED, (failed, *warnings)
    if cycle.tally is not None and (nothing := _nothing_synced(cycle.tally)) is not None:
        return FlowState.DEGRADED, (nothing, *warnings)
    return FlowState.RUNNING, warnings
