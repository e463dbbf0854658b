"""The target offset before which everything is older than given source records."""

from collections.abc import Generator

from tsoffset.model import Side
from tsoffset.rule.inquiry import LITTLE_BYTES, Answer, Inquiry, Question
from tsoffset.rule.log_view import Oldest

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# The first step back from the source's end, in offsets.
FIRST_STEP = 1_000


def read_to_the_end(
    inquiry: Inquiry, offset: int, *, most_bytes: int | None = None
) -> Generator[Question, Answer, bool]:
    """Read the source from `offset` to its end, backwards, once for the whole partition and at its
    expense. False if that exceeds the partition's budget, or `most_bytes`."""
    evidence = inquiry.evidence
    source = evidence.source
    step = FIRST_STEP
    while (known_from := source.covered_from(source.end)) > offset:
        at = max(offset, known_from - step)
        while (known_to := source.covered_to(at)) < known_from:
            if not evidence.fits(SOURCE, known_from - offset, most_bytes):
                return False
            if not (yield from inquiry.read(SOURCE, known_to, LITTLE_BYTES, shared=True)):
                return False
        step *= 2
    return True


def older_before(inquiry: Inquiry, oldest: Oldest) -> Generator[Question, Answer, int]:
    """The target offset before which everything is older than these source records.

    A lookup that answers an offset is right: all segments before hold older records (docs/design.md
    has an exception in tiered storage). A lookup without an answer proves nothing by itself: the
    broker searches only the first segment whose largest timestamp reaches the time, and compaction,
    or a log start in mid-segment, may have removed the record there. So the target's youngest
    record must be older, too. A record without a timestamp is found by no lookup.
    """
    evidence = inquiry.evidence
    target = evidence.target
    if oldest.records == 0:
        return target.end
    if oldest.untimed or oldest.timestamp_ms is None:
        return target.start
    first = yield from inquiry.first_at_time(TARGET, oldest.timestamp_ms)
    if first is not None:
        return min(first.offset, target.end)
    youngest = yield from inquiry.youngest(TARGET)
    is_older = youngest is not None and youngest.timestamp_ms < oldest.timestamp_ms
    return target.end if is_older else target.start
