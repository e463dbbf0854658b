"""Requests that only `check` sends: rights and topics' configurations. Nothing here writes."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from kafka.errors import KafkaError, UnknownTopicOrPartitionError
from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
)

from tsoffset.kafka.broker_connection import Node
from tsoffset.kafka.connections import Api, BrokerConnections, in_parts
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.errors import Trouble, error_class, failure
from tsoffset.kafka.groups import GroupLookup
from tsoffset.kafka.rounds import Again, answer_to, ask_cluster, in_rounds
from tsoffset.kafka.topology import TOPICS_PER_REQUEST, Topology
from tsoffset.model import Allowed, Failed, FailureKind, Operation

# Up to version 5, groups that do not exist have an answer, too, with the rights on their names.
_DESCRIBE_GROUPS = Api(
    "describe_groups", DescribeGroupsRequest, 0, 5, at_most=200, answer_bytes=32_000_000
)
_RIGHTS_ON_GROUPS_SINCE = 3
_DESCRIBE_CLUSTER = Api("describe_cluster", DescribeClusterRequest, 0, 0)
_DESCRIBE_CONFIGS = Api(
    "describe_configs", DescribeConfigsRequest, 1, 4, at_most=500, answer_bytes=16_000_000
)

# The codes of org.apache.kafka.common.acl.AclOperation, which answers use for rights.
_OPERATIONS = {3: Operation.READ, 8: Operation.DESCRIBE, 10: Operation.DESCRIBE_CONFIGS}
_TOPIC = 2
_CONFIGS = (
    "cleanup.policy",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "retention.bytes",
    "retention.ms",
)
_RIGHTS_ON = "ask for the rights on"
_CONFIGURATION_OF = "read the configuration of topic"

_Configs = Mapping[str, str]


class PreflightQueries:
    def __init__(
        self, connections: BrokerConnections, topology: Topology, groups: GroupLookup
    ) -> None:
        self._connections = connections
        self._topology = topology
        self._groups = groups

    # --- rights ----------------------------------------------------------------------------

    def cluster_rights(self, deadline: Deadline) -> Allowed:
        return ask_cluster(self._connections, partial(self._of_cluster, deadline), deadline)

    async def _of_cluster(self, deadline: Deadline) -> Allowed:
        def build(version: int) -> Any:
            return DescribeClusterRequest(
                include_cluster_authorized_operations=True, version=version
            )

        node = await self._topology.any_broker(deadline)
        try:
            answer = await self._connections.ask(node, _DESCRIBE_CLUSTER, build, deadline)
        except KafkaError as error:
            return _final(self._no_rights(error, "the cluster"))
        return _final(self._rights_in(answer, "the cluster"))

    def topic_rights(self, topics: Collection[str], deadline: Deadline) -> dict[str, Allowed]:
        ask = partial(self._of_topics, sorted(set(topics)), deadline)
        return ask_cluster(self._connections, ask, deadline) if topics else {}

    async def _of_topics(self, topics: Sequence[str], deadline: Deadline) -> dict[str, Allowed]:
        found: dict[str, Allowed] = {}
        for some in in_parts(topics, TOPICS_PER_REQUEST):
            response = await self._topology.metadata(some, deadline, with_rights=True)
            for topic in response.topics:
                allowed: Allowed = _operations_of(topic.authorized_operations)
                if allowed is None and topic.error_code:
                    answer = _final(self._no_rights(topic.error_code, f"topic {topic.name}"))
                    # Old brokers do not tell the rights on a topic that does not exist.
                    missing = isinstance(answer, Failed) and answer.missing
                    allowed = None if missing else answer
                found[topic.name] = allowed
        return found

    def group_rights(self, groups: Collection[str], deadline: Deadline) -> dict[str, Allowed]:
        attempt = partial(self._of_groups, deadline=deadline)
        return in_rounds(
            self._connections,
            sorted(set(groups)),
            attempt,
            f"{_RIGHTS_ON} group",
            deadline,
            forget=self._groups.forget,
        )

    async def _of_groups(
        self, groups: Collection[str], deadline: Deadline
    ) -> dict[str, Allowed | Again]:
        answers: dict[str, Allowed | Again] = {}
        by_node: dict[Node, list[str]] = defaultdict(list)
        operation = f"{_RIGHTS_ON} group"
        coordinators = await self._groups.coordinators(groups, operation, deadline)
        for group, node in coordinators.items():
            if isinstance(node, Failed | Again):
                answers[group] = _nothing_if_refused(node)
            else:
                by_node[node].append(group)

        def build(some: Sequence[str], version: int) -> Any:
            return DescribeGroupsRequest(
                groups=some,
                include_authorized_operations=version >= _RIGHTS_ON_GROUPS_SINCE,
                version=version,
            )

        def take(some: Sequence[str], response: Any) -> None:
            if isinstance(response, KafkaError):
                for group in some:
                    answers[group] = self._no_rights(response, f"group {group}")
                return
            for group in response.groups:
                answers[group.group_id] = self._rights_in(group, f"group {group.group_id}")

        async def ask(node: Node, items: list[str]) -> None:
            await self._connections.pipeline_many(
                node, _DESCRIBE_GROUPS, items, build, take, deadline
            )

        await self._connections.at_each(by_node, ask)
        return answers

    def _rights_in(self, answer: Any, what: str) -> Allowed | Again:
        if answer.error_code:
            return self._no_rights(answer.error_code, what)
        return _operations_of(answer.authorized_operations)

    def _no_rights(self, trouble: Trouble, what: str) -> Allowed | Again:
        return _nothing_if_refused(
            answer_to(trouble, f"{_RIGHTS_ON} {what}", self._connections.alias)
        )

    # --- configurations --------------------------------------------------------------------

    def topic_configs(
        self, topics: Collection[str], deadline: Deadline
    ) -> dict[str, _Configs | Failed]:
        attempt = partial(self._configs_of, deadline=deadline)
        return in_rounds(
            self._connections, sorted(set(topics)), attempt, _CONFIGURATION_OF, deadline
        )

    async def _configs_of(
        self, topics: Collection[str], deadline: Deadline
    ) -> dict[str, _Configs | Failed | Again]:
        answers: dict[str, _Configs | Failed | Again] = {}
        alias = self._connections.alias

        def build(some: Sequence[str], version: int) -> Any:
            resources = [
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=_TOPIC, resource_name=topic, configuration_keys=_CONFIGS
                )
                for topic in some
            ]
            return DescribeConfigsRequest(
                resources=resources, include_synonyms=False, version=version
            )

        def take(some: Sequence[str], response: Any) -> None:
            if isinstance(response, KafkaError):
                for topic in some:
                    answers[topic] = answer_to(response, f"{_CONFIGURATION_OF} {topic}", alias)
                return
            for one in response.results:
                what = f"{_CONFIGURATION_OF} {one.resource_name}"
                if error_class(one.error_code) is UnknownTopicOrPartitionError:
                    # It existed when topics were listed: a retry would wait for nothing.
                    answers[one.resource_name] = failure(one.error_code, what, alias)
                elif one.error_code:
                    answers[one.resource_name] = answer_to(one.error_code, what, alias)
                else:
                    answers[one.resource_name] = {
                        each.name: each.value for each in one.configs if each.value is not None
                    }

        node = await self._topology.any_broker(deadline)
        await self._connections.pipeline_many(
            node, _DESCRIBE_CONFIGS, list(topics), build, take, deadline
        )
        return answers


def _operations_of(operations: Collection[int] | None) -> frozenset[Operation] | None:
    if operations is None:
        return None
    return frozenset(_OPERATIONS[code] for code in operations if code in _OPERATIONS)


def _nothing_if_refused(answer: Failed | Again) -> Allowed | Again:
    """Without DESCRIBE there is no other right: all rights include it."""
    if isinstance(answer, Failed) and answer.kind is FailureKind.AUTHORIZATION:
        return frozenset()
    if isinstance(answer, Failed) and answer.kind is FailureKind.UNSUPPORTED_VERSION:
        return None
    return answer


def _final(answer: Allowed | Again) -> Allowed:
    """An answer that is not retried."""
    if isinstance(answer, Again):
        failed: Failed = answer.otherwise
        return failed
    return answer
