"""Ends Java processes whose starter is gone; run as a program, never imported.

A signal that a process cannot catch leaves it no time to stop what it started, and
Linux's parent-death signal is bound to the thread that forked. So one small process
stands beside each starter. It is told on its standard input which processes run
(`+PID`, `-PID`, one a line), and when the starter is gone, in whatever way, it stops
those that are left: SIGTERM, and SIGKILL after a grace time.

A process is held by a descriptor where the system offers that (Linux), so that a number
which the system has given to somebody else meanwhile is never signalled.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Iterable

LOOK_SECONDS = 0.5
GRACE_SECONDS = 5.0


class Watched:
    """A process of the starter's."""

    def __init__(self, pid: int) -> None:
        """Hold the process `pid`; raises ProcessLookupError if it has ended."""
        self.pid = pid
        self.descriptor = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None

    def signal(self, number: signal.Signals) -> bool:
        """Send `number`; false if the process is gone."""
        try:
            if self.descriptor is None:
                os.kill(self.pid, number)
            else:
                signal.pidfd_send_signal(self.descriptor, number)
        except ProcessLookupError:
            return False
        return True

    def gone(self) -> bool:
        """Whether the process has ended."""
        if self.descriptor is None:
            try:
                os.kill(self.pid, 0)
            except ProcessLookupError:
                return True
            return False
        return bool(select.select([self.descriptor], [], [], 0)[0])

    def release(self) -> None:
        """Let go of the process."""
        if self.descriptor is not None:
            os.close(self.descriptor)


def watch(parent: int) -> dict[int, Watched]:
    """Follow the starter's words until it is gone; return what still runs then.

    The parent's number is compared too, since a forked copy of the starter may hold the
    other end of the pipe open for long.
    """
    watched: dict[int, Watched] = {}
    unread = b""
    while os.getppid() == parent:
        if not select.select([0], [], [], LOOK_SECONDS)[0]:
            continue
        said = os.read(0, 4096)
        if not said:
            break
        *lines, unread = (unread + said).split(b"\n")
        for line in lines:
            follow(watched, line[:1], int(line[1:]))
    return watched


def follow(watched: dict[int, Watched], sign: bytes, pid: int) -> None:
    """Take one line of the starter's into account."""
    if sign == b"+":
        try:
            watched[pid] = Watched(pid)
        except ProcessLookupError:
            return
    elif pid in watched:
        watched.pop(pid).release()


def end(processes: Iterable[Watched]) -> None:
    """Stop all `processes`, together."""
    left = [process for process in processes if process.signal(signal.SIGTERM)]
    deadline = time.monotonic() + GRACE_SECONDS
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = [process for process in left if not process.gone()]
    for process in left:
        process.signal(signal.SIGKILL)


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    # Started last, stopped first: a replicator goes before the brokers it talks to.
    end(reversed(watch(int(sys.argv[1])).values()))
