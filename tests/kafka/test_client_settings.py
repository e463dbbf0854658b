"""Kafka client settings as text, and what connections make of them."""

import socket

import pytest

from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.client_settings import ClientSettings, client_settings


def made(**client: str) -> ClientSettings:
    """Settings of a cluster A; a name's underscores stand for the dots of Kafka's."""
    named = {key.replace("_", "."): text for key, text in client.items()}
    return client_settings(ClusterSettings("A", ("localhost:9092",), named))


@pytest.mark.parametrize(
    ("key", "text", "name", "value"),
    [
        ("client.id", "sync", "client_id", "sync"),
        ("request.timeout.ms", "1500", "request_timeout_ms", 1_500),
        ("metadata.max.age.ms", " 60000 ", "metadata_max_age_ms", 60_000),
        ("connections.max.idle.ms", "1000", "connections_max_idle_ms", 1_000),
        ("connections.max.idle.ms", "-1", "connections_max_idle_ms", 2**63 - 1),
        ("socket.connection.setup.timeout.ms", "200", "socket_connection_setup_timeout_ms", 200),
        ("client.dns.lookup", "default", "resolves_canonical_names", False),
        (
            "client.dns.lookup",
            "resolve_canonical_bootstrap_servers_only",
            "resolves_canonical_names",
            True,
        ),
    ],
)
def test_text_becomes_the_value_of_the_setting(key, text, name, value):
    settings = client_settings(ClusterSettings("A", ("localhost:9092",), {key: text}))
    assert getattr(settings, name) == value


def test_the_larger_backoff_paces_what_is_asked_again():
    """Over connections that last or over new ones."""
    assert made(retry_backoff_ms="300").backoff_ms == 300
    assert made(reconnect_backoff_ms="700").backoff_ms == 700
    assert made(retry_backoff_max_ms="5000").backoff_max_ms == 5_000
    assert made(reconnect_backoff_max_ms="9000").backoff_max_ms == 9_000


def test_a_broker_is_not_let_wait_as_long_as_its_answer():
    """What it may hold back is less than what the client waits."""
    assert made(request_timeout_ms="1000").broker_wait_ms == 750


def test_buffers_are_sockets_options_and_minus_one_is_the_system_s_own():
    """As in Kafka."""
    options = made(send_buffer_bytes="4096", receive_buffer_bytes="-1").socket_options
    assert (socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096) in options
    assert socket.SO_RCVBUF not in {option for _, option, _ in options}


def test_settings_of_others_are_left_alone():
    """A cluster's settings hold those of producers, consumers and users, too."""
    assert made(acks="all", max_poll_records="5", my_own="x") == made()
