"""Ends a process whose starter is gone; run as a program, never imported.

A signal that a process cannot catch leaves it no time to stop what it started, and
Linux's parent-death signal is bound to the thread that forked. So one of these stands
beside each process, as a child of the same starter: once it has another parent, the
starter is gone, in whatever way. Then it ends the process: SIGTERM, and SIGKILL after a
grace time.

Its standard input is a pipe of which the process alone holds the other end, so it knows
when that is gone, and never signals a number that was given to somebody else meanwhile.
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
