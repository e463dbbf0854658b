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
from tsoffset.rule.evidence import Evidence, Last, Pair
from tsoffset.rule.frontier import last_copy
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.log_view import Absent, Unknown

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# How many of the target's first records are compared with the source, until one is on both.
FIRST = 8

# How often distances are followed to a record.
_LOOKS = 6

Counting = Generator[Question, Answer, int]
Looking = Generator[Question, Answer, int | Unknown | None]


def first_copied_behind(inquiry: Inquiry, offset: int, pair: Pair) -> Counting:
    """How many records before a committed offset were copied for the first time behind a pair, or
    will be, at most. None where the mirror has copied all that the source has left in order."""
    evidence = inquiry.evidence
    source = evidence.source
    if evidence.failback or evidence.keeps_offsets:
        return 0
    if evidence.first_from is not None and not evidence.most_data_between(
        source.start, evidence.first_from
    ):
        return 0
    copy = yield from first_copy(inquiry)
    if copy is Unknown.NOT_READ:
        return evidence.most_data_between(source.start, offset)
    if not isinstance(copy, Record) or evidence.originals(copy)[0] > pair.source_offset:
        return 0
    if not (rereads := _data_before(evidence, offset, copy)):
        return 0
    distance = yield from _set_back_by(inquiry, copy)
    if isinstance(distance, Unknown):
        return rereads
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
    evidence = inquiry.evidence
    if evidence.failback:
        return 0
    last = yield from last_copy(inquiry)
    if not isinstance(last, Last) or not evidence.most_data_between(last.lowest + 1, offset):
        return 0
    copy = yield from first_copy(inquiry)
    if not isinstance(copy, Record) or (yield from _set_back_by(inquiry, copy)) is None:
        return 0
    first = evidence.originals(copy)[0]
    return evidence.most_data_between(last.lowest + 1, min(first, offset))


def first_copy(
    inquiry: Inquiry,
) -> Generator[Question, Answer, Record | Absent | Unknown]:
    """The first data record on the target that the source is seen to have, too, of the first
    few."""
    evidence = inquiry.evidence
    at = evidence.target.start
    for _ in range(FIRST):
        copy = yield from inquiry.next_data(TARGET, at, shared=True)
        if not isinstance(copy, Record):
            return copy
        original = yield from inquiry.original_of(copy)
        if evidence.originals(copy):
            _note_beginning(evidence, copy)
            return copy
        if original is Unknown.NOT_READ:
            return original
        at = copy.offset + 1  # of a record that the source has lost, or of others
    return Unknown.NOT_FOUND


def _note_beginning(evidence: Evidence, copy: Record) -> None:
    """What follows the first record left was copied in order after it: it holds for good."""
    begun = evidence.originals(copy)[-1]
    if evidence.first_from is None or begun < evidence.first_from:
        evidence.first_from = begun


def _data_before(evidence: Evidence, offset: int, copy: Record) -> int:
    first = evidence.originals(copy)[0]
    return evidence.most_data_between(evidence.source.start, min(first, offset))


def _set_back_by(inquiry: Inquiry, copy: Record) -> Looking:
    """By how much target offsets exceed source offsets where the mirror was set back to before
    what its first record is a copy of: as its last record tells, or the record before the
    first. None where it is not seen to have been; Unknown where that could not be looked at."""
    evidence = inquiry.evidence
    last = yield from last_copy(inquiry)
    if last is Unknown.NOT_READ:
        return last
    if not isinstance(last, Last):
        return None
    first = evidence.originals(copy)[0]
    if last.lowest < first:
        return last.target_offset - last.lowest
    return (yield from _found_behind(inquiry, copy, first, last))


def _found_behind(inquiry: Inquiry, copy: Record, first: int, last: Last) -> Looking:
    """The distance of a source record before `first` that is seen behind the target's first
    copy: where the last one's distance has it, else in the middle between the two."""
    evidence = inquiry.evidence
    before = yield from inquiry.previous_data(SOURCE, first, shared=True)
    low, high = copy.offset, last.target_offset
    at = first - 1 + last.target_offset - last.lowest
    if isinstance(before, Unknown):
        return before
    for _ in range(_LOOKS):
        if not isinstance(before, Record) or not low < at < high:
            return None
        found = yield from inquiry.next_data(TARGET, at, shared=True)
        if copies := evidence.copies(before):
            return copies[0] - before.offset
        if isinstance(found, Unknown):
            return found
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
