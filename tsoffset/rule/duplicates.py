"""Which of several equal records a copy is of: a duplicate elsewhere in the source's log.

Equal records have the same timestamp, so most of them lie in one run of records with it. Others are
far away: an application wrote an event twice with its event time, or a producer retried a batch. A
copy of a *later* duplicate skips the records between the two on the source:

    source   a b c d [a b]  e          an application wrote a and b again, with their old times
    target   c d [a b] e               compaction removed the first ones
                  ^ C=1: this b is the copy of the later b; c and d lie before it

A copy of an *earlier* one only costs re-reads: everything after the earlier one lies behind it.
"""

from collections.abc import Generator, Sequence

from tsoffset.model import Side
from tsoffset.records import Record
from tsoffset.rule.evidence import Evidence, Last, Run
from tsoffset.rule.found import Absent, Found, Unknown
from tsoffset.rule.inquiry import Answer, Inquiry, Question, Search
from tsoffset.rule.older_records import read_to_the_end

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# How many records are compared backwards while they are equal on both sides: an application that
# writes a series of records again seldom writes a longer one.
SERIES = 16
# How many of these comparisons may need a read.
READ_BACK = 3
# The number of target records before a series that are tried until the source has one of them.
NEIGHBORS = 3
# How many source records behind a record are read, and how many known ones are tested, to see
# whether timestamps are in order.
NEAR = 32
KNOWN = 1_000

Test = Generator[Question, Answer, bool]


def no_later_duplicate(
    inquiry: Inquiry, record: Record, copy: Record, *, among: Sequence[int] | None = None
) -> Test:
    """True if the copy is not of a source record later than `record`. `among` are known source
    records that equal it; then the copy may be of any of them.

    The source is read to the end of the run of this timestamp, because most duplicates are there. A
    record out of order, or without a key and value to compare, may have a duplicate far away: it
    needs a direct neighbor that is equal on both sides, too.
    """
    evidence = inquiry.evidence
    equals = evidence.originals(copy)
    highest = record.offset if among is None else among[-1]
    if evidence.names(copy, record):
        return True
    if evidence.failback and len(evidence.copies(record)) == 1:
        return True  # all equal records on the replica are copies of the one original
    if not equals or equals[-1] > highest or record.timestamp_ms is None:
        return False
    if not (yield from _run_is_known(inquiry, record)):
        return False
    if evidence.originals(copy)[-1] > highest:
        return False
    after = evidence.source.next_known(record.offset + 1)
    copy_after = yield from inquiry.next_data(TARGET, copy.offset + 1)
    if _equal(inquiry, after, copy_after):
        return True
    before = yield from inquiry.previous_data(SOURCE, record.offset)
    copy_before = yield from inquiry.previous_data(TARGET, copy.offset)
    if _equal(inquiry, before, copy_before):
        return True
    return (
        _in_order(before, record, after)
        and _in_order(copy_before, copy, copy_after)
        and not (_begins(inquiry, TARGET, copy) and not _begins(inquiry, SOURCE, record))
        and evidence.source.identity(record)[1:] != (None, None)
    )


def _run_is_known(inquiry: Inquiry, record: Record) -> Test:
    """Read the source to the end of the run of this record's timestamp."""
    assert record.timestamp_ms is not None
    runs = inquiry.evidence.runs
    known = runs.get(record.timestamp_ms)
    if known is None or not known.start <= record.offset < known.read_to:
        run = Run(record.offset, record.offset + 1)
    else:
        run = known
    while not run.ended:
        if known is not None and run.start < known.start <= run.read_to <= known.read_to:
            run = Run(run.start, known.read_to, known.ended)
            known = None
            continue
        own = run.read_to == record.offset + 1
        following = yield from inquiry.next_data(SOURCE, run.read_to, scan=not own)
        if isinstance(following, Unknown):
            break
        if not isinstance(following, Record):
            run = Run(run.start, inquiry.evidence.source.end, ended=True)
        elif following.timestamp_ms != record.timestamp_ms:
            run = Run(run.start, following.offset, ended=True)
        else:
            run = Run(run.start, following.offset + 1)
    runs[record.timestamp_ms] = run
    return run.ended


def _between_pairs(inquiry: Inquiry, record: Record, copy: Record) -> bool:
    """True if the pairs below and above both have the distance of the record and its copy: the copy
    of a duplicate would lie nearer to one pair. One pair alone may have it by chance."""
    pairs = inquiry.evidence.pairs
    near = pairs.nearest_below(record.offset), pairs.nearest_above(record.offset)
    return all(pair and pair.distance == copy.offset - record.offset for pair in near)


def _begins(inquiry: Inquiry, side: Side, record: Record) -> bool:
    """True if the record is known to be the first of its log."""
    view = inquiry.evidence.view(side)
    return view.covered_from(record.offset) <= view.start and not view.previous_known(record.offset)


def in_place(inquiry: Inquiry, record: Record, copy: Record) -> Test:
    """True if the records before the copy, except a series that is equal on both sides, are copies
    of earlier source records. A duplicate that was written later, after other records, does not
    pass this test."""
    evidence = inquiry.evidence
    if evidence.names(copy, record):
        return True
    # Between two pairs of one distance no lookup was needed to find the copy, and none is made.
    if not _between_pairs(inquiry, record, copy) and not (
        yield from _follows_nothing_later(inquiry, record, copy)
    ):
        return False
    if (yield from _is_told_by_a_pair(inquiry, record, copy)):
        return True
    # What was read for the test may be a later duplicate.
    return (yield from _follows_earlier_records(inquiry, record, copy)) and not (
        _has_later(evidence, record, copy)
    )


def _has_later(evidence: Evidence, record: Record, copy: Record) -> bool:
    """True if a later duplicate is known. In failback, all equal records on the replica may be
    copies of the one original."""
    if evidence.failback and len(evidence.copies(record)) == 1:
        return False
    return max(evidence.originals(copy), default=-1) > record.offset


def _is_told_by_a_pair(inquiry: Inquiry, record: Record, copy: Record) -> Test:
    """True if a pair above has the distance of the record and its copy, and a neighbor is equal.

    A pair below does not count: the copy of a later duplicate may have its distance, too, if the
    replicator dropped as many records as lie between the two duplicates.
    """
    pairs = inquiry.evidence.pairs
    above = pairs.at(record.offset) or pairs.nearest_above(record.offset)
    if above is None or above.distance != copy.offset - record.offset:
        return False
    return (yield from _beside_an_equal(inquiry, record, copy))


def _beside_an_equal(inquiry: Inquiry, record: Record, copy: Record) -> Test:
    """True if the next records are known to be equal on both sides, or the previous ones are."""
    evidence = inquiry.evidence
    after = evidence.source.next_known(record.offset + 1)
    if _equal(inquiry, after, evidence.target.next_known(copy.offset + 1)):
        return True
    before = yield from inquiry.previous_data(SOURCE, record.offset)
    return _equal(inquiry, before, (yield from inquiry.previous_data(TARGET, copy.offset)))


def _follows_nothing_later(inquiry: Inquiry, record: Record, copy: Record) -> Test:
    """False if the time lookup finds a younger target record before the copy, which copies a later
    source record and has no equal behind `copy`. (After a mirror restart it would have one.) True
    if the lookup finds nothing before the copy."""
    evidence, target = inquiry.evidence, inquiry.evidence.target
    if record.timestamp_ms is None:
        return True
    first = yield from inquiry.first_at_time(TARGET, record.timestamp_ms)
    if first is None or first.offset >= copy.offset:
        return True
    younger = yield from inquiry.next_data(TARGET, first.offset, shared=True)
    if not isinstance(younger, Record):
        return False
    if first.timestamp_ms == record.timestamp_ms:
        return not evidence.equal(record, younger)  # that is the copy to prove
    if younger.offset >= copy.offset:
        return True
    is_of_earlier = yield from _is_of_earlier(inquiry, younger, record)
    originals = evidence.originals(younger)
    if is_of_earlier is not False or not originals:
        return is_of_earlier is not False
    _, above = evidence.anchors(originals[0])
    for source, at in ((record.offset, copy.offset), above or (record.offset, copy.offset)):
        guess = at + originals[0] - source
        if target.equals(target.identity(younger))[-1] < copy.offset < guess:
            yield from inquiry.read(TARGET, guess, shared=True)
    return target.equals(target.identity(younger))[-1] > copy.offset


def _follows_earlier_records(inquiry: Inquiry, record: Record, copy: Record) -> Test:
    """False if a later source record is found before the copy. Records that are equal on both sides
    are passed over backwards (the application may have written those again, too) to the first that
    differs."""
    evidence = inquiry.evidence
    before = yield from _record_before(inquiry, record)
    copy_before = yield from inquiry.previous_data(TARGET, copy.offset)
    reads_left = READ_BACK
    for _ in range(SERIES):
        if not _equal(inquiry, before, copy_before):
            break
        assert isinstance(before, Record)
        assert isinstance(copy_before, Record)
        pair = evidence.pairs.at(before.offset)
        if pair is not None and pair.target_offset == copy_before.offset:
            return True
        known = evidence.target.previous_known(copy_before.offset)
        known_original = evidence.source.previous_known(before.offset)
        reads = (known is None) + (known_original is None)
        if reads and not reads_left:
            return (yield from _has_no_later(inquiry, record))
        reads_left -= bool(reads)
        copy_before = known or (yield from inquiry.previous_data(TARGET, copy_before.offset))
        before = known_original or (yield from _record_before(inquiry, before))
    else:
        return (yield from _has_no_later(inquiry, record))
    # Without this order, the records before the copy may have been written again, too.
    in_order = yield from _is_in_order(inquiry, record)
    if isinstance(before, Unknown) and not in_order:
        return False
    for _ in range(NEIGHBORS):
        if not isinstance(copy_before, Record):
            return copy_before is Absent.LOG_START
        is_of_earlier = yield from _is_of_earlier(inquiry, copy_before, record)
        if is_of_earlier is False or (is_of_earlier and in_order):
            return is_of_earlier
        previous = yield from inquiry.previous_data(TARGET, copy_before.offset)
        earlier = before if previous is Absent.LOG_START else previous
        if is_of_earlier is None and (evidence.failback or _is_late(copy_before, earlier)):
            return False  # the group may not have read it
        # Another producer's record, or a copy of a record that the source has lost.
        copy_before = previous
    return (yield from _is_read_to_the_end(inquiry, record))


def _has_no_later(inquiry: Inquiry, record: Record) -> Test:
    """True if a later duplicate is ruled out, by the order of timestamps or by reading the source
    to its end. Used if the record before the repeated ones does not decide."""
    return (yield from _is_in_order(inquiry, record)) or (
        yield from _is_read_to_the_end(inquiry, record)
    )


def _is_read_to_the_end(inquiry: Inquiry, record: Record) -> Test:
    """True if the source was read to its end, which shows every later duplicate. Also true if the
    target has lost no records: then it has the first copies of the earlier duplicates."""
    if not inquiry.evidence.may_lack_first_copies:
        return True
    return (yield from read_to_the_end(inquiry, record.offset + 1))


def _is_in_order(inquiry: Inquiry, record: Record) -> Test:
    """True if all target records before the first one with this timestamp are older.

    If the target may have lost records, the known later source records must not be older, either:
    their copies may lie before the copy to prove, and no lookup would find these.
    """
    if record.timestamp_ms is None:
        return False
    first = yield from inquiry.first_at_time(TARGET, record.timestamp_ms)
    if first is None or first.timestamp_ms != record.timestamp_ms:
        return False
    return not inquiry.evidence.may_lack_first_copies or (
        yield from _later_ones_are_younger(inquiry, record, record.timestamp_ms)
    )


def _later_ones_are_younger(inquiry: Inquiry, record: Record, timestamp_ms: int) -> Test:
    """True if no known source record among the `KNOWN` offsets behind this one is older. The next
    `SERIES` do not count: concurrent producers do not keep the order of timestamps."""
    source, offset = inquiry.evidence.source, record.offset
    yield from inquiry.read_whole(SOURCE, offset, min(offset + NEAR, source.end))
    return source.none_known_is_older(offset + SERIES, timestamp_ms, offset + KNOWN)


def _record_before(inquiry: Inquiry, record: Record) -> Search:
    """The source record before another one. A proof rests on it, so if the offset's budget has
    ended, the partition's budget pays."""
    before = yield from inquiry.previous_data(SOURCE, record.offset)
    if isinstance(before, Unknown):
        before = yield from inquiry.previous_data(SOURCE, record.offset, shared=True)
    return before


def _is_late(copy: Record, earlier: Found | None) -> bool:
    """True if a target record may be older than an earlier record, or has no timestamp: then a time
    lookup without an answer does not show where its original lies."""
    if isinstance(earlier, Unknown) or copy.timestamp_ms is None:
        return True
    stamp = earlier.timestamp_ms if isinstance(earlier, Record) else None
    return stamp is not None and copy.timestamp_ms < stamp


def _is_of_earlier(
    inquiry: Inquiry, copy: Record, record: Record
) -> Generator[Question, Answer, bool | None]:
    """Whether a target record is a copy of the source record or of one before it; None if the
    source does not have it."""
    if not inquiry.evidence.originals(copy):
        original = yield from inquiry.original_of(copy)
        if original is Unknown.NOT_READ:
            return False
    equals = inquiry.evidence.originals(copy)
    return equals[0] <= record.offset if equals else None


def earliest_equal(
    inquiry: Inquiry, record: Record, copy: Record, *, surely: bool = False
) -> Generator[Question, Answer, int]:
    """The lowest source offset that `copy` may be a copy of, instead of `record`: the records in
    between may be re-read. With `surely`, for proofs, distances of pairs are no evidence."""
    evidence = inquiry.evidence
    if evidence.names(copy, record) and not surely:
        return record.offset
    source = evidence.source
    identity = source.identity(record)
    if source.equals(identity)[0] == record.offset and not surely:
        before: Found | None = source.previous_known(record.offset)
        after = source.next_known(record.offset + 1)
        copy_after = evidence.target.next_known(copy.offset + 1)
        if len(evidence.copies(record)) > 1 and not _equal(inquiry, after, copy_after):
            before = yield from inquiry.previous_data(SOURCE, record.offset)
            copy_before = yield from inquiry.previous_data(TARGET, copy.offset)
            if not _equal(inquiry, before, copy_before):
                # The copy may be of a duplicate that the source no longer has.
                return source.start
        if before is None and source.covered_from(record.offset) <= source.start:
            return record.offset
        if _between_pairs(inquiry, record, copy) or (
            yield from _is_told_by_a_pair(inquiry, record, copy)
        ):
            return record.offset
    # An earlier duplicate has the same timestamp, so none lies below the time lookup. But a lookup
    # without an answer proves nothing.
    start = source.start
    if record.timestamp_ms is not None:
        first = yield from inquiry.first_at_time(SOURCE, record.timestamp_ms)
        start = start if first is None else first.offset
    earliest = yield from inquiry.lowest_equal(SOURCE, identity, start, scan=True)
    return min(record.offset, earliest.offset if isinstance(earliest, Record) else start)


def earliest_of(inquiry: Inquiry, last: Last) -> Generator[Question, Answer, int]:
    """The lowest source offset that the target record of `last` may be a copy of. `last.lowest` is
    the lowest that was known when `last` was found. Records that memory limits have dropped are
    read again."""
    evidence = inquiry.evidence
    record = yield from inquiry.next_data(SOURCE, last.lowest, shared=True)
    copy = yield from inquiry.next_data(TARGET, last.target_offset, shared=True)
    if not (isinstance(record, Record) and isinstance(copy, Record)) or evidence.source.identity(
        record
    ) != evidence.target.identity(copy):
        return evidence.source.start  # compaction has removed one of them since
    if evidence.names(copy, record):
        return record.offset
    return min(last.lowest, (yield from earliest_equal(inquiry, record, copy, surely=True)))


def _equal(inquiry: Inquiry, one: Found | None, other: Found | None) -> bool:
    return (
        isinstance(one, Record) and isinstance(other, Record) and inquiry.evidence.equal(one, other)
    )


def _in_order(before: Found | None, record: Record, after: Found | None) -> bool:
    """True if the timestamp lies between those of its neighbors, as far as there are any. An
    unknown neighbor, or one without a timestamp, makes it false."""
    stamp = record.timestamp_ms
    if stamp is None:
        return False
    for neighbor, sign in ((before, 1), (after, -1)):
        if isinstance(neighbor, Unknown):
            return False
        if isinstance(neighbor, Record):
            other = neighbor.timestamp_ms
            if other is None or sign * (stamp - other) < 0:
                return False
    return True
