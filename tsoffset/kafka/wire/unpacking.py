"""What batches hold packed: gzip, snappy, lz4 and zstd, unpacked as far as they may go.

A broker limits what a batch takes as it lies in the log (`message.max.bytes`), and not what that
unpacks to: 1.5 kB of zstd may be 50 MB. Producers in use limit it by themselves, most of them to
the size of a request before it is packed. Java's goes on by the ratio that it sees, so that
content of one repeated byte packs a thousandfold; what applications write seldom packs
twentyfold. So the limit is a hundredfold, 32 MiB for a batch however small, and 256 MiB for one
however large: twice and a half of what a whole response may bring. A batch beyond it counts as
damaged, and nothing is unpacked past the limit to find out.
"""

import struct
from collections.abc import Callable, Iterator
from gzip import GzipFile
from io import BytesIO
from typing import Any

import lz4.frame
import snappy
import zstandard
from kafka.errors import CorruptRecordError, UnsupportedCodecError

_RATIO = 100
_AT_LEAST = 32 << 20
_AT_MOST = 256 << 20
_PART = 1 << 17

_XERIAL = b"\x82SNAPPY\0"
_XERIAL_BLOCKS_FROM = 16
_SIZE = struct.Struct(">i")

LZ4 = 3


class _TooLarge(Exception):
    """There is more than the limit."""


def unpacked(packed: bytes, compression: int, offset: int) -> bytes:
    """The content of the batch at `offset`, which is packed as the number `compression` says.

    Raises UnsupportedCodecError for a number that is not known, and CorruptRecordError where it
    cannot be unpacked, or to more than the limit.
    """
    if compression not in _CODECS:
        raise UnsupportedCodecError(f"compression {compression} at offset {offset}")
    name, parts_of = _CODECS[compression]
    limit = min(_AT_MOST, max(_AT_LEAST, _RATIO * len(packed)))
    # Its value is the bytes themselves, where parts joined would be there twice for a moment.
    found = BytesIO()
    try:
        for part in parts_of(packed, limit):
            if found.tell() + len(part) > limit:
                raise _TooLarge
            found.write(part)
    except _TooLarge:
        raise CorruptRecordError(
            f"the {name} content of the batch at offset {offset} unpacks to more than {limit} bytes"
        ) from None
    except Exception as error:  # each codec has exceptions of its own
        raise CorruptRecordError(
            f"the {name} content of the batch at offset {offset} cannot be unpacked"
        ) from error
    return found.getvalue()


def lz4_of_format_0(packed: bytes) -> bytes:
    """The same with the checksum of its header as others compute it: producers of that time took
    the wrong bytes for it, and Kafka does not look at it. Raises ValueError if it is no header."""
    at = 14 if packed[4] & 0x08 else 6  # behind the content's size, if that is there
    for checksum in range(256):
        mended = packed[:at] + bytes((checksum,)) + packed[at + 1 :]
        try:
            lz4.frame.get_frame_info(mended)
        except RuntimeError:
            continue
        return mended
    raise ValueError("no header of lz4")


def _gzip(packed: bytes, _: int) -> Iterator[bytes]:
    return _read(GzipFile(fileobj=BytesIO(packed)))


def _lz4(packed: bytes, _: int) -> Iterator[bytes]:
    return _read(lz4.frame.LZ4FrameFile(BytesIO(packed)))


def _zstd(packed: bytes, _: int) -> Iterator[bytes]:
    return _read(zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True))


def _read(reader: Any) -> Iterator[bytes]:
    while part := reader.read(_PART):
        yield part


def _snappy(packed: bytes, limit: int) -> Iterator[bytes]:
    """A block says first what it unpacks to, and that much is set aside for it at once."""
    for block in _blocks(packed):
        size = shift = 0
        for byte in block[:5]:
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if size > limit:
            raise _TooLarge
        yield snappy.decompress(block)


def _blocks(packed: bytes) -> Iterator[bytes]:
    """One, or those of the stream that Java's library makes of many."""
    if not packed.startswith(_XERIAL):
        yield packed
        return
    position = _XERIAL_BLOCKS_FROM
    while position < len(packed):
        (size,) = _SIZE.unpack_from(packed, position)
        position += _SIZE.size
        if not 0 < size <= len(packed) - position:
            raise ValueError(f"a block of {size} bytes")
        yield packed[position : position + size]
        position += size


_CODECS: dict[int, tuple[str, Callable[[bytes, int], Iterator[bytes]]]] = {
    1: ("gzip", _gzip),
    2: ("snappy", _snappy),
    LZ4: ("lz4", _lz4),
    4: ("zstd", _zstd),
}
