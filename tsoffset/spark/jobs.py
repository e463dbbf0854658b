"""Spark jobs, seen from the driver: their progress, cancellation and failure."""

import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

import py4j.protocol
import structlog
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tsoffset.errors import CycleFailed, CycleOverLimit
from tsoffset.threads import in_thread

log = structlog.get_logger(__name__)

T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, how many of its tasks are done, and how many there are."""

_POLL_SECONDS = 0.2
# A live Java answers at once. One that has not ended its jobs after this time is hung.
_ANSWERS_WITHIN_SECONDS = 10.0
# The first step of a cycle, which the driver does alone.
_BEFORE_SPARK = "list groups"
_LONGEST = 400
_TASK_FAILURE = re.compile(
    r"most recent failure: Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^()]*+\): (?P<what>.+)"
)
_JAVA_MESSAGE = re.compile(r"^(?:Caused by: |: )\S+: (?P<message>.+)$", re.MULTILINE)
_JAVA_CLASS = re.compile(r"^(?:[a-z]\w*\.)+\w+: ")
_SAYS_NOTHING = "Exception thrown in awaitResult"
# Spark gave up, or there is no Spark any more.
SPARK_ERRORS = (PySparkException, py4j.protocol.Py4JError, OSError, EOFError)


class Interrupted(RuntimeError):
    """The cycle was canceled, and its result is not used."""


class Jobs:
    """The Spark jobs of one cycle.

    They run in a thread of their own, because pyspark cannot be interrupted: an exception of a
    signal handler waits for the job's end, and leaves half an answer on the connection to Java.
    """

    def __init__(self, session: SparkSession, flow: str, progress: Progress | None) -> None:
        self._context = session.sparkContext
        self._flow = flow
        self._progress = progress
        self._group = uuid.uuid4().hex
        self._stage = ""
        self._interrupted = False

    def run(self, work: Callable[[], T], limit_seconds: float | None = None) -> T:
        """The result of `work`, which must use Spark only through `collect`.

        If the wait for it ends early, its jobs are canceled. Raises CycleFailed if Spark fails,
        and CycleOverLimit after `limit_seconds`.
        """
        outcome = in_thread(partial(self._work, work))
        if self._progress is not None:
            threading.Thread(target=self._watch, args=(outcome,), daemon=True).start()
        try:
            return outcome.result(limit_seconds)
        except BaseException as error:
            if not outcome.done():
                self._interrupted = True
                cancelling = threading.Thread(target=self._cancel, args=(outcome,), daemon=True)
                cancelling.start()
                if self._stage:
                    cancelling.join(_ANSWERS_WITHIN_SECONDS)
                if isinstance(error, TimeoutError):
                    raise CycleOverLimit(
                        f"run cycle, flow {self._flow}: stopped at its time limit, in the "
                        f"step {self._stage or _BEFORE_SPARK}; the next cycle reads the clusters "
                        "again; if cycles need more time, raise cycle.limit.seconds"
                    ) from error
            elif isinstance(error, SPARK_ERRORS):
                raise CycleFailed(
                    f"run cycle, flow {self._flow}: Spark gave up: {cause(error)}; the next cycle "
                    "reads the clusters again"
                ) from error
            raise

    def collect(self, stage: str, action: Callable[[], list[bytes]]) -> list[bytes]:
        """Run the action once. Returns one result per task."""
        started = time.perf_counter()
        if self._interrupted:
            raise Interrupted(stage)
        self._stage = stage
        found = action()
        log.debug(
            "spark_action_finished",
            flow=self._flow,
            action=stage,
            tasks=len(found),
            bytes=sum(map(len, found)),
            seconds=round(time.perf_counter() - started, 3),
        )
        return found

    def _work(self, work: Callable[[], T]) -> T:
        self._context.setJobGroup(self._group, f"tsoffset {self._flow}")
        # Where flows share a session, each has its part of it.
        self._context.setLocalProperty("spark.scheduler.pool", self._flow)
        return work()

    def _watch(self, outcome: Future[T]) -> None:
        assert self._progress is not None
        told: tuple[str, int, int] | None = None
        with _spark_may_be_gone():
            tracker = self._context.statusTracker()
            while not _ends_within(outcome, _POLL_SECONDS):
                stage, done, total = self._stage, 0, 0
                for job in tracker.getJobIdsForGroup(self._group):
                    info = tracker.getJobInfo(job)
                    if info is None or info.status != "RUNNING":
                        continue
                    for number in info.stageIds:
                        if (found := tracker.getStageInfo(number)) is not None:
                            done += found.numCompletedTasks
                            total += found.numTasks
                if total and (stage, done, total) != told:
                    told = (stage, done, total)
                    self._progress(*told)

    def _cancel(self, outcome: Future[T]) -> None:
        # Repeated, because a job that is just being submitted misses the first request.
        while not outcome.done():
            with _spark_may_be_gone():
                self._context.cancelJobGroup(self._group)
            _ends_within(outcome, _POLL_SECONDS)


def is_alive(session: SparkSession) -> bool:
    """False if the session's Java has ended or does not answer, so a new session is needed. A Java
    process that does not answer is killed, so that no later step waits for it."""

    def is_running() -> bool:
        try:
            return not session.sparkContext._jsc.sc().isStopped()
        except (AttributeError, *SPARK_ERRORS):
            return False

    answer = in_time(is_running)
    gateway = session.sparkContext._gateway if answer is None else None
    # It has no process if spark-submit has started Java.
    if gateway is not None and gateway.proc is not None:
        gateway.proc.kill()
    return answer or False


def in_time(work: Callable[[], T]) -> T | None:
    """The result of `work`, which waits for nothing but Java; None if Java hangs."""
    try:
        return in_thread(work).result(_ANSWERS_WITHIN_SECONDS)
    except TimeoutError:
        return None


def cause(error: BaseException) -> str:
    """The sentence of a Spark error that says what failed, without stack traces."""
    try:
        text = str(error)
    except SPARK_ERRORS:
        # `str` asks Java for the message of its exception, and Java has ended.
        text = type(error).__name__
    return sentence(text)


def sentence(text: str) -> str:
    """The error of a worker's Python, if the text has one; otherwise the reason why a task failed;
    otherwise the first message of Java."""
    _, traceback, python = text.rpartition("Traceback (most recent call last):\n")
    if traceback:
        said = [line for line in python.splitlines() if line and not line[0].isspace()]
    elif task := _TASK_FAILURE.search(text):
        said = [task["what"]]
    else:
        said = [found["message"] for found in _JAVA_MESSAGE.finditer(text)]
        said = [message for message in said if not message.startswith(_SAYS_NOTHING)]
        said = said or [line.strip() for line in text.splitlines() if line.strip()]
    first = said[0] if said else "it gave no reason"
    return (
        _JAVA_CLASS.sub("", first).split(". Consider setting")[0].strip().rstrip(".;:")[:_LONGEST]
    )


def _ends_within(outcome: Future[T], seconds: float) -> bool:
    with suppress(Exception):
        outcome.exception(seconds)
    return outcome.done()


@contextmanager
def _spark_may_be_gone() -> Iterator[None]:
    """Ignore errors of a Spark that has ended: the cycle's own failure is reported. (A stopped
    context has no Java object.)"""
    with suppress(AttributeError, *SPARK_ERRORS):
        yield
