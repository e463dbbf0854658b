"""Decompression of batches (gzip, snappy, lz4, zstd) up to a limit.

A broker limits the compressed size of a batch (`message.max.bytes`), not what it decompresses to:
1.5 kB of zstd may be 50 MB. Most producers limit the uncompressed size to that of a request. The
Java producer limits the compressed size, estimated from earlier batches, so content of one repeated
byte shrinks a thousandfold; what applications write seldom shrinks twentyfold. So the limit is a
hundredfold, at least 32 MiB and at most 256 MiB, two and a half times the largest response. A batch
beyond it counts as damaged, and decompression stops at the limit.
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
    pass


def unpack(packed: bytes, compression: int, offset: int) -> bytes:
    """The content of the batch at `offset`, compressed by the codec with the number `compression`.

    Raises UnsupportedCodecError for an unknown number, and CorruptRecordError if it cannot be
    decompressed, or only to more than the limit.
    """
    if compression not in _CODECS:
        raise UnsupportedCodecError(f"compression {compression} at offset {offset}")
    name, parts_of = _CODECS[compression]
    limit = min(_AT_MOST, max(_AT_LEAST, _RATIO * len(packed)))
    # Its value is the bytes themselves; joined parts would be in memory twice for a moment.
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
    """The same with the header checksum of the standard. In format 0 Kafka computes it over the
    wrong bytes, also in its later versions, and does not check it. Raises ValueError if it is no
    header."""
    at = 14 if packed[4] & 0x08 else 6  # behind the content's size, if it is present
    for checksum in range(256):
        repaired = packed[:at] + bytes((checksum,)) + packed[at + 1 :]
        try:
            lz4.frame.get_frame_info(repaired)
        except RuntimeError:
            continue
        return repaired
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
    """A block states its decompressed size first, and that much memory is allocated for it."""
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
    """One block, or those of the stream that Java's library writes."""
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
