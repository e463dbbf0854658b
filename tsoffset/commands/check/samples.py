"""Samples copies: reads a few source records of each topic, and lets the rule find their copies.

The rule runs on at most five offsets of at most two partitions a topic. It first compares
timestamp, key and value. For a record without such a copy it ignores the value, the key, or both: a
copy that is found this way differs from the record in the ignored parts.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tsoffset.cluster import Cluster
from tsoffset.commands.check.survey import SyncedTopic
from tsoffset.cycle.rounds import translate_partitions
from tsoffset.cycle.source_commits import renaming_of
from tsoffset.cycle.work import PartitionWork, TranslatedPosition
from tsoffset.flow.settings import FlowSettings, TranslationSettings
from tsoffset.model import (
    Failed,
    Isolation,
    LogRange,
    Precision,
    ReadFrom,
    Reason,
    Skipped,
    TopicPartition,
    Translated,
)
from tsoffset.records import Record

MOST_TOPICS = 100
CONTENT = ("key", "value")
_PARTITIONS = 2
_PIECE_BYTES = 64_000
_SCAN_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class Copy:
    """A source record and its copy, which has the same timestamp."""

    original: Record
    record: Record

    @property
    def differs(self) -> frozenset[str]:
        """The parts of CONTENT that are not equal."""
        return frozenset(CONTENT) - _same(self.original, self.record)


@dataclass(slots=True)
class SampledTopic:
    """The samples of one topic: the copies that were found, and how many were looked for.

    `failed` is the error if copies of other samples could not be read. `stamped_by_target`: a batch
    that was read has timestamps of the target. `diverged` is a message if the flow expects equal
    offsets, but the mirror has another record at an offset.
    """

    topic: SyncedTopic
    looked_for: int = 0
    copies: list[Copy] = field(default_factory=list)
    failed: Failed | None = None
    stamped_by_target: bool = False
    diverged: str | None = None


@dataclass(slots=True, eq=False)
class _Sample:
    """One source record of a partition, the records near it, and its copy once it is found."""

    topic: SampledTopic
    partition: PartitionWork
    record: Record
    near: tuple[Record, ...]
    copy: Record | None = None
    failed: Failed | None = None

    def is_unique(self, match: frozenset[str]) -> bool:
        """Whether no record near it has the same timestamp and equals it in the parts of
        `match`."""
        same = (
            one
            for one in self.near
            if one.timestamp_ms == self.record.timestamp_ms and _same(one, self.record) >= match
        )
        return sum(1 for _ in same) == 1


def sample_topics(
    flow: FlowSettings, source: Cluster, target: Cluster, topics: Sequence[SyncedTopic]
) -> list[SampledTopic]:
    """Sample the topics, at most MOST_TOPICS. What cannot be read is omitted, since other
    findings report it. Raises ClusterUnreachable."""
    found = [SampledTopic(topic) for topic in topics[:MOST_TOPICS]]
    samples = _samples(flow, source, target, found)
    if flow.translation.expect is not None:
        for sample, answer in _translate_samples(flow, source, target, samples):
            outcome = answer.translation.outcome
            if isinstance(outcome, Skipped) and outcome.reason is Reason.DIVERGED:
                sample.topic.diverged = outcome.message
    for match in (CONTENT, ("key",), ("value",), ()):
        _find(flow, source, target, samples, frozenset(match))
    for sample in samples:
        if sample.copy is None and sample.failed is not None:
            # What cannot be read is not known to be missing.
            sample.topic.failed = sample.failed
            continue
        sample.topic.looked_for += 1
        if sample.copy is not None:
            sample.topic.copies.append(Copy(sample.record, sample.copy))
    for topic in found:
        differing = [copy for copy in topic.copies if copy.differs]
        # A replicator that changes records changes more than one. A single different copy may
        # belong to another record of the same timestamp: compaction can remove the real copy.
        if len(differing) == 1:
            topic.copies.remove(differing[0])
    return found


def _same(one: Record, other: Record) -> frozenset[str]:
    return frozenset(part for part in CONTENT if getattr(one, part) == getattr(other, part))


def positions(source: LogRange, target: LogRange) -> tuple[int, ...]:
    """The offsets to sample: the source's first record, and four among its last records, as many as
    the target's log holds. So some have copies despite short retention or a new mirror (pure)."""
    reach = min(source.end - source.start, target.end - target.start)
    spread = {source.end - max(1, reach * part // 3) for part in range(4)}
    return tuple(sorted({source.start, *spread}))


def _samples(
    flow: FlowSettings, source: Cluster, target: Cluster, topics: Sequence[SampledTopic]
) -> list[_Sample]:
    """The first record with a timestamp at each offset to sample, none of them twice."""
    wanted = [
        (topic, partition, ReadFrom(partition.source, offset, _PIECE_BYTES))
        for topic, partition in _partitions(flow, source, target, topics)
        for offset in partition.offsets
    ]
    read = _read(source, [request for _, _, request in wanted], flow.isolation)
    found: dict[tuple[TopicPartition, int], _Sample] = {}
    for topic, partition, request in wanted:
        for record in read[request]:
            if record.offset >= request.offset and record.timestamp_ms is not None:
                sample = _Sample(topic, partition, record, read[request])
                found.setdefault((partition.source, record.offset), sample)
                break
    return list(found.values())


def _partitions(
    flow: FlowSettings, source: Cluster, target: Cluster, topics: Sequence[SampledTopic]
) -> Iterator[tuple[SampledTopic, PartitionWork]]:
    """The partitions of each topic with the longest nonempty copies, and the offsets to sample."""
    pairs = {
        topic.topic.source: [
            (TopicPartition(topic.topic.source, n), TopicPartition(topic.topic.target, n))
            for n in sorted(topic.topic.partitions)
        ]
        for topic in topics
    }
    every = [pair for some in pairs.values() for pair in some]
    of_source = source.log_ranges([one for one, _ in every], flow.isolation)
    of_target = target.log_ranges([one for _, one in every], Isolation.READ_COMMITTED)
    for topic in topics:
        renaming = renaming_of(flow, topic.topic.source)
        if renaming is None:
            continue
        filled = []
        for original, copy in pairs[topic.topic.source]:
            here, there = of_source[original], of_target[copy]
            if isinstance(here, Failed) or isinstance(there, Failed):
                continue
            if here.start < here.end and there.start < there.end:
                filled.append((there.start - there.end, original, copy, positions(here, there)))
        for _, original, copy, offsets in sorted(filled)[:_PARTITIONS]:
            says = (renaming.is_remote_topic, renaming.failback)
            yield topic, PartitionWork(original, copy, offsets, *says)


def _read(
    cluster: Cluster, requests: Iterable[ReadFrom], isolation: Isolation
) -> Mapping[ReadFrom, tuple[Record, ...]]:
    """The records of each request; empty for a request that failed."""
    wanted = list(dict.fromkeys(requests))
    answers = cluster.read(wanted, isolation) if wanted else {}
    return {
        request: () if isinstance(fetched, Failed) else tuple(fetched.records)
        for request, fetched in answers.items()
    }


def _translate_samples(
    flow: FlowSettings, source: Cluster, target: Cluster, samples: Sequence[_Sample]
) -> Iterator[tuple[_Sample, TranslatedPosition]]:
    """The samples, each with what the rule says of its offset."""
    offsets: defaultdict[PartitionWork, list[int]] = defaultdict(list)
    for sample in samples:
        offsets[sample.partition].append(sample.record.offset)
    work = [replace(one, offsets=tuple(sorted(some))) for one, some in offsets.items()]
    at = {(sample.partition.source, sample.record.offset): sample for sample in samples}
    for answer in translate_partitions(flow, source, target, work):
        yield at[answer.partition, answer.offset], answer


def _find(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    samples: Sequence[_Sample],
    match: frozenset[str],
) -> None:
    """Run the rule for the samples without a copy, and keep the copies that it proves by timestamp
    and `match`. A sample that a nearby record equals in these parts is omitted, because the copy
    could belong to either record."""
    whole = len(match) == len(CONTENT)
    left = [one for one in samples if one.copy is None and (whole or one.is_unique(match))]
    settings = TranslationSettings(match=match | {"timestamp"}, scan_bytes=_SCAN_BYTES)
    found: dict[_Sample, ReadFrom] = {}
    for sample, answer in _translate_samples(
        replace(flow, translation=settings), source, target, left
    ):
        sample.topic.stamped_by_target |= answer.target_rewrites_timestamps
        outcome = answer.translation.outcome
        if isinstance(outcome, Failed):
            sample.failed = outcome
        if isinstance(outcome, Translated) and (whole or outcome.precision is Precision.EXACT):
            copy = dict(outcome.pairs).get(answer.offset)
            if copy is not None:
                found[sample] = ReadFrom(sample.partition.target, copy)
    read = _read(target, found.values(), Isolation.READ_COMMITTED)
    for sample, request in found.items():
        sample.copy = next((one for one in read[request] if one.offset == request.offset), None)
