"""Answers at the target's log start, if no pair of a record before C was found.

The log start is always safe: nothing lies before it. This module counts the re-reads.
"""

from collections.abc import Generator

from tsoffset.model import Basis, Side, Translated
from tsoffset.records import Record
from tsoffset.rule.answers import make_answer
from tsoffset.rule.duplicates import earliest_equal
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.mirror_restart import first_copied_after, first_copied_behind, first_copy
from tsoffset.rule.pairs import Pair
from tsoffset.rule.search import pair_of

TARGET = Side.TARGET

# The number of target records that are tried, from where C should be.
_TRIES = 6

Finding = Generator[Question, Answer, Translated | None]


def before_first_copy(inquiry: Inquiry, offset: int) -> Finding:
    """The log start, if the target has no copy of a record before C: its first data record that the
    source has is a copy of one from C on. Retention and compaction leave such logs. None
    otherwise."""
    evidence = inquiry.evidence
    target = evidence.target
    if evidence.failback or target.start == target.end:
        return None
    copy = yield from first_copy(inquiry)
    if not isinstance(copy, Record):
        return None
    first = evidence.originals(copy)[0]
    if first < offset:
        return None
    bound = yield from first_copied_after(inquiry, offset, copy)
    original = evidence.source.at(first)
    assert original is not None
    earliest = yield from earliest_equal(inquiry, original, copy)
    bound += evidence.most_data_between(earliest, offset)
    pair = Pair(first, copy.offset, first)
    return make_answer(evidence, target.start, bound, Basis.LOG_START, pair)


def up_to_a_pair(inquiry: Inquiry, offset: int, timestamp_ms: int | None) -> Finding:
    """The log start, if a pair of a record from C on lies near it: the records that the group has
    read were copied between the two. None if there is no such pair."""
    evidence, target = inquiry.evidence, inquiry.evidence.target
    if evidence.failback:
        return None
    pair = yield from _pair_above(inquiry, offset, timestamp_ms)
    if pair is None:
        return None
    while (known_to := target.covered_to(target.start)) < pair.target_offset:
        if not (yield from inquiry.read(TARGET, known_to, 65_536, shared=True)):
            return None
    bound = target.count_known(target.start, pair.target_offset)
    bound += evidence.most_data_between(pair.earliest_equal, offset)
    bound += yield from first_copied_behind(inquiry, offset, pair)
    return make_answer(evidence, target.start, bound, Basis.LOG_START, pair)


def _pair_above(
    inquiry: Inquiry, offset: int, timestamp_ms: int | None
) -> Generator[Question, Answer, Pair | None]:
    """A pair of a record from C on, among the first target records from the lookup of R's time
    on."""
    first = None
    if timestamp_ms is not None:
        first = yield from inquiry.first_at_time(TARGET, timestamp_ms)
    at = inquiry.evidence.target.start if first is None else first.offset
    for _ in range(_TRIES):
        copy = yield from inquiry.next_data(TARGET, at, shared=True)
        if not isinstance(copy, Record):
            return None
        original = yield from inquiry.original_of(copy)
        if isinstance(original, Record) and original.offset >= offset:
            pair = yield from pair_of(inquiry, original)
            if pair is not None:
                return pair
        at = copy.offset + 1
    return None
