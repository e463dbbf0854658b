"""What a batch of partitions takes over from the last cycle, and what it caches for the next.

The topics of both sides are described first, in one request each. So a leader epoch that is cached
with an answer is never newer than the logs that the answer was read from.
"""

from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass, field, replace

from tsoffset.cluster import Cluster, all_failed
from tsoffset.cycle.work import PartitionWork
from tsoffset.errors import ClusterUnreachable
from tsoffset.model import (
    Failed,
    Isolation,
    LogRange,
    Proof,
    Safety,
    Side,
    TopicDescription,
    TopicPartition,
)
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.found import Unanswered
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.pairs import Pair
from tsoffset.rule.partition_cache import (
    NOTHING,
    Holds,
    LogEnds,
    LogIdentity,
    PartitionCache,
    holds_for_good_from,
    how_long,
    is_first_copy,
    log_identity,
    spread,
)
from tsoffset.rule.translate import Translation

_WITHOUT_IDS = "none"

Ranges = Mapping[TopicPartition, LogRange | Failed]


@dataclass(frozen=True, slots=True)
class Identities:
    """Which logs partitions have, and the ids of their topics, as far as the clusters could
    tell."""

    source: Mapping[TopicPartition, LogIdentity]
    target: Mapping[TopicPartition, LogIdentity]
    source_topic_ids: Mapping[str, str]
    target_topic_ids: Mapping[str, str]

    def blank(self, part: PartitionWork) -> PartitionCache | None:
        """An empty cache of the partition's logs; None if the next cycle could
        not recognize one of the logs."""
        source, target = self.source.get(part.source), self.target.get(part.target)
        if source is None or target is None:
            return None
        return PartitionCache(
            part.source,
            part.is_remote_topic,
            part.failback,
            source,
            target,
            LogEnds(0, 0, 0),
        )


def describe_topics(
    cluster: Cluster, topics: Collection[str]
) -> Mapping[str, TopicDescription | Failed]:
    """What the cluster says of the topics; nothing if it cannot be reached."""
    if not topics:
        return {}
    try:
        return cluster.topics(sorted(topics))
    except ClusterUnreachable:
        return {}


def ranges_of(
    cluster: Cluster, partitions: Collection[TopicPartition], isolation: Isolation
) -> Ranges:
    """The range of each log; a cluster that cannot be reached fails all of them."""
    try:
        return cluster.log_ranges(partitions, isolation)
    except ClusterUnreachable as error:
        return dict.fromkeys(partitions, all_failed(error))


def identities(
    topics: Mapping[str, TopicDescription | Failed], partitions: Collection[TopicPartition]
) -> dict[TopicPartition, LogIdentity]:
    """The identity of each partition's log, without partitions that could not be described."""
    found = {one: log_identity(topics.get(one.topic), one.partition) for one in partitions}
    return {one: identity for one, identity in found.items() if identity is not None}


def topic_ids(topics: Mapping[str, TopicDescription | Failed]) -> dict[str, str]:
    """The ids of the topics that could be described. Brokers before Kafka 2.8 have no topic ids:
    all their topics get the same one, so a recreated topic is not noticed."""
    return {
        name: topic.topic_id or _WITHOUT_IDS
        for name, topic in topics.items()
        if isinstance(topic, TopicDescription)
    }


def ask_for_ranges(cache: PartitionCache, evidence: Evidence) -> Generator[Question, Answer, None]:
    """Ask for both logs' ranges, in the order in which a translation does, and add them to the
    evidence. The cached safe pair is added only if no log has become shorter and the target still
    has its copy: records written since then lie behind it.

    If the source may be the replica, and has lost the pair's record, a group may stand behind that
    record without having read it: its consumers were moved to the log's start. So no offset is
    translated to the one after the copy. The pair still shows others to be safe.
    """
    inquiry = Inquiry(evidence)
    try:
        target = yield from inquiry.log_range(Side.TARGET)
        source = yield from inquiry.log_range(Side.SOURCE)
        log_end = source.end
        if evidence.isolation is Isolation.READ_COMMITTED:
            log_end = yield from inquiry.log_end(Side.SOURCE)
    except Unanswered:
        return  # the translations will say why
    if LogEnds(source.end, log_end, target.end).is_behind(cache.ends):
        return
    evidence.first_from = cache.first_from
    if cache.frontier is not None and cache.frontier[1] >= target.start:
        source_offset, target_offset = cache.frontier
        proof = Proof.FRONTIER if evidence.is_remote_topic else Proof.FIRST_COPY
        safety = Safety(proof, cache.frontier)
        pair = Pair(source_offset, target_offset, source_offset, safety)
        evidence.add_safe(pair)
        if evidence.is_remote_topic or source_offset >= source.start:
            # Together with a lower pair it shows the distance of all records between the two.
            evidence.prove(pair)


@dataclass(frozen=True, slots=True)
class Learned:
    """What the next cycle should know of a partition; `cache` is None if that is nothing.

    `holds` says for how long the translations are valid, by source offset; those that are missing
    are not cached. `answers_hold` says it for the fast path's answers.
    """

    cache: PartitionCache | None
    holds: Mapping[int, Holds] = field(default_factory=dict)
    answers_hold: Holds | None = None


def learn(
    blank: PartitionCache,
    usable: PartitionCache | None,
    evidence: Evidence,
    translations: Mapping[int, Translation],
    decided_to: int | None = None,
) -> Learned:
    """What the next cycle should know after these translations.

    `blank` has the identity of the logs, `usable` is what was cached of these same logs.
    `decided_to` is that of `PartitionWork`.
    """
    source, target = evidence.source, evidence.target
    if source.range is None or target.range is None:
        # One of the logs was not read: what was cached of it stays valid.
        return Learned(usable)
    if evidence.target_rewrites_timestamps:
        return Learned(None)  # has to be noticed again
    own = source.own_range
    ends = LogEnds(source.end, source.end if own is None else max(own.end, source.end), target.end)
    if usable is not None and ends.is_behind(usable.ends):
        usable = None
    pairs = dict(usable.pairs) if usable is not None else {}
    pairs |= evidence.proven
    there = {o: q for o, q in pairs.items() if o >= source.start and q >= target.start}
    holds = how_long(translations, evidence, ends, there)
    frontier = _safe_for_good(usable, evidence, decided_to)
    if not holds and not there and frontier is None:
        return Learned(None)
    first_from = evidence.first_from
    cache = replace(
        blank, ends=ends, pairs=spread(there.items()), frontier=frontier, first_from=first_from
    )
    good_from = holds_for_good_from(evidence)
    lowest = min(translations, default=NOTHING)
    answers_hold = Holds(None if good_from is not None and lowest > good_from else ends)
    return Learned(cache, holds, answers_hold)


def _safe_for_good(
    usable: PartitionCache | None, evidence: Evidence, decided_to: int | None
) -> tuple[int, int] | None:
    """The highest pair that stays safe for good, as (source offset, target offset), from this cycle
    or the cache; None if the target has the copy of none. If the source may be the replica, only
    pairs proven by first copy stay safe; and not those of open transactions, which may be aborted:
    then groups pass the record without reading it."""
    known = [] if usable is None or usable.frontier is None else [usable.frontier]
    known += (
        (pair.source_offset, pair.target_offset)
        for pair in evidence.safe
        if pair.clear
        and (evidence.is_remote_topic or is_first_copy(pair))
        and (decided_to is None or pair.source_offset < decided_to)
    )
    there = [pair for pair in known if pair[1] >= evidence.target.start]
    return max(there, key=lambda pair: pair[1], default=None)
