"""`tsoffset check`: what is read of the clusters."""

from tsoffset.commands.check.survey import stamps
from tsoffset.model import TimestampType, TopicDescription
from tsoffset.testing.memory_cluster import MemoryCluster, Message


def test_who_stamps_is_seen_past_the_control_records_at_the_end():
    """A log that ends in transaction markers is read further back; an empty one says nothing."""
    cluster = MemoryCluster("B")
    for topic in ("marked", "empty", "emptied"):
        cluster.create_topic(topic, 2)
    for number in range(30):
        transaction = cluster.log("marked", 1).begin()
        transaction.append([Message(number, b"k", b"v")])
        if number < 10:
            transaction.commit()
        else:
            transaction.abort()
    emptied = cluster.log("emptied")
    emptied.append([Message(1, b"k", b"v")] * 3)
    emptied.remove(range(3), keep_empty_batches=True)
    topics = [t for t in cluster.topics().values() if isinstance(t, TopicDescription)]
    assert stamps(cluster, topics) == {
        "marked": TimestampType.CREATE_TIME,
        "empty": None,
        "emptied": None,
    }
