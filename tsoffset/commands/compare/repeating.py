"""A command that does its work again and again, until it is told to stop."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from tsoffset.daemon.schedule import Schedule


class Repeating:
    """One piece of work after the other, on a grid of times; what is past is left out.

    SIGTERM and Ctrl-C end it in order: while it waits or looks at clusters at once, and while
    something is written (`undisturbed`) right after that.
    """

    def __init__(self, every_seconds: float, times: int | None) -> None:
        self._schedule = Schedule(every_seconds, time.monotonic())
        self._rounds = count() if times is None else range(times)
        self._disturbable = True
        self._told = False

    def run(self, work: Callable[[], bool]) -> None:
        """Call `work` until it returns False, as often as was said, or until a signal comes. Call
        it from the main thread."""
        with self._heeding_signals():
            try:
                for number in self._rounds:
                    if number:
                        time.sleep(max(0.0, self._schedule.due - time.monotonic()))
                    if not work():
                        return
                    self._schedule.ended(time.monotonic())
            except KeyboardInterrupt:
                return

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """No signal is heeded before the block is done."""
        self._disturbable = False
        try:
            yield
        finally:
            self._disturbable = True
        if self._told:
            raise KeyboardInterrupt

    @contextmanager
    def _heeding_signals(self) -> Iterator[None]:
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self._heard) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _heard(self, *_: Any) -> None:
        self._told = True
        if self._disturbable:
            raise KeyboardInterrupt
