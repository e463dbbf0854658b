"""Clients that a process keeps between tasks."""

import os
import threading
from dataclasses import replace

import pytest

from tests.memory_flows import StillTime
from tests.waiting import TIMEOUT_SECONDS
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.clients import Clients, settings_digest
from tsoffset.testing.memory_cluster import MemoryCluster

A = ClusterSettings("A", ("a:9092",), {"client.id": "one"})


class Counted(MemoryCluster):
    """Knows whether it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


def connect(settings: ClusterSettings) -> Counted:
    return Counted(settings.alias)


def test_next_task_finds_the_client_of_the_last_one():
    clients = Clients()
    with clients.lease(connect, A) as first, clients.lease(connect, replace(A)) as second:
        assert second is not first
    with clients.lease(connect, replace(A)) as third:
        assert third in (first, second)
    clients.close_idle(all_of_them=True)


@pytest.mark.parametrize(
    "other",
    [
        replace(A, client={"client.id": "two"}),
        replace(A, bootstrap_servers=("b:9092",)),
        replace(A, admin_timeout_ms=1),
    ],
)
def test_other_settings_take_another_client(other):
    """A setting that was changed, a secret too, holds from the next task on."""
    clients = Clients()
    with clients.lease(connect, A) as first:
        pass
    with clients.lease(connect, other) as second:
        assert second is not first
    clients.close_idle(all_of_them=True)


def test_digest_tells_no_setting():
    """What stands for the settings in memory and logs has nothing of them in it."""
    secret = replace(A, client={"sasl.password": "hunter2"})
    assert "hunter2" not in settings_digest(secret)
    assert settings_digest(secret) != settings_digest(A)


def test_client_of_a_broken_task_is_closed():
    clients = Clients()
    with pytest.raises(RuntimeError), clients.lease(connect, A) as first:
        raise RuntimeError
    assert first.closed
    with clients.lease(connect, A) as second:
        assert second is not first


def test_client_that_nobody_asks_for_is_closed():
    """An idle client is closed after its time, one that was just used is not."""
    time = StillTime()
    clients = Clients(idle_seconds=60.0, clock=time.monotonic)
    with clients.lease(connect, A) as old, clients.lease(connect, A) as young:
        pass
    time.now = 59.0
    with clients.lease(connect, A) as again:
        assert again is old
    time.now = 61.0
    clients.close_idle()
    assert (old.closed, young.closed) == (False, True)
    clients.close_idle(all_of_them=True)
    assert old.closed


def test_idle_clients_are_closed_without_being_asked():
    """A worker that gets no more tasks lets its connections go by itself."""
    closed = threading.Event()

    class Telling(Counted):
        def close(self):
            closed.set()

    clients = Clients(idle_seconds=0.01)
    with clients.lease(lambda settings: Telling(settings.alias), A):
        pass
    assert closed.wait(TIMEOUT_SECONDS)


def test_forked_process_makes_its_own_clients():
    """A connection is never shared with the process that was forked."""
    from tsoffset.kafka.clients import CLIENTS

    with CLIENTS.lease(connect, A) as of_parent:
        pass
    with CLIENTS.lease(connect, A) as again:
        assert again is of_parent
    child = os.fork()
    if child == 0:
        with CLIENTS.lease(connect, A) as of_child:
            os._exit(of_child is of_parent)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    CLIENTS.close_idle(all_of_them=True)
