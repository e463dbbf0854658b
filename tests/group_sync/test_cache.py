"""What one cycle remembers for the next: it saves questions, and never changes an answer.

On clusters in memory; each rule of `tsoffset.rule.partition_cache` with the case that needs it.
"""

import copy
from dataclasses import dataclass, field, replace

import polars as pl
import pytest

from tests.memory_flows import (
    Estate,
    failed,
    flow,
    identity_flow,
    messages,
    mirrored_estate,
    row_of,
    verdict,
)
from tsoffset.flow.settings import FlowSettings, TranslationSettings
from tsoffset.group_sync.cache import CachedTables
from tsoffset.group_sync.tables import KNOWN
from tsoffset.group_sync.translate import partition_caches, partitions_frame
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    Isolation,
    OutcomeKind,
    Precision,
    Reason,
    Row,
    TimestampType,
    TopicDescription,
    TopicPartition,
)
from tsoffset.rule.partition_cache import MOST_PAIRS, PartitionCache
from tsoffset.testing.memory_cluster import Verb

ORDERS = TopicPartition("orders", 0)
COPY = TopicPartition("A.orders", 0)
NO = Failed(FailureKind.AUTHORIZATION, "made to fail")
LATE = Failed(FailureKind.TIMEOUT, "made to fail")


@dataclass
class Remembering:
    """An estate whose cycles remember; it begins with 100 records, all mirrored, at offset 400."""

    estate: Estate
    settings: FlowSettings = field(default_factory=flow)
    cache: CachedTables = field(default_factory=CachedTables)

    @classmethod
    def of(cls, *offsets: int, records: int = 100, first_offset: int = 400) -> "Remembering":
        """Groups g0, g1, ... stand at these offsets."""
        estate = mirrored_estate(records, first_offset=first_offset)
        for number, offset in enumerate(offsets):
            estate.commit(f"g{number}", "orders", offset)
        return cls(estate)

    @classmethod
    def synced(cls, *offsets: int, **words: int) -> "Remembering":
        """The same after its first cycle."""
        world = cls.of(*offsets, **words)
        world.sync()
        return world

    def sync(self, *, commit: bool = True) -> list[Row]:
        """A cycle with the cache."""
        return self.estate.sync(self.settings, commit=commit, cache=self.cache)

    def plan_anew(self) -> list[Row]:
        """What a plan says that knows of no position, only of what was committed last; nothing is
        remembered of it."""
        pairs = self.cache.pairs
        nothing = pl.lit(None, pl.Int64)
        pairs = pairs.with_columns(nothing.alias(name) for name in KNOWN)
        return self.estate.sync(self.settings, commit=False, cache=CachedTables(pairs))

    def asked(self) -> int:
        """Fetches and time lookups so far, on both sides."""
        return sum(
            self.estate.asked(alias, verb)
            for alias in "AB"
            for verb in (Verb.READ, Verb.FIRST_AT_TIMES)
        )

    def asked_by_sync(self) -> int:
        """What a cycle with the cache asks for."""
        before = self.asked()
        self.sync()
        return self.asked() - before

    def looks_of_a_sync(self) -> set[int]:
        """Where a cycle with the cache reads, on both sides; -1 for the youngest record."""
        before = {alias: len(self.estate[alias].requests) for alias in "AB"}
        self.sync()
        return {
            item.offset if request.verb is Verb.READ else -1
            for alias in "AB"
            for request in self.estate[alias].requests[before[alias] :]
            if request.verb in (Verb.READ, Verb.YOUNGEST)
            for item in request.items
        }

    @property
    def partitions(self) -> dict[TopicPartition, PartitionCache]:
        """What is remembered of partitions."""
        return partition_caches(self.cache.partitions)

    @property
    def partition_cache(self) -> PartitionCache:
        return self.partitions[ORDERS]

    def believe(self, partition_cache: PartitionCache) -> None:
        """Remember this, and nothing else, of partitions."""
        self.cache.partitions = partitions_frame([partition_cache])

    @property
    def known(self) -> list[int]:
        """The source offsets of which a translation is remembered."""
        found: list[int] = self.cache.pairs["known_offset"].drop_nulls().unique().to_list()
        return sorted(found)

    def pairs(self) -> dict[tuple[str, str, int], tuple[int | None, ...]]:
        """What is remembered of pairs, by group, topic and partition."""
        return {
            (group, topic, number): tuple(kept)
            for group, topic, number, *kept in self.cache.pairs.iter_rows()
        }

    @property
    def is_empty(self) -> bool:
        """Whether no translation is remembered, and nothing of partitions."""
        return self.known == [] and self.partitions == {}


def agrees(world: Remembering) -> list[Row]:
    """A plan with the cache, which says the same as one without."""
    anew = world.plan_anew()
    rows = world.sync(commit=False)
    assert rows == anew
    return rows


# --- what it saves ----------------------------------------------------------------------


def test_exact_positions_cost_no_fetch_and_no_lookup_in_the_next_cycle():
    """Nothing has changed: groups that lag, and one that is caught up, are answered from the
    the cache, and the rows are what they were."""
    world = Remembering.synced(0, 40, 41, 99, 100)
    assert world.asked() > 0
    assert world.asked_by_sync() == 0
    rows = agrees(world)
    assert {row.outcome for row in rows} == {OutcomeKind.UNCHANGED}
    assert {row.precision for row in rows} == {Precision.EXACT}


def test_a_passed_position_costs_nothing_while_both_logs_grow():
    """What is written later lies behind what was mirrored: the answer stays."""
    world = Remembering.synced(0, 40, 99)
    world.estate.write("orders", 50)
    world.estate.mirror("orders")
    assert world.asked_by_sync() == 0
    agrees(world)


def test_questions_are_batched_whatever_the_number_of_partitions():
    """With the cache, a cycle asks each side once for its topics and once for its log ranges."""
    estate = mirrored_estate(20, partitions=10)
    for number in range(10):
        estate.commit("billing", "orders", 7, partition=number)
    world = Remembering(estate)
    world.sync()
    before = {alias: len(estate[alias].requests) for alias in "AB"}
    world.sync()
    for alias in "AB":
        asked = [request.verb for request in estate[alias].requests[before[alias] :]]
        assert sorted(asked).count(Verb.TOPICS) == 1
        assert sorted(asked).count(Verb.LOG_RANGES) == 1
        assert Verb.READ not in asked


def test_a_new_position_below_the_frontier_needs_no_look_at_the_ends():
    """What was written later lies behind the last copy of what was the highest record then, so a
    copy before that answers: neither log's end is read, nor asked for its youngest record."""
    world = Remembering.synced(200, 900, records=1000, first_offset=0)
    assert world.partition_cache.frontier == (999, 999)
    world.estate.write("orders", 500)
    world.estate.mirror("orders")
    world.estate.commit("g0", "orders", 500)
    looked = world.looks_of_a_sync()
    assert looked
    assert all(offset < 1000 for offset in looked)
    assert world.partition_cache.frontier == (999, 999)
    assert world.estate.standing("g0", "A.orders") == CommittedOffset(500)
    agrees(world)
    # Past it the target's log begins with it, for the proof by first copy.
    world.estate.commit("g0", "orders", 1200)
    looked = world.looks_of_a_sync()
    assert looked
    assert all(1000 <= offset <= 1200 for offset in looked)
    assert world.partition_cache.frontier == (1200, 1200)
    agrees(world)


def test_a_copy_behind_the_remembered_frontier_is_not_answered_by_it():
    """The mirror was set back since: records that are new to the target lie behind the old
    frontier, and so does the repeat, which does not answer."""
    estate = mirrored_estate(100, up_to=60, billing=10)
    world = Remembering(estate)
    world.sync()
    assert world.partition_cache.frontier == (10, 10)
    estate.mirror("orders")
    estate["B"].log("A.orders").append(messages("orders", range(40, 70)), batch_size=7)
    for offset in (30, 50, 65, 80):
        estate.commit("billing", "orders", offset)
        row = row_of(agrees(world), "billing")
        assert (row.target_offset, row.precision) == (offset, Precision.EXACT)
        world.sync()


# --- dropping it ------------------------------------------------------------------------


def test_positions_that_no_group_has_any_more_are_forgotten():
    """The cache is bounded by the estate: offsets that no group has are dropped."""
    world = Remembering.synced(10, 20)
    world.estate.commit("g0", "orders", 50)
    world.sync()
    assert world.known == [20, 50]
    world.estate["A"].delete_group("g0")
    world.estate["A"].delete_group("g1")
    world.sync()
    assert world.is_empty


def test_pairs_are_few_and_spread():
    """However many are proven, at most 64 a partition are kept, from its first to its last."""
    world = Remembering.synced(*range(0, 400, 2), records=400)
    pairs = world.partition_cache.pairs
    assert 2 < len(pairs) <= MOST_PAIRS
    assert list(pairs) == sorted(set(pairs))
    assert all(target == source + 400 for source, target in pairs)
    assert pairs[-1][0] - pairs[0][0] > 300


def test_a_frontier_that_retention_has_passed_is_forgotten():
    """Nothing at or before it is left on the target, so it says nothing more."""
    world = Remembering.synced(50, 99, first_offset=0)
    world.estate.write("orders", 100)
    world.estate.mirror("orders")
    world.estate["B"].log("A.orders").delete_records(99)
    world.sync()
    assert world.partition_cache.frontier is not None
    assert world.partition_cache.frontier[1] >= 99
    world.estate["B"].log("A.orders").delete_records(200)
    agrees(world)
    world.sync()
    assert all(partition_cache.frontier is None for partition_cache in world.partitions.values())


# --- keeping it -------------------------------------------------------------------------


def two_groups() -> Remembering:
    """Two groups, each with a position on each of two partitions of orders, after a cycle."""
    estate = mirrored_estate(100, partitions=2)
    for partition in range(2):
        estate.commit("one", "orders", 40, partition=partition)
        estate.commit("two", "orders", 70, partition=partition)
    world = Remembering(estate)
    world.sync()
    return world


@pytest.mark.parametrize("failback", [True, False])
def test_what_the_replica_has_lost_is_not_taken_for_read_because_a_pair_is_cached(failback):
    """Retention on the replica moves a group to its log's start. The records before are still on
    the original, where the group does not pass them: a cached pair of one of them is no answer."""
    copies = "A.orders" if failback else "orders"
    settings = flow("B", "A") if failback else identity_flow("B", "A")
    estate, cache = Estate(), CachedTables()
    estate.write("orders", 100)
    estate.mirror("orders", copies, up_to=90)
    estate.commit("reading", copies, 85, on="B")
    estate.sync(settings, cache=cache)
    assert cache.partitions["frontier_source"].to_list() == [85]
    estate.mirror("orders", copies)
    estate["B"].log(copies).delete_records(95)
    estate.commit("lagging", copies, 95, on="B")
    estate.commit("lagging", "orders", 20)
    row = row_of(estate.sync(settings, cache=cache), "lagging")
    assert row.reason is Reason.TARGET_AHEAD
    assert estate.standing("lagging", "orders", on="A") == CommittedOffset(20)


def test_a_group_that_could_not_be_read_keeps_all():
    """So do the partitions that it alone has committed: once it can be read again, nothing is
    looked up again."""
    world = two_groups()
    before = world.pairs()
    world.estate["A"].delete_group("two")
    world.estate["A"].fail(NO, verb=Verb.COMMITTED, group="one")
    assert row_of(world.sync(), "one").outcome is OutcomeKind.FAILED
    assert world.pairs() == {place: kept for place, kept in before.items() if "one" in place}
    assert world.partitions.keys() == {ORDERS, replace(ORDERS, partition=1)}
    world.estate["A"].heal()
    assert world.asked_by_sync() == 0


def test_a_commit_that_could_not_be_read_keeps_all():
    """That of one partition; so it is where its log could not be asked."""
    for verb in (Verb.COMMITTED, Verb.LOG_RANGES):
        world = two_groups()
        before = world.pairs()
        world.estate["A"].fail(NO, verb=verb, partition=ORDERS)
        assert row_of(world.sync(), "one", partition=0).outcome is OutcomeKind.FAILED
        assert world.pairs() == before
        world.estate["A"].heal()
        assert world.asked_by_sync() == 0


def test_of_a_commit_that_is_gone_only_the_last_one_is_kept():
    """Nothing is known of a position any more; that the group once stood further is, for one cycle,
    and of which logs: topics come and go, and what is kept must not grow with them."""
    world = two_groups()
    del world.estate["A"].group("one").offsets[ORDERS]
    world.sync()
    assert world.pairs()["one", "orders", 0] == (*[None] * 8, 40, 40, True, None, None)
    assert world.pairs()["two", "orders", 0][0] == 70
    assert ORDERS in world.partitions
    world.sync()
    assert ("one", "orders", 0) not in world.pairs()
    del world.estate["A"].group("two").offsets[ORDERS]
    world.sync()
    world.estate.commit("two", "orders", 30)
    assert row_of(world.sync(), "two", partition=0).reason is Reason.SOURCE_REWOUND
    del world.estate["A"].group("two").offsets[ORDERS]
    for is_kept in (True, False):
        world.sync()
        assert (ORDERS in world.partitions) is is_kept


@pytest.mark.parametrize("alias", ["A", "B"])
@pytest.mark.parametrize("failing", [None, Verb.COMMITTED, Verb.READ])
def test_what_is_known_of_a_partition_made_anew_is_forgotten(alias, failing):
    """Of all groups, whether they could be read and translated or not: it is of another log. What
    is known of the other partitions stays, and so do last commits."""
    world = two_groups()
    before = world.pairs()
    world.estate[alias].elect_leader(ORDERS if alias == "A" else COPY, 0)
    if failing is None:
        assert world.looks_of_a_sync()
        assert world.partitions.keys() == {ORDERS, replace(ORDERS, partition=1)}
    else:
        world.estate["A"].fail(NO, verb=failing)
        world.sync()
        of_partition = {place: kept for place, kept in world.pairs().items() if place[2] == 0}
        assert {kept[:8] for kept in of_partition.values()} == {(None,) * 8}
        assert {kept[8:10] for kept in of_partition.values()} == {(40, 40), (70, 70)}
        assert world.partitions.keys() == {replace(ORDERS, partition=1)}
    after = {place: kept for place, kept in world.pairs().items() if place[2] == 1}
    assert after == {place: kept for place, kept in before.items() if place[2] == 1}


# --- when it does not hold --------------------------------------------------------------


@pytest.mark.parametrize("alias", ["A", "B"])
def test_a_topic_made_anew_is_another_log(alias):
    """Same name, same offsets, other records: only the topic's id tells, and no cache of the
    old log is used. The target's is the dangerous one: p would skip what lies before it."""
    world = Remembering.synced(40, records=200)
    topic = "orders" if alias == "A" else "A.orders"
    world.estate[alias].delete_topic(topic)
    world.estate[alias].create_topic(topic, first_offset=0 if alias == "A" else 300)
    log = world.estate[alias].log(topic)
    wanted = range(1000, 1200) if alias == "A" else range(200)
    log.append(messages("orders", wanted), batch_size=10)
    world.estate.commit("g0", "orders", 40)
    row = row_of(agrees(world), "g0")
    assert row.target_offset != 440
    if alias == "B":
        assert (row.target_offset, row.precision) == (340, Precision.EXACT)


def test_a_log_that_became_shorter_is_another_one():
    """Whatever the epochs say: an end that went back means that what was proven may be gone."""
    world = Remembering.synced(40)
    longer = replace(world.partition_cache.ends, target=world.partition_cache.ends.target + 1)
    world.believe(replace(world.partition_cache, ends=longer, pairs=((1, 402),)))
    assert world.asked_by_sync() > 0
    assert (1, 402) not in world.partition_cache.pairs
    assert world.partition_cache.ends.target == 500


def test_a_former_leader_of_the_source_is_not_believed():
    """After a restart, a broker that is cut off from its cluster may be the only one that answers.
    It takes itself for the leader, and its log lacks the newest records: a group would seem to have
    read all, and skip their copies. What is known of the partition stays."""
    world = Remembering.synced(40)
    leader, alone = world.estate["A"], copy.deepcopy(world.estate["A"])
    leader.elect_leader(ORDERS, 0)
    world.estate.write("orders", 50)
    world.estate.mirror("orders")
    world.sync()
    before = world.partition_cache
    for cluster in (leader, alone):
        cluster.group("g1").offsets[ORDERS] = CommittedOffset(100)
    world.estate.clusters["A"] = alone
    assert {verdict(row) for row in world.sync()} == {failed(FailureKind.NO_LEADER)}
    assert world.partition_cache == before
    world.estate.clusters["A"] = leader
    assert row_of(world.sync(), "g1").target_offset == 500


@pytest.mark.parametrize("end", ["source", "source_log", "target"])
def test_the_frontier_of_a_longer_log_is_not_used(end):
    """One of the logs was longer when it was found: what it rests on may be gone. A frontier that
    is far too high, as this one would be then, answers for a copy in the repeat."""
    world = Remembering.synced(20, first_offset=0)
    longer = replace(
        world.partition_cache.ends, **{end: getattr(world.partition_cache.ends, end) + 1}
    )
    world.believe(replace(world.partition_cache, ends=longer, frontier=(5000, 5000)))
    world.estate.commit("g0", "orders", 30)
    assert 99 in world.looks_of_a_sync()
    assert world.partition_cache.frontier == (99, 99)


def test_a_cluster_without_topic_ids_is_synced_and_not_remembered(monkeypatch):
    """If a recreated topic cannot be told from the old one (before Kafka 2.8), every cycle reads
    it."""
    world = Remembering.of(40)
    cluster = type(world.estate["B"])
    described = cluster.topics

    def nameless(self: object, names: object = None) -> object:
        found = described(self, names)
        return {
            name: replace(topic, topic_id=None) if isinstance(topic, TopicDescription) else topic
            for name, topic in found.items()
        }

    monkeypatch.setattr(cluster, "topics", nameless)
    assert row_of(world.sync(), "g0").outcome is OutcomeKind.COMMITTED
    assert world.is_empty
    assert world.asked_by_sync() > 0


def test_a_commit_below_the_log_start_is_not_the_same_as_the_translation():
    """Nothing that counts lies from 5 to p = 11, so a commit at 5 is as good as p; but not once the
    log begins at 7, for then a consumer would be reset."""
    estate = Estate()
    estate.write("orders", 30)
    estate["B"].create_topic("A.orders")
    log = estate["B"].log("A.orders")
    log.append(messages("orders", range(5)))
    transaction = log.begin()
    transaction.append(messages("nobody's", range(5)))
    transaction.abort()
    log.append(messages("orders", range(5, 30)))
    estate.commit("g0", "orders", 5)
    world = Remembering(estate)
    assert row_of(world.sync(), "g0").target_offset == 11
    estate.commit("g0", "A.orders", 5, on="B")
    assert row_of(world.sync(), "g0").outcome is OutcomeKind.UNCHANGED
    log.delete_records(7)
    assert row_of(world.sync(commit=False), "g0").outcome is OutcomeKind.WOULD_COMMIT


def test_a_target_that_is_gone_is_told_with_a_cache_as_without():
    """The topic or the partition's leader: what cannot be asked is not answered from the
    the cache; when it is back with the same leader epoch, what was known of it still holds."""
    world = Remembering.synced(40)
    fault = world.estate["B"].fail(
        Failed(FailureKind.NO_LEADER, "made to fail"), verb=Verb.LOG_RANGES, partition=COPY
    )
    assert row_of(agrees(world), "g0").reason is FailureKind.NO_LEADER
    world.sync()
    world.estate["B"].heal(fault)
    assert world.asked_by_sync() == 0
    world.estate["B"].delete_topic("A.orders")
    assert row_of(agrees(world), "g0").reason is Reason.TARGET_MISSING


def test_what_could_not_be_described_is_neither_used_nor_lost():
    """Without the topic's id and epoch nothing is answered from the cache; once it is there
    again, positions are."""
    world = Remembering.synced(40)
    fault = world.estate["B"].fail(LATE, verb=Verb.TOPICS, topic="A.orders")
    assert world.asked_by_sync() > 0
    world.estate["B"].heal(fault)
    assert world.asked_by_sync() == 0


def test_a_cached_translation_does_not_take_another_group_s_failure():
    """g1 commits where g0 is, and the source cannot be read any more: only g1 fails."""
    world = Remembering.synced(40)
    world.estate.commit("g0", "A.orders", 410, on="B")
    world.estate.commit("g1", "orders", 40)
    world.estate["A"].fail(NO, verb=Verb.READ)
    rows = world.sync()
    assert row_of(rows, "g0").outcome is OutcomeKind.COMMITTED
    assert row_of(rows, "g1").reason is FailureKind.AUTHORIZATION


def test_a_translation_that_is_answered_otherwise_is_not_kept():
    """The group was at the end of both logs; now the target's has more, and the source's too, of
    which nothing is mirrored. The new answer does not hold, and the old one is forgotten."""
    world = Remembering.synced(100)
    assert world.cache.pairs["known_target"].to_list() == [500]
    copies = world.estate["B"].log("A.orders")
    copies.append(messages("orders", range(80, 100)), batch_size=7)
    world.estate.write("orders", 30)
    assert row_of(world.sync(), "g0").target_offset != 500
    assert world.cache.pairs["known_target"].to_list() == [None]
    assert world.cache.pairs["last_source"].to_list() == [100]


def test_a_group_that_was_caught_up_finds_its_next_record_behind_a_repeat():
    """The end of then is safe for ever, but no longer the best answer once the next record is
    there: it is looked up once, and remembered for good."""
    world = Remembering.synced(100)
    copies = world.estate["B"].log("A.orders")
    copies.append(messages("orders", range(80, 100)), batch_size=7)
    world.estate.write("orders", 30)
    copies.append(messages("orders", range(100, 130)), batch_size=7)
    row = row_of(agrees(world), "g0")
    assert (row.target_offset, row.precision) == (520, Precision.EXACT)
    world.sync()
    world.estate.write("orders", 5)
    copies.append(messages("orders", range(130, 135)), batch_size=7)
    assert world.asked_by_sync() == 0


def test_open_transactions_end_what_rested_on_the_source_s_end():
    """A read_committed flow is not caught up while undecided records lie at C or after; what was
    remembered of the end is looked at again, with the same row as without the cache."""
    world = Remembering.of(100)
    world.settings = flow(isolation=Isolation.READ_COMMITTED)
    world.sync()
    assert world.asked_by_sync() == 0
    transaction = world.estate["A"].log("orders").begin()
    transaction.append(messages("orders", range(100, 105)))
    agrees(world)
    transaction.commit()
    world.estate.mirror("orders", isolation=Isolation.READ_COMMITTED)
    row = row_of(agrees(world), "g0")
    assert (row.target_offset, row.precision) == (500, Precision.EXACT)


def test_topic_whose_target_stamps_records_is_noticed_in_each_cycle():
    """Positions that were translated before the batch was seen that tells are not remembered, or
    the next cycle would commit them."""
    estate = mirrored_estate(60, up_to=30)
    estate["B"].log("A.orders").timestamp_type = TimestampType.LOG_APPEND_TIME
    estate.mirror("orders")
    for number, offset in enumerate((5, 50)):
        estate.commit(f"g{number}", "orders", offset)
    world = Remembering(estate)
    for _ in range(3):
        rows = world.sync()
        assert {row.reason for row in rows} == {Reason.TARGET_REWRITES_TIMESTAMPS}
        assert world.is_empty
    assert estate.asked("B", Verb.COMMIT) == 0


def test_nothing_is_remembered_of_what_is_not_proven():
    """With translation.proof = timestamps, every cycle looks up again."""
    world = Remembering.of(40)
    world.settings = flow(translation=TranslationSettings(proof="timestamps"))
    assert row_of(world.sync(), "g0").precision is Precision.UNPROVEN
    assert world.is_empty


def test_another_name_on_the_target_is_another_cache():
    """The policy was changed: what is known of `A.orders` says nothing of `orders`."""
    world = Remembering.synced(40)
    world.settings = identity_flow()
    world.estate.mirror("orders", "orders", first_offset=7)
    row = row_of(agrees(world), "g0")
    assert (row.target_topic, row.target_offset) == ("orders", 47)
