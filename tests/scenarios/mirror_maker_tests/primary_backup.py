"""A primary and a backup cluster as MirrorMaker 2's own integration tests have them.

Those tests are run there for each replication policy and for a producer with transactions;
`VARIANTS` are these, and each has topics of its own. A topic has ten partitions of ten
records, as there.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.producing import Contents, Stored, Written
from tests.scenarios.flows import Flows
from tests.waiting import wait_until
from tsoffset.testing.embedded import MirrorMaker

PARTITIONS = 10
PER_PARTITION = 10


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run a test: under a replication policy, with or without transactions.

    `forth` is the flow from primary to backup, `back` the other one, which MirrorMaker 2
    runs under DefaultReplicationPolicy only; `from_latest` the flow of a mirror that began
    with what came after it.
    """

    name: str
    forth: str
    back: str
    from_latest: str
    transactional: bool

    @property
    def keeps_names(self) -> bool:
        """Whether the policy is IdentityReplicationPolicy."""
        return self.forth == "left->right"

    def topic(self, subject: str) -> str:
        """The topic of this variant for a subject."""
        return f"test-topic-{self.name}-{subject}"

    @property
    def topic_from_latest(self) -> str:
        """The topic of the mirror that began with what came after it."""
        return f"from-latest-{self.name}"

    def group(self, subject: str) -> str:
        """The group of this variant for a subject."""
        return f"{subject}-{self.name}"


VARIANTS = tuple(
    Variant(name + producer, forth, back, from_latest, bool(producer))
    for name, forth, back, from_latest in (
        ("default", "primary->backup", "backup->primary", "newer->copy"),
        ("identity", "left->right", "right->left", "newest->kept"),
    )
    for producer in ("", "-transactions")
)
ALIASES: Mapping[str, str] = {
    **dict.fromkeys(("primary", "left", "newer", "newest"), "primary"),
    **dict.fromkeys(("backup", "right", "copy", "kept"), "backup"),
}

# What the topics are about: those that are mirrored from the beginning, and one that is
# created while MirrorMaker 2 runs.
REPLICATED = "replicated"
AUTO_SYNC = "auto-sync"
NOTHING_YET = "nothing-yet"
RESTARTED = "restarted"
BEHIND = "behind"
BEHIND_ROUNDS = 100
LATER = "later"


class Site(Flows):
    """Both clusters and the flows between them, for one properties file."""

    def __init__(self, contents: Mapping[str, Contents], mirror_maker: MirrorMaker) -> None:
        super().__init__({alias: contents[name] for alias, name in ALIASES.items()}, mirror_maker)
        self._producers: dict[str, KafkaProducer] = {}
        self._open = ExitStack()

    def close(self) -> None:
        """Let go of the producers."""
        self._open.close()

    def wait_until_complete(self, variant: Variant) -> None:
        """Wait until the copies have all that the topics of the variant hold now."""
        subjects = (REPLICATED, AUTO_SYNC, NOTHING_YET, RESTARTED, BEHIND, LATER)
        topics = [*map(variant.topic, subjects)]
        flows = {variant.forth: topics}
        if not variant.keeps_names:
            flows[variant.back] = [variant.topic(REPLICATED)]
        for flow, of_flow in flows.items():
            self.wait_until_mirrored(flow, *of_flow)

    def mirror(self, variant: Variant, subject: str) -> "Mirror":
        """The topic of a subject on the primary, and its copy on the backup."""
        topic = variant.topic(subject)
        return Mirror(*self.sides(variant.forth), topic, self.remote(variant.forth, topic))

    # --- records ------------------------------------------------------------------------

    def write(
        self,
        variant: Variant,
        topic: str,
        *,
        cluster: str = "primary",
        partitions: Iterable[int] = range(PARTITIONS),
        rounds: int = 1,
        per_round: int = PER_PARTITION,
    ) -> None:
        """Write rounds of records to each partition, every record with a value of its own; of
        a transactional variant each round is a transaction over all partitions."""
        contents = self.contents[cluster]
        partitions = list(partitions)
        ends = {partition: contents.log_range(topic, partition)[1] for partition in partitions}
        count = rounds * per_round
        now = int(time.time() * 1000)
        records = {
            partition: [
                Written(now + number, f"{cluster}/{topic}/{partition}/{end + number}".encode())
                for number in range(count)
            ]
            for partition, end in ends.items()
        }
        if variant.transactional:
            self._write_transactions(cluster, topic, records, per_round)
            return
        for partition, some in records.items():
            contents.produce(topic, some, partition=partition, batch=per_round)

    def _write_transactions(
        self, cluster: str, topic: str, records: Mapping[int, Sequence[Written]], per_round: int
    ) -> None:
        contents = self.contents[cluster]
        producer = self._transactional(cluster)
        rounds = len(next(iter(records.values()))) // per_round
        for number in range(rounds):
            producer.begin_transaction()
            for partition, some in records.items():
                for record in some[number * per_round : (number + 1) * per_round]:
                    producer.send(
                        topic,
                        value=record.value,
                        partition=partition,
                        timestamp_ms=record.timestamp_ms,
                    )
            producer.commit_transaction()

        def decided() -> bool:
            return all(
                contents.log_range(topic, partition, isolation="read_committed")
                == contents.log_range(topic, partition)
                for partition in records
            )

        wait_until(decided, f"the transactions of {topic} have ended")

    def _transactional(self, cluster: str) -> KafkaProducer:
        if cluster not in self._producers:
            producer = self._open.enter_context(
                closing(
                    KafkaProducer(
                        bootstrap_servers=self.contents[cluster].bootstrap,
                        transactional_id=f"producer-of-{cluster}",
                    )
                )
            )
            producer.init_transactions()
            self._producers[cluster] = producer
        return self._producers[cluster]


@dataclass(frozen=True)
class Mirror:
    """A topic and its copy on the other side, complete by now."""

    source: Contents
    target: Contents
    topic: str
    remote: str

    @cached_property
    def written(self) -> Mapping[int, Sequence[Stored]]:
        """The source's records by partition."""
        return read_all(self.source, self.topic)

    @cached_property
    def copied(self) -> Mapping[int, Sequence[Stored]]:
        """The target's records by partition."""
        return read_all(self.target, self.remote)

    def true_offset(self, partition: int, source_offset: int) -> int:
        """Where the copy of the first record at or after an offset lies; the target's log end
        if there is none."""
        value = next((r.value for r in self.written[partition] if r.offset >= source_offset), None)
        if value is None:
            return self.target.log_range(self.remote, partition)[1]
        (offset,) = (r.offset for r in self.copied[partition] if r.value == value)
        return offset


def read_all(contents: Contents, topic: str) -> dict[int, list[Stored]]:
    """All data records of a topic, by partition."""
    with closing(
        KafkaConsumer(
            bootstrap_servers=contents.bootstrap,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=100_000,
        )
    ) as consumer:
        got = _read(consumer, _assigned(consumer, topic), None)
    return {place.partition: records for place, records in got.items()}


def consume(
    contents: Contents, group: str, *topics: str, most: int | None = None, reset: str = "none"
) -> list[bytes | None]:
    """What a consumer of the group gets of the topics: to the logs' ends, or `most` records of
    each partition. It commits where it stands then. `reset` is its auto.offset.reset."""
    with closing(
        KafkaConsumer(
            bootstrap_servers=contents.bootstrap,
            group_id=group,
            isolation_level="read_committed",
            auto_offset_reset=reset,
            enable_auto_commit=False,
            max_poll_records=100_000,
        )
    ) as consumer:
        places = _assigned(consumer, *topics)
        got = _read(consumer, places, most)
        stands = {place: consumer.position(place) for place in places}
        for place, records in got.items():
            if most is not None and len(records) > most:
                stands[place] = records[most].offset
                del records[most:]
        consumer.commit(
            {place: OffsetAndMetadata(offset, "", -1) for place, offset in stands.items()}
        )
    return [record.value for records in got.values() for record in records]


def _assigned(consumer: KafkaConsumer, *topics: str) -> list[TopicPartition]:
    places = [
        TopicPartition(topic, number)
        for topic in topics
        for number in sorted(consumer.partitions_for_topic(topic) or ())
    ]
    consumer.assign(places)
    return places


def _read(
    consumer: KafkaConsumer, places: Sequence[TopicPartition], most: int | None
) -> dict[TopicPartition, list[Stored]]:
    """What there is to read of each place, or at least `most` of it."""
    ends = consumer.end_offsets(places)
    got: dict[TopicPartition, list[Stored]] = {place: [] for place in places}

    def unfinished() -> Iterator[TopicPartition]:
        for place in places:
            enough = most is not None and len(got[place]) >= most
            if not enough and consumer.position(place) < ends[place]:
                yield place

    def finished() -> bool:
        if not any(unfinished()):
            return True
        for place, records in consumer.poll(timeout_ms=100).items():
            got[place] += [Stored(r.offset, r.timestamp, r.value) for r in records]
        return False

    wait_until(finished, f"{places} are read to the end")
    return got
