"""The Makefile finds Java as the program does, and says so where it will not do; CI runs it as on a
stranger's machine."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.invoking import ROOT, run_program
from tests.test_java import fake_java


def java_that_says(home: Path, version: str) -> Path:
    """A Java home whose java names that version."""
    fake_java(home / "bin" / "java", version)
    return home


def make_java(home: Path | None, on_path: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment |= {"PATH": f"{on_path / 'bin'}:{os.environ['PATH']}"}
    environment |= {} if home is None else {"JAVA_HOME": str(home)}
    return run_program("make", "--no-print-directory", "java", env=environment)


@pytest.mark.parametrize(
    ("version", "told"),
    [
        *(("17", "Java 17"), ("17.0.9", "Java 17"), ("21-ea", "Java 21"), ("25.0.1", "Java 25")),
        *((old, f"is {old}; set JAVA_HOME") for old in ("11", "16")),
        ("1.8.0_392", "is 8; set JAVA_HOME"),
    ],
)
def test_a_java_of_17_or_later_will_do(tmp_path, version, told):
    """However its version goes on; an older one is named, with what to do."""
    made = make_java(None, java_that_says(tmp_path, version))
    assert (made.returncode == 0) is told.startswith("Java")
    assert told in made.stdout + made.stderr


def test_java_home_comes_before_the_path(tmp_path):
    """A newer Java in JAVA_HOME will do though the PATH's is too old, and the other way round
    it will not; a JAVA_HOME that leads to none counts as absent."""
    old, new = (java_that_says(tmp_path / name, name) for name in ("11", "21"))
    assert make_java(new, old).returncode == 0
    assert make_java(old, new).returncode != 0
    assert make_java(tmp_path / "none", new).returncode == 0


def test_ci_runs_as_on_a_strangers_machine(tmp_path):
    """Each target gets an empty home and no variable of this machine, but those by which it reaches
    packages: PYTHONUNBUFFERED and SSL_CERT_FILE have hidden mistakes."""
    kept, found = tmp_path / "home of this machine", tmp_path / "found"
    for folder in (kept, found, tmp_path / "bin"):
        folder.mkdir()
    for name, does in {
        "make": f'env >"{found}/$1"; echo "home: $(ls -A "$HOME")" >>"{found}/$1"',
        "dpkg": "true",
    }.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/bash\n{does}\n")
        program.chmod(0o755)
    subprocess.run(
        ["bash", ROOT / ".ci" / "run"],
        env={
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
            "HOME": str(kept),
            **dict.fromkeys(("PYTHONUNBUFFERED", "SSL_CERT_FILE", "JAVA_HOME", "PIP_CERT"), "1"),
        },
        check=True,
    )
    assert {path.name for path in found.iterdir()} == {"lint", "docs", "demo", "test", "test-all"}
    for path in found.iterdir():
        lines = path.read_text().splitlines()
        names = {line.partition("=")[0] for line in lines if "=" in line}
        # The shell that stands in for make adds the last three.
        assert names - {"PWD", "SHLVL", "_"} == {
            *("PATH", "HOME", "LANG", "PIP_CERT", "CI", "TSOFFSET_SCREENSHOTS")
        }
        assert lines[-1] == "home: "
        assert f"HOME={kept}" not in lines
