"""Consumers by a client that this project did not write: librdkafka."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import partial
from importlib.util import find_spec
from random import Random
from typing import Any

from tests.producing import Contents
from tests.scenarios.rounds.plans import Plan
from tests.waiting import wait_until

_SECONDS = 60.0

Offsets = Mapping[int, tuple[int, str]]
"""Partition to a committed offset and its metadata."""


class Way(StrEnum):
    """How a consumer commits."""

    AUTO = auto()  # the client itself, in the background
    ASYNC = auto()  # without waiting for the answer
    SYNC = auto()
    TRANSACTION = auto()  # by a producer, in transactions of which some are aborted
    NEVER = auto()


def metadata_of(group: str, offset: int) -> str:
    """What a consumer that commits itself says with this offset."""
    return f"{group} at {offset}"


class Librdkafka:
    """A consumer of confluent-kafka that has joined its group, reads what is committed, and commits
    in one way, with the leader epoch of the last record that was read."""

    def __init__(
        self, bootstrap: str, group: str, topic: str, partitions: int, way: Way, *, protocol: str
    ) -> None:
        import confluent_kafka

        self._library: Any = confluent_kafka
        self._topic, self._partitions, self._way = topic, partitions, way
        self._epochs: dict[int, int] = {}
        self._ended: set[int] = set()
        self._consumer: Any = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.auto.commit": way is Way.AUTO,
                "auto.commit.interval.ms": 100,
                # With its default, closing commits the offset after a transaction's marker that was
                # fetched, also where the records before the marker were never given out.
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 100,
            }
        )
        self._consumer.subscribe([topic])
        if way is Way.TRANSACTION:
            self._producer: Any = confluent_kafka.Producer(
                {"bootstrap.servers": bootstrap, "transactional.id": group}
            )
            self._producer.init_transactions(_SECONDS)

    def is_assigned(self) -> bool:
        return len(self._consumer.assignment()) == self._partitions

    def poll(self, most: int) -> Sequence[tuple[int, int, bytes]]:
        """Partition, offset and value of the next records."""
        found = []
        for message in self._consumer.consume(most, 0.03):
            error = message.error()
            if error is not None:
                assert error.code() == self._library.KafkaError._PARTITION_EOF, error
                self._ended.add(message.partition())
                continue
            self._epochs[message.partition()] = message.leader_epoch()
            if self._way is Way.AUTO:
                self._consumer.store_offsets(message)
            found.append((message.partition(), message.offset(), message.value()))
        return found

    def commit(self, offsets: Offsets) -> None:
        if self._way is Way.TRANSACTION:
            self._send(offsets)
            self._producer.commit_transaction(_SECONDS)
            return
        asynchronous = self._way is Way.ASYNC
        answer = self._consumer.commit(offsets=self._places(offsets), asynchronous=asynchronous)
        assert all(one.error is None for one in answer or ()), answer

    def abort(self, offsets: Offsets) -> None:
        """Send these in a transaction, and abort it."""
        self._send(offsets)
        self._producer.abort_transaction(_SECONDS)

    def seek(self, offsets: Mapping[int, int]) -> None:
        for partition, offset in offsets.items():
            self._consumer.seek(self._library.TopicPartition(self._topic, partition, offset))

    def is_at_ends(self) -> bool:
        return len(self._ended) == self._partitions

    def close(self) -> None:
        self._consumer.close()

    def _send(self, offsets: Offsets) -> None:
        self._producer.begin_transaction()
        member = self._consumer.consumer_group_metadata()
        self._producer.send_offsets_to_transaction(self._places(offsets), member, _SECONDS)

    def _places(self, offsets: Offsets) -> list[Any]:
        return [
            self._library.TopicPartition(
                self._topic, partition, offset, metadata, self._epochs[partition]
            )
            for partition, (offset, metadata) in offsets.items()
        ]


class ForeignApplication:
    """One group's consumer by such a client, used as `applications.Application` is. The metadata of
    its own commits says which offset of which group they are."""

    def __init__(
        self,
        contents: Contents,
        group: str,
        plan: Plan,
        chance: Random,
        client: Callable[..., Librdkafka],
        way: Way,
    ) -> None:
        self.group = group
        self.way = way
        self.processed: Mapping[int, dict[bytes, int]] = {
            partition: {} for partition in range(plan.partitions)
        }
        self.committed: dict[int, int] = {}
        self._contents, self._plan, self._chance = contents, plan, chance
        self._client = client
        # Of each partition the first record that is not committed, and the next one to read.
        self._open: dict[int, tuple[int, int]] = {}
        self._consumer = client(contents.bootstrap, group, plan.topic, plan.partitions, way)
        self._join()

    def _join(self) -> None:
        def joined() -> bool:
            self._process(1)
            return self._consumer.is_assigned()

        wait_until(joined, f"{self.group} has its partitions")

    def step(self) -> None:
        """Process what there is, and perhaps commit."""
        self._process(self._chance.choice((1, 10, 60, 300)))
        if self._chance.random() < 0.5:
            self._commit()

    def stop(self) -> None:
        """Leave, after a last commit or without one."""
        if not self.committed or self._chance.random() < 0.4:
            self._commit()
        self._consumer.close()
        # A client's commits in the background end with it.
        self.committed = self._acknowledged()

    @contextmanager
    def gone_over(
        self, contents: Contents, topic: str, *, joins: bool
    ) -> Iterator[tuple[None, Mapping[int, Mapping[bytes, int]]]]:
        """As `applications.gone_over`, by the same client."""
        assert not joins
        partitions = len(self.processed)
        consumer = self._client(contents.bootstrap, self.group, topic, partitions, Way.NEVER)
        got: Mapping[int, dict[bytes, int]] = {number: {} for number in range(partitions)}

        def at_the_ends() -> bool:
            for partition, offset, value in consumer.poll(1_000):
                got[partition].setdefault(value, offset)
            return consumer.is_assigned() and consumer.is_at_ends()

        try:
            wait_until(at_the_ends, f"{self.group} has read {topic} to its end")
            yield None, got
        finally:
            consumer.close()

    def _process(self, most: int) -> None:
        for partition, offset, value in self._consumer.poll(most):
            self.processed[partition][value] = offset
            first, _ = self._open.get(partition, (offset, offset))
            self._open[partition] = first, offset + 1

    def _commit(self) -> None:
        if self.way in (Way.AUTO, Way.NEVER) or not self._open:
            return
        offsets = {
            partition: (behind, metadata_of(self.group, behind))
            for partition, (_, behind) in self._open.items()
        }
        if self.way is Way.TRANSACTION and self._chance.random() < 0.3:
            self._consumer.abort(offsets)
            self._consumer.seek({partition: first for partition, (first, _) in self._open.items()})
        else:
            self._consumer.commit(offsets)
            wanted = {partition: offset for partition, (offset, _) in offsets.items()}
            if self.way is not Way.ASYNC:
                # A transaction's offsets count when its markers are written, after the answer.
                wait_until(
                    lambda: wanted.items() <= self._acknowledged().items(), "the offsets count"
                )
                self.committed |= wanted
        self._open.clear()

    def _acknowledged(self) -> dict[int, int]:
        found = self._contents.committed_offsets(self.group)
        return {partition: offset for (_, partition), (offset, _) in found.items()}


IS_MISSING = find_spec("confluent_kafka") is None
"""True where it cannot be imported, as where there is no wheel for it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A client by name, and how its consumer commits."""

    name: str
    client: Callable[..., Librdkafka]
    way: Way

    def make(
        self, contents: Contents, group: str, plan: Plan, chance: Random
    ) -> ForeignApplication:
        """The group's application on the source, which has joined."""
        return ForeignApplication(contents, group, plan, chance, self.client, self.way)


_CLASSIC = ("librdkafka, classic", partial(Librdkafka, protocol="classic"))
# KIP-848
_CONSUMER = ("librdkafka, consumer", partial(Librdkafka, protocol="consumer"))
FOREIGN = [
    *(Kind(*_CLASSIC, way) for way in (Way.AUTO, Way.ASYNC, Way.TRANSACTION, Way.NEVER)),
    *(Kind(*_CONSUMER, way) for way in (Way.AUTO, Way.SYNC, Way.TRANSACTION)),
]
