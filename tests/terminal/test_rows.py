"""A cycle's rows as a person reads them: the table, its messages, its summary."""

from dataclasses import replace

import pytest
from rich.cells import cell_len

from tests.terminal.test_output import CLUSTER_FAILED, COMMITTED, FAILED, SKIPPED
from tsoffset.group_sync.rows import rows_table
from tsoffset.model import Reason, Row
from tsoffset.terminal.row_columns import tally_of
from tsoffset.terminal.rows import cycle_lines


def drawn(rows: list[Row], width: int | None) -> list[str]:
    lines = cycle_lines("A->B", rows, tally_of(rows_table(rows)).in_words, "mm2.properties", width)
    return [line.plain for line in lines]


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


def test_a_name_of_any_length_makes_no_column_give_way():
    """It loses its middle instead."""
    lines = drawn([replace(COMMITTED, group="g" * 120)], 160)
    assert "RE-READ" in lines[1]
    assert "ggg…ggg" in lines[2]


def test_what_is_not_known_is_a_dash():
    """A cluster that cannot be reached has a row without group, topic and offsets."""
    lines = drawn([CLUSTER_FAILED], 200)
    assert lines[2].split() == [*"------", "failed", "UNREACHABLE", *"---"]


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
