"""Sentences beside names."""

import pytest
from rich.cells import cell_len
from rich.text import Text

from tsoffset.terminal.report import Item, items


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
