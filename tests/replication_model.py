"""The truth about a partition and its mirror, whose replicator is a model (tests/replicator.py).

`World` is one source partition, the one it is mirrored to, and which target record is a copy
of which source record. The property tests and the tables of docs/accuracy.md judge
translations by it. `build` makes one from a `Kind` and a seed, the same for the same seed.
"""

import random
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property

from tests.random_logs import NOW_MS, TIMESTAMPS, Kind, write
from tests.replicator import Replicator, ReplicatorHistory, clean, lose_later_equals, trim
from tsoffset.model import Basis, Isolation, LeaderEpoch, Proof, TopicPartition, Translated
from tsoffset.records import OffsetHeader
from tsoffset.testing.memory_cluster import Clock, MemoryCluster, Message, PartitionLog

__all__ = ["HEADER", "NOW_MS", "SOURCE", "TARGET", "TIMESTAMPS", "Kind", "World", "build"]

SOURCE = TopicPartition("orders", 0)
TARGET = TopicPartition("A.orders", 0)
HEADER = OffsetHeader("origin")

Content = tuple[object, ...]

# More than any log has records.
_LOST = 1_000_000


@dataclass
class World:
    """One partition on both sides, with the truth of where each target record came from.

    `written` is what the source has ever held, `suffix` what the topics' names end in. What the
    truth says is computed once: `forget` it when the logs have changed.
    """

    source_cluster: MemoryCluster
    target_cluster: MemoryCluster
    kind: Kind
    life: ReplicatorHistory = field(default_factory=ReplicatorHistory)
    written: dict[int, Message] = field(default_factory=dict)
    replicator: Replicator | None = None
    suffix: str = ""
    losses: int = 0

    @property
    def source(self) -> PartitionLog:
        return self.source_cluster.log(f"{SOURCE.topic}{self.suffix}")

    @property
    def target(self) -> PartitionLog:
        return self.target_cluster.log(f"{TARGET.topic}{self.suffix}")

    @property
    def isolation(self) -> Isolation:
        """What the flow reads the source with, as the replicator does."""
        return self.kind.isolation

    @property
    def offset_header(self) -> OffsetHeader | None:
        """The header in which the replicator keeps source offsets."""
        return HEADER if self.kind.offset_header else None

    @property
    def runs(self) -> list[list[tuple[int, int]]]:
        """The replicator's lives: what each copied, as (offset, offset of the copy)."""
        return self.life.runs

    def positions(self) -> range:
        """Every offset that a group can have committed."""
        return range(self.source.start, self.source.end + 1)

    def forget(self) -> None:
        """Let the truth be computed again."""
        for name in [name for name in self.__dict__ if isinstance(_truth(name), cached_property)]:
            del self.__dict__[name]

    @cached_property
    def target_end(self) -> int:
        """The end of what can be read there: undecided records lie at it or after."""
        return self.target.readable_end(Isolation.READ_COMMITTED)

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """(target offset, source offset) of all that are copies of each other, or ever were; by
        target offset."""
        return sorted((copy, origin) for run in self.runs for origin, copy in run)

    @cached_property
    def data(self) -> list[int]:
        """Offsets of the source's data records: what compaction took is none any more."""
        return [offset for offset, _ in self.source.messages(self.isolation)]

    @cached_property
    def copies(self) -> list[tuple[int, int]]:
        """Of the pairs, those of which both records are there; undecided target records too,
        for they are readable sooner or later, but no aborted ones (of a failback's original)."""
        existing = set(self.data)
        there = {offset for offset, _ in self.target.messages(Isolation.READ_COMMITTED)}
        there |= {offset for offset, _ in self.target.messages() if offset >= self.target_end}
        return [pair for pair in self.pairs if pair[0] in there and pair[1] in existing]

    # --- what is safe ---------------------------------------------------------------------

    @cached_property
    def _limits(self) -> tuple[list[int], list[int]]:
        """Source records with a copy, and the lowest of the highest copies from each one on."""
        highest = {origin: copy for copy, origin in self.copies}
        origins = sorted(highest)
        limits = [highest[origin] for origin in origins]
        for at in range(len(limits) - 2, -1, -1):
            limits[at] = min(limits[at], limits[at + 1])
        return origins, limits

    def true_position(self, committed: int) -> int:
        """The highest safe target offset: every source record from `committed` on that is on the
        target is there at it or after, at least in one copy. The log end if there is none."""
        origins, limits = self._limits
        at = bisect_left(origins, committed)
        return limits[at] if at < len(limits) else self.target.high_watermark

    def is_safe(self, committed: int, target_offset: int) -> bool:
        """Judged as if the source died now: copies still to be made do not help."""
        return target_offset <= self.true_position(committed)

    def passed(self, committed: int, target_offset: int) -> list[int]:
        """Source offsets of the records that an unsafe answer passes: from `committed` on, with
        copies below the target offset only."""
        ahead = {origin for copy, origin in self.copies if copy >= target_offset}
        return sorted(
            {origin for _, origin in self.copies if origin >= committed and origin not in ahead}
        )

    def excuse(self, committed: int, found: Translated) -> str | None:
        """Why this unsafe answer is none that a reader of both logs could have avoided; None where
        it is one. It rests on the truth of the world alone, not on what the rule has looked at.

        `equal`: the content of each record passed equals that of one that the group has read (below
        the commit, and on the source) or will read (at the answer or behind it on the target): no
        content is lost. `lost_equal`: the answer rests on a record whose original
        is lost, and which was taken for an equal one; what is passed lies between the two.
        `foreign_equal`: it rests on a record of others that equals one of the source.
        `stamps_switched`: the target stamped records itself in part of the log, and its time
        lookups answer by these stamps. `premise`: two replicators wrote at once, or a filter was
        changed at a restart, and lets now more or less of these records through. `very_late`: the
        target begins with what the source no longer has, and what is passed is older than the
        source's first record and was copied before the mirror was set back to that or below it.

            source   b c [z] x      the source has lost z, and x is older than b
            target   z x | b c      C=3: x lies before the lowest copy of c
        """
        passed = self._passed_originals(committed, found.target_offset)
        if not passed:
            return None
        contents = {self._originals[origin] for origin in passed}
        if contents <= self._read_or_to_be_read(committed, found.target_offset):
            return "equal"
        spans = self._taken_for_equals(found)
        if all(any(low <= at <= high for low, high in spans) for at in passed):
            return "lost_equal"
        if self._rests_on_others(found):
            return "foreign_equal"
        if self.kind.append_time in ("target_first", "target_later"):
            return "stamps_switched"
        if self._premise(found, passed) and not _holds_for_any_replicator(found):
            return "premise"
        return "very_late" if self._are_very_late(passed) else None

    def excuse_bound(self, committed: int, found: Translated) -> str | None:
        """Why content cannot tell that this bound is too low; None where it can.

        `premise`: as of unsafe answers. `twin_taken`: what the answer rests on is of an equal
        record, and all that comes again uncounted lies between the two. `set_back`: the mirror was
        set back to before its beginning, markers, records of others and further restarts hide where
        that lies, and what comes again from there on is counted.
        """
        spans = self._twins_taken(found)
        again = self._certainly_reread(committed, found.target_offset)
        outside = [at for at in again if not any(low <= at <= high for low, high in spans)]
        if again and len(outside) <= (found.reread_bound or 0):
            return "twin_taken"
        if self._premise(found, again):
            return "premise"
        begun = self.copies[0][1] if self.copies else 0
        counted = sum(at >= begun for at in again) <= (found.reread_bound or 0)
        # What lies before the first record on the target was copied later.
        is_set_back = min((origin for _, origin in self.copies), default=begun) < begun
        return "set_back" if is_set_back and counted else None

    def _passed_originals(self, committed: int, target_offset: int) -> list[int]:
        """Offsets of what is passed, on the side of the originals."""
        return self.passed(committed, target_offset)

    def _read_or_to_be_read(self, committed: int, target_offset: int) -> set[Content]:
        read = {self._content_of[origin] for origin in self.data if origin < committed}
        there = self.target.messages(Isolation.READ_COMMITTED)
        return read | {self.content(it) for offset, it in there if offset >= target_offset}

    # --- what an answer rests on ------------------------------------------------------------

    @cached_property
    def _begins(self) -> tuple[int, Content] | None:
        """The target's first data record: offset and content."""
        first = next(self.target.messages(Isolation.READ_COMMITTED), None)
        return None if first is None else (first[0], self.content(first[1]))

    def _pairs_under(self, found: Translated) -> list[tuple[int, int]]:
        """The pairs that an answer rests on, as (original, copy): those that it names, the one of
        its proof, and the target's first record with each that equals it."""
        pairs = list(found.pairs)
        if found.safety is not None and found.safety.pair is not None:
            pairs.append(found.safety.pair)
        if self._begins is not None:
            first, content = self._begins
            pairs += [(at, first) for at in self.data if self._content_of[at] == content]
        return pairs

    def _mistaken_pairs(self, found: Translated) -> list[tuple[int, int]]:
        """For each pair of an equal record: the original it was taken for, and the true one."""
        return [
            (origin, self._origins[copy])
            for origin, copy in self._pairs_under(found)
            if self._origins.get(copy, origin) != origin
        ]

    @cached_property
    def _origins(self) -> dict[int, int]:
        """The original of each copy, gone ones too."""
        return dict(self.pairs)

    @cached_property
    def _originals(self) -> dict[int, Content]:
        """Offset and content of the originals that are still in their log."""
        return {offset: self._content_of[offset] for offset in self.data}

    def _twins_taken(self, found: Translated) -> list[tuple[int, int]]:
        """The offsets between an equal record and what it was taken for, both included."""
        return [(min(pair), max(pair)) for pair in self._mistaken_pairs(found)]

    def _taken_for_equals(self, found: Translated) -> list[tuple[int, int]]:
        """Those of `_twins_taken` whose true original is lost."""
        mistaken = self._mistaken_pairs(found)
        return [(min(pair), max(pair)) for pair in mistaken if pair[1] not in self._originals]

    def _rests_on_others(self, found: Translated) -> bool:
        """True where one of the pairs that an answer rests on is of a record of others."""
        others = set(self.life.equal_to_ours)
        return any(copy in others for _, copy in self._pairs_under(found))

    def _premise(self, found: Translated, offsets: list[int]) -> bool:
        """True where two replicators wrote at once, or a filter was changed of which one of these
        originals, or one that the answer rests on, came through at one time and not at another."""
        if self.kind.two_at_once:
            return True
        if not self.kind.filter_changes or self.replicator is None:
            return False
        changed = self.replicator.left_out_first ^ self.life.left_out
        under = [origin for origin, _ in self._pairs_under(found)]
        return not changed.isdisjoint((*offsets, *under))

    def _are_very_late(self, passed: list[int]) -> bool:
        """True where what is passed is older than the source's first record that was copied, and
        all of its copies lie before the lowest of that; and where the target begins with what the
        source does not have."""
        contents = {self._content_of[offset] for offset in self.data}
        if not self.copies or self._begins is None or self._begins[1] in contents:
            return False
        copies: dict[int, list[int]] = {}
        for copy, origin in self.copies:
            copies.setdefault(origin, []).append(copy)
        first = min(copies)
        stamp = self.written[first].timestamp_ms
        return stamp is not None and all(
            copies[at][-1] < copies[first][0] and (self.written[at].timestamp_ms or 0) < stamp
            for at in passed
        )

    # --- what comes again -----------------------------------------------------------------

    @cached_property
    def _first_images(self) -> list[tuple[int, int]]:
        """Of the pairs of which both are there, those that were the source record's first."""
        first: dict[int, int] = {}
        for copy, origin in self.pairs:
            first.setdefault(origin, copy)
        return [(copy, origin) for copy, origin in self.copies if first[origin] == copy]

    @cached_property
    def _to_come(self) -> list[int]:
        """Source offsets of the records that will be copied for the first time, undecided ones
        included: from where the replicator stands now."""
        readable = self.source.readable_end(self.isolation)
        undecided = [offset for offset, _ in self.source.messages() if offset >= readable]
        copied = {origin for _, origin in self.pairs}
        return [
            offset
            for offset in sorted({*self.data, *undecided})
            if offset >= self.life.stands
            and offset not in self.life.left_out
            and offset not in copied
        ]

    def rereads(self, committed: int, target_offset: int) -> int:
        """How many source records before `committed` come again from `target_offset` on: those
        whose first image lies there, and those that the replicator has yet to copy. Copies
        that it made by repeating, and records that the source has lost, are not counted."""
        return len(self._reread(committed, target_offset))

    def _reread(self, committed: int, target_offset: int) -> list[int]:
        images = self._first_images
        again = [origin for _, origin in images[bisect_left(images, (target_offset, -1)) :]]
        to_come = self._to_come[: bisect_left(self._to_come, committed)]
        return [origin for origin in again if origin < committed] + to_come

    def certain_rereads(self, committed: int, target_offset: int) -> int:
        """`rereads` without those that cannot be known.

        They lie between a record that the source has lost after it was copied and its equal that
        is left; or they lie behind higher ones, which only a reader of the whole log sees: a
        filter left them out first and let them through in a repeat, or a second replicator went
        ahead; or a record of others that equals one of the source was taken for its copy; or the
        mirror was set back to before its beginning, and nothing of that was copied yet; or they
        have no timestamp, and their copies have one.
        """
        return len(self._certainly_reread(committed, target_offset))

    def _certainly_reread(self, committed: int, target_offset: int) -> list[int]:
        if self._foreign_equals:
            return []
        disordered = self.kind.filter_changes or self.kind.two_at_once
        late = self._copied_late if disordered else frozenset()
        late |= self._set_back_unseen
        if self.kind.stamps:
            late |= {at for at in self.data if self.written[at].timestamp_ms is None}
        mistakable = self._mistakable
        return [
            offset
            for offset in self._reread(committed, target_offset)
            if offset not in late and not any(low <= offset <= high for low, high in mistakable)
        ]

    def resumes_differ(self, committed: int, low: int, high: int) -> bool:
        """True where a consumer that resumes at `low` gets a first image of a record from
        `committed` on, or one that it has read, which it does not get from `high` on."""
        ahead = {origin for copy, origin in self.copies if copy >= high}
        return any(
            origin not in ahead or origin < committed
            for copy, origin in self._first_images
            if low <= copy < high
        )

    # --- what cannot be known -------------------------------------------------------------

    @cached_property
    def _copied_late(self) -> frozenset[int]:
        """Source records above the mirror's first beginning that were copied for the first time
        after a higher one, or are yet to be."""
        if not self.pairs:
            return frozenset()
        beginning = highest = self.pairs[0][1]
        seen: set[int] = set()
        late: set[int] = set()
        for _, origin in self.pairs:
            if origin not in seen and beginning < origin < highest:
                late.add(origin)
            seen.add(origin)
            highest = max(highest, origin)
        return frozenset(late.union(at for at in self._to_come if beginning < at < highest))

    @cached_property
    def _set_back_unseen(self) -> frozenset[int]:
        """What will be copied below the mirror's beginning, as long as no copy of that is left."""
        if not self.pairs:
            return frozenset()
        beginning = self.pairs[0][1]
        if any(origin < beginning for _, origin in self.copies):
            return frozenset()
        return frozenset(at for at in self._to_come if at < beginning)

    @cached_property
    def _mistakable(self) -> list[tuple[int, int]]:
        """Source offsets of each record that was copied and then lost while an equal one is still
        there, and of that one, in order: a copy of the first is taken for one of the second, and
        all that lies between for copied."""
        present: dict[Content, list[int]] = {}
        for offset in self.data:
            present.setdefault(self._content_of[offset], []).append(offset)
        spans = []
        for lost in {origin for _, origin in self.pairs} - set(self.data):
            equals = present.get(self._content_of[lost], [])
            spans += [(min(lost, equal), max(lost, equal)) for equal in equals]
        return spans

    @property
    def lost_an_equal(self) -> bool:
        """True where the source has lost one of two equal records."""
        return bool(self._mistakable)

    @cached_property
    def _foreign_equals(self) -> bool:
        """True if a foreign record that equals a record of the source lies among the copies."""
        replica = self.source if self.kind.failback else self.target
        there = {offset for offset, _ in replica.messages()}
        return not there.isdisjoint(self.life.equal_to_ours)

    @cached_property
    def _content_of(self) -> dict[int, Content]:
        return {offset: self.content(message) for offset, message in self.written.items()}

    def content(self, message: Message) -> Content:
        """What translation compares of a record."""
        return tuple(
            value
            for name, value in (
                ("timestamp", message.timestamp_ms),
                ("key", message.key),
                ("value", message.value),
            )
            if name in self.kind.match
        )

    # --- what happens next ----------------------------------------------------------------

    def go_on(self, rng: random.Random) -> None:
        """Let something happen: the replicator copies on, an application writes, retention or a
        cleaner comes to either side."""
        assert self.replicator is not None
        self.replicator.go_on(rng)
        self.written.update(self.source.messages())
        self.forget()

    def restart(self, rng: random.Random) -> None:
        """The replicator is restarted: it goes back, and copies on from there."""
        assert self.replicator is not None
        self.replicator.go_back(rng.randrange(15))
        self.replicator.copy_on(rng.randrange(30))
        self.written.update(self.source.messages())
        self.forget()

    def lose_end(self, rng: random.Random) -> int:
        """The source loses its newest records in an unclean leader election, and the replicator
        goes on from there. Returns where the log ends then. What was copied of the lost records is
        of no offset that is there again."""
        assert self.replicator is not None
        before = self.source.end
        first = LeaderEpoch(SOURCE, 0)
        # What was committed in the first epoch is not compared.
        low = max(self.source.start, self.source_cluster.epoch_ends([first])[first] or 0)
        end = rng.randrange(max(low, before - 20), before + 1)
        while not self._elected(end):
            end += 1
        self.losses += 1
        other = self.losses * _LOST
        self.life.runs = [
            [(origin + other if origin >= end else origin, copy) for origin, copy in run]
            for run in self.life.runs
        ]
        self.written = {
            offset + other if offset >= end else offset: message
            for offset, message in self.written.items()
        }
        self.life.left_out = {offset for offset in self.life.left_out if offset < end}
        self.life.stands = min(self.life.stands, end)
        self.forget()
        return end

    def _elected(self, log_end: int) -> bool:
        try:
            self.source_cluster.elect_leader(SOURCE, 0, log_end=log_end)
        except ValueError:
            return False  # within a batch, or a transaction is open
        return True

    def mirror_anew(self, rng: random.Random) -> None:
        """The target's topic is recreated, and the mirror starts again."""
        assert self.replicator is not None
        self.target_cluster.delete_topic(TARGET.topic)
        self.target_cluster.create_topic(
            TARGET.topic,
            first_offset=rng.randrange(20),
            configs=_cleaned(self.kind.target_compacted),
        )
        self.replicator.begin(self.source, self.target)
        self.life = self.replicator.life
        self.replicator.copy_on(self.source.end - rng.randrange(10))
        self.forget()

    def write_anew(self, rng: random.Random) -> None:
        """The source's topic is recreated, with other records."""
        self.source_cluster.delete_topic(SOURCE.topic)
        configs = _cleaned(self.kind.source_compacted)
        self.source_cluster.create_topic(SOURCE.topic, configs=configs)
        write(self.source, self.kind, rng)
        self.written = dict(self.source.messages())
        self.forget()


class Failback(World):
    """The flow back: the source is the replica, which repeats, the target its original.

    A group has read an original if one of its copies, gone ones too, lies below the commit. An
    answer must not pass an original that it has yet to read: on the replica, or because the
    replicator never came so far.
    """

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        return sorted(pair for run in self.runs for pair in run)

    @cached_property
    def data(self) -> list[int]:
        """Offsets of the replica's committed records: consumers pass over aborted ones."""
        return [offset for offset, _ in self.source.messages(Isolation.READ_COMMITTED)]

    @cached_property
    def _first_copy(self) -> dict[int, int]:
        first: dict[int, int] = {}
        for original, copy in self.pairs:
            first.setdefault(original, copy)
        return first

    @cached_property
    def _unread(self) -> list[tuple[int, int]]:
        """(first copy, original) of what is on both sides, and what was never copied as if its
        copies lay beyond the replica's end; by copy."""
        there = {original for original, _ in self.copies}
        never = self.source.end + 1
        return sorted(
            (self._first_copy.get(offset, never), offset)
            for offset, _ in self.target.messages(Isolation.READ_COMMITTED)
            if offset in there or (offset >= self.life.reached and offset not in self.life.left_out)
        )

    def true_position(self, committed: int) -> int:
        unread = self._unread[bisect_left(self._unread, (committed, -1)) :]
        return min((offset for _, offset in unread), default=self.target.high_watermark)

    def passed(self, committed: int, target_offset: int) -> list[int]:
        """Source offsets of the first copies of what is passed."""
        return sorted(
            copy
            for copy, offset in self._unread
            if committed <= copy < self.source.end and offset < target_offset
        )

    def _passed_originals(self, committed: int, target_offset: int) -> list[int]:
        return [at for copy, at in self._unread if committed <= copy and at < target_offset]

    def _pairs_under(self, found: Translated) -> list[tuple[int, int]]:
        """Those that it names alone: no first record counts, and no frontier is asked for."""
        return [(original, copy) for copy, original in found.pairs]

    @cached_property
    def _origins(self) -> dict[int, int]:
        return {copy: original for original, copy in self.pairs}

    @cached_property
    def _originals(self) -> dict[int, Content]:
        there = self.target.messages(Isolation.READ_COMMITTED)
        return {offset: self.content(message) for offset, message in there}

    def _are_very_late(self, passed: list[int]) -> bool:
        """The first copy does not serve in failback."""
        return False

    def rereads(self, committed: int, target_offset: int) -> int:
        return self.certain_rereads(committed, target_offset)

    def _certainly_reread(self, committed: int, target_offset: int) -> list[int]:
        """None where the group has read what lies behind the next record on the original, as inside
        a repeat: it comes again whatever is answered. Nor where the replica's stamps are its own:
        nothing there is seen to be a copy."""
        own_stamps = self.kind.append_time in ("target_first", "target_later")
        near = self.data[max(0, bisect_left(self.data, committed) - 1) :][:2]
        read = [original for original, copy in self._first_copy.items() if copy < committed]
        highest = max(read, default=-1)
        ahead = any(self._origins.get(at, highest) < highest for at in near)
        if ahead or own_stamps or self.lost_an_equal or self._foreign_equals:
            return []
        again = {
            original
            for original, copy in self.copies
            if copy < committed and original >= target_offset
        }
        return sorted(again)

    def resumes_differ(self, committed: int, low: int, high: int) -> bool:
        return False


def _holds_for_any_replicator(found: Translated) -> bool:
    """True for answers that nothing is assumed for, of what the replicator does."""
    by_time = found.safety is not None and found.safety.proof is Proof.TIME
    return found.basis is Basis.ALL_READ or (by_time and found.basis is Basis.NEXT_RECORD)


def _truth(name: str) -> object:
    return getattr(Failback, name, None)


def _cleaned(compacted: bool) -> dict[str, str]:
    return {"cleanup.policy": "compact" if compacted else "delete"}


def build(kind: Kind, seed: int) -> World:
    """A random world of this kind; the same for the same seed."""
    rng = random.Random(seed)
    clock = Clock(NOW_MS)
    header = HEADER if kind.offset_header else None
    source = MemoryCluster("A", clock=clock, offset_header=header)
    target = MemoryCluster("B", clock=clock, offset_header=header)
    elsewhere = rng.choice((0, 0, rng.randrange(50)))
    original, replica = _cleaned(kind.source_compacted), _cleaned(kind.target_compacted)
    if kind.failback:
        source.create_topic(SOURCE.topic, first_offset=elsewhere, configs=replica)
        target.create_topic(TARGET.topic, configs=original)
    else:
        source.create_topic(SOURCE.topic, configs=original)
        target.create_topic(TARGET.topic, first_offset=elsewhere, configs=replica)
    world = (Failback if kind.failback else World)(source, target, kind)
    originals, copies = world.source, world.target
    if kind.failback:
        originals, copies = copies, originals
    write(originals, kind, rng)
    if not kind.failback:
        world.written = dict(originals.messages())
    if kind.source_trimmed and rng.random() < 0.5:
        trim(originals, kind.source_trimmed * rng.random())

    def seen() -> None:
        world.written.update(world.source.messages())

    world.replicator = Replicator(kind, originals, copies, world.life, HEADER, rng, seen)
    world.replicator.work()
    clean(kind, originals, copies, world.life, rng)
    if kind.source_trimmed:
        trim(originals, kind.source_trimmed * rng.random())
    if kind.target_trimmed:
        trim(copies, kind.target_trimmed * rng.random())
    if kind.loses_later:
        lose_later_equals(world.source, kind.loses_later, world.content, rng)
    return world
