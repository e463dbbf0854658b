"""Whether a replicator has copied everything: judged by the two clusters, not by its word."""

from collections.abc import Mapping
from contextlib import closing
from types import TracebackType
from typing import Self

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

# Long enough that an answer of the broker ends the wait, short enough to look up again.
_POLL_MS = 100
_RECORDS_A_POLL = 10_000


def partitions_with_leader(bootstrap: str, topic: str) -> set[int]:
    """Return the partitions of `topic` that can be read; none if there is no such topic."""
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        (found,) = admin.describe_topics([topic])
    return {
        partition["partition_index"]
        for partition in found["partitions"]
        if partition["error_code"] == 0 and partition["leader_id"] >= 0
    }


def topic_missing(bootstrap: str, topic: str, partitions: int) -> str | None:
    """None if `topic` is there with at least `partitions` partitions, all with a leader."""
    try:
        found = len(partitions_with_leader(bootstrap, topic))
    except KafkaError as error:
        return f"topic {topic} on {bootstrap}: {error!r}"
    if found < partitions:
        return f"topic {topic} on {bootstrap} has {found} of {partitions} partitions"
    return None


class Log:
    """What has been read of one cluster's topics, from their start on."""

    def __init__(self, bootstrap: str, topics: list[str], isolation: str) -> None:
        """Prepare to read `topics`, which must be there."""
        self._places = [
            TopicPartition(topic, partition)
            for topic in topics
            for partition in sorted(partitions_with_leader(bootstrap, topic))
        ]
        self._counts = dict.fromkeys(self._places, 0)
        self._last: dict[TopicPartition, tuple[bytes | None, bytes | None]] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            isolation_level=isolation,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_records=_RECORDS_A_POLL,
        )
        self._consumer.assign(self._places)

    def read_on(self) -> None:
        """Read what came since, up to the end that the log has now."""
        self._ends = self._consumer.end_offsets(self._places)
        while any(self._consumer.position(place) < end for place, end in self._ends.items()):
            for place, records in self._consumer.poll(timeout_ms=_POLL_MS).items():
                self._counts[place] += len(records)
                self._last[place] = (records[-1].key, records[-1].value)

    def counts(self, topic: str) -> dict[int, int]:
        """Return how many data records each partition of `topic` has shown so far."""
        return {
            place.partition: count for place, count in self._counts.items() if place.topic == topic
        }

    def last(self, topic: str, partition: int) -> tuple[bytes | None, bytes | None] | None:
        """Return key and value of the last data record; None if there was none."""
        return self._last.get(TopicPartition(topic, partition))

    def end(self, topic: str, partition: int) -> int:
        """Return the log's end; 0 where there is no such partition."""
        return self._ends.get(TopicPartition(topic, partition), 0)

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()


class Copying:
    """A question that can be asked again and again: is everything copied by now?

    A partition counts as copied if the target's log has taken at least as many records
    as the source holds, and both end with the same key and value. So it does not matter
    that offsets differ, that the source holds transaction markers, that the replicator
    repeated a stretch, or that the target was trimmed or compacted since.
    """

    def __init__(
        self,
        source_bootstrap: str,
        target_bootstrap: str,
        topics: Mapping[str, str],
        source_isolation: str,
    ) -> None:
        """Prepare the question for `topics`, the name on the source to that on the target."""
        self._topics = dict(topics)
        self._source = Log(source_bootstrap, list(topics), source_isolation)
        try:
            self._target = Log(target_bootstrap, list(topics.values()), "read_committed")
        except BaseException:
            self._source.close()
            raise

    def missing(self) -> str | None:
        """Return which partition is behind, and by how much; None if none is."""
        self._source.read_on()
        self._target.read_on()
        for topic, copy in self._topics.items():
            for partition, wanted in self._source.counts(topic).items():
                copied = self._target.end(copy, partition)
                if copied < wanted:
                    return f"{copy}-{partition} has {copied} of {wanted} records"
                if self._source.last(topic, partition) != self._target.last(copy, partition):
                    return f"{copy}-{partition} does not end with the last record of the source"
        return None

    def __enter__(self) -> Self:
        """Return the question."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        self._source.close()
        self._target.close()
