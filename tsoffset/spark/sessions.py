"""The Spark session that all flows of the daemon share, replaced if it died or failed often."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager

import structlog
from pyspark.sql import SparkSession

from tsoffset.errors import CycleFailed, CycleOverLimit
from tsoffset.spark.jobs import is_alive
from tsoffset.spark.session import spark_session

log = structlog.get_logger(__name__)

# After this many failed jobs in a row, of any flow, the session is replaced.
FAILURES = 3
# The pause between attempts to start Spark: doubled each time, up to the second value.
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
# How long a flow waits while another flow starts the session.
_STARTS_WITHIN_SECONDS = 60.0

Open = Callable[[], AbstractContextManager[SparkSession]]


class Sessions:
    """One session at a time. All methods may be called from any thread."""

    def __init__(self, open: Open, *, now: Callable[[], float] = time.monotonic) -> None:
        self._open = open
        self._now = now
        self._lock = threading.RLock()
        self._stack = ExitStack()
        self._session: SparkSession | None = None
        self._failures = 0
        self._at_work = 0
        self._pause = 0.0
        self._not_before = 0.0
        self._closed = False

    @classmethod
    def of(cls, spark_settings: Mapping[str, str], flows: int) -> "Sessions":
        """Sessions with the user's settings, each shared by `flows` flows."""
        return cls(lambda: spark_session(spark_settings, keep_workers=True, flows=flows))

    def start(self) -> None:
        """Start the first session. Raises as `lease`."""
        with self._lock:
            self._begin()

    @contextmanager
    def lease(self) -> Iterator[SparkSession]:
        """The session for one cycle; a new one if the last one has died or failed often.

        Raises as `spark_session` if Spark does not start. Raises CycleFailed during the pause after
        such a failure, if another flow takes too long to start a session, and if another flow still
        uses a session that failed often.
        """
        session = self._take()
        gave_up = False
        try:
            yield session
        except CycleOverLimit:
            # A cluster was slow. If Java is hung, the next lease finds out.
            raise
        except CycleFailed:
            gave_up = True
            raise
        finally:
            with self._lock:
                # A cycle whose session was replaced meanwhile does not count for the new one.
                if session is self._session:
                    self._at_work -= 1
                    self._failures += gave_up

    def ended_well(self) -> None:
        """A cycle has ended without a failure of Spark."""
        with self._lock:
            self._failures = 0

    def _take(self) -> SparkSession:
        if not self._lock.acquire(timeout=_STARTS_WITHIN_SECONDS):
            raise CycleFailed(
                f"start Spark: it has been starting for {_STARTS_WITHIN_SECONDS:.0f} s, for "
                "another flow; check that spark.master grants the resources that it requests"
            )
        try:
            session = self._session
            if session is not None and not self._usable(session):
                log.warning("session_replaced", failures_in_a_row=self._failures)
                self._end()
                session = None
            session = session or self._begin()
            self._at_work += 1
            return session
        finally:
            self._lock.release()

    def _usable(self, session: SparkSession) -> bool:
        if not is_alive(session):
            return False
        if self._failures >= FAILURES and self._at_work:
            # Cycles under way end within their limit. Others must not begin meanwhile, or it would
            # never be replaced.
            raise CycleFailed(
                f"use Spark: {self._failures} jobs in a row have failed, and a new session starts "
                "when the cycles under way have ended; the log says why they failed (cycle_failed)"
            )
        return self._failures < FAILURES

    def cancel(self) -> None:
        """Cancel all jobs of the session; waits for nothing but Java."""
        session = self._session
        if session is not None:
            try:
                session.sparkContext.cancelAllJobs()
            except Exception as error:
                log.debug("cancel_failed", error=f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """End the session, and start no other."""
        with self._lock:
            self._closed = True
            self._end()

    def _begin(self) -> SparkSession:
        if self._closed:
            raise CycleFailed("start Spark: the daemon is ending")
        if (left := self._not_before - self._now()) > 0:
            raise CycleFailed(
                f"start Spark: the last start failed, and the next one is in {left:.0f} s; the log "
                "says why (session_not_started)"
            )
        try:
            self._session = self._stack.enter_context(self._open())
        except Exception as error:
            self._pause = min(max(2 * self._pause, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)
            self._not_before = self._now() + self._pause
            log.error("session_not_started", error=str(error), pause_seconds=self._pause)
            raise
        self._failures, self._pause, self._at_work = 0, 0.0, 0
        return self._session

    def _end(self) -> None:
        self._session = None
        try:
            self._stack.close()
        except Exception as error:
            # Errors of a dead session do not matter.
            log.debug("session_close_failed", error=f"{type(error).__name__}: {error}")
