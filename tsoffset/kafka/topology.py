"""The leader of each partition: the cluster's metadata, cached and refreshed when stale."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from uuid import UUID

from kafka.errors import (
    InconsistentClusterIdError,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    MetadataEmptyBrokerList,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.metadata import MetadataRequest

from tsoffset.errors import ClusterRefused, ClusterUnreachable
from tsoffset.kafka.broker_connection import Node
from tsoffset.kafka.connections import Api, BrokerConnections, in_parts
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.errors import failure, rule
from tsoffset.kafka.rounds import LEADERLESS_RETRY_SECONDS, Again, ClusterSilent, answer_to
from tsoffset.kafka.security.failures import LoginDelayed, TokenUnavailable
from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    Failed,
    FailureKind,
    PartitionDescription,
    TopicDescription,
    TopicPartition,
)

METADATA = Api("metadata", MetadataRequest, 4, 12, answer_bytes=32_000_000)  # 700,000 partitions
_RIGHTS_SINCE = 8

# The next address is asked soon after one that does not answer, whose answer may still come
# meanwhile.
_FIRST_WAIT_MS = 1_500
_LONG_WAIT_MS = 30_000
# If this many brokers do not answer in time, the answer probably takes them longer.
_SLOW_BROKERS = 2
_SILENCE = (KafkaTimeoutError, RequestTimedOutError)
TOPICS_PER_REQUEST = 2_000
# Brokers before 2.8 create an internal topic that a request names.
_INTERNAL_TOPICS_SINCE = 10
# A caller that asks for the brokers has usually just got them. This is less than the time from one
# cycle to the next: a cycle lists the groups of the brokers that it has found itself.
_A_MOMENT_SECONDS = 0.1
_NO_TOPIC_ID = UUID(int=0)

TopicAnswer = TopicDescription | Failed


@dataclass(frozen=True, slots=True)
class Leader:
    node: int
    epoch: int


@dataclass(frozen=True, slots=True)
class BrokerList:
    """The brokers of a cluster, and the description of `__consumer_offsets` in the same response;
    None if the request could not name this topic."""

    nodes: Sequence[int] = ()
    group_offsets: "TopicAnswer | Again | None" = None
    since: float = float("-inf")


@dataclass(slots=True)
class _Known:
    topic: TopicDescription
    since: float = field(default_factory=time.monotonic)


class Topology:
    """Brokers and leaders of one cluster. Runs in the loop of its connections."""

    def __init__(self, connections: BrokerConnections) -> None:
        self._connections = connections
        self._alias = connections.alias
        self._topics: dict[str, _Known] = {}
        self._brokers = BrokerList()
        self._asking_for_brokers: asyncio.Task[Any] | None = None
        # The number of running calls that may use the bootstrap addresses.
        self._asking = 0

    # --- metadata --------------------------------------------------------------------------

    async def metadata(
        self,
        topics: Collection[str] | None,
        deadline: Deadline,
        *,
        with_rights: bool = False,
    ) -> Any:
        """One Metadata response from any broker: connected ones are asked first, the one with the
        latest answer before the others, then known ones, then the bootstrap addresses.

        With `topics` None, the response has all topics. With an empty collection, it has the
        brokers, and `__consumer_offsets` if naming this topic cannot create it. With `with_rights`,
        it also has the rights on each topic. Raises ClusterUnreachable if none answers, or only
        brokers of another cluster than before.
        """
        async with self.bootstrap_addresses(deadline) as addresses:
            return await self._metadata(topics, addresses, deadline, with_rights=with_rights)

    @asynccontextmanager
    async def bootstrap_addresses(self, deadline: Deadline) -> AsyncIterator[Mapping[Node, str]]:
        """As `Pool.bootstrap_nodes`; their connections are closed when no call uses them any
        more."""
        addresses = await self._connections.pool.bootstrap_nodes(deadline)
        self._asking += 1
        try:
            yield addresses
        finally:
            self._asking -= 1
            for node in addresses if not self._asking else ():
                self._connections.pool.drop(node)

    async def _metadata(
        self,
        topics: Collection[str] | None,
        addresses: Mapping[Node, str],
        deadline: Deadline,
        *,
        with_rights: bool,
    ) -> Any:
        connections = self._connections
        causes: dict[Node, KafkaError] = {}
        for node, wait_ms in self._attempts(list(addresses), causes):
            if deadline.over and (node in causes or node not in addresses):
                continue  # an earlier failure says more than a timeout
            pace = deadline.within(wait_ms)
            try:
                response = await connections.ask(
                    node,
                    METADATA,
                    lambda version: _request(topics, version, with_rights=with_rights),
                    pace,
                )
                connections.verify(METADATA.name, response.cluster_id)
                if not response.brokers:
                    raise MetadataEmptyBrokerList
            except KafkaError as error:
                causes[node] = error
                if isinstance(error, InconsistentClusterIdError):
                    connections.pool.drop(node)
                continue
            connections.pool.learn_brokers(response)
            if topics is not None and not topics:
                self._brokers = self._broker_list(response)
            return response
        raise self._unreachable(causes, addresses, deadline)

    async def brokers_metadata(self, deadline: Deadline) -> Any:
        """As `metadata` without topics. Calls that ask at the same time share one request."""
        asking, loop = self._asking_for_brokers, asyncio.get_running_loop()
        if asking is None or asking.done() or asking.get_loop() is not loop:
            asking = loop.create_task(self.metadata((), deadline))
            self._asking_for_brokers = asking
        return await asyncio.shield(asking)

    async def brokers(self, deadline: Deadline) -> BrokerList:
        """The current brokers, or those of a moment ago. Raises ClusterUnreachable."""
        if time.monotonic() - self._brokers.since > _A_MOMENT_SECONDS:
            await self.brokers_metadata(deadline)
        return self._brokers

    def _broker_list(self, response: Any) -> BrokerList:
        topics = {topic.name: topic for topic in response.topics or ()}
        described = topics.get(GROUP_OFFSETS_TOPIC)
        return BrokerList(
            [broker.node_id for broker in response.brokers],
            None if described is None else self._learn(described),
            time.monotonic(),
        )

    def _attempts(
        self, bootstrap: list[Node], causes: Mapping[Node, KafkaError]
    ) -> Iterator[tuple[Node, int]]:
        """The next nodes to ask, and for how many milliseconds; `causes` are why others failed. All
        are asked briefly, then those without an answer for longer."""
        connected = self._connections.pool.connected_nodes()
        known = self._connections.pool.known_nodes()
        others = [node for node in known if node not in connected]
        random.shuffle(others)
        random.shuffle(bootstrap)
        candidates = [*connected, *others, *bootstrap]
        for node in candidates:
            if _are_slow(causes.values()):
                break
            yield node, _FIRST_WAIT_MS
        for node in candidates:
            if node not in causes or isinstance(causes[node], _SILENCE):
                yield node, _LONG_WAIT_MS

    def _unreachable(
        self, causes: Mapping[Node, KafkaError], addresses: Mapping[Node, str], deadline: Deadline
    ) -> ClusterUnreachable:
        others = {
            node: f"broker {node}"
            for node, cause in causes.items()
            if isinstance(cause, InconsistentClusterIdError) and node not in addresses
        }
        next_step = (
            f"check {self._alias}.bootstrap.servers and {self._alias}.security.protocol, and that"
            " the brokers run"
        )
        for cause in causes.values():
            what = rule(cause)
            if what.kind is FailureKind.AUTHENTICATION or isinstance(
                cause, InconsistentClusterIdError | TokenUnavailable | LoginDelayed
            ):
                next_step = what.next_step.format(alias=self._alias)
        # Retrying a password may lock an account; after other errors another address may work.
        refused = any(isinstance(cause, SaslAuthenticationFailedError) for cause in causes.values())
        refused = refused or all(
            rule(cause).kind is FailureKind.AUTHENTICATION for cause in causes.values()
        )
        kind = ClusterSilent if _is_silence(causes) else ClusterUnreachable
        return (ClusterRefused if refused else kind)(
            f"connect to cluster {self._alias} ({deadline.seconds_spent:.1f} s): "
            + "; ".join(
                f"{name}: {rule(causes[node]).cause} ({_words(causes[node])})"
                for node, name in {**addresses, **others}.items()
            )
            + f"; {next_step}"
        )

    async def describe(
        self, names: Collection[str] | None, deadline: Deadline
    ) -> dict[str, TopicAnswer | Again]:
        """Fresh descriptions of the named topics, or of all."""
        found: dict[str, TopicAnswer | Again] = {}
        for some in [None] if names is None else in_parts(sorted(names), TOPICS_PER_REQUEST):
            response = await self.metadata(some, deadline)
            for topic in response.topics:
                found[topic.name] = self._learn(topic)
        return found

    def _learn(self, topic: Any) -> TopicAnswer | Again:
        operation = f"describe topic {topic.name}"
        if topic.error_code:
            self.forget((topic.name,))
            return answer_to(topic.error_code, operation, self._alias, missing_is_final=True)
        topic_id = None if topic.topic_id in (None, _NO_TOPIC_ID) else str(topic.topic_id)
        known = self._topics.get(topic.name)
        before: Mapping[int, PartitionDescription] = {}
        if known is not None and topic_id is not None and known.topic.topic_id == topic_id:
            before = known.topic.partitions
        description = TopicDescription(
            topic=topic.name,
            topic_id=topic_id,
            partitions={
                partition.partition_index: _newer(
                    _partition(partition), before.get(partition.partition_index)
                )
                for partition in sorted(topic.partitions, key=lambda each: each.partition_index)
            },
            internal=bool(topic.is_internal),
        )
        self._topics[topic.name] = _Known(description)
        return description

    # --- leaders ---------------------------------------------------------------------------

    async def leaders(
        self, partitions: Collection[TopicPartition], operation: str, deadline: Deadline
    ) -> dict[TopicPartition, Leader | Failed | Again]:
        """The leader of each partition; looked up if it is unknown or stale."""
        oldest = time.monotonic() - self._connections.client.metadata_max_age_ms / 1000
        unknown = set()
        # During a lookup, another call may forget others.
        topics: dict[str, TopicAnswer | Again] = {}
        for partition in partitions:
            known = self._topics.get(partition.topic)
            there = None if known is None else known.topic.partitions.get(partition.partition)
            if known is None or known.since < oldest or there is None or there.leader is None:
                unknown.add(partition.topic)
            else:
                topics[partition.topic] = known.topic
        if unknown:
            topics |= await self.describe(unknown, deadline)
        return {
            partition: self._leader(partition, topics.get(partition.topic), operation)
            for partition in partitions
        }

    def _leader(
        self, partition: TopicPartition, topic: TopicAnswer | Again | None, operation: str
    ) -> Leader | Failed | Again:
        if isinstance(topic, Failed | Again):
            return topic
        there = None if topic is None else topic.partitions.get(partition.partition)
        what = f"{operation} {partition}"
        if topic is None or there is None:
            count = "" if topic is None else f"the topic has {len(topic.partitions)}"
            return failure(UnknownTopicOrPartitionError, what, self._alias, count)
        if there.leader is None:
            failed = failure(LeaderNotAvailableError, what, self._alias)
            return Again(failed, True, LEADERLESS_RETRY_SECONDS)
        return Leader(there.leader, -1 if there.leader_epoch is None else there.leader_epoch)

    def forget(self, topics: Iterable[str]) -> None:
        """Look up these topics again before they are used next."""
        for topic in topics:
            if (known := self._topics.get(topic)) is not None:
                known.since = float("-inf")

    async def any_broker(self, deadline: Deadline) -> Node:
        """A broker for requests that any broker answers. Raises ClusterUnreachable."""
        pool = self._connections.pool
        if connected := pool.connected_nodes():
            return connected[0]
        await self.metadata((), deadline)
        # If a bootstrap address has answered, no broker is connected yet.
        named = pool.connected_nodes() or pool.known_nodes()
        causes: dict[Node, KafkaError] = {}
        for node in named:
            try:
                await pool.open(node, deadline)
            except KafkaError as error:
                causes[node] = error
                continue
            return node
        if any(rule(cause).kind is FailureKind.AUTHENTICATION for cause in causes.values()):
            raise self._unreachable(causes, {node: f"broker {node}" for node in named}, deadline)
        # The first one had the most time: the call may have ended before the others were tried.
        tried = "".join(
            f" (broker {node}: {rule(cause).cause}, {_words(cause)})"
            for node, cause in islice(causes.items(), 1)
        )
        raise (ClusterSilent if _is_silence(causes) else ClusterUnreachable)(
            f"connect to cluster {self._alias} ({deadline.seconds_spent:.1f} s): its bootstrap "
            f"addresses answer, but none of the brokers that they name does{tried}; "
            f"check the listeners that the brokers advertise"
        )


def _partition(partition: Any) -> PartitionDescription:
    leader = None if partition.leader_id < 0 else partition.leader_id
    epoch = None if partition.leader_epoch < 0 else partition.leader_epoch
    return PartitionDescription(partition.partition_index, leader, epoch)


def _newer(told: PartitionDescription, known: PartitionDescription | None) -> PartitionDescription:
    """The one with the higher leader epoch, as in Kafka's own client (KIP-320). A broker that is
    cut off from its cluster still names the former leaders, itself among them. Their logs lack what
    was written since, and groups would seem to have read all of it."""
    if known is None or known.leader_epoch is None or told.leader_epoch is None:
        return told
    return told if told.leader_epoch >= known.leader_epoch else known


def _request(topics: Collection[str] | None, version: int, *, with_rights: bool) -> Any:
    if topics is not None and not topics and version >= _INTERNAL_TOPICS_SINCE:
        topics = (GROUP_OFFSETS_TOPIC,)
    return MetadataRequest(
        topics=None
        if topics is None
        else [
            MetadataRequest.MetadataRequestTopic(name=topic, topic_id=_NO_TOPIC_ID)
            for topic in topics
        ],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=with_rights and version >= _RIGHTS_SINCE,
        version=version,
    )


def _is_silence(causes: Mapping[Node, KafkaError]) -> bool:
    return all(isinstance(cause, _SILENCE) for cause in causes.values())


def _are_slow(causes: Iterable[KafkaError]) -> bool:
    silent = [cause for cause in causes if isinstance(cause, RequestTimedOutError)]
    return len(silent) >= _SLOW_BROKERS


def _words(error: KafkaError) -> str:
    return " ".join(str(argument) for argument in error.args) or type(error).__name__
