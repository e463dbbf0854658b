"""Groups that no broker lists, because their partition of `__consumer_offsets` has no leader."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.configured import properties_file
from tests.memory_flows import (
    UNCHANGED,
    WOULD_COMMIT,
    Estate,
    after_each,
    failed,
    mirrored_estate,
    unused_partition,
    verdict,
)
from tsoffset.config.loading import Configuration
from tsoffset.daemon.freshness import PAIRS_KNOWN, pairs_known
from tsoffset.group_sync.flow_cycle import CycleResult, FlowTask
from tsoffset.group_sync.state import FlowCache
from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    FailureKind,
    GroupListing,
    GroupType,
    OutcomeKind,
    TopicPartition,
)
from tsoffset.spark.dataflow import plan_cycle
from tsoffset.testing.memory_cluster import Verb

GROUPS = TopicPartition(GROUP_OFFSETS_TOPIC, 0)
UNLISTED = (None, *failed(FailureKind.NO_LEADER))


class Plans:
    """A flow whose groups all lie in one partition of `__consumer_offsets` on each cluster, and
    the cycles of one process, which commit nothing."""

    def __init__(self, folder: Path) -> None:
        self.estate: Estate = mirrored_estate(100, billing=60)
        self.estate.commit("billing", "A.orders", 60, on="B")
        self.estate.commit("shipping", "orders", 70)
        for alias in "AB":
            self.estate[alias].create_topic(GROUP_OFFSETS_TOPIC, internal=True)
        self.cache = FlowCache()
        self._file = properties_file(folder, "a:1", "b:1")

    def lead(self, alias: str, leader: int | None) -> None:
        self.estate[alias].elect_leader(GROUPS, leader)

    def cycle(self) -> CycleResult:
        configuration = Configuration.read(self._file)
        task = FlowTask(configuration, "A->B", connect=self.estate.connect)
        return plan_cycle(lambda: pytest.fail("no Spark"), task, cache=self.cache)

    def verdicts(self) -> list[tuple[object, ...]]:
        return [(row.group, *verdict(row)) for row in self.cycle().rows]


@pytest.fixture
def plans(tmp_path) -> Plans:
    return Plans(tmp_path)


WELL = [("billing", *UNCHANGED), ("shipping", *WOULD_COMMIT)]
BY_NAME = [(group, *failed(FailureKind.COORDINATOR)) for group in ("billing", "shipping")]


def test_groups_without_a_leader_on_the_source_fail_by_name(plans):
    """The cycle says that groups are not listed, and reads those that it knows by name. Their
    cached translations stay. With a leader again, all is as before."""
    assert plans.verdicts() == WELL
    plans.cache.listed_at = float("-inf")
    cached = plans.cache.pairs
    plans.lead("A", None)
    for _ in range(2):
        assert plans.verdicts() == [UNLISTED, *BY_NAME]
        assert plans.cache.pairs.equals(cached)
    plans.lead("A", 0)
    assert plans.verdicts() == WELL
    asked = plans.estate.asked("A", Verb.READ)
    assert plans.verdicts() == WELL
    assert plans.estate.asked("A", Verb.READ) == asked, "the translations are cached"


def test_a_group_that_is_missing_from_a_complete_listing_is_read_by_name_once(plans):
    """A new coordinator that has not begun to load its groups lists none, and no error. A group
    without offsets was deleted."""
    plans.cycle()
    listed = plans.estate["A"].groups()
    after_each(plans.estate["A"], "groups", lambda _: replace(listed, groups={}))
    for group, verdicts in ((None, WELL), ("billing", WELL[1:]), ("shipping", [])):
        if group is not None:
            plans.estate["A"].group(group).offsets.clear()
        plans.cache.listed_at = float("-inf")
        assert plans.verdicts() == verdicts
    plans.cache.listed_at = float("-inf")
    assert plans.verdicts() == []
    assert plans.cache.listing.groups == {}


def test_a_process_that_starts_meanwhile_knows_the_groups_of_its_state(plans):
    """No listing is kept from process to process; the names are those of cached translations."""
    plans.cycle()
    plans.cache.listing = None
    plans.lead("A", None)
    assert plans.verdicts() == [UNLISTED, *BY_NAME]


def test_a_group_that_was_deleted_meanwhile_has_no_row(plans):
    """It is read by name, and has no offsets; after a complete listing it is forgotten."""
    source = plans.estate["A"]
    source.delete_topic(GROUP_OFFSETS_TOPIC)
    source.create_topic(GROUP_OFFSETS_TOPIC, 3, internal=True)
    plans.cycle()
    plans.cache.listed_at = float("-inf")
    empty = unused_partition(source, {"billing", "shipping"})
    source.delete_group("shipping")
    source.elect_leader(empty, None)
    assert plans.verdicts() == [UNLISTED, ("billing", *UNCHANGED)]
    source.elect_leader(empty, 0)
    assert plans.verdicts() == [("billing", *UNCHANGED)]
    assert plans.cache.listing is not None
    assert set(plans.cache.listing.groups) == {"billing"}


def test_groups_without_a_leader_on_the_target_fail_by_name(plans):
    """Nothing is committed for a group whose target offset cannot be read."""
    plans.cycle()
    plans.lead("B", None)
    rows = list(plans.cycle().rows)
    assert (rows[0].group, *verdict(rows[0])) == UNLISTED
    assert {row.outcome for row in rows} == {OutcomeKind.FAILED}


def test_the_age_of_offsets_of_unlisted_groups_goes_on(plans):
    """The group's partitions stay known, with the time at which they were last in sync."""
    before = pairs_known(plans.cycle().rows.table, PAIRS_KNOWN.empty_table(), now=100.0)
    plans.cache.listed_at = float("-inf")
    plans.lead("A", None)
    after = pairs_known(plans.cycle().rows.table, before, now=200.0)
    known = {
        (one["group"], one["source_topic"]): (one["in_sync_at"], one["reason"])
        for one in after.to_pylist()
    }
    assert known["billing", "orders"] == (100.0, FailureKind.COORDINATOR)


def test_nothing_is_concluded_without_the_topic(plans):
    """It does not exist before the first group, and a client may not be allowed to see it."""
    plans.estate["A"].delete_topic(GROUP_OFFSETS_TOPIC)
    assert plans.estate["A"].groups().failures == ()
    assert plans.verdicts() == WELL


def test_an_incomplete_listing_adds_those_of_the_last_one(plans):
    """With what is known of each, such as its type; a group may have no cached translation."""
    listed = plans.estate["A"].groups()
    share = GroupListing("share", GroupType.SHARE, "Empty")
    before = replace(listed, groups={**listed.groups, "share": share})
    cache = FlowCache()
    cache.keep_listing(before, 1.0)
    plans.lead("A", None)
    for now in (2.0, 3.0):
        found = cache.keep_listing(plans.estate["A"].groups(), now)
        assert found.groups == before.groups
        assert found.failures
