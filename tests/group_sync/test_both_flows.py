"""Flows in both directions, each with its cache, and with the other's state: no flow takes what the
other one has committed for what consumers have read."""

from pathlib import Path
from typing import Any

import pytest

from tests.memory_flows import (
    COMMITTED,
    UNCHANGED,
    Estate,
    failed,
    flow,
    messages,
    mirrored_estate,
    skipped,
    verdict,
    with_floor,
)
from tsoffset.flow.settings import TranslationSettings
from tsoffset.group_sync.cache import CachedTables, with_reverse
from tsoffset.group_sync.state import FlowCache, StateFile, reverse_commits
from tsoffset.model import Failed, FailureKind, Reason, Row, TopicPartition
from tsoffset.testing.memory_cluster import Verb

HELD = skipped(Reason.TARGET_REWOUND)


class BothFlows:
    """Cycles of A->B and B->A of one configuration, which keep their state in a folder."""

    def __init__(self, estate: Estate, folder: Path, **changes: Any) -> None:
        self.estate = estate
        self.folder = folder
        self.flows = {"B": flow("A", "B", **changes), "A": flow("B", "A", **changes)}
        self.caches = {"A": FlowCache(), "B": FlowCache()}

    def sync(self, to: str) -> Row:
        """A cycle of the flow into this cluster; the row of its only group."""
        [row] = self.rows(to)
        return row

    def rows(self, to: str) -> list[Row]:
        settings, cache = self.flows[to], self.caches[to]
        every = self.flows.values()
        cache.reverse = reverse_commits(str(self.folder), settings, every, cache.reverse)
        tables = CachedTables(with_reverse(cache.pairs, cache.reverse), cache.partitions)
        rows = self.estate.sync(settings, cache=tables)
        cache.learn(tables)
        assert StateFile(self.folder, settings.name).save(cache) is None
        return rows


def offset(estate: Estate, on: str) -> int:
    committed = estate.standing("billing", "orders" if on == "A" else "A.orders", on=on)
    assert committed is not None
    return committed.offset


@pytest.mark.parametrize("deleted_there", [0, 60])
def test_a_group_that_expires_on_one_cluster_keeps_its_records_on_the_other(
    tmp_path, deleted_there
):
    """No consumer runs. A loses the next records of a group, so B->A moves the group to A's log
    start (`translation.floor`). That says nothing of what the group has read: on B, where these
    records are, it stays."""
    estate = mirrored_estate(100, first_offset=40, billing=11)
    both = BothFlows(estate, tmp_path, translation=with_floor())
    assert verdict(both.sync("B")) == COMMITTED
    assert verdict(both.sync("A")) == UNCHANGED
    assert verdict(both.sync("B")) == UNCHANGED
    estate["A"].log("orders").delete_records(35)
    assert verdict(both.sync("A")) == COMMITTED
    assert offset(estate, "A") == 35
    if deleted_there:
        # The group's offset on B is gone, too, but not all of the records that A has lost.
        estate["B"].log("A.orders").delete_records(deleted_there)
    for _ in range(2):
        assert verdict(both.sync("B")) == HELD
    assert offset(estate, "B") == 51


@pytest.mark.parametrize("cycles_without", [None, "", "A"])
def test_a_group_stays_at_records_that_the_other_cluster_lost_before_the_mirror_went_on(
    tmp_path, cycles_without
):
    """A has lost everything that B has, and the mirror is behind. So the group's offset on B is the
    translation of A's log start, to which B->A has moved the group on A. Once the mirror goes on,
    the translation lies after what the group has yet to read on B. A->B knows this even if B->A
    has lost its state since, as it does if its filters exclude the group for a while."""
    estate = mirrored_estate(100, first_offset=40, billing=0)
    both = BothFlows(estate, tmp_path)
    for verdict_of, to in ((COMMITTED, "B"), (UNCHANGED, "A"), (UNCHANGED, "B")):
        assert verdict(both.sync(to)) == verdict_of
    estate.write("orders", 50)
    estate["A"].log("orders").delete_records(100)
    assert verdict(both.sync("A")) == COMMITTED
    for _ in range(2):
        assert verdict(both.sync("B")) == UNCHANGED
    assert (offset(estate, "A"), offset(estate, "B")) == (100, 40)
    if cycles_without is not None:
        both.caches["A"] = FlowCache()
        Path(StateFile(tmp_path, "B->A").path).unlink()
        for to in cycles_without:
            assert verdict(both.sync(to)) == UNCHANGED
    estate.mirror("orders")
    assert verdict(both.sync("B")) == HELD


@pytest.mark.parametrize(("is_known", "cycles"), [(True, "AB"), (False, "AB"), (False, "ABAB")])
def test_a_group_that_both_flows_have_in_sync_passes_second_copies(tmp_path, is_known, cycles):
    """It was moved to A, and has read everything there. Then the mirror is restarted, and new
    records follow. B->A has only found the group in sync at the end, so the group on B is moved
    past the second copies; but not if it is unknown where the group has read."""
    estate = mirrored_estate(100, first_offset=40)
    both = BothFlows(estate, tmp_path)
    if is_known:
        estate.commit("billing", "A.orders", 70, on="B")
        assert verdict(both.sync("A")) == COMMITTED
        estate.commit("billing", "orders", 100)
        assert verdict(both.sync("B")) == COMMITTED
    else:
        estate.commit("billing", "orders", 10)
        assert verdict(both.sync("B")) == COMMITTED
        estate.commit("billing", "orders", 100)
        estate.commit("billing", "A.orders", 140, on="B")
    for to in cycles:
        assert verdict(both.sync(to)) == UNCHANGED
    estate["B"].log("A.orders").append(messages("orders", range(90, 100)))
    estate.write("orders", 20)
    estate.mirror("orders")
    assert verdict(both.sync("B")) == (COMMITTED if is_known else HELD)
    assert offset(estate, "B") == (150 if is_known else 140)


def test_a_group_that_is_reset_to_where_it_was_after_its_failback_stays_there(tmp_path):
    """It was restored from a snapshot that was taken then. What B->A committed last is where the
    group is now, but A->B has moved the group on B forward since."""
    estate = mirrored_estate(100, first_offset=40)
    estate.commit("billing", "A.orders", 70, on="B")
    both = BothFlows(estate, tmp_path)
    assert verdict(both.sync("A")) == COMMITTED
    assert offset(estate, "A") == 30
    estate.commit("billing", "orders", 60)
    assert verdict(both.sync("B")) == COMMITTED
    estate.commit("billing", "orders", 30)
    for _ in range(2):
        assert verdict(both.sync("A")) == HELD
    assert offset(estate, "A") == 30


@pytest.mark.parametrize("on_b", [70, 75])
def test_a_reset_is_recognized_by_what_the_group_had(tmp_path, on_b):
    """Consumers on B have read on, perhaps also since B->A's last cycle, and A->B has not run
    since: its state does not have the group's offset on B. While the group on A reads on to where
    it was, it stays, also with B->A in another process. A consumer's next offset on B ends this."""
    estate = mirrored_estate(100, first_offset=40)
    estate.commit("billing", "A.orders", 70, on="B")
    both = BothFlows(estate, tmp_path)
    assert verdict(both.sync("A")) == COMMITTED
    estate.commit("billing", "A.orders", on_b, on="B")
    for on_a in (10, 12):
        estate.commit("billing", "orders", on_a)
        assert verdict(both.sync("A")) == HELD
        assert offset(estate, "A") == on_a
        both.caches["A"], _ = StateFile(tmp_path, "B->A").load()
    estate.commit("billing", "A.orders", 76, on="B")
    assert verdict(both.sync("A")) == COMMITTED
    assert offset(estate, "A") == 36


@pytest.mark.parametrize("proof", ["content", "timestamps"])
def test_a_reset_of_a_group_that_no_flow_has_in_sync_is_recognized(tmp_path, proof):
    """The group on A is ahead when B->A first sees it. In the first cycle after the reset, its
    offset on B cannot be read."""
    estate = mirrored_estate(100, first_offset=40, billing=50)
    estate.commit("billing", "A.orders", 70, on="B")
    both = BothFlows(estate, tmp_path, translation=TranslationSettings(proof=proof))
    assert verdict(both.sync("A")) == skipped(Reason.TARGET_AHEAD)
    estate.commit("billing", "orders", 10)
    unread = Failed(FailureKind.COORDINATOR, "made to fail")
    copies = TopicPartition("A.orders", 0)
    estate["B"].fail(unread, verb=Verb.COMMITTED, partition=copies)
    assert verdict(both.sync("A")) == failed(FailureKind.COORDINATOR)
    estate["B"].heal()
    for _ in range(2):
        assert verdict(both.sync("A")) == HELD


def test_an_offset_that_means_the_same_as_the_translation_is_known_to_the_other_flow(tmp_path):
    """Compaction has taken the record between the two, so A->B finds the group on B in sync. B->A
    compares the group's offset on B, and not the translation, when the group is reset on A."""
    estate = mirrored_estate(100, first_offset=40, billing=60)
    estate["B"].log("A.orders").remove([99])
    estate.commit("billing", "A.orders", 99, on="B")
    both = BothFlows(estate, tmp_path)
    row = both.sync("B")
    assert (verdict(row), row.target_offset) == (UNCHANGED, 100)
    estate.commit("billing", "orders", 30)
    assert verdict(both.sync("A")) == HELD


@pytest.mark.parametrize("is_seen", [False, True])
def test_what_a_flow_has_committed_in_a_topic_says_nothing_of_a_recreated_one(tmp_path, is_seen):
    """B still has the old topic's records, which the group has yet to read. B->A commits the same
    offset in the new topic on A as in the old one: A->B does not move the group on B past the old
    records, whether or not it has had a cycle without the topic."""
    estate = mirrored_estate(100, billing=0)
    both = BothFlows(estate, tmp_path)
    for to in ("B", "A", "B"):
        both.sync(to)
    estate["A"].delete_topic("orders")
    if is_seen:
        assert both.rows("B") == []
    estate.write("orders", 50, content="new")
    estate.forget("orders")
    estate.mirror("orders")
    assert verdict(both.sync("A")) == COMMITTED
    assert (offset(estate, "A"), offset(estate, "B")) == (0, 0)
    assert verdict(both.sync("B")) == HELD
