"""The truth about a partition and its mirror, whose replicator is a model (tests/replicator.py).

`World` is one source partition, the one it is mirrored to, and which target record is a copy
of which source record. The property tests and the tables of docs/accuracy.md judge
translations by it. `build` makes one from a `Kind` and a seed, the same for the same seed.
"""

import random
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from tests.random_logs import NOW_MS, TIMESTAMPS, Kind, write
from tests.replicator import Life, Replicator, clean, lose_later_equals, trim
from tsoffset.model import Isolation, TopicPartition, Translated
from tsoffset.records import OffsetHeader
from tsoffset.testing.memory_cluster import Clock, MemoryCluster, Message, PartitionLog

__all__ = ["HEADER", "NOW_MS", "SOURCE", "TARGET", "TIMESTAMPS", "Kind", "World", "build"]

SOURCE = TopicPartition("orders", 0)
TARGET = TopicPartition("A.orders", 0)
HEADER = OffsetHeader("origin")

Content = tuple[object, ...]


@dataclass
class World:
    """One partition on both sides, with the truth of where each target record came from.

    `written` is what the source has ever held. What the truth says is computed once: `forget`
    it when the logs have changed.
    """

    source_cluster: MemoryCluster
    target_cluster: MemoryCluster
    kind: Kind
    life: Life = field(default_factory=Life)
    written: dict[int, Message] = field(default_factory=dict)
    replicator: Replicator | None = None

    @property
    def source(self) -> PartitionLog:
        return self.source_cluster.log(SOURCE.topic)

    @property
    def target(self) -> PartitionLog:
        return self.target_cluster.log(TARGET.topic)

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

    @property
    def reached(self) -> int:
        """The source offset up to which the replicator has ever read."""
        return self.life.reached

    def positions(self) -> range:
        """Every offset that a group can have committed."""
        return range(self.source.start, self.source.end + 1)

    def forget(self) -> None:
        """Let the truth be found anew."""
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
        """Why content cannot tell that this unsafe answer is one; None where it can.

        `stand_in`: each record passed equals one that the group has read and that has no copy of
        its own on the target: the one passed stands in for it there, and no content is lost.
        `equal`: each equals one that the group has read or will read, so no content is lost
        (stretches written again). `lost_equal`: each lies between a record that the source has
        lost after it was copied and its equal that is left: the copy of the one is that of the
        other to all who look. `foreign_equal`: somebody else wrote into the target what equals
        a record of the source. `stamps_switched`: the target stamped records itself in part of
        the log, and its time lookups answer by these stamps. `twin_taken`: a pair that the answer
        rests on is of an equal record, and what would tell them apart is lost or out of reach.
        `premise`: a filter was changed at a restart, or two replicators wrote at once, so that what
        follows a copy need not lie behind it. `untimed`: what is passed bears no timestamp, and
        nothing can look it up. `hidden_frontier`: what is passed lies above the highest record that
        the frontier's looks found: compaction, gaps and records of others hide it from all but a
        reader of the whole log.
        """
        target_offset = found.target_offset
        passed = self.passed(committed, target_offset)
        contents = self._contents_passed(committed, target_offset)
        if not contents:
            return None
        read = [origin for origin in self.data if origin < committed]
        on_target = {origin for _, origin in self.copies}
        ahead = {origin for copy, origin in self.copies if copy >= target_offset}
        if contents <= {self._content_of[origin] for origin in read if origin not in on_target}:
            return "stand_in"
        if contents <= {self._content_of[origin] for origin in ahead.union(read)}:
            return "equal"
        if passed and all(self._mistaken(origin) for origin in passed):
            return "lost_equal"
        if self._foreign_equals:
            return "foreign_equal"
        if self.kind.append_time in ("target_first", "target_later"):
            return "stamps_switched"
        if mistaken := self._why_mistaken(found):
            return mistaken
        if all(content[0] is None for content in contents):
            return "untimed"
        hidden = found.frontier is not None and min(passed) > found.frontier[0]
        return "hidden_frontier" if hidden else None

    def excuse_bound(self, committed: int, found: Translated) -> str | None:
        """Why content cannot tell that this bound is too low; None where it can. As of unsafe
        answers, and `set_back`: the mirror was set back to before its beginning, and markers,
        records of others and further restarts hide where that lies."""
        mistaken = self._why_mistaken(found)
        return mistaken or ("set_back" if self._begins_above_what_follows else None)

    def _why_mistaken(self, found: Translated) -> str | None:
        origins = dict(self.pairs)
        rests_on = [*found.pairs, *([found.frontier] if found.frontier else [])]
        if any(origins.get(copy, origin) != origin for origin, copy in rests_on):
            return "twin_taken"
        return "premise" if self.kind.filter_changes or self.kind.two_at_once else None

    @property
    def _begins_above_what_follows(self) -> bool:
        """True where what lies before the first record on the target was copied later."""
        return bool(self.copies) and min(origin for _, origin in self.copies) < self.copies[0][1]

    def _contents_passed(self, committed: int, target_offset: int) -> set[Content]:
        return {self._content_of[origin] for origin in self.passed(committed, target_offset)}

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
        """`rereads` but for those that nobody can tell of.

        They lie between a record that the source has lost after it was copied and its equal that
        is left; or they lie behind higher ones, which only a reader of the whole log sees: a
        filter left them out first and let them through in a repeat, or a second replicator went
        ahead; or a record of others that equals one of the source was taken for its copy; or the
        mirror was set back to before its beginning, and nothing of that was copied yet.
        """
        if self._foreign_equals:
            return 0
        disordered = self.kind.filter_changes or self.kind.two_at_once
        late = self._copied_late if disordered else frozenset()
        late |= self._set_back_unseen
        return sum(
            1
            for offset in self._reread(committed, target_offset)
            if not self._mistaken(offset) and offset not in late
        )

    def resumes_differ(self, committed: int, low: int, high: int) -> bool:
        """True where a consumer that resumes at `low` gets a first image of a record from
        `committed` on, or one that it has read, which it does not get from `high` on."""
        ahead = {origin for copy, origin in self.copies if copy >= high}
        return any(
            origin not in ahead or origin < committed
            for copy, origin in self._first_images
            if low <= copy < high
        )

    # --- what nobody can tell -------------------------------------------------------------

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
        """What will be copied below the mirror's beginning, as long as none of that was."""
        if not self.pairs or min(origin for _, origin in self.pairs) < self.pairs[0][1]:
            return frozenset()
        return frozenset(at for at in self._to_come if at < self.pairs[0][1])

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

    def _mistaken(self, offset: int) -> bool:
        return any(first <= offset <= last for first, last in self._mistakable)

    @property
    def lost_an_equal(self) -> bool:
        """True where the source has lost one of two equal records."""
        return bool(self._mistakable)

    @cached_property
    def _foreign_equals(self) -> bool:
        """True where a record of others that equals one of ours lies among the copies."""
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
        self.forget()

    def mirror_anew(self, rng: random.Random) -> None:
        """The target's topic is made anew, and the mirror with it."""
        assert self.replicator is not None
        self.target_cluster.delete_topic(TARGET.topic)
        self.target_cluster.create_topic(TARGET.topic, first_offset=rng.randrange(20))
        self.replicator.begin(self.source, self.target)
        self.life = self.replicator.life
        self.replicator.copy_on(self.source.end - rng.randrange(10))
        self.forget()

    def write_anew(self, rng: random.Random) -> None:
        """The source's topic is made anew, with other records."""
        self.source_cluster.delete_topic(SOURCE.topic)
        self.source_cluster.create_topic(SOURCE.topic)
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
        uncommitted = self.isolation is Isolation.READ_UNCOMMITTED
        aborted = self.life.aborted if uncommitted else []
        return sorted([*aborted, *(pair for run in self.runs for pair in run)])

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
            if offset in there or (offset >= self.reached and offset not in self.life.left_out)
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

    def excuse(self, committed: int, found: Translated) -> str | None:
        """`out_of_order`: the replica holds for the first time, after the commit, what lies on the
        original before R: it began midway and was set back, its filter was widened, two wrote
        it, or a cleaner took the first copies and left those of a repeat. The question is then
        not where R lies."""
        target_offset = found.target_offset
        if self._foreign_equals:
            return "foreign_equal"
        if any(copy >= self.source.end and offset < target_offset for copy, offset in self._unread):
            return self._why_mistaken(found)
        later = self.data[bisect_left(self.data, committed) :]
        original_of = {copy: original for original, copy in self.pairs}
        first = next((original_of[at] for at in later if at in original_of), None)
        if first is not None and self.true_position(committed) < first:
            return "out_of_order"
        return super().excuse(committed, found)

    def _why_mistaken(self, found: Translated) -> str | None:
        original_of = {copy: original for original, copy in self.pairs}
        if any(original_of.get(copy, original) != original for copy, original in found.pairs):
            return "twin_taken"
        return "premise" if self.kind.filter_changes or self.kind.two_at_once else None

    def _contents_passed(self, committed: int, target_offset: int) -> set[Content]:
        messages = dict(self.target.messages())
        return {
            self.content(messages[offset])
            for copy, offset in self._unread
            if committed <= copy and offset < target_offset
        }

    def rereads(self, committed: int, target_offset: int) -> int:
        return self.certain_rereads(committed, target_offset)

    def certain_rereads(self, committed: int, target_offset: int) -> int:
        """None where the group has read what lies behind the next record on the original, as inside
        a repeat: it comes again whatever is answered. Nor where the replica's stamps are its own:
        nothing there is seen to be a copy."""
        own_stamps = self.kind.append_time in ("target_first", "target_later")
        near = self.data[max(0, bisect_left(self.data, committed) - 1) :][:2]
        original_of = {copy: original for original, copy in self.pairs}
        read = [original for original, copy in self._first_copy.items() if copy < committed]
        highest = max(read, default=-1)
        ahead = any(original_of.get(at, highest) < highest for at in near)
        if ahead or own_stamps or self.lost_an_equal or self._foreign_equals:
            return 0
        return len(
            {
                original
                for original, copy in self.copies
                if copy < committed and original >= target_offset
            }
        )

    def resumes_differ(self, committed: int, low: int, high: int) -> bool:
        return False


def _truth(name: str) -> object:
    return getattr(Failback, name, None)


Look = Callable[["World"], None]


def build(kind: Kind, seed: int, *, look: Look | None = None) -> World:
    """A random world of this kind; the same for the same seed.

    `look` is shown the world whenever a run of the replicator has ended, before cleaners and
    retention come.
    """
    rng = random.Random(seed)
    clock = Clock(NOW_MS)
    header = HEADER if kind.offset_header else None
    source = MemoryCluster("A", clock=clock, offset_header=header)
    target = MemoryCluster("B", clock=clock, offset_header=header)
    elsewhere = rng.choice((0, 0, rng.randrange(50)))
    source.create_topic(SOURCE.topic, first_offset=elsewhere if kind.failback else 0)
    target.create_topic(TARGET.topic, first_offset=0 if kind.failback else elsewhere)
    world = (Failback if kind.failback else World)(source, target, kind)
    original, replica = world.source, world.target
    if kind.failback:
        original, replica = replica, original
    write(original, kind, rng)
    if not kind.failback:
        world.written = dict(original.messages())
    if kind.source_trimmed and rng.random() < 0.5:
        trim(original, kind.source_trimmed * rng.random())

    def seen() -> None:
        world.written.update(world.source.messages())
        if look is not None:
            look(world)
            world.forget()

    world.replicator = Replicator(kind, original, replica, world.life, HEADER, rng, seen)
    world.replicator.work()
    world.written.update(world.source.messages())
    clean(kind, original, replica, world.life, rng)
    if kind.source_trimmed:
        trim(original, kind.source_trimmed * rng.random())
    if kind.target_trimmed:
        trim(replica, kind.target_trimmed * rng.random())
    if kind.loses_later:
        lose_later_equals(world.source, kind.loses_later, world.content, rng)
    return world
