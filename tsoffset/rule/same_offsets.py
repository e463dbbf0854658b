"""Mirrors that keep offsets (`translation.expect = same-offsets`): a commit translates to itself.

Cluster Mirroring (KIP-1279), Cluster Linking and their like promise: what the source has at offset
o the target has at o, or not at all. So all that follows C on the source lies on the target at C
or after it, and C, brought within the target's log, is safe: there is no pair to look for, no
frontier, and no twin that could be taken for the record.

A promise is not a proof. It breaks where one side's log loses its end and is written on, after an
unclean election or a truncation, or where the replicator keeps no offsets after all:

    source   a b c d X Y Z        the source lost e to h, and went on
    target   a b c d e f g h      its mirror did not: from 4 on it is a copy of nothing
                 ^ C=2            ^ C=6 would resume at a record that the source never gave anybody

So nothing is answered before records at equal offsets were seen to be equal: the nearest that both
logs have on either side of C, and the last that both have, which a lost end changes first. Where
any of these differ the partition has diverged, and no commit of it is translated: not that of C=2
either, which would be safe, for the promise itself is what does not hold there. Offsets that only
one log has (compaction, shorter retention, aborted records) tell nothing and are passed.

What this does not see: a log that diverged, and that the replicator copies again at equal offsets
behind that, is equal at C and at the end. Records of the source that lie between were overwritten
by others before they were copied: they are nowhere on the target, and no offset skips them.
"""

from collections.abc import Generator

from tsoffset.model import Basis, Outcome, Precision, Side
from tsoffset.records import Record
from tsoffset.rule import reasons
from tsoffset.rule.answers import translated
from tsoffset.rule.evidence import Pair, SharedOffset
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.log_view import Absent, Unknown

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# So many offsets that only one of the logs has are passed.
_LOOKS = 500

_Shared = Generator[Question, Answer, SharedOffset | Absent | Unknown]


def translate_to_itself(inquiry: Inquiry, offset: int) -> Generator[Question, Answer, Outcome]:
    """Where a group that committed `offset` resumes: there, or at the nearest end of the target's
    log. Skipped as DIVERGED where records at one offset differ, and as NO_PROOF where none could
    be compared. Both log ranges are known."""
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
    beside = [pair for pair in compared[1:] if pair is not None]
    for pair in beside:
        evidence.prove(pair)
    if offset == at:
        return translated(evidence, at, 0, Basis.SAME_OFFSET, *beside)
    if offset < at:
        return translated(evidence, at, 0, Basis.LOG_START, *beside)
    if at == 0:
        return reasons.not_mirrored(source, offset)
    bound = evidence.most_data_between(at, offset)
    precision = Precision.FRONTIER if bound else None
    return translated(evidence, at, bound, Basis.MIRROR_END, *beside, precision=precision)


def _last_shared(inquiry: Inquiry) -> _Shared:
    """The last offset at which both logs have a record; found once, and paid by the partition."""
    evidence = inquiry.evidence
    if evidence.last_shared is None:
        end = min(evidence.source.end, evidence.target.end)
        found = yield from _shared_before(inquiry, end, shared=True)
        if not isinstance(found, SharedOffset):
            return found
        evidence.last_shared = found
    return evidence.last_shared


def _first_difference(inquiry: Inquiry, differing: int) -> Generator[Question, Answer, int]:
    """The first offset at which records differ, at or before one where they do, by halving: what a
    log has lost is its end. Found once, and paid by the partition, for whoever has to repair it."""
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
    for _ in range(_LOOKS):
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
    for _ in range(_LOOKS):
        one = yield from inquiry.next_data(SOURCE, offset, shared=shared)
        other = yield from inquiry.next_data(TARGET, offset, shared=shared)
        if not (isinstance(one, Record) and isinstance(other, Record)):
            return Absent.LOG_END if Absent.LOG_END in (one, other) else Unknown.NOT_READ
        if one.offset == other.offset:
            return SharedOffset(one.offset, inquiry.evidence.equal(one, other))
        offset = max(one.offset, other.offset)
    return Unknown.NOT_READ


def _one_has_no_records(inquiry: Inquiry) -> Generator[Question, Answer, bool]:
    """Whether one of the logs is seen to hold no record: then none can differ, and either nothing
    of the source is on the target, or nothing that follows a commit is on the source."""
    for side in Side:
        end = inquiry.evidence.view(side).end
        if (yield from inquiry.previous_data(side, end, shared=True)) is Absent.LOG_START:
            return True
    return False
