"""`tsoffset check`: other committers, skipped commits, and groups left out."""

from dataclasses import replace

import pytest

from tests.commands.check.test_flow_check import OK, WARNING, checked, filled, found, mirrored
from tests.commands.compare.test_flow_comparison import checkpoint
from tests.memory_flows import NOW_MS, Estate, flow
from tsoffset.commands.check.groups import checkpoints_seen, other_committer
from tsoffset.flow.policy import DefaultGroupFilter
from tsoffset.model import CommittedOffset, TopicPartition

# --- another committer ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stamp", "sync_enabled", "severity"),
    [
        (NOW_MS - 12_000, True, WARNING),
        (NOW_MS - 12_000, None, OK),
        (NOW_MS - 12_000, False, OK),
        (NOW_MS - 3_600_000, True, None),
    ],
)
def test_checkpoints_that_are_being_written_are_told(stamp, sync_enabled, severity):
    """A warning where this very file has MirrorMaker 2 commit them, too: if its offset skips
    records, it stays, because no cycle moves a group backwards."""
    the_flow = replace(flow(), sync_enabled=sync_enabled)
    findings = list(other_committer(the_flow, {"billing": stamp, "old": 0}, NOW_MS))
    assert [finding.severity for finding in findings] == ([] if severity is None else [severity])
    assert all("1 group of this flow (billing), the newest 12 s" in f.finding for f in findings)
    told = [one.severity for one in findings if "even if MirrorMaker 2's skips" in one.finding]
    assert told == ([WARNING] if severity is WARNING else [])


def test_checkpoints_of_the_flow_s_groups_are_read_from_the_target():
    """The newest of each group that passes the filter; without the topic there is none."""
    estate = Estate()
    passing = flow(group_filter=DefaultGroupFilter(("billing",)))
    assert checkpoints_seen(passing, estate["B"]) == {}
    for number, group in enumerate(("billing", "billing", "other")):
        checkpoint(estate, group, 5, 5, partition=number, timestamp_ms=NOW_MS + number)
    assert checkpoints_seen(passing, estate["B"]) == {"billing": NOW_MS + 1}


# --- skipped commits, groups left out -------------------------------------------------------


def test_commits_that_are_skipped_come_with_what_reset_means():
    """Behind the log's start, past its end, without a copy: counted, and no alarm."""
    source, target = filled("A", "orders", "unmirrored"), filled("B", "A.orders")
    source.log("orders").delete_records(5)
    for group, topic, offset in (
        ("fine", "orders", 7),
        ("late", "orders", 4),
        ("beyond", "orders", 11),
        ("lost", "unmirrored", 5),
    ):
        source.group(group).offsets[TopicPartition(topic, 0)] = CommittedOffset(offset)
    finding = found(checked(flow(), source, target), "auto.offset.reset")
    assert finding.severity is OK
    assert finding.finding.startswith("3 committed offsets will be skipped")
    for words in ("1 EXPIRED", "1 PAST_LOG_END", "1 TARGET_MISSING", "beyond, late, lost"):
        assert words in finding.finding


def test_groups_that_no_flow_takes_are_named():
    """A group that another flow of the same source takes is not left out."""
    source, target = mirrored("billing", "audit", "idle")
    one = flow(group_filter=DefaultGroupFilter(("billing",)))
    other = flow("A", "C", group_filter=DefaultGroupFilter(("audit",)))
    groups = found(checked(one, source, target, filled("C"), others=(other,)), "groups")
    assert groups.finding == "1 of 3 groups selected; selected by no flow: idle"
