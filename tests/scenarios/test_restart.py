"""Nothing that tsoffset remembers is needed: the clusters alone tell where a group resumes."""

import pytest

from tests.producing import numbered
from tests.scenarios.estate import Estate, read_on
from tests.scenarios.holdings import GROWING, RECORDS, TRIMMED
from tsoffset.embedded import MirrorMaker
from tsoffset.model import OutcomeKind, Precision

pytestmark = pytest.mark.integration

OLD = 123


def test_old_record_is_translated_exactly_before_and_after_a_restart(
    estate: Estate, mirror_maker: MirrorMaker
) -> None:
    """KAFKA-15905: MirrorMaker 2 cannot translate records older than its own start. Here a
    group that sits at an old record is translated exactly, and again by another process that
    knows nothing of the first, when 1,000 more records were mirrored."""
    remote = estate.remote("A->B", GROWING)
    expected = (OLD - TRIMMED, Precision.EXACT, 0)
    estate.contents["A"].commit_offsets("old-one", {(GROWING, 0): OLD})
    row = estate.sync(estate.flow("A->B", "old-one")).of("old-one", GROWING)
    assert row.outcome is OutcomeKind.COMMITTED
    assert (row.target_offset, row.precision, row.reread_bound) == expected

    estate.produce("A", GROWING, numbered(1000, first=RECORDS))
    with mirror_maker:
        estate.wait_until_mirrored(mirror_maker, "A->B", GROWING)
    estate.contents["A"].commit_offsets("new-one", {(GROWING, 0): OLD})
    rows = estate.sync(estate.flow("A->B", "old-one|new-one"))

    for group, outcome in (
        ("old-one", OutcomeKind.UNCHANGED),
        ("new-one", OutcomeKind.COMMITTED),
    ):
        row = rows.of(group, GROWING)
        assert row.outcome is outcome
        assert (row.target_offset, row.precision, row.reread_bound) == expected
        got = read_on(estate.contents["B"], group, (remote, 0))
        source = estate.contents["A"].read(GROWING, start=OLD)
        assert [record.value for record in got] == [record.value for record in source]
