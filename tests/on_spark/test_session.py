"""Workers that had nothing to do for longer than Spark lets them live."""

import time
from contextlib import nullcontext

import pytest
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from tests.processes import runs, stopped
from tests.spark_functions import process
from tests.waiting import wait_until
from tsoffset.spark.session import workers_kept

pytestmark = pytest.mark.spark

# Spark's minute, and how long it takes to see that it is over.
LONG_REST = 75


def worker(session: SparkSession) -> int:
    return int(session.sparkContext.parallelize([0], 1).map(process).collect()[0])


def test_workers_get_something_to_do_while_they_are_kept(session, monkeypatch):
    """One job after the other, and none once no flow needs the workers."""
    monkeypatch.setattr("tsoffset.spark.session.WORKER_IDLE_SECONDS", 0.01)
    with capture_logs() as events, workers_kept(session) as keeping:
        wait_until(lambda: len(events) >= 3)
    wait_until(lambda: not keeping.is_alive())
    assert {(each["event"], each["tasks"]) for each in events} == {("spark_action_finished", 1)}


def test_a_worker_that_is_hung_is_given_up(session, monkeypatch):
    """What keeps the workers takes them in turn; one that stands still must not hold a place."""
    monkeypatch.setattr("tsoffset.spark.session.WORKER_IDLE_SECONDS", 0.01)
    monkeypatch.setattr("tsoffset.spark.session.HUNG_WORKER_SECONDS", 1.0)
    hung = worker(session)
    with stopped(hung), workers_kept(session):
        wait_until(lambda: not runs(hung))
    assert worker(session) != hung


@pytest.mark.long
@pytest.mark.parametrize("kept", [False, True])
def test_kept_workers_outlive_a_rest(session, kept):
    """Spark ends those that rest for a minute; with one small task in between it does not."""
    first = worker(session)
    with workers_kept(session) if kept else nullcontext():
        time.sleep(LONG_REST)
    assert (worker(session) == first) is kept
