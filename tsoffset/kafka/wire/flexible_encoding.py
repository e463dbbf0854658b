"""Numbers, counts, strings and tagged fields of the flexible encoding (KIP-482), and the frames of
requests.

Reading a malformed answer raises KafkaProtocolError or one of `MALFORMED`, which a stream takes for
the same.
"""

from collections.abc import Iterable
from struct import Struct, error
from typing import Any

from kafka.errors import KafkaProtocolError

NO_TAGS = b"\0"
NULL = b"\0"
MALFORMED = (IndexError, UnicodeDecodeError, error)
_INT16 = Struct(">h")
# Size, then the header: key, version, correlation id.
_HEAD = Struct(">ihhi")


def make_frame(key: int, version: int, correlation_id: int, parts: Iterable[bytes]) -> bytes:
    """A request's frame: size and header, and the parts from the client id on."""
    body = b"".join(parts)
    return _HEAD.pack(_HEAD.size - 4 + len(body), key, version, correlation_id) + body


def encode_unsigned(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def encoded_count(count: int) -> bytes:
    """The number of a list's items, or of a string's bytes."""
    return encode_unsigned(count + 1)


def encoded_text(text: str) -> bytes:
    raw = text.encode()
    return encoded_count(len(raw)) + raw


def short_text(text: str) -> bytes:
    """The same in the older encoding: every request's header has the client id in this form."""
    raw = text.encode()
    return _INT16.pack(len(raw)) + raw


def read_unsigned(frame: memoryview | bytes, position: int) -> tuple[int, int]:
    """The unsigned varint at `position`, and where it ends."""
    number = shift = 0
    while True:
        byte = frame[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
        if shift > 28:
            raise KafkaProtocolError("a number of more than 32 bits")


def read_count(frame: memoryview | bytes, position: int) -> tuple[int, int]:
    """The number of a list's items, or of a string's bytes, and where they begin. Null, which is
    never allowed here, is a KafkaProtocolError."""
    number = frame[position]
    if number < 0x80:
        position += 1
    else:
        number, position = read_unsigned(frame, position)
    if not number:
        raise KafkaProtocolError("a null where the protocol requires a value")
    return number - 1, position


def read_text(frame: memoryview | bytes, position: int) -> tuple[str, int]:
    """The string at `position`, and where it ends."""
    size, position = read_count(frame, position)
    end = position + size
    check_end(frame, end)
    return str(frame[position:end], "utf-8"), end


def read_rows(
    frame: memoryview | bytes, position: int, layout: Struct
) -> tuple[tuple[tuple[Any, ...], ...], int]:
    """The items of a list, and where it ends. Each has the form of `layout`, which ends with one
    byte for the number of its tagged fields."""
    count, position = read_count(frame, position)
    end = position + count * layout.size
    if end <= len(frame):
        rows = tuple(layout.iter_unpack(frame[position:end]))
        if not any(row[-1] for row in rows):
            return rows, end
    found = []
    for _ in range(count):
        found.append(layout.unpack_from(frame, position))
        position = behind_tags(frame, position + layout.size - 1)
    return tuple(found), position


def behind_tags(frame: memoryview | bytes, position: int) -> int:
    """Where tagged fields end, each with its number and its size. tsoffset requests none, so they
    are skipped."""
    if not frame[position]:
        return position + 1
    number, position = read_unsigned(frame, position)
    for _ in range(number):
        _, position = read_unsigned(frame, position)
        size, position = read_unsigned(frame, position)
        position += size
    check_end(frame, position)
    return position


def check_end(frame: memoryview | bytes, end: int) -> None:
    """Raises KafkaProtocolError if the frame ends before."""
    if end > len(frame):
        raise KafkaProtocolError("an answer that is cut off")
