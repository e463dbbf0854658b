"""Where the target's log begins on the source: what the proof by first copy rests on.

The first record left on the target was written when the replicator stood at its original. An equal
record can feign a beginning:

    source   a b c d a' b' e           a producer wrote a and b again
    target   a' b' e | a b c d         begun at a', set back to a: the first record is not a's copy

So the original of the first record counts only where the next ones, eight of them, are equal on
both sides one by one. Else the highest original of the first eight is the beginning; and where one
of them has no original that is known, the beginning is not known. Where more offsets lie between
the beginning and a copy than on the source, so that something was repeated on the way or the
beginning is feigned, 500 records are asked for in place of eight.
"""

from collections.abc import Generator

from tsoffset.model import Side
from tsoffset.records import Record
from tsoffset.rule.evidence import Beginning
from tsoffset.rule.inquiry import LITTLE_BYTES, Answer, Inquiry, Question
from tsoffset.rule.log_view import Unknown

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# How many records, from the first one on, tell which source record the first one copies.
FIRST = 8
FIRST_SURELY = 500

Finding = Generator[Question, Answer, Beginning | Unknown]


def find_beginning(inquiry: Inquiry, *, surely: bool = False) -> Finding:
    """Where the target's log begins, found once a partition and paid by it; `surely` by more
    records. In failback, where the original that is the target begins on the replica."""
    known = inquiry.evidence.beginnings
    if surely not in known:
        found = yield from _find(inquiry, FIRST_SURELY if surely else FIRST)
        known.setdefault(surely, found)
    return known[surely]


def _find(inquiry: Inquiry, most: int) -> Finding:
    evidence = inquiry.evidence
    first = yield from inquiry.next_data(TARGET, evidence.target.start, shared=True)
    if not isinstance(first, Record):
        return Unknown.NOT_FOUND
    yield from _original_known(inquiry, first)
    if evidence.originals(first):
        return (yield from _from(inquiry, first, most))
    if not evidence.is_remote_topic:
        return Unknown.NOT_FOUND
    return (yield from _from_source_start(inquiry, most))


def _original_known(inquiry: Inquiry, copy: Record) -> Generator[Question, Answer, bool]:
    """Have an original of a target record known; False where none is found."""
    if copy.timestamp_ms is None:
        # No lookup finds it; mostly both logs begin with the same record.
        yield from inquiry.next_data(SOURCE, inquiry.evidence.source.start, shared=True)
    yield from inquiry.original_of(copy)
    return bool(inquiry.evidence.originals(copy))


def _from(inquiry: Inquiry, first: Record, most: int) -> Finding:
    """The log from a record on that has an original."""
    evidence = inquiry.evidence
    # In failback any of the replica's copies of the original's first record will do.
    which = 0 if evidence.failback else -1
    at, copy, highest, one_by_one = evidence.originals(first)[which], first, -1, True
    expected = evidence.source.at(at)
    if most > FIRST:
        yield from inquiry.read(SOURCE, at, LITTLE_BYTES, shared=True)
    lookups_left = FIRST
    for _ in range(most):
        if not evidence.originals(copy):
            lookups_left -= 1
            if lookups_left < 0 or not (yield from _original_known(inquiry, copy)):
                return Unknown.NOT_FOUND
        highest = max(highest, evidence.originals(copy)[which])
        if one_by_one and expected is not None and evidence.equal(expected, copy):
            following = yield from inquiry.next_data(SOURCE, expected.offset + 1, shared=True)
            expected = following if isinstance(following, Record) else None
        else:
            one_by_one = False
        after = yield from inquiry.next_data(TARGET, copy.offset + 1, shared=True)
        if isinstance(after, Unknown):
            return after
        if not isinstance(after, Record):
            break
        copy = after
    return Beginning(at if one_by_one else highest, first.offset)


def _from_source_start(inquiry: Inquiry, most: int) -> Finding:
    """Where the target begins with copies of what the source has lost: the log from the lowest copy
    of the source's own first record on.

    What lies before the time lookup of that record is older than it, and what lies between there
    and the copy must have originals that are known. So this passes only records from a commit on
    that are older than the oldest one the source still has, if such were copied before the mirror
    was set back (docs/design.md, `very_late`).
    """
    evidence = inquiry.evidence
    source, target = evidence.source, evidence.target
    own = yield from inquiry.next_data(SOURCE, source.start, shared=True)
    if not isinstance(own, Record) or own.timestamp_ms is None:
        return Unknown.NOT_FOUND
    first = yield from inquiry.first_at_time(TARGET, own.timestamp_ms)
    if first is None:
        return Unknown.NOT_FOUND
    copy = yield from inquiry.lowest_equal(TARGET, source.identity(own), first.offset, scan=False)
    if not isinstance(copy, Record):
        return Unknown.NOT_FOUND
    begun = yield from _from(inquiry, copy, most)
    if not isinstance(begun, Beginning):
        return begun
    highest = begun.source_offset
    for between in target.known(first.offset, copy.offset):
        if not (yield from _original_known(inquiry, between)):
            return Unknown.NOT_FOUND
        highest = max(highest, evidence.originals(between)[-1])
    return Beginning(highest, copy.offset, own.timestamp_ms)
