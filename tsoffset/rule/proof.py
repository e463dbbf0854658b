"""The proofs that a target offset skips nothing (docs/design.md section 1).

A record pair (o, q) is *safe* if everything that follows o on the source, now or later, lies behind
q on the target. No proof concludes anything from a record that was not found.

* **By time** (`by_time`): the source is known from o to its end. Every target record before q is
  older than all of these records, or was read and equals none of them. Holds for any replicator.
* **By first copy** (`by_first_copy`): q is the lowest copy of o left, the target's log begins at or
  before o, and the topic is not compacted. Before the replicator wrote a record above o, it passed
  o and wrote a copy of it.
* **By the frontier** (`passed`): a higher record has a safe pair (o', q'), and q lies before q'. To
  get from o to o', the replicator passed everything in between, after it wrote q.

Each of them is sufficient. Whether q is a copy of o or of a later duplicate is a separate question:
`tsoffset.rule.duplicates`.
"""

from collections.abc import Generator

from tsoffset.model import Proof, Safety, Side
from tsoffset.records import Record
from tsoffset.rule.beginning import find_beginning
from tsoffset.rule.duplicates import earliest_equal, in_place, no_later_duplicate
from tsoffset.rule.evidence import Beginning, Evidence
from tsoffset.rule.found import Unknown
from tsoffset.rule.frontier import find_frontier, last_of_both
from tsoffset.rule.inquiry import LITTLE_BYTES, Answer, Inquiry, Question
from tsoffset.rule.older_records import older_before, read_to_the_end
from tsoffset.rule.pairs import Pair

SOURCE, TARGET = Side.SOURCE, Side.TARGET

# The most target records that are compared for a proof by time.
MOST_COMPARED = 4_096

Proving = Generator[Question, Answer, Safety | None]


def prove(
    inquiry: Inquiry, record: Record, copy: Record
) -> Generator[Question, Answer, Pair | None]:
    """The safe pair of a source record and an equal target record; None if it cannot be proven."""
    evidence = inquiry.evidence
    if not evidence.equal(record, copy):
        return None
    by_another = by_frontier(evidence, record.offset, copy.offset)
    if by_another is None and evidence.is_remote_topic and not evidence.safe:
        # Most logs end with the same record: that pair shows everything below to be safe, for two
        # reads.
        yield from last_of_both(inquiry)
        by_another = by_frontier(evidence, record.offset, copy.offset)
    timed = None
    if by_another is None:
        timed = yield from time_tells_apart(inquiry, record, copy)
    distinguished = timed is not None or (
        (yield from no_later_duplicate(inquiry, record, copy))
        and (yield from in_place(inquiry, record, copy))
    )
    if not distinguished and by_another is not None:
        distinguished = (yield from time_tells_apart(inquiry, record, copy)) is not None
    if not distinguished:
        return None
    safety = by_another or timed
    if safety is None:
        safety = yield from prove_safety(inquiry, record, copy)
    if safety is None:
        return None
    earliest = yield from earliest_equal(inquiry, record, copy)
    pair = Pair(record.offset, copy.offset, earliest, safety)
    evidence.prove(pair)
    if safety.proof is not Proof.FRONTIER:
        surely = yield from earliest_equal(inquiry, record, copy, surely=True)
        # Time says nothing of the records between an earlier duplicate and this one.
        if safety.proof is Proof.FIRST_COPY or surely == record.offset:
            evidence.add_safe(Pair(record.offset, copy.offset, surely, safety))
    return pair


def prove_safety(inquiry: Inquiry, record: Record, copy: Record) -> Proving:
    """Prove that everything after a record lies behind its copy, by the proofs that ask questions,
    the cheapest first."""
    evidence = inquiry.evidence
    safety = yield from by_first_copy(inquiry, record, copy)
    if safety is None and not evidence.failback:
        yield from find_frontier(inquiry)
        safety = by_frontier(evidence, record.offset, copy.offset)
    if safety is None and (yield from read_to_the_end(inquiry, record.offset + 1)):
        safety = yield from _safe_by_time(inquiry, record, copy, read=True)
    return safety


def time_tells_apart(inquiry: Inquiry, record: Record, copy: Record) -> Proving:
    """The proof by time, which also shows that the copy is of no later duplicate. None if the
    source may be the replica: time says nothing of records that the replica does not have."""
    if not inquiry.evidence.is_remote_topic:
        return None
    return (yield from _safe_by_time(inquiry, record, copy))


def _safe_by_time(inquiry: Inquiry, record: Record, copy: Record, *, read: bool = False) -> Proving:
    """The proof by time that everything after a record lies behind its copy."""
    return (yield from by_time(inquiry, record.offset + 1, copy.offset + 1, read=read))


def by_frontier(evidence: Evidence, source_offset: int, target_offset: int) -> Safety | None:
    """The proof by the frontier, from the safe pairs that are known.

    Normally a higher pair is needed: between q and q' the replicator went from o to o', so it
    passed all of (o, o'] behind q, and everything after o' lies behind q'. Compaction removes a
    copy between the two only if a later record of its key exists.

    In failback the target is the original, and a lower pair is needed: between (o', q') and (o, q)
    the replicator passed all of the original's records between q' and q, so the group has read
    them. If names do not tell which side is the mirror, both are needed.
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

    A copy has its record's timestamp. So no copy lies before the target's answer to a lookup of the
    oldest timestamp from `offset` on. Each record between that answer and `limit` was read, and is
    a copy of none of these. The target's end was read before the source's: later records lie behind
    it. With `read`, the target is read for this; without, only known records count.
    """
    evidence = inquiry.evidence
    source, target = evidence.source, evidence.target
    oldest = source.oldest_from(offset)
    if oldest is None or limit > target.end:
        return None
    if evidence.failback and (yield from inquiry.log_end(SOURCE)) > source.end:
        return None  # an open transaction on the replica may have copies of records before `limit`
    start = yield from older_before(inquiry, oldest)
    if limit - start > MOST_COMPARED:
        return None
    if start < limit and target.covered_to(start) < limit:
        known = read and (yield from inquiry.read_whole(TARGET, start, limit))
        if not known:
            return None
    at, highest = evidence.in_the_way
    if start <= at < limit and offset <= highest:
        return None
    since, first, end = evidence.compared
    if offset < since or not first <= start <= end:
        end = start
    for copy in target.known_records(end, limit):
        if evidence.may_be_of(copy, offset):
            if equals := source.equals(target.identity(copy)):
                evidence.in_the_way = copy.offset, equals[-1]
            return None
    evidence.compared = offset, start, max(end, limit)
    stamp = None if oldest.untimed else oldest.timestamp_ms
    return Safety(Proof.TIME, None, offset, oldest.records, stamp, limit)


def by_first_copy(inquiry: Inquiry, record: Record, copy: Record) -> Proving:
    """The proof that everything above a record lies behind its lowest copy left.

    The log begins with a copy of a record at or below this one, so the replicator was there when it
    wrote that copy. It went on one by one or jumped back. Before it wrote anything above the record
    it passed the record itself, and wrote a copy of it. That copy still exists: retention removes
    only records before the first one left. A safe pair of a lower record serves as a beginning as
    well: everything after that record lies behind its copy.

    In failback the target's own first record counts. If the replica has it before this record, the
    replicator passed everything on the original between the two, so the group has read it.
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
        # More offsets than on the source: records were repeated, or the log begins elsewhere.
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
    """The highest safe pair below a source offset, as a beginning of the log. If the source may be
    the replica, a pair that rests on time does not count: it holds only now."""
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
    """True if no source record from `offset` on is older or has no timestamp: then none has a copy
    before the target's lookup of this time. Only one or two reads are made; further records are
    assumed to be younger."""
    yield from read_to_the_end(inquiry, offset, most_bytes=LITTLE_BYTES)
    return inquiry.evidence.source.none_known_is_older(offset, timestamp_ms)


def _is_lowest(inquiry: Inquiry, copy: Record, beginning: int) -> Generator[Question, Answer, bool]:
    """Whether no equal record lies between the beginning of the log and the copy: records before
    the lookup of its timestamp are older, and the rest was read. Also false if retention has moved
    the log's start past the beginning meanwhile: it may have removed a lower copy."""
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
