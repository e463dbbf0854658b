"""Samples copies: reads a few source records of each topic, and lets the rule find their copies.

The rule runs on at most five offsets of at most two partitions a topic. It first compares
timestamp, key and value. For records without such a copy it compares fewer parts: a copy that it
finds then differs in the others.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain

from tsoffset.cluster import Cluster
from tsoffset.commands.check.survey import SyncedTopic
from tsoffset.cycle.rounds import translate_partitions
from tsoffset.cycle.source_commits import renaming_of
from tsoffset.cycle.work import PartitionWork
from tsoffset.flow.policy import Renaming
from tsoffset.flow.settings import FlowSettings, TranslationSettings
from tsoffset.model import (
    Failed,
    FirstAtTime,
    Isolation,
    LogRange,
    Precision,
    ReadFrom,
    Reason,
    Skipped,
    TimedOffset,
    TopicPartition,
    Translated,
)
from tsoffset.records import Record

MOST_TOPICS = 100
_PARTITIONS = 2
_PIECE_BYTES = 64_000
_SCAN_BYTES = 2_000_000


class RecordPart(StrEnum):
    """A part in which a copy may differ from its source record."""

    TIMESTAMP = "timestamp"
    KEY = "key"
    VALUE = "value"

    def of(self, record: Record) -> object:
        return getattr(record, "timestamp_ms" if self is RecordPart.TIMESTAMP else self.value)


_ALL = frozenset(RecordPart)
_LESS = (_ALL - {RecordPart.VALUE}, _ALL - {RecordPart.KEY}, frozenset({RecordPart.TIMESTAMP}))


@dataclass(frozen=True, slots=True)
class Copy:
    original: Record
    record: Record

    @property
    def differs(self) -> frozenset[RecordPart]:
        return _ALL - _same(self.original, self.record)


@dataclass(slots=True)
class SampledTopic:
    """The samples of one topic: the copies that were found, and how many were looked for.

    `stamped_by_target`: a batch that was read has timestamps of the target. `diverged` is the
    message of a mirror that is expected to keep offsets, but has other records at an offset.
    """

    topic: SyncedTopic
    looked_for: int = 0
    copies: list[Copy] = field(default_factory=list)
    stamped_by_target: bool = False
    diverged: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Partition:
    sampled: SampledTopic
    renaming: Renaming
    source: TopicPartition
    target: TopicPartition
    source_range: LogRange
    target_range: LogRange


@dataclass(slots=True, eq=False)
class _Sample:
    """One source record, the records near it, and its copy once it is found."""

    place: _Partition
    record: Record
    near: tuple[Record, ...]
    copy: Record | None = None

    def is_unique(self, match: Collection[RecordPart]) -> bool:
        """Whether no record near it equals it in the parts of `match`."""
        same = (one for one in self.near if _same(one, self.record) >= set(match))
        return sum(1 for _ in same) == 1


def sample_topics(
    flow: FlowSettings, source: Cluster, target: Cluster, topics: Sequence[SyncedTopic]
) -> list[SampledTopic]:
    """Sample the topics, at most MOST_TOPICS. What cannot be read is left out, since other
    findings report it. Raises ClusterUnreachable."""
    found = [SampledTopic(topic) for topic in topics[:MOST_TOPICS]]
    samples = _samples(source, _places(flow, source, target, found), flow.isolation)
    if flow.translation.expect is not None:
        of_partition = {sample.place.source: sample.place.sampled for sample in samples}
        for answer in translate_partitions(flow, source, target, _work(samples)):
            outcome = answer.translation.outcome
            if isinstance(outcome, Skipped) and outcome.reason is Reason.DIVERGED:
                of_partition[answer.partition].diverged = outcome.message
    _find(flow, source, target, samples, _ALL)
    _find_with_other_timestamps(flow, source, target, samples)
    for match in _LESS:
        _find(flow, source, target, samples, match)
    for sample in samples:
        sample.place.sampled.looked_for += 1
        if sample.copy is not None:
            sample.place.sampled.copies.append(Copy(sample.record, sample.copy))
    for sampled in found:
        sampled.copies = _credible(sampled.copies)
    return found


def _same(one: Record, other: Record) -> frozenset[RecordPart]:
    return frozenset(part for part in RecordPart if part.of(one) == part.of(other))


def _credible(copies: list[Copy]) -> list[Copy]:
    """Leave out what may be the copy of another record, whose duplicate was compacted on one side
    (pure). A replicator that changes timestamps changes all of them, and one that changes other
    parts changes more than one record."""
    kept = [copy for copy in copies if RecordPart.TIMESTAMP not in copy.differs] or copies
    differing = [copy for copy in kept if copy.differs]
    return kept if len(differing) > 1 else [copy for copy in kept if not copy.differs]


def _places(
    flow: FlowSettings, source: Cluster, target: Cluster, topics: Sequence[SampledTopic]
) -> list[_Partition]:
    """The partitions of each topic with the longest nonempty copies."""
    pairs = [
        (sampled, TopicPartition(sampled.topic.source, n), TopicPartition(sampled.topic.target, n))
        for sampled in topics
        for n in sorted(sampled.topic.partitions)
    ]
    source_ranges = source.log_ranges([one for _, one, _ in pairs], flow.isolation)
    target_ranges = target.log_ranges([one for _, _, one in pairs], Isolation.READ_COMMITTED)
    found: defaultdict[str, list[_Partition]] = defaultdict(list)
    for sampled, original, copy in pairs:
        source_range, target_range = source_ranges[original], target_ranges[copy]
        renaming = renaming_of(flow, original.topic)
        if isinstance(source_range, Failed) or isinstance(target_range, Failed) or renaming is None:
            continue
        if source_range.start < source_range.end and target_range.start < target_range.end:
            place = _Partition(sampled, renaming, original, copy, source_range, target_range)
            found[original.topic].append(place)
    for places in found.values():
        places.sort(key=lambda one: one.target_range.start - one.target_range.end)
    return list(chain(*(places[:_PARTITIONS] for places in found.values())))


def positions(source: LogRange, target: LogRange) -> list[int]:
    """The offsets to sample: the source's first record, and four as far from its end as the target
    reaches back, so that some have copies despite short retention or a new mirror (pure)."""
    reach = min(source.end - source.start, target.end - target.start)
    spread = {source.end - max(1, reach * part // 3) for part in range(4)}
    return sorted({source.start, *spread})


def _samples(source: Cluster, places: Sequence[_Partition], isolation: Isolation) -> list[_Sample]:
    """The first record with a timestamp at each offset, none of them twice."""
    wanted = [
        (place, ReadFrom(place.source, offset, _PIECE_BYTES))
        for place in places
        for offset in positions(place.source_range, place.target_range)
    ]
    read = _read(source, [request for _, request in wanted], isolation)
    found: dict[tuple[TopicPartition, int], _Sample] = {}
    for place, request in wanted:
        for record in read[request]:
            if record.offset >= request.offset and record.timestamp_ms is not None:
                sample = _Sample(place, record, read[request])
                found.setdefault((place.source, record.offset), sample)
                break
    return list(found.values())


def _read(
    cluster: Cluster, requests: Iterable[ReadFrom], isolation: Isolation
) -> Mapping[ReadFrom, tuple[Record, ...]]:
    """The records of each request; none of one that failed."""
    wanted = list(dict.fromkeys(requests))
    answers = cluster.read(wanted, isolation) if wanted else {}
    return {
        request: () if isinstance(stretch, Failed) else tuple(stretch.records)
        for request, stretch in answers.items()
    }


def _find(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    samples: Sequence[_Sample],
    match: frozenset[RecordPart],
) -> None:
    """Run the rule for the samples without a copy, and keep the copies that it proves. Samples that
    equal a record near them in `match` would prove no difference."""
    whole = match == _ALL
    left = {
        (sample.place.source, sample.record.offset): sample
        for sample in samples
        if sample.copy is None and (whole or sample.is_unique(match))
    }
    flow = replace(flow, translation=TranslationSettings(match=match, scan_bytes=_SCAN_BYTES))
    found: dict[_Sample, ReadFrom] = {}
    for answer in translate_partitions(flow, source, target, _work(left.values())):
        sample = left[answer.partition, answer.offset]
        sample.place.sampled.stamped_by_target |= answer.target_rewrites_timestamps
        outcome = answer.translation.outcome
        if isinstance(outcome, Translated) and (whole or outcome.precision is Precision.EXACT):
            copy = dict(outcome.pairs).get(answer.offset)
            if copy is not None:
                found[sample] = ReadFrom(sample.place.target, copy)
    read = _read(target, found.values(), Isolation.READ_COMMITTED)
    for sample, request in found.items():
        sample.copy = next((one for one in read[request] if one.offset == request.offset), None)


def _work(samples: Iterable[_Sample]) -> list[PartitionWork]:
    offsets: defaultdict[_Partition, list[int]] = defaultdict(list)
    for sample in samples:
        offsets[sample.place].append(sample.record.offset)
    return [
        PartitionWork(
            place.source,
            place.target,
            tuple(sorted(found)),
            place.renaming.is_remote_topic,
            place.renaming.failback,
        )
        for place, found in offsets.items()
    ]


def _find_with_other_timestamps(
    flow: FlowSettings, source: Cluster, target: Cluster, samples: Sequence[_Sample]
) -> None:
    """Find copies with later timestamps in partitions where the rule found none: the only record
    with the same key and value where the copy would be if every record was copied. If the source
    has a record with that timestamp, too, it may be that record's copy."""
    seen = {sample.place for sample in samples if sample.copy is not None}
    predicted = {
        sample: _predicted(sample)
        for sample in samples
        if not (sample.place in seen or sample.place.sampled.stamped_by_target)
    }
    pieces = _read(target, chain(*predicted.values()), Isolation.READ_COMMITTED)
    found: dict[FirstAtTime, tuple[_Sample, Record]] = {}
    for sample, requests in predicted.items():
        original = sample.record
        candidates = {
            one.offset: (FirstAtTime(sample.place.source, one.timestamp_ms), one)
            for one in chain(*(pieces[request] for request in requests))
            if original.value is not None
            and _same(original, one) == _ALL - {RecordPart.TIMESTAMP}
            and one.timestamp_ms is not None
            and one.timestamp_ms > (original.timestamp_ms or 0)
        }
        if len(candidates) == 1:
            ((lookup, copy),) = candidates.values()
            found[lookup] = sample, copy
    times = source.first_at_times(list(found), flow.isolation) if found else {}
    for lookup, (sample, copy) in found.items():
        answer = times[lookup]
        if not isinstance(answer, TimedOffset) or answer.timestamp_ms != lookup.timestamp_ms:
            sample.copy = copy


def _predicted(sample: _Sample) -> list[ReadFrom]:
    """Where the copy would be, counted from the starts of both logs, and from their ends."""
    place, at = sample.place, sample.record.offset
    source, target = place.source_range, place.target_range
    counted = (target.start + at - source.start, target.end - (source.end - at))
    return [
        ReadFrom(place.target, offset, _PIECE_BYTES)
        for offset in counted
        if target.start <= offset < target.end
    ]
