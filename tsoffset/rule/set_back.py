"""A mirror that was set back to before where it first began: what pairs do not tell of.

    source   a b c d e f          the mirror began at c, was set back to a, and goes on
    target   c d e [a b c d e] f
             ^ C=3: this d answers, and a and b, which the group has read, come behind it

Copies that a replicator makes by repeating are no re-reads (the price of a restart), but these
are the first that there are. Safety does not rest on any of this.
"""

from collections.abc import Generator

from tsoffset.model import Side
from tsoffset.records import Record
from tsoffset.rule.evidence import Evidence, Pair
from tsoffset.rule.frontier import find_frontier, first_copy
from tsoffset.rule.inquiry import Answer, Edge, Inquiry, Question

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# How often distances are followed to a record.
_LOOKS = 6

# As many offsets before the first record on both sides are no coincidence from here on.
_MANY = 5

Counting = Generator[Question, Answer, int]


def first_copied_behind(inquiry: Inquiry, offset: int, pair: Pair) -> Counting:
    """How many records before a committed offset were copied for the first time behind a pair, or
    will be. None where as many offsets lie before the pair on the target as on the source, or
    where the mirror keeps offsets."""
    evidence = inquiry.evidence
    source, target = evidence.source, evidence.target
    if (
        evidence.failback
        or evidence.keeps_offsets
        or (target.start == 0 and pair.target_offset >= pair.source_offset - source.start)
    ):
        return 0
    copy = yield from first_copy(inquiry)
    if copy is Edge.UNKNOWN:
        return evidence.most_data_between(source.start, offset)
    if not isinstance(copy, Record) or evidence.originals(copy)[0] > pair.source_offset:
        return 0
    if not (rereads := _data_before(evidence, offset, copy)):
        return 0
    distance = yield from _set_back_by(inquiry, copy)
    if distance is None or pair.target_offset - pair.source_offset >= distance:
        return 0
    return rereads


def first_copied_after(inquiry: Inquiry, offset: int, copy: Record) -> Counting:
    """How many records before a committed offset lie behind the first copy on the target, though
    before what that is a copy of."""
    set_back = (yield from _set_back_by(inquiry, copy)) is not None
    return _data_before(inquiry.evidence, offset, copy) if set_back else 0


def still_to_come(inquiry: Inquiry, offset: int) -> Counting:
    """How many of these a mirror that was set back has yet to copy."""
    frontier = yield from find_frontier(inquiry)
    last, reached = frontier.last, frontier.reached
    if last is None or reached is None or last[0] >= reached.source_offset:
        return 0
    copy = yield from first_copy(inquiry)
    if not isinstance(copy, Record) or (yield from _set_back_by(inquiry, copy)) is None:
        return 0
    first = inquiry.evidence.originals(copy)[0]
    return inquiry.evidence.most_data_between(last[0] + 1, min(first, offset))


def _data_before(evidence: Evidence, offset: int, copy: Record) -> int:
    first = evidence.originals(copy)[0]
    return evidence.most_data_between(evidence.source.start, min(first, offset))


def _set_back_by(inquiry: Inquiry, copy: Record) -> Generator[Question, Answer, int | None]:
    """By how much target offsets exceed source offsets where the mirror was set back to before
    what its first record is a copy of: as its last record tells, or the record before the
    first. None where it is not seen to have been."""
    evidence = inquiry.evidence
    last = (yield from find_frontier(inquiry)).last
    if last is None:
        return None
    first = evidence.originals(copy)[0]
    lost = first - evidence.source.start
    if lost >= _MANY and copy.offset - evidence.target.start == lost:
        return None  # compaction took what was copied there
    if last[0] < first:
        return last[1] - last[0]
    return (yield from _found_behind(inquiry, copy, first, last))


def _found_behind(
    inquiry: Inquiry, copy: Record, first: int, last: tuple[int, int]
) -> Generator[Question, Answer, int | None]:
    """The distance of a source record before `first` that is seen behind the target's first
    copy: where the last one's distance has it, else in the middle between the two."""
    evidence = inquiry.evidence
    before = yield from inquiry.previous_data(SOURCE, first, shared=True)
    low, high = copy.offset, last[1]
    at = first - 1 + last[1] - last[0]
    for _ in range(_LOOKS):
        if not isinstance(before, Record) or not low < at < high:
            return None
        found = yield from inquiry.next_data(TARGET, at, shared=True)
        if copies := evidence.copies(before):
            return copies[0] - before.offset
        if not isinstance(found, Record):
            return None
        yield from inquiry.original_of(found)
        original = min(evidence.originals(found), default=first)
        if original < first:
            return found.offset - original
        if found.offset - original > copy.offset - first:
            high = at
        else:
            low = found.offset
        at = (low + high) // 2
    return None
