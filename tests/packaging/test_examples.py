"""The scripts in examples/, run without changes."""

import os
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

import tsoffset
from tests.configured import properties_file
from tests.invoking import ROOT, run_program, succeeds
from tests.memory_flows import Estate
from tests.past_cycles import Past, row
from tests.producing import numbered
from tests.spark_standalone import standalone
from tests.waiting import wait_until
from tsoffset.config.loading import Configuration
from tsoffset.lab.embedded.ports import free_port
from tsoffset.model import OutcomeKind, Precision
from tsoffset.spark.session import spark_session

EXAMPLES = ROOT / "examples"
SCRIPT = EXAMPLES / "pack-environment.sh"
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
CONTRIBUTING = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.sh")), ids=lambda it: it.name)
def test_a_script_is_sound(script):
    """bash can read it, it may be run, and it stops at the first thing that goes wrong."""
    subprocess.run(["bash", "-n", str(script)], check=True)
    assert script.stat().st_mode & 0o111
    assert "set -euo pipefail" in script.read_text(encoding="utf-8")


def test_an_environment_that_lacks_something_is_refused(tmp_path):
    """A Python without tsoffset's packages: a sentence with what to do, and no archive."""
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    archive = tmp_path / "environment.tar.gz"
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": str(bare / "bin" / "python")}
    made = run_program(SCRIPT, archive, env=environment)
    assert made.returncode == 1
    assert "run make setup, or set PYTHON" in made.stderr
    assert not archive.exists()


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Iterator[Path]:
    """This environment, packed."""
    path = tmp_path_factory.mktemp("packed") / "environment.tar.gz"
    succeeds(SCRIPT, path, env={"PATH": "/usr/bin:/bin", "PYTHON": sys.executable})
    yield path
    path.unlink()


@pytest.mark.long
def test_the_archive_holds_what_is_needed_and_no_more(archive):
    """The package and its dependencies; not Spark's jars, the tools of development, or a link
    to this checkout."""
    with tarfile.open(archive) as packed:
        names = packed.getnames()
    parts = {name.split("site-packages/", 1)[1].split("/")[0] for name in names if "ages/" in name}
    assert {"tsoffset", "kafka", "pyarrow", "structlog", "tenacity"} <= parts
    assert not {"mypy", "_pytest", "pip"} & parts
    assert not [name for name in names if name.endswith(".jar") and "/pyspark/" in name]
    assert not [name for name in names if "tsoffset" in name and name.endswith(".pth")]
    assert any(name.endswith("/tsoffset/spark/tasks.py") for name in names)


@pytest.mark.long
@pytest.mark.spark
def test_executors_run_in_the_packed_environment(archive, tmp_path, monkeypatch):
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

        def where(_):
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
def test_questions_to_history_are_answered(tmp_path, how):
    """By the unchanged script, with Python and with Spark's own command."""
    past = Past(tmp_path, started=time.time() - 3_600)
    past.keep(row("billing"))
    past.keep(row("billing", outcome=OutcomeKind.WOULD_COMMIT, reread_bound=4711))
    command = (sys.executable,) if how == "python" else (SUBMIT, "--master", "local[2]")
    script = EXAMPLES / "history_questions.py"
    shown = ran(*command, script, tmp_path, PYSPARK_PYTHON=sys.executable)
    assert "4711" in shown
    assert "billing" in shown


# --- on real clusters -----------------------------------------------------------------------


@pytest.fixture
def mirrored(
    source_broker, target_broker, source, target, mirror, unique, tmp_path
) -> tuple[Path, str, str]:
    """A configuration, a topic that MirrorMaker 2 mirrors, and a group that has read half of it,
    of which there is a checkpoint."""
    topic, group = unique("orders"), unique("billing")
    source.create_topic(topic)
    source.produce(topic, numbered(200))
    source.commit_offsets(group, {(topic, 0): 100})
    overrides = {
        "emit.checkpoints.enabled": "true",
        "emit.checkpoints.interval.seconds": "1",
        "emit.offset-syncs.enabled": "true",
        "A->B.groups": f"{group}.*",
    }
    running = mirror(topic, overrides=overrides)
    running.wait_until_mirrored(
        source_broker.bootstrap, target_broker.bootstrap, {topic: f"A.{topic}"}
    )
    lines = (
        f"topics = {topic}",
        f"groups = {group}.*",
        "spark.master = local[1]",
        f"listeners = http://127.0.0.1:{free_port()}",
    )
    file = properties_file(tmp_path, source_broker.bootstrap, target_broker.bootstrap, *lines)
    wait_until(
        lambda: any(key.group == group for key in tsoffset.read_checkpoints(file)),
        "there is a checkpoint",
    )
    return file, topic, group


def ran(*command: str | Path, **environment: str) -> str:
    """What the command prints, in an environment that finds this checkout."""
    return succeeds(*command, env={**os.environ, "PYTHONPATH": str(ROOT), **environment})


@pytest.mark.thorough
@pytest.mark.integration
@pytest.mark.spark
def test_scripts_on_clusters_that_are_mirrored(mirrored, target, tmp_path):
    """Beside checkpoints, and by a migration's first steps, nothing is written; then the daemon
    commits, and so does a cycle on a Spark cluster, submitted by Spark's own command."""
    file, topic, group = mirrored
    shown = ran(sys.executable, EXAMPLES / "beside_checkpoints.py", file, group)
    (line,) = [line for line in shown.splitlines() if line.startswith(f"A.{topic}-0")]
    assert line.split()[2] == "100"
    entry = Path(sys.executable).with_name("tsoffset")
    ours = tmp_path / "tsoffset.properties"
    shown = ran(EXAMPLES / "migrate.sh", file, ours, TSOFFSET=str(entry))
    assert f"go on in {ours}.steps with: 4. " in shown
    assert target.committed_offsets(group) == {}

    (listener,) = Configuration.read(file).resolve().server.listeners
    shown = ran(EXAMPLES / "daemon.sh", file, TSOFFSET=str(entry), TSOFFSET_URL=listener)
    assert 'tsoffset_flow_pairs{flow="A->B"} 1.0' in shown
    assert target.committed_offsets(group) == {(f"A.{topic}", 0): (100, "")}

    target.commit_offsets(group, {(f"A.{topic}", 0): 40})
    with standalone(tmp_path, 1) as cluster:
        settings = (f"--conf={name}={value}" for name, value in cluster.settings.items())
        shown = ran(SUBMIT, *settings, EXAMPLES / "sync_on_spark.py", file)
    assert "{'committed': 1}" in shown
    assert target.committed_offsets(group) == {(f"A.{topic}", 0): (100, "")}


@pytest.mark.parametrize(
    ("checkpoints", "step"),
    [("true", "4. Switch the checkpoint connector's sync"), ("false", "3. Switch tsoffset's sync")],
)
def test_a_migration_goes_on_with_the_step_that_changes_something(checkpoints, step, tmp_path):
    """Without checkpoints there is nothing to compare, so its number is another one."""
    lines = (f"A->B.emit.checkpoints.enabled = {checkpoints}", "sync.group.offsets.enabled = true")
    file, ours = properties_file(tmp_path, "a:1", "b:1", *lines), tmp_path / "tsoffset.properties"
    program = tmp_path / "tsoffset"
    migrate = f'exec {sys.executable} -m tsoffset "$@"'
    program.write_text(f"#!/bin/sh\ncase $1 in migrate) {migrate};; esac\n")
    program.chmod(0o755)
    shown = ran(EXAMPLES / "migrate.sh", file, ours, TSOFFSET=str(program))
    assert f"go on in {ours}.steps with: {step}" in shown


def test_names_and_choices_of_ones_own(tmp_path, monkeypatch):
    """The policy finds the copy, the filter leaves out the other teams' groups."""
    monkeypatch.syspath_prepend(EXAMPLES)
    estate = Estate()
    estate.write("orders", 20)
    copy = estate.mirror("orders", "orders-of-A")
    for group in ("billing.invoices", "search.index", "billing-of-old"):
        estate.commit(group, "orders", 7)
    lines = (
        "replication.policy.class = own_names:SuffixPolicy",
        "replication.policy.suffix = -of-",
        "group.filter.class = own_names:TeamFilter",
        "group.filter.teams = billing, shipping",
    )
    file = properties_file(tmp_path, "a:1", "b:1", *lines)
    (row,) = tsoffset.plan(file, connect=estate.connect)
    found = row.group, row.target_topic, row.target_offset, row.precision
    assert found == ("billing.invoices", copy, 7, Precision.EXACT)
    suffix = Configuration.read(file).resolve().flows[0].policy
    assert (suffix.topic_source(copy), suffix.upstream_topic(copy)) == ("A", "orders")
    assert suffix.topic_source("orders") is suffix.upstream_topic("orders") is None


def test_the_tests_to_copy_pass():
    """docs/contributing.md has them with their imports."""
    (block,) = re.findall(r"```python\n(.*?)```", CONTRIBUTING, re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)  # noqa: S102
    tests = [test for name, test in names.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()


def test_what_is_named_to_be_copied_exists():
    """Files, by their path or their name, and tests."""
    section = CONTRIBUTING.split("\n## ")[3]
    named = set(re.findall(r"`([\w./-]+)`", section))
    paths = {name for name in named if name.endswith((".py", "/"))}
    assert {"tests/config/", "test_faults.py"} <= paths
    lost = {path for path in paths if not (ROOT / path).exists()}
    assert not [path for path in lost if not list((ROOT / "tests").rglob(path))]
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    tests = {name for name in named if name.startswith("test_")} - paths
    assert not [test for test in tests if f"def {test}(" not in sources]
