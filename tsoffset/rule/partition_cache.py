"""What one cycle caches of a partition for the next, and when it is still valid.

The cache may be lost at any time; then the next cycle reads everything from the clusters. An exact
translation says that all copies of the records from C on lie at p or behind it. New copies are
written behind the log's end. So the translation stays valid as long as the logs are the same ones.
Before it is reused, these are checked in order: topic ids and leader epochs of both sides, that no
log has become shorter, and that C and p still lie within their logs.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from tsoffset.flow.settings import FlowSettings
from tsoffset.model import (
    Basis,
    Precision,
    Proof,
    TopicDescription,
    TopicPartition,
    Translated,
)
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.found import Unanswered
from tsoffset.rule.pairs import Pair
from tsoffset.rule.translate import Translation
from tsoffset.version import __version__

MOST_PAIRS = 64

# In columns: no value.
NOTHING = -1


def binding(flow: FlowSettings, cluster_ids: tuple[str | None, str | None]) -> str:
    """A digest of everything that must be equal for cached data of the flow to be usable: this
    version (another one may have proven less), both clusters, what counts as a proof, which records
    are read, and the topic names."""
    translation, policy = flow.translation, type(flow.policy)
    bound = (
        __version__,
        flow.name,
        cluster_ids,
        flow.isolation,
        translation.proof,
        sorted(translation.match),
        repr(translation.offset_header),
        translation.expect,
        f"{policy.__module__}.{policy.__qualname__}",
        # A custom policy is identified by a name that it makes, which depends on its settings.
        flow.policy.format_remote_topic(flow.source.alias, "a.topic"),
    )
    return blake2b(json.dumps(bound).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """Identifies the log of a partition.

    A recreated topic has another `topic_id`. A log loses its end only when its leader changes, and
    then `leader_epoch` changes, too.
    """

    topic_id: str
    leader_epoch: int

    def precedes(self, other: "LogIdentity") -> bool:
        """True if `other` is the same topic under a later leader."""
        return self.topic_id == other.topic_id and self.leader_epoch < other.leader_epoch


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The source's readable end and the end of its log itself, and the target's readable end."""

    source: int
    source_log: int
    target: int

    def is_behind(self, other: "LogEnds") -> bool:
        """True if one of these ends lies before that of `other`."""
        return (
            self.source < other.source
            or self.source_log < other.source_log
            or self.target < other.target
        )


@dataclass(frozen=True, slots=True)
class Holds:
    """For how long an exact translation is valid while both logs are the same ones.

    `while_ends` is None if the mirror has passed the offset: nothing that is written later changes
    the answer. Otherwise the answer is the best one only while both logs have these ends.
    """

    while_ends: LogEnds | None = None


@dataclass(frozen=True, slots=True)
class PartitionCache:
    """What one cycle caches for the next of a source partition and its copy.

    `is_remote_topic` and `failback` are what the replication policy said of the logs. `pairs` are
    proven ones as (source offset, target offset), ascending; the next cycle uses them as
    predictions and proves them again. `frontier` is the safe pair with the highest target offset
    among those that were proven without another safe pair; it stays safe. `first_from` is the
    source offset from which on the mirror's first copies are in order.
    """

    source: TopicPartition
    is_remote_topic: bool
    failback: bool
    source_log: LogIdentity
    target_log: LogIdentity
    ends: LogEnds
    pairs: tuple[tuple[int, int], ...] = ()
    frontier: tuple[int, int] | None = None
    first_from: int | None = None

    def same_logs(self, other: "PartitionCache") -> bool:
        """True if `other` is of the same logs under the same policy."""
        return (
            self.is_remote_topic == other.is_remote_topic
            and self.failback == other.failback
            and self.source_log == other.source_log
            and self.target_log == other.target_log
        )


def log_identity(topic: object, partition: int) -> LogIdentity | None:
    """Identifies the log of a described topic's partition.

    None if that is not possible: the description failed, the cluster gives topics no ids, or the
    partition has no leader.
    """
    if not isinstance(topic, TopicDescription) or topic.topic_id is None:
        return None
    described = topic.partitions.get(partition)
    if described is None or described.leader is None or described.leader_epoch is None:
        return None
    return LogIdentity(topic.topic_id, described.leader_epoch)


def how_long(
    translations: Mapping[int, Translation],
    evidence: Evidence,
    ends: LogEnds,
    pairs: Mapping[int, int],
) -> dict[int, Holds]:
    """For how long each exact translation is valid, by source offset.

    Translations that are not exact, or that resume at an unreadable record, are missing. A pair
    (o, q) makes a translation valid for good if its source offset is o or before, its target offset
    is q or before, and its source offset is above `holds_for_good_from`.
    """
    found = {}
    good_from = holds_for_good_from(evidence)
    behind = -1
    remaining = sorted(pairs.items())
    for offset in sorted(translations, reverse=True):
        while remaining and remaining[-1][0] >= offset:
            behind = max(behind, remaining.pop()[1])
        answer = translations[offset].outcome
        if not isinstance(answer, Translated) or answer.precision is not Precision.EXACT:
            continue
        try:
            passed = answer.basis is Basis.NEXT_RECORD or _resumes_at_its_copy(
                offset, answer, evidence
            )
        except Unanswered:
            continue
        for_good = good_from is not None and offset > good_from
        passed = for_good and (passed or behind >= answer.target_offset)
        found[offset] = Holds(None if passed else ends)
    return found


def holds_for_good_from(evidence: Evidence) -> int | None:
    """The source offset above which exact answers stay valid whatever the replicator does next;
    None if there is no such offset.

    Normally the replicator must have passed every record that the source still has, from the first
    one on. Otherwise a restart writes the first copies of earlier records behind the existing ones.
    If the source may be the replica, the replicator must have passed every record that the original
    still has (`Proof.FIRST_COPY`). Otherwise the replica later gets records that the group has not
    read.
    """
    if evidence.keeps_offsets:
        return NOTHING
    good_from = NOTHING
    if not evidence.is_remote_topic:
        rooted = [pair.source_offset for pair in evidence.safe if is_first_copy(pair)]
        if not rooted:
            return None
        good_from = min(rooted) - 1
    if evidence.failback:
        return good_from
    first = evidence.first_from
    if first is None or evidence.most_data_between(evidence.source.start, first):
        return None
    return good_from


def is_first_copy(pair: Pair) -> bool:
    """Whether a safe pair was proven by first copy: then it stays safe in both directions."""
    return pair.safety is not None and pair.safety.proof is Proof.FIRST_COPY


def _resumes_at_its_copy(offset: int, found: Translated, evidence: Evidence) -> bool:
    """Whether the next record to read is seen to be equal on both sides."""
    following = evidence.source.next_known(offset)
    there = evidence.target.at(found.equivalent_to)
    if following is None or there is None:
        return False
    return evidence.source.identity(following) == evidence.target.identity(there)


def spread(pairs: Iterable[tuple[int, int]], most: int = MOST_PAIRS) -> tuple[tuple[int, int], ...]:
    """At most this many of the pairs, ascending: the first, the last, and evenly spaced ones in
    between."""
    ordered = sorted(pairs)
    if len(ordered) <= most:
        return tuple(ordered)
    last = len(ordered) - 1
    return tuple(ordered[at * last // (most - 1)] for at in range(most))
