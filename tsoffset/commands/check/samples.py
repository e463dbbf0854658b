"""Sampling copies: a few source records of each topic, and what the target has of them.

It asks little, however large the topics are: of at most two partitions a topic, five places,
each for one batch of the source, a lookup and a short piece on both sides, and, where no
record has the sample's timestamp, two more short pieces of the target.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tsoffset.cluster import Cluster
from tsoffset.commands.check.survey import SyncedTopic
from tsoffset.model import (
    Failed,
    FirstAtTime,
    Isolation,
    LogRange,
    ReadFrom,
    TimestampType,
    TopicPartition,
)
from tsoffset.records import Record, Stretch

MOST_TOPICS = 100
_PARTITIONS = 2
_PIECE_BYTES = 64_000


class Part(StrEnum):
    """What a copy may have other than its original."""

    TIMESTAMP = "timestamp"
    KEY = "key"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Copy:
    """What was found of one sampled record: in which parts its copy differs from it.

    `keyless` and `empty` say that the record has no key, no value. `header_agrees` is whether
    the configured header holds the record's offset; None where the copy has no such header.
    """

    differs: frozenset[Part]
    headers_differ: bool
    keyless: bool = False
    empty: bool = False
    header_agrees: bool | None = None


@dataclass(slots=True)
class SampledTopic:
    """The samples of one topic: the copies that were found, and how many were looked for.

    `stamped_there` is true where some batch that was read is stamped by the target.
    """

    topic: SyncedTopic
    looked_for: int = 0
    copies: list[Copy] = field(default_factory=list)
    stamped_there: bool = False


@dataclass(slots=True)
class _Place:
    """A partition that is sampled, on both sides."""

    sampled: SampledTopic
    source: TopicPartition
    target: TopicPartition
    source_range: LogRange
    target_range: LogRange


@dataclass(slots=True)
class _Sample:
    """One source record on its way to its copy."""

    place: _Place
    record: Record
    source_run: "_Run | None" = None
    target_run: "_Run | None" = None


@dataclass(frozen=True, slots=True)
class _Run:
    """The records of one timestamp that were read; `whole` if their last one was seen."""

    records: tuple[Record, ...]
    whole: bool


def sample_topics(
    source: Cluster, target: Cluster, topics: Sequence[SyncedTopic], isolation: Isolation
) -> list[SampledTopic]:
    """Sample the topics, at most MOST_TOPICS; what cannot be read is left out, since other
    findings tell of it. Raises ClusterUnreachable."""
    found = [SampledTopic(topic) for topic in topics[:MOST_TOPICS]]
    places = _places(source, target, found, isolation)
    samples = _samples(source, places, isolation)
    _find_runs(source, target, samples, isolation)
    by_content = _by_content(source, target, [one for one in samples if _unseen(one)], isolation)
    for sample in samples:
        sample.place.sampled.looked_for += 1
        copy = _by_timestamp(sample) or by_content.get(id(sample))
        if copy is not None:
            sample.place.sampled.copies.append(copy_of(sample.record, copy))
    for sampled in found:
        sampled.copies = _credible(sampled.copies)
    return found


def _credible(copies: list[Copy]) -> list[Copy]:
    """Without what may be the copy of another record, whose equal compaction took on one side
    (pure). A replicator that stamps records anew does so with all, and one that changes them
    otherwise does so more than once."""
    kept = [copy for copy in copies if Part.TIMESTAMP not in copy.differs] or copies
    differing = [copy for copy in kept if copy.differs]
    return kept if len(differing) > 1 else [copy for copy in kept if not copy.differs]


def copy_of(original: Record, copy: Record) -> Copy:
    """In what a copy differs from its original (pure)."""
    parts = {
        Part.TIMESTAMP: original.timestamp_ms == copy.timestamp_ms,
        Part.KEY: original.key == copy.key,
        Part.VALUE: original.value == copy.value,
    }
    return Copy(
        frozenset(part for part, same in parts.items() if not same),
        original.headers != copy.headers,
        original.key is None,
        original.value is None,
        None if copy.source_offset is None else copy.source_offset == original.offset,
    )


# --- where to look --------------------------------------------------------------------------


def _places(
    source: Cluster, target: Cluster, topics: Sequence[SampledTopic], isolation: Isolation
) -> list[_Place]:
    """Of each topic the partitions with the longest copies that hold anything."""
    pairs = [
        (sampled, TopicPartition(sampled.topic.source, n), TopicPartition(sampled.topic.target, n))
        for sampled in topics
        for n in sorted(sampled.topic.partitions)
    ]
    if not pairs:
        return []
    here = source.log_ranges([one for _, one, _ in pairs], isolation)
    there = target.log_ranges([one for _, _, one in pairs], Isolation.READ_COMMITTED)
    found: defaultdict[str, list[_Place]] = defaultdict(list)
    for sampled, original, copy in pairs:
        ours, theirs = here[original], there[copy]
        if isinstance(ours, Failed) or isinstance(theirs, Failed):
            continue
        if ours.start < ours.end and theirs.start < theirs.end:
            found[original.topic].append(_Place(sampled, original, copy, ours, theirs))
    return [
        place
        for places in found.values()
        for place in sorted(places, key=lambda one: one.target_range.start - one.target_range.end)[
            :_PARTITIONS
        ]
    ]


def positions(source: LogRange, target: LogRange) -> list[int]:
    """Where to sample: the source's first record, and four places as far from its end as the
    target reaches back, so that neither short retention nor a mirror that has just begun
    leaves all of them without a copy (pure)."""
    reach = min(source.end - source.start, target.end - target.start)
    spread = {source.end - max(1, reach * part // 3) for part in range(4)}
    return sorted({source.start, *spread})


def _samples(source: Cluster, places: Sequence[_Place], isolation: Isolation) -> list[_Sample]:
    """The first record with a timestamp at each position, none of them twice."""
    requests = {
        ReadFrom(place.source, offset): place
        for place in places
        for offset in positions(place.source_range, place.target_range)
    }
    found: dict[tuple[TopicPartition, int], _Sample] = {}
    for request, stretch in source.read(list(requests), isolation).items() if requests else ():
        if isinstance(stretch, Failed):
            continue
        for record in stretch.records:
            if record.offset >= request.offset and record.timestamp_ms is not None:
                place = requests[request]
                found.setdefault((request.partition, record.offset), _Sample(place, record))
                break
    return list(found.values())


# --- records of the same timestamp ----------------------------------------------------------


def _find_runs(
    source: Cluster, target: Cluster, samples: Sequence[_Sample], isolation: Isolation
) -> None:
    """Read the records with each sample's timestamp, on both sides, from the first one on."""
    theirs = Isolation.READ_COMMITTED
    here = _pieces(source, [_lookup(s.place.source, s.record) for s in samples], isolation)
    there = _pieces(target, [_lookup(s.place.target, s.record) for s in samples], theirs)
    for sample in samples:
        place, time = sample.place, sample.record.timestamp_ms
        sample.source_run = _run(
            here.get(_lookup(place.source, sample.record)), time, place.source_range
        )
        piece = there.get(_lookup(place.target, sample.record))
        sample.target_run = _run(piece, time, place.target_range)
        if piece is not None and piece.timestamp_type is TimestampType.LOG_APPEND_TIME:
            place.sampled.stamped_there = True


def _lookup(partition: TopicPartition, record: Record) -> FirstAtTime:
    assert record.timestamp_ms is not None
    return FirstAtTime(partition, record.timestamp_ms)


def _pieces(
    cluster: Cluster, lookups: Iterable[FirstAtTime], isolation: Isolation
) -> Mapping[FirstAtTime, Stretch]:
    """What lies from the first record of each time on."""
    wanted = list(dict.fromkeys(lookups))
    if not wanted:
        return {}
    requests = {
        lookup: ReadFrom(lookup.partition, answer.offset, _PIECE_BYTES)
        for lookup, answer in cluster.first_at_times(wanted, isolation).items()
        if answer is not None
        and not isinstance(answer, Failed)
        and answer.timestamp_ms == lookup.timestamp_ms
    }
    if not requests:
        return {}
    stretches = cluster.read(list(set(requests.values())), isolation)
    found = {}
    for lookup, request in requests.items():
        stretch = stretches[request]
        if not isinstance(stretch, Failed):
            found[lookup] = stretch
    return found


def _run(stretch: Stretch | None, timestamp_ms: int | None, log: LogRange) -> _Run:
    """The records of that time in a piece that begins with the first of them."""
    if stretch is None:
        return _Run((), whole=False)
    records = tuple(one for one in stretch.records if one.timestamp_ms == timestamp_ms)
    goes_on = bool(records) and records[-1] is stretch.records[-1] and stretch.end < log.end
    return _Run(records, whole=bool(records) and not goes_on)


def _unseen(sample: _Sample) -> bool:
    """True where the target has no record of the sample's time, as far as was read."""
    return sample.target_run is None or not sample.target_run.records


def _by_timestamp(sample: _Sample) -> Record | None:
    """The copy among the records of the sample's time: the one that is equal; else the only one
    with its key, or its value; else the only one there is, on both sides."""
    record, here, there = sample.record, sample.source_run, sample.target_run
    if here is None or there is None or not there.records:
        return None
    equal = [o for o in there.records if (o.key, o.value) == (record.key, record.value)]
    if equal:
        return next((o for o in equal if record.headers <= o.headers), equal[0])
    if not (here.whole and there.whole):
        return None
    for part in ("key", "value"):
        content = getattr(record, part)
        alike = [o for o in there.records if getattr(o, part) == content]
        twins = [o for o in here.records if getattr(o, part) == content]
        if content is not None and len(alike) == len(twins) == 1:
            return alike[0]
    return there.records[0] if len(here.records) == len(there.records) == 1 else None


# --- records of the same content ------------------------------------------------------------


def _by_content(
    source: Cluster, target: Cluster, samples: Sequence[_Sample], isolation: Isolation
) -> Mapping[int, Record]:
    """By the samples' ids, records of the same content and another timestamp that are copies of
    no other source record: each the only one with its content, where copies would lie."""
    pools = _pools(target, samples)
    contents = Counter((one.place.source, *_content(one.record)) for one in samples)
    found: dict[int, tuple[_Sample, Record]] = {}
    for sample in samples:
        content = _content(sample.record)
        # Who stamps records anew takes the time of copying, which is later.
        time = sample.record.timestamp_ms or 0
        equal = [
            one
            for one in pools[sample.place.target]
            if _content(one) == content and (one.timestamp_ms or 0) > time
        ]
        once = contents[(sample.place.source, *content)] == 1
        if sample.record.value is not None and once and len(equal) == 1:
            found[id(sample)] = sample, equal[0]
    # A record that was written twice, of which the target lost the first, is no such copy.
    lookups = {
        of: _lookup(sample.place.source, copy)
        for of, (sample, copy) in found.items()
        if copy.timestamp_ms is not None
    }
    pieces = _pieces(source, lookups.values(), isolation)
    return {
        of: copy
        for of, (_, copy) in found.items()
        if of not in lookups or not _holds(pieces.get(lookups[of]), copy)
    }


def _content(record: Record) -> tuple[bytes | None, bytes | None]:
    return record.key, record.value


def _holds(stretch: Stretch | None, copy: Record) -> bool:
    """True where the original of a copy with its timestamp may be there."""
    if stretch is None:
        return False
    run = [one for one in stretch.records if one.timestamp_ms == copy.timestamp_ms]
    cut_off = bool(run) and run[-1] is stretch.records[-1]
    return cut_off or any(_content(one) == _content(copy) for one in run)


def _pools(
    target: Cluster, samples: Sequence[_Sample]
) -> Mapping[TopicPartition, tuple[Record, ...]]:
    """What the target has where the copies would lie if nothing had been left out: counted
    from the beginnings of both logs, and from their ends."""
    requests: dict[ReadFrom, _Place] = {}
    for sample in samples:
        here, there = sample.place.source_range, sample.place.target_range
        for offset in (
            there.start + (sample.record.offset - here.start),
            there.end - (here.end - sample.record.offset),
        ):
            if there.start <= offset < there.end:
                requests[ReadFrom(sample.place.target, offset, _PIECE_BYTES)] = sample.place
    pools: defaultdict[TopicPartition, dict[int, Record]] = defaultdict(dict)
    answers = target.read(list(requests), Isolation.READ_COMMITTED) if requests else {}
    for request, stretch in answers.items():
        if isinstance(stretch, Failed):
            continue
        pools[request.partition].update({one.offset: one for one in stretch.records})
        if stretch.timestamp_type is TimestampType.LOG_APPEND_TIME:
            requests[request].sampled.stamped_there = True
    found = {partition: tuple(records.values()) for partition, records in pools.items()}
    return defaultdict(tuple, found)
