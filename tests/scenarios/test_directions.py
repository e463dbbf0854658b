"""Every direction that records take: back to where they came from, on and on, and together."""

import pytest

from tests.producing import numbered
from tests.scenarios.flows import Flows, read_on
from tests.scenarios.holdings import (
    CHAINED,
    COME_ROUND,
    FAN_IN,
    RECORDS,
    RETURNING,
    SAME_RETURNING,
    TRIMMED,
)
from tsoffset.model import OutcomeKind, Precision

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("forth", "back", "topic"),
    [("A->B", "B->A", RETURNING), ("X->Y", "Y->X", SAME_RETURNING)],
    ids=["DefaultReplicationPolicy", "IdentityReplicationPolicy"],
)
def test_group_comes_back_to_the_original(estate: Flows, forth: str, back: str, topic: str) -> None:
    """A group that failed over to the mirror and read on there comes back to the record that
    it would read next. One that has read all of the mirror resumes behind the last record
    that was mirrored, never at the end of the original: records lie there that the mirror
    never had."""
    home, away = (estate.contents[alias] for alias in (forth[0], forth[-1]))
    remote = estate.remote(forth, topic)
    half_way, all_read = f"{forth[0]}-came-back-half-way", f"{forth[0]}-came-back-at-the-end"
    for group in (half_way, all_read):
        home.commit_offsets(group, {(topic, 0): 300})
    rows = estate.sync(forth, f"{forth[0]}-came-back-.*")
    assert set(rows.committed().values()) == {300 - TRIMMED}

    (_, end) = away.log_range(remote)
    away.commit_offsets(half_way, {(remote, 0): 500})
    away.commit_offsets(all_read, {(remote, 0): end})
    not_mirrored = numbered(50, first=2 * RECORDS)
    home.produce(topic, not_mirrored)
    rows = estate.sync(back, f"{forth[0]}-came-back-.*")

    for group, offset in ((half_way, 500 + TRIMMED), (all_read, end + TRIMMED)):
        row = rows.of(group, remote)
        assert (row.outcome, row.target_topic) == (OutcomeKind.COMMITTED, topic), row
        assert (row.target_offset, row.precision) == (offset, Precision.EXACT)
    got = read_on(home, all_read, (topic, 0))
    assert [record.value for record in got] == [record.value for record in not_mirrored]


def test_group_follows_its_topic_along_a_chain(estate: Flows) -> None:
    """A->B->C->A: flow after flow the group moves on with its topic, A.chained on B and
    B.A.chained on C; there it ends, for A has the original. Going round again changes
    nothing."""
    group = "along-the-chain"
    estate.contents["A"].commit_offsets(group, {(CHAINED, 0): 345})
    for outcome in (OutcomeKind.COMMITTED, OutcomeKind.UNCHANGED):
        for flow, topic in (("A->B", CHAINED), ("B->C", f"A.{CHAINED}")):
            (row,) = estate.sync(flow, group).all
            assert (row.source_topic, row.outcome) == (topic, outcome)
            assert (row.target_offset, row.precision) == (345 - TRIMMED, Precision.EXACT)
        assert estate.sync("C->A", group).all == ()
    got = read_on(estate.contents["C"], group, (COME_ROUND, 0))
    original = estate.contents["A"].read(CHAINED, start=345)
    assert [record.value for record in got] == [record.value for record in original]
    assert estate.contents["A"].committed_offsets(group) == {(CHAINED, 0): (345, "")}


def test_group_of_one_source_finds_its_records_among_those_of_another(estate: Flows) -> None:
    """A group that reads such a topic on one source only is synced, and gets all records of
    that source that it had not processed, and of the others as many as it was told: by chance
    the other mirror's batches lie so that some come again."""
    group = "of-one"
    estate.contents["X"].commit_offsets(group, {(FAN_IN, 0): 600})
    rows = estate.sync("X->Y", group, competing_flows=[estate.flow("W->Y", group)])
    row = rows.of(group, FAN_IN)
    assert row.outcome is OutcomeKind.COMMITTED
    got = read_on(estate.contents["Y"], group, (FAN_IN, 0))
    own = {record.value: record.offset for record in estate.contents["X"].read(FAN_IN)}
    of_one = [own[record.value] for record in got if record.value in own]
    assert of_one == list(range(of_one[0], RECORDS))
    assert row.reread_bound is not None
    assert 600 - row.reread_bound <= of_one[0] <= 600
