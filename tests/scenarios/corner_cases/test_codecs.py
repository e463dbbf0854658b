"""Batches of a megabyte in each codec."""

import pytest

from tests.producing import CODECS
from tests.scenarios.corner_cases.corners import LARGE_BATCHES, Corners
from tests.scenarios.corner_cases.holdings import MEGABYTE, megabytes
from tests.scenarios.judging import Logs
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import Isolation, ReadFrom, TopicPartition
from tsoffset.records import Stretch

pytestmark = [pytest.mark.integration, pytest.mark.thorough]


@pytest.mark.parametrize("codec", CODECS)
def test_batches_of_a_megabyte(corners: Corners, codec: str) -> None:
    """Batches of a megabyte on both sides, some of three when unpacked: every position is
    exact, in each codec."""
    topic = megabytes(codec)
    for alias, name in (("big", topic), ("wide", corners.remote(LARGE_BATCHES, topic))):
        assert largest_batch(corners, alias, name) > 0.9 * MEGABYTE
    logs = Logs(corners, LARGE_BATCHES, topic)
    answers = logs.judged(logs.every(7))
    assert answers.exact == 1, answers
    logs.fail_over()


def largest_batch(corners: Corners, alias: str, topic: str) -> int:
    """How many bytes the largest of the batches has, as it lies in the log."""
    flow = corners.settings.flow(LARGE_BATCHES)
    settings = flow.source if alias == flow.source.alias else flow.target
    partition = TopicPartition(topic, 0)
    start, end = corners.contents[alias].log_range(topic)
    largest, offset = 0, start
    with KafkaCluster(settings) as cluster:
        while offset < end:
            request = ReadFrom(partition, offset)
            found = cluster.read([request], Isolation.READ_UNCOMMITTED)[request]
            assert isinstance(found, Stretch)
            largest, offset = max(largest, found.bytes_read), found.end
    return largest
