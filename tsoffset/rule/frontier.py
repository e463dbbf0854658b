"""The frontier: one fact about a partition that decides what is safe, for every position of it.

A replicator stands at a source position. Each step takes the next source record (and copies it,
or leaves it out), or jumps back: a restart without its last offsets, a mirror made anew. It
never jumps forward over what it has not passed. So with F the highest source record that has a
copy on the target, and f the offset of F's last copy:

    source   0 1 2 3 4 5 6 7 8 9                    F = 9
    target   0 1 2 3 4 5 6 7 8 9 | 3 4 5            the log ends inside a repeat: f = the 9
                       ^ C=5: this 5 answers, the one in the repeat (behind f) does not
                                       ^ C=10: the log end answers

* Nothing of what follows F on the source is on the target, and what comes is written behind the
  log's end. So for C > F the end is safe, as it was read before the source's.
* A copy of o at q <= f answers: between writing q and writing f the replicator went from o to F,
  one record at a time, so it passed all of (o, F] behind q, and above F nothing is there.
* Behind f a copy does not answer: F lies only before it.

F must not be taken too low where the end is answered, nor too high, nor f: a record that has an
equal on the source is no F, since its last copy may be the other's. Then the highest one below
that is unmistakable serves, with a copy before the others': that is only careful.
"""

from collections.abc import Generator

from tsoffset.model import Side
from tsoffset.records import Record
from tsoffset.rule.evidence import Evidence, Frontier, Pair
from tsoffset.rule.inquiry import Answer, Edge, Inquiry, Question, Search

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# How many source records behind the highest one found are looked for on the target.
NEXT = 8
# And how many of the source's last ones.
LAST = 3
# So many equal records in a row on both sides are no twins of others.
CHAIN = 8
# How many target records that the source does not have are passed at the end of the log, and how
# far below the top of the mirror a record that is unmistakable is sought.
FOREIGN = 16
BELOW_TOP = 64
# How often a way along the source is doubled.
STEPS = 12

Finding = Generator[Question, Answer, Frontier]


class _Unseen(Exception):
    """What the frontier rests on could not be read within the partition's budget."""


def find_frontier(inquiry: Inquiry) -> Finding:
    """The partition's frontier, found once a cycle and paid by the partition. Where it could not
    be seen nothing is known to be safe but the target's log start."""
    evidence = inquiry.evidence
    if evidence.frontier is None:
        try:
            found = yield from _find(inquiry)
        except _Unseen:
            found = Frontier(None, None)
        evidence.frontier = evidence.frontier or found
        if evidence.frontier.reached is not None:
            evidence.prove(evidence.frontier.reached)
    return evidence.frontier


def _find(inquiry: Inquiry) -> Finding:
    evidence = inquiry.evidence
    end = yield from inquiry.previous_data(SOURCE, evidence.source.end, shared=True)
    if end is Edge.UNKNOWN:
        raise _Unseen
    copy = yield from _last_copy(inquiry)
    if copy is Edge.LOG_START:
        return Frontier(None, -1)
    if not isinstance(copy, Record):
        return (yield from _from_source_end(inquiry, end))
    lowest, top = evidence.originals(copy)[0], evidence.originals(copy)[-1]
    # The usual case: the mirror is complete, nothing can lie above.
    if (
        isinstance(end, Record)
        and evidence.equal(end, copy)
        and (yield from _unmistakable(inquiry, end, copy))
    ):
        at_end = evidence.target.previous_known(evidence.target.end) == copy
        last = end.offset, copy.offset
        return Frontier(_pair(end, copy), end.offset, last, complete=at_end)
    top = max(top, (yield from _climb(inquiry, lowest)))
    reached = yield from _reached(inquiry, top)
    return Frontier(reached, top, (lowest, copy.offset))


def _last_copy(inquiry: Inquiry) -> Search:
    """The last data record on the target that the source has, too; LOG_START where there are no
    data, UNKNOWN where none is seen."""
    end = at = inquiry.evidence.target.end
    for _ in range(FOREIGN):
        copy = yield from inquiry.previous_data(TARGET, at, shared=True)
        if copy is Edge.LOG_START and at == end:
            return copy
        if not isinstance(copy, Record):
            break
        original = yield from inquiry.original_of(copy)
        if isinstance(original, Record):
            return copy
        at = copy.offset
    return Edge.UNKNOWN


def _from_source_end(inquiry: Inquiry, record: Record | Edge) -> Finding:
    """Where many records of others end the target (several sources that share a topic): from the
    last of 1, 2, 4, ... records back from the source's end that lies on the target. Where the
    repeats of a replicator lie among the others is not seen, so no log end is answered."""
    step = 1
    for _ in range(STEPS):
        if not isinstance(record, Record):
            break
        stamp = record.timestamp_ms
        if stamp is not None and (yield from _on_target(inquiry, record, stamp)):
            top = yield from _climb(inquiry, record.offset)
            return Frontier((yield from _reached(inquiry, top)), None)
        at, step = record.offset - step, 2 * step
        record = yield from inquiry.previous_data(SOURCE, at + 1, shared=True)
    raise _Unseen


# --- failback -----------------------------------------------------------------------------


def passed_in_failback(
    inquiry: Inquiry, copy: Record, source_offset: int | None
) -> Generator[Question, Answer, bool]:
    """Whether all that follows on the source what this equals (there, or first) lies behind it,
    where the target is the original and the source its replica.

    The original holds each record once, in order; of equal ones the lowest counts. So it does,
    unless the replica was set back to before where it began, and what this equals lies before
    that:

        source   e f g h | a b c d e f ...      C=1: behind the f lie a to d, which nobody has read
    """
    evidence = inquiry.evidence
    if evidence.target.equals(evidence.target.identity(copy))[0] != copy.offset:
        return False
    if not evidence.replica_seen:
        distance = yield from _replica_set_back_by(inquiry)
        evidence.replica_seen, evidence.replica_set_back_by = True, distance
    distance = evidence.replica_set_back_by
    if source_offset is None:
        source_offset = min(evidence.originals(copy), default=-1)
    return distance is None or source_offset - copy.offset >= distance


def _replica_set_back_by(inquiry: Inquiry) -> Generator[Question, Answer, int | None]:
    """By how much source offsets exceed target offsets where a replica was set back to before its
    first record; None where it is not seen to have been."""
    begun = yield from _first_found(inquiry, inquiry.evidence.source.start, 1)
    come = yield from _first_found(inquiry, inquiry.evidence.source.end, -1)
    if begun is None or come is None:
        return None
    (first, first_copy), (last, last_copy) = begun, come
    distance = last.offset - last_copy.offset
    before = yield from inquiry.previous_data(TARGET, first_copy.offset, shared=True)
    if not isinstance(before, Record) or before.offset + distance <= first.offset:
        return None
    if last_copy.offset < first_copy.offset:
        return distance
    return None if (yield from inquiry.original_of(before)) is Edge.LOG_END else distance


def _first_found(
    inquiry: Inquiry, at: int, direction: int
) -> Generator[Question, Answer, tuple[Record, Record] | None]:
    """The first of the next source records, or the last of the ones before, whose content is on the
    target, with that; None where it is not among a few."""
    look = inquiry.next_data if direction > 0 else inquiry.previous_data
    for _ in range(NEXT):
        record = yield from look(SOURCE, at, shared=True)
        if not isinstance(record, Record):
            break
        copy = yield from inquiry.locate(
            TARGET, record, inquiry.evidence.copies, record.timestamp_ms
        )
        if isinstance(copy, Record):
            return record, copy
        at = record.offset + (1 if direction > 0 else 0)
    return None


# --- how far the mirror has come ----------------------------------------------------------


def _climb(inquiry: Inquiry, at: int) -> Generator[Question, Answer, int]:
    """The highest source record whose content is on the target, from one that is on.

    Five looks tell whether the log ends inside a repeat: is the youngest record of the target a
    copy of a later one, are the next source records there, the source's last ones, is the first
    target record younger than it a copy of a later one, is the target's first? (The youngest
    alone is not enough where timestamps jitter, the next ones alone miss what compaction took or
    a gap left out, and the first tells of what is left of a trimmed log.)
    """
    youngest = yield from inquiry.youngest(TARGET)
    if youngest is not None:
        at = max(at, (yield from _original_at(inquiry, youngest.offset, at)))
    while True:
        for look in (_among_next, _among_last, _of_younger, _of_first):
            higher = yield from look(inquiry, at)
            if higher > at:
                break
        else:
            return at
        at = higher


def _among_next(inquiry: Inquiry, offset: int) -> Generator[Question, Answer, int]:
    """The highest of the next source records whose content is on the target; -1 for none."""
    highest = -1
    near = _timestamp_up_to(inquiry.evidence, offset)
    for _ in range(NEXT):
        following = yield from inquiry.next_data(SOURCE, offset + 1, shared=True)
        if following is Edge.UNKNOWN:
            raise _Unseen
        if not isinstance(following, Record):
            break
        offset = following.offset
        near = near if following.timestamp_ms is None else following.timestamp_ms
        if (yield from _on_target(inquiry, following, near)):
            highest = offset
    return highest


def _among_last(inquiry: Inquiry, offset: int) -> Generator[Question, Answer, int]:
    """The highest of the source's last records whose content is on the target; -1 for none."""
    at = inquiry.evidence.source.end
    for _ in range(LAST):
        record = yield from inquiry.previous_data(SOURCE, at, shared=True)
        if not isinstance(record, Record) or record.offset <= offset:
            break
        at = record.offset
        if (yield from _on_target(inquiry, record, _timestamp_up_to(inquiry.evidence, at))):
            return at
    return -1


def _timestamp_up_to(evidence: Evidence, offset: int) -> int | None:
    """The timestamp of the nearest source record up to `offset` that has one, if it is known."""
    record = evidence.source.at(offset)
    while record is not None and record.timestamp_ms is None:
        record = evidence.source.previous_known(record.offset)
    return None if record is None else record.timestamp_ms


def _on_target(
    inquiry: Inquiry, record: Record, timestamp_ms: int | None
) -> Generator[Question, Answer, bool]:
    """Whether the record's content lies on the target. The timestamp is its own, or of the nearest
    record before it that has one."""
    evidence = inquiry.evidence
    if evidence.copies(record):
        return True
    if timestamp_ms is not None:
        youngest = yield from inquiry.youngest(TARGET)
        if youngest is not None and timestamp_ms > youngest.timestamp_ms:
            return False
        if (
            youngest is None
            and (yield from inquiry.first_at_time(TARGET, timestamp_ms)) is None
            and (yield from _lookups_see_the_end(inquiry))
        ):
            return False
    copy = yield from inquiry.locate(TARGET, record, evidence.copies, timestamp_ms)
    if copy is Edge.LOG_END and not (yield from _in_time(inquiry, record)):
        copy = yield from inquiry.locate(TARGET, record, evidence.copies, None)
    if copy is Edge.UNKNOWN:
        raise _Unseen
    return isinstance(copy, Record)


def _lookups_see_the_end(inquiry: Inquiry) -> Generator[Question, Answer, bool]:
    """Whether a time lookup finds the target's last known record that has a timestamp. Where a
    segment that compaction emptied hides even that, the answer none is no hint of anything."""
    target = inquiry.evidence.target
    last = target.previous_known(target.end)
    while last is not None and last.timestamp_ms is None:
        last = target.previous_known(last.offset)
    if last is None or last.timestamp_ms is None:
        return False
    return (yield from inquiry.first_at_time(TARGET, last.timestamp_ms)) is not None


def _in_time(inquiry: Inquiry, record: Record) -> Generator[Question, Answer, bool]:
    """True where no younger record lies before this one on the source: then none of its copy's
    place is hidden behind a time lookup that answers far too early (a clock that was set back)."""
    if record.timestamp_ms is None:
        return False
    first = yield from inquiry.first_at_time(SOURCE, record.timestamp_ms)
    return first is not None and first.timestamp_ms == record.timestamp_ms


def _of_younger(inquiry: Inquiry, offset: int) -> Generator[Question, Answer, int]:
    """The lowest original of the first target record that is younger than a source record; -1 for
    none."""
    timestamp_ms = _timestamp_up_to(inquiry.evidence, offset)
    youngest = yield from inquiry.youngest(TARGET)
    if timestamp_ms is None or (youngest is not None and youngest.timestamp_ms <= timestamp_ms):
        return -1
    younger = yield from inquiry.first_at_time(TARGET, timestamp_ms + 1)
    return -1 if younger is None else (yield from _original_at(inquiry, younger.offset, offset))


def _of_first(inquiry: Inquiry, offset: int) -> Generator[Question, Answer, int]:
    copy = yield from first_copy(inquiry)
    if copy is Edge.UNKNOWN:
        raise _Unseen
    return inquiry.evidence.originals(copy)[0] if isinstance(copy, Record) else -1


def _original_at(
    inquiry: Inquiry, target_offset: int, above: int
) -> Generator[Question, Answer, int]:
    """The first original above a source offset of the next few data records from there on: what
    lies there may be a marker, or of others, or of a repeat. -1 where there is none, and outside
    the log: brokers keep timestamps of what was deleted."""
    target = inquiry.evidence.target
    if not target.start <= target_offset < target.end:
        return -1
    for _ in range(NEXT):
        copy = yield from inquiry.next_data(TARGET, target_offset, shared=True)
        if copy is Edge.UNKNOWN:
            raise _Unseen
        if not isinstance(copy, Record):
            break
        yield from inquiry.original_of(copy)
        original = min(inquiry.evidence.originals(copy), default=-1)
        if original > above:
            return original
        target_offset = copy.offset + 1
    return -1


def first_copy(inquiry: Inquiry) -> Generator[Question, Answer, Record | Edge]:
    """The first data record on the target that the source has, too; LOG_END where none of the
    first few is one, UNKNOWN where that was not seen."""
    at = inquiry.evidence.target.start
    for _ in range(NEXT):
        copy = yield from inquiry.next_data(TARGET, at, shared=True)
        if not isinstance(copy, Record):
            return copy
        original = yield from inquiry.original_of(copy)
        if isinstance(original, Record):
            return copy
        if original is Edge.UNKNOWN:
            return original
        at = copy.offset + 1  # of a record that the source has lost, or of others
    return Edge.LOG_END


# --- the highest record that is beyond doubt ----------------------------------------------


def _reached(inquiry: Inquiry, top: int) -> Generator[Question, Answer, Pair | None]:
    """F and f: the highest record up to `top` that is unmistakable, with its last copy before
    those of what could not be told above it."""
    evidence = inquiry.evidence
    before = evidence.target.end
    record: Record | Edge | None = evidence.source.at(top)
    for _ in range(BELOW_TOP):
        if not isinstance(record, Record):
            return None
        copies = [offset for offset in evidence.copies(record) if offset < before]
        if copies:
            copy = evidence.target.at(copies[-1])
            assert copy is not None
            if (yield from _unmistakable(inquiry, record, copy)):
                return _pair(record, copy)
            before = copies[-1]
        record = yield from inquiry.previous_data(SOURCE, record.offset, shared=True)
    return None


def _unmistakable(
    inquiry: Inquiry, record: Record, copy: Record
) -> Generator[Question, Answer, bool]:
    """True where no other source record can be what the copy is of."""
    evidence = inquiry.evidence
    if evidence.names(copy, record):
        return True
    if len(evidence.originals(copy)) > 1:
        return False
    if evidence.chain(record, copy, CHAIN):
        return True
    # The target may be the original, and have an equal record behind what was never copied.
    lowest: Record | Edge = copy
    if not evidence.is_remote_topic:
        lowest = yield from inquiry.locate(TARGET, record, evidence.copies, record.timestamp_ms)
    if lowest != copy:
        return False
    if record.timestamp_ms is not None:
        first = yield from inquiry.first_at_time(SOURCE, record.timestamp_ms)
        if first is not None and first.offset == record.offset:
            return True
    if (yield from _reads_as_a_chain(inquiry, record, copy)):
        return True
    source = evidence.source
    found = yield from inquiry.locate(
        SOURCE, record, lambda it: source.equals(source.identity(it)), record.timestamp_ms
    )
    return found == record


def _reads_as_a_chain(
    inquiry: Inquiry, record: Record, copy: Record
) -> Generator[Question, Answer, bool]:
    """Whether as many records in a row are equal on both sides, back from these."""
    before: Record | Edge = record
    copy_before: Record | Edge = copy
    for _ in range(CHAIN):
        if not (
            isinstance(before, Record)
            and isinstance(copy_before, Record)
            and inquiry.evidence.equal(before, copy_before)
        ):
            return False
        before = yield from inquiry.previous_data(SOURCE, before.offset, shared=True)
        copy_before = yield from inquiry.previous_data(TARGET, copy_before.offset, shared=True)
    return True


def _pair(record: Record, copy: Record) -> Pair:
    return Pair(record.offset, copy.offset, record.offset)
