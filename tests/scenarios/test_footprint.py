"""What syncing leaves behind on the clusters: commits on the target, and nothing else."""

import pytest
from kafka import TopicPartition
from kafka.admin import OffsetSpec

from tests.producing import Contents
from tests.scenarios.flows import Flows
from tests.scenarios.holdings import COMPACTED, EQUAL_TIMES, ORDERS, TRANSACTIONS
from tsoffset.model import OutcomeKind

pytestmark = pytest.mark.integration


def log_ends(contents: Contents) -> dict[tuple[str, int], int]:
    """The log end of every partition of every topic, internal ones too."""
    places = [
        TopicPartition(topic["name"], partition["partition_index"])
        for topic in contents.admin.describe_topics()
        for partition in topic["partitions"]
    ]
    assert TopicPartition("__consumer_offsets", 0) in places
    found = contents.admin.list_partition_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
    return {(place.topic, place.partition): answer.offset for place, answer in found.items()}


def test_source_is_as_it_was(estate: Flows) -> None:
    """With MirrorMaker 2 stopped and no consumer running, a sync writes nothing to the source:
    its topics and all log ends, those of `__consumer_offsets` too, are the same after it. On
    the target only `__consumer_offsets` grows; not even that by a plan or a second sync."""
    for number, topic in enumerate((ORDERS, EQUAL_TIMES, COMPACTED, TRANSACTIONS)):
        estate.contents["A"].commit_offsets(f"footprint-{number}", {(topic, 0): 150})
    source, target = (log_ends(estate.contents[alias]) for alias in "AB")
    planned = estate.sync("A->B", "footprint-.*", commit=False)
    assert [row.outcome for row in planned.all] == [OutcomeKind.WOULD_COMMIT] * 4
    assert log_ends(estate.contents["B"]) == target
    rows = estate.sync("A->B", "footprint-.*")
    assert [row.outcome for row in rows.all] == [OutcomeKind.COMMITTED] * 4
    assert log_ends(estate.contents["A"]) == source
    after = log_ends(estate.contents["B"])
    again = estate.sync("A->B", "footprint-.*")
    assert [row.outcome for row in again.all] == [OutcomeKind.UNCHANGED] * 4
    assert log_ends(estate.contents["B"]) == after
    assert after.keys() == target.keys()
    grown = {topic for (topic, partition), end in after.items() if end > target[topic, partition]}
    assert grown == {"__consumer_offsets"}


@pytest.mark.parametrize("alias", ["A", "B", "C", "D"])
def test_no_topic_of_offset_syncs_or_checkpoints(estate: Flows, alias: str) -> None:
    """No translation needs what MirrorMaker 2 writes down about offsets: with
    emit.offset-syncs.enabled=false and checkpoints off there is none of it."""
    topics = estate.contents[alias].admin.list_topics()
    assert "__consumer_offsets" in topics
    assert not [topic for topic in topics if "offset-syncs" in topic or "checkpoints" in topic]
