"""The commands' words: usage, help, errors and exit statuses, without Spark or brokers."""

import json
import re
import subprocess
import sys

import pytest

from tests.configured import properties_file
from tests.invoking import ROOT, invoke, succeeds
from tests.memory_flows import mirrored_estate
from tsoffset.cli.main import cli
from tsoffset.version import __version__

CYCLE_COMMANDS = ("plan", "sync", "run")
FLOW_COMMANDS = ("check", *CYCLE_COMMANDS, "export", "failover", "compare")
EXPLAIN = ("explain", "--group", "billing")


# --- help and versions --------------------------------------------------------------------


def test_help_names_the_commands_and_the_exit_statuses():
    """Who runs `tsoffset --help` finds every command, examples and what a status means."""
    result = invoke("--help")
    assert result.exit_code == 0
    for word in ("demo", *FLOW_COMMANDS, "topics", "history", "Examples:", "Exit status:"):
        assert word in result.output


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_help_of_a_command_has_examples_options_and_exit_statuses(command):
    """Commands with the same options mean the same by them; those that end by themselves name each
    status, also that of Ctrl-C."""
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert "Examples:" in result.output
    assert f"  tsoffset {command}" in result.output
    options = ["--debug", "--log-format"]
    if command in FLOW_COMMANDS:
        options += ["-c, --config", "--flow A->B", "--groups REGEX", "--topics REGEX"]
    if command not in ("demo", "run", "export", "snapshot", "migrate"):
        options += ["--wide", "--format"]
    assert [option for option in options if option not in result.output] == []
    lines = result.output.partition("Exit status:")[2].split("\n")
    named = [line.split()[0] for line in lines if line.strip() and line.split()[0].isdigit()]
    expected = {"demo": [], "run": ["0", "1", "2"], "lists": ["0", "1", "2"]}
    without_cluster = ["0", "1", "2", "130"]
    expected |= {"history": without_cluster, "migrate": without_cluster}
    assert named == expected.get(command, ["0", "1", "2", "3", "130"])


def test_wide_lines_are_whole_on_a_narrow_terminal(away):
    """Standard output is a terminal of 60 columns; `--wide` prints as into a file."""
    terminal = {"FORCE_COLOR": "1", "COLUMNS": "60"}
    words = ("check", "-c", str(away))
    narrow, wide = (
        re.sub(r"\x1b\[[\d;]*m", "", invoke(*words, *option, env=terminal).stdout).splitlines()
        for option in ([], ["--wide"])
    )
    assert max(map(len, narrow)) <= 60
    assert any("A: connection  connect to cluster A" in line and len(line) > 60 for line in wide)


@pytest.mark.parametrize("command", ["plan", "sync"])
def test_state_is_a_folder(command, away):
    """A file given as `--state` is bad usage, before anything is asked or started; a URI is looked
    at when it is used."""
    result = invoke(command, "-c", str(away), "--state", str(away))
    assert result.exit_code == 2
    assert "--state" in result.output


def test_the_version_names_what_a_bug_report_needs():
    """tsoffset's own version, and those of Python, Spark and the client."""
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.output.startswith(f"tsoffset {__version__} (Python 3.")
    assert "pyspark 4" in result.output
    assert "kafka-python 3" in result.output


WITHOUT_SPARK = """
import sys
from click.testing import CliRunner
from tsoffset.cli.main import cli
assert CliRunner().invoke(cli, ["--help"]).exit_code == 0
assert not {"kafka", "numpy", "polars", "pyarrow", "pyspark"} & sys.modules.keys()
result = CliRunner().invoke(cli, sys.argv[1:])
assert result.exit_code == 3, result.output
assert "kafka" in sys.modules and "pyspark" not in sys.modules
sys.stdout.write(result.stdout)
"""


@pytest.mark.slow
def test_commands_without_cycles_end_with_3_and_load_no_spark(away):
    """Where no cluster answers, what they print says why; Spark is not even imported."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WITHOUT_SPARK, *words, "-c", str(away), "--format", "json"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for words in (["check"], ["explain", "--group", "billing"], ["compare"], ["topics"])
    ]
    for process in running:
        printed, _ = process.communicate()
        assert process.returncode == 0, process.args
        assert "A.bootstrap.servers" in printed


def test_no_module_of_the_working_directory_is_loaded(tmp_path):
    """A foreign file beside a configuration is not part of the program."""
    for module in ("typing", "pathlib", "click"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('foreign')\n")
    shown = succeeds(sys.executable, "-m", "tsoffset", "--version", cwd=tmp_path)
    assert shown.startswith("tsoffset ")


# --- bad usage and configuration ----------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "sync",
        "sync -c no-such-file.properties",
        "sync -c .",
        "sync --format xml",
        "sync --log-format xml",
        "sync --no-such-option",
        "sync surplus",
        f"explain -c {__file__}",
        f"explain -c {__file__} --group",
        f"explain -c {__file__} --group billing --format csv",
        f"explain -c {__file__} --group billing --partition -1",
        f"explain -c {__file__} --group billing --partition first",
        f"explain -c {__file__} --group billing surplus",
    ],
)
def test_bad_words_are_bad_usage(words):
    """Exit 2, with the option named, before anything is done."""
    result = invoke(*words.split())
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("words", [("plan",), ("run",), EXPLAIN])
def test_an_unknown_flow_is_bad_usage_and_names_the_known_ones(words, away):
    """Exit 2 and one sentence; Spark is not started for it."""
    result = invoke(*words, "-c", str(away), "--flow", "B->C")
    assert result.exit_code == 2
    assert result.stderr == "error: there is no flow B->C; the configuration has A->B\n"


def test_a_flow_that_the_shell_cut_is_told_to_be_quoted(away):
    """`--flow A->B` without quotes is `--flow A-`, with the output in a file named B."""
    result = invoke("topics", "-c", str(away), "--flow", "A-")
    assert result.exit_code == 2
    assert "quote the flow as 'A->B'" in result.stderr


@pytest.mark.parametrize("option", ["--groups", "--topics"])
@pytest.mark.parametrize("command", ["plan", "run", "check"])
def test_a_bad_expression_is_bad_usage(command, option, away):
    """The option and the expression are named."""
    result = invoke(command, "-c", str(away), option, "(")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {option} (: ")


@pytest.mark.parametrize(
    "words",
    ["failover --timeout", "translate in.json --every", "compare --every", "history --since"],
)
@pytest.mark.parametrize("value", ["nan", "inf", "0", "0s", "-1", "1e3", "9" * 5000, "99999999w"])
def test_a_duration_that_ends_never_or_at_once_is_bad_usage(words, value, away):
    """In every option that takes one; a number alone is seconds where the help says so."""
    command, *more = words.split()
    result = invoke(command, "-c", str(away), *more, value)
    assert result.exit_code == 2
    assert "is not a duration. Write for example" in " ".join(result.stderr.split())


def test_all_that_is_wrong_in_a_file_is_told_at_once(tmp_path):
    """Exit 2, one sentence for each problem with file and line, and no traceback."""
    file = properties_file(tmp_path, "a", "b:1", "tasks.max = none")
    result = invoke("check", "-c", str(file))
    lines = result.stderr.splitlines()
    assert result.exit_code == 2
    assert [line.startswith("error: ") for line in lines] == [True, True]
    assert f"{file}:2" in result.stderr
    assert f"{file}:5" in result.stderr


@pytest.mark.parametrize("command", FLOW_COMMANDS)
@pytest.mark.parametrize(
    ("more", "error"),
    [("tasks.max = none\n", "tasks.max = none: must be"), ("", "no flow is enabled")],
)
def test_warnings_come_with_the_error_beside_them(command, more, error, tmp_path):
    """A slip in a key's name is told although something else stops the command; it may be why."""
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = A, B\n"
        "A.bootstrap.servers = a:1\n"
        "B.bootstrap.servers = b:1\n"
        "A->B.enable = true\n" + more
    )
    slip = (
        f"{file}:4: A->B.enable: unknown key. Did you mean `A->B.enabled`? It has no effect: "
        "`enabled` is now `false`, its default"
    )
    result = invoke(command, "-c", str(file))
    assert result.exit_code == 2
    first, second = result.stderr.splitlines()
    assert first == f"warning: {slip}"
    assert second.startswith("error: ")
    assert error in second
    result = invoke(command, "-c", str(file), "--log-format", "json")
    events = [json.loads(line) for line in result.stderr.splitlines()]
    assert [(one["event"], one["level"]) for one in events] == [
        ("configuration_warning", "warning"),
        ("command_failed", "error"),
    ]
    assert events[0]["message"] == slip
    assert error in events[1]["message"]


@pytest.mark.parametrize(
    "words",
    [
        *((command,) for command in (*FLOW_COMMANDS, "snapshot", "topics", "lists")),
        *(EXPLAIN, ("history", "stuck"), ("restore", __file__)),
    ],
)
def test_strict_makes_an_unknown_key_an_error(words, tmp_path):
    """Exit 2 with file, line and the nearest key, before a cluster is asked or Spark started; by
    the option of each command that reads a configuration."""
    file = properties_file(tmp_path, "a:1", "b:1", "A->B.topcis = orders")
    result = invoke(*words, "-c", str(file), "--strict")
    assert result.exit_code == 2
    assert result.stderr == (
        f"error: {file}:5: A->B.topcis: unknown key. Did you mean `A->B.topics`? It has no effect: "
        "`topics` is now `.*`, its default\n"
    )


def test_the_file_may_come_from_the_environment(away):
    """`TSOFFSET_CONFIG` takes the place of `-c`, as in a container."""
    result = invoke("check", "--flow", "x->y", env={"TSOFFSET_CONFIG": str(away)})
    assert "no flow x->y" in result.stderr


def test_a_traceback_comes_with_debug_only(away):
    """Without `--debug` a failure is one sentence."""
    plain = invoke("check", "-c", str(away), "--flow", "x->y")
    debug = invoke("check", "-c", str(away), "--flow", "x->y", "--debug")
    assert "Traceback" not in plain.stderr
    assert "UsageError" in debug.stderr
    assert debug.exit_code == plain.exit_code == 2


@pytest.mark.parametrize("command", ["sync", "run"])
def test_a_machine_without_java_is_told_so(command, away):
    """Spark needs Java: one sentence that says so, exit 1."""
    connect = mirrored_estate(10, billing=6).connect
    without = {"JAVA_HOME": None, "PATH": "/nowhere"}
    result = invoke(command, "-c", str(away), env=without, connect=connect)
    assert result.exit_code == 1
    assert "Java" in result.stderr
    assert "Traceback" not in result.stderr
