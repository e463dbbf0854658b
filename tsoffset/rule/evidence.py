"""What is known of one partition on both sides, shared by all its source offsets for a cycle.

A batch that was fetched for one source offset serves the others, and so do a pair that was proven
for one of them, and the frontier.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tsoffset.flow.settings import SAME_OFFSETS, TranslationSettings
from tsoffset.model import Isolation, Side, TopicPartition
from tsoffset.records import FetchedRange, Record
from tsoffset.rule.found import Absent, Unanswered, Unknown
from tsoffset.rule.log_view import LogView
from tsoffset.rule.pairs import KnownPairs, Pair

# The number of wrong predictions allowed in a partition, in excess of right ones.
_PREDICTIONS = 3

# The most source records of one timestamp that are compared with a target record without an equal.
_COMPARED = 64


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive source records of one timestamp: all records from `start` to before `read_to`
    have it. If `ended`, the next record has another one."""

    start: int
    read_to: int
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Beginning:
    """When the target record at `target_offset` was written, the replicator was at or before
    `source_offset`.

    `oldest_ms` is set if the source has lost the originals of the target records before. Then this
    holds only for committed offsets from which on no record is older than `oldest_ms`.
    """

    source_offset: int
    target_offset: int
    oldest_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Last:
    """The last target record that the source has: the lowest and the highest source record that it
    may be a copy of. `is_last` is true if no data record follows it on the target."""

    lowest: int
    highest: int
    target_offset: int
    is_last: bool


@dataclass(frozen=True, slots=True)
class SharedOffset:
    """An offset at which both logs have a record."""

    offset: int
    equal: bool


class Evidence:
    """Everything that a cycle knows of one source partition and its target partition.

    - `isolation`: what the replicator reads the source with.
    - `is_remote_topic`: the target's name can only come from the replication policy.
    - `failback`: the target holds the original, and the source is the replica.
    - `predictions`: pairs that an earlier cycle proved, as (source offset, target offset). They
      only say where to look.
    - `pairs`: the pairs that this cycle has proven. `safe`: those of them that were proven without
      another safe pair, and one of an earlier cycle.
    - `first_from`: the source offset from which on the mirror's first copies are in order.
    - `not_compacted`: the target topic's cleanup.policy is known and does not include compact.
    - `known`: the number of known records on both sides. `scanned`: the offsets of reads that the
      partition has paid for.
    - `in_the_way`: the target record at which the last proof by time failed, and the highest source
      record that it equals. The next proof often fails there, too. `compared` is (offset, start,
      end): no copy of a source record from `offset` on lies in [start, end), by the last proof.
    - `headers_hold`: no header has named a source record of other content yet.
    - `last_shared` and `first_difference`: only for mirrors that keep offsets.
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
        self.in_the_way = (-1, -1)
        self.compared = (0, -1, -1)
        self.scan_bytes_left = {Side.SOURCE: settings.scan_bytes, Side.TARGET: settings.scan_bytes}
        self._views = {
            Side.SOURCE: LogView(source, settings.match),
            Side.TARGET: LogView(target, settings.match),
        }
        self._predictions_left = _PREDICTIONS
        self._read = dict.fromkeys(Side, (0, 0))

    @property
    def source(self) -> LogView:
        """The known part of the source's log."""
        return self._views[Side.SOURCE]

    @property
    def target(self) -> LogView:
        """The known part of the target's log."""
        return self._views[Side.TARGET]

    @property
    def source_log_end(self) -> int | None:
        """The end of the source's log itself, including open transactions; None if it was not
        read."""
        source = self.source
        if self.isolation is Isolation.READ_UNCOMMITTED:
            return None if source.range is None else source.range.end
        return None if source.own_range is None else source.own_range.end

    @property
    def keeps_offsets(self) -> bool:
        """True with `translation.expect = same-offsets`."""
        return self.settings.expect == SAME_OFFSETS

    @property
    def may_lack_first_copies(self) -> bool:
        """True if compaction or retention may have removed records from the target."""
        return not self.not_compacted or self.target.start > 0

    @property
    def target_rewrites_timestamps(self) -> bool:
        """True if the target sets the timestamps of records itself. A mirror that keeps offsets
        copies whole batches, which may say that the source has set the timestamps."""
        kept = self.keeps_offsets and self.source.rewrites_timestamps
        return self.target.rewrites_timestamps and not kept

    def view(self, side: Side) -> LogView:
        return self._views[side]

    def equal(self, original: Record, copy: Record) -> bool:
        """True if a source record and a target record match, and no header contradicts."""
        return self.source.identity(original) == self.target.identity(copy) and (
            not self.headers_hold or original.offset in self.originals(copy)
        )

    def originals(self, copy: Record) -> Sequence[int]:
        """Offsets of the known source records that a target record may be a copy of, ascending.

        These are the records that equal it. If its header names one of them, only that one counts.
        If the header names a record of other content, headers are ignored from then on.
        """
        equals = self.source.equals(self.target.identity(copy))
        named = copy.source_offset if self.headers_hold else None
        if named is None or named not in range(self.source.start, self.source.end):
            return equals
        if self.names_unread(copy):
            return ()  # read that record first
        if named in equals:
            return (named,)
        self.headers_hold = self.source.at(named) is None
        return equals

    def copies(self, original: Record) -> Sequence[int]:
        """Offsets of the known target records that may be copies of a source record, ascending.

        These are the records that equal it. If headers name the source record, only those count;
        otherwise those whose header names no other record.
        """
        equals = self.target.equals(self.source.identity(original))
        if not self.headers_hold:
            return equals
        copies = [copy for copy in map(self.target.at, equals) if copy is not None]
        named = [copy.offset for copy in copies if self.names(copy, original)]
        return named or [it.offset for it in copies if original.offset in self.originals(it)]

    def names(self, copy: Record, original: Record) -> bool:
        """True if the header of a target record names the source record that equals it."""
        return self.headers_hold and copy.source_offset == original.offset

    def may_be_of(self, copy: Record, offset: int) -> bool:
        """Whether a target record may be a copy of a source record from `offset` on. All of these
        must be known.

        A target record without an equal may be a copy whose value or key was rewritten on the way,
        although `translation.match` names both. Or it may be the copy of a record without a
        timestamp: Java's producers, and so MirrorMaker 2, set the time at which they copy it.
        """
        equals = self.source.equals(self.target.identity(copy))
        if equals:
            return equals[-1] >= offset
        alike = {*self.source.at_time(copy.timestamp_ms), *self.source.at_time(None)}
        alike = {at for at in alike if at >= offset}
        if len(alike) > _COMPARED:
            return True
        records = map(self.source.at, alike)
        return any(it and (it.key == copy.key or it.value == copy.value) for it in records)

    def may_be_later(self, pair: tuple[int, int], offset: int) -> bool:
        """Whether the target record of a pair may be a copy of a later source record instead, from
        `offset` on, as far as that is known and can be read."""
        source_offset, target_offset = pair
        try:
            copy = self.target.at(target_offset)
            latest = -1 if copy is None else max(self.originals(copy), default=-1)
        except Unanswered:
            return False
        return latest >= offset and latest > source_offset

    def names_unread(self, copy: Record) -> bool:
        """True if the header of a target record names a source record that was not read."""
        named = copy.source_offset if self.headers_hold else None
        if named is None or named not in range(self.source.start, self.source.end):
            return False
        return self.source.covered_to(named) == named

    def most_data_between(self, start: int, end: int) -> int:
        """An upper bound for the number of data records in [start, end) on the source."""
        start = max(start, self.source.start)
        if start >= end:
            return 0
        known = self.source.covered_to(start) >= end
        return self.source.count_known(start, end) if known else end - start

    def add(self, side: Side, fetched: FetchedRange) -> None:
        """Add a batch that was read on one side."""
        fresh = self._views[side].add(fetched)
        offsets, size = self._read[side]
        self._read[side] = offsets + fetched.end - fetched.start, size + fetched.bytes_read
        self.known += fresh
        self.learned += fresh > 0

    def fits(self, side: Side, offsets: int, most_bytes: int | None = None) -> bool:
        """Whether the partition's budget, or `most_bytes`, allows reading this many more offsets,
        estimated by the size of the batches read so far."""
        seen, size = self._read[side]
        left = self.scan_bytes_left[side]
        if most_bytes is not None:
            left = min(left, most_bytes)
        return left > 0 and (seen == 0 or offsets * size <= seen * left)

    def prove(self, pair: Pair) -> None:
        """Add a pair. A known one increases `learned`, too: the records read to prove it may help
        other source offsets in a second attempt."""
        self.pairs.add(pair)
        self.learned += 1

    def add_safe(self, pair: Pair) -> None:
        """Add a safe pair that was proven without another one, unless it is known."""
        if any(pair == known and pair.safety == known.safety for known in self.safe):
            return
        insort(self.safe, pair, key=lambda it: it.target_offset)
        self.learned += 1

    def safe_above(self, source_offset: int, target_offset: int) -> Pair | None:
        """A known safe pair whose record is at `source_offset` or above, and whose copy is at
        `target_offset` or behind."""
        for pair in reversed(self.safe):
            if pair.target_offset < target_offset:
                break
            if pair.earliest_equal >= source_offset:
                return pair
        return None

    def safe_below(self, source_offset: int) -> Pair | None:
        """The highest safe pair of a record before `source_offset` that the target still has."""
        below = (
            pair
            for pair in self.safe
            if pair.source_offset < source_offset and pair.target_offset >= self.target.start_seen
        )
        return max(below, key=lambda it: it.target_offset, default=None)

    @property
    def reached(self) -> tuple[int, int] | None:
        """The highest safe pair that was proven without another one, as (source offset, target
        offset)."""
        if not self.safe:
            return None
        return self.safe[-1].source_offset, self.safe[-1].target_offset

    @property
    def proven(self) -> Mapping[int, int]:
        """This cycle's pairs, source offset to target offset."""
        return {pair.source_offset: pair.target_offset for pair in self.pairs}

    def anchors(self, source_offset: int) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """The nearest known pairs below and above a source offset, as (source offset, target
        offset), including those of the last cycle."""
        pairs = self.pairs
        at = pairs.at(source_offset)
        below, above = (
            at or pairs.nearest_below(source_offset),
            at or pairs.nearest_above(source_offset),
        )
        index = bisect_left(self.predictions, (source_offset, -1))
        lower, upper = self.predictions[:index][-1:], self.predictions[index : index + 1]
        found_below = [(pair.source_offset, pair.target_offset) for pair in (below,) if pair]
        found_above = [(pair.source_offset, pair.target_offset) for pair in (above,) if pair]
        return (
            max((*found_below, *lower), default=None),
            min((*found_above, *upper), default=None),
        )

    def distance_near(self, target_offset: int) -> int | None:
        """Target offset minus source offset at the nearest known pair."""
        known = [(pair.target_offset, pair.source_offset) for pair in self.pairs]
        known += [(target, source) for source, target in self.predictions]
        if not known:
            return None
        target, source = min(known, key=lambda pair: abs(pair[0] - target_offset))
        return target - source

    @property
    def predictions_hold(self) -> bool:
        """False once predictions have misled more often than they have helped."""
        return self._predictions_left > 0

    def note_prediction(self, *, held: bool) -> None:
        """Count a prediction, and whether the record was there."""
        self._predictions_left = min(_PREDICTIONS, self._predictions_left + (1 if held else -1))

    def forget_records(self, above: int) -> None:
        """Drop records to limit memory. Proven pairs are kept, and the records in batches that
        begin at or below the source offset `above` or its copy."""
        pair = self.pairs.nearest_above(above)
        self.known = self.source.forget(above)
        self.known += self.target.forget(pair.target_offset if pair else -1)
        self.runs.clear()
        self.scanned.clear()
