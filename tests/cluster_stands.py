"""Two stands for the contract suite: a cluster to be asked, and means to fill it.

`MemoryStand` fills a `MemoryCluster`, `BrokerStand` a real broker by a client of its own, so
that the cluster under test is only ever asked.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Self

from kafka import KafkaProducer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.structs import OffsetAndMetadata

from tests.producing import OPEN_MS, Contents, Written
from tests.producing import Transaction as OpenTransaction
from tests.scenarios.flows import member
from tests.waiting import wait_until
from tests.zookeeper_broker import version_numbers
from tsoffset.cluster import Cluster
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.lab.embedded import KAFKA_VERSION, EmbeddedBroker
from tsoffset.lab.embedded.process import JavaProcess
from tsoffset.model import CommittedOffset, GroupType, TimestampType, TopicPartition
from tsoffset.records import OffsetHeader
from tsoffset.testing.memory_cluster import Clock, MemoryCluster, Message, Transaction

# A little ago, so that what a broker stamps itself is always later.
NOW_MS = int(time.time() * 1000) - 60_000
ORIGIN = OffsetHeader("origin")


class Stand:
    """What both stands have."""

    unique: Callable[[str], str]

    def partition(
        self, *, timestamp_type: TimestampType = TimestampType.CREATE_TIME
    ) -> TopicPartition:
        return TopicPartition(self.create_topic(timestamp_type=timestamp_type), 0)


# --- in memory ----------------------------------------------------------------------------


class MemoryStand(Stand):
    """Fills a cluster in memory, and says what every stand does before a test asks. `version` is
    that of the Kafka that it stands for."""

    version = version_numbers(KAFKA_VERSION)

    def __init__(self, unique: Callable[[str], str]) -> None:
        self.cluster = MemoryCluster("M", clock=Clock(NOW_MS + 60_000), offset_header=ORIGIN)
        self.unique = unique

    def create_topic(
        self,
        partitions: int = 1,
        *,
        name: str | None = None,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        cleanup_policy: str | None = None,
    ) -> str:
        """Make a topic, return its name. Without `cleanup_policy` it has the brokers' default."""
        topic = name or self.unique("topic")
        configs = {"cleanup.policy": cleanup_policy} if cleanup_policy else {}
        self.cluster.create_topic(topic, partitions, timestamp_type=timestamp_type, configs=configs)
        return topic

    def delete_topic(self, topic: str) -> None:
        self.cluster.delete_topic(topic)

    def internal_topic(self) -> str:
        self.cluster.create_topic("__consumer_offsets", internal=True)
        return "__consumer_offsets"

    def append(
        self,
        partition: TopicPartition,
        messages: Sequence[Message],
        *,
        batch_size: int | None = None,
        codec: str = "none",
    ) -> None:
        """Append in batches of `batch_size` messages (None: one batch)."""
        self.cluster.log(partition.topic, partition.partition).append(
            messages, batch_size=batch_size
        )

    def compacted(
        self, batches: Sequence[Sequence[Message]], *, apart: bool = False
    ) -> TopicPartition:
        """A new partition with these batches, each in a segment of its own, after its log,
        but for the last segment, was compacted.

        The cleaner puts small segments together; with `apart` the first one is so large
        that it stays for itself.
        """
        partition = self.partition()
        log = self.cluster.log(partition.topic)
        for number, batch in enumerate(batches):
            if (apart and number == 1) or number == len(batches) - 1:
                log.roll()
            active = log.append(batch)
        log.compact(before=active)
        return partition

    def delete_records(self, partition: TopicPartition, before: int) -> None:
        self.cluster.log(partition.topic, partition.partition).delete_records(before)

    @contextmanager
    def transaction(self, partition: TopicPartition) -> Iterator["_MemoryTransaction"]:
        """Begin a transaction; the test ends it, and the marker is in the log then."""
        begun = self.cluster.log(partition.topic, partition.partition).begin()
        yield _MemoryTransaction(begun.log, begun.producer)

    @contextmanager
    def members(self, group: str, topic: str, kind: GroupType) -> Iterator[None]:
        self.cluster.group(group, kind).state = "Stable"
        yield
        self.cluster.group(group).state = "Empty"

    def wait_until_empty(self, group: str) -> None:
        assert self.cluster.group(group).state == "Empty"

    def wait_until_forgotten(self, group: str, partition: TopicPartition) -> None:
        assert partition not in self.cluster.group(group).offsets

    @contextmanager
    def pending_offset(
        self, group: str, partition: TopicPartition, offset: int
    ) -> Iterator[Callable[[], None]]:
        """Commit an offset in a transaction that stays open, until the test calls what it is
        given."""
        there = self.cluster.group(group)
        there.pending[partition] = CommittedOffset(offset)
        yield lambda: there.end_transaction()

    def another_cluster(self) -> Cluster:
        """The same cluster, over connections of its own where it has any."""
        return MemoryCluster("another")


class _MemoryTransaction(Transaction):
    """Every marker has a time of its own, as on brokers."""

    def commit(self) -> None:
        self.log.clock.now_ms += 1
        super().commit()

    def abort(self) -> None:
        self.log.clock.now_ms += 1
        super().abort()


# --- on a real broker ---------------------------------------------------------------------


class BrokerStand(Stand):
    """Fills a real broker by kafka-python's own clients and Kafka's console consumers."""

    def __init__(
        self, broker: EmbeddedBroker, unique: Callable[[str], str], directory: Path
    ) -> None:
        self.version = version_numbers(broker.kafka_version)
        self._broker = broker
        self._directory = directory
        self._numbers = itertools.count()
        self._open: dict[TopicPartition, int] = {}
        self._stack = ExitStack()
        self.unique = unique
        self._transactions = unique("transaction")
        self.contents = Contents(broker.bootstrap)
        self._stack.callback(self.contents.close)
        self.cluster = self._stack.enter_context(self.another_cluster())
        # Fifteen seconds of rest between two looks are the default.
        self.contents.admin.alter_configs(
            [
                ConfigResource(
                    ConfigResourceType.BROKER,
                    str(broker.node_id),
                    {"log.cleaner.backoff.ms": "100"},
                )
            ]
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def create_topic(
        self,
        partitions: int = 1,
        *,
        name: str | None = None,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        cleanup_policy: str | None = None,
    ) -> str:
        configs = {"message.timestamp.type": str(timestamp_type)}
        if cleanup_policy:
            configs["cleanup.policy"] = cleanup_policy
        return self.contents.create_topic(name or self.unique("topic"), partitions, configs=configs)

    def delete_topic(self, topic: str) -> None:
        self.contents.delete_topic(topic)

    def internal_topic(self) -> str:
        self.contents.commit_offsets(self.unique("group"), {(self.create_topic(), 0): 0})
        return "__consumer_offsets"

    def append(
        self,
        partition: TopicPartition,
        messages: Sequence[Message],
        *,
        batch_size: int | None = None,
        codec: str = "none",
    ) -> None:
        self.contents.produce(
            partition.topic,
            written(messages),
            partition=partition.partition,
            batch=batch_size or max(1, len(messages)),
            compression=codec,
        )

    def compacted(
        self, batches: Sequence[Sequence[Message]], *, apart: bool = False
    ) -> TopicPartition:
        # A batch whose times are later by more than segment.ms begins a new segment.
        configs = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.0",
            "segment.bytes": "1048576",
            "segment.ms": "1",
        }
        topic = self.contents.create_topic(self.unique("topic"), configs=configs)
        partition = TopicPartition(topic, 0)
        for batch in batches:
            self.append(partition, batch)
        closed = [message for batch in batches[:-1] for message in batch]
        newest = {message.key: offset for offset, message in enumerate(closed)}
        active = range(len(closed), len(closed) + len(batches[-1]))
        expected = sorted([*newest.values(), *active])

        def cleaned() -> bool:
            return [r.offset for r in self.contents.read(partition.topic)] == expected

        wait_until(cleaned, f"{partition} is compacted to {expected}")
        return partition

    def delete_records(self, partition: TopicPartition, before: int) -> None:
        self.contents.delete_records(partition.topic, before, partition=partition.partition)

    @contextmanager
    def transaction(self, partition: TopicPartition) -> Iterator["_BrokerTransaction"]:
        # One after the other by the same producer, whose id returns in the log.
        number = sum(self._open.values())
        opened = self.contents.begin_transaction(f"{self._transactions}-{number}")
        yield _BrokerTransaction(self.contents, opened, partition, self._open)

    @contextmanager
    def members(self, group: str, topic: str, kind: GroupType) -> Iterator[None]:
        if kind is GroupType.CLASSIC:
            joined: AbstractContextManager[object] = member(self.contents, group, topic)
        elif kind is GroupType.SHARE:
            joined = self._console("ConsoleShareConsumer", group, topic)
        else:
            protocol = ("--command-property", "group.protocol=consumer")
            joined = self._console("ConsoleConsumer", group, topic, *protocol)
        with joined:
            wait_until(lambda: self._state(group) == "Stable", f"{group} is stable")
            yield

    def wait_until_empty(self, group: str) -> None:
        wait_until(lambda: self._state(group) == "Empty", f"{group} is empty")

    def wait_until_forgotten(self, group: str, partition: TopicPartition) -> None:
        place = (partition.topic, partition.partition)
        wait_until(
            lambda: place not in self.contents.committed_offsets(group),
            f"{group} has no offset for {partition}",
        )

    @contextmanager
    def pending_offset(
        self, group: str, partition: TopicPartition, offset: int
    ) -> Iterator[Callable[[], None]]:
        place = partition.topic, partition.partition
        with closing(
            KafkaProducer(
                bootstrap_servers=self._broker.bootstrap,
                transactional_id=self.unique("transaction"),
                transaction_timeout_ms=OPEN_MS,
            )
        ) as producer:

            def counts() -> bool:
                return self.contents.committed_offsets(group).get(place, (None,))[0] == offset

            def commit() -> None:
                producer.commit_transaction()
                wait_until(counts, f"{group} has {offset}")

            producer.init_transactions()
            producer.begin_transaction()
            offsets = {KafkaTopicPartition(*place): OffsetAndMetadata(offset, "", -1)}
            producer.send_offsets_to_transaction(offsets, group)
            yield commit

    def another_cluster(self) -> Cluster:
        return KafkaCluster(ClusterSettings("R", (self._broker.bootstrap,), offset_header=ORIGIN))

    def _state(self, group: str) -> str | None:
        admin = self.contents.admin
        if self.version < (2, 6):
            return str(admin.describe_groups([group])[group]["group_state"])
        for listed in admin.list_groups():
            if listed["group_id"] == group:
                return str(listed["group_state"])
        return None

    @contextmanager
    def _console(self, tool: str, group: str, topic: str, *options: str) -> Iterator[None]:
        command = [
            f"org.apache.kafka.tools.consumer.{tool}",
            *("--bootstrap-server", self._broker.bootstrap),
            *("--topic", topic, "--group", group),
            *options,
        ]
        name = f"{tool}-{next(self._numbers)}"
        process = JavaProcess(name, command, directory=self._directory, java_options=("-Xmx128m",))
        process.start()
        try:
            yield
        finally:
            process.stop()


class _BrokerTransaction:
    def __init__(
        self,
        contents: Contents,
        transaction: OpenTransaction,
        partition: TopicPartition,
        open_now: dict[TopicPartition, int],
    ) -> None:
        self._contents = contents
        self._transaction = transaction
        self._partition = partition
        self._open = open_now
        self._open[partition] = self._open.get(partition, 0) + 1

    def append(self, messages: Sequence[Message]) -> object:
        return self._transaction.add(
            self._partition.topic,
            written(messages),
            partition=self._partition.partition,
            batch=len(messages),
        )

    def commit(self) -> None:
        self._end(self._transaction.commit)

    def abort(self) -> None:
        self._end(self._transaction.abort)

    def _end(self, end: Callable[[], None]) -> None:
        """The coordinator writes the marker some time after it has answered."""
        _, before = self._range("read_uncommitted")
        end()
        self._open[self._partition] -= 1

        def marked() -> bool:
            _, log_end = self._range("read_uncommitted")
            _, stable = self._range("read_committed")
            return log_end > before and (self._open[self._partition] > 0 or stable == log_end)

        wait_until(marked, f"the marker is in {self._partition}")

    def _range(self, isolation: str) -> tuple[int, int]:
        return self._contents.log_range(
            self._partition.topic, self._partition.partition, isolation=isolation
        )


def written(messages: Sequence[Message]) -> list[Written]:
    """The messages in the words of `producing`, where no timestamp is -1."""
    return [
        Written(
            -1 if message.timestamp_ms is None else message.timestamp_ms,
            message.value,
            message.key,
            message.headers,
        )
        for message in messages
    ]
