"""The target's log end as an answer: everything that the mirror copies later lies behind it."""

from collections.abc import Generator
from dataclasses import replace

from tsoffset.model import Basis, Precision, Safety, Side, Translated
from tsoffset.records import Record
from tsoffset.rule.answers import make_answer
from tsoffset.rule.duplicates import earliest_of
from tsoffset.rule.evidence import Last
from tsoffset.rule.frontier import last_copy, last_of_both
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.mirror_restart import still_to_come
from tsoffset.rule.walk import LONGEST_WALK

SOURCE, TARGET = Side.SOURCE, Side.TARGET


def ends_as_a_mirror(inquiry: Inquiry) -> Generator[Question, Answer, bool]:
    """Whether the target's end may be an answer. A name that is equal on both sides does not
    tell which is the mirror, and the target may end with records that the source never had
    (failback under Identity). Then both logs must end with the same record."""
    evidence, target = inquiry.evidence, inquiry.evidence.target
    if evidence.failback:
        return False
    if evidence.is_remote_topic or target.start == target.end:
        return True
    if (yield from last_of_both(inquiry)) is None:
        return False
    last = yield from last_copy(inquiry)
    return isinstance(last, Last) and last.is_last


def highest_seen(inquiry: Inquiry, last: Last) -> Generator[Question, Answer, Last]:
    """The copy of the highest source record that was found on the target. Tried are the last
    target record that the source has, and the youngest. There may be higher ones."""
    evidence, target = inquiry.evidence, inquiry.evidence.target
    # Both records may have been dropped since `last` was found, to limit memory.
    end = target.at(last.target_offset)
    known = () if end is None else evidence.originals(end)
    seen = replace(last, lowest=min((last.lowest, *known)), highest=max((last.highest, *known)))
    youngest = yield from inquiry.youngest(TARGET)
    if youngest is None or not target.start <= youngest.offset < target.end:
        return seen
    copy = yield from inquiry.next_data(TARGET, youngest.offset, shared=True)
    if not isinstance(copy, Record):
        return seen
    yield from inquiry.original_of(copy)
    originals = evidence.originals(copy)
    if max(originals, default=-1) <= last.highest:
        return seen
    return Last(originals[0], originals[-1], copy.offset, is_last=False)


def at_mirror_end(
    inquiry: Inquiry, offset: int, basis: Basis, safety: Safety | None = None
) -> Generator[Question, Answer, Translated]:
    """The target's end, which is safe. The records that the group has read after the highest
    one on the target are yet to be copied, and count as re-reads."""
    evidence = inquiry.evidence
    copied = evidence.source.start - 1
    last = yield from last_copy(inquiry)
    if isinstance(last, Last):
        seen = yield from highest_seen(inquiry, last)
        copied = yield from earliest_of(inquiry, seen)
    if offset - copied <= LONGEST_WALK:
        # Unknown offsets count as data, transaction markers included.
        yield from inquiry.read(SOURCE, copied + 1, 65_536, shared=True)
    reread_bound = evidence.most_data_between(copied + 1, offset)
    reread_bound += yield from still_to_come(inquiry, offset)
    at = evidence.target.end
    return make_answer(
        evidence, at, reread_bound, basis, precision=Precision.FRONTIER, safety=safety
    )
