"""Kafka's jars, and those of Spark's Kafka connector, fetched once from a Maven repository, each by
its pinned checksum."""

import fcntl
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

import platformdirs
import pooch
import truststore
from rich.console import Console
from rich.progress import track

from tsoffset.errors import JarsUnavailable

KAFKA_VERSION = "4.3.1"
# Older brokers, for tests; fetched on first use.
OLDER_VERSIONS = ("3.9.2", "2.8.2", "2.5.1")
# For queries of Structured Streaming. It is the newest in the repository, and Spark 4.3.0 loads it.
SPARK_KAFKA_VERSION = "4.2.0"
REPOSITORY_VARIABLE = "TSOFFSET_MAVEN_REPOSITORY"
_MAVEN_CENTRAL = "https://repo1.maven.org/maven2"

# In the form of `sha256sum`, by path in the repository; written by `make lock-jars`.
PINNED = {
    version: Path(__file__).with_name(f"jars-{version}.sha256")
    for version in (KAFKA_VERSION, *OLDER_VERSIONS)
}
_RETRIES = 2

pooch.get_logger().setLevel(logging.WARNING)


def cache_folder() -> Path:
    """The folder of the jars: tsoffset's part of the user's cache directory."""
    return Path(platformdirs.user_cache_dir("tsoffset"))


def resolve_jars(cache: Path | None = None, version: str = KAFKA_VERSION) -> Path:
    """The folder with Kafka's jars, which are fetched if needed.

    `version` is one of `PINNED`; `OLDER_VERSIONS` have only what a broker needs. The default of
    `cache` is `cache_folder()`. A user's first call takes a quarter of a minute and shows a
    progress bar on standard error, if that is a terminal; later calls check the files and use no
    network.

    Raises `JarsUnavailable` if the jars are neither cached nor reachable.
    """
    folder = (cache_folder() if cache is None else cache) / f"kafka-{version}"
    fetch_jars(folder, PINNED[version].read_text(), f"Kafka {version}")
    return folder


def resolve_spark_kafka_jars() -> list[Path]:
    """The jars of Spark's Kafka connector, for `spark.jars`, which are fetched if needed.

    pyspark has everything else that the connector needs. Raises `JarsUnavailable` like
    `resolve_jars`.
    """
    name = f"spark-kafka-{SPARK_KAFKA_VERSION}"
    folder = cache_folder() / name
    pins = Path(__file__).with_name(f"{name}.sha256").read_text()
    fetch_jars(folder, pins, f"Spark's Kafka connector {SPARK_KAFKA_VERSION}")
    return sorted(folder.glob("*.jar"))


def fetch_jars(folder: Path, pins: str, product: str = f"Kafka {KAFKA_VERSION}") -> None:
    """Make `folder` hold exactly the jars that `pins` lists (checksum and path, one a line).

    Several processes may need one folder: one fetches, the others wait. The files of an interrupted
    fetch are complete, and the next one continues from there.

    Raises `JarsUnavailable` if a jar is neither cached nor reachable.
    """
    wanted = {
        PurePosixPath(path).name: (digest, path)
        for digest, path in map(str.split, pins.splitlines())
    }
    try:
        # Java loads all jars in the folder, so an old one that was replaced must not stay.
        if not _missing(folder, wanted) and len([*folder.glob("*.jar")]) == len(wanted):
            return
        folder.mkdir(parents=True, exist_ok=True)
        with (folder.parent / "jars.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _fetch(folder, wanted, product)
    except OSError as error:
        raise JarsUnavailable(
            f"keep the jars of {product} in {folder}: {error}; "
            "make the folder writable, or set XDG_CACHE_HOME to one that is"
        ) from error


def _missing(folder: Path, wanted: Mapping[str, tuple[str, str]]) -> list[str]:
    return [
        name
        for name, (digest, _) in wanted.items()
        if not (folder / name).exists() or pooch.file_hash(folder / name) != digest
    ]


def _fetch(folder: Path, wanted: Mapping[str, tuple[str, str]], product: str) -> None:
    repository = _repository().rstrip("/")
    jars = pooch.create(
        folder,
        repository,
        registry={name: digest for name, (digest, _) in wanted.items()},
        urls={name: f"{repository}/{path}" for name, (_, path) in wanted.items()},
        retry_if_failed=_RETRIES,
    )
    console = Console(stderr=True)
    try:
        for name in track(
            _missing(folder, wanted),
            f"Fetching {product}, once",
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ):
            with _system_authorities():
                jars.fetch(name)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the folder's disk, not of the repository
        raise JarsUnavailable(
            f"fetch the jars of {product} into {folder}: {error}; connect this "
            f"machine, or set {REPOSITORY_VARIABLE} to the http address of a Maven repository "
            "that it reaches, or copy the folder there from a machine that has it"
        ) from error
    for jar in folder.glob("*.jar"):
        if jar.name not in wanted:
            jar.unlink()


@contextmanager
def _system_authorities() -> Iterator[None]:
    """Trust the system's authorities, including a company's own, in addition to certifi's: pooch's
    HTTP library has no other way. It is turned off again for other connections, because it adds to
    their own trust stores."""
    truststore.inject_into_ssl()
    try:
        yield
    finally:
        truststore.extract_from_ssl()


def _repository() -> str:
    """The Maven repository that this machine is configured for, else Maven Central."""
    told = os.environ.get(REPOSITORY_VARIABLE)
    if told:
        return told
    try:
        settings = ElementTree.parse(Path.home() / ".m2" / "settings.xml")  # noqa: S314 (the user's)
        mirrors = settings.findall("{*}mirrors/{*}mirror")
    except (OSError, RuntimeError, ElementTree.ParseError):
        mirrors = []
    for mirror in mirrors:
        mirrored = {word.strip() for word in mirror.findtext("{*}mirrorOf", "").split(",")}
        url = mirror.findtext("{*}url", "").strip()
        if mirrored & {"*", "external:*", "central"} and "!central" not in mirrored and url:
            return url
    return _MAVEN_CENTRAL
