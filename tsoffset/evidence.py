"""What is known of one partition on both sides, and how a conversation asks for more.

Evidence is shared by all positions of a partition for the length of a cycle: a batch that
one position asked for answers the others too. An `Inquiry` is one position's access to it,
with that position's budget. Nothing here does I/O: a question is yielded, the runner
(`tsoffset.sync`) sends its answer back.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from tsoffset.copies import Copies
from tsoffset.log_view import LogView, Unanswered
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
from tsoffset.records import Record, Stretch, UnreadableRecords
from tsoffset.settings import TranslationSettings

# A search for the next data record grows its reads; so does a scan.
# So many predictions may fail in a partition, beyond those that hold.
_PREDICTIONS = 3

GROWING_READ_BYTES = (1, 65_536, 262_144, 1_048_576)


@dataclass(frozen=True, slots=True)
class RangeOf:
    """Ask for a partition's log range: with what the flow reads of it, or the log's own."""

    partition: TopicPartition
    log_itself: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """One question to one side of the flow."""

    side: Side
    what: RangeOf | ReadFrom | FirstAtTime | Youngest


Answer = LogRange | Stretch | TimedOffset | Failed | None


class Edge(Enum):
    """Where a search for a data record ended without one."""

    LOG_START = auto()
    LOG_END = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Run:
    """Source records of one timestamp, one after the other: from `start` on all that lie before
    `read_to` bear it, and with `ended` the next one does not."""

    start: int
    read_to: int
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """The target record at `target_offset` is the image of the source record that answers for it:
    everything that follows the one on the source lies behind the other on the target.

    `earliest_equal` is the lowest source offset whose image it may be instead: lower than
    `source_offset` where an equal record stands before it. That costs re-reads, never safety.
    """

    source_offset: int
    target_offset: int
    earliest_equal: int

    @property
    def clear(self) -> bool:
        """True where it is the image of no other source record."""
        return self.earliest_equal == self.source_offset


class KnownPairs:
    """Proven and clear pairs of a partition in the order of their source offsets.

    Target offsets rise with them: first images lie in order. A pair that would break the
    order is not taken in; it answers for its own position all the same.
    """

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._pairs: list[Pair] = []

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._pairs)

    def add(self, pair: Pair) -> None:
        """Take a pair in, if it is clear."""
        if not pair.clear:
            return
        at = bisect_left(self._offsets, pair.source_offset)
        if at < len(self._pairs):
            above = self._pairs[at]
            if above.source_offset == pair.source_offset:
                return
            if above.target_offset <= pair.target_offset:
                return
        if at > 0 and self._pairs[at - 1].target_offset >= pair.target_offset:
            return
        self._offsets.insert(at, pair.source_offset)
        self._pairs.insert(at, pair)

    def at(self, source_offset: int) -> Pair | None:
        """The pair of this source record."""
        at = bisect_left(self._offsets, source_offset)
        if at < len(self._pairs) and self._offsets[at] == source_offset:
            return self._pairs[at]
        return None

    def below(self, source_offset: int) -> Pair | None:
        """The nearest pair of an earlier source record."""
        at = bisect_left(self._offsets, source_offset)
        return self._pairs[at - 1] if at > 0 else None

    def above(self, source_offset: int) -> Pair | None:
        """The nearest pair of a later source record."""
        at = bisect_right(self._offsets, source_offset)
        return self._pairs[at] if at < len(self._pairs) else None


class Repeat(Enum):
    """Whether the target's log ends inside a repeat, as far as its end tells."""

    NONE = auto()
    POSSIBLE = auto()
    UNSEEN = auto()


class Evidence:
    """All that a cycle knows of one source partition and its target partition.

    `isolation` is what the replicator reads the source with. `remote_name` is true where
    the target's name can only come from the replication policy; `reverse` where the target
    holds the original and the source the replica. `predictions` are pairs that an earlier
    cycle proved, as (source offset, target offset): they say where to look, no more. `pairs`
    are those that this cycle has proven; `known` is how many records are known on both
    sides, `frontier` the pair of the last record on the target, `scanned` the offsets from
    which scans have read.
    """

    def __init__(
        self,
        source: TopicPartition,
        target: TopicPartition,
        settings: TranslationSettings,
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        remote_name: bool = True,
        reverse: bool = False,
        predictions: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.settings = settings
        self.isolation = isolation
        self.remote_name = remote_name
        self.reverse = reverse
        self.predictions = predictions
        self.pairs = KnownPairs()
        self.repeat_at_end: Repeat | None = None
        self.known = 0
        self._news = 0
        self.frontier: Pair | None = None
        self.scanned: set[tuple[Side, int]] = set()
        self.runs: dict[int, Run] = {}
        self.scan_bytes_left = {Side.SOURCE: settings.scan_bytes, Side.TARGET: settings.scan_bytes}
        by_header = settings.offset_header is not None
        self._views = {
            side: LogView(partition, settings.match, side if by_header else None)
            for side, partition in ((Side.SOURCE, source), (Side.TARGET, target))
        }
        self._copies = Copies(self.source, self.target)
        self._predictions_left = _PREDICTIONS

    @property
    def learned(self) -> int:
        """A number that grows with all that becomes known and is proven."""
        return self._news

    def predicted(self, source_offset: int) -> int | None:
        """Where the nearest of the remembered pairs has the image of a source record."""
        at = bisect_left(self.predictions, (source_offset, -1))
        near = self.predictions[max(0, at - 1) : at + 1]
        if not near:
            return None
        offset, image = min(near, key=lambda pair: abs(pair[0] - source_offset))
        return image + source_offset - offset

    @property
    def predictions_hold(self) -> bool:
        """False once distances to known pairs have misled more often than they have led."""
        return self._predictions_left > 0

    def note_prediction(self, *, held: bool) -> None:
        """Take notice of whether the record lay where the distance to a pair had it."""
        self._predictions_left = min(_PREDICTIONS, self._predictions_left + (1 if held else -1))

    @property
    def proven(self) -> Mapping[int, int]:
        """This cycle's pairs, source offset to target offset."""
        return {pair.source_offset: pair.target_offset for pair in self.pairs}

    @property
    def source(self) -> LogView:
        """The source's log as far as it is known."""
        return self._views[Side.SOURCE]

    @property
    def target(self) -> LogView:
        """The target's log as far as it is known."""
        return self._views[Side.TARGET]

    def view(self, side: Side) -> LogView:
        """The log of one side."""
        return self._views[side]

    def add(self, side: Side, stretch: Stretch) -> None:
        """Take in what was read on one side."""
        view = self._views[side]
        fresh = view.add(stretch)
        if fresh:
            self.known += len(fresh)
            self._news += 1
            self._copies.note(fresh)

    def prove(self, pair: Pair) -> None:
        """Take in a proven pair."""
        self.pairs.add(pair)
        self._news += 1

    def forget_records(self, above: int) -> None:
        """Let go of all records, to bound what is held, but for those in batches that begin at
        or below a source offset, or its image; proven pairs stay."""
        pair = self.pairs.above(above)
        left = [*self.source.forget(above), *self.target.forget(pair.target_offset if pair else -1)]
        self._copies = Copies(self.source, self.target)
        self._copies.note(left)
        self.runs.clear()
        self.scanned.clear()
        self.known = len(left)

    @property
    def by_header(self) -> bool:
        """True while a header of the target's records says what each is a copy of."""
        return self.target.header is not None

    def check_headers(self, record: Record, copy: Record) -> bool:
        """Hold a pair that a header tells against its content. Where that is not equal, headers
        are not believed from then on. True where the pair holds."""
        if not self.by_header or self.source.content(record) == self.target.content(copy):
            return True
        self.repeat_at_end = None
        self._copies = Copies(self.source, self.target)
        for view in self._views.values():
            self._copies.note(view.compare_contents())
        return False

    def contradiction(self, source_offset: int, target_offset: int) -> int | None:
        """A later source record whose copies seen all lie below `target_offset`: the replicator
        has begun to repeat a stretch and not ended it, or its own copy was not seen yet."""
        return self._copies.below(source_offset, target_offset)


Conversation = Generator[Question, Answer, bool]
Search = Generator[Question, Answer, Record | Edge]


class Inquiry:
    """One position's access to the evidence, with the budget of that position.

    All methods that ask are generators. Fetches that a position makes for itself count
    against `translation.budget` on each side; scans are paid by the partition.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.obstacle: str | None = None
        self._fetches_left = {
            Side.SOURCE: evidence.settings.budget,
            Side.TARGET: evidence.settings.budget,
        }

    def log_range(self, side: Side) -> Generator[Question, Answer, LogRange]:
        """The log's start and readable end, asked for once per cycle."""
        view = self.evidence.view(side)
        if view.range is None:
            answer = yield from self._ask_range(side, RangeOf(view.partition))
            view.range = view.range or answer
        return view.range

    def log_end(self, side: Side) -> Generator[Question, Answer, int]:
        """The end of the log itself: past the readable end while transactions are open."""
        view = self.evidence.view(side)
        if view.own_range is None:
            answer = yield from self._ask_range(side, RangeOf(view.partition, log_itself=True))
            view.own_range = view.own_range or answer
        return max(view.own_range.end, view.end)

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
        return view.times[timestamp_ms]

    def youngest(self, side: Side) -> Generator[Question, Answer, TimedOffset | None]:
        """The record with the largest timestamp, asked for once per cycle; None proves nothing."""
        view = self.evidence.view(side)
        if not view.youngest_known:
            answer = yield Question(side, Youngest(view.partition))
            if isinstance(answer, Failed):
                raise Unanswered(answer)
            assert answer is None or isinstance(answer, TimedOffset)
            if not view.youngest_known:
                view.youngest_known, view.youngest = True, answer
        return view.youngest

    def read(
        self, side: Side, offset: int, max_bytes: int = 1, *, scan: bool = False
    ) -> Conversation:
        """Have `offset` covered; False where the budget does not allow it or nothing came."""
        view = self.evidence.view(side)
        if view.covered_to(offset) > offset:
            return True
        if scan:
            if self.evidence.scan_bytes_left[side] <= 0:
                self._give_up(f"the scan of the {side} stopped at translation.scan.bytes")
                return False
        elif self._fetches_left[side] <= 0:
            self._give_up(f"translation.budget allows no more fetches on the {side}")
            return False
        else:
            self._fetches_left[side] -= 1
        answer = yield Question(side, ReadFrom(view.partition, offset, max_bytes))
        if isinstance(answer, Failed):
            raise Unanswered(answer)
        if answer is None:  # somebody else's read has covered it
            if not scan:
                self._fetches_left[side] += 1
            return True
        assert isinstance(answer, Stretch)
        try:
            self.evidence.add(side, answer)
        except UnreadableRecords as error:
            raise Unanswered.by_malformed(view.partition, offset, error) from error
        if scan and (side, offset) not in self.evidence.scanned:
            self.evidence.scanned.add((side, offset))
            self.evidence.scan_bytes_left[side] -= max(answer.bytes_read, 1)
        return view.covered_to(offset) > offset

    def _give_up(self, obstacle: str) -> None:
        if self.obstacle is None:
            self.obstacle = obstacle

    def next_data(self, side: Side, offset: int, *, scan: bool = False) -> Search:
        """The first data record at or after `offset`, or LOG_END, or UNKNOWN."""
        view = self.evidence.view(side)
        for max_bytes in GROWING_READ_BYTES[1 if scan else 0 :]:
            record = view.next_known(offset)
            if record is not None:
                return record if record.offset < view.end else Edge.LOG_END
            known_to = view.covered_to(offset)
            if known_to >= view.end:
                return Edge.LOG_END
            if not (yield from self.read(side, known_to, max_bytes, scan=scan)):
                return Edge.UNKNOWN
        record = view.next_known(offset)
        return Edge.UNKNOWN if record is None else record

    def previous_data(self, side: Side, offset: int, *, scan: bool = False) -> Search:
        """The last data record before `offset`, or LOG_START, or UNKNOWN.

        Stepping back doubles and then goes forward inside the gap: a fetch inside a hole
        answers the batch after it.
        """
        view = self.evidence.view(side)
        step = 1
        while (record := view.previous_known(offset)) is None:
            known_from = view.covered_from(offset)
            if known_from <= view.start:
                return Edge.LOG_START
            at = max(view.start, known_from - step)
            while at < known_from:
                if not (yield from self.read(side, at, scan=scan)):
                    return Edge.UNKNOWN
                at = view.covered_to(at)
            step *= 2
        return record if record.offset >= view.start else Edge.LOG_START
