"""The questions of the rule, and one source offset's access to what is known of its partition.

Nothing here does I/O: a question is yielded, and the caller (`tsoffset.cycle`) sends its answer
back.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain, repeat

from tsoffset.model import (
    Failed,
    FirstAtTime,
    Isolation,
    LogRange,
    ReadFrom,
    Side,
    TimedOffset,
    TopicPartition,
    Youngest,
)
from tsoffset.records import FetchedRange, Record, UnreadableRecords
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.found import Absent, Found, Unanswered, Unknown
from tsoffset.rule.log_view import Identity

# The sizes of consecutive reads, of a search for the next data record and of a scan.
GROWING_READ_BYTES = (1, 65_536, 262_144, 1_048_576)

# A small extra read, where little is left to read.
LITTLE_BYTES = 262_144

# The target records that all walks of one source offset pass before they become short
# (`tsoffset.rule.walk`).
MOST_WALKED = 1_000


@dataclass(frozen=True, slots=True)
class RangeOf:
    """Ask for a partition's log range: as the flow reads it, or the log's own."""

    partition: TopicPartition
    log_itself: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """One question to one side of the flow."""

    side: Side
    what: RangeOf | ReadFrom | FirstAtTime | Youngest


Answer = LogRange | FetchedRange | TimedOffset | Failed | None


Search = Generator[Question, Answer, Found]
Equals = Callable[[Record], Sequence[int]]


class _Budget(Enum):
    """The budget that pays for a fetch."""

    POSITION = "translation.budget"
    PARTITION = "translation.scan.bytes"


class Inquiry:
    """One source offset's access to the evidence, with its own budget.

    All methods that ask are generators. Fetches for this offset alone count against
    `translation.budget` on each side. Scans, and searches made once for all offsets (`shared`),
    count against the partition's budget.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.obstacle: str | None = None
        self.walk_left = MOST_WALKED
        self._fetches_left = {
            Side.SOURCE: evidence.settings.budget,
            Side.TARGET: evidence.settings.budget,
        }

    def log_range(self, side: Side) -> Generator[Question, Answer, LogRange]:
        """The log's start and readable end, asked for once per cycle.

        With read_committed, the end of the source's log itself is asked for before: if it lies past
        the readable end, transactions are open, and the log has not just grown between the two.
        """
        view = self.evidence.view(side)
        if view.range is None:
            if side is Side.SOURCE and self.evidence.isolation is Isolation.READ_COMMITTED:
                yield from self._log_itself(side)
            answer = yield from self._ask_range(side, RangeOf(view.partition))
            view.range = view.range or answer
            view.start_seen = max(view.start_seen, answer.start)
        return view.range

    def log_start_now(self) -> Generator[Question, Answer, int]:
        """The target's log start, asked for after the target has answered all lookups. A lookup
        does not show that retention has removed records meanwhile; a fetch does."""
        view = self.evidence.target
        if view.lookups > view.lookups_confirmed:
            lookups = view.lookups  # a lookup made meanwhile is not covered by the answer
            answer = yield from self._ask_range(Side.TARGET, RangeOf(view.partition))
            view.start_seen = max(view.start_seen, answer.start)
            view.lookups_confirmed = max(view.lookups_confirmed, lookups)
        return view.start_seen

    def log_end(self, side: Side) -> Generator[Question, Answer, int]:
        """The end of the log itself: past the readable end while transactions are open."""
        own = yield from self._log_itself(side)
        return max(own.end, self.evidence.view(side).end)

    def _log_itself(self, side: Side) -> Generator[Question, Answer, LogRange]:
        view = self.evidence.view(side)
        if view.own_range is None:
            answer = yield from self._ask_range(side, RangeOf(view.partition, log_itself=True))
            view.own_range = view.own_range or answer
        return view.own_range

    def _ask_range(self, side: Side, what: RangeOf) -> Generator[Question, Answer, LogRange]:
        answer = yield Question(side, what)
        if isinstance(answer, Failed):
            raise Unanswered(answer)
        assert isinstance(answer, LogRange)
        return answer

    def first_at_time(
        self, side: Side, timestamp_ms: int
    ) -> Generator[Question, Answer, TimedOffset | None]:
        """The broker's time lookup; None proves nothing."""
        view = self.evidence.view(side)
        if timestamp_ms not in view.times:
            answer = yield Question(side, FirstAtTime(view.partition, timestamp_ms))
            if isinstance(answer, Failed):
                raise Unanswered(answer)
            assert answer is None or isinstance(answer, TimedOffset)
            view.times[timestamp_ms] = answer
            view.lookups += 1
        return view.times[timestamp_ms]

    def youngest(self, side: Side) -> Generator[Question, Answer, TimedOffset | None]:
        """The record with the largest timestamp, control records included; None if the broker
        cannot tell."""
        view = self.evidence.view(side)
        if not view.youngest_known:
            answer = yield Question(side, Youngest(view.partition))
            if isinstance(answer, Failed):
                raise Unanswered(answer)
            assert answer is None or isinstance(answer, TimedOffset)
            view.youngest_known, view.youngest = True, answer
        return view.youngest

    def read(
        self, side: Side, offset: int, max_bytes: int = 1, *, shared: bool = False
    ) -> Generator[Question, Answer, bool]:
        """Read `offset` if it is not known; False if the budget does not allow it or nothing
        came."""
        view = self.evidence.view(side)
        if view.covered_to(offset) > offset:
            return True
        if offset >= view.end:
            return False
        if (budget := self._budget_for(side, max_bytes, shared)) is None:
            return False
        answer = yield Question(side, ReadFrom(view.partition, offset, max_bytes))
        if isinstance(answer, Failed):
            raise Unanswered(answer)
        if answer is None:  # another read has covered it
            if budget is _Budget.POSITION:
                self._fetches_left[side] += 1
            return True
        assert isinstance(answer, FetchedRange)
        try:
            self.evidence.add(side, answer)
        except UnreadableRecords as error:
            raise Unanswered.by_malformed(view.partition, offset, error) from error
        if budget is _Budget.PARTITION and (side, offset) not in self.evidence.scanned:
            self.evidence.scanned.add((side, offset))
            self.evidence.scan_bytes_left[side] -= max(answer.bytes_read, 1)
        return view.covered_to(offset) > offset

    def _budget_for(self, side: Side, max_bytes: int, shared: bool) -> "_Budget | None":
        """The budget that pays for one more fetch; None if neither allows it. After the partition's
        budget, the offset's own budget pays for single batches."""
        if shared and self.evidence.scan_bytes_left[side] > 0:
            return _Budget.PARTITION
        if shared:
            self._note_obstacle(f"the scan of the {side} stopped at translation.scan.bytes")
            if max_bytes > 1:
                return None
        if self._fetches_left[side] <= 0:
            self._note_obstacle(f"translation.budget allows no more fetches on the {side}")
            return None
        self._fetches_left[side] -= 1
        return _Budget.POSITION

    def _note_obstacle(self, obstacle: str) -> None:
        if self.obstacle is None:
            self.obstacle = obstacle

    def reach(self, side: Side, offset: int) -> Generator[Question, Answer, bool]:
        """Read the record at `offset` of `side`, if it is in the log; one fetch at most."""
        view = self.evidence.view(side)
        if not view.start <= offset < view.end:
            return False
        return (yield from self.read(side, offset))

    def next_data(
        self, side: Side, offset: int, *, scan: bool = False, shared: bool = False
    ) -> Search:
        """The first data record at or after `offset`, or LOG_END. A `scan` begins with a larger
        read."""
        view = self.evidence.view(side)
        for max_bytes in GROWING_READ_BYTES[1 if scan else 0 :]:
            record = view.next_known(offset)
            if record is not None:
                return record if record.offset < view.end else Absent.LOG_END
            known_to = view.covered_to(offset)
            if known_to >= view.end:
                return Absent.LOG_END
            if not (yield from self.read(side, known_to, max_bytes, shared=scan or shared)):
                return Unknown.NOT_READ
        record = view.next_known(offset)
        return Unknown.NOT_READ if record is None else record

    def previous_data(self, side: Side, offset: int, *, shared: bool = False) -> Search:
        """The last data record before `offset`, or LOG_START.

        Goes back in steps that double, and from there forward to the known part: a fetch at an
        offset without a record returns the batch after it.
        """
        view = self.evidence.view(side)
        offset = min(offset, view.end)
        step = 1
        while (record := view.previous_known(offset)) is None:
            known_from = view.covered_from(offset)
            if known_from <= view.start:
                return Absent.LOG_START
            at = max(view.start, known_from - step)
            while at < known_from:
                if not (yield from self.read(side, at, shared=shared)):
                    return Unknown.NOT_READ
                at = view.covered_to(at)
            step *= 2
        return record if record.offset >= view.start else Absent.LOG_START

    def read_whole(self, side: Side, start: int, end: int) -> Generator[Question, Answer, bool]:
        """Read [start, end) without a gap, at the partition's expense; False if that exceeds its
        budget."""
        view = self.evidence.view(side)
        growing = iter(GROWING_READ_BYTES[1:])
        max_bytes = next(growing)
        while (known_to := view.covered_to(start)) < end:
            if not self.evidence.fits(side, end - known_to):
                self._note_obstacle(f"the scan of the {side} stopped at translation.scan.bytes")
                return False
            if not (yield from self.read(side, known_to, max_bytes, shared=True)):
                return False
            max_bytes = next(growing, max_bytes)
        return True

    def lowest_equal(self, side: Side, identity: Identity, first: int, *, scan: bool) -> Search:
        """The lowest record of `side` from `first` on with this identity, read without a gap, or
        LOG_END. Without `scan`, no further than one batch (or what is known)."""
        view = self.evidence.view(side)
        growing = iter(GROWING_READ_BYTES)
        max_bytes = next(growing)
        while True:
            known_to = view.covered_to(first)
            for offset in view.equals(identity):
                if first <= offset < known_to:
                    return view.at(offset) or Unknown.NOT_READ
            scanning = view.next_known(first) is not None
            if known_to >= view.end:
                return Absent.LOG_END
            if scanning and not scan:
                return Unknown.NOT_FOUND
            if not (yield from self.read(side, known_to, max_bytes, shared=scanning)):
                return Unknown.NOT_READ
            max_bytes = next(growing, max_bytes)

    def locate(
        self, side: Side, record: Record, equals: Equals, timestamp_ms: int | None
    ) -> Search:
        """The lowest record on `side`, near a timestamp, that equals `record`; found for all
        offsets, at the partition's expense. `equals` returns the known ones.

        A lookup answers the first record that is not older. In a log with late records that offset
        is far too early, and the wanted record may lie behind everything that is read here. So
        LOG_END is returned only if everything from the lookup's answer on was read.
        """
        view = self.evidence.view(side)
        first = None
        if timestamp_ms is not None:
            first = yield from self.first_at_time(side, timestamp_ms)
        # A lookup without an answer proves nothing: then the log is read from its start.
        start = view.start if first is None else first.offset
        for max_bytes in chain(GROWING_READ_BYTES, repeat(GROWING_READ_BYTES[-1])):
            known_to = view.covered_to(start)
            for offset in equals(record):
                if start <= offset < known_to:
                    return view.at(offset) or Unknown.NOT_READ
            if known_to >= view.end:
                return Absent.LOG_END
            if (
                first is not None
                and timestamp_ms is not None
                and view.seems_past(timestamp_ms, start)
            ):
                return Unknown.NOT_FOUND
            if not (yield from self.read(side, known_to, max_bytes, shared=True)):
                break
        return Unknown.NOT_READ

    def original_of(self, copy: Record) -> Search:
        """A known source record that equals a target record, found by its header, by the distance
        to a known pair, or near its timestamp."""
        evidence = self.evidence
        for guess in self._guesses(copy):
            if evidence.originals(copy):
                break
            if evidence.source.start <= guess < evidence.source.end:
                yield from self.read(Side.SOURCE, guess, shared=True)
        known = evidence.originals(copy)
        if known:
            return evidence.source.at(known[0]) or Unknown.NOT_READ
        if copy.timestamp_ms is None:
            return Unknown.NOT_FOUND
        return (yield from self.locate(Side.SOURCE, copy, evidence.originals, copy.timestamp_ms))

    def _guesses(self, copy: Record) -> Iterator[int]:
        evidence = self.evidence
        if evidence.headers_hold and copy.source_offset is not None:
            yield copy.source_offset
        distance = evidence.distance_near(copy.offset)
        if distance is not None and evidence.predictions_hold:
            yield copy.offset - distance
