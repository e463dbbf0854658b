"""Timestamps that tell little: one of them lies far ahead, or all of them are one."""

import pytest

from tests.scenarios.corner_cases.corners import PLAIN, Corners
from tests.scenarios.corner_cases.holdings import FAR_FUTURE, ONE_TIME
from tests.scenarios.judging import Logs

pytestmark = [pytest.mark.integration, pytest.mark.thorough]


def test_record_a_century_ahead_at_the_start(corners: Corners) -> None:
    """Every time lookup answers the first record, which is a century ahead of all others: the
    distance from it tells where to look, and every position is exact."""
    logs = Logs(corners, PLAIN, FAR_FUTURE)
    ahead, *others = logs.source
    assert all(ahead.timestamp_ms > record.timestamp_ms for record in others)
    answers = logs.judged(logs.every(3))
    assert answers.exact == 1, answers
    logs.fail_over()


def test_whole_topic_of_one_timestamp(corners: Corners) -> None:
    """Where all records have one timestamp, content alone tells them apart, and does."""
    logs = Logs(corners, PLAIN, ONE_TIME)
    assert len({record.timestamp_ms for record in logs.source}) == 1
    answers = logs.judged(logs.every(3))
    assert answers.exact == 1, answers
    logs.fail_over()
