"""Random histories of two clusters, with a cycle that remembers after each event.

Whatever happens between two cycles, what is remembered never makes an answer unsafe, and a
plan without carry-over says the same where both are exact.
"""

import os
import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory_flows import NOW_MS, flow
from tsoffset.cycle.in_process import cycle
from tsoffset.model import (
    CommittedOffset,
    Isolation,
    OutcomeKind,
    Precision,
    Reason,
    Row,
    TopicPartition,
)
from tsoffset.rule.carry_over import PartitionCarryOver
from tsoffset.testing.memory_cluster import Clock, MemoryCluster, Message, PartitionLog, Verb

EXAMPLES = int(os.environ.get("TSOFFSET_PROPERTY_EXAMPLES", "1000")) // 5
STEPS = 20
ORDERS, COPY = TopicPartition("orders", 0), TopicPartition("A.orders", 0)


class History:
    """A topic, its mirror, a few groups, and what happens to them by chance.

    Every record has a value of its own, so that content tells of which record a copy is.
    """

    def __init__(self, seed: int, isolation: Isolation) -> None:
        self.rng = random.Random(seed)
        self.isolation = isolation
        clock = Clock(NOW_MS)
        self.source = MemoryCluster("A", clock=clock)
        self.target = MemoryCluster("B", clock=clock)
        self.carry_overs: dict[TopicPartition, PartitionCarryOver] = {}
        self.written = 0
        self.first_copies: dict[bytes, int] = {}
        self.reached = 0
        self.source.create_topic(ORDERS.topic)
        self.target.create_topic(COPY.topic, first_offset=self.rng.randrange(20))
        self.write()
        self.mirror()
        self.move_groups()

    @property
    def here(self) -> PartitionLog:
        return self.source.log(ORDERS.topic)

    @property
    def there(self) -> PartitionLog:
        return self.target.log(COPY.topic)

    # --- events -------------------------------------------------------------------------

    def happen(self) -> str:
        """One event, its name."""
        usual = [self.write, self.mirror, self.move_groups]
        rare = [
            *(self.restart_mirror, self.add_foreign, self.nothing, self.transaction),
            *(self.delete_here, self.delete_there, self.compact_there, self.compact_here),
            *(self.elect_here, self.elect_there, self.make_source_anew, self.make_target_anew),
        ]
        event = self.rng.choice(usual if self.rng.random() < 0.5 else rare)
        event()
        return event.__name__

    def nothing(self) -> None:
        return

    def write(self) -> None:
        step = self.rng.choice((0, 0, 1, 7))
        wanted = []
        for _ in range(self.rng.randrange(1, 25)):
            self.written += 1
            jitter = self.rng.choice((0, 0, -3))
            key = b"k%d" % self.rng.randrange(12)
            wanted.append(
                Message(NOW_MS + self.written * step + jitter, key, b"v%d" % self.written)
            )
        self.here.append(wanted, batch_size=self.rng.choice((1, 4, 100)))

    def transaction(self) -> None:
        self.written += 1
        transaction = self.here.begin()
        transaction.append([Message(NOW_MS + self.written, b"t", b"v%d" % self.written)])
        self.rng.choice((transaction.commit, transaction.abort))()

    def mirror(self) -> None:
        stop = self.here.readable_end(self.isolation)
        if self.rng.random() < 0.5:
            stop -= self.rng.randrange(10)
        wanted = [
            (offset, message)
            for offset, message in self.here.messages(self.isolation)
            if self.reached <= offset < stop
        ]
        self.reached = max(self.reached, stop)
        if not wanted:
            return
        copies = [message for _, message in wanted]
        first = self.there.append(copies, batch_size=self.rng.choice((1, 5, 100)))
        for number, message in enumerate(copies):
            assert message.value is not None
            self.first_copies.setdefault(message.value, first + number)

    def restart_mirror(self) -> None:
        self.reached = max(self.here.start, self.reached - self.rng.randrange(15))
        self.mirror()

    def add_foreign(self) -> None:
        self.there.append([Message(NOW_MS + self.rng.randrange(500), b"other", b"other")])

    def delete_here(self) -> None:
        self.here.delete_records(self.rng.randrange(self.here.start, self.here.end + 1))

    def delete_there(self) -> None:
        self.there.delete_records(self.rng.randrange(self.there.start, self.there.end + 1))

    def compact_here(self) -> None:
        self.here.compact(before=self.here.end - self.rng.randrange(1, 20))

    def compact_there(self) -> None:
        self.there.compact(before=self.there.end - self.rng.randrange(1, 20))

    def elect_here(self) -> None:
        self.source.elect_leader(ORDERS, 0)

    def elect_there(self) -> None:
        self.target.elect_leader(COPY, 0)

    def make_source_anew(self) -> None:
        """The mirror is made anew, too: it would be of two logs otherwise."""
        self.source.delete_topic(ORDERS.topic)
        self.source.create_topic(ORDERS.topic)
        self.reached = 0
        self.make_target_anew()
        for _ in range(3):
            self.write()
        self.mirror()
        self.move_groups()

    def make_target_anew(self) -> None:
        self.target.delete_topic(COPY.topic)
        self.target.create_topic(COPY.topic, first_offset=self.rng.randrange(20))
        self.first_copies = {}
        self.reached = self.here.start
        self.mirror()

    def move_groups(self) -> None:
        for group in self.rng.sample(range(6), 3):
            at = self.rng.choice((self.here.end, self.rng.randrange(self.here.end + 1)))
            self.source.group(f"g{group}").offsets[ORDERS] = CommittedOffset(at)

    # --- cycles -------------------------------------------------------------------------

    def sync(self) -> list[Row]:
        """A cycle with carry-over, which commits."""
        return self._cycle(self.carry_overs, commit=True)

    def plan(self, *, remembering: bool) -> list[Row]:
        """What it would say, with and without carry-over; nothing is changed by it."""
        return self._cycle(dict(self.carry_overs) if remembering else {}, commit=False)

    def _cycle(
        self, carry_overs: dict[TopicPartition, PartitionCarryOver], *, commit: bool
    ) -> list[Row]:
        return cycle(
            flow(isolation=self.isolation),
            self.source,
            self.target,
            commit=commit,
            carry_overs=carry_overs,
        )

    # --- the truth ----------------------------------------------------------------------

    def is_safe(self, committed: int, target_offset: int) -> bool:
        """Every source record from `committed` on that is on the target is there at
        `target_offset` or after, at least in one copy."""
        highest = {message.value: offset for offset, message in self.there.messages()}
        return all(
            highest.get(message.value, target_offset) >= target_offset
            for offset, message in self.here.messages(self.isolation)
            if offset >= committed
        )

    def first_images(self) -> list[tuple[int, int]]:
        """(source offset, target offset) of the first copies that are still there, of records
        that the source still has."""
        kept = {offset for offset, _ in self.there.messages()}
        return [
            (offset, copy)
            for offset, message in self.here.messages(self.isolation)
            if (copy := self.first_copies.get(message.value or b"")) in kept and copy is not None
        ]

    def is_exact(self, committed: int, target_offset: int) -> bool:
        """No record before `committed` has its first copy at `target_offset` or after."""
        return not any(
            offset < committed and copy >= target_offset for offset, copy in self.first_images()
        )


def judge(history: History, trail: list[str]) -> Counter[str]:
    """Compare answers with carry-over to those without; how often each of the two alone is exact.

    Two exact answers differ by records of others at most, and by what the replicator repeated:
    where compaction takes the first copy of a record, its second one is as good an answer.
    """
    anew = {row.group: row for row in history.plan(remembering=False)}
    rows = {row.group: row for row in history.plan(remembering=True)}
    assert rows.keys() == anew.keys()
    exact: Counter[str] = Counter()
    for group, row in rows.items():
        other = anew[group]
        place = (trail, row, other)
        for one in (row, other):
            if one.target_offset is not None:
                assert one.source_offset is not None
                assert history.is_safe(one.source_offset, one.target_offset), ("unsafe", place)
                start, end = history.there.start, history.there.end
                assert start <= one.target_offset <= end, ("outside", place)
                if one.precision is Precision.EXACT:
                    assert history.is_exact(one.source_offset, one.target_offset), ("exact", place)
        match row.precision is Precision.EXACT, other.precision is Precision.EXACT:
            case True, True:
                assert row.target_offset is not None
                assert other.target_offset is not None
                low, high = sorted((row.target_offset, other.target_offset))
                between = [copy for _, copy in history.first_images() if low <= copy < high]
                assert not between or "restart_mirror" in trail, ("differ", place)
                exact["both"] += 1
            case True, False:
                exact["with carry-over"] += 1
            case False, True:
                exact["without"] += 1
            case _:
                exact["neither"] += 1
        if other.reason in _SEEN_BY_RANGES:
            assert row.reason == other.reason, ("reason", place)
    return exact


# What no carry-over may hide.
_SEEN_BY_RANGES = (Reason.EXPIRED, Reason.PAST_LOG_END, Reason.TARGET_MISSING)


@settings(max_examples=EXAMPLES, deadline=None, print_blob=True)
@given(st.integers(0, 2**32), st.sampled_from(Isolation))
def test_carry_over_changes_cost_and_no_answer(seed: int, isolation: Isolation) -> None:
    """After every event: answers with carry-over are safe, exact where they say so, and no worse
    than those without."""
    history = History(seed, isolation)
    trail: list[str] = []
    history.sync()
    for _ in range(STEPS):
        trail.append(history.happen())
        judge(history, trail)
        if history.rng.random() < 0.1:
            history.carry_overs.clear()
            trail.append("forget")
        rows = history.sync()
        assert not any(row.outcome is OutcomeKind.FAILED for row in rows), rows


def test_histories_are_answered_from_carry_over() -> None:
    """The histories are worth something: many of their positions are remembered and used."""
    saved = asked = 0
    for seed in range(8):
        history = History(seed, Isolation.READ_UNCOMMITTED)
        for _ in range(STEPS):
            history.sync()
            history.happen()
            asked += _fetches(history, remembering=False)
            saved += _fetches(history, remembering=True)
    assert saved < 0.8 * asked


def _fetches(history: History, *, remembering: bool) -> int:
    def so_far() -> int:
        return sum(c.asked(Verb.READ) for c in (history.source, history.target))

    before = so_far()
    history.plan(remembering=remembering)
    return so_far() - before
