"""`tsoffset compare`: sums of a flow, and by group and topic."""

import json
import re

import pytest
from rich.cells import cell_len

from tests.commands.compare.test_flow_comparison import compared_estate, comparison
from tests.commands.compare.test_html_report import HOSTILE, NOW_MS, pair
from tests.invoking import in_memory
from tsoffset.commands.compare.flow_comparison import FlowComparison
from tsoffset.commands.compare.judgment import CheckpointVerdict, CommitOrigin
from tsoffset.commands.compare.options import By, CompareOptions
from tsoffset.commands.compare.run import comparison_lines
from tsoffset.commands.compare.totals import ComparisonTotals, sums
from tsoffset.model import Precision


def test_totals_add_up_the_pairs():
    """Verdicts, records read again or skipped, precisions, and what stands on the target."""
    totals = ComparisonTotals(comparison(compared_estate()).pairs)
    assert totals.verdicts == {
        CheckpointVerdict.EQUAL: 4,
        CheckpointVerdict.UNSAFE: 2,
        CheckpointVerdict.NONE: 2,
    }
    assert (totals.skipped, totals.reread) == (2 * 277, 0)
    assert totals.precisions == {Precision.EXACT: 8}
    assert totals.origins == {None: 7, CommitOrigin.BOTH: 1}
    assert totals.in_words("MirrorMaker 2") == {
        "MirrorMaker 2": "4 equal, 0 re-read, 2 unsafe (up to 554 records skipped), 2 none",
        "tsoffset": "8 exact, 0 none",
        "target groups": "1 equal to both, 7 without a committed offset",
    }


def test_sums_have_the_worst_first():
    """Who skips comes first, then who reads most again; each pair is in one sum of each kind."""
    pairs = [
        pair("a", again=5),
        pair("a", again=7, source_topic="clicks"),
        pair("b", again=50),
        pair("c", again=1, verdict=CheckpointVerdict.UNSAFE),
    ]
    compared = FlowComparison("A->B", NOW_MS, tuple(pairs))
    groups = sums(By.GROUP, compared)
    assert [
        (one["name"], one["pairs"], one["reread_records"], one["reread_most"]) for one in groups
    ] == [("c", 1, 0, 0), ("b", 1, 50, 50), ("a", 2, 12, 7)]
    topics = sums(By.TOPIC, compared)
    assert {one["name"]: (one["pairs"], one["unsafe_records"]) for one in topics} == {
        "orders": (3, 1),
        "clicks": (1, 0),
    }


def test_by_prints_sums_in_place_of_pairs(tmp_path):
    """One object a line, and below a table the same totals."""
    estate = compared_estate()
    result = in_memory(estate, tmp_path, "compare", "--by", "group", "--format", "json")
    lines = [json.loads(one) for one in result.stdout.splitlines()]
    assert [one["name"] for one in lines] == ["search", "alerts", "billing", "unread"]
    assert lines[0]["unsafe_records"] == 2 * 277
    text = in_memory(estate, tmp_path, "compare", "--by", "topic").stdout
    assert re.search(r"^TOPIC +PARTITIONS", text, re.MULTILINE)
    assert re.search(r"^orders +8", text, re.MULTILINE)
    assert "A->B: 8 group-partitions" in text


@pytest.mark.parametrize("by", [By.GROUP, By.TOPIC])
@pytest.mark.parametrize("width", [80, 120])
def test_sums_fit_the_terminal(by, width):
    """No line is wider than it, whatever the numbers; those that tell most stay to the last."""
    pairs = tuple(pair(f"{name}-{n}", again=10**8) for name in HOSTILE[:4] for n in range(50))
    compared = FlowComparison("A->B", NOW_MS, pairs)
    lines = comparison_lines(compared, width, CompareOptions(by=by, every_seconds=1))
    text = [line.plain for line in lines]
    assert max(map(cell_len, text)) <= width
    for title in (by.value.upper(), "PART", "RE-READ", "RECORDS", "UNSAFE", "NONE", "BOUND"):
        assert title in text[1]
