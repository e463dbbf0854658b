"""What is printed: JSON and CSV of records, tables that fit, sums that add up."""

import csv
import io
import os
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from tsoffset.cycle.values import rows_table
from tsoffset.model import FailureKind, OutcomeKind, Precision, Reason, Row
from tsoffset.printable import printable
from tsoffset.terminal.output import Format, Output
from tsoffset.terminal.report import Item, items
from tsoffset.terminal.row_columns import tally_of
from tsoffset.terminal.rows import cycle_lines
from tsoffset.terminal.streams import StandardStream
from tsoffset.terminal.tables import Column, elided, table, wrapped

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


def drawn(rows: list[Row], width: int | None) -> list[str]:
    lines = cycle_lines("A->B", rows, tally_of(rows_table(rows)).in_words, "mm2.properties", width)
    return [line.plain for line in lines]


# --- JSON and CSV -------------------------------------------------------------------------


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


# --- the table ----------------------------------------------------------------------------


def test_a_wide_table_has_a_column_for_everything():
    """With room, each row is one line with names, offsets, outcome, reason and precision."""
    lines = drawn([COMMITTED, SKIPPED], 200)
    assert lines[1].split() == [
        *("GROUP", "SOURCE", "OFFSET", "TARGET", "OFFSET", "CURRENT"),
        *("OUTCOME", "REASON", "PRECISION", "RE-READ", "CONSUMER", "LAG"),
    ]
    assert lines[2].split() == [
        *("billing", "orders-3", "1000", "A.orders-3", "600", "590"),
        *("committed", "-", "bounded", "12", "25"),
    ]
    assert lines[3].split() == [
        *("checkout", "orders-3", "1000", "A.orders-3", "-", "-"),
        *("skipped", "NOT_MIRRORED", "-", "-", "25"),
    ]


def test_numbers_stand_right_aligned():
    short = replace(COMMITTED, source_offset=7)
    lines = drawn([COMMITTED, short], 200)
    assert lines[2].index("1000") + 4 == lines[3].index(" 7 ") + 2


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_table_fits_the_terminal(width):
    """No line is longer than the terminal, whatever the names are, but for commands to paste."""
    rows = [
        COMMITTED,
        replace(SKIPPED, reason=Reason.TARGET_REWRITES_TIMESTAMPS),
        replace(COMMITTED, group="g" * 120, source_topic="t" * 200, target_topic="A." + "t" * 200),
        replace(COMMITTED, source_offset=10**11, target_offset=10**11, reread_bound=99_999),
        replace(FAILED, source_offset=10**11),
        CLUSTER_FAILED,
    ]
    lines = drawn(rows, width)
    over = [line for line in lines if cell_len(line) > width]
    assert all(line == "g" * 120 or ": tsoffset check -c " in line for line in over)


def test_a_narrow_table_keeps_group_and_offsets():
    """At 80 columns the group stands over its rows, and a skip is named by its reason."""
    rows = [
        replace(COMMITTED, source_offset=10**11, target_offset=10**11, group="payments-service"),
        replace(SKIPPED, group="payments-service", reason=Reason.TARGET_REWRITES_TIMESTAMPS),
        replace(FAILED, group="z"),
    ]
    lines = drawn(rows, 80)
    assert lines[2] == "payments-service"
    assert lines[3].split() == [
        *("orders-3", "100000000000", "100000000000", "590", "committed", "bounded", "12")
    ]
    assert lines[4].split()[-1] == "TARGET_REWRITES_TIMESTAMPS"
    assert lines[5] == "z"
    assert lines[6].split()[-2:] == ["failed:", "NO_LEADER"]


def test_a_message_is_told_once_under_its_reason():
    """Equal messages of many rows are one, with their number and the next step of the first, which
    is told once for messages one after the other."""
    rows = [SKIPPED, SKIPPED, replace(SKIPPED, message="another; wait"), FAILED]
    lines = drawn(rows, 200)
    at = lines.index("NOT_MIRRORED (3 rows)")
    step = (
        "    Once the replicator has caught up: tsoffset sync -c mm2.properties --flow 'A->B' "
        "--groups checkout"
    )
    assert lines[at + 1 : at + 4] == [
        "  the mirror has not come to 1000; wait for it (2 rows)",
        "  another; wait",
        step,
    ]
    other = drawn([SKIPPED, replace(SKIPPED, group="billing", message="another; wait")], 200)
    assert step in other
    assert step.replace("checkout", "billing") in other
    assert "NO_LEADER (1 row)" in lines
    alone = drawn([SKIPPED, SKIPPED], 200)
    assert "  the mirror has not come to 1000; wait for it" in alone


def test_of_many_messages_the_first_are_told_and_the_rest_counted():
    """A thousand distinct messages do not bury the table."""
    rows = [replace(SKIPPED, message=f"message {number}") for number in range(1_000)]
    lines = drawn(rows, 200)
    assert sum(line.startswith("  message ") for line in lines) == 3
    assert any("997 more messages" in line for line in lines)


def test_names_cannot_steer_the_terminal():
    lines = drawn([replace(COMMITTED, group="a\x1b[2Jb\nc")], None)
    assert r"a\x1b[2Jb\nc" in lines[2]
    assert not any("\x1b" in line for line in lines)


@given(st.text(max_size=30) | st.text("a漢", max_size=30), st.integers(min_value=1, max_value=30))
def test_a_shortened_name_keeps_within_its_width(name, width):
    shown = printable(name)
    short = elided(shown, width)
    assert cell_len(short) <= width
    assert short == shown or cell_len(shown) > width
    assert elided("abcdefgh", 6) == "abc…gh"


def test_a_name_of_any_length_makes_no_column_give_way():
    """It loses its middle instead."""
    lines = drawn([replace(COMMITTED, group="g" * 120)], 160)
    assert "RE-READ" in lines[1]
    assert "ggg…ggg" in lines[2]


def test_what_is_not_known_is_a_dash():
    """A cluster that cannot be reached has a row without group, topic and offsets."""
    lines = drawn([CLUSTER_FAILED], 200)
    assert lines[2].split() == [*"------", "failed", "UNREACHABLE", *"---"]


def test_words_are_whole_whatever_the_width():
    """Lines break between words, never inside a name or an address that somebody may copy."""
    words = ["a-topic-that-has-many-hyphens", "and", "127.0.0.1:9092,127.0.0.1:9093"]
    assert [line.plain for line in wrapped(" ".join(words), 12)] == [f"  {word}" for word in words]


def test_without_messages_the_summary_follows_the_table():
    lines = drawn([COMMITTED], 200)
    assert [at for at, line in enumerate(lines) if not line] == [3]
    assert lines[4].startswith("A->B: 1 committed")


def test_no_rows_no_table():
    """A flow without rows has its title and its summary alone."""
    assert drawn([], 200) == [
        "flow A->B",
        "A->B: 0 to commit, 0 unchanged, 0 skipped, 0 failed; no group has an offset to sync",
    ]


@given(
    st.lists(st.tuples(st.text("ab", max_size=60), st.integers(0, 10**12)), min_size=1, max_size=5),
    st.integers(min_value=45, max_value=150),
)
def test_names_give_way_before_numbers(cells, width):
    columns: tuple[Column[tuple[str, int]], ...] = (
        Column("NAME", lambda row: row[0], elastic=True),
        Column("NUMBER", lambda row: row[1], right=True),
    )
    lines = [line.plain for line in table(columns, cells, width)]
    assert all(cell_len(line) <= width for line in lines)
    assert [line.split()[-1] for line in lines[1:]] == [str(number) for _, number in cells]


Ship = tuple[str, str, str, int]
SHIPS: tuple[Column[Ship], ...] = (
    Column("FLEET", lambda ship: ship[0], heads=2),
    Column("SHIP", lambda ship: ship[1], elastic=True, short="NAME"),
    Column("PORT", lambda ship: ship[2], drops=1),
    Column("CREW", lambda ship: ship[3], right=True, folds=3),
)


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            None,
            [
                *("FLEET  SHIP    PORT    CREW", "north  Anna    Bergen    12"),
                *("north  Berta   Bergen     0", "south  Carola  Genova     7"),
            ],
        ),
        (20, ["FLEET  NAME    CREW", "north  Anna      12", "north  Berta      0"]),
        (14, ["  NAME    CREW", "north", "  Anna      12", "  Berta      0", "south"]),
        (13, ["  NAME", "north", "  Anna 12", "  Berta", "south", "  Carola 7"]),
    ],
)
def test_columns_give_way_step_by_step(width, lines):
    """One is left out, one stands over its rows, one behind the column before it, where nothing
    and zeros are left out: no further than the width asks for."""
    ships = [("north", "Anna", "Bergen", 12), ("north", "Berta", "Bergen", 0)]
    drawn = table(SHIPS, [*ships, ("south", "Carola", "Genova", 7)], width)
    assert [line.plain for line in drawn][: len(lines)] == lines


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (None, ["ok  a name  what is said", "no  b       first", "            second"]),
        (62, ["ok  a name  what is said", "no  b       first", "            second"]),
        (61, ["ok  a name -> what is said", "no  b", "    -> first", "    -> second"]),
        (25, ["ok  a name", "    -> what is said", "no  b", "    -> first", "    -> second"]),
    ],
)
def test_sentences_stand_beside_behind_or_below_their_names(width, lines):
    """In a column of their own where it is not narrow; else behind the name if they fit."""
    members = [
        Item(Text("ok  "), "a name", ["what is said"]),
        Item(Text("no  "), "b", ["first", "second"]),
    ]
    assert [line.plain for line in items(members, width, below=4, arrow="->")] == lines


def test_a_long_name_leaves_room_for_what_is_said():
    """On a terminal it loses its middle where the sentences stand beside it; in a file it is
    whole. No names, no lines."""
    members = [Item(Text("ok  "), "n" * 100, ["what is said"])]
    narrow, wide = (next(items(members, width, below=4)).plain for width in (104, None))
    assert (cell_len(narrow), "…" in narrow) == (4 + 48 + 2 + 12, True)
    assert wide == f"ok  {'n' * 100}  what is said"
    assert list(items([], 80, below=4)) == []


# --- sums ---------------------------------------------------------------------------------


def test_the_tally_counts_each_row_once():
    unchanged = replace(COMMITTED, outcome=OutcomeKind.UNCHANGED, reread_bound=3)
    tally = tally_of(rows_table([COMMITTED, unchanged, SKIPPED, SKIPPED, FAILED, CLUSTER_FAILED]))
    assert tally.outcomes == {
        OutcomeKind.COMMITTED: 1,
        OutcomeKind.UNCHANGED: 1,
        OutcomeKind.SKIPPED: 2,
        OutcomeKind.FAILED: 2,
    }
    assert tally.reasons == {"NOT_MIRRORED": 2}
    assert tally.failures == {"NO_LEADER": 1, "UNREACHABLE": 1}
    assert tally.failed == 2


def test_the_re_reads_are_those_of_what_is_in_place():
    """Bounds of committed and unchanged rows add up; a translation that was not committed
    (GROUP_ACTIVE) adds nothing; one without a bound is counted as such."""
    active = replace(COMMITTED, outcome=OutcomeKind.SKIPPED, reason=Reason.GROUP_ACTIVE)
    unproven = replace(COMMITTED, precision=Precision.UNPROVEN, reread_bound=None)
    planned = replace(COMMITTED, outcome=OutcomeKind.WOULD_COMMIT, reread_bound=5)
    tally = tally_of(rows_table([COMMITTED, planned, active, unproven]))
    assert (tally.reread_bound, tally.unproven) == (17, 1)
    assert tally.in_words().endswith("an unknown number for 1 unproven row")


def test_a_sum_says_which_groups_are_in_place_and_what_the_others_read_again():
    """Of what the target has now: a group with members that lies 10 back reads these again, one
    past its translation and one without any have no usable offset. A plan says both, what is and
    what a sync would make of it."""
    skip = partial(replace, COMMITTED, outcome=OutcomeKind.SKIPPED)
    rows = [
        replace(COMMITTED, outcome=OutcomeKind.UNCHANGED, reread_bound=0),
        skip(group="busy", reason=Reason.GROUP_ACTIVE, reread_bound=0),
        skip(group="ahead", reason=Reason.TARGET_AHEAD, current_target_offset=700),
        replace(SKIPPED, group="old", reason=Reason.EXPIRED),
        replace(SKIPPED, group="old", reason=Reason.EXPIRED, partition=4),
    ]
    rest = (
        "; 3 not ready (1 EXPIRED, 1 GROUP_ACTIVE, 1 TARGET_AHEAD), re-reading at most 10 "
        "records; 3 group-partitions without a usable offset on the target"
    )
    assert (
        tally_of(rows_table(rows))
        .in_words()
        .endswith(f"0 failed; 1 of 4 groups ready, re-reading at most 0 records{rest}")
    )
    none = tally_of(rows_table(rows[2:])).in_words()
    assert "0 of 2 groups ready; 2 not ready (1 EXPIRED, 1 TARGET_AHEAD)" in none
    away = tally_of(rows_table([CLUSTER_FAILED])).in_words()
    assert away.endswith("1 failed (1 UNREACHABLE); what a failover would re-read is not known")
    whole = tally_of(rows_table([replace(CLUSTER_FAILED, group="locked")])).in_words()
    assert whole.endswith("0 of 1 group ready; 1 not ready (1 UNREACHABLE)")
    rows.append(replace(COMMITTED, group="late", outcome=OutcomeKind.WOULD_COMMIT))
    assert (
        tally_of(rows_table(rows))
        .in_words()
        .endswith(
            "0 failed; now 1 of 5 groups ready, re-reading at most 0 records; 4 not ready "
            "(1 EXPIRED, 1 GROUP_ACTIVE, 1 TARGET_AHEAD, 1 would_commit), re-reading at most 32 "
            "records; 3 group-partitions without a usable offset on the target. After a sync: 2 "
            f"of 5 groups ready, re-reading at most 12 records{rest}"
        )
    )
