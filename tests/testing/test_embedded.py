"""Kafka and MirrorMaker 2 as processes of this machine: what they are for, and what can be off."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import pytest

from tests.http_server import http_server
from tests.invoking import ROOT
from tests.processes import runs
from tests.producing import Contents
from tests.waiting import wait_until
from tsoffset.errors import JarsUnavailable, JavaMissing, JavaTooOld, PortTaken, StartFailed
from tsoffset.java import find_java
from tsoffset.lab.embedded import KAFKA_VERSION, EmbeddedBroker, jars, resolve_jars
from tsoffset.lab.embedded.jars import PINNED, REPOSITORY_VARIABLE, fetch_jars
from tsoffset.lab.embedded.ports import free_port

WAIT_SECONDS = 60


JARS = {
    f"org/example/{name}/1.0/{name}-1.0.jar": b"jar of " + name.encode()
    for name in ("clients", "server", "tools")
}
PINS = "".join(f"{sha256(jar).hexdigest()}  {path}\n" for path, jar in JARS.items())


class Repository(SimpleHTTPRequestHandler):
    """A Maven repository of small files; `asked` are the paths that were asked for."""

    asked: ClassVar[list[str]] = []

    def log_message(self, *_: object) -> None:
        self.asked.append(self.path)


def filled(folder: Path) -> Path:
    """The folder of a repository, with `JARS`."""
    for path, jar in JARS.items():
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_bytes(jar)
    return folder


@pytest.fixture
def repository(monkeypatch, tmp_path) -> Iterator[Path]:
    """The folder of a repository that serves `JARS`, and that the environment leads to."""
    folder = filled(tmp_path / "repository")
    Repository.asked = []
    with http_server(partial(Repository, directory=folder)) as url:
        monkeypatch.setenv(REPOSITORY_VARIABLE, f"{url}/")
        yield folder


def fetched(folder: Path) -> dict[str, bytes]:
    return {jar.name: jar.read_bytes() for jar in folder.iterdir()}


ALL = {Path(path).name: jar for path, jar in JARS.items()}


# --- Java


def test_no_java_is_said_with_what_to_install(monkeypatch, tmp_path):
    """Without JAVA_HOME and without java on the PATH the error names both, and the version."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match=r"JAVA_HOME.*PATH.*17 or newer"):
        find_java()


@pytest.mark.parametrize(("line", "major"), [("1.8.0_402", 8), ("11.0.22", 11), ("16", 16)])
def test_old_java_is_said_with_its_version(monkeypatch, tmp_path, line, major):
    java = fake_java(tmp_path / "bin" / "java", line)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(java.parent), prepend=os.pathsep)
    with pytest.raises(JavaTooOld, match=f"it is Java {major}, and Kafka needs 17"):
        find_java()


def test_java_home_goes_before_the_path(monkeypatch, tmp_path):
    """As for Spark, JAVA_HOME decides."""
    java = fake_java(tmp_path / "home" / "bin" / "java", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == java


def fake_java(path: Path, version: str) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"""#!/bin/sh\necho 'openjdk version "{version}" 2024-01-16' >&2\n""")
    path.chmod(0o755)
    return path


# --- Jars


def test_unreachable_repository_is_said_with_version_folder_and_remedy(monkeypatch, tmp_path):
    """No cache and no way to a repository: the error says what, where to, why, and what next."""
    monkeypatch.setattr(jars, "_RETRIES", 0)
    monkeypatch.setenv(REPOSITORY_VARIABLE, f"http://127.0.0.1:{free_port()}/")
    with pytest.raises(JarsUnavailable) as caught:
        resolve_jars(tmp_path / "cache")
    text = str(caught.value)
    assert f"Kafka {KAFKA_VERSION}" in text
    assert str(tmp_path / "cache") in text
    assert "Connection refused" in text
    assert REPOSITORY_VARIABLE in text


def test_folder_that_cannot_be_made_is_said_with_remedy(tmp_path):
    """Where the jars cannot be kept, another folder is the remedy, and no network is asked for."""
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(JarsUnavailable, match=r"cache.*set XDG_CACHE_HOME"):
        resolve_jars(tmp_path / "cache")


def test_fetched_jars_are_found_again_without_network(repository, tmp_path):
    for _ in range(2):
        fetch_jars(tmp_path / "jars", PINS)
        assert fetched(tmp_path / "jars") == ALL
    assert sorted(Repository.asked) == sorted(f"/{path}" for path in JARS)


@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda jar: jar.write_bytes(b""), lambda jar: jar.write_bytes(b"foul")]
)
def test_damaged_jar_is_fetched_again(repository, tmp_path, damage):
    """A jar that is missing, cut off or changed is fetched again, and no other."""
    fetch_jars(tmp_path / "jars", PINS)
    damage(tmp_path / "jars" / "server-1.0.jar")
    fetch_jars(tmp_path / "jars", PINS)
    assert fetched(tmp_path / "jars") == ALL
    assert len(Repository.asked) == len(JARS) + 1


@pytest.mark.parametrize("damage", [Path.unlink, lambda jar: jar.write_bytes(b"jar of ser")])
def test_jar_that_the_repository_lacks_or_cuts_off_is_said_and_not_kept(
    repository, tmp_path, monkeypatch, damage
):
    """What is not by its checksum what was wanted is never taken for it; a later fetch goes on."""
    monkeypatch.setattr(jars, "_RETRIES", 0)
    damage(repository / "org/example/server/1.0/server-1.0.jar")
    with pytest.raises(JarsUnavailable, match=r"server-1\.0\.jar"):
        fetch_jars(tmp_path / "jars", PINS)
    assert fetched(tmp_path / "jars").items() < ALL.items()
    (repository / "org/example/server/1.0/server-1.0.jar").write_bytes(b"jar of server")
    fetch_jars(tmp_path / "jars", PINS)
    assert fetched(tmp_path / "jars") == ALL


def test_pinned_jars_are_those_of_the_version():
    """Version and checksums are changed together; each jar lies under a name of its own."""
    for version, pins in PINNED.items():
        names = [Path(line.split()[1]).name for line in pins.read_text().splitlines()]
        assert len({*names}) == len(names)
        wanted = ["kafka_2.13", "kafka-clients"]
        if version == KAFKA_VERSION:
            wanted += ["kafka-tools", "connect-mirror", "connect-runtime"]
        assert {f"{name}-{version}.jar" for name in wanted} <= {*names}


def test_jar_that_another_took_the_place_of_is_gone(repository, tmp_path):
    """Java takes all that lies in the folder, so only what is wanted does."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "server-0.9.jar").write_bytes(b"older")
    fetch_jars(tmp_path / "jars", PINS)
    assert fetched(tmp_path / "jars") == ALL


@pytest.mark.slow
def test_processes_that_need_the_jars_at_once_fetch_them_once(repository, tmp_path):
    """One fetches, the others wait for it and find the jars."""
    script = (
        "import sys; from pathlib import Path\n"
        "from tsoffset.lab.embedded.jars import fetch_jars\n"
        "fetch_jars(Path(sys.argv[1]), sys.argv[2])"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "jars"), PINS]
    started = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    said = [process.communicate(timeout=WAIT_SECONDS) for process in started]
    assert said == [(b"", b"")] * 3
    assert fetched(tmp_path / "jars") == ALL
    assert sorted(Repository.asked) == sorted(f"/{path}" for path in JARS)


def test_mirror_of_mavens_own_settings_is_used(repository, monkeypatch, tmp_path):
    """A machine that is set up for Maven needs no setting of tsoffset."""
    settings = tmp_path / "home" / ".m2" / "settings.xml"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        f"<settings><mirrors><mirror><mirrorOf>external:*,!own</mirrorOf>"
        f"<url>{os.environ[REPOSITORY_VARIABLE]}</url></mirror></mirrors></settings>"
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv(REPOSITORY_VARIABLE)
    fetch_jars(tmp_path / "jars", PINS)
    assert fetched(tmp_path / "jars") == ALL


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


# --- MirrorMaker 2


@pytest.mark.integration
@pytest.mark.thorough
def test_mirror_maker_that_refuses_its_configuration_is_not_waited_for(mirror):
    """It would run on and copy nothing; the error shows its own words."""
    with pytest.raises(StartFailed, match=r"emit\.offset-syncs\.enabled set to false"):
        mirror("orders", overrides={"offset-syncs.topic.replication.factor": "1"})


@pytest.mark.integration
@pytest.mark.thorough
def test_wait_for_what_never_comes_says_what_is_missing(source, target, mirror, unique):
    running = mirror(unique("no-such-topic"))
    with pytest.raises(StartFailed, match=r"topic A\.orders.*has 0 of 1 partitions"):
        running.wait_for_topic(target.bootstrap, "A.orders", seconds=1)
