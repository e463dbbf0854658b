"""What one cycle carries over to the next of a partition, and when it still holds (pure).

Everything here may be lost at any time: the clusters alone answer then, at a cost. An exact
translation says that all copies of what follows C lie at p or behind it, and copies to come are
written behind the log's end; so it holds for as long as the logs are the same ones. Before it is
used, this is checked in this order: topic ids and leader epochs of both sides, that no log has
become shorter, and that C and p still lie within their logs.
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
from tsoffset.rule.evidence import Evidence, Pair
from tsoffset.rule.log_view import Unanswered
from tsoffset.rule.translate import Translation

MOST_PAIRS = 64

# In columns: no number at all.
NOTHING = -1


def binding(flow: FlowSettings, cluster_ids: tuple[str | None, str | None]) -> str:
    """A digest of what must be the same for a carry-over of the flow to be of use: both clusters,
    what counts as a proof, what is read, and what topics are called."""
    translation, policy = flow.translation, type(flow.policy)
    bound = (
        flow.name,
        cluster_ids,
        flow.isolation,
        translation.proof,
        sorted(translation.match),
        repr(translation.offset_header),
        translation.expect,
        f"{policy.__module__}.{policy.__qualname__}",
        # A policy of the user's own is known by what it does; so are ours by their settings.
        flow.policy.format_remote_topic(flow.source.alias, "a.topic"),
    )
    return blake2b(json.dumps(bound).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """Which log a partition has.

    A topic that was deleted and made anew has another `topic_id`. A log can lose its end only
    where its leader changes, and then `leader_epoch` does, too.
    """

    topic_id: str
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class LogEnds:
    """How far the logs reached: the source's readable end and the end of the log itself, and
    the target's readable end."""

    source: int
    source_log: int
    target: int

    def behind(self, other: "LogEnds") -> bool:
        """True where one of these ends lies before that of `other`."""
        return (
            self.source < other.source
            or self.source_log < other.source_log
            or self.target < other.target
        )


@dataclass(frozen=True, slots=True)
class Holds:
    """For how long an exact translation holds while both logs are the same ones.

    `while_ends` is None where the mirror was seen to have come past the position: nothing that is
    written later can move the answer. Otherwise it is the best one only while both logs end there.
    """

    while_ends: LogEnds | None = None


@dataclass(frozen=True, slots=True)
class PartitionCarryOver:
    """What one cycle leaves to the next of a source partition and its copy on the target.

    `source_log` and `target_log` say whose log it is; `is_remote_topic` and `failback` are what the
    replication policy said of them. `pairs` are proven ones as (source offset, target offset),
    ascending, which predict and prove nothing any more. `frontier` is a safe pair in the same form,
    the highest by target offset that was proven of these logs without another one: it stays safe.
    `first_from` is the source offset from which on the mirror has copied everything for the first
    time in order.
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

    def same_logs(self, other: "PartitionCarryOver") -> bool:
        """True where `other` is of the same logs under the same policy."""
        return (
            self.is_remote_topic == other.is_remote_topic
            and self.failback == other.failback
            and self.source_log == other.source_log
            and self.target_log == other.target_log
        )


def log_identity(topic: object, partition: int) -> LogIdentity | None:
    """Which log a described topic's partition has.

    None where that cannot be told: the description failed, the cluster gives topics no ids, or
    the partition has no leader.
    """
    if not isinstance(topic, TopicDescription) or topic.topic_id is None:
        return None
    described = topic.partitions.get(partition)
    if described is None or described.leader_epoch is None:
        return None
    return LogIdentity(topic.topic_id, described.leader_epoch)


def how_long(
    translations: Mapping[int, Translation],
    evidence: Evidence,
    ends: LogEnds,
    pairs: Mapping[int, int],
) -> dict[int, Holds]:
    """For how long each translation, by source offset, holds: without those that are not exact, or
    resume at a record that cannot be read. A pair (o, q) shows one to hold for good whose position
    is o or before, and whose copy q or before; none at or below `holds_for_good_from`."""
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
    """The source offset above which exact answers hold whatever a replicator does next; None where
    they hold nowhere.

    Forwards, the mirror must have passed all that the source has left, from its first record on:
    else a replicator that is set back copies records for the first time behind those that are
    there. Where the source may be the replica, it must have passed all that the original has left:
    else it copies then what the group has yet to read (`Proof.FIRST_COPY`).
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
    """Whether a safe pair was proven by first copy: then it stays safe in either direction."""
    return pair.safety is not None and pair.safety.proof is Proof.FIRST_COPY


def _resumes_at_its_copy(offset: int, found: Translated, evidence: Evidence) -> bool:
    """Whether the next record to read is seen to be equal on both sides."""
    following = evidence.source.next_known(offset)
    there = evidence.target.at(found.equivalent_to)
    if following is None or there is None:
        return False
    return evidence.source.identity(following) == evidence.target.identity(there)


def spread(pairs: Iterable[tuple[int, int]], most: int = MOST_PAIRS) -> tuple[tuple[int, int], ...]:
    """At most so many of the pairs, ascending: the first, the last, and evenly between."""
    ordered = sorted(pairs)
    if len(ordered) <= most:
        return tuple(ordered)
    last = len(ordered) - 1
    return tuple(ordered[at * last // (most - 1)] for at in range(most))
