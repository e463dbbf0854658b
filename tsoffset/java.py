"""The Java of this machine."""

import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from tsoffset.errors import JavaMissing, JavaTooOld

MINIMUM_JAVA = 17

_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


def find_java() -> Path:
    """The `java` command: that of JAVA_HOME, else the PATH's.

    Spark looks in the same order, so one setting serves both. Raises `JavaMissing` if none is
    found, and `JavaTooOld` if it is older than 17. A newer one further down the PATH is not used,
    because Spark would not use it either.
    """
    java = _candidate()
    if java is None:
        raise JavaMissing(
            "find Java: neither JAVA_HOME nor the PATH leads to a java command; "
            f"install a Java runtime, version {MINIMUM_JAVA} or newer, or set JAVA_HOME"
        )
    version = _version(java, java.stat().st_mtime_ns)
    if version < MINIMUM_JAVA:
        raise JavaTooOld(
            f"use {java}: it is Java {version}, and Kafka needs {MINIMUM_JAVA} or newer; "
            "install a newer Java runtime, or point JAVA_HOME to one"
        )
    return java


def java_version() -> int:
    """The major version of that `java`. Raises like `find_java`."""
    java = find_java()
    return _version(java, java.stat().st_mtime_ns)


def keytool() -> Path:
    """Java's tool for key stores, in the folder of `java`. Raises like `find_java`."""
    return find_java().resolve().with_name("keytool")


def _candidate() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if os.access(java, os.X_OK):
            return java
    found = shutil.which("java")
    return None if found is None else Path(found)


@lru_cache
def _version(java: Path, _modified_ns: int) -> int:
    """The major version, asked once per file; Java 8 and older call themselves 1.8."""
    try:
        answer = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaMissing(
            f"run {java} -version: {error}; install a Java runtime, "
            f"version {MINIMUM_JAVA} or newer, or set JAVA_HOME"
        ) from error
    said = answer.stderr + answer.stdout
    match = _VERSION.search(said)
    if match is None:
        raise JavaMissing(
            f"run {java} -version: it names no version but says {said.strip()[:200]!r}; "
            f"install a Java runtime, version {MINIMUM_JAVA} or newer, or set JAVA_HOME"
        )
    major, minor = match.groups()
    return int(minor or 0) if major == "1" else int(major)
