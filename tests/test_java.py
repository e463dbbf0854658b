"""Which Java is used, and what is said where none will do."""

import os
from pathlib import Path

import pytest

from tsoffset.errors import JavaMissing, JavaTooOld
from tsoffset.java import find_java


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
