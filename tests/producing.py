"""Exact contents for real topics: every timestamp, batch and marker as the test says."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import OffsetSpec
from kafka.consumer.fetcher import IsolationLevel
from kafka.errors import (
    IncompatibleBrokerVersion,
    NoError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.protocol.producer import ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.structs import OffsetAndMetadata

from tests.waiting import wait_until
from tsoffset.lab.embedded import Access

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
READ_SECONDS = 60
# How long a transaction may stay open: the most that a broker allows, for slow machines.
OPEN_MS = 900_000


@dataclass(frozen=True, slots=True)
class Written:
    """A record as a producer sends it; the timestamp may be negative, key and value None."""

    timestamp_ms: int
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as a consumer gets it."""

    offset: int
    timestamp_ms: int
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def numbered(
    count: int, *, first: int = 0, start_ms: int | None = None, step_ms: int = 1
) -> list[Written]:
    """Return `count` records with distinct values, stamped from `start_ms` (now) on.

    With `step_ms=0` all have one timestamp.
    """
    start_ms = int(time.time() * 1000) if start_ms is None else start_ms
    return [
        Written(start_ms + n * step_ms, b"value-%d" % (first + n), b"key-%d" % (first + n))
        for n in range(count)
    ]


class Transaction:
    """A transaction that is still open; `commit` or `abort` ends it, on every partition."""

    def __init__(self, producer: KafkaProducer, ended: Callable[[], bool]) -> None:
        self._producer = producer
        self._ended = ended

    def add(
        self, topic: str, records: Iterable[Written], *, partition: int = 0, batch: int = 100
    ) -> list[int]:
        """Write `records` in batches of `batch`; return their offsets."""
        records = list(records)
        offsets = []
        for start in range(0, len(records), batch):
            sent = [
                self._producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records[start : start + batch]
            ]
            self._producer.flush(READ_SECONDS)
            offsets += [future.get(READ_SECONDS).offset for future in sent]
        return offsets

    def commit(self) -> None:
        self._end(self._producer.commit_transaction)

    def abort(self) -> None:
        self._end(self._producer.abort_transaction)

    def _end(self, end: Callable[[], None]) -> None:
        """End it, wait for the markers, and drop the producer."""
        with closing(self._producer):
            end()
        wait_until(self._ended, "the transaction's markers are written")


class Contents:
    """The topics and groups of one cluster, to be filled and read by a test."""

    def __init__(self, cluster: str | Access) -> None:
        access = Access.of(cluster)
        self.bootstrap, self._client = access.bootstrap, access.settings()
        self.admin = KafkaAdminClient(**self._client)

    def close(self) -> None:
        self.admin.close()

    def create_topic(
        self,
        topic: str,
        partitions: int = 1,
        *,
        configs: Mapping[str, str] | None = None,
        replicas: Mapping[int, Sequence[int]] | None = None,
    ) -> str:
        """Create `topic`, wait until each partition's leader answers, and return the name.

        `replicas` names the nodes of each partition; it takes the place of `partitions`.
        """
        wanted: dict[str, object] = {"configs": dict(configs or {})}
        if replicas is None:
            wanted |= {"num_partitions": partitions, "replication_factor": 1}
        else:
            wanted["assignments"] = {number: list(nodes) for number, nodes in replicas.items()}
        self.admin.create_topics({topic: wanted}, wait_for_metadata=True)
        numbers = range(partitions) if replicas is None else replicas
        places = [TopicPartition(topic, number) for number in numbers]

        def known() -> bool:
            # Brokers name a leader before it has taken office; this asks until it answers.
            try:
                self.admin.list_partition_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
            except UnknownTopicOrPartitionError:
                # One of several brokers has not heard of the topic yet.
                return False
            return True

        wait_until(known, f"{topic} is known")
        return topic

    def delete_topic(self, topic: str) -> None:
        """Delete `topic`, and wait until there could be a new one of that name."""
        self.admin.delete_topics([topic])

        def gone() -> bool:
            if topic in self.admin.list_topics():
                return False
            try:
                # ZooKeeper may hold it for some time after the brokers have forgotten it.
                self.admin.create_topics([topic], validate_only=True)
            except TopicAlreadyExistsError:
                return False
            return True

        wait_until(gone, f"{topic} is gone")

    def produce(
        self,
        topic: str,
        records: Iterable[Written],
        *,
        partition: int = 0,
        batch: int | Sequence[int] = 100,
        compression: str = "none",
    ) -> list[int]:
        """Write `records` and return their offsets.

        `batch` is the size of every batch but the last, or the sizes one by one. The
        batches are built here, so their limits are exact, a record may have neither key
        nor value, and its timestamp may be negative.
        """
        records = list(records)
        leader = self._leader(topic, partition)
        offsets: list[int] = []
        for some in _cut(records, batch):
            request = produce_request(topic, partition, batch_of(some, CODECS[compression]))
            first = first_offset(self.admin._manager.run(self._send, request, leader))
            offsets += range(first, first + len(some))
        return offsets

    def begin_transaction(self, transactional_id: str) -> Transaction:
        """Open a transaction; take an id of its own for each that is open at once."""
        producer = KafkaProducer(
            **self._client,
            transactional_id=transactional_id,
            transaction_timeout_ms=OPEN_MS,
            # A batch ends where the test says, at a flush.
            linger_ms=600_000,
            delivery_timeout_ms=700_000,
            batch_size=10_000_000,
            max_request_size=10_000_000,
        )
        producer.init_transactions()
        producer.begin_transaction()

        def ended() -> bool:
            # The answer to a commit comes before its markers are in the logs.
            try:
                found = self.admin.describe_transactions([transactional_id])[transactional_id]
            except IncompatibleBrokerVersion:
                # Brokers before 3.0 do not tell.
                return True
            return not found.state.value.startswith("Prepare")

        return Transaction(producer, ended)

    def commit_offsets(
        self, group: str, offsets: Mapping[tuple[str, int], int | tuple[int, str]]
    ) -> None:
        """Commit for `group`: (topic, partition) to an offset, or to offset and metadata."""
        wanted = {}
        for (topic, partition), offset in offsets.items():
            number, metadata = (offset, "") if isinstance(offset, int) else offset
            wanted[TopicPartition(topic, partition)] = OffsetAndMetadata(number, metadata, None)
        errors = self.admin.alter_group_offsets(group, wanted)
        assert all(error is NoError for error in errors.values()), errors

    def committed_offsets(self, group: str) -> dict[tuple[str, int], tuple[int, str]]:
        """Return what `group` has committed: (topic, partition) to offset and metadata."""
        found = self.admin.list_group_offsets(group)[group]
        return {
            (place.topic, place.partition): (commit.offset, commit.metadata)
            for place, commit in found.items()
        }

    def log_range(
        self, topic: str, partition: int = 0, *, isolation: str = "read_uncommitted"
    ) -> tuple[int, int]:
        """Return where the log starts and ends; the last stable offset if `read_committed`."""
        place = TopicPartition(topic, partition)
        level = IsolationLevel[isolation.upper()]
        start, end = (
            self.admin.list_partition_offsets({place: spec}, isolation_level=level)[place].offset
            for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        )
        return start, end

    def delete_records(self, topic: str, before: int, *, partition: int = 0) -> None:
        self.admin.delete_records({TopicPartition(topic, partition): before})

    def read(
        self,
        topic: str,
        partition: int = 0,
        *,
        start: int | None = None,
        isolation: str = "read_uncommitted",
        group: str | None = None,
    ) -> list[Stored]:
        """Return all data records from `start` (the log's start) to the log's end; those that a
        consumer of a `group` gets begin at its committed offset, without which this fails."""
        place = TopicPartition(topic, partition)
        first, end = self.log_range(topic, partition, isolation=isolation)
        records: list[Stored] = []
        with self._consumer(isolation, group) as consumer:
            consumer.assign([place])
            if group is None:
                consumer.seek(place, first if start is None else start)

            def complete() -> bool:
                for r in consumer.poll(timeout_ms=200).get(place, ()):
                    headers = tuple(r.headers)
                    records.append(Stored(r.offset, r.timestamp, r.value, r.key, headers))
                return bool(consumer.position(place) >= end)

            if consumer.position(place) < end:
                wait_until(complete, f"{place} is read to {end}")
        return records

    @contextmanager
    def _consumer(self, isolation: str, group: str | None) -> Iterator[KafkaConsumer]:
        with closing(
            KafkaConsumer(
                **self._client,
                group_id=group,
                isolation_level=isolation,
                auto_offset_reset="none",
                enable_auto_commit=False,
                max_poll_records=10_000,
            )
        ) as consumer:
            yield consumer

    def _leader(self, topic: str, partition: int) -> int:
        leaders: list[int] = []

        def named() -> bool:
            # One of several brokers may not have heard of the topic yet.
            (described,) = self.admin.describe_topics([topic])
            leaders[:] = [
                found["leader_id"]
                for found in described["partitions"]
                if found["partition_index"] == partition
            ]
            return bool(leaders)

        wait_until(named, f"{topic}-{partition} has a leader")
        return leaders[0]

    async def _send(self, request: ProduceRequest, node_id: int) -> object:
        return await self.admin._manager.send(request, node_id=node_id)


def _cut(records: list[Written], batch: int | Sequence[int]) -> Iterator[list[Written]]:
    if isinstance(batch, int):
        sizes: Iterable[int] = [batch] * (-(-len(records) // batch))
    else:
        assert sum(batch) == len(records), f"batches {batch} for {len(records)} records"
        sizes = batch
    start = 0
    for size in sizes:
        yield records[start : start + size]
        start += size


def produce_request(topic: str, partition: int, batch: bytes) -> ProduceRequest:
    """A request that writes one batch, for the partition's leader."""
    data = ProduceRequest.TopicProduceData
    part = data.PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[data(name=topic, partition_data=[part])],
        # From version 13 on topics go by their ids.
        max_version=12,
    )


def first_offset(answer: Any) -> int:
    """Where the batch of a produce request lies; fails if it was refused."""
    stored = answer.responses[0].partition_responses[0]
    error = for_code(stored.error_code)
    assert error is NoError, error.__name__
    return int(stored.base_offset)


def batch_of(
    records: Sequence[Written],
    codec: int = CODECS["none"],
    *,
    producer_id: int = -1,
    transactional: bool = False,
) -> bytes:
    """The records as one batch; offsets are counted from 0, which the broker changes."""
    first = 0 if producer_id >= 0 else -1
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=transactional,
        producer_id=producer_id,
        producer_epoch=first,
        base_sequence=first,
        batch_size=1 << 30,
    )
    for number, record in enumerate(records):
        builder.append(number, record.timestamp_ms, record.key, record.value, list(record.headers))
    return bytes(builder.build())
