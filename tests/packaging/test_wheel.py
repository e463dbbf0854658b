"""The wheel: the same bytes from the same commit, and all that the program needs."""

import hashlib
import os
import shutil
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.invoking import ROOT, succeeds

pytestmark = pytest.mark.thorough

# Files beside the code (Spark's log4j2, pins of jars), entry points, plug-ins by name.
TESTS = (
    *("cli/test_main.py", "commands/test_plan_sync.py", "terminal/test_streams.py"),
    *("config/test_loading.py", "config/test_source.py", "config/test_providers.py"),
    *("config/test_security.py", "kafka/wire/test_codecs.py", "test_stores.py"),
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


def build(folder: Path) -> Path:
    """Build the wheel of a copy of the tree, at another place and time."""
    tree = folder / "tree"
    tree.mkdir()
    for name in ("tsoffset", "pyproject.toml", "README.md", "LICENSE"):
        of = ROOT / name
        if of.is_dir():
            shutil.copytree(of, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(of, tree / name)
    command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    succeeds(*command, cwd=tree, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    (made,) = folder.glob("*.whl")
    return made


def test_two_builds_are_the_same(wheel, tmp_path):
    digests = {hashlib.sha256(it.read_bytes()).hexdigest() for it in (wheel, build(tmp_path))}
    assert len(digests) == 1


def test_it_holds_the_tree_and_nothing_else(wheel):
    files = (path for path in (ROOT / "tsoffset").rglob("*") if path.is_file())
    listed = {str(path.relative_to(ROOT)) for path in files if path.suffix != ".pyc"}
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == listed


def test_the_program_runs_from_it(wheel, tmp_path):
    """Tests pass beside the unpacked wheel, without the tree."""
    unpacked, elsewhere = tmp_path / "unpacked", tmp_path / "elsewhere"
    with ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tests", elsewhere / "tests", ignore=ignored)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, elsewhere / name)
    there: dict[str, Any] = {
        "cwd": elsewhere,
        "env": {**os.environ, "PYTHONPATH": str(unpacked)},
    }
    succeeds(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *("-m", "not integration and not spark and not thorough and not long"),
        *(f"tests/{name}" for name in TESTS),
        **there,
    )
    found = succeeds(sys.executable, "-c", "import tsoffset; print(tsoffset.__file__)", **there)
    assert Path(found.strip()).is_relative_to(unpacked)
