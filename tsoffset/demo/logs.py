"""Records as the demo tells them apart: by their values, of which each is there once."""

from dataclasses import dataclass

Place = tuple[str, int]
"""A topic's name on the source, and a partition."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A record that lies in a log, or that a consumer got."""

    offset: int
    key: bytes | None
    value: bytes
