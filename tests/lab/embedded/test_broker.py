"""Kafka as a process of this machine: what it is for, what can be off, and its end."""

import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.invoking import ROOT
from tests.lab.embedded.test_jars import WAIT_SECONDS
from tests.processes import runs
from tests.producing import Contents
from tests.waiting import wait_until
from tsoffset.errors import PortTaken, StartFailed
from tsoffset.lab.embedded import EmbeddedBroker
from tsoffset.lab.embedded.ports import free_port

# --- Brokers


@pytest.mark.integration
def test_broker_takes_commits_right_after_its_start_and_leaves_nothing():
    """At the port that was asked for: whatever the group's name, its first commit is taken. The end
    of the block ends the process and removes its folder."""
    port = free_port()
    with EmbeddedBroker(port=port) as broker, closing(Contents(broker.bootstrap)) as contents:
        assert broker.bootstrap.endswith(f":{port}")
        contents.create_topic("events", 2)
        for number in range(20):
            group = f"group-{number}"
            contents.commit_offsets(group, {("events", 0): 0, ("events", 1): (7, "metadata")})
            assert contents.committed_offsets(group) == {
                ("events", 0): (0, ""),
                ("events", 1): (7, "metadata"),
            }
        pid = broker.pid
    assert not runs(pid)
    assert not broker.directory.exists()


@pytest.mark.integration
def test_port_that_was_asked_for_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        broker = EmbeddedBroker(tmp_path, port=port)
        with pytest.raises(PortTaken, match=f"port {port} is in use"):
            broker.start()
        assert broker.pid is None


@pytest.mark.integration
def test_broker_that_cannot_start_says_why(tmp_path):
    broker = EmbeddedBroker(tmp_path, properties={"log.retention.ms": "soon"})
    with pytest.raises(StartFailed, match=r"soon.*log\.retention\.ms") as caught:
        broker.start()
    assert str(tmp_path) in str(caught.value)
    assert broker.pid is None


# --- The starter's end

_STARTS_A_BROKER = """
import os, signal, sys, time
from pathlib import Path
from tsoffset.lab.embedded import EmbeddedBroker
broker = EmbeddedBroker(Path(sys.argv[1])).start()
print(broker.pid, flush=True)
"""


def run_starter(tmp_path: Path, then: str) -> tuple[subprocess.Popen[str], int]:
    """Start a program that starts a broker and goes on with `then`; return the broker's pid."""
    starter = subprocess.Popen(
        [sys.executable, "-c", _STARTS_A_BROKER + then, str(tmp_path / "own")],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return starter, int(starter.stdout.readline())


@pytest.mark.integration
def test_broker_ends_when_its_starter_is_killed(tmp_path):
    """By a signal that cannot be caught: nothing stays behind."""
    starter, pid = run_starter(tmp_path, "sys.stdin.read()")
    assert runs(pid)
    starter.send_signal(signal.SIGKILL)
    starter.communicate(timeout=WAIT_SECONDS)
    wait_until(lambda: not runs(pid))


@pytest.mark.integration
@pytest.mark.thorough
def test_forked_copy_of_the_starter_stops_nothing(tmp_path):
    """The broker belongs to the process that started it, not to what that forks."""
    then = """
if not (copy := os.fork()):
    sys.exit()
os.waitpid(copy, 0)
print("the copy is gone", flush=True)
sys.stdin.read()
"""
    starter, pid = run_starter(tmp_path, then)
    assert starter.stdout.readline() == "the copy is gone\n"
    assert runs(pid)
    starter.communicate(timeout=WAIT_SECONDS)
    assert not runs(pid)
