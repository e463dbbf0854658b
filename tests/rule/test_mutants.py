"""The examples notice almost any guard that is removed from the rule (`tests.mutants`)."""

import os
from collections import defaultdict

import pytest

from tests.mutants import ROOT, Mutant, all_mutants, mutants, survivors

# Those that change cost alone, and conditions that another one implies; lower it after a whole run.
MOST_SURVIVE = 0.4

SOURCE = """\
def larger(first, second):
    if first is None or second < first:
        return first
    return [it for it in second if it]
"""


def test_mutants_are_one_change_each() -> None:
    """A condition that never holds, an operand that is gone, a comparison moved by one."""
    assert [it.name for it in mutants("module", SOURCE)] == [
        "module:2 never: if first is None or second < first",
        "module:2 without operand: first is None",
        "module:2 without operand: second < first",
        "module:2 second < first becomes second <= first",
        "module:4 for all: it",
    ]


@pytest.mark.thorough
def test_a_mutant_that_no_example_needs_survives_alone() -> None:
    """One that breaks the rule does not."""
    module = "tsoffset.rule.answers"
    text = (ROOT / "tsoffset" / "rule" / "answers.py").read_text()
    harmless = Mutant(module, 1, "nothing", text)
    broken = Mutant(module, 1, "all", "raise ImportError\n")
    assert list(survivors([harmless, broken], 1)) == [harmless]


@pytest.mark.long
@pytest.mark.timeout(14_400)
def test_examples_notice_what_is_removed() -> None:
    """At most this share of the mutants survives; the list of them is printed."""
    everything = list(all_mutants())
    survived = defaultdict(list)
    for mutant in survivors(everything, os.cpu_count() or 1):
        survived[mutant.module].append(mutant.name)
    found = [name for names in survived.values() for name in names]
    assert len(found) <= MOST_SURVIVE * len(everything), "\n".join(found)
