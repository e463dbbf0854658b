"""The logs on which the limit is measured, and the offsets that are read in them."""

import random
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from tests.producing import Contents, numbered
from tsoffset.model import FirstAtTime, ReadFrom, TopicPartition

PARTITIONS = 8
VALUE_BYTES = 100


@dataclass(frozen=True, slots=True)
class Log:
    """A topic whose batches have `batch` records each, and random offsets in it."""

    batch: int
    reads: tuple[ReadFrom, ...]
    lookups: tuple[tuple[FirstAtTime, ...], ...]

    @property
    def times(self) -> list[FirstAtTime]:
        """All lookups."""
        return [each for layer in self.lookups for each in layer]


def write_logs(bootstrap: str, batches: Sequence[int], places: int, seed: int) -> list[Log]:
    """A topic for each size of batch, with room for `places` different offsets."""
    with closing(Contents(bootstrap)) as contents:
        return [_write(contents, batch, places, seed) for batch in batches]


def _write(contents: Contents, batch: int, places: int, seed: int) -> Log:
    topic = contents.create_topic(f"batches-of-{batch}", PARTITIONS)
    per_partition = max(200, -(-places // (PARTITIONS * batch))) * batch
    start_ms = int(time.time() * 1000) - per_partition
    for number in range(PARTITIONS):
        records = [
            type(record)(record.timestamp_ms, record.value.ljust(VALUE_BYTES, b"."), record.key)
            for record in numbered(per_partition, start_ms=start_ms)
            if record.value is not None
        ]
        contents.produce(topic, records, partition=number, batch=batch)
    rng = random.Random(seed)
    all_places = [(n, offset) for n in range(PARTITIONS) for offset in range(per_partition)]
    chosen = rng.sample(all_places, places)
    requests = places // PARTITIONS
    # No time occurs twice in a partition, because equal lookups are sent once, and the raw work has
    # no such saving.
    times = [rng.sample(range(per_partition), requests) for _ in range(PARTITIONS)]
    layers = [
        tuple(
            FirstAtTime(TopicPartition(topic, number), start_ms + times[number][request])
            for number in range(PARTITIONS)
        )
        for request in range(requests)
    ]
    return Log(
        batch,
        tuple(ReadFrom(TopicPartition(topic, number), offset) for number, offset in chosen),
        tuple(layers),
    )
