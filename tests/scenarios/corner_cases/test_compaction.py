"""Compaction, run for real."""

import pytest

from tests.producing import Contents
from tests.scenarios.corner_cases.answers import every, fail_over, judged, logs_of
from tests.scenarios.corner_cases.corners import PLAIN, Corners
from tests.scenarios.corner_cases.holdings import EMPTIED, OTHERS, SUPERSEDED
from tests.scenarios.estate import wait_until
from tsoffset.kafka import KafkaCluster
from tsoffset.model import FirstAtTime, Isolation, TopicPartition
from tsoffset.settings import ClusterSettings

pytestmark = pytest.mark.integration


def test_target_whose_leading_segments_are_empty(corners: Corners) -> None:
    """Where compaction has emptied the leading segment, a time lookup finds nothing for any
    older time, though the records lie right behind: that proves nothing, and groups are still
    translated, nearly all exactly."""
    remote = corners.remote(PLAIN, EMPTIED)
    for contents, topic in zip(corners.sides(PLAIN), (EMPTIED, remote), strict=True):
        wait_until_compacted(contents, topic)
    logs = logs_of(corners, PLAIN, EMPTIED)
    assert logs.not_mirrored == set()
    target = corners.settings.flow(PLAIN).target
    times = [record.timestamp_ms for record in logs.target[:-1]]
    assert not any(finds(target, remote, time_ms) for time_ms in (times[0], times[-1]))
    answers = judged(corners, PLAIN, EMPTIED, every(logs, 5), logs)
    assert answers.exact >= 0.99 * answers.positions
    fail_over(corners, PLAIN, EMPTIED, logs)


def wait_until_compacted(contents: Contents, topic: str) -> None:
    """Each key is there once."""
    wait_until(
        lambda: len(contents.read(topic)) == SUPERSEDED + OTHERS + 1, f"{topic} is compacted"
    )


def finds(settings: ClusterSettings, topic: str, timestamp_ms: int) -> bool:
    """Whether the broker finds a record at or after that time."""
    request = FirstAtTime(TopicPartition(topic, 0), timestamp_ms)
    with KafkaCluster(settings) as cluster:
        return cluster.first_at_times([request], Isolation.READ_COMMITTED)[request] is not None
