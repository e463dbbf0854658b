"""Signals: they stop the daemon, or make it reload its configuration.

The work is done in other threads. The main thread only waits for signals, so it can abandon a cycle
that hangs. Signal handlers do nothing: one that takes a lock could deadlock.
"""

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import Self

import structlog

log = structlog.get_logger(__name__)

# Together below ten seconds, after which `docker stop` kills the process.
FINISH_SECONDS = 4.0
CANCEL_SECONDS = 3.0

_ENDED = 0
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Ending(Enum):
    """How the work ended: in order, or with its thread still running."""

    CLEAN = "clean"
    ABANDONED = "abandoned"


def supervise(
    work: Callable[[], None],
    *,
    stop: Callable[[], None],
    cancel: Callable[[], None],
    hang_up: Callable[[], None],
    finish_seconds: float = FINISH_SECONDS,
    cancel_seconds: float = CANCEL_SECONDS,
) -> Ending:
    """Run `work` in a thread until it ends, or SIGTERM or SIGINT ends it.

    On such a signal it calls `stop`, which must not wait; after `finish_seconds` (or a second
    signal) `cancel`; after `cancel_seconds` more it returns ABANDONED, and the process should exit
    without waiting for the thread. SIGHUP calls `hang_up`. Raises what `work` raises before a stop.
    Call it from the main thread.
    """
    stopping = False
    failures: list[BaseException] = []
    with Signals() as signals:

        def body() -> None:
            try:
                work()
            except BaseException as error:
                if stopping:
                    log.info("work_ended_by_stop", error=f"{type(error).__name__}: {error}")
                else:
                    failures.append(error)
            finally:
                signals.wake()

        thread = threading.Thread(target=body, name="daemon", daemon=True)
        thread.start()
        while (received := signals.wait(None)) == signal.SIGHUP:
            hang_up()
        signals.ignore(signal.SIGHUP)
        if received != _ENDED:
            log.info("stop_requested", signal=_name(received))
            stopping = True
            stop()
            if signals.wait(finish_seconds) != _ENDED:
                log.warning("cycle_cancelled", waited_seconds=finish_seconds)
                threading.Thread(target=cancel, name="cancel", daemon=True).start()
                if signals.wait(cancel_seconds) != _ENDED:
                    log.warning("cycle_abandoned", waited_seconds=cancel_seconds)
                    return Ending.ABANDONED
        thread.join()
    signals.close()
    if failures:
        raise failures[0]
    return Ending.CLEAN


class Signals:
    """Waits for SIGTERM, SIGINT and SIGHUP in a `with` block."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self._handled = frozenset(map(int, _SIGNALS))
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def __enter__(self) -> Self:
        # The interpreter writes the number of each signal that has a handler to this pipe.
        self._wakeup_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._handlers_before = {number: signal.signal(number, _ignore_here) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)

    def close(self) -> None:
        """Close the pipe, after the block, and when no thread calls `wake` any more."""
        os.close(self._read)
        os.close(self._write)

    def wait(self, seconds: float | None) -> int | None:
        """The number of the next signal; 0 after `wake`; None after `seconds`."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._read], [], [], left)[0]:
                return None
            number = os.read(self._read, 1)[0]
            if number == _ENDED or number in self._handled:
                return number

    def ignore(self, number: int) -> None:
        self._handled = self._handled - {number}

    def wake(self) -> None:
        """Make `wait` return 0; may be called from any thread."""
        os.write(self._write, bytes([_ENDED]))


def _ignore_here(_number: int, _frame: object) -> None:
    """Does nothing: the interpreter has written the signal's number to the pipe."""


def _name(number: int | None) -> str:
    return "" if number is None else signal.Signals(number).name
