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

from tsoffset.evidence import (
    GROWING_READ_BYTES,
    Answer,
    Edge,
    Evidence,
    Inquiry,
    Question,
    Unanswered,
)
from tsoffset.model import (
    Isolation,
    Outcome,
    Precision,
    Reason,
    Record,
    Side,
    Skipped,
    TimedOffset,
    Translated,
)

SOURCE, TARGET = Side.SOURCE, Side.TARGET


@dataclass(frozen=True, slots=True)
class Translation:
    """The outcome for one position.

    `source_timestamp_ms` is that of the next record to read, or for a caught-up group of
    the last one before its commit; None where neither is known.
    """

    outcome: Outcome
    source_timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """The target record at `target_offset` is the first image of the source record.

    `earliest_equal` is the lowest source offset whose image it may be instead: lower than
    `source_offset` where an equal record stands before it. That costs re-reads, never safety.
    """

    source_offset: int
    target_offset: int
    earliest_equal: int


Talk = Generator[Question, Answer, Translation]


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
        outcome = rewritten(evidence.target.partition.topic)
    return Translation(outcome, position.timestamp_ms)


def rewritten(target_topic: str) -> Skipped:
    """The skip of a topic whose target stamps records itself."""
    return Skipped(
        Reason.TARGET_REWRITES_TIMESTAMPS,
        f"the target stamps the records of {target_topic} itself; set message.timestamp.type="
        "CreateTime on it and mirror it anew",
    )


class _Position:
    """The steps of one conversation, over what they share."""

    def __init__(self, offset: int, evidence: Evidence) -> None:
        self.offset = offset
        self.evidence = evidence
        self.ask = Inquiry(evidence)
        self.timestamp_ms: int | None = None

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
            return self._skip_expired(source.start)
        log_end = source.end
        if self.evidence.isolation is Isolation.READ_COMMITTED:
            log_end = yield from self.ask.log_end(SOURCE)
        if self.offset > log_end:
            return self._skip_past_log_end(log_end)

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
        if (yield from self._begins_at_or_after()):
            return self._translated(self.evidence.target.start, 0)

        # Steps 4 and 5: first where the lookup points, then by a scan. The record before
        # is tried in between, for it costs two questions and a scan may cost megabytes.
        if isinstance(following, Record):
            pair = yield from self._pair_of(following)
            if pair is not None:
                return self._resume_at(pair)
        previous = yield from self.ask.previous_data(SOURCE, self.offset)
        if isinstance(previous, Record):
            if self.timestamp_ms is None and following is not Edge.UNKNOWN:
                self.timestamp_ms = previous.timestamp_ms
            pair = yield from self._pair_of(previous)
            if pair is not None:
                return (yield from self._resume_behind(pair))
        if isinstance(following, Record):
            pair = yield from self._pair_of(following, scan=True)
            if pair is not None:
                return self._resume_at(pair)
        if isinstance(previous, Record):
            pair = yield from self._pair_of(previous, scan=True)
            if pair is not None:
                return (yield from self._resume_behind(pair))

        # Steps 6 and 8: how far the mirror has come, and pairs further back.
        frontier = yield from self._last_pair_on_target()
        if frontier is not None and frontier.source_offset < self.offset:
            return (yield from self._resume_behind(frontier))
        if isinstance(previous, Record):
            pair = yield from self._pair_further_back(previous)
            if pair is not None:
                return (yield from self._resume_behind(pair))
        return (yield from self._no_answer(following, previous))

    # --- answers ------------------------------------------------------------------------

    def _resume_at(self, pair: Pair) -> Translated:
        """(R, q): everything from R on lies at q or after, for q is R's first image."""
        return self._translated(pair.target_offset, pair.source_offset - pair.earliest_equal)

    def _resume_behind(self, pair: Pair) -> Generator[Question, Answer, Outcome]:
        """(o, q) with o < C: the replicator keeps order, so everything after o lies after q."""
        between = self._most_data_between(pair.source_offset + 1, self.offset)
        reread_bound = between + pair.source_offset - pair.earliest_equal
        after = yield from self.ask.next_data(TARGET, pair.target_offset + 1)
        if after is Edge.LOG_END and not self.evidence.reverse:
            # Nothing lies between q and the end, so the end is as safe as q + 1.
            return self._translated(self.evidence.target.end, reread_bound, Precision.FRONTIER)
        return self._translated(pair.target_offset + 1, reread_bound)

    def _at_log_end(self) -> Generator[Question, Answer, Outcome]:
        """No data record from C on: all there was to copy lies before C, so the target's end
        as it was before is safe; what comes later is copied behind it."""
        last = yield from self.ask.previous_data(SOURCE, self.offset)
        if isinstance(last, Record):
            self.timestamp_ms = last.timestamp_ms
        pair = None
        if isinstance(last, Record):
            pair = yield from self._pair_of(last)
            if pair is None:
                pair = yield from self._pair_of(last, scan=True)
        target = self.evidence.target
        may_be_end = not self.evidence.reverse and (
            self.evidence.remote_name or self.evidence.pair_proven or target.start == target.end
        )
        if not may_be_end:
            if pair is not None:
                return (yield from self._resume_behind(pair))
            return (yield from self._no_answer(Edge.LOG_END, last))
        if last is Edge.LOG_START:
            return self._translated(target.end, 0)
        if pair is not None:
            return self._translated(target.end, pair.source_offset - pair.earliest_equal)
        frontier = yield from self._last_pair_on_target()
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
            return self._skip_no_timestamp()
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

    # --- pairs --------------------------------------------------------------------------

    def _pair_of(
        self, record: Record, *, scan: bool = False
    ) -> Generator[Question, Answer, Pair | None]:
        """The first image of a source record; None where it is not found or not proven.

        Any copy has the record's own timestamp, so none lies below the target's time
        lookup, and the lowest one met from there on without a gap is the first.
        """
        if record.timestamp_ms is None:
            return None
        first = yield from self.ask.first_at_time(TARGET, record.timestamp_ms)
        if first is None:
            return None
        copy = yield from self._lowest_equal(TARGET, record, first, scan=scan)
        if copy is None:
            return None
        earliest = yield from self._earliest_if_unmistakable(record, copy)
        if earliest is None or self.evidence.contradicted(record.offset, copy.offset):
            return None
        self.evidence.pair_proven = True
        return Pair(record.offset, copy.offset, earliest)

    def _lowest_equal(
        self, side: Side, record: Record, first: TimedOffset, *, scan: bool
    ) -> Generator[Question, Answer, Record | None]:
        """The lowest record of `side` that equals `record`, read without a gap from `first`."""
        view = self.evidence.view(side)
        identity = view.identity(record)
        growing = iter(GROWING_READ_BYTES)
        max_bytes = next(growing)
        while True:
            known_to = view.covered_to(first.offset)
            for offset in view.equals(identity):
                if first.offset <= offset < known_to:
                    return view.at(offset)
            scanning = view.next_known(first.offset) is not None
            if known_to >= view.end or (scanning and not scan):
                return None
            if not (yield from self.ask.read(side, known_to, max_bytes, scan=scanning)):
                return None
            max_bytes = next(growing, max_bytes)

    def _earliest_if_unmistakable(
        self, record: Record, copy: Record
    ) -> Generator[Question, Answer, int | None]:
        """The twin test: None where another source record may be what the copy is of.

        A later equal record is dangerous: if its copy outlived the first one's, what lies
        between would be skipped. So the run of the timestamp is read to its end on the
        right. A record out of order may have a twin far away: it counts only if a direct
        neighbour is equal on both sides.
        """
        assert record.timestamp_ms is not None
        source = self.evidence.source
        run_end = yield from self._run_end(record)
        if run_end is None:
            return None
        equals = source.equals(source.identity(record))
        if equals[-1] > record.offset:
            return None
        before = yield from self.ask.previous_data(SOURCE, record.offset)
        after = source.next_known(record.offset + 1)
        # What lies before the copy is older (it is the answer of the time lookup) or known.
        copy_before: Record | Edge | None = self.evidence.target.previous_known(copy.offset)
        copy_after = yield from self.ask.next_data(TARGET, copy.offset + 1)
        mistakable = (
            not _in_order(before, record, after)
            or not _in_order(copy_before, copy, copy_after)
            or (record.key is None and record.value is None)
        )
        several = len(self.evidence.target.equals(source.identity(record))) > 1
        beside = self._equal(after, copy_after)
        if (mistakable or several) and not beside:
            copy_before = yield from self.ask.previous_data(TARGET, copy.offset)
            beside = self._equal(before, copy_before)
            if mistakable and not beside:
                return None
        if equals[0] < record.offset:
            return equals[0]
        if several and not beside:
            # The copy may be of an equal record that the source no longer has.
            return source.start
        if not mistakable and (
            before is Edge.LOG_START
            or (isinstance(before, Record) and before.timestamp_ms != record.timestamp_ms)
        ):
            return record.offset
        # An earlier equal record has the same timestamp: none lies below the time lookup.
        first = yield from self.ask.first_at_time(SOURCE, record.timestamp_ms)
        if first is None:
            return source.start
        earliest = yield from self._lowest_equal(SOURCE, record, first, scan=True)
        return first.offset if earliest is None else earliest.offset

    def _run_end(self, record: Record) -> Generator[Question, Answer, int | None]:
        """Where the run of this timestamp ends: the offset of the first later data record with
        another one, or the readable end; None where it could not be read."""
        assert record.timestamp_ms is not None
        known = self.evidence.run_ends.get(record.timestamp_ms)
        if known is not None and known[0] <= record.offset < known[1]:
            return known[1]
        at = record.offset + 1
        while True:
            own = at == record.offset + 1
            following = yield from self.ask.next_data(SOURCE, at, scan=not own)
            if following is Edge.UNKNOWN:
                return None
            if not isinstance(following, Record):
                end = self.evidence.source.end
                break
            if following.timestamp_ms != record.timestamp_ms:
                end = following.offset
                break
            at = following.offset + 1
        self.evidence.run_ends[record.timestamp_ms] = (record.offset, end)
        return end

    def _equal(self, one: Record | Edge | None, other: Record | Edge | None) -> bool:
        view = self.evidence.source
        return (
            isinstance(one, Record)
            and isinstance(other, Record)
            and view.identity(one) == view.identity(other)
        )

    def _begins_at_or_after(self) -> Generator[Question, Answer, bool]:
        """True where the target's log was trimmed and its first data record is a copy of a
        source record >= C: all equal ones seen lie there, so whichever it is of will do."""
        target = self.evidence.target
        if target.start == 0:
            return False
        first = yield from self.ask.next_data(TARGET, target.start, scan=True)
        if not isinstance(first, Record):
            return False
        original = yield from self._original_of(first)
        if original is None:
            return False
        return self.evidence.source.equals(target.identity(first))[0] >= self.offset

    def _original_of(self, copy: Record) -> Generator[Question, Answer, Record | None]:
        """The lowest source record that equals a target record."""
        if copy.timestamp_ms is None:
            return None
        first = yield from self.ask.first_at_time(SOURCE, copy.timestamp_ms)
        if first is None:
            return None
        return (yield from self._lowest_equal(SOURCE, copy, first, scan=True))

    def _last_pair_on_target(self) -> Generator[Question, Answer, Pair | None]:
        """The pair of the last data record on the target, if it is the first image: so far
        the mirror has come."""
        target = self.evidence.target
        last = yield from self.ask.previous_data(TARGET, target.end)
        if not isinstance(last, Record):
            return None
        original = yield from self._original_of(last)
        if original is None:
            return None
        return (yield from self._pair_of(original, scan=True))

    def _pair_further_back(self, previous: Record) -> Generator[Question, Answer, Pair | None]:
        """A pair of the source record 2, 4, 8, ... before C; the nearest that is found."""
        step, tried = 2, previous.offset
        while tried > self.evidence.source.start:
            at = max(self.evidence.source.start, self.offset - step)
            record = yield from self.ask.next_data(SOURCE, at)
            if record is Edge.UNKNOWN:
                return None
            if isinstance(record, Record) and record.offset < tried:
                pair = yield from self._pair_of(record)
                if pair is not None:
                    return pair
            tried = min(tried, at)
            step *= 2
        return None

    # --- no answer ----------------------------------------------------------------------

    def _no_answer(
        self, following: Record | Edge, previous: Record | Edge
    ) -> Generator[Question, Answer, Skipped]:
        stamps = [r.timestamp_ms for r in (following, previous) if isinstance(r, Record)]
        if stamps and all(stamp is None for stamp in stamps):
            return self._skip_no_timestamp()
        target = self.evidence.target
        last = yield from self.ask.previous_data(TARGET, target.end)
        behind = last is Edge.LOG_START or (
            isinstance(last, Record)
            and last.timestamp_ms is not None
            and any(stamp is not None and last.timestamp_ms < stamp for stamp in stamps)
        )
        if behind:
            return Skipped(
                Reason.NOT_MIRRORED,
                f"the mirror has not reached offset {self.offset} of "
                f"{self.evidence.source.partition}; a later cycle will translate it",
            )
        why = self.ask.obstacle or "no record near the committed offset was found on the target"
        return Skipped(
            Reason.NO_PROOF,
            f"no pair of equal records proves a target offset for {self.offset} of "
            f"{self.evidence.source.partition}: {why}; raise translation.budget, or set "
            "translation.floor = log_start",
        )

    def _skip_expired(self, log_start: int) -> Skipped:
        return Skipped(
            Reason.EXPIRED,
            f"the commit {self.offset} lies below the source's log start {log_start}; on either "
            "side the consumer's auto.offset.reset decides",
        )

    def _skip_past_log_end(self, log_end: int) -> Skipped:
        return Skipped(
            Reason.PAST_LOG_END,
            f"the commit {self.offset} lies past the source's log end {log_end}: the log was "
            "truncated or the topic made anew; reset the group on the source",
        )

    def _skip_no_timestamp(self) -> Skipped:
        return Skipped(
            Reason.NO_TIMESTAMP,
            f"the records at offset {self.offset} of {self.evidence.source.partition} carry no "
            "timestamp to look up; have producers set one",
        )


def _in_order(before: Record | Edge | None, record: Record, after: Record | Edge | None) -> bool:
    """True where the timestamp lies between those of its neighbours, as far as there are any;
    a neighbour that is not known, or carries no timestamp, is none to rely on."""
    stamp = record.timestamp_ms
    assert stamp is not None
    for neighbour, sign in ((before, 1), (after, -1)):
        if neighbour is Edge.UNKNOWN:
            return False
        if isinstance(neighbour, Record):
            other = neighbour.timestamp_ms
            if other is None or sign * (stamp - other) < 0:
                return False
    return True
