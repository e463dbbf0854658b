"""Re-reads after a mirror was restarted before its own beginning, which pairs do not show.

    source   a b c d e f          the mirror began at c, was restarted at a, and goes on
    target   c d e [a b c d e] f
             ^ C=3: this d is the answer; a and b, which the group has read, lie behind it

Copies that a replicator makes again are not counted as re-reads (the price of a restart), but these
are first copies. Safety does not rest on any of this.
"""

from collections.abc import Generator

from tsoffset.model import Side
from tsoffset.records import Record
from tsoffset.rule.duplicates import earliest_of
from tsoffset.rule.evidence import Evidence, Last
from tsoffset.rule.found import Absent, Unknown
from tsoffset.rule.frontier import last_copy
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.pairs import Pair

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# The number of the target's first records that are compared with the source, until one is on both.
FIRST = 8

# The number of guesses for the offset of one record.
_GUESSES = 6

Counting = Generator[Question, Answer, int]
Searching = Generator[Question, Answer, int | Unknown | None]


def first_copied_behind(inquiry: Inquiry, offset: int, pair: Pair) -> Counting:
    """An upper bound for the records before a committed offset whose first copies lie, or will lie,
    behind a pair. 0 if the mirror has copied in order everything that the source has left."""
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
    if not isinstance(copy, Record):
        return 0
    first, last = evidence.originals(copy)[0], (yield from last_copy(inquiry))
    if first > pair.source_offset:
        # Copied after a restart. The mirror may have been restarted once more, before this record.
        again = isinstance(last, Last) and last.lowest < pair.source_offset
        return evidence.most_data_between(source.start, offset) if again else 0
    if not (rereads := _data_before(evidence, offset, copy)):
        return 0
    distance = yield from _restart_distance(inquiry, copy)
    if isinstance(distance, Unknown):
        return rereads
    if distance is None or pair.target_offset - pair.source_offset >= distance:
        return 0
    return rereads


def first_copied_after(inquiry: Inquiry, offset: int, copy: Record) -> Counting:
    """The number of records before a committed offset whose copies lie behind the first copy on the
    target, although they precede its original."""
    restarted = (yield from _restart_distance(inquiry, copy)) is not None
    return _data_before(inquiry.evidence, offset, copy) if restarted else 0


def still_to_come(inquiry: Inquiry, offset: int) -> Counting:
    """The number of records before a committed offset that precede the mirror's beginning, and that
    the restarted mirror has yet to copy."""
    evidence = inquiry.evidence
    if evidence.failback:
        return 0
    last = yield from last_copy(inquiry)
    if not isinstance(last, Last) or not evidence.most_data_between(last.lowest + 1, offset):
        return 0
    copy = yield from first_copy(inquiry)
    if not isinstance(copy, Record) or (yield from _restart_distance(inquiry, copy)) is None:
        return 0
    first = evidence.originals(copy)[-1]
    stands = (yield from earliest_of(inquiry, last)) + 1
    return evidence.most_data_between(stands, min(first, offset))


def first_copy(
    inquiry: Inquiry,
) -> Generator[Question, Answer, Record | Absent | Unknown]:
    """The first data record on the target that the source is known to have, among the first few."""
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
        at = copy.offset + 1  # its original is lost, or another producer wrote it
    return Unknown.NOT_FOUND


def _note_beginning(evidence: Evidence, copy: Record) -> None:
    """Note from which source offset on first copies are in order: all later records were copied
    after the target's first record, and that stays true."""
    begun = evidence.originals(copy)[-1]
    if evidence.first_from is None or begun < evidence.first_from:
        evidence.first_from = begun


def _data_before(evidence: Evidence, offset: int, copy: Record) -> int:
    first = evidence.originals(copy)[-1]
    return evidence.most_data_between(evidence.source.start, min(first, offset))


def _restart_distance(inquiry: Inquiry, copy: Record) -> Searching:
    """Target offset minus source offset of the copies that follow a restart, if the mirror was
    restarted before its beginning.
    Taken from the mirror's last record, or from the source record before its first one. None if no
    such restart is seen; Unknown if that could not be read."""
    evidence = inquiry.evidence
    last = yield from last_copy(inquiry)
    if isinstance(last, Unknown):
        return last
    if not isinstance(last, Last):
        return None
    first = evidence.originals(copy)[0]
    if last.lowest < first:
        return last.target_offset - last.lowest
    return (yield from _found_behind(inquiry, copy, first, last))


def _found_behind(inquiry: Inquiry, copy: Record, first: int, last: Last) -> Searching:
    """The distance of a source record before `first` that is found behind the target's first copy:
    where the last record's distance predicts it, else by bisection."""
    evidence = inquiry.evidence
    before = yield from inquiry.previous_data(SOURCE, first, shared=True)
    low, high = copy.offset, last.target_offset
    at = first - 1 + last.target_offset - last.lowest
    if isinstance(before, Unknown):
        return before
    for _ in range(_GUESSES):
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
