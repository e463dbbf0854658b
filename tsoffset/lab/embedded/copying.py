"""Whether a replicator has copied everything, judged by the logs of the two clusters."""

from collections.abc import Mapping
from contextlib import closing

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from tsoffset.lab.embedded.security import Access

# Long enough that a broker's answer ends the wait, short enough to check again.
_POLL_MS = 100
_RECORDS_A_POLL = 10_000


def partitions_with_leader(cluster: Access, topic: str) -> set[int]:
    """The partitions of `topic` that can be read; none if it does not exist."""
    with closing(KafkaAdminClient(**cluster.settings())) as admin:
        (found,) = admin.describe_topics([topic])
    return {
        partition["partition_index"]
        for partition in found["partitions"]
        if partition["error_code"] == 0 and partition["leader_id"] >= 0
    }


def topic_missing(cluster: Access, topic: str, partitions: int) -> str | None:
    """None if `topic` exists with at least `partitions` partitions, all with a leader."""
    try:
        found = len(partitions_with_leader(cluster, topic))
    except KafkaError as error:
        return f"topic {topic} on {cluster.bootstrap}: {error!r}"
    if found < partitions:
        return f"topic {topic} on {cluster.bootstrap} has {found} of {partitions} partitions"
    return None


class Log:
    """The records read so far of one cluster's topics, from their start on, by topic and partition.

    `counts` are data records, `last` has key and value of the last one, and `ends` are the logs'
    ends.
    """

    def __init__(self, cluster: Access, topics: list[str], isolation: str) -> None:
        partitions = [
            TopicPartition(topic, partition)
            for topic in topics
            for partition in sorted(partitions_with_leader(cluster, topic))
        ]
        self.counts = dict.fromkeys(partitions, 0)
        self.last: dict[TopicPartition, tuple[bytes | None, bytes | None]] = {}
        self.ends: dict[TopicPartition, int] = {}
        self._consumer = KafkaConsumer(
            **cluster.settings(),
            isolation_level=isolation,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_records=_RECORDS_A_POLL,
        )
        self._consumer.assign(partitions)

    def read_on(self) -> None:
        """Read the new records, up to the log's present end."""
        self.ends = self._consumer.end_offsets(list(self.counts))
        while any(self._consumer.position(partition) < end for partition, end in self.ends.items()):
            for partition, records in self._consumer.poll(timeout_ms=_POLL_MS).items():
                self.counts[partition] += len(records)
                self.last[partition] = (records[-1].key, records[-1].value)

    def close(self) -> None:
        self._consumer.close()


def copies_missing(source: Log, target: Log, topics: Mapping[str, str]) -> str | None:
    """The partition of the copies that is behind, and by how much; None if none is.

    `topics` maps names on the source to names on the target. A partition counts as copied if the
    target's log has taken at least as many records as the source has, and both end with the same
    key and value. So offsets may differ, the source may have transaction markers, the replicator
    may have repeated a part of the log, and the target may have been trimmed or compacted.
    """
    source.read_on()
    target.read_on()
    for partition, wanted in source.counts.items():
        copy = TopicPartition(topics[partition.topic], partition.partition)
        copied = target.ends.get(copy, 0)
        if copied < wanted:
            return f"{copy.topic}-{copy.partition} has {copied} of {wanted} records"
        if source.last.get(partition) != target.last.get(copy):
            return f"{copy.topic}-{copy.partition} does not end with the last record of the source"
    return None
