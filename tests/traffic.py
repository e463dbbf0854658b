"""Producers, a replicator and groups at work while a daemon runs, and the commits that they see.

All of them start over after any error, so they outlast whatever happens to the clusters.
"""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from tests.copies import CopiedPartition
from tests.producing import Contents
from tests.waiting import wait_until
from tsoffset.errors import TsoffsetError
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import CommittedOffset
from tsoffset.model import TopicPartition as ModelPartition

# After this time a request to a cluster that does not answer is given up.
_TIMEOUT_MS = 3_000
_TROUBLE = (KafkaError, TsoffsetError, OSError, AssertionError, KeyError, ValueError)


@dataclass(frozen=True, slots=True)
class Link:
    """A topic that is mirrored, the groups that read it on the source, and how many records at most
    are written to each partition before each pause."""

    source: str
    target: str
    topic: str
    remote: str
    partitions: int
    groups: Sequence[str]
    records: int = 4
    pause_seconds: float = 0.2

    def places(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for number in range(self.partitions)]


class GroupPartition(NamedTuple):
    """A group and a source partition."""

    group: str
    topic: str
    partition: int


class Seen(NamedTuple):
    """A group's committed offset on the target, and what the group had read when it was found."""

    place: GroupPartition
    target_offset: int
    read_to: int


class StepBack(NamedTuple):
    """A group's committed offset on the target that is lower than the one seen before."""

    place: GroupPartition
    before: int
    after: int


Work = Callable[[ExitStack], None]


class Traffic:
    """Works on links between two clusters while the block is open.

    Besides the producers there are groups without members, `at_once` of which commit together, and
    `members` that join one group after the other. With `copies` it is the replicator as well. With
    `deletes` groups are deleted now and then.

    No group goes back on the source (one that was deleted begins where the log ends), so none may
    go back on the target.
    """

    def __init__(
        self,
        *links: Link,
        at_once: int = 1,
        members: int = 0,
        copies: bool = False,
        deletes: bool = False,
        seed: int = 14,
    ) -> None:
        self.links = links
        self.source, self.target = links[0].source, links[0].target
        self._at_once, self._members = at_once, members
        self._copies, self._deletes = copies, deletes
        self._links_of = {
            group: [link for link in links if group in link.groups]
            for group in dict.fromkeys(group for link in links for group in link.groups)
        }
        # What each group has read, noted before it is committed.
        self.read_to: defaultdict[GroupPartition, int] = defaultdict(int)
        self.seen: dict[tuple[GroupPartition, int], Seen] = {}
        self.steps_back: list[StepBack] = []
        self.counts: defaultdict[str, int] = defaultdict(int)
        # While somebody holds it, no group without members reads on or commits.
        self.still = threading.Lock()
        self._last: dict[GroupPartition, int] = {}
        self._ends: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._values = iter(range(10**12))
        self._looks = 0
        self._free = set(self._links_of)
        self._lock = threading.Lock()
        self._chance = random.Random(seed)
        self._stop = threading.Event()
        self._resting = threading.Event()
        self._flushed = {link.topic: threading.Event() for link in links}
        self._threads: list[threading.Thread] = []
        self._logs = {
            (link.topic, number): CopiedPartition()
            for link in links
            for number in range(link.partitions)
        }

    def __enter__(self) -> Self:
        for work in self._works():
            thread = threading.Thread(target=self._keep_at, args=(work,), daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _works(self) -> Iterator[Work]:
        """What is done, each by a thread of its own."""
        for link in self.links:
            yield lambda opened, link=link: self._write(opened, link)
            if self._copies:
                copied = dict.fromkeys(link.places(link.topic), 0)
                yield lambda opened, link=link, copied=copied: self._copy(opened, link, copied)
        yield self._commit
        yield self._watch
        yield from [self._join] * self._members
        if self._deletes:
            yield self._delete

    def _keep_at(self, work: Work) -> None:
        while not self._stop.is_set():
            try:
                with ExitStack() as opened:
                    work(opened)
            except _TROUBLE:
                self.counts["client errors"] += 1
                self._stop.wait(0.3)

    # --- judging ------------------------------------------------------------------------------

    def rest(self) -> None:
        self._resting.set()
        for topic, flushed in self._flushed.items():
            wait_until(flushed.is_set, f"nothing is written to {topic}")

    def go_on(self) -> None:
        self._resting.clear()

    def judge(self, *, may_go_back: bool = False) -> int:
        """Wait until all is copied, and compare each commit that was seen with the content of both
        logs; how many there were. Raises AssertionError for a skipped record, and unless
        `may_go_back` for a step back. Call `rest` before."""
        wait_until(self._all_is_copied, "all is copied")
        looks = self._looks
        wait_until(lambda: self._looks > looks + 1, "the groups are looked at")
        assert may_go_back or not self.steps_back, self.steps_back[:5]
        seen = [*self.seen.values()]
        skipping = [
            one for one in seen if self._logs[one.place[1:]].skipped(one.read_to, one.target_offset)
        ]
        assert not skipping, (len(skipping), skipping[:5])
        return len(seen)

    def _all_is_copied(self) -> bool:
        try:
            self.logs()
        except _TROUBLE:
            return False
        return not any(one.not_mirrored for one in self._logs.values())

    def logs(self) -> Mapping[tuple[str, int], CopiedPartition]:
        """All partitions, read to the ends that they have now."""
        with closing(Contents(self.source)) as source, closing(Contents(self.target)) as target:
            for link in self.links:
                for number in range(link.partitions):
                    logs = self._logs[link.topic, number]
                    logs.read_source(source, link.topic, number)
                    logs.read_target(target, link.remote, number)
        return self._logs

    # --- at work ------------------------------------------------------------------------------

    def _write(self, opened: ExitStack, link: Link) -> None:
        producer = opened.enter_context(_producer(link.source))
        while not self._stop.wait(link.pause_seconds):
            if self._resting.is_set():
                producer.flush(60)
                self._flushed[link.topic].set()
                continue
            self._flushed[link.topic].clear()
            for at in link.places(link.topic):
                for _ in range(self._chance.randint(0, link.records)):
                    value = b"%s-%d" % (link.topic.encode(), next(self._values))
                    future = producer.send(at.topic, partition=at.partition, value=value)
                    # One broker that is away does not keep records from the others.
                    future.add_callback(self._written)

    def _written(self, metadata: Any) -> None:
        key = metadata.topic, metadata.partition
        self._ends[key] = max(self._ends[key], metadata.offset + 1)
        self.counts["records"] += 1

    def _copy(self, opened: ExitStack, link: Link, copied: dict[TopicPartition, int]) -> None:
        """In order; after any trouble again from what is known to be copied."""
        consumer = opened.enter_context(closing(_consumer(link.source)))
        producer = opened.enter_context(_producer(link.target))
        consumer.assign(list(copied))
        for at, position in copied.items():
            consumer.seek(at, position)
        quiet_since = time.monotonic()
        while not self._stop.is_set():
            polled = consumer.poll(timeout_ms=200)
            sent = []
            for at, records in polled.items():
                for record in records:
                    if record.offset < copied[at]:
                        continue
                    future = producer.send(
                        link.remote,
                        partition=at.partition,
                        value=record.value,
                        timestamp_ms=record.timestamp,
                    )
                    sent.append((at, record.offset, future))
            for at, offset, future in sent:
                future.get(10)
                copied[at] = offset + 1
            if sent:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > 4:
                # A consumer that has met a dead broker may stay quiet for long.
                return

    @contextmanager
    def _some_groups(self, count: int) -> Iterator[Sequence[str]]:
        """Groups for which no other thread acts meanwhile."""
        with self._lock:
            groups = self._chance.sample(sorted(self._free), count)
            self._free -= {*groups}
        try:
            yield groups
        finally:
            with self._lock:
                self._free |= {*groups}

    def _commit(self, opened: ExitStack) -> None:
        """Groups without members, like those of consumers that assign partitions."""
        # By our own client: the library's waits without end for a coordinator that has moved.
        settings = ClusterSettings(
            "source", tuple(self.source.split(",")), admin_timeout_ms=_TIMEOUT_MS
        )
        cluster = opened.enter_context(KafkaCluster(settings))
        while not self._stop.wait(0.5):
            with self._some_groups(self._at_once) as groups, self.still:
                cluster.commit({group: self._read_on(group) for group in groups})
                self.counts["commits"] += len(groups)

    def _read_on(self, group: str) -> dict[ModelPartition, CommittedOffset]:
        """What the group commits next: everything is read, or some of it."""
        offsets = {}
        for link in self._links_of[group]:
            for number in range(link.partitions):
                key = GroupPartition(group, link.topic, number)
                most = max(self._ends[link.topic, number], self.read_to[key])
                offset = self._chance.choice((most, self._chance.randint(self.read_to[key], most)))
                self.read_to[key] = offset
                offsets[ModelPartition(link.topic, number)] = CommittedOffset(offset)
        return offsets

    def _join(self, opened: ExitStack) -> None:
        """A member: joins, reads and commits for a while, and leaves or just ends."""
        with self._some_groups(1) as (group,):
            consumer = opened.enter_context(
                closing(
                    KafkaConsumer(
                        *(link.topic for link in self._links_of[group]),
                        **_client(self.source),
                        group_id=group,
                        enable_auto_commit=False,
                        auto_offset_reset="latest",
                        session_timeout_ms=6_000,
                        heartbeat_interval_ms=1_000,
                        enable_incremental_fetch_sessions=False,
                    )
                )
            )
            until = time.monotonic() + self._chance.uniform(4, 25)
            self.counts["members"] += 1
            while time.monotonic() < until and not self._stop.is_set():
                consumer.poll(timeout_ms=500, max_records=self._chance.choice((5, 50, 500)))
                places = consumer.assignment()
                if places and self._chance.random() < 0.5:
                    consumer.commit(
                        {
                            at: OffsetAndMetadata(self._reads(group, at, position), "", -1)
                            for at in places
                            if (position := consumer.position(at, timeout_ms=1_000)) is not None
                        }
                    )

    def _reads(self, group: str, at: TopicPartition, offset: int) -> int:
        key = GroupPartition(group, at.topic, at.partition)
        self.read_to[key] = max(self.read_to[key], offset)
        return offset

    def _delete(self, opened: ExitStack) -> None:
        admin = opened.enter_context(closing(_admin(self.source)))
        while not self._stop.wait(15):
            with self._some_groups(1) as groups:
                admin.delete_groups(list(groups))
                self.counts["groups deleted"] += 1
                self._stop.wait(self._chance.uniform(1, 8))

    def _watch(self, opened: ExitStack) -> None:
        admin = opened.enter_context(closing(_admin(self.target)))
        topics = {link.remote: link.topic for link in self.links}
        while not self._stop.wait(0.3):
            # What a group has read is noted down before it is committed, so it is no less now
            # than what the daemon knew of.
            for group in self._links_of:
                for at, commit in admin.list_group_offsets(group)[group].items():
                    if at.topic in topics:
                        self._look(
                            GroupPartition(group, topics[at.topic], at.partition), commit.offset
                        )
            self._looks += 1
            self.counts["reads of the target groups"] += 1

    def _look(self, place: GroupPartition, offset: int) -> None:
        """Note a group's committed offset on the target, with what the group had read by then."""
        read_to = self.read_to[place]
        last = self._last.get(place, 0)
        if offset < last:
            self.steps_back.append(StepBack(place, last, offset))
        self._last[place] = offset
        self.seen.setdefault((place, offset), Seen(place, offset, read_to))


def _client(cluster: str) -> dict[str, Any]:
    return {"bootstrap_servers": cluster.split(","), "request_timeout_ms": _TIMEOUT_MS}


def _admin(cluster: str) -> KafkaAdminClient:
    return KafkaAdminClient(**_client(cluster), bootstrap_timeout_ms=_TIMEOUT_MS)


@contextmanager
def _producer(cluster: str) -> Iterator[KafkaProducer]:
    producer = KafkaProducer(
        **_client(cluster),
        acks="all",
        # In order without it; the library's own way there may get stuck where a broker hangs.
        enable_idempotence=False,
        max_in_flight_requests_per_connection=1,
        max_block_ms=_TIMEOUT_MS,
        delivery_timeout_ms=2 * _TIMEOUT_MS,
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
