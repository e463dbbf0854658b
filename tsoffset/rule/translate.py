"""Where a group that committed C on the source resumes on the target: one generator per source
offset.

It yields questions, is sent the answers, and returns an outcome; its steps are those of
docs/design.md section 1. *Timestamps say where to look, content proves it*: KIP-1292's lookup finds
candidates, and only a pair, a source record and the target record that is its copy, is an answer.

The safety rule behind every line: a target offset p is safe if every source record at or after C
that is on the target, now or later, has a copy at p or after.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import partial

from tsoffset.model import (
    Basis,
    Isolation,
    Outcome,
    Precision,
    Reason,
    Safety,
    Side,
    Skipped,
    Translated,
)
from tsoffset.records import Record
from tsoffset.rule import reasons
from tsoffset.rule.answers import make_answer, with_more
from tsoffset.rule.evidence import Evidence, Last
from tsoffset.rule.found import Absent, Found, Unanswered, Unknown
from tsoffset.rule.from_log_start import before_first_copy, up_to_a_pair
from tsoffset.rule.frontier import last_copy, last_of_both
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.mirror_end import at_mirror_end, ends_as_a_mirror, highest_seen
from tsoffset.rule.mirror_restart import first_copied_behind, still_to_come
from tsoffset.rule.pairs import Pair
from tsoffset.rule.proof import by_time
from tsoffset.rule.same_offsets import translate_to_itself
from tsoffset.rule.search import NearerPairs, pair_of, seen_copy
from tsoffset.rule.walk import LONGEST_WALK, Reached, count, walk

SOURCE, TARGET = Side.SOURCE, Side.TARGET


@dataclass(frozen=True, slots=True)
class Translation:
    """The outcome for one source offset.

    `source_timestamp_ms` is that of the next record to read, or for a caught-up group of the last
    one before its committed offset; None if neither is known.
    """

    outcome: Outcome
    source_timestamp_ms: int | None = None


TranslationGenerator = Generator[Question, Answer, Translation]
Attempt = Generator[Question, Answer, Translated | None]


def translate(offset: int, evidence: Evidence) -> TranslationGenerator:
    """Find where a group that committed `offset` resumes on the target.

    Returns a Translation whose outcome is Translated, Skipped (with its reason) or Failed (a
    question could not be answered). It does no I/O: the caller answers its questions.
    """
    position = _OffsetTranslation(offset, evidence)
    try:
        outcome = yield from position.translate()
    except Unanswered as unanswered:
        return Translation(unanswered.failed, position.timestamp_ms)
    if evidence.target_rewrites_timestamps:
        outcome = reasons.rewritten(evidence.target.partition.topic)
    return Translation(outcome, position.timestamp_ms)


class _OffsetTranslation:
    """The steps for one source offset, with the state that they share."""

    def __init__(self, offset: int, evidence: Evidence) -> None:
        self.offset = offset
        self.evidence = evidence
        self.inquiry = Inquiry(evidence)
        self.timestamp_ms: int | None = None
        self.log_end: int  # The source's end, open transactions included; read by step 1.
        self.following: Found = Absent.LOG_END
        self.previous: Found = Unknown.NOT_READ
        self._best: Translated | None = None
        self._make_answer = partial(make_answer, evidence)
        self._at_mirror_end = partial(at_mirror_end, self.inquiry, offset)

    def translate(self) -> Generator[Question, Answer, Outcome]:
        """The steps of the design in their order."""
        refused = yield from self._read_log_ranges()
        if refused is not None:
            return refused
        yield from self._read_following()
        if self.evidence.keeps_offsets:
            return (yield from self._to_itself())
        if self.evidence.settings.proof == "timestamps":
            return (yield from self._by_timestamp_alone())
        attempts: tuple[Attempt, ...] = (
            self._at_log_end(),
            self._from_trimmed_start(),
            self._at_next(),
            self._past_the_mirror(),
            self._behind_previous(),
            self._further_away(),
            self._by_scans(),
            self._from_both_starts(),
            self._without_a_pair_below(),
        )
        for attempt in attempts:
            if best := (yield from attempt):
                return best
        return self._best or (yield from self._no_answer())

    def _read_log_ranges(self) -> Generator[Question, Answer, Skipped | None]:
        """Step 1: why there can be no answer, or None. The target's end is read before the
        source's: every record on the target by then was on the source before, so `_at_log_end` can
        answer with it."""
        try:
            yield from self.inquiry.log_range(TARGET)
        except Unanswered as unanswered:
            if unanswered.failed.missing:
                return Skipped(Reason.TARGET_MISSING, unanswered.failed.message)
            raise
        source = yield from self.inquiry.log_range(SOURCE)
        if self.offset < source.start:
            return reasons.expired(self.offset, source.start)
        self.log_end = source.end
        if self.evidence.isolation is Isolation.READ_COMMITTED:
            self.log_end = yield from self.inquiry.log_end(SOURCE)
        if self.offset > self.log_end:
            return reasons.past_log_end(self.offset, self.log_end)
        return None

    def _read_following(self) -> Generator[Question, Answer, None]:
        """Step 2: R, the next record to read."""
        if self.offset < self.evidence.source.end:
            self.following = yield from self.inquiry.next_data(SOURCE, self.offset)
        elif self.offset < self.log_end:
            self.following = Unknown.NOT_READ  # open transactions count as data
        if isinstance(self.following, Record):
            self.timestamp_ms = self.following.timestamp_ms

    def _to_itself(self) -> Generator[Question, Answer, Outcome]:
        outcome = yield from translate_to_itself(self.inquiry, self.offset)
        last = self.evidence.source.previous_known(self.offset)
        if self.following is Absent.LOG_END and last is not None:
            self.timestamp_ms = last.timestamp_ms
        return outcome

    # --- where the whole log answers ----------------------------------------------------

    def _at_log_end(self) -> Attempt:
        """No data record from C on: everything that was copied lies before C, so the target's end
        as it was read before is safe; later records are copied behind it."""
        if self.following is not Absent.LOG_END or self.evidence.source.end != self.log_end:
            return None
        last = yield from self.inquiry.previous_data(SOURCE, self.offset)
        self.previous = last
        if isinstance(last, Record):
            self.timestamp_ms = last.timestamp_ms
        if not (yield from ends_as_a_mirror(self.inquiry)):
            return None
        target = self.evidence.target
        if last is Absent.LOG_START:
            return self._make_answer(target.end, 0, Basis.ALL_READ)
        end = yield from last_copy(self.inquiry)
        if end is Unknown.NOT_FOUND or (isinstance(end, Last) and not end.is_last):
            # The target ends with records that the source does not have: another producer's, or
            # records that the answering source broker lacks, since it is cut off from its cluster.
            best = (yield from self._behind_previous()) or (yield from self._further_away())
            if best := best or self._best:
                return best
        if isinstance(last, Record) and (pair := (yield from seen_copy(self.inquiry, last))):
            # The mirror may have continued since the end was read: the records after the last one
            # before C follow its copy.
            at = max(target.end, pair.target_offset + 1)
            bound = pair.source_offset - pair.earliest_equal
            bound += yield from still_to_come(self.inquiry, self.offset)
            return self._make_answer(at, bound, Basis.ALL_READ, pair)
        return (yield from self._at_mirror_end(Basis.ALL_READ))

    def _past_the_mirror(self) -> Attempt:
        """The highest record found on the target, if it is before C: the mirror may not have
        reached C. A walk passes the records behind its copy."""
        evidence, target = self.evidence, self.evidence.target
        if evidence.failback:
            return None
        last = yield from last_copy(self.inquiry)
        if isinstance(last, Absent):
            # Retention has emptied it, or nothing was ever mirrored.
            known = evidence.is_remote_topic or target.start == target.end
            emptied = target.end > 0 and known
            return (yield from self._at_mirror_end(Basis.MIRROR_END)) if emptied else None
        if not isinstance(last, Last):
            return None  # nothing shows that this is a mirror that keeps timestamps
        highest = (yield from highest_seen(self.inquiry, last)).highest
        if highest >= self.offset:
            # The mirror has passed C. If both logs end alike, that predicts where R lies.
            ends = yield from last_of_both(self.inquiry)
            return None if ends is None else (yield from self._at_next())
        for at in dict.fromkeys((highest, last.lowest)):
            record = evidence.source.at(at)
            pair = None if record is None else (yield from pair_of(self.inquiry, record))
            if pair is not None and (best := (yield from self._resume_behind(pair))):
                return best
        if evidence.is_remote_topic:
            safety = yield from by_time(self.inquiry, self.offset, target.end)
            if safety is not None:
                return (yield from self._at_mirror_end(Basis.MIRROR_END, safety))
        return None

    def _from_trimmed_start(self) -> Attempt:
        """The target's log start, tried before any pair: a trimmed target may begin with a copy of
        a record from C on."""
        return (yield from self._before_first_copy()) if self.evidence.target.start > 0 else None

    def _before_first_copy(self) -> Attempt:
        answer = yield from before_first_copy(self.inquiry, self.offset)
        if answer is None:
            return None
        target = self.evidence.target
        first = target.next_known(target.start)
        # Copies of expired records may precede it.
        begins = first is not None and first.offset == answer.pairs[0][1]
        best = self._consider(answer)
        return best if begins else None

    def _without_a_pair_below(self) -> Attempt:
        """The target's log start, which is always safe, if no pair of a record before C was
        found."""
        if self._best is None:
            yield from self._before_first_copy()
        before_c = self.previous is not Absent.LOG_START
        if self._best is None and before_c:
            answer = yield from up_to_a_pair(self.inquiry, self.offset, self.timestamp_ms)
            if answer is not None:
                self._consider(answer)
        target, is_mirror = self.evidence.target, self.evidence.is_remote_topic
        near = is_mirror and self.offset <= LONGEST_WALK and target.end > 0
        if self._best is None and (near or not before_c):
            # At most every record that ever was before C is re-read: the target may still hold
            # records that the source has lost.
            self._consider(self._make_answer(target.start, self.offset, Basis.LOG_START))
        return self._best

    # --- searches for pairs; each returns an answer that cannot become better ------------

    def _at_next(self) -> Attempt:
        """Step 4: the copy of R, where distances and lookups point."""
        if isinstance(self.following, Record):
            pair = yield from pair_of(self.inquiry, self.following)
            if pair is not None:
                return (yield from self._resume_at(pair))
        return None

    def _behind_previous(self) -> Attempt:
        """Step 6: the same for the record before R."""
        self.previous = yield from self.inquiry.previous_data(SOURCE, self.offset)
        if isinstance(self.previous, Record):
            if self.timestamp_ms is None and not isinstance(self.following, Unknown):
                self.timestamp_ms = self.previous.timestamp_ms
            pair = yield from pair_of(self.inquiry, self.previous)
            if pair is not None:
                return (yield from self._resume_behind(pair))
        return None

    def _further_away(self) -> Attempt:
        """Step 7: pairs further below C, each nearer than the last."""
        nearest = NearerPairs(self.inquiry, self.offset, self.timestamp_ms)
        while (pair := (yield from nearest.next_pair())) is not None:
            if best := (yield from self._resume_behind(pair)):
                return best
        if self._best is None and isinstance(self.previous, Record):
            pair = yield from nearest.further_back(self.previous)
            if pair is not None:
                return (yield from self._resume_behind(pair))
        return None

    def _by_scans(self) -> Attempt:
        """Records that distances and lookups did not find, by scans, which may cost megabytes."""
        if isinstance(self.following, Record):
            pair = yield from pair_of(self.inquiry, self.following, scan=True)
            if pair is not None and (best := (yield from self._resume_at(pair))):
                return best
        if self._best is not None:
            return None
        if isinstance(self.previous, Unknown):
            # Compaction may have emptied many batches: the partition's budget pays for the way
            # back.
            self.previous = yield from self.inquiry.previous_data(SOURCE, self.offset, shared=True)
        if isinstance(self.previous, Record):
            pair = yield from pair_of(self.inquiry, self.previous, scan=True)
            if pair is not None:
                return (yield from self._resume_behind(pair))
        return None

    def _from_both_starts(self) -> Attempt:
        """Counting from the beginnings of both logs, as from a pair: for duplicates near the
        beginning."""
        source, target = self.evidence.source, self.evidence.target
        if self.offset - source.start > LONGEST_WALK:
            return None
        beginning = Pair(source.start - 1, target.start - 1, source.start - 1)
        reached = yield from count(self.inquiry, beginning, self.offset)
        if not reached.exact:
            return None
        # The beginning is no record: the pair that the count ended at shows the answer.
        return self._consider(self._answer(replace(reached, pairs=reached.pairs[1:])))

    # --- answers ------------------------------------------------------------------------

    def _resume_at(self, pair: Pair) -> Attempt:
        """(R, q): everything from R on lies at q or after. If the source may be the replica, the
        target may have records before q that the group has not read there: compaction or retention
        has removed them from the replica, or it never got them."""
        # Offsets without data before the copy resume at the same record (`equivalent_from`).
        before = yield from self.inquiry.previous_data(TARGET, pair.target_offset)
        if not self.evidence.is_remote_topic and before is not Absent.LOG_START:
            at_next = pair.source_offset == self.offset
            if not (at_next and (yield from self._may_have_read(before))):
                return None
        bound = pair.source_offset - pair.earliest_equal
        bound += yield from first_copied_behind(self.inquiry, self.offset, pair)
        return self._consider(self._make_answer(pair.target_offset, bound, Basis.NEXT_RECORD, pair))

    def _may_have_read(self, before: Found) -> Generator[Question, Answer, bool]:
        """Whether the source has, or may have had, a record before C that equals this target
        record: if names do not tell the direction, compaction may have removed it right before
        C."""
        if not isinstance(before, Record):
            return False
        yield from self.inquiry.original_of(before)
        if any(offset < self.offset for offset in self.evidence.originals(before)):
            return True
        previous = yield from self.inquiry.previous_data(SOURCE, self.offset)
        is_gap = isinstance(previous, Record) and previous.offset < self.offset - 1
        return is_gap and not self.evidence.failback

    def _resume_behind(self, pair: Pair) -> Attempt:
        """(o, q) with o < C: everything after o lies behind q."""
        answer = self._answer((yield from walk(self.inquiry, pair, self.offset)), pair.safety)
        if answer.precision is Precision.FRONTIER:
            more = yield from still_to_come(self.inquiry, self.offset)
        else:
            more = yield from first_copied_behind(self.inquiry, self.offset, pair)
        return self._consider(with_more(answer, more))

    def _answer(self, reached: Reached, safety: Safety | None = None) -> Translated:
        at, pairs = reached.target_offset, reached.pairs
        answer = partial(self._make_answer, safety=safety)
        if reached.exact:
            return answer(at, 0, Basis.BETWEEN, *pairs)
        reread_bound = self.evidence.most_data_between(reached.source_offset + 1, self.offset)
        end = self.evidence.target.end
        if reached.log_end and at <= end and not self.evidence.failback:
            # Nothing lies between that offset and the end, so the end is as safe.
            precision = Precision.FRONTIER
            return answer(end, reread_bound, Basis.MIRROR_END, *pairs, precision=precision)
        decided = self.offset <= self.evidence.source.end  # an undecided record may still come
        last = self.previous if decided else None
        if isinstance(last, Record) and reached.source_offset >= last.offset:
            return answer(at, 0, Basis.BEHIND, *pairs)
        return answer(at, reread_bound, Basis.BEHIND, *pairs)

    def _consider(self, answer: Translated) -> Translated | None:
        """Keep the answer with the fewest re-reads. Returns it if no better one is possible. None
        if it lies behind the last known copy of R."""
        if isinstance(self.following, Record):
            copies = self.evidence.copies(self.following)
            if copies and copies[-1] < answer.target_offset:
                return None
        best = self._best
        if best is None or (answer.reread_bound or 0) < (best.reread_bound or 0):
            self._best = answer
        return answer if answer.precision in (Precision.EXACT, Precision.FRONTIER) else None

    # --- without a proof, or without an answer ------------------------------------------

    def _by_timestamp_alone(self) -> Generator[Question, Answer, Outcome]:
        """KIP-1292 as written: the record's timestamp, looked up; nothing is proven."""
        if not isinstance(self.following, Record):
            return Skipped(
                Reason.NO_PROOF,
                "the source has no record at the committed offset, and so no timestamp to look up; "
                "translation.proof = content also translates groups that are caught up",
            )
        if self.following.timestamp_ms is None:
            return reasons.no_timestamp(self.evidence.source.partition, self.offset)
        found = yield from self.inquiry.first_at_time(TARGET, self.following.timestamp_ms)
        if found is None:
            return Skipped(
                Reason.NO_PROOF,
                "the target has no record with this timestamp or a later one; wait for the next "
                "cycle, or use translation.proof = content",
            )
        at = found.offset
        # One read a partition shows whether the target sets timestamps itself.
        yield from self.inquiry.reach(TARGET, at)
        return Translated(at, Precision.UNPROVEN, None, at, at, Basis.TIMESTAMP)

    def _no_answer(self) -> Generator[Question, Answer, Skipped]:
        near = (self.following, self.previous)
        stamps = [record.timestamp_ms for record in near if isinstance(record, Record)]
        offset = self.evidence.source.partition, self.offset
        if stamps and all(stamp is None for stamp in stamps):
            return reasons.no_timestamp(*offset)
        if (yield from last_copy(self.inquiry)) is Absent.LOG_START:
            return reasons.not_mirrored(*offset)
        return reasons.no_proof(*offset, self.inquiry.obstacle)
