"""Which of several equal records a copy is of: a duplicate elsewhere in the source's log.

Equal records bear one timestamp, so they mostly stand in one run of it; an application that writes
an event twice with its event time, and a producer that retries a batch, make others far away. A
copy of a *later* duplicate skips what lies between the two on the source:

    source   a b c d [a b]  e          an application wrote a and b again, with their old times
    target   c d [a b] e               compaction took the first ones
                  ^ C=1: this b answers for the later b alone; c and d lie before it

A copy of an *earlier* one only costs re-reads: what follows the earlier one lies behind it.
"""

from collections.abc import Generator, Sequence

from tsoffset.model import Side
from tsoffset.records import Record
from tsoffset.rule.evidence import Run
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.log_view import Absent, Found, Unknown

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# How far back records that are equal on both sides are compared, and how many of these are read
# for that: an application that writes a stretch again seldom writes a longer one.
STRETCH = 16
READ_BACK = 3
# Target records before a stretch that are looked at until the source is seen to have one.
NEIGHBOURS = 3

Test = Generator[Question, Answer, bool]


def no_later_duplicate(
    inquiry: Inquiry, record: Record, copy: Record, *, among: Sequence[int] | None = None
) -> Test:
    """True where the copy is of no later source record than `record`, or of the last of `among`,
    known source records that equal it.

    The run of the timestamp is read to its end on the right, for equal records mostly stand
    there. A record out of order, or with neither key nor value, may have an equal one far away:
    it needs a direct neighbour that is equal on both sides, too.
    """
    evidence = inquiry.evidence
    equals = evidence.originals(copy)
    highest = record.offset if among is None else among[-1]
    if evidence.names(copy, record):
        return True
    if evidence.failback and len(evidence.copies(record)) == 1:
        return True  # of the one original all that equal it on the replica are copies
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
        and not (record.key is None and record.value is None)
    )


def _run_is_known(inquiry: Inquiry, record: Record) -> Test:
    """Have the source read to the end of the run of this record's timestamp."""
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


def _as_far_as_a_pair(inquiry: Inquiry, record: Record, copy: Record) -> bool:
    """True where the distance to a pair is the same on both sides: the copy of another equal record
    would lie nearer to the pair, or further from it."""
    evidence = inquiry.evidence
    distance = record.offset - copy.offset
    pairs = evidence.pairs
    near = (pairs.at(record.offset), pairs.below(record.offset), pairs.above(record.offset))
    return any(
        pair is not None and pair.source_offset - pair.target_offset == distance for pair in near
    )


def _begins(inquiry: Inquiry, side: Side, record: Record) -> bool:
    """True where the record is seen to be the first of its log."""
    view = inquiry.evidence.view(side)
    return view.covered_from(record.offset) <= view.start and not view.previous_known(record.offset)


def in_place(inquiry: Inquiry, record: Record, copy: Record) -> Test:
    """True where what lies before the copy, but for a stretch that is equal on both sides, is of
    earlier source records: an equal one that was written later, with others before it, is out of
    place there."""
    evidence = inquiry.evidence
    if evidence.names(copy, record):
        return True
    if _as_far_as_a_pair(inquiry, record, copy) and (
        yield from _beside_an_equal(inquiry, record, copy)
    ):
        return True
    return (yield from _follows_earlier_records(inquiry, record, copy))


def _beside_an_equal(inquiry: Inquiry, record: Record, copy: Record) -> Test:
    """True where the next records are known to be equal on both sides, or the previous ones are."""
    evidence = inquiry.evidence
    after = evidence.source.next_known(record.offset + 1)
    if _equal(inquiry, after, evidence.target.next_known(copy.offset + 1)):
        return True
    before = yield from inquiry.previous_data(SOURCE, record.offset)
    return _equal(inquiry, before, (yield from inquiry.previous_data(TARGET, copy.offset)))


def _follows_earlier_records(inquiry: Inquiry, record: Record, copy: Record) -> Test:
    """False where a later source record is seen before the copy: back over what is equal on both
    sides (the application may have written that again, too) to the first that differs."""
    evidence = inquiry.evidence
    before = yield from inquiry.previous_data(SOURCE, record.offset)
    copy_before = yield from inquiry.previous_data(TARGET, copy.offset)
    reads_left = READ_BACK
    for _ in range(STRETCH):
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
            return True
        reads_left -= bool(reads)
        copy_before = known or (yield from inquiry.previous_data(TARGET, copy_before.offset))
        before = known_original or (yield from inquiry.previous_data(SOURCE, before.offset))
    else:
        return True
    for _ in range(NEIGHBOURS):
        if not isinstance(copy_before, Record):
            return copy_before is Absent.LOG_START
        is_of_earlier = yield from _is_of_earlier(inquiry, copy_before, record)
        if is_of_earlier is not None:
            return is_of_earlier
        if evidence.failback:
            return False  # No group need have read it.
        # Of others, or of one that the source has lost.
        copy_before = yield from inquiry.previous_data(TARGET, copy_before.offset)
    return True


def _is_of_earlier(
    inquiry: Inquiry, copy: Record, record: Record
) -> Generator[Question, Answer, bool | None]:
    """Whether a target record is seen to be a copy of the source record or one before it; None
    where the source does not have it."""
    if not inquiry.evidence.originals(copy):
        original = yield from inquiry.original_of(copy)
        if original is Unknown.NOT_READ:
            return False
    equals = inquiry.evidence.originals(copy)
    return equals[0] <= record.offset if equals else None


def earliest_equal(
    inquiry: Inquiry, record: Record, copy: Record, *, surely: bool = False
) -> Generator[Question, Answer, int]:
    """The lowest source offset whose copy this may be instead of the record's: what lies between
    may come again. `surely` where a proof rests on it: then distances do not count."""
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
                # The copy may be of an equal record that the source no longer has.
                return source.start
        if before is None and source.covered_from(record.offset) <= source.start:
            return record.offset
        if _as_far_as_a_pair(inquiry, record, copy):
            return record.offset
    # An earlier equal record has the same timestamp: none lies below the time lookup. But that
    # none is answered proves nothing.
    start = source.start
    if record.timestamp_ms is not None:
        first = yield from inquiry.first_at_time(SOURCE, record.timestamp_ms)
        start = start if first is None else first.offset
    earliest = yield from inquiry.lowest_equal(SOURCE, identity, start, scan=True)
    return min(record.offset, earliest.offset if isinstance(earliest, Record) else start)


def _equal(inquiry: Inquiry, one: Found | None, other: Found | None) -> bool:
    return (
        isinstance(one, Record) and isinstance(other, Record) and inquiry.evidence.equal(one, other)
    )


def _in_order(before: Found | None, record: Record, after: Found | None) -> bool:
    """True where the timestamp lies between those of its neighbours, as far as there are any;
    a neighbour that is not known, or carries no timestamp, is none to rely on."""
    stamp = record.timestamp_ms
    if stamp is None:
        return False
    for neighbour, sign in ((before, 1), (after, -1)):
        if isinstance(neighbour, Unknown):
            return False
        if isinstance(neighbour, Record):
            other = neighbour.timestamp_ms
            if other is None or sign * (stamp - other) < 0:
                return False
    return True
