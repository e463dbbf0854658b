"""pyspark's daemon, which forks Spark's Python workers on this machine, without tracebacks of
closed connections.

Spark ends a worker by closing its connection: after a minute without work, when Spark itself ends,
and when a task is abandoned. pyspark's worker takes this for a failure, cannot report it, and
prints a traceback. All other errors are still printed.

This module imports nothing else, and above all not `tsoffset.spark`: pyarrow and Polars start
threads, which must not run before the fork. A child of a process that has used Polars hangs.
"""

import os
import socket

from pyspark import daemon

_one_task = daemon.worker


def _one_task_or_the_end(sock: socket.socket, authenticated: bool) -> int:
    try:
        return _one_task(sock, authenticated)
    except ConnectionError:
        # The connection to Spark is broken: pyspark would have reported a task's own error over it.
        # Exit at once, because closing the streams later would print the error again.
        os._exit(1)


if __name__ == "__main__":
    daemon.worker = _one_task_or_the_end
    daemon.manager()
