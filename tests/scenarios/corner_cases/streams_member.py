"""A member of a streams group (KIP-1071), reduced to what makes such a group: its heartbeats.

There is no client for it in this project: kafka-python has none, and the one of Kafka needs an
application in Java. So its two requests, StreamsGroupHeartbeat version 0 to join and to leave,
are written here field by field.
"""

import socket
import struct
import uuid

_API_KEY, _VERSION = 88, 0
_JOIN, _LEAVE = 0, -1
_TIMEOUT_SECONDS = 30
_NULL, _EMPTY, _NO_TAGS, _ABSENT = b"\0", b"\1", b"\0", b"\xff"


def streams_group(bootstrap: str, group: str, topic: str) -> None:
    """Make an idle streams group that reads `topic`: one member joins and leaves again."""
    host, _, port = bootstrap.rpartition(":")
    member = str(uuid.uuid4())
    with socket.create_connection((host, int(port)), _TIMEOUT_SECONDS) as connection:
        _ask(connection, _heartbeat(group, member, _JOIN, _topology(topic), tasks=_EMPTY))
        _ask(connection, _heartbeat(group, member, _LEAVE, _ABSENT, tasks=_NULL))


def _heartbeat(group: str, member: str, epoch: int, topology: bytes, *, tasks: bytes) -> bytes:
    joins = epoch == _JOIN
    return b"".join(
        (
            _text(group),
            _text(member),
            # The epoch of the member, and of what it knows of others' endpoints.
            struct.pack(">ii", epoch, 0),
            # Neither an instance id nor a rack.
            *(_NULL, _NULL),
            struct.pack(">i", 60_000 if joins else -1),
            topology,
            # Active, standby and warm-up tasks.
            *(tasks, tasks, tasks),
            _text("process") if joins else _NULL,
            # No endpoint; tags of the client; offsets and end offsets of tasks.
            *(_ABSENT, tasks, _NULL, _NULL),
            # Not to be shut down.
            b"\0",
            _NO_TAGS,
        )
    )


def _topology(topic: str) -> bytes:
    """One part that reads the topic; no patterns, changelogs, repartitions or copartitions."""
    part = b"".join((_text("0"), b"\2", _text(topic), *[_EMPTY] * 5, _NO_TAGS))
    return b"".join((b"\1", struct.pack(">i", 0), b"\2", part, _NO_TAGS))


def _text(text: str) -> bytes:
    encoded = text.encode()
    assert len(encoded) < 127
    return bytes([len(encoded) + 1]) + encoded


def _ask(connection: socket.socket, body: bytes) -> None:
    header = struct.pack(">hhih", _API_KEY, _VERSION, 1, 4) + b"test" + _NO_TAGS
    connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
    (size,) = struct.unpack(">i", _receive(connection, 4))
    # Correlation id, tags, how long to wait, error.
    (_, _, _, error) = struct.unpack_from(">ibih", _receive(connection, size))
    assert error == 0, f"StreamsGroupHeartbeat: error {error}"


def _receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        some = connection.recv(size - len(received))
        assert some, "the broker closed the connection"
        received += some
    return received
