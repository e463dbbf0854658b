"""Past cycles for charts, one point each. The last ones are in memory, older ones in the
history."""

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow.compute as pc

from tsoffset.daemon.status import Cycle, FlowState, FlowStatus
from tsoffset.model import OutcomeKind

POINTS_KEPT = 2_000


@dataclass(frozen=True, slots=True)
class CyclePoint:
    """A past cycle.

    `at` is its end (seconds since 1970 UTC), `state` the flow's state after it. Counts are rows by
    outcome. `reread_bound` is the sum of the bounds of committed translations (records),
    `lag_records` the most records that a failover would have re-read, `lag_seconds` the age of the
    oldest target offset. All but the first four fields are None if the cycle has no rows.
    """

    at: float
    seconds: float
    state: FlowState
    error: str | None = None
    groups: int | None = None
    committed: int | None = None
    would_commit: int | None = None
    unchanged: int | None = None
    skipped: int | None = None
    failed: int | None = None
    reread_bound: int | None = None
    lag_records: int | None = None
    lag_seconds: float | None = None

    @classmethod
    def of(cls, cycle: Cycle, status: FlowStatus) -> "CyclePoint":
        """The point of a cycle; `status` is the flow's status after it."""
        if not cycle.reached or cycle.result is None or cycle.tally is None:
            error = cycle.error or next(iter(status.messages), None)
            return cls(cycle.ended_at, cycle.seconds, status.state, error)
        oldest = pc.min(status.pairs["in_sync_at"]).as_py()
        return cls(
            cycle.ended_at,
            cycle.seconds,
            status.state,
            cycle.error,
            cycle.result.groups,
            reread_bound=cycle.tally.reread_bound,
            lag_records=pc.sum(status.pairs["lag_records"]).as_py(),
            lag_seconds=None if oldest is None else cycle.ended_at - oldest,
            **{outcome: cycle.tally.outcomes[outcome] for outcome in OutcomeKind},
        )


class PastCycles(Protocol):
    """Returns past cycles; may be called from any thread."""

    def points(self, flow: str, since: float, until: float, limit: int) -> Sequence[CyclePoint]:
        """The last `limit` points of a flow with since <= at < until (seconds since 1970 UTC),
        oldest first; none for an unknown flow."""


class RecentCycles:
    """The last cycles of each flow of this process: an Observer, and PastCycles."""

    def __init__(self, kept: int = POINTS_KEPT) -> None:
        self._kept = kept
        self._points: dict[str, deque[CyclePoint]] = {}
        self._lock = threading.Lock()

    def cycle_ended(self, cycle: Cycle, status: FlowStatus) -> None:
        point = CyclePoint.of(cycle, status)
        with self._lock:
            self._points.setdefault(cycle.flow, deque(maxlen=self._kept)).append(point)

    def points(self, flow: str, since: float, until: float, limit: int) -> Sequence[CyclePoint]:
        with self._lock:
            kept = list(self._points.get(flow, ()))
        return [point for point in kept if since <= point.at < until][-limit:]
