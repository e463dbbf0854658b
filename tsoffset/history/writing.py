"""Writing history: one thread per flow, so that a slow, full or unreachable store delays no cycle.
Of cycles that end during a write, only the last one's group-partitions are recorded, so memory is
limited.
"""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from errno import ETIMEDOUT

import structlog

from tsoffset.daemon.points import POINTS_KEPT, CyclePoint, RecentCycles
from tsoffset.daemon.status import Cycle, FlowStatus, Instance
from tsoffset.flow.settings import HistorySettings
from tsoffset.group_sync.tables import BROKEN
from tsoffset.history.files import day_of
from tsoffset.history.flow_history import FlowHistory
from tsoffset.history.reading import points
from tsoffset.history.tidying import remove_before, tidy
from tsoffset.stores import UNREACHABLE, in_words, store_at

log = structlog.get_logger(__name__)

# By then, other processes have written their last cycles of the day before, too.
_TIDIED_AFTER_SECONDS = 3600.0
# By then, a wrong clock at the machine's start has been corrected.
_REMOVED_AFTER_SECONDS = 3600.0
# A write that takes longer is reported, because it may never end.
_LONG_SECONDS = 60.0


class HistoryWriter:
    """An `Observer` and `PastCycles` that records cycles in `settings.directory`, which is set."""

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
        self._root = store_at(settings.directory)
        self._clocks = now, monotonic
        self._lock = threading.Lock()
        self._writers: dict[str, _Writer] = {}
        self._recent = RecentCycles()

    def cycle_ended(self, cycle: Cycle, status: FlowStatus) -> None:
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
        """As `PastCycles.points`, also of other processes. Reads files only for cycles that this
        process does not have in memory; files that cannot be read are skipped and logged."""
        recent = self._recent.points(flow, float("-inf"), float("inf"), POINTS_KEPT)
        return points(self._root, flow, since, until, limit, recent, self._instance.id)

    def close(self, seconds: float) -> bool:
        """Wait until all is written, at most `seconds` for all flows; returns True if it is. Later
        cycles are not written."""
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
        # When the write that runs now began, by the monotonic clock.
        self._since: float | None = None
        self._tidied: date | None = None
        self._oldest: date | None = None
        self._warned: str | None = None
        self.thread = threading.Thread(
            target=self._run, name=f"history {history.flow}", daemon=True
        )
        self.thread.start()

    def wake(self) -> None:
        since = self._since
        if since is not None and self._monotonic() - since > _LONG_SECONDS:
            self._warn(TimeoutError(ETIMEDOUT, "a write does not end"))
        self._woken.set()

    def end(self) -> None:
        self._ending = True
        self._woken.set()

    def _run(self) -> None:
        last = False
        while not last:
            self._woken.wait()
            self._woken.clear()
            last = self._ending
            self._since = self._monotonic()
            try:
                self.history.write()
                if not last:
                    self._tidy()
            except BROKEN as error:
                self._warn(error)
            else:
                self._warned = None
            self._since = None

    def _tidy(self) -> None:
        """Once a day, and at the start."""
        root, flow = self.history.root, self.history.flow
        today = day_of(self._now() - _TIDIED_AFTER_SECONDS)
        if today != self._tidied:
            # Files of a day that was merged already arrive at most a day late.
            merged = None if self._tidied is None else self._tidied - timedelta(days=1)
            tidy(root, flow, today, merged)
            self._tidied = today
        # Uses the earlier of two clocks: a clock that was set forward must not remove files.
        spent = self._monotonic() - self._started
        at = min(self._now(), self._started_at + spent) - _TIDIED_AFTER_SECONDS
        oldest = day_of(at) - self._retention
        if oldest != self._oldest and spent >= _REMOVED_AFTER_SECONDS:
            remove_before(root, flow, oldest)
            self._oldest = oldest

    def _warn(self, error: BaseException) -> None:
        """Log it once, until it changes or a write succeeds."""
        flow, root = self.history.flow, self.history.root
        known = isinstance(error, UNREACHABLE)
        words = in_words(root, error) if known else f"{type(error).__name__}: {error}"
        message = (
            f"write history, flow {flow}: {root.path('')}: {words}; cycles continue, and the next"
            " successful write includes the missing cycles: free disk space, or check that it"
            " can be reached and this user can write to it"
        )
        if message != self._warned:
            # An unexpected error is a bug of tsoffset.
            log.warning(
                "history_not_written", flow=flow, message=message, exc_info=None if known else error
            )
        self._warned = message
