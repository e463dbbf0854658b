"""What the daemon knows of its flows: the one place that metrics, API and status page read.

A flow's thread writes its own status and nobody else does; all others take snapshots, which do
not change any more. Times are seconds since 1970 UTC.
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
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import OutcomeKind, Reason
from tsoffset.spark.flow import CycleResult
from tsoffset.terminal.output import IN_PLACE, Tally, by_name, counted
from tsoffset.version import __version__


class FlowState(StrEnum):
    """How a flow is, in one word."""

    STARTING = "starting"
    """No cycle has ended yet."""
    RUNNING = "running"
    """The last cycle has rows, and none of them failed."""
    DEGRADED = "degraded"
    """Some rows of the last cycle failed, no group could be synced, or the cycle hit its time
    limit."""
    FAILED = "failed"
    """The last cycle has no result: a cluster was unreachable, or Spark failed."""
    PAUSED = "paused"
    """An operator paused it."""
    STANDBY = "standby"
    """Another instance leads this flow."""


@dataclass(frozen=True, slots=True)
class Instance:
    """Tells this process from others that run the same flows. `url` is where others reach its API,
    None where nothing is served."""

    id: str
    host: str
    pid: int
    started_at: float
    version: str = __version__
    url: str | None = None

    @classmethod
    def here(cls) -> "Instance":
        """This process, which gets a new id."""
        return cls(uuid.uuid4().hex[:12], socket.gethostname(), os.getpid(), time.time())


@dataclass(frozen=True, slots=True)
class Lead:
    """Which instance runs a flow: this one where `here` is true, else `leader`, None where that is
    not known. `problem` says why it is not, if something is wrong."""

    here: bool = True
    leader: Instance | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle that has ended.

    `number` counts from 1 in this process. `result` and `tally` are None where it came to no rows,
    and `error` says why; `over_limit` is true where its limit ended it. `facts` are the fields of
    the log's `cycle_finished`.
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
        """When it ended."""
        return self.started_at + self.seconds

    @property
    def reached(self) -> bool:
        """True where both clusters were reached, so that the rows are of groups."""
        return self.result is not None and not self.result.unreachable

    @property
    def succeeded(self) -> bool:
        """True where both clusters were reached and no row failed."""
        return self.reached and self.tally is not None and not self.tally.failed


@dataclass(frozen=True, slots=True)
class FlowStatus:
    """What is known of one flow now.

    `messages` say what is wrong and what to do, most urgent first; `state_since` when the state
    began. `cycles` ended since the start, `failures` of them without rows, `failures_in_a_row` at
    the end of them; `late` counts cycles that were left out since the one before took too long,
    `over_limit` those that their limit ended. `last` is the last cycle, `last_reached` the last
    that came to rows of groups, `last_success_at` when the last one ended in which no row failed.
    `running_since` is set while a cycle runs; `next_at` is when the next one is due. `pairs` has
    what is known of each pair (schema PAIRS_KNOWN) as of the cycle that ended at `known_at`, None
    before any is known: of `last_reached`, or of one of another process. `lists` are the changes
    made by `tsoffset lists`, in words. `others` are other instances in its election.
    `records_per_second` is how fast the source groups' committed offsets grew at last; None where
    that is not known.
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

    def unknown_since(self, now: float) -> float | None:
        """When the pairs were last seen, where that is too long ago to say how they are: longer
        than two intervals, or two cycles where these take longer; None where it is not."""
        last, usual = self.last_reached, float(self.flow.sync_interval_seconds)
        if last is None:
            # What an earlier process has left, or another one, if anything.
            seen = self.known_at
        else:
            seen, usual = last.ended_at, max(usual, last.seconds)
        return None if seen is None or now - seen <= 2 * usual else float(seen)

    def lag_estimate(self, known: int, now: float) -> int | None:
        """What consumers would read again by now: what was `known` and what they have read since
        at their last rate; None where that is not needed, or no rate is known."""
        since = self.unknown_since(now)
        if since is None or self.records_per_second is None:
            return None
        return known + round(self.records_per_second * (now - since))

    @property
    def name(self) -> str:
        """`A->B`."""
        return self.flow.name


class Observer(Protocol):
    """What is told of every cycle that ends, in the thread of its flow; must not raise."""

    def cycle_ended(self, cycle: Cycle, status: FlowStatus) -> None:
        """`status` is the flow's after this cycle."""


class Controls(Protocol):
    """What can be asked of the daemon while it runs, from any thread. Raises KeyError for a flow
    that it does not run."""

    def pause(self, flow: str) -> None:
        """No further cycle begins; one that runs is finished."""

    def resume(self, flow: str) -> None:
        """Cycles begin again, at once."""

    def sync_now(self, flow: str) -> None:
        """The next cycle begins as soon as none is running; a paused flow stays paused."""

    def lead(self, flow: str) -> Lead:
        """Which instance runs the flow now."""


class Board:
    """The status of every flow of this process, in the order of the configuration file."""

    def __init__(self, instance: Instance, now: Callable[[], float] = time.time) -> None:
        self.instance = instance
        self.now = now
        self.config = "FILE"
        """The configuration file, as commands of next steps name it."""
        self.warnings: tuple[str, ...] = ()
        """What the configuration warns of, and why a changed file was not taken, if it was not."""
        self._lock = threading.Lock()
        self._statuses: dict[str, FlowStatus] = {}
        self._attempted = False

    def statuses(self) -> tuple[FlowStatus, ...]:
        """A snapshot of all flows."""
        with self._lock:
            return tuple(self._statuses.values())

    def status(self, flow: str) -> FlowStatus | None:
        """A snapshot of one flow; None where there is none of that name."""
        with self._lock:
            return self._statuses.get(flow)

    @property
    def ready(self) -> bool:
        """True once the configuration is loaded and a cycle of any flow has ended, well or not (or
        every flow is paused or on standby)."""
        with self._lock:
            waiting = (FlowState.PAUSED, FlowState.STANDBY)
            states = [status.state for status in self._statuses.values()]
            return self._attempted or (bool(states) and all(one in waiting for one in states))

    def set_flows(self, flows: Iterable[FlowSettings]) -> None:
        """The flows that are run from now on, in this order; what is known of them is kept."""
        with self._lock:
            before, now = self._statuses, self.now()
            self._statuses = {
                flow.name: replace(before[flow.name], flow=flow)
                if flow.name in before
                else FlowStatus(flow, state_since=now)
                for flow in flows
            }

    def update(self, flow: str, **changes: Any) -> FlowStatus | None:
        """Change fields of a flow's status, and return it; None where the flow is gone."""
        with self._lock:
            status = self._statuses.get(flow)
            if status is None:
                return None
            if changes.get("state", status.state) is not status.state:
                changes["state_since"] = self.now()
            self._statuses[flow] = status = replace(status, **changes)
            return status

    def resumed(self, flow: str) -> None:
        """The flow was held back and no longer is: its state is that of the last cycle again."""
        status = self.status(flow)
        if status is not None:
            starting: tuple[FlowState, tuple[str, ...]] = (FlowState.STARTING, ())
            state, messages = starting if status.last is None else _judged(status.last)
            self.update(flow, state=state, messages=messages)

    def cycle_ended(self, cycle: Cycle) -> FlowStatus | None:
        """Take in what a cycle came to, and return the flow's status; None where it is gone."""
        status = self.status(cycle.flow)
        if status is None:
            return None
        state, messages = _judged(cycle)
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
            changes["last_reached"] = cycle
            changes["pairs"] = pairs_known(cycle.result.rows.table, status.pairs, cycle.ended_at)
            changes["known_at"] = cycle.ended_at
            changes["records_per_second"] = _records_per_second(status, cycle)
        if cycle.succeeded:
            changes["last_success_at"] = cycle.ended_at
        self._attempted = True
        return self.update(cycle.flow, **changes)


# A group that is at work on the target, or was, is skipped for as long as that is so.
_USUAL = frozenset({Reason.GROUP_ACTIVE, Reason.TARGET_AHEAD})


def _nothing_synced(tally: Tally) -> str | None:
    """Why nothing of a flow can be synced; None where something can, or nothing is to be."""
    if tally.reasons.keys() <= _USUAL or any(tally.outcomes[kind] for kind in IN_PLACE):
        return None
    skipped = counted(tally.outcomes[OutcomeKind.SKIPPED], "row")
    return (
        f"no group can be synced: all {skipped} are skipped{by_name(tally.reasons)}; run `tsoffset"
        " check` to see why"
    )


def _records_per_second(before: FlowStatus, cycle: Cycle) -> float | None:
    """How fast committed offsets have grown since the cycle before; as it was known where other
    pairs have come or gone."""
    last = before.last_reached
    if last is None or last.result is None or cycle.result is None:
        return before.records_per_second
    old, new = (one.result.rows.table["source_offset"] for one in (last, cycle) if one.result)
    seconds = cycle.ended_at - last.ended_at
    if len(new) - new.null_count != len(old) - old.null_count or seconds <= 0 or not len(new):
        return before.records_per_second
    grown = (pc.sum(new).as_py() or 0) - (pc.sum(old).as_py() or 0)
    return max(0, grown) / seconds


def _judged(cycle: Cycle) -> tuple[FlowState, tuple[str, ...]]:
    """The state after a cycle, and the sentences that say why."""
    if cycle.result is None:
        return (FlowState.DEGRADED if cycle.over_limit else FlowState.FAILED), (cycle.error or "",)
    warnings = cycle.result.warnings
    if cycle.result.unreachable:
        return FlowState.FAILED, tuple(row.message or "" for row in cycle.result.rows)
    if cycle.tally is not None and cycle.tally.failed:
        rows = counted(cycle.tally.failed, "row")
        failed = f"{rows} failed; see the groups with outcome failed"
        return FlowState.DEGRADED, (failed, *warnings)
    if cycle.tally is not None and (nothing := _nothing_synced(cycle.tally)) is not None:
        return FlowState.DEGRADED, (nothing, *warnings)
    return FlowState.RUNNING, warnings
