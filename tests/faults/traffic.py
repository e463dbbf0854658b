"""Who writes, copies and commits while the daemon runs, and what its commits are judged by."""

import random
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from tests.waiting import wait_until
from tsoffset.errors import TsoffsetError
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import CommittedOffset
from tsoffset.model import TopicPartition as Place

# A cluster that is away is asked again so soon by those who use it.
_PATIENCE_MS = 3_000
_TROUBLE = (KafkaError, TsoffsetError, OSError, AssertionError, KeyError, ValueError)


@dataclass(frozen=True, slots=True)
class Link:
    """A topic that is mirrored, and the groups that read it on the source."""

    source: str
    target: str
    topic: str
    remote: str
    partitions: int
    groups: Sequence[str]
    records_a_step: int = 4

    def places(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for number in range(self.partitions)]


@dataclass(frozen=True, slots=True)
class Seen:
    """A group's commit on the target as it was found, and what the group had read by then."""

    group: str
    partition: int
    target_offset: int
    read_to: int


class StepBack(NamedTuple):
    """A group's commit on the target that lies before the one that was seen last; `place` is the
    group with its topic and partition, or with its partition alone."""

    place: Any
    before: int
    after: int


Work = Callable[[ExitStack], None]


class Clients:
    """Threads that work while the block is open, and begin anew after any trouble; and what they
    see of groups' commits on the target."""

    def __init__(self) -> None:
        # By group, topic and partition, or by group and partition: what each group has read,
        # noted down before it is committed.
        self.read_to: defaultdict[Any, int] = defaultdict(int)
        self.seen: dict[Any, Seen] = {}
        self.steps_back: list[StepBack] = []
        self.counts: defaultdict[str, int] = defaultdict(int)
        self._last: dict[Any, int] = {}
        self._stop = threading.Event()
        self._resting = threading.Event()
        self._threads: list[threading.Thread] = []

    def _works(self) -> Sequence[Work]:
        """What is done, each by a thread of its own."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        for work in self._works():
            thread = threading.Thread(target=self._keep_at, args=(work,), daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._resting.clear()
        for thread in self._threads:
            thread.join(60)

    def _keep_at(self, work: Work) -> None:
        while not self._stop.is_set():
            try:
                with ExitStack() as opened:
                    work(opened)
            except _TROUBLE:
                self.counts["client errors"] += 1
                self._stop.wait(0.3)

    def _look(self, place: Any, offset: int) -> None:
        """Note a group's commit on the target, with what the group had read by then."""
        read_to = self.read_to[place]
        last = self._last.get(place, 0)
        if offset < last:
            self.steps_back.append(StepBack(place, last, offset))
        self._last[place] = offset
        if (*place, offset) not in self.seen:
            self.seen[*place, offset] = Seen(place[0], place[-1], offset, read_to)


class Traffic(Clients):
    """A link in use."""

    def __init__(self, link: Link) -> None:
        super().__init__()
        self.link = link
        # While somebody holds it, no group reads on or commits.
        self.still = threading.Lock()
        self._rests = threading.Event()
        self.copied: dict[TopicPartition, int] = dict.fromkeys(self.link.places(self.link.topic), 0)
        self._ends: defaultdict[int, int] = defaultdict(int)
        self._looks = 0
        self.slowest_look_seconds = 0.0
        self._chance = random.Random(self.link.topic)
        self._judge = Judge(self.link)

    def _works(self) -> Sequence[Work]:
        return self._write, self._copy, self._commit, self._watch

    def rest(self) -> None:
        """Write no more records."""
        self._resting.set()
        wait_until(self._rests.is_set, f"nothing is written to {self.link.topic}")

    def judge(self) -> None:
        """Let what was written be copied to the end, while nothing is written, and hold each
        commit that was seen to what lies on both sides."""
        self._resting.set()
        try:
            # A record that was under way when the rest began is on the source by then.
            wait_until(self._caught_up, f"{self.link.remote} has all of {self.link.topic}")
            looks = self._looks
            wait_until(lambda: self._looks > looks + 1, "the groups are looked at")
            self._judge.read()
            assert not self.steps_back, self.steps_back
            skipping = [one for one in self.seen.values() if self._judge.skips(one)]
            assert not skipping, skipping[:5]
        finally:
            self._resting.clear()

    def _caught_up(self) -> bool:
        try:
            ends = self._judge.source_ends()
        except _TROUBLE:
            return False
        return self._rests.is_set() and all(self.copied[at] >= end for at, end in ends.items())

    # --- the four at work -------------------------------------------------------------------

    def _write(self, opened: ExitStack) -> None:
        producer = opened.enter_context(_producer(self.link.source))
        while not self._stop.wait(0.2):
            if self._resting.is_set():
                producer.flush(5)
                self._rests.set()
                continue
            self._rests.clear()
            for at in self.link.places(self.link.topic):
                for _ in range(self._chance.randint(0, self.link.records_a_step)):
                    future = producer.send(at.topic, partition=at.partition, value=_value())
                    # One broker that is away does not keep records from the others.
                    future.add_callback(self._written)

    def _written(self, metadata: Any) -> None:
        end = self._ends[metadata.partition]
        self._ends[metadata.partition] = max(end, metadata.offset + 1)

    def _copy(self, opened: ExitStack) -> None:
        """In order; after any trouble again from what is known to be copied."""
        consumer = opened.enter_context(closing(_consumer(self.link.source)))
        producer = opened.enter_context(_producer(self.link.target))
        consumer.assign(list(self.copied))
        for at, position in self.copied.items():
            consumer.seek(at, position)
        quiet_since = time.monotonic()
        while not self._stop.is_set():
            polled = consumer.poll(timeout_ms=200)
            sent = []
            for at, records in polled.items():
                for record in records:
                    if record.offset < self.copied[at]:
                        continue
                    future = producer.send(
                        self.link.remote,
                        partition=at.partition,
                        value=record.value,
                        timestamp_ms=record.timestamp,
                    )
                    sent.append((at, record.offset, future))
            for at, offset, future in sent:
                future.get(10)
                self.copied[at] = offset + 1
            if sent:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > 4:
                # A consumer that has met a dead broker may stay quiet for long.
                return

    def _commit(self, opened: ExitStack) -> None:
        # By our own client: the library's waits without end for a coordinator that has moved.
        settings = ClusterSettings(
            "source", tuple(self.link.source.split(",")), admin_timeout_ms=_PATIENCE_MS
        )
        cluster = opened.enter_context(KafkaCluster(settings))
        while not self._stop.wait(0.5):
            some = self._chance.sample(self.link.groups, len(self.link.groups) // 2)
            with self.still:
                cluster.commit({group: self._read_on(group) for group in some})

    def _read_on(self, group: str) -> dict[Place, CommittedOffset]:
        """What the group commits next: everything is read, or some of it."""
        offsets = {}
        for number in range(self.link.partitions):
            key = group, number
            most = max(self._ends[number], self.read_to[key])
            offset = self._chance.choice((most, self._chance.randint(self.read_to[key], most)))
            self.read_to[key] = offset
            offsets[Place(self.link.topic, number)] = CommittedOffset(offset)
        return offsets

    def _watch(self, opened: ExitStack) -> None:
        admin = opened.enter_context(closing(_admin(self.link.target)))
        while not self._stop.wait(0.3):
            # What a group has read is noted down before it is committed, so it is no less now
            # than what the daemon knew of.
            for group in self.link.groups:
                asked = time.monotonic()
                found = admin.list_group_offsets(group)[group]
                took = time.monotonic() - asked
                self.slowest_look_seconds = max(self.slowest_look_seconds, took)
                for at, commit in found.items():
                    if at.topic == self.link.remote:
                        self._look((group, at.partition), commit.offset)
            self._looks += 1


class Judge:
    """What lies on both sides, read on from where it was read to before."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._offsets: Mapping[int, dict[bytes, int]] = {n: {} for n in range(link.partitions)}
        self._last_copies: Mapping[int, dict[bytes, int]] = {n: {} for n in range(link.partitions)}
        # By partition: the least target offset at which the last copy of any record from a source
        # offset on lies.
        self._unread: dict[int, list[int]] = {}
        self._positions: dict[TopicPartition, int] = {}

    def source_ends(self) -> Mapping[TopicPartition, int]:
        with closing(_consumer(self._link.source)) as consumer:
            ends: Mapping[TopicPartition, int] = consumer.end_offsets(
                self._link.places(self._link.topic)
            )
            return ends

    def read(self) -> None:
        link = self._link
        for cluster, topic, into in (
            (link.source, link.topic, self._offsets),
            (link.target, link.remote, self._last_copies),
        ):
            self._read_on(cluster, link.places(topic), into)
        for partition, offsets in self._offsets.items():
            length = 1 + max(offsets.values(), default=-1)
            copies = self._last_copies[partition]
            missing = offsets.keys() - copies.keys()
            assert not missing, f"{len(missing)} records of {link.topic}-{partition} have no copy"
            least = [2**62] * (length + 1)
            for value, offset in offsets.items():
                least[offset] = copies[value]
            for offset in range(length - 1, -1, -1):
                least[offset] = min(least[offset], least[offset + 1])
            self._unread[partition] = least

    def skips(self, seen: Seen) -> bool:
        """Whether a record that the group had not read lies before its commit on the target, and
        not behind it as well."""
        least = self._unread[seen.partition]
        return least[min(seen.read_to, len(least) - 1)] < seen.target_offset

    def reread(self, seen: Seen) -> int:
        """How many records that the group had read are behind its commit on the target. Exact where
        the source holds records only, without markers and gaps."""
        first = min(self._offsets[seen.partition].values(), default=0)
        least = self._unread[seen.partition]
        resumed = max(first, bisect_left(least, seen.target_offset))
        return max(0, seen.read_to - resumed)

    def _read_on(
        self, cluster: str, places: list[TopicPartition], into: Mapping[int, dict[bytes, int]]
    ) -> None:
        with closing(_consumer(cluster)) as consumer:
            consumer.assign(places)
            ends = consumer.end_offsets(places)
            starts = consumer.beginning_offsets(places) | self._positions
            for at in places:
                consumer.seek(at, starts[at])

            def at_the_ends() -> bool:
                for at, records in consumer.poll(timeout_ms=200).items():
                    for record in records:
                        into[at.partition][record.value] = record.offset
                return all(consumer.position(at) >= end for at, end in ends.items())

            wait_until(at_the_ends, f"{places} are read to {ends}")
            self._positions |= {at: consumer.position(at) for at in places}


_count = iter(range(10**12))


def _value() -> bytes:
    return b"value-%d" % next(_count)


def _client(cluster: str) -> dict[str, object]:
    return {"bootstrap_servers": cluster.split(","), "request_timeout_ms": _PATIENCE_MS}


def _admin(cluster: str) -> KafkaAdminClient:
    return KafkaAdminClient(**_client(cluster), bootstrap_timeout_ms=_PATIENCE_MS)


@contextmanager
def _producer(cluster: str) -> Iterator[KafkaProducer]:
    producer = KafkaProducer(
        **_client(cluster),
        acks="all",
        # In order without it; the library's own way there may get stuck where a broker hangs.
        enable_idempotence=False,
        max_in_flight_requests_per_connection=1,
        max_block_ms=_PATIENCE_MS,
        delivery_timeout_ms=2 * _PATIENCE_MS,
    )
    try:
        yield producer
    finally:
        with suppress(KafkaError):
            producer.close(1)


def _consumer(cluster: str) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=cluster.split(","),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        max_poll_records=10_000,
        fetch_max_wait_ms=100,
        # After a long pause between polls kafka-python 3.0 may fetch nothing in a session.
        enable_incremental_fetch_sessions=False,
    )
