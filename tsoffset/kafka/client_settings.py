"""Kafka client settings, from text to the values that connections use."""

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tsoffset.errors import ConfigurationError, ConfigurationProblem
from tsoffset.flow.settings import ClusterSettings

# The most requests in flight on one connection.
WINDOW = 512

# The largest time in Kafka's settings.
_FOR_EVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Settings of connections. All times are in milliseconds.

    `backoff_ms` and `backoff_max_ms` are the waits between retries, on open connections and new
    ones: the larger of Kafka's two settings.
    """

    client_id: str = field(repr=False)
    client_dns_lookup: str
    connections_max_idle_ms: int
    metadata_max_age_ms: int
    request_timeout_ms: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    socket_options: tuple[tuple[int, int, int], ...]
    backoff_ms: int
    backoff_max_ms: int

    @property
    def resolves_canonical_names(self) -> bool:
        """Whether a bootstrap address means all canonical names of its host."""
        return self.client_dns_lookup == _CANONICAL

    @property
    def broker_wait_ms(self) -> int:
        """How long a broker may hold a request back, so that its answer arrives in time."""
        return self.request_timeout_ms * 3 // 4


def _milliseconds(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def _idle(text: str) -> int:
    """With 0, Kafka's own clients close a connection at once, even while it waits for an answer."""
    number = int(text)
    if number < -1 or number == 0:
        raise ValueError(text)
    return _FOR_EVER if number == -1 else number


def _dns_lookup(text: str) -> str:
    if text == "default":
        return "use_all_dns_ips"
    if text not in ("use_all_dns_ips", _CANONICAL):
        raise ValueError(text)
    return text


_CANONICAL = "resolve_canonical_bootstrap_servers_only"
_BUFFERS = {"send.buffer.bytes": socket.SO_SNDBUF, "receive.buffer.bytes": socket.SO_RCVBUF}

# Kafka's name -> how the text is read, what is allowed.
_KEYS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "client.id": (str, "must be text"),
    **dict.fromkeys(
        (
            "request.timeout.ms",
            "metadata.max.age.ms",
            "reconnect.backoff.ms",
            "reconnect.backoff.max.ms",
            "retry.backoff.ms",
            "retry.backoff.max.ms",
            "socket.connection.setup.timeout.ms",
            "socket.connection.setup.timeout.max.ms",
        ),
        (_milliseconds, "must be a whole number of milliseconds"),
    ),
    "connections.max.idle.ms": (
        _idle,
        "must be a whole number of milliseconds above 0, or -1 to keep connections for ever",
    ),
    "client.dns.lookup": (
        _dns_lookup,
        "must be use_all_dns_ips or resolve_canonical_bootstrap_servers_only",
    ),
    **dict.fromkeys(_BUFFERS, (int, "must be a whole number of bytes, or -1")),
}

_DEFAULTS: Mapping[str, Any] = {
    "client.id": "tsoffset",
    "client.dns.lookup": "use_all_dns_ips",
    "request.timeout.ms": 30_000,
    "metadata.max.age.ms": 300_000,
    "connections.max.idle.ms": 540_000,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1_000,
    "retry.backoff.ms": 100,
    "retry.backoff.max.ms": 1_000,
    "socket.connection.setup.timeout.ms": 10_000,
    "socket.connection.setup.timeout.max.ms": 30_000,
    **dict.fromkeys(_BUFFERS, -1),
}


def client_settings(settings: ClusterSettings) -> ClientSettings:
    """The values of `settings.client`; settings that connections do not use are ignored.

    Raises `ConfigurationError` for a value that cannot be used.
    """
    problems = []
    values = dict(_DEFAULTS)
    for key, text in settings.client.items():
        name = f"{settings.alias}.{key}"
        if key in _KEYS:
            read, allowed = _KEYS[key]
            try:
                values[key] = read(text.strip())
            except ValueError:
                problems.append(ConfigurationProblem(name, text, allowed))
    if problems:
        raise ConfigurationError(tuple(problems))
    sizes = {option: values.pop(key) for key, option in _BUFFERS.items()}
    named = {key.replace(".", "_"): value for key, value in values.items()}
    return ClientSettings(
        backoff_ms=max(named.pop("retry_backoff_ms"), named.pop("reconnect_backoff_ms")),
        backoff_max_ms=max(
            named.pop("retry_backoff_max_ms"), named.pop("reconnect_backoff_max_ms")
        ),
        socket_options=(
            (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            *((socket.SOL_SOCKET, option, size) for option, size in sizes.items() if size >= 0),
        ),
        **named,
    )
