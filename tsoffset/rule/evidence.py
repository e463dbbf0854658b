"""What is known of one partition on both sides, shared by all its positions for a cycle.

A batch that one position asked for answers the others too, and so does a pair that was proven
for one of them, and what was found of the mirror's frontier.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from tsoffset.flow.settings import SAME_OFFSETS, TranslationSettings
from tsoffset.model import Isolation, Side, TopicPartition
from tsoffset.records import Record, Stretch
from tsoffset.rule.log_view import LogView

# So many predictions may fail in a partition, beyond those that hold.
_PREDICTIONS = 3


@dataclass(frozen=True, slots=True)
class Run:
    """Source records of one timestamp, one after the other: from `start` on all that lie before
    `read_to` bear it, and with `ended` the next one does not."""

    start: int
    read_to: int
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """The target record at `target_offset` is a copy of the source record at `source_offset`, and
    all that follows the one on the source lies behind the other on the target.

    `earliest_equal` is the lowest source offset whose copy it may be instead: lower than
    `source_offset` where an equal record stands before it. That costs re-reads, never safety.
    """

    source_offset: int
    target_offset: int
    earliest_equal: int

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
class Frontier:
    """How far the mirror has come (`tsoffset.rule.frontier`).

    `reached` is the pair of the highest source record that is known beyond doubt to lie on the
    target, with its last copy; None where nothing is known to lie there. `top` is the highest
    source offset whose content lies there at all; -1 where none does, None where that is not
    known. `last` is the last record on the target that the source has: (source offset, target
    offset). `complete` is true where that is the source's last one, and nothing lies behind it.
    """

    reached: Pair | None
    top: int | None
    last: tuple[int, int] | None = None
    complete: bool = False


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
    cycle proved, as (source offset, target offset): they say where to look, no more.
    `remembered_frontier` is `Frontier.reached` of an earlier cycle over these same logs, as such
    a pair: what was written since lies behind it, so it limits as safely as today's. `pairs` are
    those that this cycle has proven; `known` is how many records are known on both
    sides, `scanned` the offsets from which the partition has paid for reads. `headers_hold`
    is true as long as no header has named a source record of other content. `last_shared` and
    `first_difference` are found where the mirror is expected to keep offsets.
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
        remembered_frontier: tuple[int, int] | None = None,
    ) -> None:
        self.settings = settings
        self.isolation = isolation
        self.is_remote_topic = is_remote_topic
        self.failback = failback
        self.predictions = predictions
        self.pairs = KnownPairs()
        self.remembered_frontier = remembered_frontier
        self.frontier: Frontier | None = None
        self.last_shared: SharedOffset | None = None
        self.first_difference: int | None = None
        self.replica_seen = False
        self.replica_set_back_by: int | None = None
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

    @property
    def source(self) -> LogView:
        """The source's log as far as it is known."""
        return self._views[Side.SOURCE]

    @property
    def target(self) -> LogView:
        """The target's log as far as it is known."""
        return self._views[Side.TARGET]

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
        if self.source.covered_to(named) == named:
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

    def most_data_between(self, start: int, end: int) -> int:
        """At most so many data records lie in [start, end) on the source."""
        start = max(start, self.source.start)
        if start >= end:
            return 0
        known = self.source.covered_to(start) >= end
        return self.source.count_known(start, end) if known else end - start

    def chain(self, original: Record, copy: Record, length: int) -> bool:
        """True where so many records in a row are known to be equal on both sides, back from
        these."""
        one: Record | None = original
        other: Record | None = copy
        for _ in range(length):
            if one is None or other is None or not self.equal(one, other):
                return False
            one = self.source.previous_known(one.offset)
            other = self.target.previous_known(other.offset)
        return True

    def add(self, side: Side, stretch: Stretch) -> None:
        """Take in what was read on one side."""
        fresh = self._views[side].add(stretch)
        self.known += fresh
        self.learned += fresh > 0

    def prove(self, pair: Pair) -> None:
        """Take in a proven pair."""
        self.pairs.add(pair)
        self.learned += 1

    @property
    def reached(self) -> tuple[int, int] | None:
        """The pair of the frontier, as (source offset, target offset); None where none is found."""
        found = None if self.frontier is None else self.frontier.reached
        return None if found is None else (found.source_offset, found.target_offset)

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
