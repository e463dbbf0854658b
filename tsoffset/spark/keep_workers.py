"""Keeping Spark's workers alive between two cycles.

Spark ends idle Python workers after a minute; no setting changes that
(`PythonWorkerFactory.IDLE_WORKER_TIMEOUT_NS`). The next cycle would start new workers, import
everything and connect to both clusters, which took 1.2 to 2.1 s for a cycle of 0.2 s. One task of
one row, which takes a few hundredths of a second, keeps all workers of a machine alive.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from pyspark.sql import SparkSession

from tsoffset.errors import CycleFailed
from tsoffset.spark.jobs import Jobs

# Workers are idle for so long at most: Spark looks every ten seconds whether the minute is over.
IDLE_SECONDS = 45.0
# A worker that is hung is given up then: it would hold a place that cycles need.
ANSWERS_WITHIN_SECONDS = 10.0


@contextmanager
def workers_kept(session: SparkSession) -> Iterator[threading.Thread]:
    """Keep the session's workers alive while the block lasts. Yields the thread that does it, which
    ends soon after the block."""
    over = threading.Event()
    context = session.sparkContext

    def little() -> list[bytes]:
        return context.parallelize([b""], 1).mapPartitions(_nothing).collect()

    def work() -> None:
        while not over.wait(IDLE_SECONDS):
            jobs = Jobs(session, "keep workers", None)
            # A Spark that died, or cancelled all that it had to do, is the cycles' to notice.
            with suppress(CycleFailed):
                jobs.run(partial(jobs.collect, "keep workers", little), ANSWERS_WITHIN_SECONDS)

    keeping = threading.Thread(target=work, name="keep-workers", daemon=True)
    keeping.start()
    try:
        yield keeping
    finally:
        over.set()


def _nothing(rows: Iterable[bytes]) -> Iterable[bytes]:
    return rows
