"""Transactions on both sides: of the applications, and of an exactly-once MirrorMaker 2."""

import pytest

from tests.scenarios.corner_cases.corners import EXACTLY_ONCE, Corners
from tests.scenarios.corner_cases.holdings import PAID
from tests.scenarios.judging import Logs

pytestmark = [pytest.mark.integration, pytest.mark.thorough]


def test_exactly_once_mirror_with_an_aborted_copy(corners: Corners) -> None:
    """An exactly-once MirrorMaker 2 died inside a transaction and copied its records again: the
    first copies are aborted, so the second ones are what groups resume at. Markers and aborted
    records of the applications lie on the source, too; every position is exact."""
    source, target = corners.sides(EXACTLY_ONCE)
    remote = corners.remote(EXACTLY_ONCE, PAID)
    logs = Logs(corners, EXACTLY_ONCE, PAID)
    aborted_here = len(source.read(PAID)) - len(logs.source)
    everything = [record.value for record in target.read(remote)]
    assert aborted_here > 0
    assert len(everything) >= len(logs.target) + 50, "no copy was aborted"
    assert len({*everything}) == len(logs.target) == len(logs.source)
    answers = logs.judged(logs.every())
    assert answers.exact == 1, answers
    logs.fail_over()
