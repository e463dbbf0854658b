"""The second table of KIP-1292, on real brokers: the target's offsets are 400 lower."""

import pytest

from tests.producing import numbered
from tests.scenarios.estate import Estate
from tests.scenarios.flows import Rows
from tests.scenarios.holdings import KIP, KIP_MIRRORED, KIP_SHIFT
from tsoffset.model import OutcomeKind, Precision

pytestmark = pytest.mark.integration

# The positions of the table, one inside the run that shares timestamp E, and the log's end.
POSITIONS = (1000, 980, 960, 900, 800, 700, 600, 400, 990, KIP_MIRRORED + 1)


@pytest.fixture(scope="module")
def table(estate: Estate) -> Rows:
    """A sync of one group per position."""
    assert estate.contents["A"].log_range(KIP) == (KIP_SHIFT, KIP_MIRRORED + 1)
    assert estate.contents["B"].log_range(f"A.{KIP}") == (0, KIP_MIRRORED + 1 - KIP_SHIFT)
    for position in POSITIONS:
        estate.contents["A"].commit_offsets(f"kip-{position}", {(KIP, 0): position})
    return estate.sync("A->B", "kip-.*")


@pytest.mark.parametrize("position", POSITIONS)
def test_position_maps_to_its_record(estate: Estate, table: Rows, position: int) -> None:
    """Every position maps to the image of its record, shared timestamp or not; at the log
    end of both, to the target's."""
    row = table.of(f"kip-{position}", KIP)
    assert (row.outcome, row.target_offset) == (OutcomeKind.COMMITTED, position - KIP_SHIFT)
    assert (row.precision, row.reread_bound) == (Precision.EXACT, 0)
    committed = estate.contents["B"].committed_offsets(f"kip-{position}")
    assert committed == {(f"A.{KIP}", 0): (position - KIP_SHIFT, "")}


def test_record_that_is_not_mirrored_yet_is_waited_for_at_the_frontier(
    estate: Estate, table: Rows
) -> None:
    """Where the next record is written but not mirrored, and where a group has read past it,
    the group resumes at the target's log end; a group that was there stays."""
    estate.produce("A", KIP, numbered(1, first=KIP_MIRRORED + 1))
    at, past = KIP_MIRRORED + 1, KIP_MIRRORED + 2
    for position in (at, past):
        estate.contents["A"].commit_offsets(f"kip-late-{position}", {(KIP, 0): position})
    rows = estate.sync("A->B", f"kip-late-.*|kip-{at}")
    for position in (at, past):
        row = rows.of(f"kip-late-{position}", KIP)
        assert (row.outcome, row.target_offset) == (OutcomeKind.COMMITTED, 601)
        assert row.precision is Precision.FRONTIER
    assert rows.of(f"kip-{at}", KIP).outcome is OutcomeKind.UNCHANGED
