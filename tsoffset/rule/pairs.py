"""Safe record pairs, and those that are known of a partition."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from tsoffset.model import Safety


@dataclass(frozen=True, slots=True)
class Pair:
    """A safe record pair: the target record is a copy of the source record, and everything that
    follows the source record lies behind the target record, as `safety` shows.

    `earliest_equal` is the lowest source offset that the copy may be of instead: it is below
    `source_offset` if an earlier duplicate exists. That costs re-reads, never safety.
    """

    source_offset: int
    target_offset: int
    earliest_equal: int
    safety: Safety | None = field(default=None, compare=False)

    @property
    def distance(self) -> int:
        """Target offset minus source offset."""
        return self.target_offset - self.source_offset

    @property
    def clear(self) -> bool:
        """True if it is the copy of no other source record."""
        return self.earliest_equal == self.source_offset


class KnownPairs:
    """Proven and clear pairs of a partition in the order of their source offsets."""

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._pairs: list[Pair] = []

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._pairs)

    def add(self, pair: Pair) -> None:
        """Add a pair if it is clear and the first of its record."""
        at = bisect_left(self._offsets, pair.source_offset)
        if pair.clear and self._offsets[at : at + 1] != [pair.source_offset]:
            self._offsets.insert(at, pair.source_offset)
            self._pairs.insert(at, pair)

    def at(self, source_offset: int) -> Pair | None:
        at = bisect_left(self._offsets, source_offset)
        if at < len(self._pairs) and self._offsets[at] == source_offset:
            return self._pairs[at]
        return None

    def nearest_below(self, source_offset: int) -> Pair | None:
        at = bisect_left(self._offsets, source_offset)
        return self._pairs[at - 1] if at > 0 else None

    def nearest_above(self, source_offset: int) -> Pair | None:
        at = bisect_right(self._offsets, source_offset)
        return self._pairs[at] if at < len(self._pairs) else None

    def walks(self) -> list[tuple[Pair, Pair]]:
        """The lowest and the highest of neighboring pairs of equal distance, for each run of two or
        more."""
        runs = (list(run) for _, run in groupby(self._pairs, lambda pair: pair.distance))
        return [(run[0], run[-1]) for run in runs if len(run) > 1]
