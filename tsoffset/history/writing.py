"""History as the daemon writes it: each flow's in a thread of its own, so that a folder or store
that is slow, full or away delays no cycle and costs no memory: of cycles that end while it writes,
the pairs of the last one are kept.
"""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import date, timedelta

import structlog

from tsoffset.daemon.points import POINTS_KEPT, CyclePoint, RecentCycles
from tsoffset.daemon.status import Cycle, FlowStatus, Instance
from tsoffset.flow.settings import HistorySettings
from tsoffset.group_sync.tables import BROKEN
from tsoffset.history.files import day_of
from tsoffset.history.flow_history import FlowHistory
from tsoffset.history.reading import points
from tsoffset.history.tidying import remove_before, tidy
from tsoffset.stores import UNREACHABLE, Place, in_words, place_of

log = structlog.get_logger(__name__)

# By then other instances have written what they had of the day before, too.
_TIDIED_AFTER_SECONDS = 3600.0
# By then a clock that was wrong when the machine started has been set.
_REMOVED_AFTER_SECONDS = 3600.0


class HistoryWriter:
    """An `Observer` and `PastCycles` that keeps cycles at `settings.directory`, which is set."""

    def __init__(
        self,
        settings: HistorySettings,
        instance: Instance,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        assert settings.directory is not None
        self._settings = settings
        self._instance = instance
        self._root = place_of(settings.directory)
        self._clocks = now, monotonic
        self._lock = threading.Lock()
        self._writers: dict[str, _Writer] = {}
        self._recent = RecentCycles()

    def cycle_ended(self, cycle: Cycle, status: FlowStatus) -> None:
        """As `Observer.cycle_ended`: writing goes on after it has returned."""
        with self._lock:
            writer = self._writers.get(cycle.flow)
            if writer is None:
                history = FlowHistory(
                    self._root, cycle.flow, self._instance.id, self._settings.full_every
                )
                writer = _Writer(history, self._settings.retention_days, *self._clocks)
                self._writers[cycle.flow] = writer
        self._recent.cycle_ended(cycle, status)
        writer.history.add(cycle, status)
        writer.wake()

    def points(self, flow: str, since: float, until: float, limit: int) -> Sequence[CyclePoint]:
        """As `PastCycles.points`, of earlier processes, too. Files are read only where this process
        does not know all of them; what cannot be read is left out and logged."""
        recent = self._recent.points(flow, float("-inf"), float("inf"), POINTS_KEPT)
        return points(self._root, flow, since, until, limit, recent, self._instance.id)

    def close(self, seconds: float) -> bool:
        """Wait until all is written, so long at most for all flows; returns whether it is. Later
        cycles are not written any more."""
        deadline = time.monotonic() + seconds
        with self._lock:
            writers = list(self._writers.values())
        for writer in writers:
            writer.end()
        for writer in writers:
            writer.thread.join(max(0.0, deadline - time.monotonic()))
        return not any(writer.thread.is_alive() for writer in writers)


class _Writer:
    """The thread that writes the history of one flow."""

    def __init__(
        self,
        history: FlowHistory,
        retention_days: int,
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self.history = history
        self._retention = timedelta(days=retention_days)
        self._now, self._monotonic = now, monotonic
        self._started_at, self._started = now(), monotonic()
        self._woken = threading.Event()
        self._ending = False
        self._tidied: date | None = None
        self._oldest: date | None = None
        self._told: str | None = None
        self.thread = threading.Thread(
            target=self._run, name=f"history {history.flow}", daemon=True
        )
        self.thread.start()

    def wake(self) -> None:
        """There is something to write."""
        self._woken.set()

    def end(self) -> None:
        """Write what there is, and end the thread."""
        self._ending = True
        self._woken.set()

    def _run(self) -> None:
        last = False
        while not last:
            self._woken.wait()
            self._woken.clear()
            last = self._ending
            try:
                self.history.write()
                if not last:
                    self._tidy()
            except BROKEN as error:
                self._warn(error)
            else:
                self._told = None

    def _tidy(self) -> None:
        """Once a day, and at the start."""
        root, flow = self.history.root, self.history.flow
        today = day_of(self._now() - _TIDIED_AFTER_SECONDS)
        if today != self._tidied:
            # What is late is a day late at most.
            merged = None if self._tidied is None else self._tidied - timedelta(days=1)
            tidy(root, flow, today, merged)
            self._tidied = today
        # What is gone does not come back when a clock that was set wrong is set right.
        spent = self._monotonic() - self._started
        at = min(self._now(), self._started_at + spent) - _TIDIED_AFTER_SECONDS
        oldest = day_of(at) - self._retention
        if oldest != self._oldest and spent >= _REMOVED_AFTER_SECONDS:
            remove_before(root, flow, oldest)
            self._oldest = oldest

    def _warn(self, error: BaseException) -> None:
        """Say it once, until it has gone away."""
        flow, root = self.history.flow, self.history.root
        message = (
            f"write history, flow {flow}: {root.path('')}: {_words(root, error)}; cycles "
            "continue, and the next successful write includes the missing cycles: free disk space, "
            "or let this user write to it"
        )
        if message != self._told:
            # Anything else is a mistake of ours.
            known = isinstance(error, UNREACHABLE)
            log.warning(
                "history_not_written", flow=flow, message=message, exc_info=None if known else error
            )
        self._told = message


def _words(root: Place, error: BaseException) -> str:
    known = isinstance(error, UNREACHABLE)
    return in_words(root, error) if known else f"{type(error).__name__}: {error}"
