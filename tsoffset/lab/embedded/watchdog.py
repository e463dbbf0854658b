"""Ends a process whose parent is gone; run as a program, never imported.

A signal that a process cannot catch leaves it no time to stop its children, and Linux's
parent-death signal is bound to the thread that forked. So each process has a watchdog, a child of
the same parent. When the watchdog gets another parent, the parent has ended, however it did. Then
it ends the process: SIGTERM, and SIGKILL after a grace time.

Its standard input is a pipe of which only the process has the other end. So it notices when the
process ends, and never signals a process id that was reused.
"""

import os
import select
import signal
import sys

LOOK_SECONDS = 0.5
GRACE_SECONDS = 5.0


def gone_within(seconds: float) -> bool:
    """Whether the process ends within `seconds`."""
    return bool(select.select([0], [], [], seconds)[0])


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    starter, process = map(int, sys.argv[1:])
    while not gone_within(LOOK_SECONDS):
        if os.getppid() != starter:
            os.kill(process, signal.SIGTERM)
            if not gone_within(GRACE_SECONDS):
                os.kill(process, signal.SIGKILL)
            break
