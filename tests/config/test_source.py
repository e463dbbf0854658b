"""Properties and JSON as entries with their lines."""

import json

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.configured import FILE, TWO_CLUSTERS, problems, said
from tsoffset.config.findings import Findings
from tsoffset.config.source import ConfigFormat, parse

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(TEXT.filter(bool), TEXT, max_size=6))
def test_properties_are_read_as_java_writes_them(pairs):
    """Every pair comes back, with the line on which it begins."""
    text = "# first line\n" + javaproperties.dumps(pairs, timestamp=False)
    entries = parse(text, ConfigFormat.PROPERTIES, "f", Findings())
    assert {entry.key: entry.text for entry in entries} == pairs
    assert [entry.line for entry in entries] == list(range(2, 2 + len(pairs)))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_over_continuations_and_comments(end):
    """A value over several lines counts as its lines; its own line is the first."""
    text = end.join(["! note", "", "a = 1,\\", "    2", "b : 3", "", "c 4"])
    entries = parse(text, ConfigFormat.PROPERTIES, "f", Findings())
    assert [(entry.key, entry.text, entry.line) for entry in entries] == [
        ("a", "1,2", 3),
        ("b", "3", 5),
        ("c", "4", 7),
    ]


def test_a_broken_escape_is_named_with_its_line():
    """Java refuses the whole file; the line helps to mend it."""
    found = problems("clusters = A, B\nA.bootstrap.servers = \\u12\n")
    assert [(problem.key, problem.line) for problem in found] == [("\\u", 2)]


@given(st.dictionaries(TEXT, TEXT | st.integers() | st.booleans(), max_size=6), st.booleans())
def test_json_is_read_member_by_member(members, escaped):
    """Text stays, numbers and booleans become text; lines are those of the members."""
    text = json.dumps(members, indent=1, ensure_ascii=escaped)
    entries = parse(text, ConfigFormat.JSON, "f", Findings())
    assert {entry.key: entry.text for entry in entries} == {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in members.items()
    }
    assert [entry.line for entry in entries] == list(range(2, 2 + len(members)))


def test_each_of_many_members_of_json_is_found_on_its_line():
    members = {f"groups.{number}": "v" for number in range(500)} | {"tasks.max": 0}
    assert f"{FILE}:502: tasks.max" in said(json.dumps(members, indent=1), ConfigFormat.JSON)


def test_half_of_a_character_is_a_problem():
    """It could not be printed, nor sent to a broker."""
    assert "half of a character" in said(TWO_CLUSTERS + "A.client.id = a\\ud800b\n")
    assert "half of a character" in said('{"name\\ud800": "v", "b": "\\udfff"}', ConfigFormat.JSON)
