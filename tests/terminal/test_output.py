"""What is printed: JSON and CSV of records, and how wide."""

import csv
import io
import os
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial

import pytest

from tsoffset.model import FailureKind, OutcomeKind, Precision, Reason, Row
from tsoffset.terminal.output import Format, Output
from tsoffset.terminal.rows import cycle_lines
from tsoffset.terminal.streams import StandardStream

COMMITTED = Row(
    flow="A->B",
    group="billing",
    source_topic="orders",
    partition=3,
    source_offset=1_000,
    source_timestamp_ms=1_700_000_000_000,
    target_topic="A.orders",
    target_offset=600,
    current_target_offset=590,
    outcome=OutcomeKind.COMMITTED,
    precision=Precision.BOUNDED,
    reread_bound=12,
    consumer_lag=25,
)
SKIPPED = replace(
    COMMITTED,
    group="checkout",
    target_offset=None,
    current_target_offset=None,
    outcome=OutcomeKind.SKIPPED,
    reason=Reason.NOT_MIRRORED,
    precision=None,
    reread_bound=None,
    message="the mirror has not come to 1000; wait for it",
)
FAILED = replace(
    SKIPPED,
    outcome=OutcomeKind.FAILED,
    reason=FailureKind.NO_LEADER,
    message="read, orders-3: no leader; elect one",
)
CLUSTER_FAILED = Row(
    *("A->B", None, None, None, None, None, None, None, None, OutcomeKind.FAILED),
    reason=FailureKind.UNREACHABLE,
    message="connect to cluster A: refused; check A.bootstrap.servers",
)

# docs/commands.md, "One row per ...": the names are fixed, and so is their order.
SCHEMA = (
    *("flow", "group", "source_topic", "partition", "source_offset", "source_timestamp_ms"),
    *("target_topic", "target_offset", "current_target_offset", "outcome", "reason"),
    *("precision", "reread_bound", "message", "consumer_lag"),
)


def printed(format: Format, *batches: list[Row]) -> str:
    stream = io.StringIO()
    output = Output(stream, format)
    for rows in batches:
        output.records(Row, rows)
    return stream.getvalue()


def test_the_row_has_the_fields_of_the_contract():
    assert tuple(field.name for field in fields(Row)) == SCHEMA


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "\r", "a\r\nb", 'a"b', "a,b"])
def test_csv_quotes_whatever_ends_a_line_or_a_field(name):
    """A reader that takes a lone carriage return for a line's end finds the same rows."""
    text = printed(Format.CSV, [replace(COMMITTED, group=name)])
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert (row["group"], row["outcome"]) == (name, "committed")
    assert '"' in text.splitlines()[1]


def test_csv_without_rows_is_its_header():
    """A reader of CSV finds the columns even where nothing passed the filters."""
    assert printed(Format.CSV, []) == ",".join(SCHEMA) + "\n"


def test_rows_are_written_as_they_come():
    """JSON of many rows is not held in memory: the first is out before the last is made."""
    stream = io.StringIO()
    seen: list[bool] = []

    def rows() -> Iterator[Row]:
        yield COMMITTED
        seen.append('"billing"' in stream.getvalue())
        yield COMMITTED

    Output(stream, Format.JSON).records(Row, rows())
    assert seen == [True]


@pytest.mark.parametrize("colors", ["", "1"])
@pytest.mark.parametrize("format", list(Format))
def test_a_reader_that_goes_away_ends_the_printing_only(format, colors, monkeypatch):
    """A closed pipe (`| head`) raises nothing, now or at the last flush, with colors or not."""
    monkeypatch.setenv("FORCE_COLOR", colors)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        output = Output(StandardStream(pipe), format)
        if format is Format.TABLE:
            output.lines(cycle_lines("A->B", [COMMITTED] * 1_000, lambda: "done", "F", None))
        else:
            output.records(Row, [COMMITTED] * 1_000)
        output.flush()
        assert output.closed


def test_a_file_and_a_wide_output_limit_no_width(monkeypatch):
    """Lines of a file are whole, so that they can be searched. On a terminal `wide` prints every
    column, and no name loses its middle."""
    assert Output(io.StringIO(), Format.TABLE).width is None
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    rows = [replace(COMMITTED, group="g" * 120)]
    found = []
    for wide in (False, True):
        stream = io.StringIO()
        output = Output(stream, Format.TABLE, wide=wide)
        output.show(Row, rows, partial(cycle_lines, "A->B", rows, lambda: "done", "F"))
        found.append((output.width, "RE-READ" in stream.getvalue()))
    assert found == [(80, False), (None, True)]
    assert "g" * 120 in stream.getvalue()
