"""The applications that read: consumers of the groups, on the source and on the target."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor
from contextlib import ExitStack, closing, contextmanager

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition

from tsoffset.errors import EmbeddedError
from tsoffset.lab.demo.clusters import Clusters, remote
from tsoffset.lab.demo.topics import (
    COMPACTED,
    PARTITIONS,
    TOPICS,
    DemoGroup,
    DemoRecord,
    Stand,
    TopicAndPartition,
)
from tsoffset.lab.demo.verdict import Logs, Read
from tsoffset.lab.embedded import Access

_TIMEOUT_SECONDS = 90.0
_POLL_MS = 100
_POLL_RECORDS = 2_000

Reads = Mapping[int, Read]
"""The records that a group's consumer got, by partition."""


class Consumers:
    """The consumers of all groups.

    `processed` has the values that each group has processed so far, on either cluster, by group and
    source partition.
    """

    def __init__(self, clusters: Clusters, pool: Executor, stack: ExitStack) -> None:
        """Consumers that stay are closed with `stack`."""
        self.processed: dict[tuple[str, TopicAndPartition], AbstractSet[bytes]] = {}
        self._members: dict[str, KafkaConsumer] = {}
        self._clusters = clusters
        self._pool = pool
        self._stack = stack

    def read_at_source(
        self, groups: Sequence[DemoGroup], written: Mapping[TopicAndPartition, Sequence[DemoRecord]]
    ) -> None:
        """Each group reads up to its offset, commits, and leaves."""

        def read(group: DemoGroup) -> None:
            topic = group.topic.name
            with _member(self._clusters.at_source, group.name, topic) as consumer:
                up_to = stops(group.at, topic, written)
                self._take_down(group, _read_and_commit(consumer, up_to, group.metadata))

        list(self._pool.map(read, groups))

    def read_at_target(self, group: DemoGroup) -> None:
        """A group reads on the target before the sync, and leaves unless it stays a member."""
        cluster, topic = self._clusters.at_target, remote(group.topic.name)
        up_to = stops(group.on_target, topic, read_log(cluster, [topic]))
        with ExitStack() as leaving:
            consumer = leaving.enter_context(_member(cluster, group.name, topic))
            self._take_down(group, _read_and_commit(consumer, up_to))
            if group.member:
                self._members[group.name] = consumer
                self._stack.push(leaving.pop_all())

    def work_at_target(self, groups: Sequence[DemoGroup], most: int) -> dict[str, int]:
        """Each group continues on the target from its committed offsets, up to `most` records of
        each partition, commits, and leaves; returns how many each has read."""
        cluster = self._clusters.at_target
        log = read_log(cluster, {remote(group.topic.name) for group in groups})

        def read(group: DemoGroup) -> int:
            topic = remote(group.topic.name)
            with _member(cluster, group.name, topic) as consumer:
                up_to: dict[int, int | None] = {}
                for partition in consumer.assignment():
                    start = consumer.committed(partition) or 0
                    ahead = [e.offset for e in log[topic, partition.partition] if e.offset >= start]
                    up_to[partition.partition] = ahead[most] if len(ahead) > most else None
                reads = _read_and_commit(consumer, up_to, group.metadata)
                self._take_down(group, reads)
            return sum(len(read.entries) for read in reads.values())

        return dict(
            zip((group.name for group in groups), self._pool.map(read, groups), strict=True)
        )

    def stay(self) -> None:
        """Members that stay poll, to remain in their groups."""
        for consumer in self._members.values():
            consumer.poll(timeout_ms=0)

    def go_on(self, groups: Sequence[DemoGroup], *, at_source: bool = False) -> Iterable[Reads]:
        """Each group reads on the target to its end, or on the source, where no member has stayed.

        Nothing is committed, so that the groups can be examined later.
        """
        cluster = self._clusters.at_source if at_source else self._clusters.at_target

        def read(group: DemoGroup) -> Reads:
            if group.name in self._members and not at_source:
                return _read_on(self._members[group.name])
            topic = group.topic.name if at_source else remote(group.topic.name)
            with _member(cluster, group.name, topic) as consumer:
                return _read_on(consumer)

        return self._pool.map(read, groups)

    def logs(self) -> dict[TopicAndPartition, Logs]:
        """The content of both clusters now, by source partition."""
        clusters = self._clusters
        source = read_log(clusters.at_source, [topic.name for topic in TOPICS])
        target = read_log(clusters.at_target, [remote(topic.name) for topic in TOPICS])
        return {
            (topic, partition): Logs(entries, target[remote(topic), partition], topic in COMPACTED)
            for (topic, partition), entries in source.items()
        }

    def _take_down(self, group: DemoGroup, reads: Reads) -> None:
        for partition, read in reads.items():
            key = group.name, (group.topic.name, partition)
            values = {entry.value for entry in read.entries}
            self.processed[key] = self.processed.get(key, frozenset()) | values


def read_log(
    cluster: Access, topics: Iterable[str]
) -> dict[TopicAndPartition, tuple[DemoRecord, ...]]:
    """All committed data records of the topics, by topic and partition."""
    with closing(
        KafkaConsumer(
            **cluster.settings(),
            isolation_level="read_committed",
            enable_auto_commit=False,
            max_poll_records=_POLL_RECORDS,
        )
    ) as consumer:
        partitions = [
            TopicPartition(topic, partition)
            for topic in topics
            for partition in sorted(consumer.partitions_for_topic(topic) or ())
        ]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        found = _read(consumer, consumer.end_offsets(partitions))
    return {(partition.topic, partition.partition): entries for partition, entries in found.items()}


@contextmanager
def _member(cluster: Access, group: str, topic: str) -> Iterator[KafkaConsumer]:
    """A consumer that has joined its group, alone, and has all partitions of the topic.

    Without a committed offset it begins at the log's start; it commits only on request.
    """
    with closing(
        KafkaConsumer(
            **cluster.settings(),
            group_id=group,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=_POLL_RECORDS,
            # Closing a consumer takes as long as a fetch in flight.
            fetch_max_wait_ms=_POLL_MS,
            # After a long pause between polls kafka-python 3.0 may fetch nothing in a session.
            enable_incremental_fetch_sessions=False,
        )
    ) as consumer:
        consumer.subscribe([topic], listener=_FromTheStart(consumer))
        # kafka-python 3.0 forgets a join that a short poll interrupts. This poll ends with the
        # first record, which is dropped: each reading seeks to its start.
        consumer.poll(timeout_ms=int(_TIMEOUT_SECONDS * 1_000), max_records=1)
        if not consumer.assignment():
            raise _not_done(f"{group} joins {topic}")
        yield consumer


class _FromTheStart(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka is untyped
    """Lets the first poll find a record, also if the group has read all of them."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None: ...

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Seek to where records are; the first assignment may have no partition."""
        if assigned:
            self._consumer.seek_to_beginning(*assigned)


def stops(
    stand: Stand, topic: str, log: Mapping[TopicAndPartition, Sequence[DemoRecord]]
) -> dict[int, int | None]:
    """By partition, the first offset that a group does not process; None if it processes all."""
    each = stand if isinstance(stand, tuple) else (stand,) * PARTITIONS
    return {
        number: None if at is None else log[topic, number][at].offset
        for number, at in enumerate(each)
    }


def _read_and_commit(
    consumer: KafkaConsumer, up_to: Mapping[int, int | None], metadata: str = ""
) -> Reads:
    """Read up to these offsets, and commit them for the group."""
    reads = _read_on(consumer, up_to)
    commits = {}
    for partition in consumer.assignment():
        read = reads[partition.partition]
        at = consumer.position(partition)
        if up_to[partition.partition] is not None:
            # The consumer has not seen later offsets: it commits behind its last record then.
            at = read.entries[-1].offset + 1 if read.entries else read.start
        commits[partition] = OffsetAndMetadata(at, metadata, -1)
    consumer.commit(commits)
    return reads


def _read_on(consumer: KafkaConsumer, up_to: Mapping[int, int | None] | None = None) -> Reads:
    """Read each partition from the group's committed offset up to an offset (not included), or to
    the end."""
    partitions = sorted(consumer.assignment())
    ends = consumer.end_offsets(partitions)
    starts = consumer.beginning_offsets(partitions)
    metadata = dict.fromkeys(partitions, "")
    for partition in partitions:
        commit = consumer.committed(partition, metadata=True)
        if commit is not None:
            # Below the log's start, the consumer's reset decides.
            starts[partition] = max(commit.offset, starts[partition])
            metadata[partition] = commit.metadata
        consumer.seek(partition, starts[partition])
        stop = (up_to or {}).get(partition.partition)
        if stop is not None:
            ends[partition] = stop
    found = _read(consumer, ends)
    return {
        partition.partition: Read(starts[partition], found[partition], metadata[partition])
        for partition in partitions
    }


def _read(
    consumer: KafkaConsumer, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, tuple[DemoRecord, ...]]:
    """Read from the consumer's position up to the given offsets."""
    found: dict[TopicPartition, list[DemoRecord]] = {partition: [] for partition in ends}
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while behind := [
        partition for partition in ends if consumer.position(partition) < ends[partition]
    ]:
        if time.monotonic() > deadline:
            raise _not_done(
                "read "
                + ", ".join(f"{partition.topic}-{partition.partition}" for partition in behind)
            )
        for partition, records in consumer.poll(timeout_ms=_POLL_MS).items():
            found[partition] += [
                DemoRecord(record.offset, record.key, record.value)
                for record in records
                if record.offset < ends[partition]
            ]
    return {partition: tuple(entries) for partition, entries in found.items()}


def _not_done(what: str) -> EmbeddedError:
    return EmbeddedError(
        f"{what}: not done after {_TIMEOUT_SECONDS:g} s; see the brokers' logs, or try again on a "
        "machine that is less busy"
    )
