"""Tables that fit the terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tsoffset.printable import printable
from tsoffset.terminal.tables import Column, elide, table, wrap


@given(st.text(max_size=30) | st.text("a漢", max_size=30), st.integers(min_value=1, max_value=30))
def test_a_shortened_name_keeps_within_its_width(name, width):
    shown = printable(name)
    short = elide(shown, width)
    assert cell_len(short) <= width
    assert short == shown or cell_len(shown) > width
    assert elide("abcdefgh", 6) == "abc…gh"


def test_words_are_whole_whatever_the_width():
    """Lines break between words, never inside a name or an address that somebody may copy."""
    words = ["a-topic-that-has-many-hyphens", "and", "127.0.0.1:9092,127.0.0.1:9093"]
    assert [line.plain for line in wrap(" ".join(words), 12)] == [f"  {word}" for word in words]


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
