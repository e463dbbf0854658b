"""Large logs quickly: a batch is built once and sent repeatedly with other times.

Consecutive records are a millisecond apart; keys and values repeat after ten, so that a log and its
copy may have batches of different sizes.
"""

import random
import struct
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from crc32c import crc32c
from kafka import KafkaAdminClient

from tests.producing import Contents, Written, batch_of, first_offset, produce_request
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import CommittedOffset, TopicPartition

# Where a version 2 batch has its checksum, what the checksum covers, and its first and last time.
_CRC_AT, _CRC_FROM, _TIMES_AT = 17, 21, 27
_PERIOD = 10
_UNDER_WAY = 4
_GROUPS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Batches:
    """`records` (a multiple of ten) per batch, each of `value_bytes`."""

    records: int
    value_bytes: int = 100

    def stamped(self, count: int, start_ms: int) -> Iterator[bytes]:
        """`count` batches whose records follow each other by a millisecond."""
        filler = random.Random(1292)
        values = [filler.randbytes(self.value_bytes) for _ in range(_PERIOD)]
        records = [
            Written(number, values[number % _PERIOD], b"key-%d" % (number % _PERIOD))
            for number in range(self.records)
        ]
        batch = bytearray(batch_of(records))
        for number in range(count):
            first_ms = start_ms + number * self.records
            struct.pack_into(">qq", batch, _TIMES_AT, first_ms, first_ms + self.records - 1)
            struct.pack_into(">I", batch, _CRC_AT, crc32c(memoryview(batch)[_CRC_FROM:]))
            yield bytes(batch)


def topic(
    bootstrap: str,
    name: str,
    partitions: int,
    *,
    configs: Mapping[str, str] | None = None,
) -> None:
    """A new topic that is ready to be written to."""
    with closing(Contents(bootstrap)) as contents:
        contents.create_topic(name, partitions, configs=configs)


def fill(
    bootstrap: str,
    name: str,
    partitions: Sequence[int],
    batches: Batches,
    count: int,
    start_ms: int,
) -> None:
    """Write `count` batches to each partition; on a cluster of one node."""
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        (described,) = admin.describe_topics([name])
        node = described["partitions"][0]["leader_id"]

        async def send(partition: int) -> None:
            under_way: deque[Any] = deque()
            for batch in batches.stamped(count, start_ms):
                if len(under_way) == _UNDER_WAY:
                    first_offset(await under_way.popleft())
                under_way.append(
                    admin._manager.send(produce_request(name, partition, batch), node_id=node)
                )
            while under_way:
                first_offset(await under_way.popleft())

        for partition in partitions:
            admin._manager.run(send, partition)


def commit(settings: ClusterSettings, offsets: Mapping[str, Mapping[TopicPartition, int]]) -> None:
    """Commit for many groups at once."""
    names = list(offsets)
    with KafkaCluster(settings) as cluster:
        for start in range(0, len(names), _GROUPS_AT_ONCE):
            some = names[start : start + _GROUPS_AT_ONCE]
            answers = cluster.commit(
                {g: {p: CommittedOffset(o) for p, o in offsets[g].items()} for g in some}
            )
            bad = [found for of in answers.values() for found in of.values() if found is not None]
            assert not bad, bad[0]


def committed(
    settings: ClusterSettings, groups: Iterable[str]
) -> dict[str, dict[TopicPartition, int]]:
    """What groups have committed."""
    names, found = list(groups), {}
    with KafkaCluster(settings) as cluster:
        for start in range(0, len(names), _GROUPS_AT_ONCE):
            some = names[start : start + _GROUPS_AT_ONCE]
            for group, offsets in cluster.committed(some, require_stable=True).by_group().items():
                assert isinstance(offsets, Mapping), offsets
                found[group] = {
                    place: offset.offset
                    for place, offset in offsets.items()
                    if isinstance(offset, CommittedOffset)
                }
    return found


def recent_ms(records: int) -> int:
    """A time after which this many records are still in the past."""
    return int(time.time() * 1000) - records - 60_000
