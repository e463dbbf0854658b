"""Kafka client settings, from text to the values that connections use."""

import socket
from dataclasses import dataclass, field

from tsoffset.flow.settings import ClusterSettings

# The most requests in flight on one connection.
WINDOW = 512

# The largest time in Kafka's settings.
_FOR_EVER = 2**63 - 1
_CANONICAL = "resolve_canonical_bootstrap_servers_only"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Settings of connections. All times are in milliseconds.

    `resolves_canonical_names`: a bootstrap address means all canonical names of its host.
    `backoff_ms` and `backoff_max_ms` are the waits between retries, on open connections and new
    ones: the larger of Kafka's two settings.
    """

    client_id: str = field(repr=False)
    resolves_canonical_names: bool
    connections_max_idle_ms: int
    metadata_max_age_ms: int
    request_timeout_ms: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    socket_options: tuple[tuple[int, int, int], ...]
    backoff_ms: int
    backoff_max_ms: int

    @property
    def broker_wait_ms(self) -> int:
        """How long a broker may hold a request back, so that its answer arrives in time."""
        return self.request_timeout_ms * 3 // 4


def client_settings(settings: ClusterSettings) -> ClientSettings:
    """The values of `settings.client`, which `tsoffset.config` has checked, with Kafka's defaults;
    settings that connections do not use are ignored."""
    client = settings.client

    def number(name: str, default: int) -> int:
        return int(client.get(name, default))

    idle_ms = number("connections.max.idle.ms", 540_000)
    buffers = (
        (socket.SOL_SOCKET, socket.SO_SNDBUF, number("send.buffer.bytes", -1)),
        (socket.SOL_SOCKET, socket.SO_RCVBUF, number("receive.buffer.bytes", -1)),
    )
    return ClientSettings(
        client_id=client.get("client.id", "tsoffset"),
        resolves_canonical_names=client.get("client.dns.lookup") == _CANONICAL,
        connections_max_idle_ms=_FOR_EVER if idle_ms == -1 else idle_ms,
        metadata_max_age_ms=number("metadata.max.age.ms", 300_000),
        request_timeout_ms=number("request.timeout.ms", 30_000),
        socket_connection_setup_timeout_ms=number("socket.connection.setup.timeout.ms", 10_000),
        socket_connection_setup_timeout_max_ms=number(
            "socket.connection.setup.timeout.max.ms", 30_000
        ),
        socket_options=(
            (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            *(option for option in buffers if option[2] >= 0),
        ),
        backoff_ms=max(number("retry.backoff.ms", 100), number("reconnect.backoff.ms", 50)),
        backoff_max_ms=max(
            number("retry.backoff.max.ms", 1_000), number("reconnect.backoff.max.ms", 1_000)
        ),
    )
