"""A clock for tests in which a call has little time."""

import threading
import time


class RunningTime:
    """A monotonic clock that stands still while this process does.

    A busy machine may stop a process for seconds. Requests to brokers of the same process are
    answered no sooner than that, and their deadlines would pass.
    """

    _TICK_SECONDS, _MOST_SECONDS = 0.01, 0.05

    def __init__(self) -> None:
        self._clock = time.monotonic
        now = self._clock()
        # This clock's time, and the system's, at the last tick.
        self._last = now, now
        self._skipped = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def monotonic(self) -> float:
        here, there = self._last
        return self._skipped + here + min(self._clock() - there, self._MOST_SECONDS)

    def skip(self, seconds: float) -> None:
        """Let time pass at once."""
        self._skipped += seconds

    def _run(self) -> None:
        while not self._over.wait(self._TICK_SECONDS):
            now = self._clock()
            here, there = self._last
            self._last = here + min(now - there, self._MOST_SECONDS), now

    def __enter__(self) -> "RunningTime":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
