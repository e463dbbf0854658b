"""pyspark's daemon, from which Spark's Python workers on this machine are forked, made quiet.

Spark ends workers by hanging up: after a minute without work, at its own end, where a task was
given up. pyspark's worker takes that for a failure, cannot report it any more, and prints the
traceback of that. Whatever else breaks is printed as ever.

Nothing else is imported, and `tsoffset.spark` least of all: pyarrow and Polars start threads, which
must not run before the fork. A child of a process that has used Polars hangs.
"""

import os
import socket

from pyspark import daemon

_one_task = daemon.worker


def _one_task_or_the_end(sock: socket.socket, authenticated: bool) -> int:
    try:
        return _one_task(sock, authenticated)
    except ConnectionError:
        # It is this connection that is broken: what a task raises, pyspark reports over it. Gone
        # at once, since streams that are closed later would say so again.
        os._exit(1)


if __name__ == "__main__":
    daemon.worker = _one_task_or_the_end
    daemon.manager()
