"""Other rules that translate offsets, as small models over the logs of a `World`.

They answer as the real ones do, for the tables of docs/accuracy.md only. If the original leaves a
choice, the model takes the better result: nothing is lost between its parts, and nothing is late.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Protocol

from tests.replication_model import World
from tsoffset.model import Isolation
from tsoffset.testing.memory_cluster import Message

OFFSET_LAG_MAX = 100
SYNCS_PER_PARTITION = 64


class Rule(Protocol):
    """One way to translate the offsets of one world."""

    def translate(self, committed: int) -> int | None:
        """The target offset that this rule commits; None if it commits nothing."""


class KipRule:
    """KIP-1292 as written: the time of the record at the committed offset, looked up.

    Nothing is committed without a record there (a caught-up group, for ever), if the record has no
    time, or if the target has no answer.
    """

    def __init__(self, world: World) -> None:
        self._source = dict(world.source.messages(world.isolation))
        self._offsets = sorted(self._source)
        self._target = world.target

    def translate(self, committed: int) -> int | None:
        """The first target record at or after the time of the next record to read."""
        at = bisect_left(self._offsets, committed)
        if at == len(self._offsets):
            return None
        timestamp_ms = self._source[self._offsets[at]].timestamp_ms
        if timestamp_ms is None:
            return None
        found = self._target.first_at(timestamp_ms, Isolation.READ_UNCOMMITTED)
        return None if found is None else found.offset


class PrototypeRule:
    """The published prototype of KIP-1292: the record before the committed offset, and one past it.

    It commits offset 0 unchanged, and needs a record at exactly one less than the committed offset.
    It adds one to whatever ListOffsets answers: also to -1, which means none, and for a record
    without a time to the log's end, since -1 as a time means the latest offset.
    """

    def __init__(self, world: World) -> None:
        self._source = dict(world.source.messages(world.isolation))
        self._target = world.target

    def translate(self, committed: int) -> int | None:
        """One past the first target record at or after the time of the last record read."""
        if committed == 0:
            return 0
        last: Message | None = self._source.get(committed - 1)
        if last is None:
            return None
        if last.timestamp_ms is None:
            return self._target.high_watermark + 1
        found = self._target.first_at(last.timestamp_ms, Isolation.READ_UNCOMMITTED)
        return 0 if found is None else found.offset + 1


@dataclass(frozen=True, slots=True)
class Sync:
    """An offset sync: the record at `upstream` was copied to `downstream`."""

    upstream: int
    downstream: int


class SyncWriter:
    """When MirrorMaker 2 writes a sync (OffsetSyncWriter): at its first record, after a gap in
    source offsets, when the target's offsets went back, and once `offset.lag.max` records were
    copied since the last one. In between, the newest pair waits for the worker's next commit; in
    this model, for the end of the run."""

    def __init__(self, offset_lag_max: int = OFFSET_LAG_MAX) -> None:
        self._offset_lag_max = offset_lag_max
        self._last: Sync | None = None
        self._synced_downstream = 0
        self._delayed: Sync | None = None

    def copied(self, upstream: int, downstream: int) -> Sync | None:
        """The sync to write at once after this record, if any."""
        last, self._last = self._last, Sync(upstream, downstream)
        due = (
            last is None
            or upstream - last.upstream != 1
            or downstream < last.downstream
            or downstream - (self._synced_downstream + 1) >= self._offset_lag_max
        )
        self._delayed = None if due else self._last
        if not due:
            return None
        self._synced_downstream = downstream
        return self._last

    def ended(self) -> Sync | None:
        """The sync that still waits when the run ends."""
        return self._delayed


@dataclass(slots=True)
class SyncStore:
    """The syncs of a partition that the checkpoint task keeps (OffsetSyncStore): 64 of them.

    The sync at index i is the newest, or at most 2**i - 2**(i - 1) source offsets older than the
    one before and at least 2**(i - 3) older: so their distances grow, and an index may repeat the
    one before. A sync that goes back on the source, as after a restart of the replicator, drops all
    others.
    """

    syncs: list[Sync] = field(default_factory=list)

    def add(self, sync: Sync) -> None:
        """Add the next sync of the topic."""
        if not self.syncs or sync.upstream < self.syncs[0].upstream:
            self.syncs = [sync] * SYNCS_PER_PARTITION
            return
        known = self.syncs
        self.syncs = [sync, *known[1:]]
        heir, at = sync, 0
        for place in range(1, SYNCS_PER_PARTITION):
            # Syncs displaced from lower indices are tried for this one, each once.
            passing = True
            while passing and at < place:
                candidate = known[at]
                apart = _apart(self.syncs[place - 1], candidate, place - 1)
                fits = apart and _near(self.syncs[place - 1], candidate, place)
                if fits and place + 1 < SYNCS_PER_PARTITION:
                    fits = _apart(candidate, self.syncs[place + 1], place)
                if fits:
                    heir = candidate
                repeated = at + 1 < SYNCS_PER_PARTITION and candidate is known[at + 1]
                passing = repeated or not apart
                at += fits or passing
            if _near(self.syncs[place - 1], self.syncs[place], place):
                return
            self.syncs[place] = heir

    def translate(self, upstream: int) -> int | None:
        """The newest sync at or before the offset: its target offset, or one past it; None if all
        kept ones are newer (MirrorMaker 2 then emits no checkpoint)."""
        for sync in self.syncs:
            if sync.upstream <= upstream:
                return sync.downstream + (sync.upstream < upstream)
        return None


def _near(newer: Sync, older: Sync, place: int) -> bool:
    return newer is older or newer.upstream <= older.upstream + (1 << place) - (1 << (place - 1))


def _apart(newer: Sync, older: Sync, place: int) -> bool:
    return newer is older or newer.upstream >= older.upstream + (1 << max(place - 2, 0))


class OffsetSyncRule:
    """MirrorMaker 2's checkpoints, running all the time: no restart of the checkpoint task, which
    would lose the syncs that compaction has removed, and no sync dropped for too many in flight."""

    def __init__(self, world: World) -> None:
        self._store = SyncStore()
        # Syncs do not translate the way back.
        for run in () if world.kind.failback else world.runs:
            writer = SyncWriter()
            for upstream, downstream in run:
                self._note(writer.copied(upstream, downstream))
            self._note(writer.ended())

    def _note(self, sync: Sync | None) -> None:
        if sync is not None:
            self._store.add(sync)

    def translate(self, committed: int) -> int | None:
        """What a checkpoint for this commit says."""
        return self._store.translate(committed)
