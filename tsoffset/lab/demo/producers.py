"""The applications that write to the source: plain producers and one with transactions."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from kafka import IsolationLevel, KafkaAdminClient, KafkaProducer, OffsetSpec, TopicPartition

from tsoffset.lab.demo.clusters import Clusters
from tsoffset.lab.demo.topics import PARTITIONS, DemoRecord, DemoTopic, Fresh, TopicAndPartition

_TIMEOUT_SECONDS = 60.0
_TRANSACTION = 25
_ABORTED_EVERY = 4
# Small batches, so that equal timestamps and closed segments begin and end anywhere.
_FLUSH_EVERY = 190


class Source:
    """The topics of a cluster, to be created and filled; `written` has the records that consumers
    can get."""

    def __init__(self, clusters: Clusters, start_ms: int) -> None:
        self.written: dict[TopicAndPartition, list[DemoRecord]] = {}
        self.aborted = 0
        self._broker = clusters.source
        self._client = clusters.at_source.settings()
        self._start_ms = start_ms
        self._admin = KafkaAdminClient(**self._client)

    def close(self) -> None:
        self._admin.close()

    def create(self, topics: Iterable[DemoTopic]) -> None:
        """Create the topics, and wait until each partition's leader answers."""
        wanted: Mapping[str, Any] = {
            topic.name: {
                "num_partitions": PARTITIONS,
                "replication_factor": 1,
                "configs": dict(topic.configs),
            }
            for topic in topics
        }
        self._admin.create_topics(wanted, wait_for_metadata=True)
        partitions = [
            TopicPartition(name, number) for name in wanted for number in range(PARTITIONS)
        ]
        # A leader is named before it serves; this waits until it answers.
        self._admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
        self.written.update(
            {(partition.topic, partition.partition): [] for partition in partitions}
        )

    def write(self, topic: DemoTopic, until: Iterable[int]) -> None:
        """Write each partition's records up to the number in `until`; existing ones are not written
        again. Transactions are written whole."""
        if topic.transactional:
            self._write_transactions(topic)
            return
        with closing(self._producer()) as producer:
            for partition, end in enumerate(until):
                there = self.written[topic.name, partition]
                records = list(topic.fresh(partition, len(there), end, self._start_ms))
                for at in range(0, len(records), _FLUSH_EVERY):
                    there += _send(producer, topic, partition, records[at : at + _FLUSH_EVERY])

    def delete_head(self, topic: DemoTopic) -> None:
        partitions = {
            TopicPartition(topic.name, partition): count
            for partition, count in enumerate(topic.deleted)
        }
        self._admin.delete_records(partitions)

    def _write_transactions(self, topic: DemoTopic) -> None:
        """Transactions over all partitions; every fourth one is aborted, and written again."""
        with closing(self._producer(transactional_id=f"{topic.name}-service")) as producer:
            producer.init_transactions()
            for number, first in enumerate(range(0, topic.records, _TRANSACTION), start=1):
                end = min(first + _TRANSACTION, topic.records)
                if number % _ABORTED_EVERY == 0:
                    aborted = self._transaction(producer, topic, first, end)
                    producer.abort_transaction()
                    self.aborted += sum(map(len, aborted))
                written = self._transaction(producer, topic, first, end)
                producer.commit_transaction()
                for partition, entries in enumerate(written):
                    self.written[topic.name, partition] += entries
        self._wait_for_markers(topic)

    def _transaction(
        self, producer: KafkaProducer, topic: DemoTopic, first: int, end: int
    ) -> list[list[DemoRecord]]:
        producer.begin_transaction()
        return [
            _send(producer, topic, partition, topic.fresh(partition, first, end, self._start_ms))
            for partition in range(PARTITIONS)
        ]

    def _wait_for_markers(self, topic: DemoTopic) -> None:
        """Wait until the last transaction is visible: its commit is answered before."""
        partitions = [TopicPartition(topic.name, partition) for partition in range(PARTITIONS)]

        def ends(isolation: IsolationLevel) -> list[int]:
            asked = dict.fromkeys(partitions, OffsetSpec.LATEST)
            found = self._admin.list_partition_offsets(asked, isolation_level=isolation)
            return [found[partition].offset for partition in partitions]

        def missing() -> str | None:
            over = ends(IsolationLevel.READ_COMMITTED) == ends(IsolationLevel.READ_UNCOMMITTED)
            return None if over else "its last transaction is not over"

        self._broker.wait_until(missing, seconds=_TIMEOUT_SECONDS, doing=f"write {topic.name}")

    def _producer(self, **settings: Any) -> KafkaProducer:
        return KafkaProducer(**self._client, linger_ms=5, **settings)


def _send(
    producer: KafkaProducer, topic: DemoTopic, partition: int, records: Iterable[Fresh]
) -> list[DemoRecord]:
    """Write the records, and return them with their offsets."""
    sent = [
        (
            record,
            producer.send(
                topic.name,
                key=record.key,
                value=record.value,
                partition=partition,
                timestamp_ms=record.timestamp_ms,
            ),
        )
        for record in records
    ]
    producer.flush(_TIMEOUT_SECONDS)
    return [
        DemoRecord(future.get(_TIMEOUT_SECONDS).offset, record.key, record.value)
        for record, future in sent
    ]
