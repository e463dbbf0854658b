"""Compaction, run for real."""

from collections.abc import Iterable

import pytest

from tests.producing import Contents, Stored
from tests.scenarios.corner_cases.corners import PLAIN, Corners
from tests.scenarios.corner_cases.holdings import (
    EMPTIED,
    OTHERS,
    SUPERSEDED,
    close_segment,
    supersede,
)
from tests.scenarios.judging import Logs
from tests.waiting import wait_until
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import FirstAtTime, Isolation, TopicPartition

pytestmark = [pytest.mark.integration, pytest.mark.thorough]


def test_target_whose_leading_segments_are_empty(corners: Corners) -> None:
    """Where compaction has emptied the leading segment, a time lookup finds nothing for any
    older time, though the records lie right behind: that proves nothing, and groups are still
    translated, nearly all exactly."""
    remote = corners.remote(PLAIN, EMPTIED)
    source, target = corners.sides(PLAIN)
    # One after the other, or the mirror would have both in one segment.
    corners.wait_until_there(PLAIN, EMPTIED, supersede(source))
    corners.wait_until_there(PLAIN, EMPTIED, close_segment(source, EMPTIED))
    for contents, topic in ((source, EMPTIED), (target, remote)):
        wait_until_compacted(contents, topic)
    logs = Logs(corners, PLAIN, EMPTIED)
    assert logs.not_mirrored == set()
    settings = corners.settings.flow(PLAIN).target
    assert found_by_time(settings, remote, logs.target[:OTHERS]) == 0
    answers = logs.judged(logs.every(5))
    assert answers.exact >= 0.99, answers
    logs.fail_over()


def wait_until_compacted(contents: Contents, topic: str) -> None:
    """Each key is there once."""
    wait_until(
        lambda: len(contents.read(topic)) == SUPERSEDED + OTHERS + 1, f"{topic} is compacted"
    )


def found_by_time(settings: ClusterSettings, topic: str, records: Iterable[Stored]) -> int:
    """For how many of the records the broker finds one at or after their times."""
    requests = [FirstAtTime(TopicPartition(topic, 0), record.timestamp_ms) for record in records]
    with KafkaCluster(settings) as cluster:
        answers = cluster.first_at_times(requests, Isolation.READ_COMMITTED)
    return sum(answer is not None for answer in answers.values())
