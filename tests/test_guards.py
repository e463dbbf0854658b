"""Each guard of the rule is needed by a log (`tests.guards`)."""

import pytest

from tests.guards import GUARDS, ROOT, Guard, failing, taken_out

pytestmark = pytest.mark.thorough


def test_all_examples_hold_with_all_guards() -> None:
    """Otherwise their failing without one tells nothing."""
    assert failing(ROOT, sorted({name for guard in GUARDS for name in guard.examples})) == []


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_an_example_fails_without(guard: Guard) -> None:
    """A guard that no log needs would go."""
    with taken_out(guard) as copy:
        assert failing(copy, guard.examples)
