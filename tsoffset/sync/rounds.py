"""All conversations of a batch of partitions, run in rounds against the two clusters.

Each round collects the open questions, asks equal ones once, and hands them in batches to
the `Cluster`: the sequential network waits of a cycle are the rounds, however many groups.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import structlog

from tsoffset.cluster import Cluster
from tsoffset.errors import ClusterUnreachable
from tsoffset.evidence import Answer, Question, RangeOf
from tsoffset.model import (
    Failed,
    FailureKind,
    FirstAtTime,
    Isolation,
    LogRange,
    ReadFrom,
    Side,
    Stretch,
    TopicPartition,
)
from tsoffset.plan import TranslatedPosition
from tsoffset.remembered import PartitionMemory
from tsoffset.settings import FlowSettings
from tsoffset.sync.partitions import Observe, Partition
from tsoffset.sync.recall import Identities
from tsoffset.sync.work import Cost, PartitionWork, TranslatedWork

log = structlog.get_logger(__name__)

# A worker holds about so many records at once, a few hundred bytes each, and looks at so many
# partitions at once.
RECORDS_HELD = 500_000
PARTITIONS_AT_ONCE = 250


def translate_partitions(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    work: Sequence[PartitionWork],
    *,
    observe: Observe | None = None,
) -> Iterator[TranslatedPosition]:
    """Translate all positions of the partitions from the clusters alone, all conversations in
    rounds together.

    Yields one TranslatedPosition per partition and offset. A question that fails ends its
    own conversations only. `observe` listens to all of them.
    """
    run = _Run(flow, source, target)
    for some in _at_once(work):
        share = RECORDS_HELD // len(some)
        parts = [Partition(flow, part, None, observe, share) for part in some]
        run.converse(parts)
        for part in parts:
            yield from part.positions()


def translate_remembering(
    flow: FlowSettings, source: Cluster, target: Cluster, work: Sequence[PartitionWork]
) -> TranslatedWork:
    """The same with what the last cycle left of the partitions (`PartitionWork.memory`), and
    what is to be left to the next.

    Memory saves questions: what it answers is what the clusters would.
    """
    identities = Identities.of(source, target, work)
    run = _Run(flow, source, target)
    positions: list[TranslatedPosition] = []
    kept: list[PartitionMemory] = []
    for some in _at_once(work):
        share = RECORDS_HELD // len(some)
        blanks = [identities.blank(part) for part in some]
        parts = [
            Partition(flow, part, _usable(part, blank), None, share)
            for part, blank in zip(some, blanks, strict=True)
        ]
        run.converse(parts)
        for part, blank in zip(parts, blanks, strict=True):
            positions += part.positions()
            memory = part.left_to_the_next(blank)
            if memory is not None:
                kept.append(memory)
    return TranslatedWork(tuple(positions), tuple(kept), run.cost)


def _at_once(work: Sequence[PartitionWork]) -> Iterator[Sequence[PartitionWork]]:
    for start in range(0, len(work), PARTITIONS_AT_ONCE):
        yield work[start : start + PARTITIONS_AT_ONCE]


def _usable(part: PartitionWork, blank: PartitionMemory | None) -> PartitionMemory | None:
    memory = part.memory
    if memory is None or blank is None or not memory.same_logs(blank):
        return None
    return memory


class _Run:
    """The rounds of a batch of partitions, and what they took."""

    def __init__(self, flow: FlowSettings, source: Cluster, target: Cluster) -> None:
        self._flow = flow.name
        self._sides = {
            Side.SOURCE: (source, flow.isolation),
            Side.TARGET: (target, Isolation.READ_COMMITTED),
        }
        self.cost = Cost()

    def converse(self, parts: Sequence[Partition]) -> None:
        """Let all of them ask until nobody does."""
        rounds = 0
        while asked := [(part, questions) for part in parts if (questions := part.questions())]:
            rounds += 1
            answers = self._ask({question for _, questions in asked for question in questions})
            for part, questions in asked:
                part.take({question: answers[question] for question in questions})
        self.cost += Cost(
            positions=sum(len(part.work.offsets) for part in parts),
            recalled=sum(len(part.recalled) for part in parts),
            rounds=rounds,
        )
        log.debug("partitions_translated", flow=self._flow, rounds=rounds)

    def _ask(self, questions: Iterable[Question]) -> dict[Question, Answer]:
        """Put the questions of one round, equal ones once, in one batch per side and kind."""
        answers: dict[Question, Answer] = {}
        batches: defaultdict[tuple[Side, type, bool], list[Question]] = defaultdict(list)
        for question in questions:
            itself = isinstance(question.what, RangeOf) and question.what.log_itself
            batches[question.side, type(question.what), itself].append(question)
        for (side, kind, itself), batch in batches.items():
            cluster, isolation = self._sides[side]
            if itself:
                isolation = Isolation.READ_UNCOMMITTED
            try:
                found = _ask_cluster(cluster, isolation, batch)
            except ClusterUnreachable as error:
                failed: Answer = Failed(FailureKind.UNREACHABLE, str(error))
                found = dict.fromkeys(batch, failed)
            answers.update(found)
            self.cost += _cost(side, kind, found)
        return answers


def _cost(side: Side, kind: type, found: Mapping[Question, Answer]) -> Cost:
    if kind is FirstAtTime:
        return Cost(lookups=len(found))
    if kind is not ReadFrom:
        return Cost()
    read = sum(answer.bytes_read for answer in found.values() if isinstance(answer, Stretch))
    if side is Side.SOURCE:
        return Cost(source_fetches=len(found), bytes_read=read, source_bytes_read=read)
    return Cost(target_fetches=len(found), bytes_read=read)


def _ask_cluster(
    cluster: Cluster, isolation: Isolation, batch: Sequence[Question]
) -> dict[Question, Answer]:
    found: Mapping[TopicPartition, LogRange | Failed]
    match batch[0].what:
        case RangeOf():
            found = cluster.log_ranges([q.what.partition for q in batch], isolation)
            return {q: found[q.what.partition] for q in batch}
        case ReadFrom():
            reads = [q.what for q in batch if isinstance(q.what, ReadFrom)]
            stretches = cluster.read(reads, isolation)
            return {q: stretches[q.what] for q in batch if isinstance(q.what, ReadFrom)}
        case FirstAtTime():
            times = [q.what for q in batch if isinstance(q.what, FirstAtTime)]
            offsets = cluster.first_at_times(times, isolation)
            return {q: offsets[q.what] for q in batch if isinstance(q.what, FirstAtTime)}
