"""Whether copies seen on the target contradict each other: a repeat that was not finished.

A record has its own copy behind those of all earlier ones. So where a later source record is
known to have copies, and all that were seen lie below an image, either the replicator has begun
to repeat a stretch, or the record's own copy was not seen yet.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from tsoffset.log_view import Key, LogView

# Records of one key that lie further apart than this are told apart at once.
NEAR = 1_000


class Copies:
    """The highest copy seen of each source record.

    Of equal source records only the lowest is taken: what is seen may be its copy alone. What
    became known is taken in when somebody asks, once for all that came since. Records of one
    key that lie close together are taken together, the last original with the first copy, and
    told apart by what they hold only where that may be a contradiction.
    """

    def __init__(self, source: LogView, target: LogView) -> None:
        self._source = source
        self._target = target
        self._news: dict[Key, None] = {}
        self._highest: dict[int, int] = {}
        self._told_apart: set[int] = set()
        self._all = _Lowest({})
        self._of_key: dict[Key, _Lowest] = {}

    def note(self, keys: Sequence[Key]) -> None:
        """Take notice of the keys of records that became known on either side."""
        self._news.update(dict.fromkeys(keys))

    def below(self, source_offset: int, target_offset: int) -> int | None:
        """A later source record that is known to have copies, and all seen lie below; or None."""
        if self._news:
            self._take_in()
        for offset in self._all.below(source_offset, target_offset):
            if offset in self._told_apart or not self._source.by_time:
                return offset
            record = self._source.at(offset)
            assert record is not None
            key = record.timestamp_ms
            if key not in self._of_key:
                self._of_key[key] = _Lowest(self._copies_of(key))
            found = next(self._of_key[key].below(source_offset, target_offset), None)
            if found is not None:
                return found
        return None

    def _take_in(self) -> None:
        originals, copies = self._source.by_key, self._target.by_key
        shared = self._news.keys() & copies.keys() & originals.keys()
        for key in shared:
            original, copy = originals[key], copies[key]
            if isinstance(original, int) and isinstance(copy, int):
                self._highest[original] = copy
            else:
                self._take_in_several(key)
        for key in self._of_key.keys() & shared:
            del self._of_key[key]
        if shared:
            self._all = _Lowest(self._highest)
        self._news = {}

    def _take_in_several(self, key: Key) -> None:
        originals, copies = self._source.sharing(key), self._target.sharing(key)
        far = originals[-1] - originals[0] > NEAR or copies[-1] - copies[0] > NEAR
        if not self._source.by_time:
            found: Mapping[int, int] = {originals[0]: copies[-1]}
        elif far:
            found = self._copies_of(key)
        else:
            found = {originals[-1]: copies[0]}
        for offset in originals:
            self._highest.pop(offset, None)
            self._told_apart.discard(offset)
        self._highest.update(found)
        if far:
            self._told_apart.update(found)

    def _copies_of(self, key: Key) -> Mapping[int, int]:
        """The highest copies of the records of one key, of equal ones for the lowest."""
        found = {}
        for identity in self._source.identities(key):
            copies = self._target.equals(identity)
            if copies:
                found[self._source.equals(identity)[0]] = copies[-1]
        return found


class _Lowest:
    """Source offsets with a target offset each, and from each on the lowest of these."""

    def __init__(self, highest: Mapping[int, int]) -> None:
        self._offsets = sorted(highest)
        self._copies = [highest[offset] for offset in self._offsets]
        self._lowest_after = list(accumulate(reversed(self._copies), min))
        self._lowest_after.reverse()

    def below(self, source_offset: int, target_offset: int) -> Iterator[int]:
        """Later source offsets whose target offset lies below one, ascending."""
        for at in range(bisect_right(self._offsets, source_offset), len(self._offsets)):
            if self._lowest_after[at] >= target_offset:
                return
            if self._copies[at] < target_offset:
                yield self._offsets[at]
