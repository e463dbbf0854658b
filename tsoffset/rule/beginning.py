"""Where the target's log begins on the source, for the proof by first copy.

When the replicator wrote the first record left on the target, it was at that record's original. A
duplicate can make the log seem to begin elsewhere:

    source   a b c d a' b' e           a producer wrote a and b again
    target   a' b' e | a b c d         began at a', restarted at a: the first record is not a's copy

So the original of the first record counts only if it and the next ones, eight in all, are equal on
both sides one by one. Otherwise the highest original of the first eight is the beginning. If the
original of one of them is not known, the beginning is not known. If the target has more offsets
between the beginning and a copy than the source has between their originals, the replicator
repeated records, or duplicates mislead. Then 500 records are compared instead of eight.
"""

from collections.abc import Generator

from tsoffset.model import Side
from tsoffset.records import Record
from tsoffset.rule.evidence import Beginning
from tsoffset.rule.found import Unknown
from tsoffset.rule.inquiry import LITTLE_BYTES, Answer, Inquiry, Question

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# How many of the log's first records decide which source record the first one copies.
FIRST = 8
FIRST_SURELY = 500

Finding = Generator[Question, Answer, Beginning | Unknown]


def find_beginning(inquiry: Inquiry, *, surely: bool = False) -> Finding:
    """Where the target's log begins, found once for the partition at the partition's expense;
    `surely` compares more records. In failback the target is the original, and the source is its
    replica: then this is where the original's log begins on the replica."""
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
        return (yield from _beginning_from(inquiry, first, most))
    if not evidence.is_remote_topic:
        return Unknown.NOT_FOUND
    return (yield from _from_source_start(inquiry, most))


def _original_known(inquiry: Inquiry, copy: Record) -> Generator[Question, Answer, bool]:
    """Look for an original of a target record; False if none is found."""
    if copy.timestamp_ms is None:
        # No lookup finds it; both logs usually begin with the same record.
        yield from inquiry.next_data(SOURCE, inquiry.evidence.source.start, shared=True)
    yield from inquiry.original_of(copy)
    return bool(inquiry.evidence.originals(copy))


def _beginning_from(inquiry: Inquiry, first: Record, most: int) -> Finding:
    """The beginning of the log that starts at a record with a known original."""
    evidence = inquiry.evidence
    # In failback any of the replica's copies of the original's first record is right.
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
    """For a target that begins with copies of records that the source has lost: the beginning is
    the lowest copy of the source's own first record.

    That record's time is looked up on the target. Target records before the lookup's answer are
    older than the record, and those between the answer and the copy must have known originals. So
    an unread record can lie before this beginning only if it is older than the oldest record of the
    source, and was copied before the mirror was restarted (docs/design.md, `very_late`).
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
    # Its header may name another record, which equals this one and was not read yet.
    if not isinstance(copy, Record) or not (yield from _original_known(inquiry, copy)):
        return Unknown.NOT_FOUND
    begun = yield from _beginning_from(inquiry, copy, most)
    if not isinstance(begun, Beginning):
        return begun
    highest = begun.source_offset
    for between in target.known_records(first.offset, copy.offset):
        if not (yield from _original_known(inquiry, between)):
            return Unknown.NOT_FOUND
        highest = max(highest, evidence.originals(between)[-1])
    return Beginning(highest, copy.offset, own.timestamp_ms)
