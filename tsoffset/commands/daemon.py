"""The loop of `tsoffset run`: a cycle per flow and interval, until a signal ends it.

The cycles run in a thread of their own. The main thread does nothing but wait for signals,
so it can end a cycle that hangs; and no signal handler runs code of ours, since a handler
that takes a lock may meet it already taken.
"""

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Self

import structlog

log = structlog.get_logger(__name__)

# Together below ten seconds, the time that `docker stop` gives before it kills.
FINISH_SECONDS = 4.0
CANCEL_SECONDS = 3.0

_ENDED = 0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Ending(Enum):
    """How the work ended: by itself or in order, or left behind in its thread."""

    CLEAN = "clean"
    ABANDONED = "abandoned"


def serve(
    intervals: Mapping[str, float],
    cycle: Callable[[str], None],
    *,
    wait: Callable[[float], bool],
    now: Callable[[], float] = time.monotonic,
) -> None:
    """Run `cycle(flow)` for each flow once per its interval in seconds, one at a time.

    The interval counts from start to start. A cycle that takes longer than its interval is
    followed at once by what is due, and what it missed is not made up for. `wait(seconds)`
    answers true once it is time to stop.
    """
    due = dict.fromkeys(intervals, now())
    while True:
        flow = min(due, key=due.__getitem__)
        if wait(max(0.0, due[flow] - now())):
            return
        started = now()
        cycle(flow)
        due[flow] = max(started + intervals[flow], now())


def supervise(
    work: Callable[[threading.Event], None],
    cancel: Callable[[], None],
    *,
    finish_seconds: float = FINISH_SECONDS,
    cancel_seconds: float = CANCEL_SECONDS,
) -> Ending:
    """Run `work` in a thread until it ends, or SIGTERM or SIGINT ends it.

    On a signal the event that `work` was given is set; after `finish_seconds` (or a second
    signal) `cancel` is called; after `cancel_seconds` more the thread is left behind, and
    the process should end without waiting for it. Raises what `work` raises, unless it was
    told to stop. Call it from the main thread.
    """
    stop = threading.Event()
    failures: list[BaseException] = []
    with Signals() as signals:

        def body() -> None:
            try:
                work(stop)
            except BaseException as error:
                if stop.is_set():
                    log.info("work_ended_by_stop", error=f"{type(error).__name__}: {error}")
                else:
                    failures.append(error)
            finally:
                signals.wake()

        thread = threading.Thread(target=body, name="cycles", daemon=True)
        thread.start()
        received = signals.wait(None)
        if received != _ENDED:
            log.info("stop_requested", signal=_name(received))
            stop.set()
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
    """SIGTERM and SIGINT as something to wait for, as long as the `with` block lasts."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def __enter__(self) -> Self:
        # The interpreter writes the number of each signal that has a handler to this pipe.
        self._wakeup_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._handlers_before = {number: signal.signal(number, _heard) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)

    def close(self) -> None:
        """Let go of the pipe, once nobody calls `wake` any more and the block has ended."""
        os.close(self._read)
        os.close(self._write)

    def wait(self, seconds: float | None) -> int | None:
        """The number of the next signal, 0 after `wake`, None after the time."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._read], [], [], left)[0]:
                return None
            number = os.read(self._read, 1)[0]
            if number == _ENDED or number in _SIGNALS:
                return number

    def wake(self) -> None:
        """Let `wait` return; may be called from any thread."""
        os.write(self._write, bytes([_ENDED]))


def _heard(_number: int, _frame: object) -> None:
    """The pipe has the signal already."""


def _name(number: int | None) -> str:
    return "" if number is None else signal.Signals(number).name
