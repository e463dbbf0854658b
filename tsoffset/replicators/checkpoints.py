"""Reading a checkpoints topic: the newest checkpoint of each group and partition."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from tsoffset.cluster import Cluster
from tsoffset.model import Failed, Isolation, LogRange, ReadFrom, TopicPartition
from tsoffset.records import RawRecord
from tsoffset.replicators.checkpoint import (
    CheckpointKey,
    MalformedCheckpoint,
    decode_key,
    decode_value,
)

_BYTES_PER_READ = 1_000_000


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The newest checkpoint of a group and partition; `timestamp_ms` is when it was written.

    `source_offset` is the committed offset that was translated.
    """

    source_offset: int
    target_offset: int
    timestamp_ms: int | None


@dataclass(slots=True)
class Checkpoints:
    """Translations of another tool for the selected groups, usually from a checkpoints topic.

    `once` has the keys with a checkpoint, the newest or an earlier one, equal to what the target
    group has `committed`. `unanswered` says for keys why there is no newest one. `malformed` counts
    records that are no checkpoints. With `missing` the topic does not exist. `failures` say which
    partitions could not be read; then no checkpoint is known to be the newest.
    """

    committed: Mapping[CheckpointKey, int] = field(default_factory=dict)
    newest: dict[CheckpointKey, Checkpoint] = field(default_factory=dict)
    once: set[CheckpointKey] = field(default_factory=set)
    unanswered: dict[CheckpointKey, str] = field(default_factory=dict)
    malformed: int = 0
    missing: bool = False
    failures: tuple[Failed, ...] = ()

    def add(self, key: CheckpointKey, checkpoint: Checkpoint) -> None:
        """Keep the checkpoint if it is newer than the known one."""
        if self.committed.get(key) == checkpoint.target_offset:
            self.once.add(key)
        known = self.newest.get(key)
        # In one partition the later record replaces the earlier; over several partitions, where a
        # key should never be, the time decides.
        if known is None or (known.timestamp_ms or 0) <= (checkpoint.timestamp_ms or 0):
            self.newest[key] = checkpoint


def read_checkpoints(
    cluster: Cluster,
    topic: str,
    *,
    wanted: Callable[[CheckpointKey], bool],
    committed: Mapping[CheckpointKey, int],
    last: int | None = None,
) -> Checkpoints:
    """Read all partitions of the topic to their ends, and keep the wanted checkpoints.

    `committed` has the target groups' offsets; `last` is the number of records to read of each
    partition (None: all). Raises ClusterUnreachable.
    """
    found = Checkpoints(committed)
    described = cluster.topics([topic])[topic]
    if isinstance(described, Failed):
        found.missing = described.missing
        found.failures = () if described.missing else (described,)
        return found
    failures: list[Failed] = []
    partitions = [TopicPartition(topic, number) for number in described.partitions]
    for record in _records(cluster, partitions, failures, last):
        _take(found, record, wanted)
    found.failures = tuple(failures)
    return found


def _records(
    cluster: Cluster,
    partitions: Collection[TopicPartition],
    failures: list[Failed],
    last: int | None,
) -> Iterator[RawRecord]:
    """The records of the partitions, each in order, up to the present end of its log."""
    left: dict[TopicPartition, LogRange] = {}
    for partition, log in cluster.log_ranges(partitions, Isolation.READ_COMMITTED).items():
        if isinstance(log, Failed):
            failures.append(log)
        elif log.start < log.end:
            start = log.start if last is None else max(log.start, log.end - last)
            left[partition] = LogRange(start, log.end)
    while left:
        requests = [ReadFrom(one, log.start, _BYTES_PER_READ) for one, log in left.items()]
        for request, stretch in cluster.read_raw(requests, Isolation.READ_COMMITTED).items():
            end = left.pop(request.partition).end
            if isinstance(stretch, Failed):
                failures.append(stretch)
                continue
            yield from stretch.records
            if request.offset < stretch.end < end:
                left[request.partition] = LogRange(stretch.end, end)


def _take(found: Checkpoints, record: RawRecord, wanted: Callable[[CheckpointKey], bool]) -> None:
    try:
        key = decode_key(record.key)
        value = None if record.value is None else decode_value(record.value)
    except MalformedCheckpoint:
        found.malformed += 1
        return
    if not wanted(key):
        return
    if value is None:
        found.newest.pop(key, None)
        return
    found.add(key, Checkpoint(value.source_offset, value.target_offset, record.timestamp_ms))
