"""A group moves to the backup, reads on there, and comes back: after testReplication."""

import pytest

from tests.scenarios.mirror_maker_tests.primary_backup import (
    LATER,
    PARTITIONS,
    PER_PARTITION,
    REPLICATED,
    Site,
    Variant,
    consume,
    read_all,
)
from tsoffset.model import OutcomeKind, Precision

pytestmark = pytest.mark.integration


def test_every_record_is_processed_once(site: Site, variant: Variant) -> None:
    """Ten partitions of ten records, of both clusters where both have some: what a group
    processes before the failover, on the backup, and after the failback is everything, and
    nothing twice."""
    group, topic = variant.group("replication"), variant.topic(REPLICATED)
    primary, backup = site.sides(variant.forth)
    at_home, away = [topic], [site.remote(variant.forth, topic)]
    if not variant.keeps_names:
        # The backup's own topic of this name, and its copy on the primary.
        at_home.append(site.remote(variant.back, topic))
        away.append(topic)
    everything = {
        record.value
        for contents, name in ((primary, topic), *((backup, name) for name in away))
        for records in read_all(contents, name).values()
        for record in records
    }
    assert len(everything) == len(at_home) * PARTITIONS * PER_PARTITION

    processed = consume(primary, group, *at_home, most=5, reset="earliest")
    assert len(processed) == len(at_home) * PARTITIONS * 5
    _assert_all_exact(site, variant.forth, group, len(at_home))
    processed += consume(backup, group, *away, most=3)
    assert len(processed) == len(at_home) * PARTITIONS * 8
    _assert_all_exact(site, variant.back, group, len(at_home))
    processed += consume(primary, group, *at_home)
    assert len(processed) == len(everything)
    assert {*processed} == everything


def test_group_that_has_read_all_on_the_backup_comes_back_to_the_end(
    site: Site, variant: Variant
) -> None:
    """A group that has read the copy to its end comes back behind the original of its last
    record, before or behind the transaction's marker there, and gets nothing again."""
    group, topic = variant.group("come-back"), variant.topic(REPLICATED)
    primary, backup = site.sides(variant.forth)
    remote = site.remote(variant.forth, topic)
    consume(primary, group, topic, most=1, reset="earliest")
    _assert_all_exact(site, variant.forth, group, 1)
    mirror = site.mirror(variant, REPLICATED)
    rest = [record.value for records in mirror.written.values() for record in records[1:]]
    assert consume(backup, group, remote) == rest
    rows = site.sync(variant.back, group)
    for number, records in mirror.written.items():
        row = rows.of(group, remote, number)
        assert (row.outcome, row.target_topic) == (OutcomeKind.COMMITTED, topic), row
        assert (row.precision, row.reread_bound) == (Precision.EXACT, 0)
        assert row.target_offset is not None
        (_, end) = primary.log_range(topic, number)
        assert records[-1].offset < row.target_offset <= end
    assert consume(primary, group, topic) == []


def test_topic_that_came_later_with_records_in_one_partition(site: Site, variant: Variant) -> None:
    """A topic created while the mirror ran, with records in its first partition only: a group
    that was given its beginning everywhere fails over to its beginning everywhere."""
    group, topic = variant.group("later"), variant.topic(LATER)
    primary, backup = site.sides(variant.forth)
    primary.commit_offsets(group, {(topic, number): 0 for number in range(PARTITIONS)})
    rows = site.sync(variant.forth, group)
    for number in range(PARTITIONS):
        row = rows.of(group, topic, number)
        assert (row.outcome, row.target_offset) == (OutcomeKind.COMMITTED, 0)
        assert row.reread_bound == 0, row
    got = consume(backup, group, site.remote(variant.forth, topic))
    assert got == [record.value for record in primary.read(topic)]
    assert len(got) == PER_PARTITION


def _assert_all_exact(site: Site, flow: str, group: str, topics: int) -> None:
    """Sync the group: each of its commits is committed on the other side, and exact."""
    rows = site.sync(flow, group)
    assert len(rows.all) == topics * PARTITIONS
    for row in rows.all:
        assert (row.outcome, row.precision) == (OutcomeKind.COMMITTED, Precision.EXACT), row
