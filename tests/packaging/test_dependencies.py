"""The versions that pyproject.toml allows."""

import os
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from tests.configured import properties_file
from tests.invoking import ROOT, run_program, succeeds

UV = Path(sys.executable).with_name("uv")
IMPORT_ALL = """
import importlib, pkgutil, tsoffset
names = [name for _, name, _ in pkgutil.walk_packages(tsoffset.__path__, "tsoffset.")]
for name in names:
    if not name.endswith(".__main__"):
        importlib.import_module(name)
print(len(names))
"""
BLOCK = """
import importlib, pkgutil, runpy, sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
blocked = sys.argv.pop(1).split(",")
sys.meta_path.insert(0, Block())
"""
RUN = BLOCK + 'runpy.run_module("tsoffset", run_name="__main__", alter_sys=True)'
IMPORT_PLAIN = (
    BLOCK
    + """
import tsoffset
for _, name, _ in pkgutil.walk_packages(tsoffset.__path__, "tsoffset.", onerror=lambda _: None):
    if name.endswith("__main__") or name.startswith(("tsoffset.lab.demo", "tsoffset.lab.embedded")):
        continue
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        print(name)
"""
)


def uv(*words: str | Path) -> str:
    return succeeds(UV, "--system-certs", "--quiet", "pip", *words)


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def test_of_kafka_python_only_public_modules_are_imported():
    """Clients, errors and protocol classes; its minor releases rename others."""
    found = {
        name
        for path in (ROOT / "tsoffset").rglob("*.py")
        for name in re.findall(
            r"^ *(?:from|import) +(kafka(?:\.[\w.]+)?) ", path.read_text(), re.MULTILINE
        )
    }
    others = {name for name in found if not name.startswith("kafka.protocol.")}
    assert others == {"kafka", "kafka.errors"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "extra", "words"),
    [
        ("matplotlib", "report", ("compare", "-c", "FILE", "--html", "report.html")),
        ("pooch", "lab", ("demo",)),
        ("platformdirs", "lab", ("demo",)),
    ],
)
def test_a_command_names_the_extra_that_it_needs(package, extra, words, tmp_path):
    """One sentence and exit status 2, before a cluster is asked."""
    file = properties_file(tmp_path, "127.0.0.1:1", "127.0.0.1:1")
    given = (file if word == "FILE" else word for word in words)
    done = run_program(sys.executable, "-c", RUN, package, *given)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        f"This command needs the Python package {package}, which is not installed here: "
        f"pip install 'tsoffset[{extra}]'"
    )
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_everything_else_is_imported_without_extras_and_without_pandas():
    """What `run` and the other commands use. Only `compare --html` and `demo` need an extra."""
    packages = "pandas,matplotlib,pooch,platformdirs"
    printed = succeeds(sys.executable, "-c", IMPORT_PLAIN, packages)
    assert printed.split() == ["tsoffset.commands.compare.html_report"]


@pytest.mark.thorough
@pytest.mark.parametrize("resolution", ["lowest-direct", "highest"])
def test_every_module_can_be_imported(resolution, tmp_path):
    """With the lowest and with the newest version of each dependency that is allowed, since users
    install without our lock file; pyspark warns of none. What this environment lacks comes from the
    package index."""
    pins = uv(
        *("compile", "--python", sys.executable, "--resolution", resolution),
        *("--extra", "msk", "--extra", "report", "--extra", "lab"),
        *("--no-header", "--no-annotate", "--no-emit-index-url", "pyproject.toml"),
    )
    wanted = [
        pin for pin in pins.split() if installed(pin.partition("==")[0]) != pin.partition("==")[2]
    ]
    if wanted:
        uv("install", "--python", sys.executable, "--target", tmp_path, "--no-deps", *wanted)
    printed = succeeds(
        *(sys.executable, "-W", "error::FutureWarning", "-c", IMPORT_ALL),
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
    )
    assert int(printed) > 200
