"""The versions that pyproject.toml allows."""

import ast
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from tests.invoking import ROOT

UV = Path(sys.executable).with_name("uv")
IMPORT_ALL = """
import importlib, pkgutil, tsoffset
from pyspark.sql.pandas.utils import require_minimum_pandas_version
names = [name for _, name, _ in pkgutil.walk_packages(tsoffset.__path__, "tsoffset.")]
for name in names:
    if not name.endswith(".__main__"):
        importlib.import_module(name)
require_minimum_pandas_version()
print(len(names))
"""


def uv(*words: str | Path) -> str:
    done = subprocess.run(
        [UV, "--system-certs", "--quiet", "pip", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def test_of_kafka_python_only_public_modules_are_imported() -> None:
    """Clients, errors and protocol classes; its minor releases rename others."""
    found = {
        name
        for path in (ROOT / "tsoffset").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else []
        )
        if name.partition(".")[0] == "kafka"
    }
    others = {name for name in found if not name.startswith("kafka.protocol.")}
    assert others == {"kafka", "kafka.errors"}


@pytest.mark.thorough
@pytest.mark.parametrize("resolution", ["lowest-direct", "highest"])
def test_every_module_can_be_imported(resolution: str, tmp_path: Path) -> None:
    """With the lowest and with the newest version of each dependency that is allowed, since users
    install without our lock file; pyspark warns of none. What this environment lacks comes from the
    package index."""
    pins = uv(
        *("compile", "--python", sys.executable, "--resolution", resolution, "--extra", "msk"),
        *("--no-header", "--no-annotate", "--no-emit-index-url", "pyproject.toml"),
    )
    wanted = [
        pin for pin in pins.split() if installed(pin.partition("==")[0]) != pin.partition("==")[2]
    ]
    if wanted:
        uv("install", "--python", sys.executable, "--target", tmp_path, "--no-deps", *wanted)
    done = subprocess.run(
        [sys.executable, "-W", "error::FutureWarning", "-c", IMPORT_ALL],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200
