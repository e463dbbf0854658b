"""What is known of one partition on both sides, shared by all its positions for a cycle.

A batch that one position asked for answers the others too, and so does a pair that was proven
for one of them, and what was found of the mirror's frontier.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from tsoffset.flow.settings import SAME_OFFSETS, TranslationSettings
from tsoffset.model import Isolation, Safety, Side, TopicPartition
from tsoffset.records import Record, Stretch
from tsoffset.rule.log_view import Absent, LogView, Unknown

# So many predictions may fail in a partition, beyond those that hold.
_PREDICTIONS = 3

# The most source records of one timestamp that are compared with a target record that equals none.
_COMPARED = 64


@dataclass(frozen=True, slots=True)
class Run:
    """Source records of one timestamp, one after the other: from `start` on all that lie before
    `read_to` bear it, and with `ended` the next one does not."""

    start: int
    read_to: int
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """A safe record pair: the target record at `target_offset` is a copy of the source record at
    `source_offset`, and all that follows the one on the source lies behind the other on the target,
    as `safety` shows.

    `earliest_equal` is the lowest source offset whose copy it may be instead: lower than
    `source_offset` where an equal record stands before it. That costs re-reads, never safety.
    """

    source_offset: int
    target_offset: int
    earliest_equal: int
    safety: Safety | None = field(default=None, compare=False)

    @property
    def distance(self) -> int:
        """By how much the target offset exceeds the source offset."""
        return self.target_offset - self.source_offset

    @property
    def clear(self) -> bool:
        """True where it is the copy of no other source record."""
        return self.earliest_equal == self.source_offset


class KnownPairs:
    """Proven and clear pairs of a partition in the order of their source offsets."""

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._pairs: list[Pair] = []

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._pairs)

    def add(self, pair: Pair) -> None:
        """Take a pair in, if it is clear and the first of its record."""
        at = bisect_left(self._offsets, pair.source_offset)
        if pair.clear and self._offsets[at : at + 1] != [pair.source_offset]:
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

    def walks(self) -> list[tuple[Pair, Pair]]:
        """The lowest and the highest of neighbouring pairs that are all equally far apart, for each
        distance that two or more have."""
        runs = (list(run) for _, run in groupby(self._pairs, lambda pair: pair.distance))
        return [(run[0], run[-1]) for run in runs if len(run) > 1]


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where the target's log begins: its record at `target_offset` was written when the replicator
    stood at `source_offset` or before.

    `oldest_ms` is None but where what lies before that record is of nothing that the source is seen
    to have: then this holds for commits from which on no record is older than that.
    """

    source_offset: int
    target_offset: int
    oldest_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Last:
    """The last record on the target that the source has: the lowest and the highest source record
    that it may be a copy of, and its target offset. `is_last` is true where no data record lies
    behind it on the target."""

    lowest: int
    highest: int
    target_offset: int
    is_last: bool


@dataclass(frozen=True, slots=True)
class SharedOffset:
    """An offset at which both logs have a record, and whether the two are equal."""

    offset: int
    equal: bool


class Evidence:
    """All that a cycle knows of one source partition and its target partition.

    `isolation` is what the replicator reads the source with. `is_remote_topic` is true where
    the target's name can only come from the replication policy; `failback` where the target
    holds the original and the source the replica. `predictions` are pairs that an earlier
    cycle proved, as (source offset, target offset): they say where to look, no more. `pairs` are
    those that this cycle has proven. `safe` are those of them, and one that an earlier cycle left,
    that were proven without another safe pair. `first_from` is the source offset from which on the
    mirror has copied everything for the first time in order, as this or an earlier cycle saw it.
    `not_compacted` is true where the target topic's cleanup.policy is known to lack compact.
    `known` is how many records are known on both sides, `scanned` the offsets from which the
    partition has paid for reads. `headers_hold` is true as long as no header has named a source
    record of other content. `last_shared` and `first_difference` are found where the mirror is
    expected to keep offsets.
    """

    def __init__(
        self,
        source: TopicPartition,
        target: TopicPartition,
        settings: TranslationSettings,
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        is_remote_topic: bool = True,
        failback: bool = False,
        predictions: Sequence[tuple[int, int]] = (),
        not_compacted: bool = False,
    ) -> None:
        self.settings = settings
        self.isolation = isolation
        self.is_remote_topic = is_remote_topic
        self.failback = failback
        self.predictions = predictions
        self.not_compacted = not_compacted
        self.pairs = KnownPairs()
        self.safe: list[Pair] = []
        self.first_from: int | None = None
        self.beginnings: dict[bool, Beginning | Unknown] = {}
        self.last: Last | Absent | Unknown | None = None
        self.ends_sought = self.frontier_sought = False
        self.ends: Pair | None = None
        self.last_shared: SharedOffset | None = None
        self.first_difference: int | None = None
        self.headers_hold = settings.offset_header is not None
        self.known = 0
        self.learned = 0
        self.scanned: set[tuple[Side, int]] = set()
        self.runs: dict[int, Run] = {}
        self.scan_bytes_left = {Side.SOURCE: settings.scan_bytes, Side.TARGET: settings.scan_bytes}
        self._views = {
            Side.SOURCE: LogView(source, settings.match),
            Side.TARGET: LogView(target, settings.match),
        }
        self._predictions_left = _PREDICTIONS
        self._read = dict.fromkeys(Side, (0, 0))

    @property
    def source(self) -> LogView:
        """The source's log as far as it is known."""
        return self._views[Side.SOURCE]

    @property
    def target(self) -> LogView:
        """The target's log as far as it is known."""
        return self._views[Side.TARGET]

    @property
    def source_log_end(self) -> int | None:
        """The end of the source's log itself, open transactions included; None where it was not
        read."""
        source = self.source
        if self.isolation is Isolation.READ_UNCOMMITTED:
            return None if source.range is None else source.range.end
        return None if source.own_range is None else source.own_range.end

    @property
    def keeps_offsets(self) -> bool:
        """True where the user says that the mirror keeps offsets."""
        return self.settings.expect == SAME_OFFSETS

    @property
    def target_rewrites_timestamps(self) -> bool:
        """True where the target stamps records itself. A mirror that keeps offsets keeps batches
        with what is said in them, also that the source has stamped them."""
        kept = self.keeps_offsets and self.source.rewrites_timestamps
        return self.target.rewrites_timestamps and not kept

    def view(self, side: Side) -> LogView:
        """The log of one side."""
        return self._views[side]

    def equal(self, original: Record, copy: Record) -> bool:
        """True where a source record and a target record match, and no header tells otherwise."""
        return self.source.identity(original) == self.target.identity(copy) and (
            not self.headers_hold or original.offset in self.originals(copy)
        )

    def originals(self, copy: Record) -> Sequence[int]:
        """Offsets of the known source records that a target record may be a copy of, ascending:
        of those that equal it the one that its header names, if it names one. Where that has other
        content, no header is believed any more."""
        equals = self.source.equals(self.target.identity(copy))
        named = copy.source_offset if self.headers_hold else None
        if named is None or named not in range(self.source.start, self.source.end):
            return equals
        if self.names_unread(copy):
            return ()  # to be read first
        if named in equals:
            return (named,)
        self.headers_hold = self.source.at(named) is None
        return equals

    def copies(self, original: Record) -> Sequence[int]:
        """Offsets of the known target records that may be copies of a source record, ascending: of
        those that equal it the ones whose header names it, else those that name no other."""
        equals = self.target.equals(self.source.identity(original))
        if not self.headers_hold:
            return equals
        copies = [copy for copy in map(self.target.at, equals) if copy is not None]
        named = [copy.offset for copy in copies if self.names(copy, original)]
        return named or [it.offset for it in copies if original.offset in self.originals(it)]

    def names(self, copy: Record, original: Record) -> bool:
        """True where the header of a target record names the source record that equals it."""
        return self.headers_hold and copy.source_offset == original.offset

    def may_be_of(self, copy: Record, offset: int) -> bool:
        """Whether a target record may be a copy of a source record from an offset on, all of which
        are known. One that equals none may still have its value or its key rewritten on the way,
        though `translation.match` names both."""
        equals = self.source.equals(self.target.identity(copy))
        if equals:
            return equals[-1] >= offset
        of_that_time = [at for at in self.source.at_time(copy.timestamp_ms) if at >= offset]
        if len(of_that_time) > _COMPARED:
            return True
        records = (self.source.at(at) for at in of_that_time)
        return any(it and (it.key == copy.key or it.value == copy.value) for it in records)

    def names_unread(self, copy: Record) -> bool:
        """True where the header of a target record names a source record that was not read."""
        named = copy.source_offset if self.headers_hold else None
        if named is None or named not in range(self.source.start, self.source.end):
            return False
        return self.source.covered_to(named) == named

    def most_data_between(self, start: int, end: int) -> int:
        """At most so many data records lie in [start, end) on the source."""
        start = max(start, self.source.start)
        if start >= end:
            return 0
        known = self.source.covered_to(start) >= end
        return self.source.count_known(start, end) if known else end - start

    def add(self, side: Side, stretch: Stretch) -> None:
        """Take in what was read on one side."""
        fresh = self._views[side].add(stretch)
        offsets, size = self._read[side]
        self._read[side] = offsets + stretch.end - stretch.start, size + stretch.bytes_read
        self.known += fresh
        self.learned += fresh > 0

    def fits(self, side: Side, offsets: int, most_bytes: int | None = None) -> bool:
        """Whether the partition's budget allows so many more offsets to be read, of so many bytes
        at most, as far as the batches tell that were read."""
        seen, size = self._read[side]
        left = self.scan_bytes_left[side]
        if most_bytes is not None:
            left = min(left, most_bytes)
        return left > 0 and (seen == 0 or offsets * size <= seen * left)

    def prove(self, pair: Pair) -> None:
        """Take in a safe pair."""
        self.pairs.add(pair)
        self.learned += 1

    def add_safe(self, pair: Pair) -> None:
        """Take in a safe pair that was proven without another one."""
        insort(self.safe, pair, key=lambda it: it.target_offset)
        self.learned += 1

    def safe_above(self, source_offset: int, target_offset: int) -> Pair | None:
        """A safe pair whose record is at a source offset or above it, and whose copy is at a target
        offset or behind it; None where none is known."""
        for pair in reversed(self.safe):
            if pair.target_offset < target_offset:
                break
            if pair.earliest_equal >= source_offset:
                return pair
        return None

    def safe_below(self, source_offset: int) -> Pair | None:
        """The highest safe pair of a record before a source offset that the target still has."""
        below = (
            pair
            for pair in self.safe
            if pair.source_offset < source_offset and pair.target_offset >= self.target.start_seen
        )
        return max(below, key=lambda it: it.target_offset, default=None)

    @property
    def reached(self) -> tuple[int, int] | None:
        """The highest safe pair that was proven without another one, as (source offset, target
        offset); None where none is known."""
        if not self.safe:
            return None
        return self.safe[-1].source_offset, self.safe[-1].target_offset

    @property
    def proven(self) -> Mapping[int, int]:
        """This cycle's pairs, source offset to target offset."""
        return {pair.source_offset: pair.target_offset for pair in self.pairs}

    def anchors(self, source_offset: int) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """The nearest known pairs below a source offset and above it, as (source offset, target
        offset); those of the last cycle, too."""
        pairs = self.pairs
        at = pairs.at(source_offset)
        below, above = at or pairs.below(source_offset), at or pairs.above(source_offset)
        place = bisect_left(self.predictions, (source_offset, -1))
        lower, upper = self.predictions[:place][-1:], self.predictions[place : place + 1]
        found_below = [(pair.source_offset, pair.target_offset) for pair in (below,) if pair]
        found_above = [(pair.source_offset, pair.target_offset) for pair in (above,) if pair]
        return (
            max((*found_below, *lower), default=None),
            min((*found_above, *upper), default=None),
        )

    def distance_near(self, target_offset: int) -> int | None:
        """By how much source offsets lie before target offsets at the nearest known pair."""
        known = [(pair.target_offset, pair.source_offset) for pair in self.pairs]
        known += [(target, source) for source, target in self.predictions]
        if not known:
            return None
        target, source = min(known, key=lambda pair: abs(pair[0] - target_offset))
        return target - source

    @property
    def predictions_hold(self) -> bool:
        """False once distances to known pairs have misled more often than they have led."""
        return self._predictions_left > 0

    def note_prediction(self, *, held: bool) -> None:
        """Take notice of whether the record lay where the distance to a pair had it."""
        self._predictions_left = min(_PREDICTIONS, self._predictions_left + (1 if held else -1))

    def forget_records(self, above: int) -> None:
        """Let go of all records, to bound what is held, but for those in batches that begin at
        or below a source offset, or its copy; proven pairs stay."""
        pair = self.pairs.above(above)
        self.known = self.source.forget(above)
        self.known += self.target.forget(pair.target_offset if pair else -1)
        self.runs.clear()
        self.scanned.clear()
