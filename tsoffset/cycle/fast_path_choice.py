"""Which positions of a partition the fast path answers: those between two proven pairs of equal
distance (target offset minus source offset)."""

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tsoffset.model import Side
from tsoffset.records import Numbers
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.found import Unanswered
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.mirror_restart import first_copied_behind
from tsoffset.rule.pairs import Pair
from tsoffset.rule.proof import passed_between

# If more positions than `_MANY_OUTSIDE` are outside all walks (no two pairs of equal distance lie
# around them), three of them are probed by translators first, since the new pairs may enclose the
# others. That is done `_PROBES` times at most.
_MANY_OUTSIDE, _PROBES = 16, 3

# The fast path decodes whole batches. Batches of up to `_SIDE_BY_SIDE` records are decoded side by
# side, at a third of the cost. With larger batches, translators cost less, since they decode only
# what they need, unless there is a position for every `_RECORDS_A_POSITION` records.
_SIDE_BY_SIDE, _RECORDS_A_POSITION = 1_500, 100


@dataclass(frozen=True)
class FastPathOffsets:
    """Positions, ascending, each between two proven pairs of one distance (target offset minus
    source offset), and these distances."""

    offsets: Numbers
    distances: Numbers

    @cached_property
    def looked_at(self) -> Mapping[Side, Numbers]:
        """The offsets that the fast path reads on each side, ascending: the positions, their
        predicted copies, and the neighbors of both."""
        originals, images = self.offsets, self.offsets + self.distances
        return {Side.SOURCE: _with_neighbors(originals), Side.TARGET: _with_neighbors(images)}


def _with_neighbors(offsets: Numbers) -> Numbers:
    found: Numbers = np.unique(offsets[:, np.newaxis] + np.array([-1, 0, 1]))
    return found


class _Walk(NamedTuple):
    """The highest of some pairs of equal distance. `is_read_once` is true if no record below it has
    its first copy above it, so that translations between these pairs re-read nothing."""

    highest: Pair
    is_read_once: bool


class FastPathChoice:
    """The choice for one partition. Neighboring pairs of equal distance are a *walk*."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        # Only content identifies copies: no header that would have to be trusted, and no failback.
        self._is_plain = evidence.settings.offset_header is None and not evidence.failback
        self._walks_asked_of: dict[int, _Walk] = {}  # by distance
        self._probes_left = _PROBES
        self._last: tuple[Mapping[int, int], FastPathOffsets] | None = None

    def walks(self, offsets: Sequence[int]) -> list[tuple[Pair, Pair]]:
        """The lowest and the highest pair of each walk that has some of these offsets, ascending,
        and whose copies are all safe."""
        walks = self._evidence.pairs.walks() if self._is_plain else []
        return [
            (lowest, highest)
            for lowest, highest in walks
            if _offsets_between(offsets, lowest, highest)
            and passed_between(self._evidence, lowest, highest)
        ]

    def new_walks(self, walks: Sequence[tuple[Pair, Pair]]) -> Iterator[Pair]:
        """The highest pairs of these walks, as far as `rereads` is not known of them yet."""
        for _, highest in walks:
            walk = self._walks_asked_of.get(highest.distance)
            if walk is None or walk.highest.source_offset < highest.source_offset:
                yield highest

    def rereads(self, pair: Pair) -> Generator[Question, Answer, int | None]:
        """How many records before a pair were copied behind it for the first time; None if that
        cannot be seen. If there are none, lower pairs of the same distance have none either."""
        try:
            inquiry = Inquiry(self._evidence)
            return (yield from first_copied_behind(inquiry, pair.source_offset, pair))
        except Unanswered:
            return None

    def note(self, highest: Pair, rereads: int | None) -> None:
        """Keep the result of `rereads`."""
        self._walks_asked_of[highest.distance] = _Walk(highest, rereads == 0)

    def distances(
        self, offsets: Sequence[int], walks: Sequence[tuple[Pair, Pair]]
    ) -> dict[int, int]:
        """The distance of the walk that each offset lies within. Offsets outside walks are missing,
        and those of walks in which records are re-read."""
        found: dict[int, int] = {}
        for lowest, highest in walks:
            walk = self._walks_asked_of.get(highest.distance)
            if walk is None or walk.is_read_once:
                found |= dict.fromkeys(_offsets_between(offsets, lowest, highest), highest.distance)
        return found

    def predicted(self, offsets: Sequence[int]) -> dict[int, int]:
        """The distance of each offset that an earlier cycle's pairs predict; empty unless the two
        outermost pairs agree."""
        predictions = self._evidence.predictions if self._is_plain else ()
        distances = {target - source for source, target in (*predictions[:1], *predictions[-1:])}
        return dict.fromkeys(offsets, distances.pop()) if len(distances) == 1 else {}

    def at(self, distances: Mapping[int, int]) -> FastPathOffsets:
        """The positions with their distances: the same object as long as these are equal."""
        if self._last is None or self._last[0] != distances:
            columns = np.array([[*distances], [*distances.values()]], np.int64)
            self._last = distances, FastPathOffsets(*columns)
        return self._last[1]

    def probes(self, outside: Sequence[int]) -> set[int]:
        """Those of the positions outside all walks that translators answer first; none if there are
        few. A mirror that was restarted has a distance for each of its walks."""
        if not self._is_plain or len(outside) <= _MANY_OUTSIDE or not self._probes_left:
            return set()
        self._probes_left -= 1
        return {outside[len(outside) * part // 4] for part in (1, 2, 3)}


def _offsets_between(offsets: Sequence[int], lowest: Pair, highest: Pair) -> Sequence[int]:
    """Those of the offsets, ascending, that lie between the records of two pairs."""
    first = bisect_right(offsets, lowest.source_offset)
    return offsets[first : bisect_left(offsets, highest.source_offset)]


def fast_path_pays(offsets: Sequence[int], batch: int) -> bool:
    """Whether these offsets, ascending, cost less on the fast path than by translators, if batches
    have about `batch` offsets."""
    if not offsets:
        return False
    span = offsets[-1] - offsets[0] + batch
    return batch <= _SIDE_BY_SIDE or span <= len(offsets) * _RECORDS_A_POSITION
