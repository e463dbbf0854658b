"""A replicator that leaves records out."""

import pytest

from tests.scenarios.corner_cases.corners import FILTERED, Corners
from tests.scenarios.corner_cases.holdings import DROPPED, SIEVED
from tests.scenarios.judging import Logs

pytestmark = [pytest.mark.integration, pytest.mark.thorough]


def test_filter_that_drops_half_of_the_records(corners: Corners) -> None:
    """MirrorMaker 2 with Connect's Filter drops every record that has a certain header: groups
    resume at the next record that came through."""
    source, _ = corners.sides(FILTERED)
    (last,) = source.read(SIEVED, start=source.log_range(SIEVED)[1] - 1)
    assert last.value is not None
    corners.wait_until_there(FILTERED, SIEVED, last.value)
    logs = Logs(corners, FILTERED, SIEVED)
    dropped = {
        record.value for record in logs.source if any(name == DROPPED for name, _ in record.headers)
    }
    assert logs.not_mirrored == dropped
    assert 0.4 < len(dropped) / len(logs.source) < 0.6
    answers = logs.judged(logs.every())
    assert answers.exact >= 0.99, answers
    logs.fail_over()
