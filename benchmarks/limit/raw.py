"""The limit: requests encoded beforehand, answers counted and dropped, one connection."""

import socket
import struct
from collections.abc import Sequence

from tsoffset.kafka.wire.fetch_codec import FetchFrames
from tsoffset.kafka.wire.list_offsets_codec import ListOffsetsCodec, Lookup
from tsoffset.model import FirstAtTime, ReadFrom

WINDOW = 64
_SIZE = struct.Struct(">i")
_RECEIVE_BYTES = 1 << 20
_CLIENT = "raw"


def fetch_frames(requests: Sequence[ReadFrom]) -> list[bytes]:
    """The frame of a one-partition Fetch, version 11, for each request."""
    frames = FetchFrames(_CLIENT, 0)
    return [
        frames.frame(
            number,
            request.partition.topic,
            request.partition.partition,
            -1,
            request.offset,
            request.max_bytes,
        )
        for number, request in enumerate(requests)
    ]


def lookup_frames(layers: Sequence[Sequence[FirstAtTime]]) -> list[bytes]:
    """The frame of a ListOffsets, version 6, for each layer: many partitions, each at most once."""
    codec = ListOffsetsCodec(_CLIENT, 0, 0, 6)
    return [
        codec.encode(
            {
                layer[0].partition.topic: {
                    each.partition.partition: Lookup(-1, each.timestamp_ms) for each in layer
                }
            },
            number,
        )
        for number, layer in enumerate(layers)
    ]


def connected(bootstrap: str) -> socket.socket:
    """A plain connection to the broker."""
    host, _, port = bootstrap.rpartition(":")
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def exchange(connection: socket.socket, frames: Sequence[bytes], window: int = WINDOW) -> int:
    """Send all frames, `window` of them in flight; returns the bytes of all answers."""
    sent = min(window, len(frames))
    connection.sendall(b"".join(frames[:sent]))
    received, answered, left_over = 0, 0, b""
    while answered < len(frames):
        some = connection.recv(_RECEIVE_BYTES)
        if not some:
            raise ConnectionError("the broker ended the connection")
        received += len(some)
        whole, left_over = _whole_frames(left_over + some)
        answered += whole
        more = frames[sent : sent + whole]
        if more:
            sent += len(more)
            connection.sendall(b"".join(more))
    return received


def _whole_frames(data: bytes) -> tuple[int, bytes]:
    count, position = 0, 0
    while len(data) - position >= _SIZE.size:
        end = position + _SIZE.size + _SIZE.unpack_from(data, position)[0]
        if end > len(data):
            break
        count, position = count + 1, end
    return count, data[position:]
