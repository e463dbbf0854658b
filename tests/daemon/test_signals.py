"""What a signal does."""

import os
import signal
import threading
from collections.abc import Callable

import pytest

from tsoffset.daemon.signals import CANCEL_SECONDS, FINISH_SECONDS, Ending, Signals, supervise
from tsoffset.errors import CycleFailed, JavaMissing


def signal_once(started: threading.Event, *numbers: int) -> None:
    """Send this process signals as soon as the work is under way."""

    def send() -> None:
        started.wait()
        for number in numbers:
            os.kill(os.getpid(), number)

    threading.Thread(target=send).start()


class Work:
    """Work that goes on until `end` is called."""

    def __init__(self, error: Exception | None = None) -> None:
        self.started, self.over = threading.Event(), threading.Event()
        self.heard: list[str] = []
        self._error = error

    def __call__(self) -> None:
        self.started.set()
        self.over.wait()
        if self._error is not None:
            raise self._error

    def hear(self, word: str, *, end: bool = False) -> Callable[[], None]:
        def heard() -> None:
            self.heard.append(word)
            if end:
                self.over.set()

        return heard


# Longer than any machine takes: work that heeds what it is told ends before.
PATIENT = {"finish_seconds": 600, "cancel_seconds": 600}


def supervised(work: Work, ended_by: str, **seconds: float) -> Ending:
    heard = {word: work.hear(word, end=word == ended_by) for word in ("stop", "cancel", "hang_up")}
    return supervise(work, **heard, **{**PATIENT, **seconds})


@pytest.mark.parametrize(
    ("signals", "ended_by", "seconds", "heard"),
    [
        ((signal.SIGTERM,), "stop", {}, ["stop"]),
        ((signal.SIGINT,), "stop", {}, ["stop"]),
        # A hang-up ends nothing.
        ((signal.SIGHUP,), "hang_up", {}, ["hang_up"]),
        # Work that does not stop is canceled after the time to finish.
        ((signal.SIGTERM,), "cancel", {"finish_seconds": 0.05}, ["stop", "cancel"]),
        # Who presses Ctrl-C twice means now.
        ((signal.SIGINT, signal.SIGTERM), "cancel", {}, ["stop", "cancel"]),
    ],
)
def test_work_that_heeds_what_it_is_told_ends_cleanly(signals, ended_by, seconds, heard):
    """What canceled work raises is expected. The handlers are put back."""
    before = [signal.getsignal(number) for number in signals]
    work = Work(CycleFailed("canceled") if ended_by == "cancel" else None)
    signal_once(work.started, *signals)
    assert supervised(work, ended_by, **seconds) is Ending.CLEAN
    assert work.heard == heard
    assert [signal.getsignal(number) for number in signals] == before


def test_work_that_nothing_ends_is_abandoned():
    """Before `docker stop` kills the process, after ten seconds: its cause of death would be
    unknown."""
    assert FINISH_SECONDS + CANCEL_SECONDS < 10
    work = Work()
    signal_once(work.started, signal.SIGTERM)
    ending = supervised(work, "nothing", finish_seconds=0.05, cancel_seconds=0.05)
    assert ending is Ending.ABANDONED
    work.over.set()


def test_what_the_work_raises_is_raised():
    """What keeps Spark from starting ends the command with its own words."""
    work = Work(JavaMissing("no Java"))
    work.over.set()
    with pytest.raises(JavaMissing, match="no Java"):
        supervised(work, "nothing")


def test_other_signals_wake_nobody():
    """A signal that another part of the program handles is not taken for an end."""
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with Signals() as signals:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert signals.wait(0.01) is None
            signals.wake()
            assert signals.wait(None) == 0
        signals.close()
    finally:
        signal.signal(signal.SIGUSR1, before)
