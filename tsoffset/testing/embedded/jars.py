"""Kafka's jars, fetched once through the Ivy that ships inside pyspark."""

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import platformdirs
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tsoffset.errors import JarsUnavailable

KAFKA_VERSION = "4.3.1"
REPOSITORY_VARIABLE = "TSOFFSET_MAVEN_REPOSITORY"

# Kafka calls SLF4J 1.7, and of its jars only kafka-server brings log4j (without the
# binding between the two): without the last line there is no log at all.
COORDINATES = (
    f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
    f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
    f"org.apache.kafka:connect-mirror:{KAFKA_VERSION}",
    f"org.apache.kafka:connect-runtime:{KAFKA_VERSION}",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
)

# Only the progress bar's length: with what these bring along, it is that many modules.
_MODULES = 97
_MANIFEST = "manifest.json"
_MAVEN_NAMESPACE = "{*}"


def cache_folder() -> Path:
    """Return where the jars are kept: tsoffset's part of the user's cache directory."""
    return Path(platformdirs.user_cache_dir("tsoffset"))


def resolve_jars(java: Path, cache: Path | None = None) -> Path:
    """Return the folder that holds Kafka's jars, after fetching them if need be.

    `cache` is `cache_folder()` if absent. The first call of a user takes about a minute
    and shows a progress bar on standard error, if that is a terminal; later ones start
    no Java and touch no network. Several processes may call at once: one fetches, the
    others wait for it. An interrupted fetch leaves nothing that could be taken for whole
    and goes on where it was.

    Raises `JarsUnavailable` if the jars are neither here nor reachable.
    """
    cache = cache_folder() if cache is None else cache
    folder = cache / f"kafka-{KAFKA_VERSION}"
    if _complete(folder):
        return folder
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache / "jars.lock") as lock:
            if not _complete(folder):
                _fetch(java, cache, folder, lock)
    except OSError as error:
        raise JarsUnavailable(
            f"keep Kafka {KAFKA_VERSION} in {cache}: {error}; "
            "make the folder writable, or set XDG_CACHE_HOME to one that is"
        ) from error
    return folder


def _complete(folder: Path) -> bool:
    """Whether every jar that the manifest lists is there in full, for these coordinates."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text())
        return manifest["coordinates"] == list(COORDINATES) and all(
            (folder / name).stat().st_size == size for name, size in manifest["jars"].items()
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Hold the lock at `path`, and give its descriptor."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def _fetch(java: Path, cache: Path, folder: Path, lock: int) -> None:
    """Resolve into a folder beside, write its manifest, and move it into place as one."""
    work = cache / "ivy"
    arriving = cache / f"{folder.name}.arriving"
    shutil.rmtree(arriving, ignore_errors=True)
    arriving.mkdir()
    work.mkdir(exist_ok=True)
    _run_ivy(java, cache, work, arriving, lock)
    jars = {jar.name: jar.stat().st_size for jar in sorted(arriving.glob("*.jar"))}
    if len(jars) < len(COORDINATES):
        raise _unavailable(cache, f"only {len(jars)} jars arrived")
    (arriving / _MANIFEST).write_text(
        json.dumps({"coordinates": list(COORDINATES), "jars": jars}, indent=1)
    )
    if folder.exists():
        shutil.rmtree(folder)
    arriving.rename(folder)
    # Ivy's own copies are of use only while a fetch may have to go on.
    shutil.rmtree(work, ignore_errors=True)


def _run_ivy(java: Path, cache: Path, work: Path, arriving: Path, lock: int) -> None:
    settings = work / "settings.xml"
    settings.write_text(_settings(work))
    wanted = work / "wanted.xml"
    wanted.write_text(_wanted())
    command = [
        str(java),
        "-cp",
        str(_ivy_jar()),
        "org.apache.ivy.Main",
        *("-settings", str(settings)),
        *("-ivy", str(wanted)),
        *("-retrieve", f"{arriving}/[artifact]-[revision](-[classifier]).[ext]"),
        *("-types", "jar", "bundle"),
        *("-confs", "default"),
    ]
    log_path = cache / "fetch.log"
    with log_path.open("w") as log, _progress() as step:
        ivy = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # If this process is killed, Ivy goes on, and the lock stays with it until then.
            pass_fds=(lock,),
        )
        try:
            assert ivy.stdout is not None
            for line in ivy.stdout:
                log.write(line)
                step(line)
            status = ivy.wait()
        finally:
            ivy.kill()
            ivy.wait()
    if status != 0:
        raise _unavailable(cache, _first_obstacle(log_path))


@contextmanager
def _progress() -> Iterator["_Step"]:
    """Show how far the fetch is, on standard error, if a person is looking."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as bar:
        yield _Step(bar)


class _Step:
    """Turns Ivy's lines into progress: each module is found first, then its jar comes."""

    # To find a module takes several small files one after the other, to fetch it one.
    _FOUND = 4
    _FETCHED = 1

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task(
            f"Fetching Kafka {KAFKA_VERSION}, once", total=(self._FOUND + self._FETCHED) * _MODULES
        )

    def __call__(self, line: str) -> None:
        said = line.strip()
        if said.startswith("found "):
            self._bar.advance(self._task, self._FOUND)
        elif said.startswith("[SUCCESSFUL ]") and ".jar" in said:
            self._bar.advance(self._task, self._FETCHED)


def _settings(work: Path) -> str:
    """Return Ivy's settings: one Maven repository, its own default unless told otherwise."""
    repository = _repository()
    root = "" if repository is None else f" root={quoteattr(repository)}"
    return f"""\
<ivysettings>
  <settings defaultResolver="repository"/>
  <caches defaultCacheDir={quoteattr(str(work / "cache"))}/>
  <timeout-constraints>
    <timeout-constraint name="patience" connectionTimeout="10000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="repository" m2compatible="true" timeoutConstraint="patience"{root}/>
  </resolvers>
</ivysettings>
"""


def _wanted() -> str:
    dependencies = "\n".join(
        '    <dependency org="{}" name="{}" rev="{}" conf="default->default"/>'.format(
            *coordinate.split(":")
        )
        for coordinate in COORDINATES
    )
    return f"""\
<ivy-module version="2.0">
  <info organisation="tsoffset" module="embedded-kafka"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def _repository() -> str | None:
    """Return the Maven repository that this machine is set up for; None for the default."""
    told = os.environ.get(REPOSITORY_VARIABLE)
    if told:
        return told
    try:
        settings = ElementTree.parse(Path.home() / ".m2" / "settings.xml")
    except (OSError, RuntimeError, ElementTree.ParseError):
        return None
    for mirror in settings.iterfind(f"{_MAVEN_NAMESPACE}mirrors/{_MAVEN_NAMESPACE}mirror"):
        mirrored = mirror.findtext(f"{_MAVEN_NAMESPACE}mirrorOf", "").split(",")
        wanted = {"*", "external:*", "central"}.intersection(word.strip() for word in mirrored)
        url = mirror.findtext(f"{_MAVEN_NAMESPACE}url", "").strip()
        if wanted and "!central" not in mirrored and url:
            return url
    return None


def _ivy_jar() -> Path:
    pyspark = find_spec("pyspark")
    folders = [] if pyspark is None else list(pyspark.submodule_search_locations or ())
    found = sorted(jar for place in folders for jar in Path(place).glob("jars/ivy-*.jar"))
    if not found:
        raise JarsUnavailable(
            "fetch Kafka: pyspark, whose Ivy does it, holds no jars/ivy-*.jar; "
            "install pyspark from its wheel, or set up the cache folder from another machine"
        )
    return found[-1]


def _unavailable(cache: Path, cause: str) -> JarsUnavailable:
    return JarsUnavailable(
        f"fetch {', '.join(COORDINATES)} and what they need into {cache}: {cause}; "
        f"connect this machine, or set {REPOSITORY_VARIABLE} to the address of a Maven "
        f"repository that it reaches, or copy the folder kafka-{KAFKA_VERSION} there from a "
        f"machine that has it (the whole conversation is in {cache / 'fetch.log'})"
    )


def _first_obstacle(log: Path) -> str:
    """Pick from Ivy's many words those that a person can act on."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    for mark in ("Server access error", "[FAILED", "SERVER ERROR", "java.", ":: org"):
        for line in lines:
            if mark in line:
                return line
    return "Ivy gave up"
