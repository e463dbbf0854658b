"""Producers of different rhythm, and groups that come and go, while the daemon runs."""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.faults.traffic import Clients, Judge, Link, Work
from tests.waiting import wait_until

PARTITIONS = 3
# Members of groups at any time.
MEMBERS = 4
_PATIENCE_MS = 5_000


@dataclass(frozen=True, slots=True)
class Rhythm:
    """So many records for each partition, then a pause."""

    records: int
    pause_seconds: float


RHYTHMS: Mapping[str, Rhythm] = {
    "clicks": Rhythm(3, 0.5),
    "orders": Rhythm(1, 0.7),
    "exports": Rhythm(150, 20.0),
    "audits": Rhythm(1, 9.0),
}
GROUPS = [f"billing-{number:02}" for number in range(30)]


class Traffic(Clients):
    """Producers, members of groups, and groups without members; some groups are deleted.

    A group that is deleted and made anew begins where the log ends, as one does whose consumers
    reset to the latest offset: so no group ever goes back, and none may go back on the target.
    """

    def __init__(self, source: str, target: str, seed: int = 14) -> None:
        super().__init__()
        self._source, self._target = source, target
        self._links = {
            topic: Link(source, target, topic, f"A.{topic}", PARTITIONS, GROUPS)
            for topic in RHYTHMS
        }
        self._topics = {group: random.Random(group).sample(list(RHYTHMS), 2) for group in GROUPS}
        self._ends: defaultdict[TopicPartition, int] = defaultdict(int)
        self._values = iter(range(10**12))
        self._free = set(GROUPS)
        self._lock = threading.Lock()
        self._chance = random.Random(seed)

    def _works(self) -> Sequence[Work]:
        works: list[Work] = [self._commit, self._delete, self._watch]
        works += [lambda opened, topic=topic: self._write(opened, topic) for topic in RHYTHMS]
        return works + [self._join] * MEMBERS

    def rest(self) -> None:
        """Write no more records."""
        self._resting.set()

    def judge(self) -> int:
        """Hold each commit that was seen to what lies on both sides, when all is copied; how many
        there were. Raises AssertionError for a step back or a record that is skipped."""
        assert not self.steps_back, self.steps_back[:5]
        return self.judge_skips()

    def judge_skips(self) -> int:
        """The same of records that are skipped alone."""
        for topic, link in self._links.items():
            judge = Judge(link)
            self._read_all(judge)
            seen = [one for (_, of, _, _), one in self.seen.items() if of == topic]
            skipping = [one for one in seen if judge.skips(one)]
            assert not skipping, (topic, len(skipping), skipping[:5])
        return len(self.seen)

    def _read_all(self, judge: Judge) -> None:
        def complete() -> bool:
            try:
                judge.read()
            except AssertionError:
                return False
            return True

        wait_until(complete, "all is copied", seconds=180)

    @contextmanager
    def _one_group(self) -> Iterator[str]:
        """A group that nobody else acts for meanwhile."""
        with self._lock:
            group = self._chance.choice(sorted(self._free))
            self._free.remove(group)
        try:
            yield group
        finally:
            with self._lock:
                self._free.add(group)

    # --- at work ------------------------------------------------------------------------------

    def _write(self, opened: ExitStack, topic: str) -> None:
        rhythm = RHYTHMS[topic]
        producer = opened.enter_context(
            closing(
                KafkaProducer(
                    bootstrap_servers=self._source.split(","),
                    max_block_ms=_PATIENCE_MS,
                    request_timeout_ms=_PATIENCE_MS,
                    delivery_timeout_ms=2 * _PATIENCE_MS,
                )
            )
        )
        while not self._stop.wait(rhythm.pause_seconds):
            if self._resting.is_set():
                producer.flush(60)
                return
            for at in self._links[topic].places(topic):
                for _ in range(rhythm.records):
                    value = b"%s-%d" % (topic.encode(), next(self._values))
                    future = producer.send(topic, partition=at.partition, value=value)
                    future.add_callback(self._written)

    def _written(self, metadata: object) -> None:
        at = TopicPartition(metadata.topic, metadata.partition)  # type: ignore[attr-defined]
        end = metadata.offset + 1  # type: ignore[attr-defined]
        self._ends[at] = max(self._ends[at], end)
        self.counts["records"] += 1

    def _join(self, opened: ExitStack) -> None:
        """A member: joins, reads and commits for a while, and leaves or just ends."""
        with self._one_group() as group:
            consumer = opened.enter_context(
                closing(
                    KafkaConsumer(
                        *self._topics[group],
                        bootstrap_servers=self._source.split(","),
                        group_id=group,
                        enable_auto_commit=False,
                        auto_offset_reset="latest",
                        session_timeout_ms=6_000,
                        heartbeat_interval_ms=1_000,
                        request_timeout_ms=_PATIENCE_MS,
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
        key = group, at.topic, at.partition
        self.read_to[key] = max(self.read_to[key], offset)
        return offset

    def _commit(self, opened: ExitStack) -> None:
        """Groups without members whose offsets are set, as those do who assign partitions."""
        admin = opened.enter_context(closing(_admin(self._source)))
        while not self._stop.wait(0.4):
            with self._one_group() as group:
                offsets = {}
                for topic in self._topics[group]:
                    for at in self._links[topic].places(topic):
                        least = self.read_to[group, topic, at.partition]
                        most = max(self._ends[at], least)
                        wanted = self._chance.choice((most, self._chance.randint(least, most)))
                        offset = self._reads(group, at, wanted)
                        offsets[at] = OffsetAndMetadata(offset, "", None)
                admin.alter_group_offsets(group, offsets)
                self.counts["commits"] += 1

    def _delete(self, opened: ExitStack) -> None:
        """Groups that go, and come again later."""
        admin = opened.enter_context(closing(_admin(self._source)))
        while not self._stop.wait(15):
            with self._one_group() as group:
                admin.delete_groups([group])
                self.counts["groups deleted"] += 1
                self._stop.wait(self._chance.uniform(1, 8))

    def _watch(self, opened: ExitStack) -> None:
        admin = opened.enter_context(closing(_admin(self._target)))
        while not self._stop.wait(0.5):
            # What a group has read is noted down before it is committed, so it is no less now
            # than what the daemon knew of.
            for group in GROUPS:
                for at, commit in admin.list_group_offsets(group)[group].items():
                    place = group, at.topic.removeprefix("A."), at.partition
                    self._look(place, commit.offset)
            self.counts["reads of the target groups"] += 1


def _admin(cluster: str) -> KafkaAdminClient:
    return KafkaAdminClient(
        bootstrap_servers=cluster.split(","),
        request_timeout_ms=_PATIENCE_MS,
        bootstrap_timeout_ms=_PATIENCE_MS,
    )
