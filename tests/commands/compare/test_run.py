"""`tsoffset compare`: what is printed, and comparisons at an interval."""

import json
import os
import re
import signal
from typing import Any

import pytest
from rich.cells import cell_len

from tests.commands.compare.test_flow_comparison import checkpoint, compared_estate, comparison
from tests.invoking import in_memory
from tsoffset.commands.compare import run
from tsoffset.commands.compare.options import CompareOptions
from tsoffset.commands.compare.run import comparison_lines


@pytest.mark.parametrize("width", [80, 120, None])
def test_the_table_fits(width):
    """No line is wider than the terminal; in a file all columns stand."""
    lines = list(comparison_lines(comparison(compared_estate()), width, CompareOptions()))
    if width is not None:
        assert max(cell_len(line.plain) for line in lines) <= width
    else:
        assert re.split(" {2,}", lines[1].plain) == [
            *("GROUP", "SOURCE", "COMMITTED", "CONSUMER LAG", "TARGET", "TSOFFSET", "PRECISION"),
            *("MIRRORMAKER 2", "OF SOURCE OFFSET", "VERDICT", "RECORDS", "TARGET COMMIT", "SET BY"),
            "RE-READS",
        ]
    text = "\n".join(line.plain for line in lines)
    assert "A->B: 8 group-partitions" in text
    assert text.count("unsafe") >= 3


def test_json_is_one_pair_a_line_and_totals_go_elsewhere(tmp_path):
    """All fields in order on each line of standard output; the totals on standard error, so
    that what reads the lines needs to tell nothing apart."""
    result = in_memory(compared_estate(), tmp_path, "compare", "--format", "json")
    pairs = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert len(pairs) == 8
    assert {tuple(pair) for pair in pairs} == {
        (
            *("flow", "compared_at_ms", "group", "source_topic", "partition", "source_offset"),
            *("lag", "target_topic", "ours", "ours_precision", "ours_reread_bound", "ours_reason"),
            *("true_position", "theirs", "theirs_source_offset", "theirs_timestamp_ms"),
            *("verdict", "records", "target_commit", "target_commit_is", "target_commit_reread"),
            "message",
        )
    }
    assert [pair["verdict"] for pair in pairs if pair["group"] == "search"] == ["unsafe"] * 2
    assert "A->B: MirrorMaker 2: 4 equal" in result.stderr


def test_an_error_is_printed_when_the_progress_has_ended(tmp_path, monkeypatch):
    """On a terminal it would otherwise stand on the progress line."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    dump = tmp_path / "checkpoints.txt"
    dump.write_text("nonsense\n")
    told = in_memory(compared_estate(), tmp_path, "compare", "--checkpoints", str(dump)).stderr
    shows_cursor = "\x1b[?25h"
    assert "comparing" in told
    assert told.index("checkpoints.txt") > told.rindex(shows_cursor) > told.rindex("comparing")


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two comparisons no time passes."""
    monkeypatch.setattr(run.time, "sleep", lambda _: None)


TWICE = "--every", "1s", "--times", "2"


@pytest.mark.usefixtures("no_waiting")
def test_comparing_again_adds_rows_with_their_time(tmp_path):
    """Each comparison reads everything again, so a checkpoint that moved shows. CSV has one header.
    The report is replaced, and shows both comparisons over time."""
    estate = compared_estate()
    path = tmp_path / "report.html"
    seen: list[str] = []
    settings_of = estate.connect

    def connect(settings: Any) -> Any:
        if settings.alias == "B" and path.exists():
            seen.append(path.read_text())
            checkpoint(estate, "search", 500, 480, partition=0)
        return settings_of(settings)

    estate.connect = connect
    words = ("--html", str(path), "--format", "csv")
    result = in_memory(estate, tmp_path, "compare", *TWICE, *words)
    header, *lines = result.stdout.splitlines()
    assert (result.exit_code, len(lines)) == (0, 16)
    assert header.startswith("flow,")
    assert len({one.split(",")[1] for one in lines}) == 2
    assert seen
    last = path.read_text()
    assert "2 comparisons so far" in last
    assert "comparisons in the course" not in seen[0]
    assert not list(tmp_path.glob(".*"))


def test_a_report_that_cannot_be_written_is_said(tmp_path):
    """The pairs are still printed; the status is 1."""
    (tmp_path / "file").write_text("")
    words = ("--html", str(tmp_path / "file" / "report.html"), "--format", "json")
    result = in_memory(compared_estate(), tmp_path, "compare", *words)
    assert (result.exit_code, len(result.stdout.splitlines())) == (1, 8)
    assert "write report" in result.stderr


@pytest.mark.usefixtures("no_waiting")
def test_a_cluster_that_is_away_for_a_while_does_not_end_it(tmp_path):
    """Its rows say so; the status is that of the last comparison."""
    estate = compared_estate()
    settings_of = estate.connect
    calls: list[str] = []

    def connect(settings: Any) -> Any:
        calls.append(settings.alias)
        # The groups are listed once before, to see that there are some.
        estate["B"].unreachable = len(calls) <= 3
        return settings_of(settings)

    estate.connect = connect
    result = in_memory(estate, tmp_path, "compare", *TWICE, "--format", "json")
    verdicts = [json.loads(one)["verdict"] for one in result.stdout.splitlines()]
    assert (result.exit_code, verdicts[0], len(verdicts)) == (0, "failed", 9)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_waiting_at_once(number, tmp_path, monkeypatch):
    """With the status of the last comparison; and what handled signals before does so again."""
    before = signal.getsignal(number)
    monkeypatch.setattr(run.time, "sleep", lambda _: os.kill(os.getpid(), number))
    estate = compared_estate()
    estate["B"].unreachable = True
    words = ("--every", "1h", "--times", "3", "--format", "json")
    result = in_memory(estate, tmp_path, "compare", *words)
    assert (result.exit_code, len(result.stdout.splitlines())) == (3, 1)
    assert signal.getsignal(number) is before
