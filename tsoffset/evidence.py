"""What is known of one partition on both sides, and how a conversation asks for more.

Evidence is shared by all positions of a partition for the length of a cycle: a batch that
one position asked for answers the others too. An `Inquiry` is one position's access to it,
with that position's budget. Nothing here does I/O: a question is yielded, the runner
(`tsoffset.sync`) sends its answer back.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum, auto

from tsoffset.model import (
    Failed,
    FirstAtTime,
    Isolation,
    LogRange,
    ReadFrom,
    Record,
    Side,
    Stretch,
    TimedOffset,
    TimestampType,
    TopicPartition,
)
from tsoffset.settings import TranslationSettings

# A search for the next data record grows its reads; so does a scan.
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
    what: RangeOf | ReadFrom | FirstAtTime


Answer = LogRange | Stretch | TimedOffset | Failed | None


class Edge(Enum):
    """Where a search for a data record ended without one."""

    LOG_START = auto()
    LOG_END = auto()
    UNKNOWN = auto()


class Unanswered(Exception):
    """A question failed; the conversation ends with `failed` as its outcome."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed)
        self.failed = failed


Identity = tuple[int | bytes | None, ...]


class LogView:
    """The known parts of one log: which offsets were read, and the data records there."""

    def __init__(self, partition: TopicPartition, match: frozenset[str]) -> None:
        self.partition = partition
        self.range: LogRange | None = None
        self.own_range: LogRange | None = None
        self.times: dict[int, TimedOffset | None] = {}
        self.rewrites_timestamps = False
        self._match = match
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._offsets: list[int] = []
        self._records: dict[int, Record] = {}
        self._equals: dict[Identity, list[int]] = {}

    @property
    def start(self) -> int:
        """The log's start."""
        assert self.range is not None
        return self.range.start

    @property
    def end(self) -> int:
        """The readable end."""
        assert self.range is not None
        return self.range.end

    @property
    def size(self) -> int:
        """How many records are known; grows with every stretch that brought news."""
        return len(self._offsets)

    def identity(self, record: Record) -> Identity:
        """What must be equal for another record to be an image of this one."""
        match = self._match
        return (
            record.timestamp_ms if "timestamp" in match else None,
            record.key if "key" in match else None,
            record.value if "value" in match else None,
        )

    def add(self, stretch: Stretch) -> None:
        """Take in what was read; what is known already is left alone."""
        if stretch.timestamp_type is TimestampType.LOG_APPEND_TIME:
            self.rewrites_timestamps = True
        if stretch.start >= stretch.end or self.covered_to(stretch.start) >= stretch.end:
            return
        fresh = [r for r in stretch.records if r.offset not in self._records]
        if fresh:
            for record in fresh:
                self._records[record.offset] = record
                insort(self._equals.setdefault(self.identity(record), []), record.offset)
            at = bisect_left(self._offsets, fresh[0].offset)
            if at == len(self._offsets) or self._offsets[at] > fresh[-1].offset:
                self._offsets[at:at] = [r.offset for r in fresh]
            else:
                self._offsets = sorted(self._records)
        self._cover(stretch.start, stretch.end)

    def _cover(self, start: int, end: int) -> None:
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        if first < last:
            start = min(start, self._starts[first])
            end = max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def covered_to(self, offset: int) -> int:
        """The end of the gap-free known part that holds `offset`; `offset` if none does."""
        at = bisect_right(self._starts, offset) - 1
        return self._ends[at] if at >= 0 and self._ends[at] > offset else offset

    def covered_from(self, offset: int) -> int:
        """The start of the gap-free known part that reaches up to `offset`."""
        at = bisect_left(self._starts, offset) - 1
        return self._starts[at] if at >= 0 and self._ends[at] >= offset else offset

    def at(self, offset: int) -> Record | None:
        """The known record at `offset`."""
        return self._records.get(offset)

    def next_known(self, offset: int) -> Record | None:
        """The first data record at or after `offset` in its gap-free known part."""
        at = bisect_left(self._offsets, offset)
        if at < len(self._offsets) and self._offsets[at] < self.covered_to(offset):
            return self._records[self._offsets[at]]
        return None

    def previous_known(self, offset: int) -> Record | None:
        """The last data record before `offset` in the gap-free known part up to it."""
        at = bisect_left(self._offsets, offset) - 1
        if at >= 0 and self._offsets[at] >= self.covered_from(offset):
            return self._records[self._offsets[at]]
        return None

    def count_known(self, start: int, end: int) -> int:
        """How many known data records lie in [start, end)."""
        return bisect_left(self._offsets, end) - bisect_left(self._offsets, start)

    def known(self, start: int, end: int) -> list[Record]:
        """The known data records in [start, end), in order."""
        at = slice(bisect_left(self._offsets, start), bisect_left(self._offsets, end))
        return [self._records[offset] for offset in self._offsets[at]]

    def equals(self, identity: Identity) -> list[int]:
        """Offsets of the known records of this identity, ascending."""
        return self._equals.get(identity, [])

    def identities(self) -> dict[Identity, list[int]]:
        """All identities known, each with its offsets, ascending."""
        return self._equals


class Evidence:
    """All that a cycle knows of one source partition and its target partition.

    `isolation` is what the replicator reads the source with. `remote_name` is true where
    the target's name can only come from the replication policy; `reverse` where the target
    holds the original and the source the replica.
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
    ) -> None:
        self.settings = settings
        self.isolation = isolation
        self.remote_name = remote_name
        self.reverse = reverse
        self.pair_proven = False
        self.run_ends: dict[int, tuple[int, int]] = {}
        self.scan_bytes_left = {Side.SOURCE: settings.scan_bytes, Side.TARGET: settings.scan_bytes}
        self._views = {
            Side.SOURCE: LogView(source, settings.match),
            Side.TARGET: LogView(target, settings.match),
        }
        self._contradictions: tuple[int, int, list[int], list[int]] | None = None

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

    def contradicted(self, source_offset: int, target_offset: int) -> bool:
        """True where a later source record is known whose copies seen all lie below
        `target_offset`: the replicator has begun to repeat a stretch and not ended it."""
        sizes = (self.source.size, self.target.size)
        if self._contradictions is None or self._contradictions[:2] != sizes:
            self._contradictions = (*sizes, *self._highest_copies())
        _, _, offsets, lowest_after = self._contradictions
        at = bisect_right(offsets, source_offset)
        return at < len(offsets) and lowest_after[at] < target_offset

    def _highest_copies(self) -> tuple[list[int], list[int]]:
        """Source offsets with copies seen, and the suffix minimum of their highest copy.

        Of equal source records only the first is taken: what is seen may be its copy alone.
        """
        copies = self.target.identities()
        highest = sorted(
            (offsets[0], copies[identity][-1])
            for identity, offsets in self.source.identities().items()
            if identity in copies
        )
        lowest_after = [copy for _, copy in highest]
        for at in range(len(lowest_after) - 2, -1, -1):
            lowest_after[at] = min(lowest_after[at], lowest_after[at + 1])
        return [offset for offset, _ in highest], lowest_after


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
        assert isinstance(answer, Stretch)
        news = view.covered_to(offset) <= offset
        view.add(answer)
        if scan and news:
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

    def previous_data(self, side: Side, offset: int) -> Search:
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
                if not (yield from self.read(side, at)):
                    return Edge.UNKNOWN
                at = view.covered_to(at)
            step *= 2
        return record if record.offset >= view.start else Edge.LOG_START
