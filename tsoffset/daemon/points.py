"""Past cycles in short, a point each, as charts show them: kept here for the last ones, and from
longer ago by whoever keeps history."""

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
    """What one cycle came to.

    `at` is when it ended (seconds since 1970 UTC), `state` the flow's after it. The counts are
    rows by outcome; `reread_bound` adds up the bounds of translations in place (records).
    `lag_records` is what a failover would have re-read at most, `lag_seconds` is of the
    pair whose target group was not in place for the longest time. All but the first four are None
    where the cycle came to no rows.
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
        """The point of a cycle; `status` is the flow's after it."""
        if not cycle.reached or cycle.result is None or cycle.tally is None:
            error = cycle.error or next(iter(status.messages), None)
            return cls(cycle.ended_at, cycle.seconds, status.state, error)
        outcomes = cycle.tally.outcomes
        oldest = pc.min(status.pairs["in_sync_at"]).as_py()
        return cls(
            cycle.ended_at,
            cycle.seconds,
            status.state,
            cycle.error,
            cycle.result.groups,
            outcomes[OutcomeKind.COMMITTED],
            outcomes[OutcomeKind.WOULD_COMMIT],
            outcomes[OutcomeKind.UNCHANGED],
            outcomes[OutcomeKind.SKIPPED],
            outcomes[OutcomeKind.FAILED],
            cycle.tally.reread_bound,
            pc.sum(status.pairs["lag_records"]).as_py(),
            None if oldest is None else cycle.ended_at - oldest,
        )


class PastCycles(Protocol):
    """Where the points of past cycles are asked for, from any thread."""

    def points(self, flow: str, since: float, until: float, limit: int) -> Sequence[CyclePoint]:
        """The last `limit` points of a flow with since <= at < until (seconds since 1970 UTC), the
        oldest first; none for a flow that is not known."""


class RecentCycles:
    """The last cycles of each flow of this process (an Observer, and PastCycles)."""

    def __init__(self, kept: int = POINTS_KEPT) -> None:
        self._kept = kept
        self._points: dict[str, deque[CyclePoint]] = {}
        self._lock = threading.Lock()

    def cycle_ended(self, cycle: Cycle, status: FlowStatus) -> None:
        """Keep its point, and let go of the oldest one."""
        point = CyclePoint.of(cycle, status)
        with self._lock:
            self._points.setdefault(cycle.flow, deque(maxlen=self._kept)).append(point)

    def points(self, flow: str, since: float, until: float, limit: int) -> Sequence[CyclePoint]:
        """As PastCycles says."""
        with self._lock:
            kept = list(self._points.get(flow, ()))
        return [point for point in kept if since <= point.at < until][-limit:]
