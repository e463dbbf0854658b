"""Streams groups, which the cluster in memory is not compared by."""

import pytest

from tests.producing import Contents
from tests.scenarios.corner_cases.corners import PLAIN, Corners
from tests.scenarios.corner_cases.holdings import ORDINARY
from tests.scenarios.corner_cases.streams_member import streams_group
from tsoffset.model import OutcomeKind, Reason

pytestmark = [pytest.mark.integration, pytest.mark.thorough]


def type_of(contents: Contents, group: str) -> str | None:
    """The group's type as its broker lists it; None where it does not."""
    for listed in contents.admin.list_groups():
        if listed["group_id"] == group:
            return str(listed["group_type"]).lower()
    return None


def test_streams_group_is_told_and_left_alone(corners: Corners) -> None:
    """The offsets of a streams application are only a part of its state: its group is
    UNSUPPORTED_GROUP, and nothing is committed for it."""
    source, target = corners.sides(PLAIN)
    streams_group(source.bootstrap, "streaming-application", ORDINARY)
    assert type_of(source, "streaming-application") == "streams"
    source.commit_offsets("streaming-application", {(ORDINARY, 0): 400})
    row = corners.sync(PLAIN, "streaming-application").of("streaming-application", ORDINARY)
    assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.UNSUPPORTED_GROUP)
    assert type_of(target, "streaming-application") is None


def test_streams_group_on_the_target_is_left_alone(corners: Corners) -> None:
    """A group that reads as a plain consumer on the source and is a streams application on the
    target is told, too, and what it has there stays."""
    group = "streaming-there"
    source, target = corners.sides(PLAIN)
    remote = corners.remote(PLAIN, ORDINARY)
    streams_group(target.bootstrap, group, remote)
    target.commit_offsets(group, {(remote, 0): 5})
    source.commit_offsets(group, {(ORDINARY, 0): 400})
    row = corners.sync(PLAIN, group).of(group, ORDINARY)
    assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.UNSUPPORTED_GROUP)
    assert target.committed_offsets(group) == {(remote, 0): (5, "")}
