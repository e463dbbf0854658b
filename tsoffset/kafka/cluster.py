"""A real Kafka cluster: `tsoffset.cluster.Cluster` over this package."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import wait
from contextlib import suppress
from functools import partial
from typing import TypeVar

from kafka.errors import KafkaError

from tsoffset.cluster import Cluster
from tsoffset.committed import CommittedColumns
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.broker_connection import BrokerConnection, Node
from tsoffset.kafka.connections import BrokerConnections
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.group_offsets import OFFSET_COMMIT, OFFSET_FETCH, CommittedOffsets
from tsoffset.kafka.groups import FIND_COORDINATOR, LIST_GROUPS, GroupLookup
from tsoffset.kafka.log_offsets import LIST_OFFSETS, LogOffsets
from tsoffset.kafka.preflight import PreflightQueries
from tsoffset.kafka.reads import FETCH, FetchRun
from tsoffset.kafka.rounds import Again, ask_cluster, in_rounds
from tsoffset.kafka.security.principal import principal
from tsoffset.kafka.topology import METADATA, Topology
from tsoffset.kafka.wire.records import fetched_range, raw_fetched_range
from tsoffset.model import (
    Broker,
    ClusterDescription,
    CommittedOffset,
    Failed,
    FirstAtTime,
    GroupListings,
    Isolation,
    LeaderEpoch,
    LogRange,
    ReadFrom,
    Rights,
    TimedOffset,
    TopicDescription,
    TopicPartition,
    Youngest,
)
from tsoffset.records import FetchedRange, RawFetchedRange
from tsoffset.threads import in_thread

T = TypeVar("T")

# The time that `describe` gives an address or a broker.
_PROBE_MS = 3_000

# The requests without which a cycle is impossible.
_NEEDED = (
    METADATA,
    LIST_GROUPS,
    FIND_COORDINATOR,
    OFFSET_FETCH,
    LIST_OFFSETS,
    FETCH,
    OFFSET_COMMIT,
)


class KafkaCluster(Cluster):
    """`tsoffset.cluster.Cluster` over kafka-python.

    It opens nothing before the first call, so a cluster may be made before a fork and used after
    it. Use it from one thread at a time, except for `together`.

    Raises ConfigurationError for addresses that cannot be used.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._connections = BrokerConnections(settings)
        self._topology = Topology(self._connections)
        self._log_offsets = LogOffsets(self._connections, self._topology)
        self._fetch = partial(FetchRun, self._connections, self._topology, settings.poll_timeout_ms)
        self._groups = GroupLookup(self._connections, self._topology)
        self._committed = CommittedOffsets(self._connections, self._groups)
        self._preflight = PreflightQueries(self._connections, self._topology, self._groups)

    @property
    def alias(self) -> str:
        return self._settings.alias

    @property
    def requests(self) -> Mapping[str, int]:
        """The number of requests sent so far, by kind (`fetch`, `list_offsets`, ...)."""
        return dict(self._connections.requests)

    @property
    def retries(self) -> int:
        """The number of retries so far, after no answer or an answer that may change."""
        return self._connections.retries

    @property
    def throttle_seconds(self) -> float:
        """Seconds for which no request was sent so far because a broker throttled."""
        return self._connections.throttle_seconds

    def describe(self) -> ClusterDescription:
        deadline = self._deadline()
        return ask_cluster(self._connections, partial(self._describe, deadline), deadline)

    async def _describe(self, deadline: Deadline) -> ClusterDescription:
        async with self._topology.bootstrap_addresses(deadline) as addresses:
            return await self._probe(addresses, deadline)

    async def _probe(self, addresses: Mapping[Node, str], deadline: Deadline) -> ClusterDescription:
        """The description, once all addresses and brokers were connected to."""
        versions: dict[Node, str | None] = {}
        unspoken: dict[Node, tuple[str, ...]] = {}

        def learn(connection: BrokerConnection) -> None:
            node = connection.node
            versions[node] = connection.versions.broker_version_str
            unspoken[node] = tuple(api.name for api in _NEEDED if not api.supported_by(connection))

        async def probe(node: Node, _: None) -> None:
            pace = deadline.within(_PROBE_MS)
            with suppress(KafkaError):
                learn(await self._connections.pool.open(node, pace))

        each = self._connections.at_each(dict.fromkeys(addresses), probe)
        probing = asyncio.create_task(each)
        try:
            metadata = await self._topology.brokers_metadata(deadline)
            brokers: list[Node] = [broker.node_id for broker in metadata.brokers]
            await self._connections.at_each(dict.fromkeys(brokers), probe)
        finally:
            await probing
            # An address that took longer to open may have returned the metadata.
            for connection in self._connections.pool.ready():
                learn(connection)
        alive = {address for node, address in addresses.items() if node in versions}
        return ClusterDescription(
            cluster_id=metadata.cluster_id or None,
            brokers=tuple(
                Broker(
                    broker.node_id,
                    broker.host,
                    broker.port,
                    versions.get(broker.node_id),
                    unspoken.get(broker.node_id, ()),
                )
                for broker in sorted(metadata.brokers, key=lambda each: each.node_id)
            ),
            dead_addresses=tuple(
                address for address in dict.fromkeys(addresses.values()) if address not in alive
            ),
        )

    def topics(
        self, names: Collection[str] | None = None
    ) -> Mapping[str, TopicDescription | Failed]:
        deadline = self._deadline()
        describe = partial(self._topology.describe, deadline=deadline)
        if names is not None:
            wanted = sorted(set(names))
            return in_rounds(self._connections, wanted, describe, "describe topics", deadline)
        found = ask_cluster(self._connections, partial(describe, None), deadline)
        return {
            name: answer.otherwise if isinstance(answer, Again) else answer
            for name, answer in sorted(found.items())
        }

    def groups(self) -> GroupListings:
        return self._groups.listings(self._deadline())

    def committed(
        self,
        groups: Collection[str],
        *,
        share_groups: Collection[str] = (),
        require_stable: bool,
        within_seconds: float | None = None,
    ) -> CommittedColumns:
        step_ms = None if within_seconds is None else max(1, int(within_seconds * 1000))
        deadline = Deadline.after(self._settings.admin_timeout_ms, step_ms=step_ms)
        return self._committed.committed(
            groups, share_groups, require_stable, deadline, single_attempt=step_ms is not None
        )

    def log_ranges(
        self, partitions: Collection[TopicPartition], isolation: Isolation
    ) -> Mapping[TopicPartition, LogRange | Failed]:
        return self._log_offsets.log_ranges(partitions, isolation, self._deadline())

    def read(
        self, requests: Collection[ReadFrom], isolation: Isolation
    ) -> Mapping[ReadFrom, FetchedRange | Failed]:
        decode = partial(fetched_range, header=self._settings.offset_header)
        return self._fetch(isolation, self._deadline(), FetchedRange, decode).answers(requests)

    def read_raw(
        self, requests: Collection[ReadFrom], isolation: Isolation
    ) -> Mapping[ReadFrom, RawFetchedRange | Failed]:
        fetch = self._fetch(isolation, self._deadline(), RawFetchedRange, raw_fetched_range)
        return fetch.answers(requests)

    def first_at_times(
        self, requests: Collection[FirstAtTime], isolation: Isolation
    ) -> Mapping[FirstAtTime, TimedOffset | Failed | None]:
        """Raises ValueError for a negative time."""
        return self._log_offsets.first_at_times(requests, isolation, self._deadline())

    def youngest(
        self, requests: Collection[Youngest], isolation: Isolation
    ) -> Mapping[Youngest, TimedOffset | Failed | None]:
        """None from brokers before 3.0."""
        return self._log_offsets.youngest(requests, isolation, self._deadline())

    def epoch_ends(
        self, requests: Collection[LeaderEpoch]
    ) -> Mapping[LeaderEpoch, int | Failed | None]:
        return self._log_offsets.epoch_ends(requests, self._deadline())

    def commit(
        self,
        commits: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
        *,
        share_groups: Collection[str] = (),
        may_send: Callable[[str], bool] | None = None,
    ) -> Mapping[str, Mapping[TopicPartition, Failed | None]]:
        return self._committed.commit(commits, share_groups, self._deadline(), may_send)

    def rights(self, topics: Collection[str], groups: Collection[str]) -> Rights:
        deadline = self._deadline()
        return Rights(
            principal(self._settings.security),
            self._preflight.cluster_rights(deadline),
            self._preflight.topic_rights(topics, deadline),
            self._preflight.group_rights(groups, deadline),
        )

    def topic_configs(self, topics: Collection[str]) -> Mapping[str, Mapping[str, str] | Failed]:
        return self._preflight.topic_configs(topics, self._deadline())

    def together(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """The calls' requests are in flight at the same time."""
        *others, last = calls
        if not others:
            return [last()]
        asked = [in_thread(call) for call in others]
        try:
            found = last()
            return [*(one.result() for one in asked), found]
        except ClusterUnreachable:
            wait(asked)
            raise
        except BaseException:
            # The results of the other calls are not needed any more.
            self._connections.close()
            raise

    def close(self) -> None:
        self._connections.close()

    def _deadline(self) -> Deadline:
        return Deadline.after(self._settings.admin_timeout_ms)
