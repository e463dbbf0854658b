"""From a pair below C towards C: the target's records behind it, one after the other.

A record right behind the answer that is a copy of a record before C moves the answer behind itself:
nothing unread is passed. Further on, behind records that match nothing, only a copy that is safe by
itself moves it. The first copy of a record from C on ends the walk, and the answer is exact. If
duplicates lie on both sides of C, counting decides: between two pairs with equally many records,
equal one by one, all are pairs (docs/design.md section 1, "Walk and counting").
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from enum import Enum, auto

from tsoffset.model import Side
from tsoffset.records import Record
from tsoffset.rule.duplicates import earliest_equal, in_place, no_later_duplicate
from tsoffset.rule.found import Absent
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.pairs import Pair
from tsoffset.rule.proof import by_frontier, prove_safety, time_tells_apart

# More than a usual batch has; a longer walk costs too much for one offset.
LONGEST_WALK = 500

# The length of each walk once all walks of an offset have passed `MOST_WALKED` records: the last
# walk begins at the pair nearest to C, so a short one can answer.
SHORT_WALK = 100


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a walk ended: resuming at `target_offset` is safe.

    The records that the group has read up to `source_offset` were copied before `target_offset`. If
    `exact`, so were all others that it has read: `pairs`, the last below C and the first from C on,
    show this. `log_end` is true if nothing follows `target_offset` on the target.
    """

    target_offset: int
    source_offset: int
    pairs: tuple[tuple[int, int], ...]
    exact: bool = False
    log_end: bool = False


class _Match(Enum):
    BELOW = auto()
    FROM_COMMIT = auto()
    NONE = auto()
    UNCLEAR = auto()


def walk(inquiry: Inquiry, pair: Pair, offset: int) -> Generator[Question, Answer, Reached]:
    """Walk from `pair`, of a record before `offset`, as far as it is proven."""
    reached = yield from _TargetWalk(inquiry, pair, offset).walk()
    source, target = reached.pairs[0]
    if reached.exact or (source, target) == (pair.source_offset, pair.target_offset):
        return reached
    # The last record walked over may be the copy of an earlier duplicate.
    record, copy = inquiry.evidence.source.at(source), inquiry.evidence.target.at(target)
    assert record is not None
    assert copy is not None
    earliest = yield from earliest_equal(inquiry, record, copy)
    return replace(reached, source_offset=min(reached.source_offset, earliest))


def count(inquiry: Inquiry, pair: Pair, offset: int) -> Generator[Question, Answer, Reached]:
    """Count only: from `pair` to the next pair behind C, if the records match one for one."""
    return (yield from _TargetWalk(inquiry, pair, offset).align())


class _TargetWalk:
    def __init__(self, inquiry: Inquiry, pair: Pair, offset: int) -> None:
        self.inquiry = inquiry
        self.evidence = inquiry.evidence
        self.source = inquiry.evidence.source
        self.target = inquiry.evidence.target
        self.offset = offset
        self.start = pair
        # Duplicates before C are known only if the source is known from here on.
        self.known_from = max(pair.earliest_equal, self.source.start)
        # Whether the source is known up to C: otherwise a record that matches nothing may be one
        # that the group has read. It may also be one that was altered on the way.
        self.all_known = self.names_unread = self.altered = False
        self.reached = Reached(
            pair.target_offset + 1,
            pair.earliest_equal,
            ((pair.source_offset, pair.target_offset),),
        )

    def walk(self) -> Generator[Question, Answer, Reached]:
        at = self.reached.target_offset
        # Whether an unclear record, or a copy of one that the group has read, lies behind the
        # answer.
        unclear = left = False
        for _ in range(max(SHORT_WALK, min(LONGEST_WALK, self.inquiry.walk_left))):
            self.inquiry.walk_left -= 1
            copy = yield from self.inquiry.next_data(Side.TARGET, at, scan=True)
            if copy is Absent.LOG_END and at == self.reached.target_offset:
                return replace(self.reached, log_end=True)
            if not isinstance(copy, Record):
                break
            adjacent, at = at == self.reached.target_offset, copy.offset + 1
            match, original = yield from self._match(copy, adjacent=adjacent)
            if match is _Match.FROM_COMMIT:
                if unclear:
                    break
                exact = self.all_known and not (left or self.names_unread or self.altered)
                last = self.offset - 1 if exact else self.reached.source_offset
                pairs = (self.reached.pairs[-1], (original, copy.offset))
                return replace(self.reached, source_offset=last, pairs=pairs, exact=exact)
            if match is _Match.BELOW:
                if (adjacent and not unclear and self._is_read(copy)) or (
                    yield from self._is_safe(original, copy)
                ):
                    self._move_behind(copy, original)
                    unclear = left = False
                else:
                    left = left or not self._repeats(copy)
            unclear = unclear or match is _Match.UNCLEAR
        return (yield from self.align()) if unclear else self.reached

    def _repeats(self, copy: Record) -> bool:
        """True for a copy of a record that was reached before."""
        return self.evidence.originals(copy)[-1] <= self.reached.source_offset

    def _is_read(self, copy: Record) -> bool:
        """Whether all equal source records lie before C, whatever its header says."""
        return self.source.equals(self.target.identity(copy))[-1] < self.offset

    def _move_behind(self, copy: Record, original: int) -> None:
        last = max(self.reached.source_offset, original)
        pairs = self.reached.pairs
        if original >= self.reached.source_offset:
            pairs = ((original, copy.offset),)
        self.reached = Reached(copy.offset + 1, last, pairs)

    def _is_safe(self, original: int, copy: Record) -> Generator[Question, Answer, bool]:
        """Whether everything after a source record lies behind this copy of it: by a safe pair
        above, or as the lowest copy behind the pair at which the walk began."""
        lowest = self.target.equals(self.target.identity(copy))[0]
        if self._repeats(copy) and lowest != copy.offset:
            return False
        if by_frontier(self.evidence, original, copy.offset) is not None:
            return True
        if self._repeats(copy):
            # An earlier copy should lie before what was reached. A filter that was changed at a
            # restart may have left it out, and this one proves nothing of what follows.
            return False
        record = self.source.at(original)
        assert record is not None
        if original > self.start.source_offset and not any(
            self.start.target_offset < offset < copy.offset
            for offset in self.target.equals(self.target.identity(copy))
        ):
            if self.evidence.failback:
                return True
            if self.evidence.not_compacted:
                earliest = yield from earliest_equal(self.inquiry, record, copy, surely=True)
                if earliest > self.start.source_offset:
                    return True
        return (yield from prove_safety(self.inquiry, record, copy)) is not None

    def _match(
        self, copy: Record, *, adjacent: bool
    ) -> Generator[Question, Answer, tuple[_Match, int]]:
        """On which side of C the original of `copy` lies, and its offset. If the copy is not right
        behind the answer, it has to be in its place, too."""
        yield from self._read_between()
        equals = tuple(self.evidence.originals(copy))
        if not equals:
            # No known original; its header may name an unread record.
            self.names_unread = self.names_unread or self.evidence.names_unread(copy)
            self.altered = self.altered or self.evidence.may_be_of(copy, self.known_from)
            return _Match.NONE, -1
        below = equals[0] < self.offset
        if below and equals[-1] >= self.offset:
            return _Match.UNCLEAR, -1
        original = self.source.at(equals[-1] if below else equals[0])
        assert original is not None
        if not (yield from no_later_duplicate(self.inquiry, original, copy, among=equals)) and (
            (yield from time_tells_apart(self.inquiry, original, copy)) is None
        ):
            return _Match.UNCLEAR, -1
        if not adjacent and (
            len(equals) > 1 or not (yield from in_place(self.inquiry, original, copy))
        ):
            return _Match.UNCLEAR, -1
        if below:
            return _Match.BELOW, equals[0]
        return _Match.FROM_COMMIT, original.offset

    def _read_between(self) -> Generator[Question, Answer, None]:
        """Read the source from the pair to C, if that is near: most duplicates are there."""
        end = min(self.offset, self.source.end)
        while (known_to := self.source.covered_to(self.known_from)) < end:
            self.all_known = False
            if self.offset - self.known_from > LONGEST_WALK:
                return
            if not (yield from self.inquiry.read(Side.SOURCE, known_to, 65_536, shared=True)):
                return
        self.all_known = True

    def align(self) -> Generator[Question, Answer, Reached]:
        """Count from the pair to the next pair behind C that has no duplicate."""
        if not self.start.clear:
            return self.reached
        copies: list[Record] = []
        at = self.start.target_offset + 1
        for _ in range(LONGEST_WALK):
            copy = yield from self.inquiry.next_data(Side.TARGET, at, scan=True)
            if not isinstance(copy, Record):
                return self.reached
            equals = self.evidence.originals(copy)
            if len(equals) == 1 and equals[0] >= self.offset:
                original = self.source.at(equals[0])
                assert original is not None
                if (yield from no_later_duplicate(self.inquiry, original, copy, among=equals)):
                    return self._count(copies, original, copy)
            copies.append(copy)
            at = copy.offset + 1
        return self.reached

    def _count(self, copies: list[Record], upper: Record, upper_copy: Record) -> Reached:
        if self.source.covered_to(self.known_from) <= upper.offset:
            return self.reached
        originals = self.source.known_records(self.start.source_offset + 1, upper.offset)
        if len(originals) != len(copies) or not all(map(self.evidence.equal, originals, copies)):
            return self.reached
        last = self.start.target_offset
        for original, copy in zip(originals, copies, strict=True):
            if original.offset < self.offset:
                last = copy.offset
        pairs = (self.reached.pairs[0], (upper.offset, upper_copy.offset))
        return Reached(last + 1, self.offset - 1, pairs, exact=True)
