"""What the groups have on the backup: idle ones follow, and what is there already decides.

After testSyncOffset and testSyncOffsetForTargetGroupWithNullOffsetAndMetadata of Apache
Kafka's connect/mirror.
"""

import pytest

from tests.scenarios.flows import member
from tests.scenarios.mirror_maker_tests.primary_backup import BEHIND, Site, Variant
from tests.waiting import wait_until
from tsoffset.model import OutcomeKind, Precision, Reason

pytestmark = pytest.mark.integration

METADATA = "metadata"


def test_idle_groups_move_on_by_one_record(site: Site, variant: Variant) -> None:
    """Two groups that are idle on the backup, one record behind where they are on the primary,
    are moved by that record, metadata and all; a third has a member there and is left to it,
    until it is idle, too."""
    mirror = site.mirror(variant, BEHIND)
    indexes = {"idle-far": 101, "idle-near": 51, "busy": 75}
    groups = {variant.group(name): index for name, index in indexes.items()}
    targets = {}
    for group, index in groups.items():
        source_offset = mirror.written[0][index].offset
        targets[group] = mirror.true_offset(0, source_offset)
        mirror.source.commit_offsets(group, {(mirror.topic, 0): (source_offset, METADATA)})
        mirror.target.commit_offsets(group, {(mirror.remote, 0): targets[group] - 1})
    busy = variant.group("busy")
    with member(mirror.target, busy, mirror.remote):
        rows = site.sync(variant.forth, *groups)
        for group, target in targets.items():
            row = rows.of(group, mirror.topic)
            assert (row.target_offset, row.precision) == (target, Precision.EXACT)
            committed = mirror.target.committed_offsets(group)[mirror.remote, 0]
            if group == busy:
                assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.GROUP_ACTIVE)
                assert committed == (target - 1, "")
            else:
                assert row.outcome is OutcomeKind.COMMITTED
                assert committed == (target, METADATA)
    wait_until(
        lambda: any(
            one["group_id"] == busy and one["group_state"] == "Empty"
            for one in mirror.target.admin.list_groups()
        ),
        f"{busy} is idle",
    )
    assert site.sync(variant.forth, busy).committed() == {busy: targets[busy]}
    committed = mirror.target.committed_offsets(busy)[mirror.remote, 0]
    assert committed == (targets[busy], METADATA)


def test_null_offset_on_the_target_is_no_commit(site: Site, variant: Variant) -> None:
    """Some clients reset a group's offset to -1, and coordinators keep that: it is taken for
    no commit at all, and the group gets its translation."""
    mirror = site.mirror(variant, BEHIND)
    group = variant.group("null-offset")
    source_offset = mirror.written[0][200].offset
    mirror.source.commit_offsets(group, {(mirror.topic, 0): (source_offset, METADATA)})
    mirror.target.commit_offsets(group, {(mirror.remote, 0): 150})
    mirror.target.commit_offsets(group, {(mirror.remote, 0): -1})
    assert mirror.target.committed_offsets(group) == {(mirror.remote, 0): (-1, "")}
    row = site.sync(variant.forth, group).of(group, mirror.topic)
    assert (row.outcome, row.current_target_offset) == (OutcomeKind.COMMITTED, None)
    assert row.target_offset == mirror.true_offset(0, source_offset)
    committed = mirror.target.committed_offsets(group)[mirror.remote, 0]
    assert committed == (row.target_offset, METADATA)


def test_null_offset_on_the_source_is_no_commit(site: Site, variant: Variant) -> None:
    """A group that was reset to -1 on the source has nothing there to be translated: no row,
    and what it has on the target stays."""
    mirror = site.mirror(variant, BEHIND)
    group = variant.group("null-at-home")
    mirror.source.commit_offsets(group, {(mirror.topic, 0): -1})
    mirror.target.commit_offsets(group, {(mirror.remote, 0): 150})
    assert site.sync(variant.forth, group).all == ()
    assert mirror.target.committed_offsets(group) == {(mirror.remote, 0): (150, "")}
