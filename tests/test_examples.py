"""The scripts in examples/: one packs an environment for Spark's executors, one asks history."""

import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.invoking import ROOT
from tests.past_cycles import Past, row
from tsoffset.model import OutcomeKind
from tsoffset.spark.session import spark_session

SCRIPT = ROOT / "examples" / "pack-environment.sh"


def test_the_script_is_sound() -> None:
    """bash can read it, it may be run, and it stops at the first thing that goes wrong."""
    subprocess.run(["bash", "-n", str(SCRIPT)], check=True)
    assert SCRIPT.stat().st_mode & 0o111
    assert "set -euo pipefail" in SCRIPT.read_text(encoding="utf-8")


def test_an_environment_that_lacks_something_is_refused(tmp_path: Path) -> None:
    """A Python without tsoffset's packages: a sentence with what to do, and no archive."""
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    archive = tmp_path / "environment.tar.gz"
    made = subprocess.run(
        [str(SCRIPT), str(archive)],
        env={"PATH": "/usr/bin:/bin", "PYTHON": str(bare / "bin" / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 1
    assert "run make setup, or set PYTHON" in made.stderr
    assert not archive.exists()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """This environment, packed."""
    path = tmp_path_factory.mktemp("packed") / "environment.tar.gz"
    subprocess.run(
        [str(SCRIPT), str(path)],
        env={"PATH": "/usr/bin:/bin", "PYTHON": sys.executable},
        check=True,
    )
    yield path
    path.unlink()


@pytest.mark.long
def test_the_archive_holds_what_is_needed_and_no_more(archive: Path) -> None:
    """The package and its dependencies; not Spark's jars, the tools of development, or a link
    to this checkout."""
    with tarfile.open(archive) as packed:
        names = packed.getnames()
    parts = {name.split("site-packages/", 1)[1].split("/")[0] for name in names if "ages/" in name}
    assert {"tsoffset", "kafka", "pyarrow", "pandas", "structlog", "tenacity"} <= parts
    assert not {"mypy", "_pytest", "pip"} & parts
    assert not [name for name in names if name.endswith(".jar") and "/pyspark/" in name]
    assert not [name for name in names if "tsoffset" in name and name.endswith(".pth")]
    assert any(name.endswith("/tsoffset/spark/tasks.py") for name in names)


@pytest.mark.long
@pytest.mark.spark
def test_executors_run_in_the_packed_environment(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named by spark.archives, it is what executors of their own run in, in their own folders:
    its Python, and the packages in it."""
    home = tmp_path / "spark"
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (home / part.name).symlink_to(part)
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    wanted = {
        "spark.master": "local-cluster[1,1,1024]",
        "spark.archives": f"{archive}#environment",
        "spark.pyspark.python": "./environment/bin/python",
    }
    with spark_session(wanted) as session:

        def where(_: int) -> tuple[str, str, str]:
            import sys

            import kafka
            import structlog

            return sys.prefix, str(kafka.__file__), str(structlog.__file__)

        (found,) = session.sparkContext.parallelize([0], 1).map(where).collect()
    prefix, *packages = found
    assert prefix != sys.prefix
    assert prefix.startswith(str(home / "work"))
    assert all(package.startswith(f"{prefix}/lib/") for package in packages)


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("how", ["python", "spark-submit"])
def test_questions_to_history_are_answered(tmp_path: Path, how: str) -> None:
    """By the script as it stands, with Python and with Spark's own command."""
    past = Past(tmp_path, started=time.time() - 3_600)
    past.keep(row("billing"))
    past.keep(row("billing", outcome=OutcomeKind.WOULD_COMMIT, reread_bound=4711))
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [sys.executable] if how == "python" else [str(submit), "--master", "local[2]"]
    made = subprocess.run(
        [*command, str(ROOT / "examples" / "history_questions.py"), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert "4711" in made.stdout
    assert "billing" in made.stdout
