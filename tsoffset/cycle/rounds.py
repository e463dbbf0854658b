"""All translators of a batch of partitions, run in rounds against the two clusters.

Each round collects the open questions, asks equal ones once, and hands them in batches to
the `Cluster`: the sequential network waits of a cycle are the rounds, however many groups.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import structlog

from tsoffset.cluster import Cluster, all_failed
from tsoffset.columns import columns_of
from tsoffset.cycle.cache_update import (
    Identities,
    describe_topics,
    identities,
    ranges_of,
    topic_ids,
)
from tsoffset.cycle.cleanup_policy import topics_not_compacted
from tsoffset.cycle.partition import Partition
from tsoffset.cycle.translated_partition import TranslatedPartition
from tsoffset.cycle.translator import Observe
from tsoffset.cycle.two_readings import lower_of
from tsoffset.cycle.work import Cost, PartitionWork, TranslatedPosition
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import (
    Failed,
    FailureKind,
    FirstAtTime,
    Isolation,
    ReadFrom,
    Side,
    TopicDescription,
    TopicPartition,
    Youngest,
)
from tsoffset.records import FetchedRange, walk_side_by_side
from tsoffset.rule.fast_path import NO_ANSWERS, Answers, translate_columns
from tsoffset.rule.inquiry import Answer, Question, RangeOf
from tsoffset.rule.partition_cache import PartitionCache

log = structlog.get_logger(__name__)

# A worker holds about `RECORDS_HELD` records (a few hundred bytes each) and works on up to
# `PARTITIONS_AT_ONCE` partitions at the same time; only on `_AT_FIRST` as long as it does not know
# how large batches are.
RECORDS_HELD = 500_000
PARTITIONS_AT_ONCE = 250
_AT_FIRST = 32


class TranslatedWork(NamedTuple):
    """A batch of partitions in their order, their cost, and their logs as they were before
    everything else was read."""

    partitions: Sequence[TranslatedPartition]
    cost: Cost
    logs: Identities


def translate_partitions(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    work: Sequence[PartitionWork],
    *,
    observe: Observe | None = None,
) -> Iterator[TranslatedPosition]:
    """Translate all positions of the partitions from the clusters alone, all translators in
    rounds together.

    Yields one TranslatedPosition per partition and offset. A question that fails ends its
    own translators only. `observe` listens to all of them.
    """
    not_compacted = topics_not_compacted(flow.translation, target, work)
    done, _ = _Batch(flow, source, target, not_compacted, {}, observe).translate(work)
    for one in work:
        yield from done[one.source].positions()


def translate_with_cache(
    flow: FlowSettings, source: Cluster, target: Cluster, work: Sequence[PartitionWork]
) -> TranslatedWork:
    """The translations of all positions, what to cache for the next cycle, and the
    cost. What the last cycle cached (`PartitionWork.cache`) saves questions where it is valid.
    """
    logs, not_compacted = _describe(flow, source, target, work)
    refused = {
        one.source: _refuse(flow, one)
        for one in work
        if one.cache is not None
        and (identity := logs.source.get(one.source)) is not None
        and identity.precedes(one.cache.source_log)
    }
    blanks = {one.source: logs.blank(one) for one in work}
    batch = _Batch(flow, source, target, not_compacted, blanks)
    done, cost = batch.translate([one for one in work if one.source not in refused])
    done |= refused
    return TranslatedWork([done[one.source] for one in work], cost, logs)


@dataclass(frozen=True)
class _Batch:
    """The translation of many partitions in the readings that each needs
    (`tsoffset.cycle.two_readings`). `blanks` are empty caches of the partitions' logs, for what is
    cached."""

    flow: FlowSettings
    source: Cluster
    target: Cluster
    not_compacted: Collection[str]
    blanks: Mapping[TopicPartition, PartitionCache | None]
    observe: Observe | None = None

    def translate(
        self, work: Sequence[PartitionWork]
    ) -> tuple[dict[TopicPartition, TranslatedPartition], Cost]:
        """The translated partitions, and the cost."""
        failed: dict[TopicPartition, TranslatedPartition] = {}
        if self.flow.isolation is Isolation.READ_COMMITTED:
            omitting = [one for one in work if one.omits_aborted(self.flow)]
            as_before = [one for one in work if not one.omits_aborted(self.flow)]
            ready, failed = self._omit_aborted(omitting) if omitting else ([], {})
            work = [*as_before, *ready]
        first, cost = self._read(work)
        done = first | failed
        again = [one.work for one in first.values() if one.needs_second_reading]
        if not again:
            return done, cost
        ready, failed = self._omit_aborted(again)
        # Both begin with the same cache: a cycle caches nothing as safe that rests on transactions.
        second, more = self._read(ready)
        done |= failed
        done |= {one: lower_of(done[one], found) for one, found in second.items()}
        return done, cost + replace(more, positions=0)

    def _omit_aborted(
        self, work: Sequence[PartitionWork]
    ) -> tuple[list[PartitionWork], dict[TopicPartition, TranslatedPartition]]:
        """The work with aborted records omitted, as far as transactions have ended; and the
        partitions of which that is not known."""
        ranges = ranges_of(self.source, [one.source for one in work], Isolation.READ_COMMITTED)
        ready, failed = [], {}
        for one in work:
            committed = ranges[one.source]
            if isinstance(committed, Failed):
                failed[one.source] = TranslatedPartition.without_answers(one, committed)
            else:
                ready.append(replace(one, decided_to=committed.end))
        return ready, failed

    def _read(
        self, work: Sequence[PartitionWork]
    ) -> tuple[dict[TopicPartition, TranslatedPartition], Cost]:
        run = _Run(self.flow, self.source, self.target, work)
        parts = (
            Partition(
                self.flow,
                one,
                _usable_cache(one, self.blanks.get(one.source)),
                self.observe,
                not_compacted=one.target.topic in self.not_compacted,
            )
            for one in work
        )
        done = {}
        for part in run.translate(parts):
            done[part.work.source] = part.result(self.blanks.get(part.work.source))
        return done, run.cost


def _describe(
    flow: FlowSettings, source: Cluster, target: Cluster, work: Sequence[PartitionWork]
) -> tuple[Identities, Collection[str]]:
    """The identities of both sides' logs, and the target topics that are known not to be compacted.
    All requests are under way at once."""
    sources, targets = {part.source for part in work}, {part.target for part in work}
    of_target: dict[str, TopicDescription | Failed] = {}
    not_compacted: set[str] = set()
    calls: list[Callable[[], None]] = [
        lambda: of_target.update(describe_topics(target, {one.topic for one in targets})),
        lambda: not_compacted.update(topics_not_compacted(flow.translation, target, work)),
    ]
    with ThreadPoolExecutor(1) as executor:
        of_source = executor.submit(describe_topics, source, {one.topic for one in sources})
        target.together(calls)
        logs = Identities(
            identities(of_source.result(), sources),
            identities(of_target, targets),
            topic_ids(of_source.result()),
            topic_ids(of_target),
        )
    return logs, not_compacted


def _usable_cache(part: PartitionWork, blank: PartitionCache | None) -> PartitionCache | None:
    cache = part.cache
    if cache is None or blank is None or not cache.same_logs(blank):
        return None
    return cache


def _refuse(flow: FlowSettings, part: PartitionWork) -> TranslatedPartition:
    """For a source partition of which a former leader answers: a broker that is cut off from its
    cluster still takes itself for the leader. Its log lacks what was written since, and groups
    would seem to have read all of it."""
    failed = Failed(
        FailureKind.NO_LEADER,
        f"read {part.source}, cluster {flow.source.alias}: the broker that answers has an older "
        "leader epoch than an earlier cycle saw, so its log may lack records; check that all "
        f"brokers of {flow.source.alias} reach their controller; if the cluster was restored from "
        f"a backup, delete the state file of {flow.name} and restart tsoffset",
    )
    return TranslatedPartition.without_answers(part, failed)


class _Run:
    """The rounds of a batch of partitions, and what they took."""

    def __init__(
        self, flow: FlowSettings, source: Cluster, target: Cluster, work: Sequence[PartitionWork]
    ) -> None:
        self._flow = flow.name
        self._match = flow.translation.match
        self._sides = {Side.SOURCE: source, Side.TARGET: target}
        self._source_isolation = {one.source: one.read_with(flow) for one in work}
        self._decided_to = {one.source: one.decided_to or 0 for one in work}
        self.cost = Cost()
        # How many partitions have ended, and how many records a position of these took.
        self._through = self._took = 0

    def translate(self, parts: Iterator[Partition]) -> Iterator[Partition]:
        """Run all translators to their end, as many partitions at once as have room for their
        records; yields each partition that has ended, and drops its records."""
        active: list[Partition] = []
        rounds = 0
        with ThreadPoolExecutor(max_workers=1) as executor:
            while True:
                active += islice(parts, max(0, self._most_partitions(active) - len(active)))
                if not active:
                    break
                for part in active:
                    part.share = RECORDS_HELD // len(active)
                asked = dict(self._questions(active))
                yield from (part for part in active if part not in asked)
                active = list(asked)
                if not asked:
                    continue
                rounds += 1
                answers = self._ask({one for some in asked.values() for one in some}, executor)
                walk_side_by_side(one for one in answers.values() if isinstance(one, FetchedRange))
                for part, questions in asked.items():
                    part.take({question: answers[question] for question in questions})
                # The partitions hold what they need of the answers: drop the rest now.
                del part, asked, answers
        self.cost += Cost(rounds=rounds)
        log.debug("partitions_translated", flow=self._flow, rounds=rounds)

    def _questions(
        self, parts: Sequence[Partition]
    ) -> Iterator[tuple[Partition, Collection[Question]]]:
        """The questions of each partition, without the partitions that are finished."""
        while parts:
            ready = []
            for part in parts:
                if questions := part.questions():
                    yield part, questions
                elif part.fast_path is not None:
                    ready.append(part)
                else:
                    self._note(part)
            if ready:
                self._answer_on_fast_path(ready)
            parts = ready

    def _most_partitions(self, active: Sequence[Partition]) -> int:
        """How many partitions may be under way at once."""
        told = [took for part in active if (took := part.records_per_position) is not None]
        seen = self._through + len(told)
        if not seen:
            return _AT_FIRST
        each = max(1, (self._took + sum(told)) // seen)
        return min(PARTITIONS_AT_ONCE, max(1, RECORDS_HELD // each))

    def _note(self, part: Partition) -> None:
        self._through += 1
        self._took += part.records_per_position or 0
        self.cost += Cost(positions=len(part.work.offsets))

    def _answer_on_fast_path(self, parts: Sequence[Partition]) -> None:
        """Answer the positions that these partitions have ready for the fast path."""
        try:
            found = _fast_path_answers(parts, self._match)
        except Exception as error:
            # A bug in the fast path costs time only: each position has its translator
            # then.
            log.error("answering_at_once_broke", error=type(error).__name__)
            found = [NO_ANSWERS for _ in parts]
        for part, answers in zip(parts, found, strict=True):
            part.answer(answers)

    def _ask(self, questions: Iterable[Question], executor: Executor) -> dict[Question, Answer]:
        """Put the questions of one round, equal ones once, in one batch per side, kind and
        isolation level, all of them at once."""
        batches: dict[Side, defaultdict[tuple[type, Isolation], list[Question]]] = {}
        for question in questions:
            of_side = batches.setdefault(question.side, defaultdict(list))
            of_side[type(question.what), self._isolation_of(question)].append(question)
        *others, last = batches
        asked = [executor.submit(self._ask_side, side, batches[side]) for side in others]
        answers, cost = self._ask_side(last, batches[last])
        for found, its_cost in (future.result() for future in asked):
            answers.update(found)
            cost += its_cost
        self.cost += cost
        return answers

    def _isolation_of(self, question: Question) -> Isolation:
        if isinstance(question.what, RangeOf) and question.what.log_itself:
            return Isolation.READ_UNCOMMITTED
        if question.side is Side.TARGET:
            return Isolation.READ_COMMITTED
        partition = question.what.partition
        if (
            isinstance(question.what, ReadFrom)
            and question.what.offset < self._decided_to[partition]
        ):
            return Isolation.READ_COMMITTED
        return self._source_isolation[partition]

    def _ask_side(
        self, side: Side, batches: Mapping[tuple[type, Isolation], Sequence[Question]]
    ) -> tuple[dict[Question, Answer], Cost]:
        answers: dict[Question, Answer] = {}
        cost = Cost()
        cluster = self._sides[side]
        calls = [
            partial(_ask_cluster, cluster, isolation, batch)
            for (_, isolation), batch in batches.items()
        ]
        for (kind, _), found in zip(batches, cluster.together(calls), strict=True):
            answers.update(found)
            cost += _cost(side, kind, found)
        return answers, cost


def _fast_path_answers(parts: Sequence[Partition], match: frozenset[str]) -> list[Answers]:
    """The fast path's answers for each partition."""
    ready = [part.fast_path for part in parts if part.fast_path is not None]
    source, target = (
        columns_of(
            (log, one) for log, part in enumerate(parts) for one in part.fetched_ranges(side)
        )
        for side in (Side.SOURCE, Side.TARGET)
    )
    sizes = [len(each.offsets) for each in ready]
    log = np.repeat(np.arange(len(ready)), sizes)
    offset = np.concatenate([each.offsets for each in ready])
    distance = np.concatenate([each.distances for each in ready])
    answered, answers = translate_columns(source, target, log, offset, distance, match)
    ends = np.searchsorted(log[answered], np.arange(1, len(ready)))
    columns = (np.split(column, ends) for column in answers)
    return [Answers(*own) for own in zip(*columns, strict=True)]


def _cost(side: Side, kind: type, found: Mapping[Question, Answer]) -> Cost:
    if kind in (FirstAtTime, Youngest):
        return Cost(lookups=len(found))
    if kind is not ReadFrom:
        return Cost()
    read = sum(answer.bytes_read for answer in found.values() if isinstance(answer, FetchedRange))
    if side is Side.SOURCE:
        return Cost(source_fetches=len(found), bytes_read=read, source_bytes_read=read)
    return Cost(target_fetches=len(found), bytes_read=read)


def _ask_cluster(
    cluster: Cluster, isolation: Isolation, batch: Sequence[Question]
) -> dict[Question, Answer]:
    """The answers to questions of one kind."""
    items: list[Any] = [question.what for question in batch]
    ask: Callable[..., Mapping[Any, Answer]]
    match items[0]:
        case RangeOf():
            items = [one.partition for one in items]
            ask = cluster.log_ranges
        case ReadFrom():
            ask = cluster.read
        case FirstAtTime():
            ask = cluster.first_at_times
        case _:
            ask = cluster.youngest
    try:
        found = ask(items, isolation)
    except ClusterUnreachable as error:
        return dict.fromkeys(batch, all_failed(error))
    return {question: found[item] for question, item in zip(batch, items, strict=True)}
