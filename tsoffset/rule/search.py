"""The search: where the copy of a source record may lie, and pairs below a committed offset.

*Timestamps say where to look.* The search only finds candidates; `tsoffset.rule.proof` decides. It
takes the lowest copy that was read.
"""

from collections.abc import Generator, Iterator

from tsoffset.model import Side, TimedOffset
from tsoffset.records import Record
from tsoffset.rule.duplicates import earliest_equal
from tsoffset.rule.evidence import Evidence, Last
from tsoffset.rule.found import Absent, Found, Unknown
from tsoffset.rule.frontier import last_copy, last_of_both
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.pairs import Pair
from tsoffset.rule.proof import prove

SOURCE, TARGET = Side.SOURCE, Side.TARGET

Finding = Generator[Question, Answer, Pair | None]


def pair_of(inquiry: Inquiry, record: Record, *, scan: bool = False) -> Finding:
    """The pair of a source record; None if its copy is not found or not proven.

    It is sought between two pairs of the same distance, at the target's time lookup, and where
    distances predict it; with `scan`, then upward from the lookup.
    """
    evidence = inquiry.evidence
    known = evidence.pairs.at(record.offset)
    if known is not None:
        return known
    below, above = evidence.anchors(record.offset)
    one_walk = below and above and below[1] - below[0] == above[1] - above[0]
    if below and one_walk:
        # The replicator went once from one to the other: there is no lower copy.
        yield from _read_at_guess(inquiry, record, record.offset + below[1] - below[0])
        if evidence.copies(record) and (pair := (yield from _prove_lowest(inquiry, record))):
            return pair
    if record.timestamp_ms is None:
        return None
    first = yield from _look_up(inquiry, record)
    if not evidence.copies(record):
        yield from _read_where_predicted(inquiry, record, first)
    if scan and not evidence.copies(record):
        yield from _scan(inquiry, record, first)
    return (yield from _prove_lowest(inquiry, record))


def prove_ends(inquiry: Inquiry) -> Generator[Question, Answer, None]:
    """Add a safe pair at the mirror's end, which shows the source offsets below to be safe: of the
    last record of both logs, or of the last one that the target has."""
    if (yield from last_of_both(inquiry)) is not None:
        return
    last = yield from last_copy(inquiry)
    record = inquiry.evidence.source.at(last.lowest) if isinstance(last, Last) else None
    if record is not None:
        yield from pair_of(inquiry, record)


def seen_copy(inquiry: Inquiry, record: Record) -> Finding:
    """The record and a copy of it, wherever it lies and whatever follows it: it only shows that the
    record is on the target. None if no copy is found."""
    evidence = inquiry.evidence
    yield from last_copy(inquiry)
    copies = evidence.copies(record)
    if not copies and record.timestamp_ms is not None:
        first = yield from _look_up(inquiry, record)
        if not evidence.copies(record):
            yield from _read_where_predicted(inquiry, record, first)
        copies = evidence.copies(record)
    if not copies:
        return None
    # The last copy before the log end that was read. If all copies lie behind that end, the first
    # one: the mirror may have been restarted since then.
    before_end = [offset for offset in copies if offset < evidence.target.end]
    copy = evidence.target.at(before_end[-1] if before_end else copies[0])
    assert copy is not None
    return Pair(record.offset, copy.offset, (yield from earliest_equal(inquiry, record, copy)))


def _prove_lowest(inquiry: Inquiry, record: Record) -> Finding:
    """The pair of a record with its lowest known copy; copies found on the way to a proof count,
    too."""
    evidence = inquiry.evidence
    tried = None
    while (copies := evidence.copies(record)) and copies[0] != tried:
        tried = copies[0]
        copy = evidence.target.at(tried)
        pair = None if copy is None else (yield from prove(inquiry, record, copy))
        if pair is not None:
            return pair
    return None


def _look_up(inquiry: Inquiry, record: Record) -> Generator[Question, Answer, TimedOffset | None]:
    """The target's lookup of a record's timestamp, and the record there."""
    assert record.timestamp_ms is not None
    first = yield from inquiry.first_at_time(TARGET, record.timestamp_ms)
    if first is not None:
        identity = inquiry.evidence.source.identity(record)
        yield from inquiry.lowest_equal(TARGET, identity, first.offset, scan=False)
    return first


def _read_at_guess(
    inquiry: Inquiry, record: Record, guess: int
) -> Generator[Question, Answer, None]:
    evidence = inquiry.evidence
    target = evidence.target
    if target.covered_to(guess) > guess or not evidence.predictions_hold:
        return
    if (yield from inquiry.reach(TARGET, guess)):
        evidence.note_prediction(held=bool(evidence.copies(record)))


def _read_where_predicted(
    inquiry: Inquiry, record: Record, first: TimedOffset | None
) -> Generator[Question, Answer, None]:
    """Read where pairs predict the copy, and as far past the target's lookup as the record is past
    the source's: for runs of equal timestamps, or behind a record of the far future."""
    evidence = inquiry.evidence
    for guess in dict.fromkeys(_predicted_offsets(evidence, record.offset)):
        yield from _read_at_guess(inquiry, record, guess)
        if evidence.copies(record):
            return
    if first is None or record.timestamp_ms is None:
        return
    own = yield from inquiry.first_at_time(SOURCE, record.timestamp_ms)
    if own is not None and own.offset < record.offset:
        yield from inquiry.reach(TARGET, first.offset + record.offset - own.offset)


def _predicted_offsets(evidence: Evidence, offset: int) -> Iterator[int]:
    """Where the nearest pairs predict a record: in proportion between two, then by the distance to
    the nearer one and to the other."""
    below, above = evidence.anchors(offset)
    if below and above and below[0] < above[0]:
        share = (offset - below[0]) / (above[0] - below[0])
        yield below[1] + round(share * (above[1] - below[1]))
    for source, target in sorted(
        (pair for pair in (below, above) if pair), key=lambda pair: abs(pair[0] - offset)
    ):
        yield target + offset - source


def _scan(
    inquiry: Inquiry, record: Record, first: TimedOffset | None
) -> Generator[Question, Answer, None]:
    """Read the target for the lowest copy, from the first offset at which it can lie: behind the
    pair below, and not before the time lookup's answer (a lookup without an answer proves
    nothing)."""
    evidence = inquiry.evidence
    below = evidence.pairs.nearest_below(record.offset)
    start = evidence.target.start if first is None else first.offset
    if below is not None:
        start = max(start, below.target_offset + 1)
    yield from inquiry.lowest_equal(TARGET, evidence.source.identity(record), start, scan=True)


# --- pairs of records before C ------------------------------------------------------------


class NearerPairs:
    """Step 7: pairs of records before `offset`, each nearer than the last, if neither R nor the
    record before it has one. Compaction, a filter or a gap may have removed their copies. So
    originals of target records are sought, where the distance to the nearest pairs predicts C, and
    halfway between."""

    def __init__(self, inquiry: Inquiry, offset: int, timestamp_ms: int | None) -> None:
        self._inquiry = inquiry
        self._evidence = inquiry.evidence
        self._offset = offset
        self._timestamp_ms = timestamp_ms
        self._tries = self._evidence.settings.budget
        self._start = self._evidence.target.start
        self._end = self._evidence.target.end
        self._tried = 0

    def next_pair(self) -> Finding:
        """A pair of a record before C that is nearer than the last one; None when the budget or the
        log ends."""
        below = self._evidence.pairs.nearest_below(self._offset)
        if below is not None and below.target_offset >= self._start:
            self._start = below.target_offset + 1
            return below
        while self._start < self._end and self._tried < self._tries:
            at = yield from self._next_offset()
            self._tried += 1
            copy = yield from self._inquiry.previous_data(TARGET, at)
            if copy is Absent.LOG_START or (isinstance(copy, Record) and copy.offset < self._start):
                self._start = at
                continue
            pair = yield from self._nearest_pair(copy)
            if pair is None:
                self._end = at - 1
            elif pair.source_offset < self._offset:
                self._start = max(self._start, pair.target_offset + 1)
                return pair
            else:
                self._end = min(at - 1, pair.target_offset)
        return None

    def _next_offset(self) -> Generator[Question, Answer, int]:
        """Where to look next: before the time lookup's answer, where distances predict C, then in
        the middle."""
        if self._tried == 0 and self._timestamp_ms is not None:
            first = yield from self._inquiry.first_at_time(TARGET, self._timestamp_ms)
            if first is not None and self._start < first.offset <= self._end:
                return first.offset
        if self._tried % 2 == 0:
            for guess in _predicted_offsets(self._evidence, self._offset):
                if self._start < guess <= self._end:
                    return guess
        return (self._start + self._end + 1) // 2

    def _nearest_pair(self, copy: Found) -> Finding:
        """The pair of a target record, or of the nearest before it that has one."""
        for _ in range(self._evidence.settings.budget):
            if not isinstance(copy, Record) or copy.offset < self._start:
                return None
            original = yield from self._inquiry.original_of(copy)
            if isinstance(original, Record):
                pair = yield from _prove_lowest(self._inquiry, original)
                if pair is not None:
                    return pair
            copy = self._evidence.target.previous_known(copy.offset) or Unknown.NOT_READ
        return None

    def further_back(self, previous: Record) -> Finding:
        """The pair of a source record 2, 4, 8, ... before C; the nearest first."""
        source = self._evidence.source
        step, tried = 2, previous.offset
        tries = self._evidence.settings.budget
        while tried > source.start and tries > 0:
            at = max(source.start, self._offset - step)
            step *= 2
            record = yield from self._inquiry.next_data(SOURCE, at)
            if isinstance(record, Unknown):
                return None
            candidate = record if isinstance(record, Record) and record.offset < tried else None
            tried = min(tried, at)
            if candidate is not None:
                tried = min(tried, candidate.offset)
                tries -= 1
                pair = yield from pair_of(self._inquiry, candidate)
                if pair is not None:
                    return pair
        return None
