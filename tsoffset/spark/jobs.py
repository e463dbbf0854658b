"""Spark jobs as the driver sees them: their progress, their end before time, their failure."""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import py4j.protocol
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tsoffset.errors import CycleFailed

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, how many of its tasks are done, and how many there are."""

_POLL_SECONDS = 0.2
_LONGEST_CAUSE = 400


@contextmanager
def job_group(
    session: SparkSession, description: str, stage: str, progress: Progress | None
) -> Iterator[None]:
    """Watch the jobs that the block runs; whatever ends the block ends them too."""
    context = session.sparkContext
    group = uuid.uuid4().hex
    context.setJobGroup(group, description)
    over = threading.Event()
    watcher = None
    if progress is not None:
        watcher = threading.Thread(
            target=_watch, args=(session, group, stage, progress, over), daemon=True
        )
        watcher.start()
    try:
        yield
    except BaseException:
        with _already_failing():
            context.cancelJobGroup(group)
        raise
    finally:
        over.set()
        if watcher is not None:
            watcher.join()
        with _already_failing():
            context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


@contextmanager
def spark_errors(flow: str) -> Iterator[None]:
    """Raise CycleFailed for what Spark raises."""
    try:
        yield
    except (PySparkException, py4j.protocol.Py4JError, OSError) as error:
        raise CycleFailed(
            f"run cycle, flow {flow}: Spark gave up: {cause(error)}; the next cycle starts anew "
            "from the clusters"
        ) from error


def is_alive(session: SparkSession) -> bool:
    """False where the session's Spark is gone and a new session is needed."""
    try:
        return not session.sparkContext._jsc.sc().isStopped()
    except (AttributeError, py4j.protocol.Py4JError, OSError):
        return False


@contextmanager
def _already_failing() -> Iterator[None]:
    """Spark may be gone by now: the first failure is the one to tell."""
    try:
        yield
    except (PySparkException, py4j.protocol.Py4JError, OSError):
        return


def _watch(
    session: SparkSession, group: str, stage: str, progress: Progress, over: threading.Event
) -> None:
    last = (0, 0)
    with _already_failing():
        tracker = session.sparkContext.statusTracker()
        while not over.wait(_POLL_SECONDS):
            done = total = 0
            for job in tracker.getJobIdsForGroup(group):
                info = tracker.getJobInfo(job)
                for number in info.stageIds if info else ():
                    found = tracker.getStageInfo(number)
                    if found is not None:
                        done += found.numCompletedTasks
                        total += found.numTasks
            if total and (done, total) != last:
                last = (done, total)
                progress(stage, done, total)


def cause(error: Exception) -> str:
    """The sentence in what Spark says: its own first line, without the Java stack."""
    text = str(error)
    if isinstance(error, py4j.protocol.Py4JJavaError):
        text = str(error.java_exception.getMessage() or error.java_exception)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:_LONGEST_CAUSE]
