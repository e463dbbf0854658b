"""The command that is the next step of a row: the command line takes it, for that group alone."""

import re
import shlex

import pytest

from tests.configured import properties_file
from tsoffset.cli.main import cli
from tsoffset.flow.narrowing import expression, whole_name
from tsoffset.flow.patterns import matches
from tsoffset.model import FailureKind, Reason
from tsoffset.terminal.next_step import next_step

ODD = ("billing", "billing.eu", "it's (1) [x] {2} a|b*+?^$ \\d", "-x", "a b")


@pytest.mark.parametrize("group", ODD)
@pytest.mark.parametrize("reason", [*Reason, *FailureKind, "SOURCE_ACTIVE", "NO_COMMIT"])
def test_each_reason_has_a_command_for_its_group_alone(reason, group, tmp_path):
    """Its words are those of the command, whatever is in the group's name and the file's."""
    folder = tmp_path / "my files"
    folder.mkdir()
    file = str(properties_file(folder, "a:1", "b:1"))
    step = next_step(file, "A->B", group, reason)
    program, name, *words = shlex.split(step.command)
    assert program == "tsoffset"
    command = cli.get_command(None, name)
    given = command.make_context(name, words).params
    assert str(given["config"]) == file
    assert given["flows"] == ("A->B",)
    if given.get("group") is not None:
        assert given["group"] == group
    pattern = given.get("groups") or next(iter(given.get("groups_exclude_add", ())), None)
    if pattern is not None:
        compiled = expression("--groups", pattern)
        assert matches(compiled, group)
        assert not matches(compiled, f"{group}x")
        assert not matches(compiled, re.sub("[.]", "-", group)) or "." not in group


def test_a_group_ahead_goes_back_alone():
    """As a person reads it; a plain name is not made harder to read."""
    step = next_step("mm2.properties", "A->B", "billing-eu", Reason.TARGET_AHEAD)
    assert step.command == (
        "tsoffset sync -c mm2.properties --flow 'A->B' --groups billing-eu --allow-rewind"
    )
    assert whole_name("a.b") == r"a\.b"


def test_where_no_group_is_known_the_flow_is_looked_at():
    """And a name that no terminal shows as it is has no command."""
    step = next_step("f", "A->B", None, FailureKind.UNREACHABLE)
    assert step.command == "tsoffset check -c f --flow 'A->B'"
    assert next_step("f", "A->B", "a\nb", Reason.EXPIRED) is None
    assert next_step("f", "A->B", "billing", None) is None
