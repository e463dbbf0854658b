"""Logs that are replaced, or lose their end, between two cycles or within one."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.group_sync.test_cache import COPY, LATE, NO, ORDERS, Remembering, agrees
from tests.memory_flows import (
    GROUPS_READ,
    NOW_MS,
    TRANSLATED,
    Estate,
    after_each,
    before_topics,
    failed,
    flow,
    messages,
    row_of,
    verdict,
    with_floor,
)
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import TranslationSettings
from tsoffset.model import CommittedOffset, Failed, FailureKind, OutcomeKind, Precision, Reason
from tsoffset.testing.memory_cluster import MemoryCluster, Message, Verb


def remake_copy(estate: Estate, up_to: int = 200, first_offset: int = 300) -> None:
    """Recreate the target's topic, with other offsets; the groups' offsets in it are gone."""
    target = estate["B"]
    target.delete_topic("A.orders")
    target.create_topic("A.orders", first_offset=first_offset)
    for group in target.groups().groups:
        target.group(group).offsets.pop(COPY, None)
    target.log("A.orders").append(messages("orders", range(up_to)), batch_size=10)


def after_translating(
    estate: Estate, change: Callable[[], object], alias: str = "B"
) -> AbstractContextManager[None]:
    """A block in whose cycle this happens before the cluster's topics are described again."""
    return before_topics(estate[alias], *TRANSLATED, change=change)


@pytest.mark.parametrize("blind", ["source", "target", "target, and the group unasked"])
def test_an_answer_does_not_outlive_its_log(blind):
    """The topic was recreated while its description failed once. What was known of the old log is
    not taken for the new one's, whatever requests succeeded in between."""
    world = Remembering.synced(40, 20, records=200)
    unasked = "unasked" in blind
    remake_copy(world.estate, 200 if unasked else 30)
    alias, topic = ("A", "orders") if blind == "source" else ("B", "A.orders")
    world.estate[alias].fail(LATE, verb=Verb.TOPICS, topic=topic, times=1)
    if unasked:
        world.estate["A"].fail(LATE, verb=Verb.COMMITTED, group="g0", times=1)
    world.sync()
    if not unasked:
        copies = messages("orders", range(30, 200))
        world.estate["B"].log("A.orders").append(copies, batch_size=10)
    row = row_of(agrees(world), "g0")
    assert (row.target_offset, row.precision) == (340, Precision.EXACT)


def test_a_log_made_anew_during_the_cycle_moves_no_group_by_what_was_known():
    """Between the look and the commit: the group that was answered from memory fails for once, and
    so does each other group of the topic, which has had two ids in this cycle."""
    world = Remembering.synced(40, 20, records=200)
    world.estate.commit("g1", "orders", 22)
    world.estate["B"].group("g0").offsets.pop(COPY)
    with before_topics(world.estate["B"], *GROUPS_READ, change=lambda: remake_copy(world.estate)):
        rows = world.sync()
    assert {row.reason for row in rows} == {FailureKind.NO_LEADER}
    rows = world.sync()
    assert [row_of(rows, group).target_offset for group in ("g0", "g1")] == [340, 322]


def refuse(cluster: MemoryCluster, topic: str = COPY.topic) -> None:
    cluster.fail(LATE, verb=Verb.TOPICS, topic=topic, times=1)


def lose_once(cluster: MemoryCluster, _: str = COPY.topic) -> None:
    """No address answers the next call that describes topics."""

    left = [ClusterUnreachable("made to fail")]

    def lost(_: object) -> None:
        if left:
            raise left.pop()

    after_each(cluster, "topics", lost)


@pytest.mark.parametrize(
    ("first", "then"),
    [(None, None), (refuse, None), (lose_once, None), (None, refuse), (None, lose_once)],
)
@pytest.mark.parametrize("proof", ["content", "timestamps"])
def test_a_topic_made_anew_before_the_commit_moves_no_group(proof, first, then):
    """Between the translation and the commit, whether anything of it is to be remembered or not:
    the translated offset lies in the new log, too, after records that the group has not read. A
    topic that cannot be described, at first or then, may be such a one."""
    world = Remembering.of(40, records=200)
    if first is not None:
        first(world.estate["B"])
    world.settings = flow(translation=TranslationSettings(proof=proof))

    def change() -> None:
        remake_copy(world.estate)
        if then is not None:
            then(world.estate["B"])

    with after_translating(world.estate, change):
        assert row_of(world.sync(), "g0").reason is FailureKind.NO_LEADER
    assert row_of(world.sync(), "g0").target_offset == 340
    assert world.estate["B"].group("g0").offsets[COPY].offset == 340


def remake_source(estate: Estate) -> None:
    """Recreate the source's topic. The groups' offsets are gone, and the mirror continues."""
    source = estate["A"]
    source.delete_topic("orders")
    source.create_topic("orders")
    write_others(estate)


def write_others(estate: Estate) -> None:
    """Two hundred other records, mirrored."""
    other = [Message(NOW_MS + 5_000 + n, b"%d" % n, b"other %d" % n) for n in range(200)]
    estate["A"].log("orders").append(other, batch_size=10)
    estate["B"].log(COPY.topic).append(other, batch_size=10)


@pytest.mark.parametrize("when", [GROUPS_READ, TRANSLATED], ids=["read", "translated"])
@pytest.mark.parametrize("then", [None, refuse, lose_once])
def test_a_source_topic_made_anew_after_the_groups_were_read_moves_no_group(when, then):
    """What was committed in the old log lies in the new one, too, after records that the group has
    not read: it would skip these. A topic that cannot be described may be such a one."""
    world = Remembering.of(40, 20)
    world.estate["A"].elect_leader(ORDERS, 0)
    world.sync()
    world.estate.commit("g1", "orders", 60, leader_epoch=1)

    def change() -> None:
        remake_source(world.estate)
        if then is not None:
            then(world.estate["A"], ORDERS.topic)

    with before_topics(world.estate["A"], *when, change=change):
        row = row_of(world.sync(), "g1")
    assert (row.reason, row.target_offset) == (FailureKind.NO_LEADER, None)
    assert world.estate.standing("g1", COPY.topic) == CommittedOffset(420)
    world.estate.commit("g1", "orders", 60)
    assert row_of(world.sync(), "g1").target_offset == 560


def test_a_source_topic_made_anew_in_its_first_cycle_moves_no_group():
    """Nothing is remembered of it: it is described before it is translated, and after that."""
    world = Remembering.of(40)
    with after_translating(world.estate, lambda: remake_source(world.estate), "A"):
        assert row_of(world.sync(), "g0").reason is FailureKind.NO_LEADER
    assert world.estate.standing("g0", COPY.topic) is None


def lose_end(estate: Estate) -> None:
    """The source's records from 150 on are lost in an unclean election, and others in their
    place."""
    estate["A"].elect_leader(ORDERS, 0, log_end=150)
    write_others(estate)


def two_epochs() -> Remembering:
    """The first hundred records are of epoch 0, the others of epoch 1."""
    world = Remembering.of()
    world.estate["A"].elect_leader(ORDERS, 0)
    world.estate.write("orders", 100)
    world.estate.mirror("orders")
    return world


@pytest.mark.parametrize("when", ["before the first cycle", "after a cycle", "during a cycle"])
def test_a_group_that_has_read_lost_records_is_not_moved_past_new_ones(when):
    """What it committed lies in the log still, after other records that it has not read. Nothing
    of it is remembered, so the next cycle says the same; once it goes on it is moved."""
    world = two_epochs()
    world.estate.commit("g0", "orders", 180, leader_epoch=1)
    if when == "after a cycle":
        world.sync()
    if when == "during a cycle":
        with after_translating(world.estate, lambda: lose_end(world.estate), "A"):
            assert row_of(world.sync(), "g0").reason is Reason.PAST_LOG_END
    else:
        lose_end(world.estate)
    before = world.estate.standing("g0", COPY.topic)
    for _ in range(2):
        row = row_of(world.sync(), "g0")
        assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.PAST_LOG_END)
        assert "leader epoch 1, which ends at 150 in the source's log" in (row.message or "")
    assert row.target_offset is None
    assert world.estate.standing("g0", COPY.topic) == before
    world.estate.commit("g0", "orders", 180, leader_epoch=2)
    assert row_of(world.sync(), "g0").target_offset == 630


@pytest.mark.parametrize(("offset", "epoch"), [(100, 0), (120, 0), (100, 1), (200, 1), (200, 2)])
def test_a_group_that_has_read_what_the_log_has_is_synced(offset, epoch):
    """After a clean election, whether it has read on since or not. Sarama before 1.42.1 always
    commits epoch 0."""
    world = two_epochs()
    world.estate["A"].elect_leader(ORDERS, 0)
    world.estate.commit("g0", "orders", offset, leader_epoch=epoch)
    assert row_of(world.sync(), "g0").target_offset == 400 + offset


def test_an_epoch_that_the_log_does_not_have_is_of_another_log():
    world = Remembering.of()
    world.estate.commit("g0", "orders", 80, leader_epoch=7)
    row = row_of(world.sync(), "g0")
    assert (row.reason, row.target_offset) == (Reason.PAST_LOG_END, None)
    assert world.estate.asked("A", Verb.EPOCH_ENDS) == 0
    assert "leader epoch 7, which the source's log does not have" in (row.message or "")


def test_epochs_that_cannot_be_read_fail_their_rows_alone():
    """A cluster that has no such request is not asked for more than Kafka's own consumer does."""
    world = two_epochs()
    world.estate["A"].elect_leader(ORDERS, 0)
    world.estate.commit("g0", "orders", 20, leader_epoch=0)
    world.estate.commit("g1", "orders", 180, leader_epoch=1)
    world.estate["A"].fail(NO, verb=Verb.EPOCH_ENDS, times=1)
    rows = world.sync()
    assert verdict(row_of(rows, "g1")) == failed(NO.kind)
    assert row_of(rows, "g0").target_offset == 420
    world.estate["A"].fail(Failed(FailureKind.UNSUPPORTED_VERSION, "old"), verb=Verb.EPOCH_ENDS)
    assert row_of(world.sync(), "g1").target_offset == 580


def test_the_log_start_of_a_topic_made_anew_is_not_committed():
    """With `translation.floor = log_start`: the old log began at 300, the new one has records that
    the group has not read before that."""
    world = Remembering(Estate())
    world.settings = flow(translation=with_floor())
    world.estate.write("orders", 700)
    world.estate.commit("g0", "orders", 645)
    world.estate["B"].create_topic("A.orders", first_offset=300)
    other = Message(NOW_MS + 5_000, b"other", b"other")
    world.estate["B"].log("A.orders").append([other])
    with after_translating(world.estate, lambda: remake_copy(world.estate, 400, first_offset=0)):
        row = row_of(world.sync(), "g0")
    assert (row.outcome, row.target_offset) == (OutcomeKind.SKIPPED, None)
    assert world.estate.standing("g0", "A.orders") is None
