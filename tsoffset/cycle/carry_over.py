"""What a batch of partitions takes over from the last cycle, and what it leaves to the next.

The topics of both sides are described first, in one request each: the leader epochs that are
remembered with an answer are then never newer than the logs that it was read from.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tsoffset.cluster import Cluster
from tsoffset.cycle.work import PartitionWork
from tsoffset.errors import ClusterUnreachable
from tsoffset.model import Isolation, Side, TopicPartition
from tsoffset.rule.carry_over import (
    KnownPosition,
    LogEnds,
    LogIdentity,
    PartitionCarryOver,
    known_position,
    log_identity,
    passed_by,
    spread,
)
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.log_view import Unanswered
from tsoffset.rule.translate import Translation

Recall = Generator[Question, Answer, dict[int, Translation]]


@dataclass(frozen=True, slots=True)
class Identities:
    """Which logs the partitions of a batch have, as far as the clusters could tell."""

    source: Mapping[TopicPartition, LogIdentity]
    target: Mapping[TopicPartition, LogIdentity]

    @classmethod
    def of(cls, source: Cluster, target: Cluster, work: Sequence[PartitionWork]) -> "Identities":
        """Describe the topics of the work on both sides."""
        return cls(
            _identities(source, {part.source for part in work}),
            _identities(target, {part.target for part in work}),
        )

    def blank(self, part: PartitionWork) -> PartitionCarryOver | None:
        """A carry-over of the partition's logs that holds nothing yet; None where a log could not
        be recognised in the next cycle."""
        source, target = self.source.get(part.source), self.target.get(part.target)
        if source is None or target is None:
            return None
        return PartitionCarryOver(
            part.source,
            part.is_remote_topic,
            part.failback,
            source,
            target,
            LogEnds(0, 0, 0),
        )


def _identities(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, LogIdentity]:
    wanted = sorted(partitions)
    try:
        topics = cluster.topics(sorted({one.topic for one in wanted}))
    except ClusterUnreachable:
        return {}
    found = {one: log_identity(topics.get(one.topic), one.partition) for one in wanted}
    return {one: identity for one, identity in found.items() if identity is not None}


def recall_positions(
    part: PartitionWork, carry_over: PartitionCarryOver, evidence: Evidence
) -> Recall:
    """The translations that still hold, by source offset; none for positions that have to be
    translated anew.

    Asks for both logs' ranges, in the order in which a translation does, and leaves them in the
    evidence. Where a range cannot be had nothing is recalled: the translations will say why. The
    remembered frontier stays in the evidence only where no log has become shorter and the target
    still has its copy.
    """
    inquiry = Inquiry(evidence)
    frontier, evidence.remembered_frontier = evidence.remembered_frontier, None
    try:
        target = yield from inquiry.log_range(Side.TARGET)
        source = yield from inquiry.log_range(Side.SOURCE)
        log_end = source.end
        if evidence.isolation is Isolation.READ_COMMITTED:
            log_end = yield from inquiry.log_end(Side.SOURCE)
    except Unanswered:
        return {}
    if LogEnds(source.end, log_end, target.end).behind(carry_over.ends):
        return {}
    if frontier is not None and frontier[1] >= target.start:
        evidence.remembered_frontier = frontier
    recalled = {}
    for offset in part.offsets:
        known = carry_over.recall(offset, source, log_end, target)
        if known is not None:
            recalled[offset] = known
    return recalled


def learned(
    part: PartitionWork,
    blank: PartitionCarryOver,
    usable: PartitionCarryOver | None,
    evidence: Evidence,
    translations: Mapping[int, Translation],
    recalled: Mapping[int, Translation],
) -> PartitionCarryOver | None:
    """What the next cycle should know of the partition; None where that is nothing.

    `blank` has the identity of the logs, `usable` is what was remembered of these same logs.
    """
    source, target = evidence.source, evidence.target
    if source.range is None or target.range is None:
        # Nothing was seen of a log; what was known of it is no less true.
        return None if usable is None else usable.only(part.offsets)
    if target.rewrites_timestamps:
        return None  # has to be noticed again
    own = source.own_range
    ends = LogEnds(source.end, source.end if own is None else max(own.end, source.end), target.end)
    if usable is not None and ends.behind(usable.ends):
        usable = None
    positions: dict[int, KnownPosition] = {}
    for offset, translation in translations.items():
        if offset in recalled and usable is not None:
            positions[offset] = usable.positions[offset]
        elif (known := known_position(offset, translation, evidence)) is not None:
            positions[offset] = known
    pairs = dict(usable.pairs) if usable is not None else {}
    pairs |= evidence.proven
    there = {o: q for o, q in pairs.items() if o >= source.start and q >= target.start}
    frontier = _highest_frontier(usable, evidence)
    if not positions and not there and frontier is None:
        return None
    return replace(
        blank,
        ends=ends,
        positions=passed_by(positions, there),
        pairs=spread(there.items()),
        frontier=frontier,
    )


def _highest_frontier(
    usable: PartitionCarryOver | None, evidence: Evidence
) -> tuple[int, int] | None:
    """The remembered frontier or this cycle's, whichever lies higher on the target; None where
    there is none, or the target's log start has passed it."""
    known = [] if usable is None or usable.frontier is None else [usable.frontier]
    if evidence.reached is not None:
        known.append(evidence.reached)
    there = [pair for pair in known if pair[1] >= evidence.target.start]
    return max(there, key=lambda pair: pair[1], default=None)
