"""The session that flows share: when it is replaced, and when another is started."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from tsoffset.errors import CycleFailed, CycleOverLimit
from tsoffset.spark.sessions import FAILURES, Sessions


class Session:
    """In the place of a session of Spark: it is there, or it has died."""

    def __init__(self) -> None:
        self.stopped = False

    @property
    def sparkContext(self) -> Any:  # noqa: N802 (pyspark's name)
        told = SimpleNamespace(isStopped=lambda: self.stopped)
        jobs = dict.fromkeys(("setJobGroup", "setLocalProperty", "cancelJobGroup"), lambda *_: None)
        return SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: told), **jobs)


class Opened:
    """Sessions that were opened, or why none was; its clock stands still."""

    def __init__(self) -> None:
        self.sessions: list[Any] = []
        self.error: Exception | None = None
        self.now = 0.0

    @contextmanager
    def __call__(self) -> Iterator[Any]:
        if self.error is not None:
            raise self.error
        self.sessions.append(Session())
        yield self.sessions[-1]


def leased(sessions: Sessions, error: Exception | None = None) -> Any:
    """The session that a cycle got, which ended with the error."""
    with suppress(CycleFailed), sessions.lease() as session:
        found = session
        if error is not None:
            raise error
    return found


GAVE_UP = CycleFailed("Spark gave up")


def test_a_session_that_died_is_replaced():
    opened = Opened()
    sessions = Sessions(opened)
    first = leased(sessions)
    assert leased(sessions) is first
    opened.sessions[0].stopped = True
    assert leased(sessions) is opened.sessions[1]


def test_a_session_that_keeps_failing_is_replaced():
    """After three failures in a row, of whichever flow. A cycle that ends well resets the count,
    and one that ends at its limit does not count as a failure of Spark."""
    opened = Opened()
    sessions = Sessions(opened)
    for error in (GAVE_UP, GAVE_UP, None, GAVE_UP, CycleOverLimit("slow"), GAVE_UP):
        assert leased(sessions, error) is opened.sessions[0]
        if error is None:
            sessions.ended_well()
    leased(sessions, GAVE_UP)
    assert leased(sessions) is opened.sessions[1]


def test_a_session_in_which_another_flow_works_is_not_taken_from_it():
    """It is replaced once no flow runs in it, and until then no flow starts in it. What ran in an
    old session does not count for the new one."""
    opened = Opened()
    sessions = Sessions(opened)
    with suppress(CycleFailed), sessions.lease() as of_other:
        for _ in range(FAILURES):
            assert leased(sessions, GAVE_UP) is of_other
        with pytest.raises(CycleFailed, match="have ended"):
            sessions.lease().__enter__()
        opened.sessions[0].stopped = True
        assert leased(sessions) is opened.sessions[1]
        raise GAVE_UP
    for _ in range(2):
        assert leased(sessions, GAVE_UP) is opened.sessions[1]
    assert leased(sessions) is opened.sessions[1]


def test_a_spark_that_does_not_start_is_tried_with_growing_pauses():
    """No flow waits for it: each cycle until then fails with why, and the first success ends it."""
    opened = Opened()
    sessions = Sessions(opened, now=lambda: opened.now)
    opened.error = CycleFailed("no memory")
    tried = []
    for second in range(20):
        opened.now = float(second)
        with pytest.raises(CycleFailed) as failure, sessions.lease():
            pass
        if "no memory" in str(failure.value):
            tried.append(second)
    assert tried == [0, 1, 3, 7, 15]
    opened.error, opened.now = None, 40.0
    assert leased(sessions) is opened.sessions[0]
