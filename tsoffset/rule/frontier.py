"""The frontier: how far the mirror has come, for logs of which no lower record tells.

The highest source record with a copy on the target has a safe pair whatever else is there: nothing
that follows it lies on the target, and what comes is written behind the log's end. With it, and the
last of its copies, every copy before that is safe (`tsoffset.rule.proof.passed`):

    source   0 1 2 3 4 5 6 7 8 9                    the highest is 9
    target   0 1 2 3 4 5 6 7 8 9 | 3 4 5            the log ends inside a repeat: its copy is at 9
                       ^ C=5: this 5 answers, the one in the repeat (behind 9) does not

That nothing higher lies on the target is proven: the source is read from there to its end, and the
target from where the oldest of these would lie. Where that is more than the partition may read,
there is no frontier, and nothing is concluded.
"""

from collections.abc import Generator

from tsoffset.model import Proof, Safety, Side
from tsoffset.records import Record
from tsoffset.rule.evidence import Last, Pair
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.log_view import Absent, Found, Unknown
from tsoffset.rule.older_records import older_before, read_to_the_end

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# How many target records that the source is not seen to have are passed at the end of the log, and
# how far below the top of the mirror a record that is unmistakable is sought.
FOREIGN = 16
BELOW_TOP = 64


def find_frontier(inquiry: Inquiry) -> Generator[Question, Answer, None]:
    """Have the partition's frontier among its safe pairs, if it can be proven; sought once and paid
    by the partition."""
    evidence = inquiry.evidence
    # The usual case: the mirror is complete, nothing can lie above.
    if (yield from last_of_both(inquiry)) is not None or evidence.frontier_sought:
        return
    last = yield from last_copy(inquiry)
    if isinstance(last, Last):
        top = yield from _highest_on_target(inquiry, last.lowest)
        pair = None if top is None else (yield from _reached(inquiry, top))
        if not evidence.frontier_sought:
            _take_in(inquiry, pair)
    evidence.frontier_sought = True


def last_of_both(inquiry: Inquiry) -> Generator[Question, Answer, Pair | None]:
    """The pair of the source's last record, where the last one on the target that the source has is
    its copy beyond doubt: found once a partition, and one of its safe pairs."""
    evidence = inquiry.evidence
    if not evidence.ends_sought:
        end = yield from inquiry.previous_data(SOURCE, evidence.source.end, shared=True)
        last = yield from last_copy(inquiry)
        pair = None
        if isinstance(end, Record) and isinstance(last, Last):
            copy = evidence.target.at(last.target_offset)
            assert copy is not None
            if evidence.equal(end, copy) and (yield from _unmistakable(inquiry, end, copy)):
                pair = _pair(end, copy)
        if not evidence.ends_sought:
            evidence.ends_sought, evidence.ends = True, pair
            _take_in(inquiry, pair)
    return evidence.ends


def _take_in(inquiry: Inquiry, pair: Pair | None) -> None:
    if pair is not None:
        inquiry.evidence.add_safe(pair)
        inquiry.evidence.prove(pair)


def last_copy(inquiry: Inquiry) -> Generator[Question, Answer, Last | Absent | Unknown]:
    """The last data record on the target that the source is seen to have, too; Absent where the
    target holds no data."""
    evidence = inquiry.evidence
    if evidence.last is None:
        found = yield from _last_copy(inquiry)
        evidence.last = evidence.last or found
    return evidence.last


def _last_copy(inquiry: Inquiry) -> Generator[Question, Answer, Last | Absent | Unknown]:
    evidence = inquiry.evidence
    end = at = evidence.target.end
    for _ in range(FOREIGN):
        copy = yield from inquiry.previous_data(TARGET, at, shared=True)
        if isinstance(copy, Unknown):
            return copy
        if isinstance(copy, Absent):
            return copy if at == end else Unknown.NOT_FOUND
        yield from inquiry.original_of(copy)
        if originals := evidence.originals(copy):
            return Last(originals[0], originals[-1], copy.offset, at == end)
        at = copy.offset
    return Unknown.NOT_FOUND


def _highest_on_target(inquiry: Inquiry, above: int) -> Generator[Question, Answer, int | None]:
    """The highest source record above one whose content is on the target; that one itself where
    none is. None where that is not known."""
    evidence = inquiry.evidence
    source, target = evidence.source, evidence.target
    if not (yield from read_to_the_end(inquiry, above + 1)):
        return None
    oldest = source.oldest_from(above + 1)
    if oldest is None:
        return None
    start = yield from older_before(inquiry, oldest)
    if not (yield from inquiry.read_whole(TARGET, start, target.end)):
        return None
    highest = above
    for copy in target.known(start, target.end):
        if equals := source.equals(target.identity(copy)):
            highest = max(highest, equals[-1])
        elif evidence.may_be_of(copy, above + 1):
            return None
    return highest


def _reached(inquiry: Inquiry, top: int) -> Generator[Question, Answer, Pair | None]:
    """The highest record up to `top` that is unmistakable, with its last copy before those of what
    could not be told above it."""
    evidence = inquiry.evidence
    before = evidence.target.end
    record: Found | None = evidence.source.at(top)
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
    # The target may be the original, and have an equal record behind what was never copied.
    if not evidence.is_remote_topic:
        lowest = yield from inquiry.locate(TARGET, record, evidence.copies, record.timestamp_ms)
        if lowest != copy:
            return False
    if record.timestamp_ms is not None:
        first = yield from inquiry.first_at_time(SOURCE, record.timestamp_ms)
        if first is not None and first.offset == record.offset:
            return True
    source = evidence.source
    found = yield from inquiry.locate(
        SOURCE, record, lambda it: source.equals(source.identity(it)), record.timestamp_ms
    )
    return found == record


def _pair(record: Record, copy: Record) -> Pair:
    safety = Safety(Proof.FRONTIER, (record.offset, copy.offset))
    return Pair(record.offset, copy.offset, record.offset, safety)
