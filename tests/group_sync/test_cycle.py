"""Cycles from source commits to target commits, on clusters in memory."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.configured import two_clusters
from tests.invoking import in_memory
from tests.memory_flows import (
    COMMITTED,
    NOW_MS,
    UNCHANGED,
    WOULD_COMMIT,
    Estate,
    LoweringPolicy,
    RaisingGroups,
    after_each,
    failed,
    flow,
    identity_flow,
    messages,
    mirrored_estate,
    row_of,
    skipped,
    verdict,
)
from tests.translating import translated_with_cache
from tsoffset.cluster import all_failed
from tsoffset.errors import ClusterRefused, ClusterUnreachable
from tsoffset.flow.policy import DefaultTopicFilter
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.cache import CachedTables
from tsoffset.group_sync.cycle import cycle
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    GroupType,
    Isolation,
    Precision,
    Reason,
    TimestampType,
    TopicPartition,
)
from tsoffset.rule.partition_cache import Holds
from tsoffset.testing.memory_cluster import MemoryCluster, Message, Verb, mirror_partition


def broken(kind: FailureKind = FailureKind.TIMEOUT, **facts: bool) -> Failed:
    return Failed(kind, f"made to fail with {kind}", **facts)


# --- what is committed ------------------------------------------------------------------


def test_a_flow_that_is_turned_off_is_only_planned():
    """sync.group.offsets.enabled = false: nothing is committed whoever asks."""
    estate = mirrored_estate(billing=40)
    assert verdict(row_of(estate.sync(flow(sync_enabled=False)), "billing")) == WOULD_COMMIT
    assert estate.asked("B", Verb.COMMIT) == 0


def test_metadata_that_the_target_refuses_is_left_out():
    """The offset is worth more than its metadata: it is committed without, and with a message.
    Other rows keep their metadata and are not committed again."""
    estate = mirrored_estate(partitions=2, max_metadata_length=20)
    estate.commit("billing", "orders", 40, partition=0, metadata="x" * 21)
    estate.commit("billing", "orders", 50, partition=1, metadata="y" * 20)
    rows = estate.sync()
    shortened, kept = row_of(rows, "billing", partition=0), row_of(rows, "billing", partition=1)
    assert verdict(shortened) == verdict(kept) == COMMITTED
    assert "offset.metadata.max.bytes" in (shortened.message or "")
    assert kept.message is None
    assert estate.standing("billing", "A.orders") == CommittedOffset(40, "")
    assert estate.standing("billing", "A.orders", partition=1) == CommittedOffset(50, "y" * 20)
    assert Counter(partition for _, partition, _ in estate["B"].commits) == {
        TopicPartition("A.orders", 0): 1,
        TopicPartition("A.orders", 1): 1,
    }


def test_a_group_that_becomes_active_before_its_metadata_is_left_out_is_active():
    """The second try can be refused for another reason than the first."""
    estate = mirrored_estate(max_metadata_length=20)
    estate.commit("billing", "orders", 40, metadata="x" * 21)
    estate["B"].fail(
        broken(FailureKind.COORDINATOR, metadata_too_large=True), verb=Verb.COMMIT, times=1
    )
    estate["B"].fail(broken(FailureKind.COORDINATOR, group_active=True), verb=Verb.COMMIT)
    assert verdict(row_of(estate.sync(), "billing")) == skipped(Reason.GROUP_ACTIVE)


def test_a_cluster_that_is_lost_before_the_second_try_keeps_what_was_committed():
    """Only the row whose metadata was refused fails; the one beside it stands committed."""
    estate = mirrored_estate(partitions=2, max_metadata_length=20)
    for number, metadata in enumerate(("x" * 21, "y")):
        estate.commit("billing", "orders", 40, partition=number, metadata=metadata)
    rows = cycle(flow(), estate["A"], Vanishing(estate["B"], Verb.COMMIT, calls=1))
    assert [verdict(row) for row in rows] == [failed(FailureKind.UNREACHABLE), COMMITTED]
    assert [verdict(row) for row in estate.sync()] == [COMMITTED, UNCHANGED]


def test_a_group_for_which_the_users_filter_raises_fails_alone():
    """It is told by its name, and the class by what it raised."""
    estate = mirrored_estate(billing=40)
    estate.commit("search", "orders", 50)
    odd, fine = estate.sync(flow(group_filter=RaisingGroups("billing")))
    assert (verdict(odd), verdict(fine)) == (failed(FailureKind.INTERNAL), COMMITTED)
    assert "select group search, flow A->B: the group filter raised KeyError" in (odd.message or "")


# --- never backwards --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("current", "expected"), [(101, COMMITTED), (102, UNCHANGED), (103, UNCHANGED)]
)
def test_a_commit_past_markers_alone_is_not_ahead(current, expected):
    """No data record between p and D, only a transaction's marker: `unchanged`, p < D or not."""
    estate = Estate()
    estate.write("orders")
    transaction = estate["A"].log("orders").begin()
    transaction.append(messages("orders", range(100, 102)))
    transaction.commit()
    estate.mirror("orders")
    estate.commit("billing", "A.orders", 102, on="B")
    estate.commit("billing", "orders", current, on="A")
    row = row_of(estate.sync(flow("B", "A")), "billing")
    assert (*verdict(row), row.target_offset) == (*expected, 102)


@pytest.mark.parametrize("current", [100, 102, 105, 106])
def test_markers_at_the_end_are_no_difference(current):
    """A caught-up group stands as well before the last markers of the target as behind them."""
    estate = mirrored_estate()
    for _ in range(3):
        transaction = estate["B"].log("A.orders").begin()
        transaction.append([Message(NOW_MS, b"foreign", b"foreign")])
        transaction.abort()
    assert estate["B"].log("A.orders").end == 106
    estate.commit("billing", "orders", 100)
    estate.commit("billing", "A.orders", current, on="B")
    assert verdict(row_of(estate.sync(), "billing")) == UNCHANGED


# --- the target's log range -------------------------------------------------------------


def test_a_log_that_grew_since_its_end_was_read_is_not_passed():
    """What the mirror appended, and a consumer on the target read, while the cycle ran."""
    estate = mirrored_estate(billing=40)

    def read_on(_: object) -> None:
        estate["B"].log("A.orders").append(messages("orders", range(100, 130)))
        estate.commit("billing", "A.orders", 120, on="B")

    after_each(estate["B"], "log_ranges", read_on)
    assert verdict(row_of(estate.sync(), "billing")) == skipped(Reason.TARGET_AHEAD)
    assert estate.standing("billing", "A.orders") == CommittedOffset(120)


def test_a_commit_in_an_open_transaction_is_not_past_the_log_end():
    """A read_uncommitted consumer of the target may stand past its last stable offset."""
    estate = mirrored_estate()
    open_transaction = estate["B"].log("A.orders").begin()
    open_transaction.append(messages("orders", range(100, 110)))
    estate.commit("billing", "orders", 40)
    estate.commit("billing", "A.orders", 105, on="B")
    assert verdict(row_of(estate.sync(), "billing")) == skipped(Reason.TARGET_AHEAD)
    estate.commit("billing", "A.orders", 111, on="B")
    assert verdict(row_of(estate.sync(), "billing")) == skipped(Reason.TARGET_PAST_LOG_END)


@pytest.mark.parametrize("verb", [Verb.LOG_RANGES, None], ids=["its ranges", "all"])
def test_a_log_end_that_cannot_be_read_again_accuses_nobody(verb):
    """If the log's range is unknown, no message says that the topic was recreated."""
    estate = mirrored_estate(billing=40)
    estate.commit("billing", "A.orders", 150, on="B")

    def lose(_: object) -> None:
        if verb is None:
            estate["B"].unreachable = True
        else:
            estate["B"].fail(broken(), verb=verb)

    after_each(estate["B"], "committed", lose)
    assert verdict(row_of(estate.sync(), "billing")) == skipped(Reason.TARGET_AHEAD)


def test_nothing_comes_between_reading_a_groups_offsets_and_committing():
    """A suspected TARGET_PAST_LOG_END is checked after the commits of its neighbors."""
    estate = mirrored_estate(partitions=2)
    for number in range(2):
        estate.commit("billing", "orders", 40, partition=number)
    estate.commit("billing", "A.orders", 150, on="B")
    rows = estate.sync()
    assert [verdict(row) for row in rows] == [skipped(Reason.TARGET_PAST_LOG_END), COMMITTED]
    asked = [request.verb for request in estate["B"].requests]
    assert asked[asked.index(Verb.COMMITTED) + 1] is Verb.COMMIT


# --- who may commit ---------------------------------------------------------------------


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance", "CompletingRebalance"])
def test_a_group_with_members_on_the_target_is_left_alone(state):
    """Seen in the listing: translated and not committed; the broker is not even asked. Seen by the
    broker's refusal, where it becomes active during the cycle: the same row."""
    estate = mirrored_estate(billing=40)
    estate["B"].group("billing").state = state
    listed = row_of(estate.sync(), "billing")
    assert verdict(listed) == skipped(Reason.GROUP_ACTIVE)
    assert (listed.target_offset, listed.precision) == (40, Precision.EXACT)
    assert estate.asked("B", Verb.COMMIT) == 0
    estate["B"].group("billing").state = "Empty"
    estate["B"].fail(broken(FailureKind.COORDINATOR, group_active=True), verb=Verb.COMMIT)
    assert row_of(estate.sync(), "billing") == listed
    assert estate.standing("billing", "A.orders") is None


def test_a_group_that_is_being_removed_fails_until_it_is_gone():
    """A dead group has no members, so it is no skip: its coordinator says to try again."""
    estate = mirrored_estate(billing=40)
    estate["B"].group("billing").state = "Dead"
    assert verdict(row_of(estate.sync(), "billing")) == failed(FailureKind.COORDINATOR)
    estate["B"].delete_group("billing")
    assert verdict(row_of(estate.sync(), "billing")) == COMMITTED


@pytest.mark.parametrize("type_", [GroupType.CLASSIC, GroupType.CONSUMER, GroupType.STREAMS])
def test_groups_of_all_protocols_are_synced(type_):
    """Without members, groups of KIP-848 and KIP-1071 accept commits from outside, too; with
    members they are GROUP_ACTIVE. On the source a group usually has members."""
    estate = mirrored_estate()
    estate.commit("billing", "orders", 40, type=type_)
    estate["A"].group("billing").state = "Stable"
    group = estate["B"].group("billing", type_)
    group.state = "Stable"
    assert verdict(row_of(estate.sync(), "billing")) == skipped(Reason.GROUP_ACTIVE)
    group.state = "Empty"
    assert verdict(row_of(estate.sync(), "billing")) == COMMITTED


# --- topics that are not there ----------------------------------------------------------


def test_a_topic_that_is_deleted_before_the_commit_is_missing():
    """The broker refuses the commit of one partition; the group's others are committed."""
    estate = mirrored_estate(partitions=2)
    for number in range(2):
        estate.commit("billing", "orders", 40, partition=number)
    gone = TopicPartition("A.orders", 1)
    estate["B"].fail(broken(FailureKind.NO_LEADER, missing=True), verb=Verb.COMMIT, partition=gone)
    rows = estate.sync()
    assert verdict(row_of(rows, "billing", partition=0)) == COMMITTED
    assert verdict(row_of(rows, "billing", partition=1)) == skipped(Reason.TARGET_MISSING)


def test_a_topic_whose_target_stamps_records_is_skipped_whole():
    """LogAppendTime is seen in a batch of one partition and told of all the topic's."""
    estate = mirrored_estate(partitions=3)
    estate.write("other")
    estate.mirror("other")
    for number in range(3):
        estate.commit("billing", "orders", 40, partition=number)
    estate.commit("billing", "other", 40)
    estate["B"].log("A.orders", 1).append([Message(NOW_MS, b"before", b"the switch")])
    stamped = estate["B"].log("A.orders", 1)
    stamped.delete_records(stamped.end)
    stamped.timestamp_type = TimestampType.LOG_APPEND_TIME
    stamped.append(messages("orders", range(100)))
    rows = estate.sync()
    assert [verdict(row_of(rows, "billing", "orders", number)) for number in range(3)] == [
        skipped(Reason.TARGET_REWRITES_TIMESTAMPS)
    ] * 3
    assert verdict(row_of(rows, "billing", "other")) == COMMITTED
    assert {partition.topic for _, partition, _ in estate["B"].commits} == {"A.other"}


def test_a_failure_in_a_topic_that_is_skipped_whole_stays_a_failure():
    """A partition that could not be read is not explained by its neighbors' reasons."""
    estate = mirrored_estate(partitions=2)
    estate["B"].delete_topic("A.orders")
    estate["B"].create_topic("A.orders", 2, timestamp_type=TimestampType.LOG_APPEND_TIME)
    for number in range(2):
        estate["B"].log("A.orders", number).append(messages("orders", range(100)))
        estate.commit("billing", "orders", 40, partition=number)
    estate["B"].elect_leader(TopicPartition("A.orders", 1), None)
    rows = estate.sync()
    assert verdict(row_of(rows, "billing", partition=0)) == skipped(
        Reason.TARGET_REWRITES_TIMESTAMPS
    )
    assert verdict(row_of(rows, "billing", partition=1)) == failed(FailureKind.NO_LEADER)


# --- failures stay where they are -------------------------------------------------------


@pytest.fixture
def estate() -> Estate:
    """Two topics mirrored, one broker for each group: one and two are on both partitions of orders,
    three on payments."""
    estate = mirrored_estate(partitions=2, brokers=3)
    estate.write("payments")
    estate.mirror("payments")
    for group in ("one", "two"):
        for number in range(2):
            estate.commit(group, "orders", 40 + number, partition=number)
    estate.commit("three", "payments", 40)
    return estate


ORDERS_1, COPY_1 = TopicPartition("orders", 1), TopicPartition("A.orders", 1)
ALL = {("one", 0), ("one", 1), ("two", 0), ("two", 1), ("three", 0)}


def failures_of(estate: Estate, kind: FailureKind) -> set[tuple[str | None, int | None]]:
    """The (group, partition) of the rows that failed with `kind`, where all others were
    committed, on the target as in the rows."""
    rows = estate.sync()
    wrong = [row for row in rows if verdict(row) not in (COMMITTED, failed(kind))]
    assert not wrong
    done = {(row.group, row.partition) for row in rows if verdict(row) == COMMITTED}
    assert {(group, partition.partition) for group, partition, _ in estate["B"].commits} == done
    assert len(estate["B"].commits) == len(done)
    return {(row.group, row.partition) for row in rows if verdict(row) == failed(kind)}


THREE, ONE, BOTH_OF_1 = {("three", 0)}, {("one", 0), ("one", 1)}, {("one", 1), ("two", 1)}


@pytest.mark.parametrize(
    ("side", "fault", "expected"),
    [
        # No right to read a topic.
        ("A", {"topic": "payments"}, THREE),
        ("A", {"topic": "payments", "verb": Verb.LOG_RANGES}, THREE),
        ("A", {"topic": "payments", "verb": Verb.READ}, THREE),
        ("B", {"topic": "A.payments", "verb": Verb.LOG_RANGES}, THREE),
        ("B", {"topic": "A.payments", "verb": Verb.FIRST_AT_TIMES}, THREE),
        ("B", {"topic": "A.payments", "verb": Verb.READ}, THREE),
        # A batch that cannot be decoded.
        ("A", {"partition": ORDERS_1, "verb": Verb.READ}, BOTH_OF_1),
        # Source commits of a group, whose partitions are not known then, or of one partition.
        ("A", {"group": "one", "verb": Verb.COMMITTED}, {("one", None)}),
        ("A", {"group": "one", "verb": Verb.COMMITTED, "partition": ORDERS_1}, {("one", 1)}),
        # Target commits, over which nothing is committed unseen.
        ("B", {"group": "one", "verb": Verb.COMMITTED}, ONE),
        ("B", {"group": "one", "verb": Verb.COMMITTED, "partition": COPY_1}, {("one", 1)}),
        # Commits that are refused.
        ("B", {"group": "one", "verb": Verb.COMMIT}, ONE),
        ("B", {"group": "one", "verb": Verb.COMMIT, "partition": COPY_1}, {("one", 1)}),
    ],
)
def test_what_fails_costs_its_own_rows(estate, side, fault, expected):
    """Whatever is asked for: those rows fail with its cause, all others are committed."""
    estate.commit("one", "A.orders", 5, on="B", partition=1)
    estate[side].fail(broken(FailureKind.AUTHORIZATION), **fault)
    assert failures_of(estate, FailureKind.AUTHORIZATION) == expected


@pytest.mark.parametrize(("side", "topic"), [("A", "orders"), ("B", "A.orders")])
def test_a_partition_without_a_leader_fails_its_rows_alone(estate, side, topic):
    """The other partition of the topic, and of the same groups, is synced."""
    estate[side].elect_leader(TopicPartition(topic, 1), None)
    assert failures_of(estate, FailureKind.NO_LEADER) == {("one", 1), ("two", 1)}


def test_commits_of_an_open_transaction_fail_the_row_on_the_target(estate):
    """What a transaction is about to commit is not overwritten; on the source, a group's commit is
    what it has for certain."""
    estate["A"].group("two").pending[ORDERS_1] = CommittedOffset(90)
    group = estate["B"].group("one")
    group.pending[TopicPartition("A.orders", 0)] = CommittedOffset(90)
    assert failures_of(estate, FailureKind.COORDINATOR) == {("one", 0)}
    group.end_transaction()
    assert verdict(row_of(estate.sync(), "one", partition=0)) == skipped(Reason.TARGET_AHEAD)


def test_a_broker_that_cannot_list_its_groups_is_one_row(estate):
    """Which groups it has is not known, so the row has none; those of the others are synced."""
    listed = estate["A"].groups().groups
    node = listed["three"].coordinator
    lost = {group for group, listing in listed.items() if listing.coordinator == node}
    estate["A"].fail(broken(FailureKind.TIMEOUT), verb=Verb.GROUPS, broker=node)
    rows = estate.sync()
    assert {row.group for row in rows} == {"one", "two", "three", None} - lost
    assert verdict(row_of(rows, None)) == failed(FailureKind.TIMEOUT)
    others = [verdict(row) for row in rows if row.group is not None]
    assert set(others) <= {COMMITTED}


def test_groups_whose_state_on_the_target_cannot_be_listed_are_committed_if_the_broker_lets_them(
    estate,
):
    """The coordinator itself refuses groups with members, whether they are listed or not."""
    estate["B"].group("one").state = "Stable"
    for node in range(3):
        estate["B"].fail(broken(FailureKind.TIMEOUT), verb=Verb.GROUPS, broker=node)
    rows = estate.sync()
    assert [verdict(row) for row in rows if row.group is None] == [failed(FailureKind.TIMEOUT)] * 3
    assert verdict(row_of(rows, "one", partition=0)) == skipped(Reason.GROUP_ACTIVE)
    assert {verdict(row) for row in rows if row.group in ("two", "three")} == {COMMITTED}


@pytest.mark.parametrize("side", ["A", "B"])
def test_a_cluster_that_cannot_be_reached_stops_the_cycle(estate, side):
    """Nothing is known of its groups: no row could be made, and nothing is committed."""
    estate[side].unreachable = True
    with pytest.raises(ClusterUnreachable):
        estate.sync()
    estate[side].unreachable = False
    assert estate["B"].commits == []


def test_a_cluster_that_refuses_this_client_is_not_said_to_be_away():
    """Its flow's rows name the credentials."""
    assert all_failed(ClusterRefused("no")).kind is FailureKind.AUTHENTICATION


@pytest.mark.parametrize(
    ("side", "verb"),
    [
        ("A", Verb.COMMITTED),
        ("A", Verb.LOG_RANGES),
        ("A", Verb.READ),
        ("B", Verb.LOG_RANGES),
        ("B", Verb.FIRST_AT_TIMES),
        ("B", Verb.READ),
        ("B", Verb.COMMITTED),
        ("B", Verb.COMMIT),
    ],
)
def test_a_cluster_that_is_lost_on_the_way_fails_rows(estate, side, verb):
    """Each row says what could not be done; none is lost, and nothing is committed twice."""
    lost = Vanishing(estate[side], verb)
    clusters = {"A": estate["A"], "B": estate["B"], side: lost}
    rows = cycle(flow(), clusters["A"], clusters["B"])
    assert {verdict(row) for row in rows} == {failed(FailureKind.UNREACHABLE)}
    groups = {(row.group, row.partition) for row in rows}
    assert groups == ({("one", None), ("two", None), ("three", None)} if lost.groups_only else ALL)
    assert estate["B"].commits == []
    assert {verdict(row) for row in estate.sync()} == {COMMITTED}


class Vanishing(MemoryCluster):
    """The cluster `inner`, until it has answered `calls` of `verb` and is asked once more: from
    then on it cannot be reached."""

    def __init__(self, inner: MemoryCluster, verb: Verb, *, calls: int = 0) -> None:
        vars(self).update(vars(inner))
        self._verb = verb
        self._calls = calls
        self.groups_only = (self.alias, verb) == ("A", Verb.COMMITTED)

    def _record_request(self, verb, items, isolation=None):
        if verb is self._verb:
            self.unreachable = self.unreachable or self._calls == 0
            self._calls -= 1
        super()._record_request(verb, items, isolation)


def test_a_dead_address_is_a_warning(estate, tmp_path):
    """One address of several does not answer: the cycle goes on and says so."""
    dead = ("dead:9092",)
    after_each(estate["A"], "describe", lambda found: replace(found, dead_addresses=dead))
    result = in_memory(estate, tmp_path, "plan", "--format", "json")
    [warning] = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert "dead:9092" in warning
    assert "A.bootstrap.servers" in warning
    groups = {json.loads(line)["group"] for line in result.stdout.splitlines()}
    assert (result.exit_code, groups) == (0, {"one", "three", "two"})


@pytest.mark.parametrize("records_a_millisecond", [1, 5])
def test_time_lookups_do_not_grow_with_the_groups(records_a_millisecond):
    """The pairs of the highest and the lowest position predict those between."""
    estate = Estate()
    estate["A"].create_topic("orders", 1)
    stamped = [
        Message(NOW_MS + n // records_a_millisecond, b"k%d" % n, b"%d" % n) for n in range(5000)
    ]
    estate["A"].log("orders").append(stamped, batch_size=50)
    estate.mirror("orders", first_offset=70)
    for number in range(40):
        estate.commit(f"g{number}", "orders", 100 + 117 * number)
    rows = estate.sync()
    assert {row.precision for row in rows} == {Precision.EXACT}
    assert estate.asked("A", Verb.FIRST_AT_TIMES) + estate.asked("B", Verb.FIRST_AT_TIMES) <= 4


# --- several sources --------------------------------------------------------------------


A_TO_C, B_TO_C = identity_flow("A", "C"), identity_flow("B", "C")
# A and B both have a topic t, merged into t on C.
FAN_IN = ((A_TO_C, "t", "t"), (B_TO_C, "t", "t"))
MEETING = {
    # The larger of two offsets would skip the other source's records.
    "fan-in under Identity": FAN_IN,
    # C.t on A and on B are both replicas of t on C: the flows from A and B meet there.
    "failback from two": ((flow("A", "C"), "C.t", "t"), (flow("B", "C"), "C.t", "t")),
    # Under Identity a topic of B is called as A's replica is: both write A.t on C.
    "different policies": ((flow("A", "C"), "t", "A.t"), (B_TO_C, "A.t", "A.t")),
    # Whatever a policy makes of names, two flows into one target partition are seen.
    "a policy of one's own": (
        (flow("A", "C", LoweringPolicy()), "Orders", "orders"),
        (flow("B", "C", LoweringPolicy()), "ORDERS", "orders"),
    ),
}


def merged(flows: Sequence[tuple[FlowSettings, str, str]] = FAN_IN) -> Estate:
    """A group on the topics of flows into C, each with its copy."""
    estate = Estate("A", "B", "C")
    for one, topic, copy in flows:
        alias = one.source.alias
        estate.write(topic, on=alias, content=f"{alias}.t")
        estate.mirror(topic, copy, source=alias, target="C")
        estate.commit("billing", topic, 40, on=alias)
    return estate


@pytest.mark.parametrize("meeting", MEETING.values(), ids=MEETING)
def test_flows_that_meet_in_a_topic_commit_nothing(meeting):
    """SEVERAL_SOURCES for both flows, which name each other."""
    estate = merged(meeting)
    for (one, *_), (other, *_) in (meeting, meeting[::-1]):
        row = row_of(estate.sync(one, competing_flows=[other]), "billing")
        assert verdict(row) == skipped(Reason.SEVERAL_SOURCES)
        assert other.name in (row.message or "")
    assert estate["C"].commits == []


def test_a_competing_flow_is_asked_once_for_all_groups():
    """Its commits are one question, however many groups and partitions could meet."""
    estate = merged()
    for number in range(5):
        for alias in ("A", "B"):
            estate.commit(f"g{number}", "t", 40, on=alias)
    rows = estate.sync(A_TO_C, competing_flows=[B_TO_C])
    assert [verdict(row) for row in rows] == [skipped(Reason.SEVERAL_SOURCES)] * 6
    assert [request.verb for request in estate["B"].requests].count(Verb.COMMITTED) == 1


def test_a_group_on_one_source_alone_has_no_competing_flow():
    """Only groups that both flows would write are several sources."""
    estate = merged()
    del estate["B"].group("billing").offsets[TopicPartition("t", 0)]
    assert verdict(row_of(estate.sync(A_TO_C, competing_flows=[B_TO_C]), "billing")) == COMMITTED
    estate.commit("billing", "t", 40, on="B", partition=1)
    assert verdict(row_of(estate.sync(A_TO_C, competing_flows=[B_TO_C]), "billing")) == UNCHANGED


def test_a_competing_flow_that_filters_the_group_or_topic_out_is_none():
    """A flow that does not sync the group or the topic writes nothing."""
    estate = merged()
    for settings in (
        replace(B_TO_C, topic_filter=DefaultTopicFilter(exclude=("t",))),
        replace(B_TO_C, group_filter=type(B_TO_C.group_filter)(exclude=("billing",))),
    ):
        assert row_of(estate.sync(A_TO_C, competing_flows=[settings]), "billing").reason is None


def test_a_competing_flow_whose_filter_raises_may_be_one():
    """It may select the group once its class is correct; the cycle goes on."""
    settings = replace(B_TO_C, group_filter=RaisingGroups())
    row = row_of(merged().sync(A_TO_C, competing_flows=[settings]), "billing")
    assert verdict(row) == skipped(Reason.SEVERAL_SOURCES)
    assert "the group filter raised KeyError" in (row.message or "")


def test_names_that_differ_have_no_competing_flow():
    """DefaultReplicationPolicy keeps sources apart; nothing is asked of the other source."""
    here, other = flow("A", "C"), flow("B", "C")
    estate = merged(((here, "t", "A.t"), (other, "t", "B.t")))
    row = row_of(estate.sync(here, competing_flows=[other]), "billing")
    assert verdict(row) == COMMITTED
    assert estate.asked("B", Verb.COMMITTED) == 0


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (None, "cannot be read"),
        ({"group": "billing"}, "cannot be read"),
        ({"partition": TopicPartition("t", 0)}, "flow B->C writes it, too"),
    ],
)
def test_a_competing_flow_that_cannot_be_asked_may_be_one(fault, words):
    """Its commits are not known, so nothing is committed where it may write; elsewhere it is."""
    estate = merged()
    estate.write("only_a", on="A")
    estate.mirror("only_a", "only_a", source="A", target="C")
    estate.commit("billing", "only_a", 40)
    if fault is None:
        estate["B"].unreachable = True
    else:
        estate["B"].fail(broken(), verb=Verb.COMMITTED, **fault)
    without_b = replace(B_TO_C, topic_filter=DefaultTopicFilter(include=("t",)))
    rows = estate.sync(A_TO_C, competing_flows=[without_b])
    shared, own = row_of(rows, "billing", "t"), row_of(rows, "billing", "only_a")
    assert verdict(shared) == skipped(Reason.SEVERAL_SOURCES)
    assert words in (shared.message or "")
    assert verdict(own) == COMMITTED


def test_a_flow_that_fails_back_gives_way_to_the_one_that_copies():
    """A.t on C is A's copy: A->C commits for it, whether C.A.t of B would come back there or not,
    and does not even ask B; B->C leaves it alone."""
    estate = Estate("A", "B", "C")
    estate.write("t")
    estate.mirror("t", target="C")
    estate.mirror("A.t", source="C", target="B")
    estate.commit("billing", "t", 40)
    estate.commit("billing", "C.A.t", 60, on="B")
    row = row_of(estate.sync(flow("B", "C"), competing_flows=[flow("A", "C")]), "billing")
    assert verdict(row) == skipped(Reason.SEVERAL_SOURCES)
    estate["B"].unreachable = True
    row = row_of(estate.sync(flow("A", "C"), competing_flows=[flow("B", "C")]), "billing")
    assert verdict(row) == COMMITTED


def test_two_topics_of_one_source_that_become_one_are_several_sources():
    """The larger of a group's two offsets would skip records of the other topic."""
    estate = Estate()
    for topic, offset in (("Orders", 40), ("ORDERS", 60), ("payments", 50)):
        estate.write(topic)
        estate.mirror(topic, topic.lower())
        estate.commit("billing", topic, offset)
    rows = estate.sync(flow(policy=LoweringPolicy()))
    for topic in ("Orders", "ORDERS"):
        row = row_of(rows, "billing", topic)
        assert verdict(row) == skipped(Reason.SEVERAL_SOURCES)
        assert "ORDERS and Orders" in (row.message or "")
    assert verdict(row_of(rows, "billing", "payments")) == COMMITTED
    narrowed = flow(policy=LoweringPolicy(), topic_filter=DefaultTopicFilter(exclude=("ORDERS",)))
    assert [row.source_topic for row in estate.sync(narrowed)] == ["Orders", "payments"]


# --- directions -------------------------------------------------------------------------


def failed_over(*, behind: int = 0, more: int = 0) -> Estate:
    """orders of A mirrored to B but for the last `behind` records, read there by billing up
    to its end; A has `more` records that came after the failover."""
    estate = mirrored_estate(first_offset=400, up_to=100 - behind, billing=40)
    estate.sync()
    estate.commit("billing", "A.orders", 500 - behind, on="B")
    if more:
        estate.write("orders", more)
    return estate


@pytest.mark.parametrize(("behind", "more"), [(0, 0), (0, 50), (30, 0), (30, 50), (30, 3_000)])
def test_failback_never_passes_what_the_replica_never_had(behind, more):
    """The original holds records that the mirror had not copied: a group at the replica's end
    resumes behind the last record that it read, not at the original's end."""
    estate = failed_over(behind=behind, more=more)
    row = row_of(estate.sync(flow("B", "A")), "billing")
    assert (row.source_topic, row.target_topic) == ("A.orders", "orders")
    assert (*verdict(row), row.target_offset) == (*COMMITTED, 100 - behind)
    assert estate["A"].log("orders").end == 100 + more


def test_failback_of_an_empty_replica_moves_nothing_past_the_originals_records():
    """The replica was made and nothing was copied yet: its end says nothing of the original."""
    estate = mirrored_estate(100, up_to=0)
    estate.commit("billing", "A.orders", 0, on="B")
    row = row_of(estate.sync(flow("B", "A")), "billing")
    assert row.target_offset in (None, 0)
    assert estate.standing("billing", "orders", on="A") in (None, CommittedOffset(0))


def test_groups_move_to_and_fro_and_get_every_record():
    """A->B->A->B while the mirror copies from A to B alone. One group is ahead of the mirror when
    it moves, and comes back to what is not mirrored by then: it reads again what its rows had said,
    the other one nothing, and no record is left out."""
    shift = 40
    estate = mirrored_estate(240, first_offset=shift, up_to=200)
    got: dict[str, Counter[int]] = {"early": Counter(), "late": Counter()}
    bounds: Counter[str | None] = Counter()
    topics = {"A": ("orders", 0), "B": ("A.orders", shift)}

    def read(alias: str, **to: int) -> None:
        """Let each group read on there, to this record of A."""
        topic, first = topics[alias]
        for group, end in to.items():
            there = estate.standing(group, topic, on=alias)
            got[group].update(range(there.offset - first if there else 0, end))
            estate.commit(group, topic, end + first, on=alias)

    def move(settings: FlowSettings) -> None:
        for row in estate.sync(settings):
            assert verdict(row) == COMMITTED
            bounds[row.group] += row.reread_bound or 0

    read("A", early=30, late=240)
    move(flow())
    read("B", early=80)
    estate.write("orders", 60)
    estate.mirror("orders", up_to=270)
    read("B", early=90, late=270)
    move(flow("B", "A"))
    read("A", early=130, late=280)
    estate.mirror("orders")
    move(flow())
    read("B", early=300, late=300)
    assert set(got["early"]) == set(got["late"]) == set(range(300))
    assert got["early"].total() == 300
    assert got["late"].total() - 300 == bounds["late"] == 40


@pytest.mark.parametrize("flow_of", [flow, identity_flow])
@pytest.mark.parametrize("lacking", ["expired", "begun late", "dropped"])
def test_a_group_that_has_read_nothing_there_comes_back_to_where_it_was(flow_of, lacking):
    """Flows go both ways, and billing is stopped: what the replica has lost, or never got, is still
    to be read on the original. The other groups' pairs tell where its next record is there."""
    estate = Estate()
    estate.write("orders", 300)
    there, back = flow_of("A", "B"), flow_of("B", "A")
    copy = there.policy.format_remote_topic("A", "orders")
    estate["B"].create_topic(copy)
    mirror_partition(
        estate["A"].log("orders"),
        estate["B"].log(copy),
        start=200 if lacking == "begun late" else None,
        drop=lambda offset, _: lacking == "dropped" and 100 <= offset < 110,
        batch_size=7,
    )
    if lacking == "expired":
        estate["B"].log(copy).delete_records(200)
    groups = {"behind": 90, "billing": 100, "ahead": 300}
    for group, offset in groups.items():
        estate.commit(group, "orders", offset)
    for _ in range(2):
        assert {verdict(row) for row in estate.sync(there)} <= {COMMITTED, UNCHANGED}
        estate.sync(back)
        for group, offset in groups.items():
            assert estate.standing(group, "orders", on="A") == CommittedOffset(offset)


@pytest.mark.parametrize("read", [25, 50])
def test_failback_leaves_what_only_the_replica_has_behind(read):
    """Producers wrote to the replica while it was in charge, under one name: a group that has read
    on there resumes behind the last record that was mirrored. What it read there alone counts as
    re-read, because content cannot tell that it will not be mirrored back."""
    estate = Estate()
    estate.write("orders", 100)
    estate.mirror("orders", "orders", up_to=70)
    estate.write("orders", 50, on="B", content="B's own")
    estate.commit("billing", "orders", 70 + read, on="B")
    back = identity_flow("B", "A")
    row = row_of(estate.sync(back), "billing")
    assert (*verdict(row), row.target_offset, row.reread_bound) == (*COMMITTED, 70, read)
    estate.write("orders", 20)
    assert verdict(row_of(estate.sync(back), "billing")) == UNCHANGED


def test_failback_keeps_a_replica_apart_from_a_topic_of_the_same_name():
    """B has a topic `orders` of its own: it leads to B.orders on A, which is not there."""
    estate = failed_over()
    estate.write("orders", 80, on="B", content="B's own")
    estate.commit("billing", "orders", 70, on="B")
    rows = estate.sync(flow("B", "A"))
    assert verdict(row_of(rows, "billing", "A.orders")) == COMMITTED
    own = row_of(rows, "billing", "orders")
    assert (own.target_topic, own.reason) == ("B.orders", Reason.TARGET_MISSING)
    assert estate.standing("billing", "orders", on="A") == CommittedOffset(100)


def chain() -> Estate:
    """t of A on B as A.t, on C as B.A.t, back on A as C.B.A.t (by hand); the group on A."""
    estate = Estate("A", "B", "C")
    estate.write("t")
    estate.mirror("t", first_offset=100)
    estate.mirror("A.t", source="B", target="C", first_offset=200)
    estate.commit("billing", "t", 40)
    return estate


def test_failback_along_a_chain_goes_one_hop_at_a_time():
    """B.A.t of C is A.t on B, and that is t on A; never t on B (MirrorMaker 2 says so)."""
    estate = chain()
    estate.write("t", on="B", content="B's own")
    estate.commit("billing", "B.A.t", 290, on="C")
    row = row_of(estate.sync(flow("C", "B")), "billing")
    assert (row.target_topic, row.target_offset) == ("A.t", 190)
    estate.sync(flow("B", "A"))
    assert estate.standing("billing", "t", on="A") == CommittedOffset(90)
    assert estate.standing("billing", "t", on="B") is None


def test_a_circle_ends_where_it_began():
    """A->B->C->A: each commit is what the next flow translates; the topic never comes back to A by
    the long way, and no group there moves."""
    estate = chain()
    for source, target in (("A", "B"), ("B", "C")):
        assert len(estate.sync(flow(source, target))) == 1
    assert estate.standing("billing", "A.t") == CommittedOffset(140)
    assert estate.standing("billing", "B.A.t", on="C") == CommittedOffset(240)
    assert estate.sync(flow("C", "A")) == []
    assert estate.standing("billing", "t", on="A") == CommittedOffset(40)
    assert estate["A"].commits == []
    again = [verdict(row) for pair in ("AB", "BC", "CA") for row in estate.sync(flow(*pair))]
    assert again == [UNCHANGED] * 2


# --- settings ---------------------------------------------------------------------------


def test_a_mirror_that_retention_emptied_answers_its_end():
    """What was mirrored is gone, and what is still to come is written behind the end."""
    estate = mirrored_estate(up_to=0, first_offset=7, billing=40)
    row = row_of(estate.sync(), "billing")
    assert (*verdict(row), row.target_offset) == (*COMMITTED, 7)
    assert (row.precision, row.reread_bound) == (Precision.FRONTIER, 40)


@pytest.mark.parametrize("passes", [[(0, 5)], [(2, 5), (0, 2)], [(0, 5), (0, 2)]])
def test_copies_that_were_stamped_on_the_way_are_not_passed(passes):
    """Each producer in Java, and so MirrorMaker 2, stamps a record without a timestamp with its own
    time. So the copy equals no record of the source, and yet it is one that the group may have to
    read."""
    estate = Estate()
    estate.write("orders", 2)
    estate["A"].log("orders").append(messages("orders", range(2, 5), stamped=False))
    estate["B"].create_topic("A.orders")
    copies: list[int] = []
    for start, end in passes:
        mirror_partition(
            estate["A"].log("orders"),
            estate["B"].log("A.orders"),
            start=start,
            end=end,
            rewrite=lambda it: replace(it, timestamp_ms=it.timestamp_ms or NOW_MS + 60_000),
        )
        copies += range(start, end)
    for committed in range(6):
        estate.commit(f"at {committed}", "orders", committed)
    for row in estate.sync():
        committed, at = row.source_offset or 0, row.target_offset or 0
        assert set(range(committed, 5)) <= set(copies[at:])
        again = [offset for offset in range(committed) if copies.index(offset) >= at]
        assert len(again) <= (row.reread_bound or 0)


READ_COMMITTED = flow(isolation=Isolation.READ_COMMITTED)


def with_open_transaction() -> Estate:
    """100 records, 10 aborted ones (marker at 110), and 10 of a transaction that is open, of
    which a read_committed replicator has copied the first 100."""
    estate = Estate()
    estate.write("orders")
    log = estate["A"].log("orders")
    aborted = log.begin()
    aborted.append(messages("aborted", range(100, 110)))
    aborted.abort()
    log.begin().append(messages("open", range(111, 121)))
    estate.mirror("orders", isolation=Isolation.READ_COMMITTED, first_offset=400)
    return estate


@pytest.mark.parametrize(
    ("offset", "expected"), [(40, 440), (99, 499), (100, 500), (105, 500), (111, 500), (115, 500)]
)
def test_read_committed_flows_pass_over_what_is_not_committed(offset, expected):
    """Aborted records do not count, and those of an open transaction are still to come: the
    mirror's end is where such groups resume."""
    estate = with_open_transaction()
    estate.commit("billing", "orders", offset)
    row = row_of(estate.sync(READ_COMMITTED), "billing")
    assert (*verdict(row), row.target_offset) == (*COMMITTED, expected)
    assert verdict(row_of(estate.sync(READ_COMMITTED), "billing")) == UNCHANGED


def test_read_committed_flows_know_the_logs_own_end():
    """A commit is past the log only behind its high watermark."""
    estate = with_open_transaction()
    estate.commit("at-end", "orders", 121)
    estate.commit("past", "orders", 122)
    rows = estate.sync(READ_COMMITTED)
    assert row_of(rows, "at-end").reason is not Reason.PAST_LOG_END
    assert verdict(row_of(rows, "past")) == skipped(Reason.PAST_LOG_END)


@pytest.mark.parametrize(
    ("copies", "settings"),
    [
        ("A.orders", flow("B", "A")),
        # Names do not tell that this is a failback.
        ("orders", identity_flow("B", "A", isolation=Isolation.READ_COMMITTED)),
        ("orders", identity_flow("B", "A")),
    ],
)
@pytest.mark.parametrize("others", [0, 3])
def test_aborted_copies_on_the_replica_are_not_taken_for_read_in_failback(copies, settings, others):
    """An exactly-once replicator that fails leaves an aborted transaction. Consumers pass over its
    copies, and commit the offset behind them, or behind others' records. The originals have not
    been read. The next cycle, which finds pairs in the cache, knows it, too."""
    estate = Estate()
    estate.write("orders")
    estate.mirror("orders", copies, up_to=90)
    log = estate["B"].log(copies)
    transaction = log.begin()
    transaction.append(messages("orders", range(90, 100)))
    transaction.abort()
    log.append(messages("others", range(others)))
    cache = CachedTables()
    for group, at in (("billing", log.end), ("search", log.end - 1)):
        estate.commit(group, copies, at, on="B")
        assert verdict(row_of(estate.sync(settings, cache=cache), group)) == COMMITTED
        assert estate.standing(group, "orders", on="A") == CommittedOffset(90)


@pytest.mark.parametrize("isolation", Isolation)
def test_pairs_of_an_open_transaction_are_not_safe_once_it_is_aborted(isolation):
    """While the replica's transaction is open, a cycle proves the pair of its first record. Then
    the transaction is aborted, and the replicator is restarted. A group that has passed the aborted
    record has not read its original, so the next cycle does not start from this pair."""
    estate, cache = Estate(), CachedTables()
    settings = identity_flow("B", "A", isolation=isolation)
    estate.write("orders", 120)
    estate.mirror("orders", "orders", up_to=90)
    log = estate["B"].log("orders")
    transaction = log.begin()
    transaction.append(messages("orders", range(90, 100)))
    estate.commit("billing", "orders", 90, on="B")
    assert row_of(estate.sync(settings, cache=cache), "billing").target_offset == 90
    transaction.abort()
    estate.commit("billing", "orders", log.end, on="B")
    log.append(messages("others", range(3)))
    log.append(messages("orders", range(80, 110)), batch_size=7)
    assert row_of(estate.sync(settings, cache=cache), "billing").target_offset == 80


@pytest.mark.parametrize("isolation", Isolation)
def test_a_partition_whose_readable_end_cannot_be_looked_up_fails_alone(isolation):
    """Without this end, aborted records cannot be omitted. The answer that counts them as read is
    not committed. The next cycle translates the partition again."""
    estate, cache = Estate(), CachedTables()
    settings = identity_flow("B", "A", isolation=isolation)
    estate.write("orders", partitions=2)
    estate.mirror("orders", "orders", up_to=90)
    for number in range(2):
        transaction = estate["B"].log("orders", number).begin()
        transaction.append(messages("orders", range(90, 100)))
        transaction.abort()
        estate.commit("billing", "orders", 101, on="B", partition=number)
    refused = Failed(FailureKind.TIMEOUT, "look up the end of orders-0, cluster B: no answer")

    def fails_on_orders_0(found):
        request = estate["B"].requests[-1]
        if request.isolation is Isolation.READ_COMMITTED:
            return {one: found[one] if one.partition else refused for one in found}
        return None

    log_ranges = estate["B"].log_ranges
    after_each(estate["B"], "log_ranges", fails_on_orders_0)
    rows = estate.sync(settings, cache=cache)
    row = row_of(rows, "billing", "orders", 0)
    assert (*verdict(row), row.message) == (*failed(FailureKind.TIMEOUT), refused.message)
    assert verdict(row_of(rows, "billing", "orders", 1)) == COMMITTED
    estate["B"].log_ranges = log_ranges
    row = row_of(estate.sync(settings, cache=cache), "billing", "orders", 0)
    assert (*verdict(row), row.target_offset) == (*COMMITTED, 90)


@pytest.mark.parametrize("isolation", Isolation)
def test_an_answer_that_one_reading_holds_for_good_is_not_cached_for_good(isolation):
    """With aborted records, the replica begins with the original's first record. Without them, it
    begins later, so a restarted mirror may still write records that the group has yet to read."""
    estate, cache = Estate(), CachedTables()
    settings = identity_flow("B", "A", isolation=isolation)
    estate.write("orders")
    estate["B"].create_topic("orders")
    log = estate["B"].log("orders")
    transaction = log.begin()
    transaction.append(messages("orders", range(10)))
    transaction.abort()
    log.append(messages("orders", range(10, 100)), batch_size=7)
    estate.commit("billing", "orders", 40, on="B")
    row = row_of(estate.sync(settings, cache=cache), "billing")
    assert (*verdict(row), row.target_offset) == (*COMMITTED, 39)
    log.append(messages("orders", range(10)))
    row = row_of(estate.sync(settings, cache=cache), "billing")
    assert (*verdict(row), row.target_offset) == (*skipped(Reason.TARGET_AHEAD), 0)


def test_timestamps_that_only_the_second_reading_finds_rewritten_skip_the_whole_topic():
    """Only without aborted records does the group's partition lead to the batch that the target has
    stamped itself."""
    estate = Estate()
    estate.write("orders", 80, partitions=2)
    estate.mirror("orders", "orders")
    original, replica = estate["A"].log("orders"), estate["B"].log("orders")
    original.timestamp_type = TimestampType.LOG_APPEND_TIME
    for log in original, replica:
        log.append(messages("orders", range(80, 90)))
    original.timestamp_type = TimestampType.CREATE_TIME
    original.append(messages("orders", range(90, 100)))
    transaction = replica.begin()
    transaction.append(messages("orders", range(90, 100)))
    transaction.abort()
    estate.commit("billing", "orders", replica.end, on="B")
    estate.commit("billing", "orders", 40, on="B", partition=1)
    rows = estate.sync(identity_flow("B", "A"))
    assert [verdict(row) for row in rows] == 2 * [skipped(Reason.TARGET_REWRITES_TIMESTAMPS)]


def test_rereads_of_aborted_records_are_counted_where_names_tell_no_direction():
    """A replicator that reads uncommitted records has copied aborted ones. A group that may have
    read some of them resumes before the first."""
    estate = Estate()
    estate.write("orders", 90)
    transaction = estate["A"].log("orders").begin()
    transaction.append(messages("orders", range(90, 100)))
    transaction.abort()
    estate["A"].log("orders").append(messages("orders", range(100, 120)))
    estate.mirror("orders", "A.orders")
    found = translated_with_cache(estate["A"], estate["B"], 50, 95, 101, is_remote_topic=False)
    answers = [(it.offset, it.translation.outcome) for it in found.positions()]
    assert [(at, it.target_offset, it.precision, it.reread_bound) for at, it in answers] == [
        (50, 50, "exact", 0),
        (95, 90, "bounded", 5),
        (101, 100, "exact", 0),
    ]
    assert found.learned.holds == {50: Holds(), 101: Holds()}


@pytest.mark.parametrize(
    ("copies", "settings", "while_open"),
    [
        ("A.orders", flow("B", "A"), None),
        ("orders", identity_flow("B", "A", isolation=Isolation.READ_COMMITTED), 0),
        ("orders", identity_flow("B", "A"), 0),
    ],
)
@pytest.mark.parametrize("is_open", [True, False])
def test_in_failback_an_open_transaction_may_hold_what_the_group_has_yet_to_read(
    copies, settings, while_open, is_open
):
    """The mirror began at 50, and was restarted at 0. The transaction with the first 50 copies
    shows them to no consumer yet. While it is open, the replica's readable end proves nothing."""
    estate = Estate()
    estate.write("orders")
    estate["B"].create_topic(copies)
    log = estate["B"].log(copies)
    log.append(messages("orders", range(50, 100)), batch_size=7)
    if is_open:
        log.begin().append(messages("orders", range(50)))
    estate.commit("billing", copies, 50, on="B")
    row = row_of(estate.sync(settings), "billing")
    assert row.target_offset == (while_open if is_open else 100)
    assert verdict(row) == (skipped(Reason.NO_PROOF) if row.target_offset is None else COMMITTED)


# --- commits go out once ----------------------------------------------------------------


def test_all_groups_are_committed_in_one_call(estate):
    """The target is asked once for the commits of all groups, and told once."""
    estate.sync()
    verbs = Counter(request.verb for request in estate["B"].requests)
    assert (verbs[Verb.COMMITTED], verbs[Verb.COMMIT]) == (1, 1)
    told = Counter(
        item[:2] for request in estate["B"].requests if request.verb is Verb.COMMIT
        for item in request.items
    )  # fmt: skip
    assert set(told.values()) == {1}
    assert {(group, partition.partition) for group, partition in told} == ALL


def test_nothing_is_asked_where_there_is_nothing_to_do():
    """No groups, or none with source commits: the target's offsets are neither read nor written."""
    estate = mirrored_estate()
    estate.commit("only-there", "A.orders", 40, on="B")
    assert estate.sync() == []
    estate["A"].group("without-commits")
    assert estate.sync() == []
    estate["A"].group("shares", GroupType.SHARE)
    assert estate.sync() == []
    assert estate.asked("B", Verb.COMMITTED) == estate.asked("B", Verb.COMMIT) == 0


def test_an_isolation_level_that_mirror_maker_ignores_skips_nothing():
    """MirrorMaker 2 reads no consumer's setting without a prefix, and has copied the records of an
    open transaction. As read_committed, the flow would take them for records yet to be copied."""
    estate = Estate()
    estate.write("orders", 20)
    opened = estate["A"].log("orders").begin()
    opened.append(messages("open", range(20, 23)))
    estate.mirror("orders")
    estate.commit("billing", "orders", 21)
    (settings,) = two_clusters("consumer.isolation.level = read_committed").flows
    estate.sync(settings)
    assert estate.standing("billing", "A.orders") == CommittedOffset(21)
