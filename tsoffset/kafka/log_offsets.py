"""Log starts, log ends and offsets by time: ListOffsets, many partitions a request."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka.errors import KafkaError
from kafka.protocol.consumer import ListOffsetsRequest

from tsoffset.kafka.connections import Api, Connections, Node
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.errors import error_class
from tsoffset.kafka.rounds import Again, answer_to, in_rounds
from tsoffset.kafka.topology import Leader, Topology
from tsoffset.model import (
    Failed,
    FirstAtTime,
    Isolation,
    LogRange,
    TimedOffset,
    TopicPartition,
)

LIST_OFFSETS = Api("list_offsets", ListOffsetsRequest, 4, 10)

_EARLIEST = -2
_LATEST = -1
_PARTITIONS_PER_REQUEST = 1_000
ISOLATION_LEVELS = {Isolation.READ_UNCOMMITTED: 0, Isolation.READ_COMMITTED: 1}

# What is asked of one partition: a time, or one of the two ends. The library's answer
# for it: offset and timestamp.
Lookup = tuple[TopicPartition, int]
Found = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Question:
    """One request: one time for each of many partitions, never the same partition twice."""

    times: Mapping[TopicPartition, int]
    epochs: Mapping[TopicPartition, int]


class LogOffsets:
    """ListOffsets over all leaders of a cluster."""

    def __init__(self, connections: Connections, topology: Topology) -> None:
        self._connections = connections
        self._topology = topology

    def log_ranges(
        self, partitions: Collection[TopicPartition], isolation: Isolation, deadline: Deadline
    ) -> dict[TopicPartition, LogRange | Failed]:
        """Start and readable end of each log. The start is asked for first: it never lies
        past the end then, whatever is deleted meanwhile."""
        lookups = [(tp, end) for tp in sorted(set(partitions)) for end in (_EARLIEST, _LATEST)]
        found = self._look_up("find the log range of", lookups, isolation, deadline)
        ranges: dict[TopicPartition, LogRange | Failed] = {}
        for tp in partitions:
            start, end = found[tp, _EARLIEST], found[tp, _LATEST]
            if isinstance(start, Failed):
                ranges[tp] = start
            elif isinstance(end, Failed):
                ranges[tp] = end
            else:
                ranges[tp] = LogRange(start[0], max(start[0], end[0]))
        return ranges

    def first_at_times(
        self, requests: Collection[FirstAtTime], isolation: Isolation, deadline: Deadline
    ) -> dict[FirstAtTime, TimedOffset | Failed | None]:
        """The first record at or after each time, as the broker's search answers.

        Raises ValueError for a negative time, which means something else to brokers.
        """
        for request in requests:
            if request.timestamp_ms < 0:
                raise ValueError(f"look up a negative time: {request}")
        lookups = sorted({(request.partition, request.timestamp_ms) for request in requests})
        found = self._look_up("look up a time in", lookups, isolation, deadline)
        answers: dict[FirstAtTime, TimedOffset | Failed | None] = {}
        for request in requests:
            answer = found[request.partition, request.timestamp_ms]
            if isinstance(answer, Failed):
                answers[request] = answer
            else:
                offset, timestamp_ms = answer
                answers[request] = None if offset < 0 else TimedOffset(offset, timestamp_ms)
        return answers

    def _look_up(
        self, operation: str, lookups: list[Lookup], isolation: Isolation, deadline: Deadline
    ) -> dict[Lookup, Found | Failed]:
        def attempt(open_ones: Collection[Lookup]) -> Any:
            return self._round(operation, open_ones, isolation, deadline)

        return in_rounds(self._connections, lookups, attempt, operation, deadline)

    async def _round(
        self,
        operation: str,
        lookups: Collection[Lookup],
        isolation: Isolation,
        deadline: Deadline,
    ) -> dict[Lookup, Found | Failed | Again]:
        answers: dict[Lookup, Found | Failed | Again] = {}
        leaders = await self._topology.leaders({tp for tp, _ in lookups}, operation, deadline)
        by_node: dict[Node, list[Lookup]] = defaultdict(list)
        epochs: dict[TopicPartition, int] = {}
        for lookup in lookups:
            leader = leaders[lookup[0]]
            if isinstance(leader, Leader):
                by_node[leader.node].append(lookup)
                epochs[lookup[0]] = leader.epoch
            else:
                answers[lookup] = leader

        def take(question: _Question, response: Any) -> None:
            answers.update(self._answers(operation, question, response))

        timeout_ms = deadline.milliseconds(self._connections.client.broker_wait_ms)
        build = partial(_request, isolation=isolation, timeout_ms=timeout_ms)
        await self._connections.gather(
            [
                partial(
                    self._connections.pipeline,
                    node,
                    LIST_OFFSETS,
                    [_Question(times, epochs) for times in _layers(theirs)],
                    build,
                    take,
                    deadline,
                )
                for node, theirs in by_node.items()
            ]
        )
        self._topology.forget(
            tp.topic
            for (tp, _), answer in answers.items()
            if isinstance(answer, Again) and answer.refresh
        )
        return answers

    def _answers(
        self, operation: str, question: _Question, response: Any
    ) -> dict[Lookup, Found | Failed | Again]:
        alias = self._connections.alias
        if isinstance(response, KafkaError):
            return {
                (tp, time): answer_to(response, f"{operation} {tp}", alias)
                for tp, time in question.times.items()
            }
        answers: dict[Lookup, Found | Failed | Again] = {}
        for topic in response.topics:
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                if (time := question.times.get(tp)) is None:
                    continue
                lookup = tp, time
                if partition.error_code:
                    error = error_class(partition.error_code)
                    answers[lookup] = answer_to(error, f"{operation} {tp}", alias)
                else:
                    answers[lookup] = partition.offset, partition.timestamp
        return answers


def _layers(lookups: Iterable[Lookup]) -> list[dict[TopicPartition, int]]:
    """As few requests as hold all lookups, a partition at most once in each.

    The first lookup of every partition comes before the second of any.
    """
    depth: dict[TopicPartition, int] = defaultdict(int)
    layers: dict[tuple[int, int], dict[TopicPartition, int]] = {}
    sizes: dict[int, int] = defaultdict(int)
    for tp, time in lookups:
        layer = depth[tp]
        depth[tp] += 1
        chunk = sizes[layer] // _PARTITIONS_PER_REQUEST
        sizes[layer] += 1
        layers.setdefault((layer, chunk), {})[tp] = time
    return [layers[key] for key in sorted(layers)]


def _request(question: _Question, version: int, isolation: Isolation, timeout_ms: int) -> Any:
    topics: dict[str, list[Any]] = defaultdict(list)
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    for tp, time in question.times.items():
        topics[tp.topic].append(
            topic_class.ListOffsetsPartition(
                partition_index=tp.partition,
                current_leader_epoch=question.epochs[tp],
                timestamp=time,
            )
        )
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=ISOLATION_LEVELS[isolation],
        topics=[topic_class(name=name, partitions=theirs) for name, theirs in topics.items()],
        timeout_ms=timeout_ms,
        version=version,
    )
