"""MirrorMaker 2 is stopped and started again; tsoffset remembers nothing between its cycles.

After testRestartReplication, testNoCheckpointsIfNoRecordsAreMirrored,
testCheckpointRecordsMonotonicIfStoreRewinds and
testCheckpointsTaskRestartUsesExistingCheckpoints of Apache Kafka's connect/mirror.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from tests.scenarios.flows import Rows
from tests.scenarios.mirror_maker_tests.primary_backup import (
    AUTO_SYNC,
    BEHIND,
    NOTHING_YET,
    PARTITIONS,
    PER_PARTITION,
    RESTARTED,
    Site,
    Variant,
    consume,
)
from tsoffset.model import OutcomeKind, Precision, Reason
from tsoffset.testing.embedded import MirrorMaker

pytestmark = pytest.mark.integration

READER, NOTHING, OLD = "restart", "nothing-yet", "old"
# Records of the long topic: where the old group stands, and where others come to stand.
OLD_INDEX, LATER_INDEXES = 250, (370, 400)


@dataclass(frozen=True, slots=True)
class Stages:
    """Rows by variant: before MirrorMaker 2 was stopped, while it was away and records were
    written and read, and when it had come back and copied them."""

    before: Mapping[str, Rows]
    away: Mapping[str, Rows]
    after: Mapping[str, Rows]


@pytest.fixture(scope="module")
def stages(site: Site, mirror_maker: MirrorMaker, variants: Sequence[Variant]) -> Stages:
    """A cycle in each stage, for a group that reads all of a topic, one of which nothing is
    mirrored yet, and one that stays where it is."""
    for variant in variants:
        primary, _ = site.sides(variant.forth)
        reader, nothing, old = map(variant.group, (READER, NOTHING, OLD))
        consume(primary, reader, variant.topic(RESTARTED), reset="earliest")
        both = variant.topic(NOTHING_YET), variant.topic(AUTO_SYNC)
        consume(primary, nothing, *both, reset="earliest")
        stand_at(site, variant, old, OLD_INDEX)
    before = {variant.name: sync_all(site, variant) for variant in variants}
    mirror_maker.stop()
    for variant in variants:
        primary, _ = site.sides(variant.forth)
        site.write(variant, variant.topic(RESTARTED))
        consume(primary, variant.group(READER), variant.topic(RESTARTED))
        site.write(variant, variant.topic(NOTHING_YET), partitions=[0])
        consume(primary, variant.group(NOTHING), variant.topic(NOTHING_YET))
        site.write(variant, variant.topic(BEHIND))
    away = {variant.name: sync_all(site, variant) for variant in variants}
    mirror_maker.start()
    for variant in variants:
        site.wait_until_complete(variant)
    after = {variant.name: sync_all(site, variant) for variant in variants}
    return Stages(before, away, after)


def sync_all(site: Site, variant: Variant) -> Rows:
    """A cycle for the groups of this module."""
    return site.sync(variant.forth, *map(variant.group, (READER, NOTHING, OLD)))


def stand_at(site: Site, variant: Variant, group: str, index: int) -> dict[int, int]:
    """Let the group stand at that record of each partition of the long topic; partition to
    the record's offset."""
    mirror = site.mirror(variant, BEHIND)
    offsets = {number: records[index].offset for number, records in mirror.written.items()}
    commits = {(mirror.topic, number): offset for number, offset in offsets.items()}
    mirror.source.commit_offsets(group, commits)
    return offsets


def test_group_is_fully_synced_before_and_after_a_restart(
    site: Site, variant: Variant, stages: Stages
) -> None:
    """A group that reads on while the mirror is restarted is at the copy's end before and
    after; in between it waits where the copy ends, and is never taken backwards."""
    group, topic = variant.group(READER), variant.topic(RESTARTED)
    for number in range(PARTITIONS):
        row = stages.before[variant.name].of(group, topic, number)
        assert (row.outcome, row.target_offset) == (OutcomeKind.COMMITTED, PER_PARTITION)
        assert row.precision is Precision.EXACT
        row = stages.away[variant.name].of(group, topic, number)
        assert (row.outcome, row.target_offset) == (OutcomeKind.UNCHANGED, PER_PARTITION)
        assert (row.precision, row.reread_bound) == (Precision.FRONTIER, PER_PARTITION)
        row = stages.after[variant.name].of(group, topic, number)
        assert (row.outcome, row.target_offset) == (OutcomeKind.COMMITTED, 2 * PER_PARTITION)
        assert (row.precision, row.reread_bound) == (Precision.EXACT, 0)
    mirror = site.mirror(variant, RESTARTED)
    assert all(len(copies) == 2 * PER_PARTITION for copies in mirror.copied.values())
    assert consume(mirror.target, group, mirror.remote) == []


def test_topic_of_which_nothing_is_mirrored_waits_at_its_beginning(
    site: Site, variant: Variant, stages: Stages
) -> None:
    """Of two topics the one that is mirrored is synced to its end. The other one, empty on
    both sides and then on the target only, stays at 0, which skips nothing, and never claims
    to be exact for records that are still to come; mirrored, it is synced to its end, too."""
    group, topic = variant.group(NOTHING), variant.topic(NOTHING_YET)
    full = variant.topic(AUTO_SYNC)
    primary, backup = site.sides(variant.forth)
    before, away, after = (
        stage[variant.name] for stage in (stages.before, stages.away, stages.after)
    )
    for number in range(PARTITIONS):
        row = before.of(group, full, number)
        assert (row.outcome, row.target_offset) == (OutcomeKind.COMMITTED, PER_PARTITION)
    row = before.of(group, topic)
    assert (row.source_offset, row.target_offset, row.reread_bound) == (0, 0, 0)
    row = away.of(group, topic)
    assert row.source_offset == primary.log_range(topic)[1]
    assert (row.outcome, row.target_offset) == (OutcomeKind.UNCHANGED, 0)
    assert (row.precision, row.reread_bound) == (Precision.FRONTIER, PER_PARTITION)
    row = after.of(group, topic)
    assert (row.outcome, row.target_offset) == (OutcomeKind.COMMITTED, PER_PARTITION)
    assert (row.precision, row.reread_bound) == (Precision.EXACT, 0)
    assert consume(backup, group, site.remote(variant.forth, topic)) == []


def test_translation_of_an_old_offset_never_changes(
    site: Site, variant: Variant, stages: Stages
) -> None:
    """Where MirrorMaker 2 forgets its syncs and would go back, the translation of one and the
    same offset stays what it was, and the group with it. When the group goes back by one
    record itself, the row says where that is, and the group stays."""
    group, topic = variant.group(OLD), variant.topic(BEHIND)
    mirror = site.mirror(variant, BEHIND)
    for number, records in mirror.written.items():
        expected = mirror.true_offset(number, records[OLD_INDEX].offset)
        for stage, outcome in (
            (stages.before, OutcomeKind.COMMITTED),
            (stages.away, OutcomeKind.UNCHANGED),
            (stages.after, OutcomeKind.UNCHANGED),
        ):
            row = stage[variant.name].of(group, topic, number)
            assert (row.outcome, row.target_offset) == (outcome, expected)
            assert (row.precision, row.reread_bound) == (Precision.EXACT, 0)
    stand_at(site, variant, group, OLD_INDEX - 1)
    rows = site.sync(variant.forth, group)
    for number, records in mirror.written.items():
        row = rows.of(group, topic, number)
        assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.TARGET_AHEAD)
        assert row.target_offset == mirror.true_offset(number, records[OLD_INDEX - 1].offset)
        committed = mirror.target.committed_offsets(group)[mirror.remote, number][0]
        assert committed == mirror.true_offset(number, records[OLD_INDEX].offset)


def test_group_that_moves_on_after_a_restart_is_exact(
    site: Site, variant: Variant, stages: Stages
) -> None:
    """After a restart a group moves on with every step, be it among records that an earlier
    life of the mirror has copied: there MirrorMaker 2 has no sync left to tell 250 from 370."""
    assert stages.after
    group, topic = variant.group("moves-on"), variant.topic(BEHIND)
    mirror = site.mirror(variant, BEHIND)
    for index in (OLD_INDEX, *LATER_INDEXES):
        offsets = stand_at(site, variant, group, index)
        rows = site.sync(variant.forth, group)
        for number, offset in offsets.items():
            row = rows.of(group, topic, number)
            assert row.outcome is OutcomeKind.COMMITTED
            assert row.target_offset == mirror.true_offset(number, offset)
            assert (row.precision, row.reread_bound) == (Precision.EXACT, 0)
    left = [r.value for records in mirror.written.values() for r in records[LATER_INDEXES[-1] :]]
    assert consume(mirror.target, group, mirror.remote) == left
