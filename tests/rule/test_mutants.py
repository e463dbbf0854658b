"""The examples notice almost any guard that is removed from the rule (`tests.mutants`)."""

import os
import sys

import pytest

from tests.invoking import run_program
from tests.mutants import mutants

# Those that change cost alone, and conditions that another one implies; lower it after a whole run.
MOST_SURVIVE = 0.4

SOURCE = """\
def larger(first, second):
    if first is None or second < first:
        return first
    return [it for it in second if it]
"""


def test_mutants_are_one_change_each():
    """A condition that never holds, an operand that is gone, a comparison moved by one."""
    assert [it.name for it in mutants("module", SOURCE)] == [
        "module:2 never: if first is None or second < first",
        "module:2 without operand: first is None",
        "module:2 without operand: second < first",
        "module:2 second < first becomes second <= first",
        "module:4 for all: it",
    ]


ALONE = """
from tests.mutants import ROOT, Mutant, survivors

module = "tsoffset.rule.answers"
text = (ROOT / "tsoffset" / "rule" / "answers.py").read_text()
place = module, *[1 + text[: text.index("return")].count("\\n")] * 2
harmless = Mutant(*place, "nothing", text)
broken = Mutant(*place, "all", "raise ImportError")
print(*(it.change for it in survivors([harmless, broken])))
"""


def in_new_process(*arguments: str) -> str:
    """What Python prints. A process that has used Polars must not fork, as `survivors` does."""
    return run_program(sys.executable, *arguments).stdout


@pytest.mark.long
def test_a_mutant_that_no_example_needs_survives_alone():
    """One that breaks the rule does not."""
    assert in_new_process("-c", ALONE) == "nothing\n"


@pytest.mark.long
@pytest.mark.timeout(14_400)
def test_examples_notice_what_is_removed():
    """At most this share of the mutants survives; the list of them is printed."""
    processes = str(os.cpu_count() or 1)
    *found, count = in_new_process("-m", "tests.mutants", "--processes", processes).splitlines()
    survived, everything = map(int, count.split(" of "))
    assert survived <= MOST_SURVIVE * everything, "\n".join(found)
