"""From primary to backup: all of a group's commits, one after the other.

After testOneWayReplicationWithAutoOffsetSync, testOneWayReplicationWithFrequentOffsetSyncs and
testReplicateFromLatest of Apache Kafka's connect/mirror.
"""

import pytest

from tests.scenarios.mirror_maker_tests.primary_backup import (
    AUTO_SYNC,
    LATER,
    PARTITIONS,
    PER_PARTITION,
    Mirror,
    Site,
    Variant,
    consume,
    read_all,
)
from tests.waiting import wait_until
from tsoffset.model import OutcomeKind, Precision

pytestmark = pytest.mark.integration


def test_group_that_has_read_all_reads_nothing_again(site: Site, variant: Variant) -> None:
    """A group that has read a topic to its end is synced to the end of the copy, lag 0,
    whatever the replicator's offset.lag.max; so is it for a topic that came later. Its consumer
    on the backup gets no record: there fewer than ten each are allowed, here none."""
    group = variant.group("auto-sync")
    primary, backup = site.sides(variant.forth)
    topics: list[str] = []
    for subject, records in ((AUTO_SYNC, PARTITIONS * PER_PARTITION), (LATER, PER_PARTITION)):
        topics.append(variant.topic(subject))
        assert len(consume(primary, group, topics[-1], reset="earliest")) == records
        rows = site.sync(variant.forth, group)
        for topic in topics:
            remote = site.remote(variant.forth, topic)
            for number in range(PARTITIONS):
                row = rows.of(group, topic, number)
                fresh = topic == topics[-1]
                assert row.outcome is (OutcomeKind.COMMITTED if fresh else OutcomeKind.UNCHANGED)
                assert (row.precision, row.reread_bound) == (Precision.EXACT, 0), row
                committed = backup.committed_offsets(group)[remote, number][0]
                assert committed == backup.log_range(remote, number)[1]
        remotes = [site.remote(variant.forth, topic) for topic in topics]
        assert consume(backup, group, *remotes) == []


def test_mirror_that_began_at_latest(site: Site, variant: Variant) -> None:
    """A mirror that began with what came after it has none of the older records: groups that
    stand before its beginning resume at its first record, all others at their own."""
    topic = variant.topic_from_latest
    primary, backup = site.sides(variant.from_latest)
    remote = site.remote(variant.from_latest, topic)
    written = read_all(primary, topic)

    def mirrored() -> bool:
        copies = read_all(backup, remote)
        return all(
            records[-1].value in [copy.value for copy in copies[number]]
            for number, records in written.items()
        )

    wait_until(mirrored, f"{topic} is mirrored")
    mirror = Mirror(primary, backup, topic, remote)
    begins = {
        number: next(r.offset for r in records if r.value == mirror.copied[number][0].value)
        for number, records in written.items()
    }
    assert all(begin >= PER_PARTITION for begin in begins.values()), "older records are there"
    positions = {
        "at-the-start": dict.fromkeys(begins, 0),
        "before-it-began": {number: begin - 1 for number, begin in begins.items()},
        "where-it-began": begins,
        "later": {number: records[-5].offset for number, records in written.items()},
        "at-the-end": {number: primary.log_range(topic, number)[1] for number in begins},
    }
    for name, offsets in positions.items():
        commits = {(topic, number): offset for number, offset in offsets.items()}
        primary.commit_offsets(variant.group(name), commits)
    rows = site.sync(variant.from_latest, *map(variant.group, positions))
    for name, offsets in positions.items():
        for number, offset in offsets.items():
            row = rows.of(variant.group(name), topic, number)
            assert row.outcome is OutcomeKind.COMMITTED, row
            assert row.target_offset == mirror.true_offset(number, max(offset, begins[number]))
            assert (row.precision, row.reread_bound) == (Precision.EXACT, 0), row
