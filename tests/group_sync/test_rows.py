"""Result rows as values and as a table."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.terminal.test_row_columns import rows_of_any_kind
from tsoffset.group_sync.rows import Rows, rows_of, rows_table
from tsoffset.model import FailureKind, OutcomeKind, Row


def row(group: str, source_offset: int) -> Row:
    place = (group, "orders", 0, source_offset, None, "A.orders", None, None)
    return Row("A->B", *place, OutcomeKind.UNCHANGED)


def test_rows_are_counted_and_walked_through():
    """Rows that lie in an Arrow table can be counted, and walked through any number of times."""
    rows = [row(f"g{number}", number) for number in range(5)]
    found = Rows(rows_table(rows))
    assert list(found) == rows
    assert len(found) == 5
    assert rows[3] in found


def possible(row: Row) -> Row:
    """The row, where it has to with a reason of its outcome's own kind."""
    is_failed = row.outcome is OutcomeKind.FAILED
    if isinstance(row.reason, FailureKind) == is_failed:
        return row
    return replace(row, reason=FailureKind.TIMEOUT if is_failed else None)


@settings(deadline=None)
@given(st.lists(rows_of_any_kind.map(possible)))
def test_rows_survive_the_way_to_the_driver(rows):
    """Rows are collected as they were made, in order, absent fields absent."""
    assert list(rows_of(rows_table(rows))) == rows
