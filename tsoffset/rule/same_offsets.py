"""Mirrors that keep offsets (`translation.expect = same-offsets`): an offset translates to itself.

Cluster Mirroring (KIP-1279) and Cluster Linking promise: the source record at offset o is at o on
the target, or not there at all. So everything that follows C on the source lies at or after C on
the target. C, limited to the target's log, is safe: no pair or frontier is needed, and duplicates
do not matter.

A promise is not a proof. It breaks if one side's log loses its end and gets new records, after an
unclean election or a truncation, or if the replicator does not keep offsets after all:

    source   a b c d X Y Z        the source lost e to h, and got new records
    target   a b c d e f g h      its mirror did not: from 4 on these are copies of lost records
                 ^ C=2            ^ C=6 would resume at a record that the source does not have

So records at equal offsets are compared first: the nearest that both logs have on either side of C,
and the last that both have, which a lost end changes first. If any of these differ, the partition
has diverged, and none of its offsets is translated. C=2 above would be safe, but the promise does
not hold there. Offsets that only one log has (compaction, shorter retention, aborted records) say
nothing and are passed over.

Not noticed: if the replicator copies again at equal offsets behind a diverged part, the logs are
equal at C and at the end. Source records in that part were overwritten before they were copied:
they are nowhere on the target, and no offset skips them.
"""

from collections.abc import Generator

from tsoffset.model import Basis, Outcome, Precision, Side
from tsoffset.records import Record
from tsoffset.rule import reasons
from tsoffset.rule.answers import make_answer
from tsoffset.rule.evidence import SharedOffset
from tsoffset.rule.found import Absent, Unknown
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.pairs import Pair

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# The most offsets that only one of the logs has, passed over in one search.
_STEPS = 500

_Shared = Generator[Question, Answer, SharedOffset | Absent | Unknown]


def translate_to_itself(inquiry: Inquiry, offset: int) -> Generator[Question, Answer, Outcome]:
    """Where a group that committed `offset` resumes: there, or at the nearest end of the target's
    log.

    Skipped as DIVERGED if records at one offset differ, and as NO_PROOF if none could be compared.
    Both log ranges are known.
    """
    evidence = inquiry.evidence
    source, target = evidence.source.partition, evidence.target
    at = min(max(offset, target.start), target.end)
    found: list[SharedOffset | Absent | Unknown] = []
    for look in (_last_shared(inquiry), _shared_before(inquiry, at), _shared_from(inquiry, at)):
        one = yield from look
        if isinstance(one, SharedOffset) and not one.equal:
            if evidence.target_rewrites_timestamps:
                return reasons.rewritten(target.partition.topic)
            first = yield from _first_difference(inquiry, one.offset)
            return reasons.diverged(source, first, target.partition)
        found.append(one)
    compared = [
        Pair(one.offset, one.offset, one.offset) if isinstance(one, SharedOffset) else None
        for one in found
    ]
    if Unknown.NOT_READ in found or not (
        any(compared) or (yield from _one_has_no_records(inquiry))
    ):
        return reasons.nothing_compared(source, offset, inquiry.obstacle)
    neighbors = [pair for pair in compared[1:] if pair is not None]
    for pair in neighbors:
        evidence.prove(pair)
    if offset == at:
        return make_answer(evidence, at, 0, Basis.SAME_OFFSET, *neighbors)
    if offset < at:
        return make_answer(evidence, at, 0, Basis.LOG_START, *neighbors)
    if at == 0:
        return reasons.not_mirrored(source, offset)
    bound = evidence.most_data_between(at, offset)
    precision = Precision.FRONTIER if bound else None
    return make_answer(evidence, at, bound, Basis.MIRROR_END, *neighbors, precision=precision)


def _last_shared(inquiry: Inquiry) -> _Shared:
    """The last offset at which both logs have a record; found once, at the partition's expense."""
    evidence = inquiry.evidence
    if evidence.last_shared is None:
        end = min(evidence.source.end, evidence.target.end)
        found = yield from _shared_before(inquiry, end, shared=True)
        if not isinstance(found, SharedOffset):
            return found
        evidence.last_shared = found
    return evidence.last_shared


def _first_difference(inquiry: Inquiry, differing: int) -> Generator[Question, Answer, int]:
    """The first offset at which records differ, found by bisection: a log loses its end.
    `differing` is an offset where they differ. Found once, at the partition's expense, for the
    message."""
    evidence = inquiry.evidence
    if evidence.first_difference is None:
        low, end = max(evidence.source.start, evidence.target.start), differing
        while low < end:
            middle = (low + end) // 2
            found = yield from _shared_from(inquiry, middle, shared=True)
            if isinstance(found, Unknown):
                break
            if isinstance(found, SharedOffset) and found.offset < end and found.equal:
                low = found.offset + 1
                continue
            if isinstance(found, SharedOffset) and found.offset < end:
                differing = found.offset
            end = middle
        evidence.first_difference = differing
    return evidence.first_difference


def _shared_before(inquiry: Inquiry, offset: int, *, shared: bool = False) -> _Shared:
    """The last offset before this one at which both logs have a record."""
    for _ in range(_STEPS):
        one = yield from inquiry.previous_data(SOURCE, offset, shared=shared)
        other = yield from inquiry.previous_data(TARGET, offset, shared=shared)
        if not (isinstance(one, Record) and isinstance(other, Record)):
            return Absent.LOG_START if Absent.LOG_START in (one, other) else Unknown.NOT_READ
        if one.offset == other.offset:
            return SharedOffset(one.offset, inquiry.evidence.equal(one, other))
        offset = min(one.offset, other.offset) + 1
    return Unknown.NOT_READ


def _shared_from(inquiry: Inquiry, offset: int, *, shared: bool = False) -> _Shared:
    """The first offset from this one on at which both logs have a record."""
    offset = max(offset, inquiry.evidence.source.start, inquiry.evidence.target.start)
    for _ in range(_STEPS):
        one = yield from inquiry.next_data(SOURCE, offset, shared=shared)
        other = yield from inquiry.next_data(TARGET, offset, shared=shared)
        if not (isinstance(one, Record) and isinstance(other, Record)):
            return Absent.LOG_END if Absent.LOG_END in (one, other) else Unknown.NOT_READ
        if one.offset == other.offset:
            return SharedOffset(one.offset, inquiry.evidence.equal(one, other))
        offset = max(one.offset, other.offset)
    return Unknown.NOT_READ


def _one_has_no_records(inquiry: Inquiry) -> Generator[Question, Answer, bool]:
    """Whether one of the logs is known to hold no record. Then no record can differ: the target has
    nothing of the source, or the source has nothing that follows the committed offset."""
    for side in Side:
        end = inquiry.evidence.view(side).end
        if (yield from inquiry.previous_data(side, end, shared=True)) is Absent.LOG_START:
            return True
    return False
