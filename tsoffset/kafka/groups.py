"""The groups of a cluster, and the broker that coordinates each."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from kafka.errors import CoordinatorNotAvailableError, KafkaError, KafkaTimeoutError
from kafka.protocol.admin import ListGroupsRequest
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

from tsoffset.cluster import leaderless
from tsoffset.kafka.broker_connection import Node
from tsoffset.kafka.connections import Api, BrokerConnections
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.errors import Remedy, rule
from tsoffset.kafka.rounds import Again, answer_to, ask_cluster, in_rounds
from tsoffset.kafka.topology import TopicAnswer, Topology
from tsoffset.kafka.wire import list_groups_codec
from tsoffset.kafka.wire.list_groups_codec import ListGroupsAnswer, ListGroupsCodec
from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    Failed,
    GroupListing,
    GroupListings,
    TopicDescription,
)

LIST_GROUPS = Api(
    "list_groups",
    ListGroupsRequest,
    list_groups_codec.LOWEST,
    list_groups_codec.HIGHEST,
    answer_bytes=16_000_000,  # 300,000 groups
)
# The protocol type of tsoffset's own groups (`tsoffset.kafka.membership`), as "connect" is
# Connect's.
ELECTION = "tsoffset"
# The time for asking other brokers for a coordinator, if one does not understand the request.
_ANOTHER_SECONDS = 1.0

FIND_COORDINATOR = Api("find_coordinator", FindCoordinatorRequest, 1, 5, many_since=4, at_most=500)


class GroupLookup:
    """The groups of a cluster and their coordinators. Runs in the connections' loop."""

    def __init__(self, connections: BrokerConnections, topology: Topology) -> None:
        self._connections = connections
        self._topology = topology
        self._coordinators: dict[str, Node] = {}

    # --- listing ---------------------------------------------------------------------------

    def listings(self, deadline: Deadline) -> GroupListings:
        """See `Cluster.groups`. Groups of elections never commit."""
        find_brokers = partial(self._topology.brokers, deadline)
        brokers = ask_cluster(self._connections, find_brokers, deadline)
        attempt = partial(self._list_round, deadline=deadline)
        answers = in_rounds(self._connections, brokers.nodes, attempt, "list groups", deadline)
        groups: dict[str, GroupListing] = {}
        failed: dict[int, Failed] = {}
        for node, answer in sorted(answers.items()):
            if isinstance(answer, Failed):
                failed[node] = answer
            else:
                groups.update((one.group, one) for one in answer if one.protocol_type != ELECTION)
        offsets_topic = brokers.group_offsets
        if offsets_topic is None and groups and not failed:
            # An old broker would create the topic; where there is a group, the topic exists.
            describe = partial(self._topology.describe, [GROUP_OFFSETS_TOPIC], deadline)
            described = ask_cluster(self._connections, describe, deadline)
            offsets_topic = described.get(GROUP_OFFSETS_TOPIC)
        unlisted = _without_leader(offsets_topic, brokers.nodes)
        return GroupListings(
            dict(sorted(groups.items())),
            failed,
            leaderless(self._connections.alias, unlisted) if unlisted else None,
        )

    async def _list_round(
        self, nodes: Collection[int], deadline: Deadline
    ) -> dict[int, tuple[GroupListing, ...] | Failed | Again]:
        answers: dict[int, tuple[GroupListing, ...] | Failed | Again] = {}

        def take(node: int, response: ListGroupsAnswer | KafkaError) -> None:
            trouble = response if isinstance(response, KafkaError) else response.error_code
            if trouble:
                operation = f"list groups of broker {node}"
                answers[node] = answer_to(trouble, operation, self._connections.alias)
            elif isinstance(response, ListGroupsAnswer):
                answers[node] = response.groups

        async def ask(node: int, _: None) -> None:
            codec = partial(ListGroupsCodec, self._connections.client.client_id, node, deadline)
            await self._connections.stream(node, LIST_GROUPS, (node,), codec, take, deadline)

        await self._connections.at_each(dict.fromkeys(nodes), ask)
        return answers

    # --- coordinators ----------------------------------------------------------------------

    async def coordinators(
        self, groups: Collection[str], operation: str, deadline: Deadline
    ) -> dict[str, Node | Failed | Again]:
        answers: dict[str, Node | Failed | Again] = {
            group: self._coordinators[group] for group in groups if group in self._coordinators
        }
        unknown = [group for group in groups if group not in answers]
        if not unknown:
            return answers

        misunderstood = False

        def take(some: Sequence[str], response: Any) -> None:
            nonlocal misunderstood
            misunderstood |= _is_final(response)
            answers.update(self._learn(some, response, operation))

        broker = await self._topology.any_broker(deadline)
        await self._connections.pipeline_many(
            broker, FIND_COORDINATOR, unknown, _coordinator_request, take, deadline
        )
        if misunderstood:
            # Let the next call ask another broker: each of them knows the coordinators.
            self._connections.pool.drop(broker)
        known = self._connections.pool.known_nodes()
        if any(isinstance(node, int) and node not in known for node in answers.values()):
            await self._topology.metadata((), deadline)
        return answers

    def _learn(
        self, groups: Sequence[str], response: Any, operation: str
    ) -> dict[str, Node | Failed | Again]:
        if isinstance(response, KafkaError):
            alias = self._connections.alias
            silence = {
                group: answer_to(response, f"{operation} {group}", alias) for group in groups
            }
            if not _is_final(response):
                return dict(silence)
            return {
                group: Again(one, retry_seconds=_ANOTHER_SECONDS) for group, one in silence.items()
            }
        if FIND_COORDINATOR.room(response.API_VERSION) == 1:
            found = {groups[0]: (response.error_code, response.node_id)}
        else:
            found = {each.key: (each.error_code, each.node_id) for each in response.coordinators}
        answers: dict[str, Node | Failed | Again] = {}
        for group in groups:
            trouble, node = found.get(group, (KafkaTimeoutError, -1))
            if trouble or node < 0:
                cause = trouble or CoordinatorNotAvailableError
                answers[group] = answer_to(cause, f"{operation} {group}", self._connections.alias)
            else:
                answers[group] = self._coordinators[group] = node
        return answers

    def forget(self, groups: Collection[str]) -> None:
        """Look up the coordinators of these groups again before they are used next."""
        for group in groups:
            self._coordinators.pop(group, None)


def _without_leader(topic: TopicAnswer | Again | None, brokers: Collection[int]) -> list[int]:
    """The partitions that none of the brokers leads. Empty if the topic cannot be described: it may
    not exist yet, or this client may not see it."""
    if not isinstance(topic, TopicDescription):
        return []
    return [number for number, one in topic.partitions.items() if one.leader not in brokers]


def _is_final(response: Any) -> bool:
    """Whether a broker has answered, and would not answer differently if asked again."""
    return isinstance(response, KafkaError) and rule(response).remedy is Remedy.NONE


def _coordinator_request(groups: Sequence[str], version: int) -> Any:
    if FIND_COORDINATOR.room(version) > 1:
        return FindCoordinatorRequest(
            key_type=CoordinatorType.GROUP, coordinator_keys=groups, version=version
        )
    return FindCoordinatorRequest(key=groups[0], key_type=CoordinatorType.GROUP, version=version)
