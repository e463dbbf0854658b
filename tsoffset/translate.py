"""The rule: where a group that committed C on the source resumes on the target.

A position's translation is a conversation (`translate`): it asks, is sent the answers, and
returns an outcome. It reads top to bottom like docs/design.md section 1. *Timestamps say
where to look, content proves it*: KIP-1292's lookup finds candidates, and only a pair, a
source record and the target record that is its image, answers.

The safety rule behind every line: a target offset p is safe if every source record at or
after C that is on the target, now or later, is there at p or after.
"""

from collections.abc import Generator
from dataclasses import dataclass

from tsoffset import skips
from tsoffset.evidence import Answer, Edge, Evidence, Inquiry, Question
from tsoffset.log_view import Unanswered
from tsoffset.model import Isolation, Outcome, Precision, Reason, Side, Skipped, Translated
from tsoffset.nearest import Nearest
from tsoffset.pairs import Pair, Pairs
from tsoffset.records import Record
from tsoffset.walk import LONGEST_WALK, Reached, count, walk

SOURCE, TARGET = Side.SOURCE, Side.TARGET


@dataclass(frozen=True, slots=True)
class Translation:
    """The outcome for one position.

    `source_timestamp_ms` is that of the next record to read, or for a caught-up group of
    the last one before its commit; None where neither is known.
    """

    outcome: Outcome
    source_timestamp_ms: int | None = None


Talk = Generator[Question, Answer, Translation]
Look = Generator[Question, Answer, Translated | None]


def translate(offset: int, evidence: Evidence) -> Talk:
    """Find where a group that committed `offset` resumes on the target.

    Returns a Translation whose outcome is Translated, Skipped (with its reason) or Failed
    (a question could not be answered). Sends nothing, reads nothing: all I/O is the
    runner's.
    """
    position = _Position(offset, evidence)
    try:
        outcome = yield from position.translate()
    except Unanswered as unanswered:
        return Translation(unanswered.failed, position.timestamp_ms)
    if evidence.target.rewrites_timestamps:
        outcome = skips.rewritten(evidence.target.partition.topic)
    return Translation(outcome, position.timestamp_ms)


class _Unseen(Exception):
    """What must be seen before any pair may answer could not be read."""


class _Position:
    """The steps of one conversation, over what they share."""

    def __init__(self, offset: int, evidence: Evidence) -> None:
        self.offset = offset
        self.evidence = evidence
        self.ask = Inquiry(evidence)
        self.pairs = Pairs(self.ask)
        self.timestamp_ms: int | None = None
        self.previous: Record | Edge = Edge.UNKNOWN
        self._best: Translated | None = None

    def translate(self) -> Generator[Question, Answer, Outcome]:
        # Step 1. The target's end is read before the source's: what is on the target by
        # then was on the source before, so `at_log_end` can answer it.
        try:
            yield from self.ask.log_range(TARGET)
        except Unanswered as unanswered:
            if unanswered.failed.missing:
                return Skipped(Reason.TARGET_MISSING, unanswered.failed.message)
            raise
        source = yield from self.ask.log_range(SOURCE)
        if self.offset < source.start:
            return skips.expired(self.offset, source.start)
        log_end = source.end
        if self.evidence.isolation is Isolation.READ_COMMITTED:
            log_end = yield from self.ask.log_end(SOURCE)
        if self.offset > log_end:
            return skips.past_log_end(self.offset, log_end)

        # Step 2. The next record to read.
        following: Record | Edge = Edge.LOG_END
        if self.offset < source.end:
            following = yield from self.ask.next_data(SOURCE, self.offset)
        elif self.offset < log_end:
            following = Edge.UNKNOWN  # transactions that are still open count as data
        if isinstance(following, Record):
            self.timestamp_ms = following.timestamp_ms
        if self.evidence.settings.proof == "timestamps":
            return (yield from self._by_timestamp_alone(following))
        if following is Edge.LOG_END and source.end == log_end:
            return (yield from self._at_log_end())

        # Before any pair: what is left of a trimmed log may begin inside a repeat.
        if self.evidence.target.start > 0:
            try:
                reread_bound = yield from self._rereads_from_log_start()
            except _Unseen:
                return (yield from self._no_answer(following))
            if reread_bound is not None:
                return self._translated(self.evidence.target.start, reread_bound)

        for look in (
            self._at_a_known_frontier(),
            self._beside(following),
            self._at_the_frontier(),
            self._further_away(),
            self._from_both_starts(),
        ):
            if best := (yield from look):
                return best
        if self._best is None and (start := (yield from self._log_start())):
            return start
        return self._best or (yield from self._no_answer(following))

    # --- where pairs are looked for; each returns an answer that cannot become better --------

    def _beside(self, following: Record | Edge) -> Look:
        """Steps 3 to 5: R and the record before it, first where distances and lookups point, then
        by a scan. The record before is tried in between, for it costs two questions and a scan
        may cost megabytes."""
        for scan in (False, True):
            if isinstance(following, Record):
                pair = yield from self.pairs.pair_of(following, scan=scan)
                if pair is not None and (best := self._consider(self._resume_at(pair))):
                    return best
            if not scan:
                self.previous = yield from self.ask.previous_data(SOURCE, self.offset)
                if isinstance(self.previous, Record) and self.timestamp_ms is None:
                    known = following is not Edge.UNKNOWN
                    self.timestamp_ms = self.previous.timestamp_ms if known else None
            if best := (yield from self._behind_previous(scan=scan)):
                return best
        return None

    def _behind_previous(self, *, scan: bool) -> Look:
        if not isinstance(self.previous, Record):
            return None
        pair = yield from self.pairs.pair_of(self.previous, scan=scan)
        return None if pair is None else (yield from self._try_behind(pair))

    def _at_a_known_frontier(self) -> Look:
        """So far the mirror has come, as another position has found."""
        pair = self.evidence.frontier
        if pair is None or pair.source_offset >= self.offset:
            return None
        return (yield from self._try_behind(pair))

    def _at_the_frontier(self) -> Look:
        """Step 6: the last record on the target."""
        pair = yield from self.pairs.last_on_target()
        if pair is None or pair.source_offset >= self.offset:
            return None
        return (yield from self._try_behind(pair))

    def _further_away(self) -> Look:
        """Steps 6 to 8: pairs further below C, nearer and nearer ones."""
        nearest = Nearest(self.pairs, self.offset, self.timestamp_ms)
        while (pair := (yield from nearest.next_pair())) is not None:
            if best := (yield from self._try_behind(pair)):
                return best
        if self._best is not None:
            return None
        if isinstance(self.previous, Record):
            pair = yield from nearest.further_back(self.previous)
            return None if pair is None else (yield from self._try_behind(pair))
        if self.previous is Edge.UNKNOWN:
            # Many batches that compaction emptied: the partition pays for the way back.
            self.previous = yield from self.ask.previous_data(SOURCE, self.offset, scan=True)
            return (yield from self._behind_previous(scan=True))
        return None

    def _log_start(self) -> Look:
        """Compaction, too, can leave nothing of what lies before C, on either side."""
        try:
            reread_bound = yield from self._rereads_from_log_start()
        except _Unseen:
            reread_bound = None
        if reread_bound is None and self.previous is Edge.LOG_START:
            reread_bound = self.offset
        if reread_bound is None:
            reread_bound = self._between_start_and_pair()
        if reread_bound is None:
            return None
        return self._translated(self.evidence.target.start, reread_bound)

    # --- answers ------------------------------------------------------------------------

    def _resume_at(self, pair: Pair) -> Translated:
        """(R, q): everything from R on lies at q or after, for q is R's first image."""
        return self._translated(pair.target_offset, pair.source_offset - pair.earliest_equal)

    def _resume_behind(self, pair: Pair) -> Generator[Question, Answer, Translated]:
        """(o, q) with o < C: the replicator keeps order, so everything after o lies after q."""
        return self._answer((yield from walk(self.pairs, pair, self.offset)))

    def _answer(self, reached: Reached) -> Translated:
        if reached.exact:
            return self._translated(reached.target_offset, 0)
        reread_bound = self._most_data_between(reached.source_offset + 1, self.offset)
        end = self.evidence.target.end
        if reached.log_end and reached.target_offset <= end and not self.evidence.reverse:
            # Nothing lies between there and the end, so the end is as safe.
            return self._translated(end, reread_bound, Precision.FRONTIER)
        return self._translated(reached.target_offset, reread_bound)

    def _try_behind(self, pair: Pair) -> Look:
        return self._consider((yield from self._resume_behind(pair)))

    def _from_both_starts(self) -> Look:
        """From where both logs begin, as if from a pair: for equal records near there.

        What is left of a trimmed log may begin with repeats, so there only counting tells.
        """
        source, target = self.evidence.source, self.evidence.target
        if self.evidence.by_header or self.offset - source.start > LONGEST_WALK:
            return None
        beginning = Pair(source.start - 1, target.start - 1, source.start - 1)
        if target.start > 0:
            reached = yield from count(self.pairs, beginning, self.offset)
        else:
            reached = yield from walk(self.pairs, beginning, self.offset)
        if reached.target_offset == target.start:
            return None
        return self._consider(self._answer(reached))

    def _between_start_and_pair(self) -> int | None:
        """How many records are known to lie between the target's log start and a pair at C or
        above. First images lie in order: from the start on, no more than that comes again."""
        target = self.evidence.target
        above = self.evidence.pairs.above(self.offset - 1)
        if above is None or target.covered_to(target.start) < above.target_offset:
            return None
        return target.count_known(target.start, above.target_offset)

    def _consider(self, answer: Translated) -> Translated | None:
        """Keep the answer with the fewest re-reads; returned if there is no better one."""
        best = self._best
        if best is None or (answer.reread_bound or 0) < (best.reread_bound or 0):
            self._best = answer
        return answer if answer.precision in (Precision.EXACT, Precision.FRONTIER) else None

    def _at_log_end(self) -> Generator[Question, Answer, Outcome]:
        """No data record from C on: all there was to copy lies before C, so the target's end
        as it was before is safe; what comes later is copied behind it."""
        last = yield from self.ask.previous_data(SOURCE, self.offset)
        if isinstance(last, Record):
            self.timestamp_ms = last.timestamp_ms
        pair, complete = None, False
        if isinstance(last, Record):
            if not self.evidence.reverse:
                pair = yield from self.pairs.ends.both(last)
                complete = pair is not None
            for scan in (False, True):
                if pair is None:
                    pair = yield from self.pairs.pair_of(last, scan=scan)
        target = self.evidence.target
        # A name that is the same on both sides does not tell which is the mirror: records may
        # lie at the target's end that the source never had (failback under Identity).
        may_be_end = not self.evidence.reverse and (
            self.evidence.remote_name or complete or target.start == target.end
        )
        if not may_be_end:
            if pair is None and not self.evidence.reverse:
                pair = yield from self.pairs.last_on_target()
            if pair is not None:
                return (yield from self._resume_behind(pair))
            self.previous = last
            return (yield from self._no_answer(Edge.LOG_END))
        if last is Edge.LOG_START:
            return self._translated(target.end, 0)
        if pair is not None:
            # The mirror may have gone on since the end was read: what follows the last record
            # before C follows its copy.
            at = max(target.end, pair.target_offset + 1)
            return self._translated(at, pair.source_offset - pair.earliest_equal)
        frontier = yield from self.pairs.last_on_target()
        lowest = self.evidence.source.start if frontier is None else frontier.earliest_equal + 1
        return self._translated(
            target.end, self._most_data_between(lowest, self.offset), Precision.FRONTIER
        )

    def _by_timestamp_alone(self, following: Record | Edge) -> Generator[Question, Answer, Outcome]:
        """KIP-1292 as written: the record's timestamp, looked up; nothing is proven."""
        if not isinstance(following, Record):
            return Skipped(
                Reason.NO_PROOF,
                "no record at the committed offset to look up by time; "
                "translation.proof = content answers for groups that are caught up",
            )
        if following.timestamp_ms is None:
            return skips.no_timestamp(self.evidence.source.partition, self.offset)
        found = yield from self.ask.first_at_time(TARGET, following.timestamp_ms)
        if found is None:
            return Skipped(
                Reason.NO_PROOF,
                "the target has no record at or after the timestamp; it may come with the next "
                "cycle, or use translation.proof = content",
            )
        offset = found.offset
        return Translated(offset, Precision.UNPROVEN, None, offset, offset)

    def _translated(
        self, target_offset: int, reread_bound: int, precision: Precision | None = None
    ) -> Translated:
        if precision is None:
            precision = Precision.EXACT if reread_bound == 0 else Precision.BOUNDED
        target = self.evidence.target
        before = target.previous_known(target_offset)
        at_or_after = target.next_known(target_offset)
        return Translated(
            target_offset,
            precision,
            reread_bound,
            target.covered_from(target_offset) if before is None else before.offset + 1,
            target.covered_to(target_offset) if at_or_after is None else at_or_after.offset,
        )

    def _most_data_between(self, start: int, end: int) -> int:
        """At most so many data records lie in [start, end) on the source."""
        source = self.evidence.source
        if source.covered_to(start) >= end:
            return source.count_known(start, end)
        return max(0, end - start)

    def _rereads_from_log_start(self) -> Generator[Question, Answer, int | None]:
        """The bound for the target's log start, where what is left of the log begins with a copy
        of a source record >= C, or may do so; None where it is seen not to, or not seen.

        The start is always safe: what stays undecided costs re-reads only. What follows the
        first record cannot decide for it, for that may be a repeat already. Raises _Unseen
        where the budget does not allow a look: no pair may answer then.
        """
        source, target = self.evidence.source, self.evidence.target
        copy = yield from self.pairs.ends.beginning()
        if copy is Edge.UNKNOWN:
            raise _Unseen
        if not isinstance(copy, Record):
            return None
        equals = tuple(source.equals(target.identity(copy)))
        if equals[-1] < self.offset:
            return None
        original = source.at(equals[0])
        assert original is not None
        if (
            target.next_known(target.start) == copy
            and equals[0] >= self.offset
            and (yield from self.pairs.twins.earliest_equal(original, copy)) >= self.offset
        ):
            return 0
        # Some of what is left may be copies of records before C.
        return self._most_data_between(source.start, self.offset)

    # --- no answer ----------------------------------------------------------------------

    def _no_answer(self, following: Record | Edge) -> Generator[Question, Answer, Skipped]:
        stamps = [r.timestamp_ms for r in (following, self.previous) if isinstance(r, Record)]
        if stamps and all(stamp is None for stamp in stamps):
            return skips.no_timestamp(self.evidence.source.partition, self.offset)
        target = self.evidence.target
        last = yield from self.ask.previous_data(TARGET, target.end)
        behind = last is Edge.LOG_START or (
            isinstance(last, Record)
            and last.timestamp_ms is not None
            and any(stamp is not None and last.timestamp_ms < stamp for stamp in stamps)
        )
        if behind:
            return skips.not_mirrored(self.evidence.source.partition, self.offset)
        return skips.no_proof(self.evidence.source.partition, self.offset, self.ask.obstacle)
