"""Those who write to the source, and those who read there and then on the target."""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from random import Random
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.producing import Contents, Transaction, Written
from tests.scenarios.rounds.plans import Clock, Plan
from tests.waiting import wait_until

_YEARS_MS = 10 * 365 * 24 * 3_600_000


class Writer:
    """Writes a round's records; `written` is what consumers are to get, by partition: each
    value with its source offset. No value comes twice."""

    def __init__(self, contents: Contents, plan: Plan, chance: Random) -> None:
        self._contents = contents
        self._plan = plan
        self._chance = chance
        self._time_ms = int(time.time() * 1000)
        self._count = 0
        self._open: tuple[Transaction, dict[int, dict[bytes, int]]] | None = None
        self.transactions = 0
        self.written: Mapping[int, dict[bytes, int]] = {
            partition: {} for partition in range(plan.partitions)
        }

    def write(self) -> None:
        """Write some records to a partition, in batches of any size; of a transactional round
        some in transactions, which stay open for a while and may be aborted."""
        partition = self._chance.randrange(self._plan.partitions)
        records = [self._record(partition) for _ in range(self._chance.choice((1, 3, 15, 40, 90)))]
        if self._plan.transactional and self._chance.random() < 0.4:
            self._write_in_transaction(partition, records)
            return
        offsets = self._contents.produce(
            self._plan.topic, records, partition=partition, batch=self._chance.randint(1, 60)
        )
        self.written[partition].update(_places(records, offsets))

    def finish(self) -> None:
        if self._open is None:
            return
        transaction, places = self._open
        self._open = None
        if self._chance.random() < 0.6:
            transaction.commit()
            for partition, some in places.items():
                self.written[partition].update(some)
        else:
            transaction.abort()

    def _write_in_transaction(self, partition: int, records: Sequence[Written]) -> None:
        if self._open is None:
            self.transactions += 1
            name = f"{self._plan.topic}-{self.transactions}"
            self._open = (self._contents.begin_transaction(name), defaultdict(dict))
        transaction, places = self._open
        offsets = transaction.add(self._plan.topic, records, partition=partition, batch=30)
        places[partition].update(_places(records, offsets))
        if self._chance.random() < 0.4:
            self.finish()

    def _record(self, partition: int) -> Written:
        self._count += 1
        value = b"%s/%d/%d" % (self._plan.topic.encode(), partition, self._count)
        key = b"key-%d" % self._chance.randrange(20) if self._plan.keyed else None
        return Written(self._stamp(), value, key)

    def _stamp(self) -> int:
        chance = self._chance
        match self._plan.clock:
            case Clock.RISING:
                self._time_ms += chance.randint(1, 5)
            case Clock.RUNS:
                self._time_ms += chance.random() < 0.05
            case Clock.JITTER:
                self._time_ms += 1
                return self._time_ms + chance.randint(-50, 50)
            case Clock.FAR_FUTURE:
                self._time_ms += chance.randint(0, 2)
                if chance.random() < 0.01:
                    return self._time_ms + _YEARS_MS + chance.randint(0, 1)
            case Clock.EQUAL:
                pass
        return self._time_ms


def _places(records: Sequence[Written], offsets: Sequence[int]) -> dict[bytes, int]:
    places = {}
    for record, offset in zip(records, offsets, strict=True):
        places[record.value] = offset
    return places


class Application:
    """One group's consumer on the source: it processes records, and commits now and then what
    it has processed, or less. `committed` is what the cluster has acknowledged, by partition.

    Some join their group, others assign the partitions themselves.
    """

    def __init__(self, contents: Contents, group: str, plan: Plan, chance: Random) -> None:
        self.group = group
        self.processed: Mapping[int, dict[bytes, int]] = {
            partition: {} for partition in range(plan.partitions)
        }
        self.committed: dict[int, int] = {}
        self._chance = chance
        self._diligence = chance.choice((1.0, 0.5, 0.2))
        self._consumer = _consumer(contents, group)
        self._member = chance.random() < 0.25
        if self._member:
            self._consumer.subscribe([plan.topic])
        else:
            self._consumer.assign(_all_of(plan.topic, plan.partitions))

    def step(self) -> None:
        """Process what there is, and perhaps commit; or begin again at the last commit, as
        after a crash."""
        if self._chance.random() < 0.04:
            self._begin_again()
        polled = self._consumer.poll(
            timeout_ms=30, max_records=self._chance.choice((1, 10, 60, 300))
        )
        for place, records in polled.items():
            for record in records:
                self.processed[place.partition][record.value] = record.offset
        if polled and self._chance.random() < self._diligence:
            self._commit(polled)

    def stop(self) -> None:
        """Leave, after a last commit of all that was processed or without one."""
        if self._chance.random() < 0.4:
            self._send_commits(
                {place: self._consumer.position(place) for place in self._consumer.assignment()}
            )
        self._consumer.close(autocommit=False)

    @contextmanager
    def gone_over(
        self, contents: Contents, topic: str, *, joins: bool
    ) -> Iterator[tuple[KafkaConsumer, Mapping[int, Mapping[bytes, int]]]]:
        """The group's consumer on the target, and what it got of each partition: each value with
        the offset it was got at first. It got all from the group's commit there, or from the
        beginning without one, to the logs' ends."""
        with closing(_consumer(contents, self.group)) as consumer:
            places = _all_of(topic, len(self.processed))
            if joins:
                consumer.subscribe([topic])
            else:
                consumer.assign(places)
            ends = consumer.end_offsets(places)
            got: Mapping[int, dict[bytes, int]] = {place.partition: {} for place in places}

            def at_the_ends() -> bool:
                for place, records in consumer.poll(timeout_ms=100).items():
                    for record in records:
                        got[place.partition].setdefault(record.value, record.offset)
                return consumer.assignment() == {*places} and all(
                    consumer.position(place) >= end for place, end in ends.items()
                )

            wait_until(at_the_ends, f"{self.group} has read {topic} to its end")
            yield consumer, got

    def _commit(self, polled: Mapping[TopicPartition, Sequence[Any]]) -> None:
        """Commit where the consumer stands, or some record that it has processed: the rest is
        processed, but not committed."""
        self._send_commits(
            {
                place: self._consumer.position(place)
                if self._chance.random() < 0.6
                else self._chance.choice(records).offset + 1
                for place, records in polled.items()
            }
        )

    def _send_commits(self, offsets: Mapping[TopicPartition, int]) -> None:
        further = {
            place: offset
            for place, offset in offsets.items()
            if offset > self.committed.get(place.partition, 0)
        }
        if further:
            self._consumer.commit(
                {place: OffsetAndMetadata(offset, "", -1) for place, offset in further.items()}
            )
            self.committed |= {place.partition: offset for place, offset in further.items()}

    def _begin_again(self) -> None:
        for place in self._consumer.assignment():
            if place.partition in self.committed:
                self._consumer.seek(place, self.committed[place.partition])
            else:
                self._consumer.seek_to_beginning(place)


def _consumer(contents: Contents, group: str | None) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=contents.bootstrap,
        group_id=group,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=10_000,
        fetch_max_wait_ms=100,
        # After a long pause between polls kafka-python 3.0 may fetch nothing in a session.
        enable_incremental_fetch_sessions=False,
    )


def _all_of(topic: str, partitions: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(partitions)]
