"""Tiered storage on both sides: most of a log lies where no broker's disk is."""

import pytest
from kafka import TopicPartition
from kafka.admin import OffsetSpec

from tests.producing import Contents
from tests.scenarios.corner_cases.corners import DEEP, Corners
from tests.scenarios.corner_cases.holdings import RECORDS, TIERED, TRIMMED
from tests.scenarios.judging import Logs
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.thorough]


def test_log_whose_older_segments_are_in_another_tier(
    corners: Corners, no_tiers: str | None
) -> None:
    """Closed segments leave the disks of both sides for remote storage; records are fetched and
    times looked up there, and every position is exact."""
    if no_tiers is not None:
        pytest.skip(f"the storage of Kafka's tests could not be fetched: {no_tiers}")
    for contents, topic in zip(
        corners.sides(DEEP), (TIERED, corners.remote(DEEP, TIERED)), strict=True
    ):
        wait_until_moved(contents, topic)
    logs = Logs(corners, DEEP, TIERED)
    assert logs.source[0].offset == TRIMMED
    assert logs.not_mirrored == set()
    answers = logs.judged(logs.every(7))
    assert answers.exact == 1, answers
    logs.fail_over()


def wait_until_moved(contents: Contents, topic: str) -> None:
    """At least half of the log is on no disk of the broker any more."""

    def moved() -> bool:
        place = TopicPartition(topic, 0)
        found = contents.admin.list_partition_offsets({place: OffsetSpec.EARLIEST_LOCAL})
        return bool(found[place].offset > TRIMMED + RECORDS // 2)

    wait_until(moved, f"{topic} is in the other tier")
