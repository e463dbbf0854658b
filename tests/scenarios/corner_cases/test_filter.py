"""A replicator that leaves records out."""

from itertools import count

import pytest

from tests.producing import numbered
from tests.scenarios.corner_cases.corners import FILTERED, FROM_LATEST, Corners
from tests.scenarios.corner_cases.holdings import DROPPED, NEWEST, RECORDS, SIEVED, TRIMMED
from tests.scenarios.judging import Logs
from tests.waiting import wait_until

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


def test_mirror_that_began_with_the_newest_record(corners: Corners) -> None:
    """auto.offset.reset=latest: the target has none of the older records. A group that has not
    read them resumes at the target's first record, every other one at its own."""
    source, target = corners.sides(FROM_LATEST)
    remote = corners.remote(FROM_LATEST, NEWEST)
    corners.mirror_maker.wait_for_topic(target.bootstrap, remote)
    numbers = count(TRIMMED + RECORDS)

    def begun() -> bool:
        source.produce(NEWEST, numbered(1, first=next(numbers)))
        return target.log_range(remote)[1] > 0

    wait_until(begun, f"{remote} has records")
    newer = numbered(100, first=next(numbers))
    source.produce(NEWEST, newer)
    assert newer[-1].value is not None
    corners.wait_until_there(FROM_LATEST, NEWEST, newer[-1].value)
    logs = Logs(corners, FROM_LATEST, NEWEST)
    assert len(logs.not_mirrored) >= RECORDS
    answers = logs.judged(logs.every(10))
    assert answers.exact == 1, answers
    logs.fail_over()
