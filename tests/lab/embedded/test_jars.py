"""The jars of Kafka and MirrorMaker 2: fetched once, each by its checksum."""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import pytest

from tests.http_server import http_server
from tests.invoking import ROOT
from tsoffset.errors import JarsUnavailable
from tsoffset.lab.embedded import KAFKA_VERSION, jars, resolve_jars
from tsoffset.lab.embedded.jars import PINNED, REPOSITORY_VARIABLE, fetch_jars
from tsoffset.lab.embedded.ports import free_port

WAIT_SECONDS = 180
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
