"""The frontier: the highest safe pair of a log.

The highest source record with a copy on the target has a safe pair, whatever else is on the target:
no later source record is there, and new copies are written behind the log's end. That pair and its
last copy show every copy before to be safe (`tsoffset.rule.proof.passed`):

    source   0 1 2 3 4 5 6 7 8 9                    the highest is 9
    target   0 1 2 3 4 5 6 7 8 9 | 3 4 5            the log ends inside a repeat: its copy is at 9
                       ^ C=5: the first 5 is safe, the one in the repeat (behind 9) is not

That nothing higher is on the target is proven: the source is read from the highest record to its
end, and the target from where the oldest of these records would lie. If that exceeds the
partition's budget, there is no frontier, and nothing is concluded.
"""

from collections.abc import Generator

from tsoffset.model import Proof, Safety, Side
from tsoffset.records import Record
from tsoffset.rule.evidence import Last
from tsoffset.rule.found import Absent, Found, Unknown
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.older_records import older_before, read_to_the_end
from tsoffset.rule.pairs import Pair

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# The number of target records without a known original that are passed over at the end of the log,
# and of source records below the highest one that are tried until one has no duplicate.
FOREIGN = 16
BELOW_TOP = 64


def find_frontier(inquiry: Inquiry) -> Generator[Question, Answer, None]:
    """Add the partition's frontier to its safe pairs, if it can be proven; once a partition, at its
    expense."""
    evidence = inquiry.evidence
    # The usual case: the mirror is complete, so nothing can lie above.
    if (yield from last_of_both(inquiry)) is not None or evidence.frontier_sought:
        return
    last = yield from last_copy(inquiry)
    if isinstance(last, Last):
        top = yield from _highest_on_target(inquiry, last.lowest)
        pair = None if top is None else (yield from _highest_without_duplicate(inquiry, top))
        if not evidence.frontier_sought:
            _add_safe(inquiry, pair)
    evidence.frontier_sought = True


def last_of_both(inquiry: Inquiry) -> Generator[Question, Answer, Pair | None]:
    """The pair of the source's last record, if its copy is the last target record that the source
    has and it has no duplicate. Found once a partition, and added to its safe pairs."""
    evidence = inquiry.evidence
    if not evidence.ends_sought:
        end = yield from inquiry.previous_data(SOURCE, evidence.source.end, shared=True)
        last = yield from last_copy(inquiry)
        pair = None
        if isinstance(end, Record) and isinstance(last, Last):
            # It may have been dropped since `last` was found, to limit memory.
            copy = yield from inquiry.next_data(TARGET, last.target_offset, shared=True)
            if (
                isinstance(copy, Record)
                and evidence.equal(end, copy)
                and (yield from _has_no_duplicate(inquiry, end, copy))
            ):
                pair = _pair(end, copy)
        if not evidence.ends_sought:
            evidence.ends_sought, evidence.ends = True, pair
            _add_safe(inquiry, pair)
    return evidence.ends


def _add_safe(inquiry: Inquiry, pair: Pair | None) -> None:
    if pair is not None:
        inquiry.evidence.add_safe(pair)
        inquiry.evidence.prove(pair)


def last_copy(inquiry: Inquiry) -> Generator[Question, Answer, Last | Absent | Unknown]:
    """The last data record on the target that the source is known to have; Absent if the target has
    no data."""
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
    """The highest source record above `above` whose content is on the target, or `above` itself.
    None if that is not known."""
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
    for copy in target.known_records(start, target.end):
        if equals := source.equals(target.identity(copy)):
            highest = max(highest, equals[-1])
        elif evidence.may_be_of(copy, above + 1):
            return None
    return highest


def _highest_without_duplicate(
    inquiry: Inquiry, top: int
) -> Generator[Question, Answer, Pair | None]:
    """The highest record up to `top` without a duplicate, with its last copy before the copies of
    the records passed over."""
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
            if (yield from _has_no_duplicate(inquiry, record, copy)):
                return _pair(record, copy)
            before = copies[-1]
        record = yield from inquiry.previous_data(SOURCE, record.offset, shared=True)
    return None


def _has_no_duplicate(
    inquiry: Inquiry, record: Record, copy: Record
) -> Generator[Question, Answer, bool]:
    """True if the copy can be of no other source record."""
    evidence = inquiry.evidence
    if evidence.names(copy, record):
        return True
    if len(evidence.originals(copy)) > 1:
        return False
    # The target may be the original, and have a duplicate behind records that were never copied.
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
