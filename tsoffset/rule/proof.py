"""The proofs: what shows that a target offset skips nothing (docs/design.md section 1).

A record pair (o, q) is *safe* if everything that follows o on the source, now or later, lies behind
q on the target. No proof rests on something not being found:

* **By time** (`by_time`): the source is known from o to its end, and what lies before q on the
  target is older than all of that, or was read and equals none of it. Holds for any replicator.
* **By first copy** (`by_first_copy`): q is the lowest copy left of o, the target's log begins at or
  before o, and nothing on it was compacted. Whoever wrote something above o had to step over o
  first, and wrote a copy of it then.
* **By the frontier** (`passed`): a higher record has a safe pair (o', q'), and q lies before q'. To
  get from o to o' the replicator passed all that lies between, after it wrote q.

Any of them allows an answer. That q is a copy of o and not of a later equal record is another
question: `tsoffset.rule.duplicates`.
"""

from collections.abc import Generator

from tsoffset.model import Proof, Safety, Side
from tsoffset.records import Record
from tsoffset.rule.beginning import find_beginning
from tsoffset.rule.duplicates import earliest_equal, in_place, no_later_duplicate
from tsoffset.rule.evidence import Beginning, Evidence, Pair
from tsoffset.rule.frontier import find_frontier, last_of_both
from tsoffset.rule.inquiry import LITTLE_BYTES, Answer, Inquiry, Question
from tsoffset.rule.log_view import Unknown
from tsoffset.rule.older_records import older_before, read_to_the_end

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# The most target records that are compared for a proof by time.
MOST_COMPARED = 4_096

Proving = Generator[Question, Answer, Safety | None]


def prove(
    inquiry: Inquiry, record: Record, copy: Record
) -> Generator[Question, Answer, Pair | None]:
    """The safe pair of a source record and a target record that equals it; None where it is not
    proven to be one."""
    evidence = inquiry.evidence
    if not evidence.equal(record, copy):
        return None
    by_another = passed(evidence, record.offset, copy.offset)
    if by_another is None and evidence.is_remote_topic and not evidence.safe:
        # Mostly both logs end alike: that shows all below to be safe, for the price of two reads.
        yield from last_of_both(inquiry)
        by_another = passed(evidence, record.offset, copy.offset)
    timed = None
    if by_another is None:
        timed = yield from told_by_time(inquiry, record, copy)
    told_apart = timed is not None or (
        (yield from no_later_duplicate(inquiry, record, copy))
        and (yield from in_place(inquiry, record, copy))
    )
    if not told_apart and by_another is not None:
        told_apart = (yield from told_by_time(inquiry, record, copy)) is not None
    if not told_apart:
        return None
    safety = by_another or timed
    if safety is None:
        safety = yield from safety_of(inquiry, record, copy)
    if safety is None:
        return None
    earliest = yield from earliest_equal(inquiry, record, copy)
    pair = Pair(record.offset, copy.offset, earliest, safety)
    evidence.prove(pair)
    if safety.proof is not Proof.FRONTIER:
        surely = yield from earliest_equal(inquiry, record, copy, surely=True)
        # By time nothing is known of what lies between an earlier equal record and this one.
        if safety.proof is Proof.FIRST_COPY or surely == record.offset:
            evidence.add_safe(Pair(record.offset, copy.offset, surely, safety))
    return pair


def safety_of(inquiry: Inquiry, record: Record, copy: Record) -> Proving:
    """What shows that all that follows a record lies behind its copy, by the proofs that cost
    questions, the cheapest first; None where none does."""
    evidence = inquiry.evidence
    safety = yield from by_first_copy(inquiry, record, copy)
    if safety is None and not evidence.failback:
        yield from find_frontier(inquiry)
        safety = passed(evidence, record.offset, copy.offset)
    if safety is None and (yield from read_to_the_end(inquiry, record.offset + 1)):
        safety = yield from _timed(inquiry, record, copy, read=True)
    return safety


def told_by_time(inquiry: Inquiry, record: Record, copy: Record) -> Proving:
    """As `_timed`, which also shows that the copy is no later record's. Not where the source may be
    the replica: what that does not have bears no timestamps there."""
    if not inquiry.evidence.is_remote_topic:
        return None
    return (yield from _timed(inquiry, record, copy))


def _timed(inquiry: Inquiry, record: Record, copy: Record, *, read: bool = False) -> Proving:
    """By time, that what follows a record lies behind its copy."""
    return (yield from by_time(inquiry, record.offset + 1, copy.offset + 1, read=read))


def passed(evidence: Evidence, source_offset: int, target_offset: int) -> Safety | None:
    """The proof by the frontier, with the safe pairs that are known.

    Forwards a higher pair shows it: between q and q' the replicator went from o to o', so it passed
    all of (o, o'] behind q, and what follows o' lies behind q'. A copy between the two that
    compaction took was taken for a later record of its key.

    In failback the target is the original, and a lower pair shows it: between (o', q') and (o, q)
    the replicator passed all of the original's records between q' and q, so the group has read
    them. Where names do not tell which side is the mirror, both are needed.
    """
    above = evidence.safe_above(source_offset, target_offset)
    below = evidence.safe_below(source_offset)
    if below is not None and below.target_offset >= target_offset:
        below = None
    if evidence.is_remote_topic:
        pair = above
    elif evidence.failback:
        pair = below
    else:
        pair = above if below is not None else None
    if pair is None:
        return None
    return Safety(Proof.FRONTIER, (pair.source_offset, pair.target_offset))


def passed_between(evidence: Evidence, lowest: Pair, highest: Pair) -> bool:
    """Whether `passed` shows every copy between those of two pairs to be safe."""
    above = evidence.safe_above(highest.source_offset, highest.target_offset)
    below = evidence.safe_below(lowest.source_offset + 1)
    from_below = below is not None and below.target_offset <= lowest.target_offset
    if evidence.failback:
        return from_below
    return above is not None and (evidence.is_remote_topic or from_below)


def by_time(inquiry: Inquiry, offset: int, limit: int, *, read: bool = False) -> Proving:
    """The proof that no copy of a source record from `offset` on lies before `limit` on the target.

    A copy bears its record's timestamp. So none lies before the target's answer to a lookup of the
    oldest timestamp from `offset` on; and of what lies between there and `limit` each record was
    read, and is a copy of none of these. The answer holds up to the target's end, which was read
    before the source's: what was written meanwhile lies behind it. With `read` the target is read
    for it; without, only what is known counts.
    """
    evidence = inquiry.evidence
    source, target = evidence.source, evidence.target
    oldest = source.oldest_from(offset)
    if oldest is None or limit > target.end:
        return None
    start = yield from older_before(inquiry, oldest)
    if limit - start > MOST_COMPARED:
        return None
    if start < limit and target.covered_to(start) < limit:
        known = read and (yield from inquiry.read_whole(TARGET, start, limit))
        if not known:
            return None
    if any(evidence.may_be_of(copy, offset) for copy in target.known(start, limit)):
        return None
    stamp = None if oldest.untimed else oldest.timestamp_ms
    return Safety(Proof.TIME, None, offset, oldest.records, stamp, limit)


def by_first_copy(inquiry: Inquiry, record: Record, copy: Record) -> Proving:
    """The proof that everything above a record lies behind its lowest copy left.

    The log begins with a copy of a record at or below this one, so the replicator stood there when
    it wrote that. It went on one by one or jumped back: before it wrote anything above the record
    it passed the record itself, and wrote a copy of it, which is still there (retention takes only
    what lies before the first record left). Any safe pair of a lower record serves as well: what
    follows that lies behind its copy, and the log from there on begins with it.

    In failback the target's own first record is what counts: where the replica has it before this
    record, the replicator passed all of the original from there to here in between, so the group
    has read it.
    """
    evidence = inquiry.evidence
    if not (evidence.not_compacted or evidence.failback):
        return None
    earliest = record.offset
    if not evidence.failback:
        earliest = yield from earliest_equal(inquiry, record, copy, surely=True)
    beginning: Beginning | Unknown | None = _begun_by_a_pair(evidence, earliest)
    if beginning is None:
        beginning = yield from find_beginning(inquiry)
    if isinstance(beginning, Beginning) and (
        copy.offset - beginning.target_offset > record.offset - beginning.source_offset
    ):
        # More offsets than on the source: something was repeated, or the log begins elsewhere.
        beginning = yield from find_beginning(inquiry, surely=True)
    if not isinstance(beginning, Beginning):
        return None
    if beginning.source_offset > earliest or beginning.target_offset > copy.offset:
        return None
    if beginning.oldest_ms is not None and not (
        yield from _none_is_older(inquiry, record.offset, beginning.oldest_ms)
    ):
        return None
    if evidence.failback:
        if evidence.copies(record)[0] != copy.offset:
            return None
    elif not (yield from _is_lowest(inquiry, copy, beginning.target_offset)):
        return None
    return Safety(Proof.FIRST_COPY, (beginning.source_offset, beginning.target_offset))


def _begun_by_a_pair(evidence: Evidence, source_offset: int) -> Beginning | None:
    """The log from the highest safe pair below a source offset on. Where the source may be the
    replica a pair that was proven by time is none for good, nor what rests on it."""
    below = evidence.safe_below(source_offset)
    if below is None or not (
        evidence.is_remote_topic
        or (below.safety is not None and below.safety.proof is Proof.FIRST_COPY)
    ):
        return None
    return Beginning(below.source_offset, below.target_offset)


def _none_is_older(
    inquiry: Inquiry, offset: int, timestamp_ms: int
) -> Generator[Question, Answer, bool]:
    """Whether no source record from an offset on may lie before a target lookup of a time: none is
    older, and none is without a timestamp. As far as is known or a read or two tell; where the
    source goes on for longer it is assumed."""
    yield from read_to_the_end(inquiry, offset, most_bytes=LITTLE_BYTES)
    return inquiry.evidence.source.none_known_is_older(offset, timestamp_ms)


def _is_lowest(inquiry: Inquiry, copy: Record, beginning: int) -> Generator[Question, Answer, bool]:
    """Whether nothing between where the log begins and a copy equals it: what lies before the
    lookup of its timestamp is older, and the rest was read. False, too, where retention has moved
    the log's start past that beginning meanwhile: it may have taken a lower copy."""
    target = inquiry.evidence.target
    start = beginning
    if copy.timestamp_ms is not None:
        first = yield from inquiry.first_at_time(TARGET, copy.timestamp_ms)
        if first is None:
            return False
        start = max(start, first.offset)
    if not (yield from inquiry.read_whole(TARGET, start, copy.offset)):
        return False
    if any(start <= offset < copy.offset for offset in target.equals(target.identity(copy))):
        return False
    return (yield from inquiry.log_start_now()) <= beginning
