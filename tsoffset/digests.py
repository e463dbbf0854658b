"""Digests of content: all that is kept of keys, values and headers once they are read.

Two digests are equal exactly if the content is (except for a chance of 2**-64 among 2**32 records).
So records of two clusters can be compared without keeping their content.
"""

from collections.abc import Iterable
from hashlib import blake2b

DIGEST_BYTES = 16


def _digest_of(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST_BYTES).digest()


def content_digest(content: bytes | None) -> bytes | None:
    """The digest of a key or value; None for null, which differs from empty."""
    return None if content is None else _digest_of(content)


def header_digest(name: str, value: bytes | None) -> bytes:
    """One digest for a header's name and value together; null and empty values differ."""
    encoded = name.encode()
    marker = b"\0" if value is None else b"\1"
    # The length comes first, so that no other name and value give the same bytes.
    return _digest_of(len(encoded).to_bytes(4, "big") + encoded + marker + (value or b""))


def header_digests(headers: Iterable[tuple[str, bytes | None]]) -> frozenset[bytes]:
    """The digests of a record's headers; their order and repetition do not count."""
    return frozenset(header_digest(name, value) for name, value in headers)
