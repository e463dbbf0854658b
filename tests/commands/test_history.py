"""The words of `tsoffset history`: what is refused before Spark is started, and how an answer is
printed."""

import io
import json
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tests.configured import nowhere, properties_file
from tests.invoking import invoke
from tsoffset.commands import history
from tsoffset.errors import UsageError
from tsoffset.stores import Folder
from tsoffset.terminal.output import Format, Output


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration without `history.dir`."""
    return properties_file(tmp_path, nowhere(), nowhere())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give one query"),
        (("stuck", "--sql", "SELECT 1"), "give one query"),
        (("oldest",), "'oldest' is not one of"),
        (("--groups", "(", "worst"), "--groups ("),
        (
            ("--since", "7", "stuck"),
            "'7' is not a duration. Write for example 30s, 90m, 36h, 7d or 4w",
        ),
        (("--since", "-1d", "stuck"), "is not a duration"),
        (("--cycles", "0", "stuck"), "--cycles"),
        (("--flow", "A->C", "stuck"), "there is no flow A->C"),
        (("stuck",), "history.dir is not set"),
    ],
)
def test_what_cannot_be_asked_is_bad_usage(config, words, said):
    """A sentence with the next step, and status 2, before anything is started."""
    result = invoke("history", "-c", str(config), *words)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_a_folder_without_history_is_told_from_a_time_without_cycles(tmp_path):
    """A mistyped `history.dir` is not corrected by --since."""
    root = Folder(tmp_path / "history")
    assert "holds no history: check `history.dir`" in history._why_empty("history", root)
    (tmp_path / "history/cycles/flow=A-%3EB").mkdir(parents=True)
    assert "no cycle in that time range" in history._why_empty("history", root)


ANSWER = pa.table(
    {
        "group": ["billing", None],
        "lag": [3, None],
        "since": pa.array([datetime(2026, 11, 22, 1, 2, 3, tzinfo=UTC), None]),
        "day": pa.array([date(2026, 11, 22), None]),
        "exact": [99.5, None],
        "in_sync": [True, False],
        "all": [[1, 2], []],
    }
)


def printed(format: Format, answer: pa.Table = ANSWER) -> str:
    stream = io.StringIO()
    history._print(answer, Output(stream, format))
    return stream.getvalue()


def test_json_is_one_object_a_line():
    """Numbers are numbers, times are text in UTC, and what is absent is null."""
    first, second = map(json.loads, printed(Format.JSON).splitlines())
    assert first == {
        "group": "billing",
        "lag": 3,
        "since": "2026-11-22T01:02:03Z",
        "day": "2026-11-22",
        "exact": 99.5,
        "in_sync": True,
        "all": [1, 2],
    }
    assert second == dict.fromkeys(first) | {"in_sync": False, "all": []}


def test_json_leaves_out_no_column_and_is_valid():
    """The object of a row can hold one of several columns of a name, and JSON has no NaN."""
    twice = pa.table([pa.array([1]), pa.array([2])], names=["lag", "lag"])
    with pytest.raises(UsageError, match="several columns are named lag"):
        printed(Format.JSON, twice)
    assert printed(Format.CSV, twice).splitlines() == ["lag,lag", "1,2"]
    strange = pa.table({"share": [float("nan"), float("inf"), 0.5]})
    told = [json.loads(line)["share"] for line in printed(Format.JSON, strange).splitlines()]
    assert told == ["nan", "inf", 0.5]


def test_csv_and_table_have_a_line_a_row_below_a_header():
    """All columns, in the order of the question."""
    header, first, second = printed(Format.CSV).splitlines()
    assert header == "group,lag,since,day,exact,in_sync,all"
    assert first.startswith("billing,3,2026-11-22T01:02:03Z,2026-11-22,99.5,True")
    assert second.startswith(",,,,,False")
    header, first, second = printed(Format.TABLE).splitlines()
    assert header.split() == ["GROUP", "LAG", "SINCE", "DAY", "EXACT", "IN_SYNC", "ALL"]
    assert first.split()[:3] == ["billing", "3", "2026-11-22T01:02:03Z"]
    assert second.split()[:3] == ["-", "-", "-"]
