"""What one cycle carries over to the next of a partition, and when it still holds (pure).

Everything here may be lost at any time: the clusters alone answer then, at a cost. An exact
translation says that all copies of what follows C lie at p or behind it, and copies to come are
written behind the log's end; so it holds for as long as the logs are the same ones. Before it is
used, this is checked in this order: topic ids and leader epochs of both sides, that no log has
become shorter, and that C and p still lie within their logs.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from tsoffset.flow.settings import FlowSettings
from tsoffset.model import (
    Basis,
    LogRange,
    Precision,
    TopicDescription,
    TopicPartition,
    Translated,
)
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.log_view import Unanswered
from tsoffset.rule.translate import Translation

MOST_PAIRS = 64


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
class KnownPosition:
    """An exact translation, with the fields of `Translated` and `Translation`.

    `passed` is true where the mirror was seen to have come past the position: nothing that is
    written later can move the answer. Otherwise it is the best one only while both logs end
    where they did.
    """

    target_offset: int
    equivalent_from: int
    equivalent_to: int
    source_timestamp_ms: int | None
    passed: bool


@dataclass(frozen=True, slots=True)
class PartitionCarryOver:
    """What one cycle leaves to the next of a source partition and its copy on the target.

    `source_log` and `target_log` say whose log it is; `is_remote_topic` and `failback` are what the
    replication policy said of them. `positions` are exact translations by source offset;
    `pairs` are proven ones as (source offset, target offset), ascending, which predict and
    prove nothing any more. `frontier` is `Frontier.reached` in the same form, the highest by target
    offset that was found of these logs.
    """

    source: TopicPartition
    is_remote_topic: bool
    failback: bool
    source_log: LogIdentity
    target_log: LogIdentity
    ends: LogEnds
    positions: Mapping[int, KnownPosition] = field(default_factory=dict)
    pairs: tuple[tuple[int, int], ...] = ()
    frontier: tuple[int, int] | None = None

    def same_logs(self, other: "PartitionCarryOver") -> bool:
        """True where `other` is of the same logs under the same policy."""
        return (
            self.is_remote_topic == other.is_remote_topic
            and self.failback == other.failback
            and self.source_log == other.source_log
            and self.target_log == other.target_log
        )

    def only(self, offsets: Collection[int]) -> "PartitionCarryOver":
        """Without the positions that do not occur any more."""
        kept = {offset: self.positions[offset] for offset in offsets if offset in self.positions}
        return replace(self, positions=kept)

    def recall(
        self, offset: int, source: LogRange, source_log_end: int, target: LogRange
    ) -> Translation | None:
        """The translation of a position; None where it is to be looked at again.

        The ranges are those of this cycle: what lies outside its log has expired, lies past
        the log's end or was deleted, and that is the rule's to say.
        """
        known = self.positions.get(offset)
        if known is None or not source.start <= offset <= source_log_end:
            return None
        if not target.start <= known.target_offset <= target.end:
            return None
        if not known.passed and LogEnds(source.end, source_log_end, target.end) != self.ends:
            return None
        return Translation(
            Translated(
                known.target_offset,
                Precision.EXACT,
                0,
                # A commit below the log start resumes nowhere: it is not the same.
                max(known.equivalent_from, target.start),
                known.equivalent_to,
                Basis.REMEMBERED,
            ),
            known.source_timestamp_ms,
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


def known_position(
    offset: int, translation: Translation, evidence: Evidence
) -> KnownPosition | None:
    """What to carry over of a translation; None where it is not exact, or the record that it
    resumes at cannot be read."""
    found = translation.outcome
    if not isinstance(found, Translated) or found.precision is not Precision.EXACT:
        return None
    try:
        passed = found.basis is Basis.NEXT_RECORD or _resumes_at_its_copy(offset, found, evidence)
    except Unanswered:
        return None
    return KnownPosition(
        found.target_offset,
        found.equivalent_from,
        found.equivalent_to,
        translation.source_timestamp_ms,
        passed,
    )


def _resumes_at_its_copy(offset: int, found: Translated, evidence: Evidence) -> bool:
    """Whether the next record to read is seen to be equal on both sides."""
    following = evidence.source.next_known(offset)
    there = evidence.target.at(found.equivalent_to)
    if following is None or there is None:
        return False
    return evidence.source.identity(following) == evidence.target.identity(there)


def passed_by(
    positions: Mapping[int, KnownPosition], pairs: Mapping[int, int]
) -> dict[int, KnownPosition]:
    """The positions by source offset, `passed` where a pair (o, q) shows it: o is the position or
    later, and q its translation or behind."""
    highest: dict[int, KnownPosition] = {}
    behind = -1
    remaining = sorted(pairs.items())
    for offset in sorted(positions, reverse=True):
        while remaining and remaining[-1][0] >= offset:
            behind = max(behind, remaining.pop()[1])
        known = positions[offset]
        beyond = behind >= known.target_offset
        highest[offset] = replace(known, passed=True) if beyond and not known.passed else known
    return highest


def spread(pairs: Iterable[tuple[int, int]], most: int = MOST_PAIRS) -> tuple[tuple[int, int], ...]:
    """At most so many of the pairs, ascending: the first, the last, and evenly between."""
    ordered = sorted(pairs)
    if len(ordered) <= most:
        return tuple(ordered)
    last = len(ordered) - 1
    return tuple(ordered[at * last // (most - 1)] for at in range(most))
