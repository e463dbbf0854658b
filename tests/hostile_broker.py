"""Brokers of this process that speak Kafka's protocol, and that lie where a test says.

They serve what a `MemoryCluster` holds over sockets: what a flow asks of its source and its target,
in the versions that `_KINDS` names. Each answer may pass through a `Lie`, which sends something
else instead, or nothing. So a whole cycle meets a hostile broker, without Java and in no time.
"""

import contextlib
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)

from tests.kafka.wire.test_records import batch
from tests.library_messages import message
from tsoffset.model import CommittedOffset, Failed, Isolation, TopicDescription, TopicPartition
from tsoffset.testing.memory_cluster import MemoryCluster

FETCH, LIST_OFFSETS, METADATA = 1, 2, 3
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
LIST_GROUPS, API_VERSIONS, DESCRIBE_CLUSTER = 16, 18, 60
CONNECT = -1
"""Not a request: what a lie is told of when a connection was made."""

_UNKNOWN_TOPIC, _OUT_OF_RANGE, _EARLIEST = 3, 1, -2
_ISOLATIONS = (Isolation.READ_UNCOMMITTED, Isolation.READ_COMMITTED)


@dataclass
class ReceivedRequest:
    """A request that a broker has got, and the honest answer to it; None for `CONNECT`."""

    brokers: "Brokers"
    client: socket.socket
    node: int
    api: int
    version: int = 0
    correlation_id: int = 0
    request: Any = None
    answer: Any = None

    def frame(self) -> bytes:
        """The whole frame of the answer, as it is now."""
        self.answer._header = None
        self.answer.API_VERSION = self.version
        self.answer.with_header(correlation_id=self.correlation_id)
        frame: bytes = self.answer.encode(header=True, framed=True)
        return frame

    def send(self, data: bytes) -> None:
        self.client.sendall(data)

    def wait(self, seconds: float) -> None:
        self.brokers.closing.wait(seconds)


Lie = Callable[[ReceivedRequest], bytes | None]
"""What a broker sends for a request; after None the connection ends."""


@dataclass
class Brokers:
    """Two brokers of one cluster, 0 and 1, which lead and coordinate what `memory` says.

    `lies` are told instead of the honest answers, each by one of the brokers or both (None) where
    it is asked for `api`. `requests` counts what was asked for, by kind.
    """

    memory: MemoryCluster
    lies: list[tuple[int | None, int, Lie]] = field(default_factory=list)
    requests: Counter[int] = field(default_factory=Counter)
    ports: list[int] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def open(self) -> Iterator[str]:
        """The address of broker 0."""
        with ExitStack() as sockets:
            listening = [
                sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in "01"
            ]
            self.ports = [each.getsockname()[1] for each in listening]
            threads = [
                threading.Thread(target=self._accept, args=(node, each, sockets), daemon=True)
                for node, each in enumerate(listening)
            ]
            for thread in threads:
                thread.start()
            try:
                yield f"127.0.0.1:{self.ports[0]}"
            finally:
                self.closing.set()
                for each, thread in zip(listening, threads, strict=True):
                    each.shutdown(socket.SHUT_RDWR)
                    thread.join()

    def _accept(self, node: int, listening: socket.socket, sockets: ExitStack) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                sockets.callback(client.close)
                threading.Thread(target=self._serve, args=(node, client), daemon=True).start()

    def _serve(self, node: int, client: socket.socket) -> None:
        try:
            sent = self._lie(ReceivedRequest(self, client, node, CONNECT))
            while sent is not None:
                client.sendall(sent)
                frame = _exactly(client, *struct.unpack(">i", _exactly(client, 4)))
                sent = self._answer(client, node, frame)
        except (OSError, EOFError):
            pass  # the other side has gone, or the test has ended
        finally:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def _answer(self, client: socket.socket, node: int, frame: bytes) -> bytes | None:
        api, version, correlation_id = struct.unpack_from(">hhi", frame)
        _, kind, answered = _KINDS[api]
        request = kind.decode(frame, version=version, header=True)
        with self._lock:
            self.requests[api] += 1
            answer = answered(self, request, version)
        return self._lie(
            ReceivedRequest(self, client, node, api, version, correlation_id, request, answer)
        )

    def _lie(self, asked: ReceivedRequest) -> bytes | None:
        for node, api, lie in self.lies:
            if api == asked.api and node in (None, asked.node):
                return lie(asked)
        return b"" if asked.api == CONNECT else asked.frame()

    # --- honest answers -------------------------------------------------------------------

    def _api_versions(self, _: Any, __: int) -> Any:
        keys = [
            {"api_key": api, "min_version": lowest, "max_version": highest}
            for api, ((lowest, highest), *_) in _KINDS.items()
        ]
        return message(ApiVersionsResponse, error_code=0, api_keys=keys, throttle_time_ms=0)

    def _describe_cluster(self, _: Any, __: int) -> Any:
        told = {"cluster_id": self.memory.alias, "controller_id": 0, "brokers": []}
        return message(DescribeClusterResponse, throttle_time_ms=0, error_code=0, **told)

    def _metadata(self, request: Any, _: int) -> Any:
        names = None if request.topics is None else [each.name for each in request.topics]
        return MetadataResponse(
            throttle_time_ms=0,
            brokers=[broker(node, port) for node, port in enumerate(self.ports)],
            cluster_id=self.memory.alias,
            controller_id=0,
            topics=[_topic(*each) for each in self.memory.topics(names).items()],
        )

    def _find_coordinator(self, request: Any, version: int) -> Any:
        names = request.coordinator_keys if version >= 4 else [request.key]
        coordinators = [
            {"key": name, "node_id": node, "host": "127.0.0.1", "port": self.ports[node]}
            | {"error_code": 0, "error_message": None}
            for name in names
            for node in [self.memory._coordinator(name)]
        ]
        found: dict[str, Any] = {"coordinators": coordinators}
        if version < 4:
            [found] = coordinators
            del found["key"]
        return message(FindCoordinatorResponse, throttle_time_ms=0, **found)

    def _list_groups(self, _: Any, __: int) -> Any:
        # Each broker lists all, which is harmless.
        groups = [
            {"group_id": each.group, "protocol_type": each.protocol_type}
            | {"group_state": each.state, "group_type": str(each.type)}
            for each in self.memory.groups().groups.values()
        ]
        return message(ListGroupsResponse, throttle_time_ms=0, error_code=0, groups=groups)

    def _offset_fetch(self, request: Any, version: int) -> Any:
        names = [request.group_id] if version < 8 else [each.group_id for each in request.groups]
        found = [{"topics": self._offsets_of(name), "error_code": 0} for name in names]
        if version < 8:
            return message(OffsetFetchResponse, throttle_time_ms=0, **found[0])
        groups = [{"group_id": name} | each for name, each in zip(names, found, strict=True)]
        return message(OffsetFetchResponse, throttle_time_ms=0, groups=groups)

    def _offsets_of(self, group: str) -> list[dict[str, Any]]:
        found: dict[str, list[dict[str, Any]]] = {}
        known = self.memory._groups.get(group)
        for tp, commit in ({} if known is None else known.offsets).items():
            found.setdefault(tp.topic, []).append(
                {"partition_index": tp.partition, "committed_offset": commit.offset}
                | {"committed_leader_epoch": -1, "metadata": commit.metadata, "error_code": 0}
            )
        return [{"name": topic, "partitions": of_topic} for topic, of_topic in found.items()]

    def _list_offsets(self, request: Any, _: int) -> Any:
        isolation = _ISOLATIONS[request.isolation_level]
        topics = [
            {
                "name": topic.name,
                "partitions": [
                    self._looked_up(topic.name, asked, isolation) for asked in topic.partitions
                ],
            }
            for topic in request.topics
        ]
        return message(ListOffsetsResponse, throttle_time_ms=0, topics=topics)

    def _looked_up(self, topic: str, asked: Any, isolation: Isolation) -> dict[str, Any]:
        log = self.memory.log(topic, asked.partition_index)
        offset, time = -1, -1
        if asked.timestamp >= 0:
            found = log.first_at(asked.timestamp, isolation)
            if found is not None:
                offset, time = found.offset, found.timestamp_ms
        else:
            offset = log.start if asked.timestamp == _EARLIEST else log.readable_end(isolation)
        return {"partition_index": asked.partition_index, "error_code": 0, "leader_epoch": 0} | {
            "timestamp": time,
            "offset": offset,
        }

    def _fetch(self, request: Any, _: int) -> Any:
        [topic] = request.topics
        [asked] = topic.partitions
        log = self.memory.log(topic.topic, asked.partition)
        isolation = _ISOLATIONS[request.isolation_level]
        inside = log.start <= asked.fetch_offset <= log.end
        found = {
            "partition_index": asked.partition,
            "error_code": 0 if inside else _OUT_OF_RANGE,
            "high_watermark": log.high_watermark,
            "last_stable_offset": log.last_stable_offset,
            "log_start_offset": log.start,
            "aborted_transactions": [],
            "preferred_read_replica": -1,
            "records": self._batches(log, asked, isolation) if inside else b"",
        }
        responses = [{"topic": topic.topic, "partitions": [found]}]
        return message(
            FetchResponse, throttle_time_ms=0, error_code=0, session_id=0, responses=responses
        )

    def _batches(self, log: Any, asked: Any, isolation: Isolation) -> bytes:
        found = b""
        offset = asked.fetch_offset
        while not found or len(found) < asked.partition_max_bytes:
            fetched = log.read(offset, 1, isolation)
            if fetched is None or fetched.end == offset:
                break
            sent = [(it.timestamp_ms, it.key, it.value, []) for it in log.raw(fetched).records]
            found += batch(sent, fetched.start)
            offset = fetched.end
        return found

    def _offset_commit(self, request: Any, _: int) -> Any:
        group = request.group_id
        topics = []
        for topic in request.topics:
            commits = {
                TopicPartition(topic.name, each.partition_index): CommittedOffset(
                    each.committed_offset, each.committed_metadata or ""
                )
                for each in topic.partitions
            }
            done = self.memory.commit({group: commits})[group]
            assert all(each is None for each in done.values()), done
            partitions = [{"partition_index": it.partition, "error_code": 0} for it in done]
            topics.append({"name": topic.name, "partitions": partitions})
        return message(OffsetCommitResponse, throttle_time_ms=0, topics=topics)


# By kind: the versions that it may be asked in, how it is decoded, and who answers.
_KINDS: dict[int, tuple[tuple[int, int], Any, Callable[[Brokers, Any, int], Any]]] = {
    FETCH: ((4, 11), FetchRequest, Brokers._fetch),
    LIST_OFFSETS: ((4, 7), ListOffsetsRequest, Brokers._list_offsets),
    METADATA: ((4, 12), MetadataRequest, Brokers._metadata),
    OFFSET_COMMIT: ((8, 8), OffsetCommitRequest, Brokers._offset_commit),
    OFFSET_FETCH: ((7, 8), OffsetFetchRequest, Brokers._offset_fetch),
    FIND_COORDINATOR: ((1, 4), FindCoordinatorRequest, Brokers._find_coordinator),
    LIST_GROUPS: ((3, 5), ListGroupsRequest, Brokers._list_groups),
    API_VERSIONS: ((0, 4), ApiVersionsRequest, Brokers._api_versions),
    DESCRIBE_CLUSTER: ((0, 0), DescribeClusterRequest, Brokers._describe_cluster),
}


def broker(node: int, port: int) -> Any:
    """A broker as Metadata names it."""
    return MetadataResponse.MetadataResponseBroker(
        node_id=node, host="127.0.0.1", port=port, rack=None
    )


def partition(number: int, leader: int) -> Any:
    """A partition as Metadata names it."""
    return MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(
        error_code=0,
        partition_index=number,
        leader_id=leader,
        leader_epoch=0,
        replica_nodes=[leader],
        isr_nodes=[leader],
        offline_replicas=[],
    )


def _topic(name: str, described: TopicDescription | Failed) -> Any:
    made = MetadataResponse.MetadataResponseTopic
    if isinstance(described, Failed):
        none = UUID(int=0)
        return made(
            error_code=_UNKNOWN_TOPIC, name=name, topic_id=none, is_internal=False, partitions=[]
        )
    partitions = [
        partition(each.partition, -1 if each.leader is None else each.leader)
        for each in described.partitions.values()
    ]
    return made(
        error_code=0,
        name=name,
        topic_id=UUID(described.topic_id),
        is_internal=described.internal,
        partitions=partitions,
    )


def _exactly(client: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        if not (some := client.recv(size - len(data))):
            raise EOFError
        data += some
    return bytes(data)
