"""Whether a replicator has copied everything: judged by the two clusters, not by its word."""

from collections.abc import Mapping
from contextlib import closing

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from tsoffset.testing.embedded.security import Access

# Long enough that an answer of the broker ends the wait, short enough to look up again.
_POLL_MS = 100
_RECORDS_A_POLL = 10_000


def partitions_with_leader(cluster: Access, topic: str) -> set[int]:
    """Return the partitions of `topic` that can be read; none if there is no such topic."""
    with closing(KafkaAdminClient(**cluster.settings())) as admin:
        (found,) = admin.describe_topics([topic])
    return {
        partition["partition_index"]
        for partition in found["partitions"]
        if partition["error_code"] == 0 and partition["leader_id"] >= 0
    }


def topic_missing(cluster: Access, topic: str, partitions: int) -> str | None:
    """None if `topic` is there with at least `partitions` partitions, all with a leader."""
    try:
        found = len(partitions_with_leader(cluster, topic))
    except KafkaError as error:
        return f"topic {topic} on {cluster.bootstrap}: {error!r}"
    if found < partitions:
        return f"topic {topic} on {cluster.bootstrap} has {found} of {partitions} partitions"
    return None


class Log:
    """What has been read of one cluster's topics, from their start on, by topic and partition.

    `counts` are data records, `last` holds key and value of the last one where there is any,
    and `ends` are the logs' ends.
    """

    def __init__(self, cluster: Access, topics: list[str], isolation: str) -> None:
        """Prepare to read `topics`, which must be there."""
        places = [
            TopicPartition(topic, partition)
            for topic in topics
            for partition in sorted(partitions_with_leader(cluster, topic))
        ]
        self.counts = dict.fromkeys(places, 0)
        self.last: dict[TopicPartition, tuple[bytes | None, bytes | None]] = {}
        self.ends: dict[TopicPartition, int] = {}
        self._consumer = KafkaConsumer(
            **cluster.settings(),
            isolation_level=isolation,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_records=_RECORDS_A_POLL,
        )
        self._consumer.assign(places)

    def read_on(self) -> None:
        """Read what came since, up to the end that the log has now."""
        self.ends = self._consumer.end_offsets(list(self.counts))
        while any(self._consumer.position(place) < end for place, end in self.ends.items()):
            for place, records in self._consumer.poll(timeout_ms=_POLL_MS).items():
                self.counts[place] += len(records)
                self.last[place] = (records[-1].key, records[-1].value)

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()


def copies_missing(source: Log, target: Log, topics: Mapping[str, str]) -> str | None:
    """Return which partition of the copies is behind, and by how much; None if none is.

    `topics` leads from names on the source to those on the target. A partition counts as
    copied if the target's log has taken at least as many records as the source holds, and
    both end with the same key and value. So it does not matter that offsets differ, that the
    source holds transaction markers, that the replicator repeated a stretch, or that the
    target was trimmed or compacted since.
    """
    source.read_on()
    target.read_on()
    for place, wanted in source.counts.items():
        copy = TopicPartition(topics[place.topic], place.partition)
        copied = target.ends.get(copy, 0)
        if copied < wanted:
            return f"{copy.topic}-{copy.partition} has {copied} of {wanted} records"
        if source.last.get(place) != target.last.get(copy):
            return f"{copy.topic}-{copy.partition} does not end with the last record of the source"
    return None
