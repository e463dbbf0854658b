"""From a pair below C towards C: the target's records behind it, one after the other.

The replicator keeps order, so behind the first image of o come the first images of what
follows o. Records that match only source records before C may be passed; the first that
matches only records from C on ends the walk, and what lies between is exact. Where equal
records stand on both sides of C, counting decides: between two pairs with equally many
records, equal one by one, all are pairs (docs/design.md section 1, "Alignment").
"""

from bisect import bisect_left
from collections.abc import Generator
from dataclasses import dataclass, replace
from enum import Enum, auto

from tsoffset.evidence import Answer, Edge, Question
from tsoffset.model import Side
from tsoffset.pairs import Pair, Pairs
from tsoffset.records import Record

# More records than a batch usually holds would be matched for one position.
LONGEST_WALK = 500


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a walk ended: resuming at `target_offset` is safe.

    The first images of source records up to `source_offset` lie before it; with `exact` those
    of all records before C do. `log_end` is true where nothing lies behind it on the target.
    """

    target_offset: int
    source_offset: int
    exact: bool = False
    log_end: bool = False


class _Match(Enum):
    BELOW = auto()
    FROM_COMMIT = auto()
    NONE = auto()
    UNCLEAR = auto()


def walk(pairs: Pairs, pair: Pair, offset: int) -> Generator[Question, Answer, Reached]:
    """Walk from `pair`, a first image of a record before `offset`, as far as it is proven."""
    steps = _Walk(pairs, pair, offset)
    return (yield from steps.walk())


def count(pairs: Pairs, pair: Pair, offset: int) -> Generator[Question, Answer, Reached]:
    """Count only: from `pair` to the next pair behind C, where records stand one for one."""
    steps = _Walk(pairs, pair, offset)
    return (yield from steps.aligned())


class _Walk:
    def __init__(self, pairs: Pairs, pair: Pair, offset: int) -> None:
        self.pairs = pairs
        self.ask = pairs.ask
        self.source = pairs.evidence.source
        self.target = pairs.evidence.target
        self.offset = offset
        self.start = pair
        # Where the source must be known from, for equal records before C to be known.
        self.known_from = max(pair.earliest_equal, self.source.start)
        self.reached = Reached(pair.target_offset + 1, pair.earliest_equal)
        self.highest = pair.source_offset

    def walk(self) -> Generator[Question, Answer, Reached]:
        at = self.reached.target_offset
        unclear = False
        latest_passed_ms = -1
        for _ in range(LONGEST_WALK):
            copy = yield from self.ask.next_data(Side.TARGET, at, scan=True)
            if copy is Edge.LOG_END and at == self.reached.target_offset:
                return replace(self.reached, log_end=True)
            if not isinstance(copy, Record):
                break
            at = copy.offset + 1
            match, original = yield from self._match(copy)
            if match is _Match.FROM_COMMIT:
                if unclear:
                    break
                return Reached(self.reached.target_offset, self.offset - 1, exact=True)
            if match is _Match.BELOW and (copy.timestamp_ms or 0) < latest_passed_ms:
                # Compaction may have taken its first image: then this is one that the
                # replicator repeated after what was passed.
                match = _Match.UNCLEAR
            if match is _Match.BELOW:
                # First images lie in order, and this is one, since it follows the last and
                # no copy was met between: so nothing that was passed on the way is the first
                # image of a record from C on.
                self.reached = Reached(at, max(self.reached.source_offset, original))
                self.highest = max([original, *self.source.equals(self.target.identity(copy))[-1:]])
                unclear = False
                continue
            unclear = unclear or match is _Match.UNCLEAR
            latest_passed_ms = max(latest_passed_ms, copy.timestamp_ms or 0)
        return (yield from self.aligned()) if unclear else self.reached

    def _match(self, copy: Record) -> Generator[Question, Answer, tuple[_Match, int]]:
        """On which side of C the record stands that `copy` is an image of."""
        if self.pairs.evidence.by_header:
            return self._named(copy.source_offset)
        known = yield from self._knows_between()
        # What is read on the way adds to what is equal.
        equals = tuple(self.source.equals(self.target.identity(copy)))
        if not equals:
            # No image of a record before C that the source still has.
            return (_Match.NONE if known else _Match.UNCLEAR), -1
        if equals[-1] <= self.highest:
            repeated = known and equals[-1] <= self.reached.source_offset
            return (_Match.NONE if repeated else _Match.UNCLEAR), -1
        copies = self.target.equals(self.target.identity(copy))
        if copies[bisect_left(copies, self.reached.target_offset)] < copy.offset:
            return _Match.UNCLEAR, -1  # met before, and not understood then
        below = equals[0] < self.offset
        if below and (equals[-1] >= self.offset or equals[0] <= self.highest):
            return _Match.UNCLEAR, -1
        original = self.source.at(equals[-1] if below else equals[0])
        assert original is not None
        if not (yield from self.pairs.twins.unmistakable(original, copy, among=equals)):
            return _Match.UNCLEAR, -1
        if below:
            # Where not all is known, an earlier equal record may be meant.
            return _Match.BELOW, equals[0] if known else -1
        if not known:
            # A record between that is not known could be one before C that is equal, too.
            earliest = yield from self.pairs.twins.earliest_equal(original, copy)
            known = earliest >= self.offset
        return (_Match.FROM_COMMIT if known else _Match.UNCLEAR), -1

    def _knows_between(self) -> Generator[Question, Answer, bool]:
        """Have the source read from the pair to C, if that is not far: so that no record between
        is unknown that may be meant."""
        while (known_to := self.source.covered_to(self.known_from)) < self.offset:
            if self.offset - self.known_from > LONGEST_WALK:
                return False
            if not (yield from self.ask.read(Side.SOURCE, known_to, 65_536, scan=True)):
                return False
        return True

    def _named(self, original: int | None) -> tuple[_Match, int]:
        if original is None or original <= self.highest:
            return _Match.NONE, -1
        return (_Match.BELOW, original) if original < self.offset else (_Match.FROM_COMMIT, -1)

    def aligned(self) -> Generator[Question, Answer, Reached]:
        """Count from the pair to the next unmistakable one behind C."""
        if not self.start.clear:
            return self.reached
        copies: list[Record] = []
        at = self.start.target_offset + 1
        for _ in range(LONGEST_WALK):
            copy = yield from self.ask.next_data(Side.TARGET, at, scan=True)
            if not isinstance(copy, Record):
                return self.reached
            equals = self.source.equals(self.target.identity(copy))
            if len(equals) == 1 and equals[0] >= self.offset:
                original = self.source.at(equals[0])
                assert original is not None
                if (yield from self.pairs.twins.unmistakable(original, copy, among=equals)):
                    return self._counted(copies, original)
            copies.append(copy)
            at = copy.offset + 1
        return self.reached

    def _counted(self, copies: list[Record], upper: Record) -> Reached:
        if self.source.covered_to(self.known_from) <= upper.offset:
            return self.reached
        originals = self.source.known(self.start.source_offset + 1, upper.offset)
        if len(originals) != len(copies) or not all(
            self.pairs.equals.equal(one, other)
            for one, other in zip(originals, copies, strict=True)
        ):
            return self.reached
        last = self.start.target_offset
        for original, copy in zip(originals, copies, strict=True):
            if original.offset < self.offset:
                last = copy.offset
        return Reached(last + 1, self.offset - 1, exact=True)
