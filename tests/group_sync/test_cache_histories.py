"""Random histories of two clusters, with a cycle that remembers after each event.

Whatever happens between two cycles, what is remembered never makes an answer unsafe, and a
plan without the cache says the same where both are exact. What happens during a cycle makes no
commit unsafe.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory_flows import after_each
from tests.random_examples import MANY, scaled
from tests.random_logs import Kind
from tests.replication_model import SOURCE, TARGET, build
from tests.rule.test_translation_properties import assert_holds, assert_same, kinds
from tests.translating import flow_of
from tsoffset.group_sync.cache import CachedTables
from tsoffset.group_sync.cycle import cycle
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    Isolation,
    LeaderEpoch,
    OutcomeKind,
    Precision,
    Reason,
    Row,
    Translated,
)
from tsoffset.testing.memory_cluster import MemoryCluster, PartitionLog, Verb

STEPS = 12
# What no cache may hide.
SEEN_BY_RANGES = (Reason.EXPIRED, Reason.PAST_LOG_END, Reason.TARGET_MISSING)

# Every record has a value of its own: content tells of which record a copy is.
plain_kinds = st.builds(
    Kind,
    records=st.integers(1, 40),
    timestamps=st.sampled_from(("rising", "equal_runs", "jitter", "one")),
    batch=st.sampled_from((1, 4, 100)),
    segments=st.sampled_from((0, 5)),
    transactions=st.booleans(),
    foreign=st.sampled_from((0.0, 0.2)),
    lag=st.sampled_from((0.0, 0.3)),
    source_compacted=st.booleans(),
    target_compacted=st.booleans(),
    source_trimmed=st.sampled_from((0.0, 0.6)),
    target_trimmed=st.sampled_from((0.0, 0.6)),
    isolation=st.sampled_from(Isolation),
)


# All kinds, whose logs are short: a history has many cycles. Answers in plain ones need no excuse.
histories = st.one_of(
    st.tuples(plain_kinds, st.just(True)),
    st.tuples(
        kinds.map(lambda kind: replace(kind, records=min(kind.records, 70), padding=0)),
        st.just(False),
    ),
)


class History:
    """A topic, its mirror, a few groups, and what happens to them by chance."""

    def __init__(self, kind: Kind, seed: int, *, is_plain: bool = True) -> None:
        self.rng = random.Random(seed)
        self.kind = kind
        self.is_plain = is_plain
        self.world = build(kind, seed)
        # What was committed in the first epoch is not compared.
        self.world.source_cluster.elect_leader(SOURCE, 0)
        self.flow = flow_of(self.world, self.rng.choice(("replica", "replica", "same")))
        self.cache = CachedTables()
        self.trail: list[str] = []
        self.changes_left = 0
        # Groups that have read what the source has lost since.
        self.ahead: set[str | None] = set()
        for cluster in (self.world.source_cluster, self.world.target_cluster):
            for call in ("topics", "log_ranges", "committed", "read", "first_at_times"):
                after_each(cluster, call, self.meanwhile)
        self.move_groups()

    def happen(self) -> None:
        """One event."""
        source, target = self.world.source_cluster, self.world.target_cluster
        usual = {"logs_go_on": self.logs_go_on, "move_groups": self.move_groups}
        rare: dict[str, Callable[[], None]] = {
            "nothing": lambda: None,
            "elect_here": lambda: source.elect_leader(SOURCE, 0),
            "elect_there": lambda: target.elect_leader(TARGET, 0),
            "forget": self.forget,
            "go_blind_here": lambda: self.go_blind(source),
            "go_blind_there": lambda: self.go_blind(target),
            "restart_mirror": lambda: self.world.restart(self.rng),
            "delete_here": lambda: self.delete_from(self.world.source),
            "delete_there": lambda: self.delete_from(self.world.target),
        }
        if not self.kind.failback:
            rare |= {
                "lose_end": self.lose_end,
                "make_source_anew": self.make_source_anew,
                "make_target_anew": lambda: self.world.mirror_anew(self.rng),
            }
        source.heal()
        target.heal()
        events = usual if self.rng.random() < 0.7 else rare
        self.trail.append(self.rng.choice(list(events)))
        events[self.trail[-1]]()

    def meanwhile(self, _: object) -> None:
        """What happens between two questions of a cycle, mostly nothing."""
        if not self.changes_left or self.rng.random() < 0.8:
            return
        self.changes_left -= 1
        logs = self.world.source, self.world.target
        events: dict[str, Callable[[], object]] = {
            "logs_go_on": self.logs_go_on,
            "restart_mirror": lambda: self.world.restart(self.rng),
            "elect_here": lambda: self.world.source_cluster.elect_leader(SOURCE, 0),
            "elect_there": lambda: self.world.target_cluster.elect_leader(TARGET, 0),
            "delete": lambda: self.delete_from(self.rng.choice(logs)),
        }
        event = self.rng.choice(("logs_go_on", "logs_go_on", *events))
        self.trail.append(f"meanwhile {event}")
        events[event]()

    def forget(self) -> None:
        self.cache = CachedTables()

    def logs_go_on(self) -> None:
        for _ in range(self.rng.randrange(1, 7)):
            self.world.go_on(self.rng)

    def go_blind(self, cluster: MemoryCluster) -> None:
        """Nothing tells whether its log is still the same one; it may be recreated meanwhile."""
        cluster.fail(Failed(FailureKind.TIMEOUT, "made to fail"), verb=Verb.TOPICS)
        if self.rng.random() < 0.5 and not self.kind.failback:
            self.world.mirror_anew(self.rng)

    def delete_from(self, log: PartitionLog) -> None:
        log.delete_records(self.rng.randrange(log.start, log.high_watermark + 1))
        self.world.forget()

    def make_source_anew(self) -> None:
        """The mirror is recreated, too: otherwise it would be a mirror of two logs."""
        self.world.write_anew(self.rng)
        self.world.source_cluster.elect_leader(SOURCE, 0)
        self.world.mirror_anew(self.rng)
        self.ahead = set()
        self.move_groups()

    def lose_end(self) -> None:
        end = self.world.lose_end(self.rng)
        for number in range(6):
            committed = self.world.source_cluster.group(f"g{number}").offsets.get(SOURCE)
            if committed is not None and committed.offset > end:
                self.ahead.add(f"g{number}")
        self.logs_go_on()

    def move_groups(self) -> None:
        end = self.world.source.end
        for group in self.rng.sample(range(6), 3):
            at = self.rng.choice((end, self.rng.randrange(end + 1)))
            committed = CommittedOffset(at, leader_epoch=self._epoch_before(at))
            self.world.source_cluster.group(f"g{group}").offsets[SOURCE] = committed
            self.ahead.discard(f"g{group}")

    def _epoch_before(self, offset: int) -> int:
        """The leader epoch of the record before this offset, which a consumer commits with it."""
        cluster = self.world.source_cluster
        for epoch in count():
            asked = LeaderEpoch(SOURCE, epoch)
            end = cluster.epoch_ends([asked])[asked]
            assert isinstance(end, int)
            if end >= offset:
                return epoch
        raise AssertionError

    # --- cycles -------------------------------------------------------------------------

    def sync(self) -> list[Row]:
        """A cycle with the cache, which commits."""
        return self._cycle(self.cache, commit=True)

    def sync_meanwhile(self) -> None:
        """The same, while other things happen; no answer that could be committed is unsafe."""
        self.changes_left = 3
        rows = self.sync()
        self.changes_left = 0
        for row in rows:
            if row.target_offset is None or row.source_offset is None:
                continue
            assert row.group not in self.ahead, (self.trail, row)
            if not self.world.is_safe(row.source_offset, row.target_offset):
                excuse = self.world.excuse(row.source_offset, answer(row))
                assert excuse is not None, (self.trail, row)
                assert not self.is_plain, (excuse, self.trail, row)

    def plan(self, *, remembering: bool) -> dict[str | None, Row]:
        """What it would say, with and without the cache; nothing is changed by it."""
        rows = self._cycle(replace(self.cache) if remembering else CachedTables(), commit=False)
        return {row.group: row for row in rows}

    def _cycle(self, cache: CachedTables, *, commit: bool) -> list[Row]:
        return cycle(
            self.flow,
            self.world.source_cluster,
            self.world.target_cluster,
            commit=commit,
            cache=cache,
        )

    def judge(self) -> None:
        """Hold answers from the cache to the truth, and to those without."""
        rows, anew = self.plan(remembering=True), self.plan(remembering=False)
        assert rows.keys() == anew.keys()
        for group, row in rows.items():
            other = anew[group]
            place = (self.trail, row, other)
            if group in self.ahead:
                assert row.target_offset is other.target_offset is None, ("ahead", place)
                continue
            excuses = [self._judge(one, place) for one in (row, other)]
            if other.reason in SEEN_BY_RANGES:
                assert row.reason == other.reason, ("reason", place)
            # A record without a copy may have got one since, behind what follows it.
            others = self.kind.filter_changes or self.kind.foreign_equal
            if excuses == [None, None] and not others:
                assert_same(self.world, row.source_offset or 0, answer(row), answer(other))

    def _judge(self, row: Row, place: object) -> str | None:
        if row.target_offset is None:
            return None
        assert row.source_offset is not None
        excuse = assert_holds(self.world, row.source_offset, answer(row), None, place)
        assert excuse is None or not self.is_plain, (excuse, place)
        return excuse


def answer(row: Row) -> Translated:
    at, precision = row.target_offset or 0, row.precision or Precision.UNPROVEN
    return Translated(at, precision, row.reread_bound, at, at)


def judge(kind_and_is_plain: tuple[Kind, bool], seed: int) -> None:
    """Judge all answers of a history."""
    kind, is_plain = kind_and_is_plain
    history = History(kind, seed, is_plain=is_plain)
    history.sync()
    for _ in range(STEPS):
        history.happen()
        history.judge()
        rows = history.sync()
        # What cannot be described may be another topic: nothing is committed.
        blind = history.trail[-1].startswith("go_blind")
        assert blind or not any(row.outcome is OutcomeKind.FAILED for row in rows), rows
        history.sync_meanwhile()


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(scaled(5), id="some"),
        pytest.param(MANY, id="many", marks=(pytest.mark.thorough, pytest.mark.timeout(7_200))),
    ],
)
def test_the_cache_changes_cost_and_no_answer(number):
    """After every event: answers from the cache are safe, exact where they say so, and the same
    as those without."""
    settings(max_examples=number, print_blob=True)(given(histories, st.integers(0, 2**32))(judge))()


@pytest.mark.slow
@pytest.mark.no_cover
def test_histories_are_answered_from_the_cache():
    """The histories are worth something: many of their positions are remembered and used."""
    saved = asked = 0
    history = History(Kind(records=20), seed=7)
    for _ in range(10):
        history.sync()
        history.happen()
        asked += _fetches(history, remembering=False)
        saved += _fetches(history, remembering=True)
    assert saved < 0.75 * asked


def _fetches(history: History, *, remembering: bool) -> int:
    clusters = (history.world.source_cluster, history.world.target_cluster)
    before = sum(cluster.asked(Verb.READ) for cluster in clusters)
    history.plan(remembering=remembering)
    return sum(cluster.asked(Verb.READ) for cluster in clusters) - before
