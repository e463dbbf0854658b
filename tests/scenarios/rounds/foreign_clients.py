"""Consumers by a client that this project did not write: librdkafka."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum, auto
from importlib.util import find_spec
from random import Random
from typing import Any

from tests.producing import Contents
from tests.scenarios.rounds.plans import Plan
from tests.waiting import wait_until

_SECONDS = 60.0


class CommitStyle(StrEnum):
    """How a consumer commits."""

    AUTO = auto()  # the client itself, in the background
    ASYNC = auto()  # without waiting for the answer
    SYNC = auto()
    TRANSACTION = auto()  # by a producer, in transactions of which some are aborted
    NEVER = auto()


FOREIGN = (
    *(
        ("classic", way)
        for way in (CommitStyle.AUTO, CommitStyle.ASYNC, CommitStyle.TRANSACTION, CommitStyle.NEVER)
    ),
    # KIP-848
    *(("consumer", way) for way in (CommitStyle.AUTO, CommitStyle.SYNC, CommitStyle.TRANSACTION)),
)
"""The protocol of a group, and how its consumer commits."""

IS_MISSING = find_spec("confluent_kafka") is None
"""True where it cannot be imported, as where there is no wheel for it."""


def metadata_of(group: str, offset: int) -> str:
    """What a consumer that commits itself says with this offset."""
    return f"{group} at {offset}"


class ForeignApplication:
    """One group's consumer by such a client, used as `applications.Application` is. It has joined
    its group, reads what is committed, and commits in one way, with the leader epoch of the last
    record that was read. The metadata of its own commits says which offset of which group they
    are."""

    def __init__(
        self,
        contents: Contents,
        group: str,
        plan: Plan,
        chance: Random,
        *,
        protocol: str,
        way: CommitStyle,
    ) -> None:
        import confluent_kafka

        self.group = group
        self.processed: Mapping[int, dict[bytes, int]] = {
            partition: {} for partition in range(plan.partitions)
        }
        self.committed: dict[int, int] = {}
        self._library: Any = confluent_kafka
        self._contents, self._plan, self._chance = contents, plan, chance
        self._protocol, self._way = protocol, way
        self._epochs: dict[int, int] = {}
        self._ended: set[int] = set()
        # Of each partition the first record that is not committed, and the next one to read.
        self._open: dict[int, tuple[int, int]] = {}
        self._consumer = self._consumer_of(contents, plan.topic, commits=way is CommitStyle.AUTO)
        if way is CommitStyle.TRANSACTION:
            self._producer: Any = confluent_kafka.Producer(
                {"bootstrap.servers": contents.bootstrap, "transactional.id": group}
            )
            self._producer.init_transactions(_SECONDS)

        def joined() -> bool:
            self._process(1)
            return self._is_assigned()

        wait_until(joined, f"{group} has its partitions")

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
        """As `Application.gone_over`, by the same client, which commits nothing."""
        assert not joins
        got: Mapping[int, dict[bytes, int]] = {partition: {} for partition in self.processed}
        self._ended.clear()
        self._consumer = self._consumer_of(contents, topic, commits=False)

        def at_the_ends() -> bool:
            for message in self._poll(1_000):
                got[message.partition()].setdefault(message.value(), message.offset())
            return self._is_assigned() and self._ended == self.processed.keys()

        try:
            wait_until(at_the_ends, f"{self.group} has read {topic} to its end")
            yield None, got
        finally:
            self._consumer.close()

    def _consumer_of(self, contents: Contents, topic: str, *, commits: bool) -> Any:
        consumer = self._library.Consumer(
            {
                "bootstrap.servers": contents.bootstrap,
                "group.id": self.group,
                "group.protocol": self._protocol,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.auto.commit": commits,
                "auto.commit.interval.ms": 100,
                # With its default, closing commits the offset after a transaction's marker that was
                # fetched, also where the records before the marker were never given out.
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 100,
            }
        )
        consumer.subscribe([topic])
        return consumer

    def _is_assigned(self) -> bool:
        return len(self._consumer.assignment()) == len(self.processed)

    def _poll(self, most: int) -> Iterator[Any]:
        """The next records."""
        for message in self._consumer.consume(most, 0.03):
            error = message.error()
            if error is None:
                yield message
            else:
                assert error.code() == self._library.KafkaError._PARTITION_EOF, error
                self._ended.add(message.partition())

    def _process(self, most: int) -> None:
        for message in self._poll(most):
            partition, offset = message.partition(), message.offset()
            self._epochs[partition] = message.leader_epoch()
            if self._way is CommitStyle.AUTO:
                self._consumer.store_offsets(message)
            self.processed[partition][message.value()] = offset
            first, _ = self._open.get(partition, (offset, offset))
            self._open[partition] = first, offset + 1

    def _place(self, partition: int, offset: int, *more: Any) -> Any:
        return self._library.TopicPartition(self._plan.topic, partition, offset, *more)

    def _commit(self) -> None:
        if self._way in (CommitStyle.AUTO, CommitStyle.NEVER) or not self._open:
            return
        wanted = {partition: behind for partition, (_, behind) in self._open.items()}
        places = [
            self._place(at, offset, metadata_of(self.group, offset), self._epochs[at])
            for at, offset in wanted.items()
        ]
        aborts = self._way is CommitStyle.TRANSACTION and self._chance.random() < 0.3
        if self._way is CommitStyle.TRANSACTION:
            producer, member = self._producer, self._consumer.consumer_group_metadata()
            producer.begin_transaction()
            producer.send_offsets_to_transaction(places, member, _SECONDS)
            (producer.abort_transaction if aborts else producer.commit_transaction)(_SECONDS)
        else:
            asynchronous = self._way is CommitStyle.ASYNC
            answer = self._consumer.commit(offsets=places, asynchronous=asynchronous)
            assert all(one.error is None for one in answer or ()), answer
        if aborts:
            for partition, (first, _) in self._open.items():
                self._consumer.seek(self._place(partition, first))
        elif self._way is not CommitStyle.ASYNC:
            # A transaction's offsets count when its markers are written, after the answer.
            wait_until(lambda: wanted.items() <= self._acknowledged().items(), "the offsets count")
            self.committed |= wanted
        self._open.clear()

    def _acknowledged(self) -> dict[int, int]:
        found = self._contents.committed_offsets(self.group)
        return {partition: offset for (_, partition), (offset, _) in found.items()}
