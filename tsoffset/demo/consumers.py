"""The applications that read: consumers of the groups, on the source and on the target."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tsoffset.demo.logs import Entry
from tsoffset.errors import EmbeddedError

_PATIENCE_SECONDS = 90.0
_POLL_MS = 100
_POLL_RECORDS = 2_000


@dataclass(frozen=True, slots=True)
class Read:
    """What a consumer got of one partition: all from `start` to the offset before `next`.

    `metadata` is that of the commit it began at.
    """

    start: int
    next: int
    entries: tuple[Entry, ...]
    metadata: str = ""


@contextmanager
def member(bootstrap: str, group: str, topic: str) -> Iterator[KafkaConsumer]:
    """A consumer that has joined its group, alone, and got all partitions of the topic.

    Without a commit it begins at the log's start; it commits only what it is told to.
    """
    with closing(
        KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=_POLL_RECORDS,
            # To close a consumer takes as long as the fetch that is under way.
            fetch_max_wait_ms=_POLL_MS,
            # After a long pause between polls kafka-python 3.0 may fetch nothing in a session.
            enable_incremental_fetch_sessions=False,
        )
    ) as consumer:
        consumer.subscribe([topic], listener=_FromTheStart(consumer))
        # What a short poll interrupts while the group is joined, kafka-python 3.0 forgets.
        # It ends with the first record, which is dropped: each reading seeks to its start.
        consumer.poll(timeout_ms=int(_PATIENCE_SECONDS * 1_000), max_records=1)
        if not consumer.assignment():
            raise _not_done(f"{group} joins {topic}")
        yield consumer


class _FromTheStart(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka is untyped
    """Lets the first poll find a record, also where the group has read all of them."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Nothing to be done."""

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Go to where there are records; at first it may be given no partition at all."""
        if assigned:
            self._consumer.seek_to_beginning(*assigned)


def read_on(
    consumer: KafkaConsumer, stops: Mapping[int, int | None] | None = None
) -> dict[int, Read]:
    """Read each partition from the group's commit up to its stop (which is not read), or to
    the end where there is none; by partition."""
    places = sorted(consumer.assignment())
    ends = consumer.end_offsets(places)
    starts = consumer.beginning_offsets(places)
    metadata = dict.fromkeys(places, "")
    for place in places:
        commit = consumer.committed(place, metadata=True)
        if commit is not None:
            # Below the log's start the consumer's reset takes it there.
            starts[place] = max(commit.offset, starts[place])
            metadata[place] = commit.metadata
        consumer.seek(place, starts[place])
        stop = None if stops is None else stops[place.partition]
        if stop is not None:
            ends[place] = min(stop, ends[place])
    found = _read(consumer, ends)
    read = {}
    for place in places:
        entries = found[place]
        at = ends[place]
        if stops is not None and stops[place.partition] is not None:
            # It has not seen what follows: a consumer commits behind its last record then.
            at = entries[-1].offset + 1 if entries else starts[place]
        read[place.partition] = Read(starts[place], at, entries, metadata[place])
    return read


def commit(consumer: KafkaConsumer, read: Mapping[int, Read], metadata: str = "") -> None:
    """Commit what was read, for the group that the consumer is a member of."""
    consumer.commit(
        {
            place: OffsetAndMetadata(read[place.partition].next, metadata, -1)
            for place in consumer.assignment()
        }
    )


def topic_names(bootstrap: str) -> set[str]:
    """The topics of a cluster."""
    with closing(KafkaConsumer(bootstrap_servers=bootstrap)) as consumer:
        return set(consumer.topics())


def read_log(bootstrap: str, topics: Iterable[str]) -> dict[tuple[str, int], tuple[Entry, ...]]:
    """All committed data records of the topics, by topic and partition."""
    with closing(
        KafkaConsumer(
            bootstrap_servers=bootstrap,
            isolation_level="read_committed",
            enable_auto_commit=False,
            max_poll_records=_POLL_RECORDS,
        )
    ) as consumer:
        places = [
            TopicPartition(topic, partition)
            for topic in topics
            for partition in sorted(consumer.partitions_for_topic(topic) or ())
        ]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        found = _read(consumer, consumer.end_offsets(places))
    return {(place.topic, place.partition): entries for place, entries in found.items()}


def _read(
    consumer: KafkaConsumer, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, tuple[Entry, ...]]:
    """Read from where the consumer stands up to the offsets given."""
    found: dict[TopicPartition, list[Entry]] = {place: [] for place in ends}
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while behind := [place for place in ends if consumer.position(place) < ends[place]]:
        if time.monotonic() > deadline:
            raise _not_done(
                "read " + ", ".join(f"{place.topic}-{place.partition}" for place in behind)
            )
        for place, records in consumer.poll(timeout_ms=_POLL_MS).items():
            found[place] += [
                Entry(record.offset, record.key, record.value)
                for record in records
                if record.offset < ends[place]
            ]
    return {place: tuple(entries) for place, entries in found.items()}


def _not_done(what: str) -> EmbeddedError:
    return EmbeddedError(
        f"{what}: not done after {_PATIENCE_SECONDS:g} s; see the brokers' logs, or try again on a "
        "machine that is less busy"
    )
