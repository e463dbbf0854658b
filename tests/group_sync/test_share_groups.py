"""Share groups: their start offsets go the way of committed offsets, and the bound counts what
they have acknowledged behind them."""

import pytest

from tests.commands.compare.test_flow_comparison import comparison
from tests.commands.compare.test_judgment import RULE
from tests.memory_flows import COMMITTED, Estate, mirrored_estate, row_of, skipped, verdict
from tsoffset.commands.failover.verdicts import FailoverVerdict, verdicts
from tsoffset.group_sync.cache import CachedTables
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    GroupType,
    OutcomeKind,
    Precision,
    Reason,
    Row,
    TopicPartition,
)
from tsoffset.testing.memory_cluster import Verb

ORDERS = TopicPartition("orders", 0)


def shared(start: int, *, acknowledged: int = 0, there: int | None = None) -> Estate:
    """A share group on a mirrored log of 100 records, whose copy begins at 10. `there` is its
    start offset on the target."""
    estate = mirrored_estate(first_offset=10)
    estate.commit("g", "orders", start, type=GroupType.SHARE)
    estate["A"].group("g").acknowledged[ORDERS] = acknowledged
    if there is not None:
        estate.commit("g", "A.orders", there, on="B", type=GroupType.SHARE)
    return estate


def answer(row: Row) -> tuple[int | None, Precision | None, int | None]:
    return row.target_offset, row.precision, row.reread_bound


def test_a_start_offset_is_translated_and_the_group_made():
    """On the target it becomes a share group that begins at the copy. Where nothing behind the
    start offset is acknowledged, the row is exact."""
    estate = shared(40)
    row = row_of(estate.sync(), "g")
    assert verdict(row) == COMMITTED
    assert answer(row) == (50, Precision.EXACT, 0)
    made = estate["B"].group("g")
    assert (made.type, made.offsets) == (
        GroupType.SHARE,
        {TopicPartition("A.orders", 0): CommittedOffset(50)},
    )


def test_what_is_acknowledged_behind_the_start_is_in_the_bound():
    """The target delivers these records again, so the row is not exact, in later cycles either: the
    translation is cached, and the number of acknowledged records is read again."""
    estate, cache = shared(40, acknowledged=25), CachedTables()
    assert answer(row_of(estate.sync(cache=cache), "g")) == (50, Precision.BOUNDED, 25)
    estate["A"].group("g").acknowledged[ORDERS] = 30
    read = estate.asked("A", Verb.READ)
    row = row_of(estate.sync(cache=cache), "g")
    assert answer(row) == (50, Precision.BOUNDED, 30)
    assert row.outcome is OutcomeKind.UNCHANGED
    assert estate.asked("A", Verb.READ) == read
    estate["A"].group("g").acknowledged[ORDERS] = 0
    assert answer(row_of(estate.sync(cache=cache), "g")) == (50, Precision.EXACT, 0)


def test_without_a_lag_all_to_the_log_end_may_be_acknowledged():
    """A broker may not know the lag."""
    estate = shared(40, acknowledged=1_000)
    assert answer(row_of(estate.sync(), "g")) == (50, Precision.BOUNDED, 60)


@pytest.mark.parametrize(
    ("there", "active", "expected"),
    [
        (45, False, COMMITTED),
        (45, True, skipped(Reason.GROUP_ACTIVE)),
        (70, False, skipped(Reason.TARGET_AHEAD)),
        (50, False, (OutcomeKind.UNCHANGED, None)),
        # Its consumers would begin where `share.auto.offset.reset` says, by default at the end.
        (None, False, COMMITTED),
    ],
)
def test_a_share_group_is_committed_by_the_same_rule(there, active, expected):
    """Never backwards, and never while it has members. The group is there, whatever it has read."""
    estate = shared(40, there=there)
    estate["B"].group("g", GroupType.SHARE).state = "Stable" if active else "Empty"
    assert verdict(row_of(estate.sync(), "g")) == expected
    now = estate.standing("g", "A.orders")
    assert now == CommittedOffset(50 if expected == COMMITTED else there)


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (GroupType.SHARE, GroupType.CLASSIC),
        (GroupType.SHARE, GroupType.CONSUMER),
        (GroupType.SHARE, GroupType.STREAMS),
        (GroupType.SHARE, GroupType.UNKNOWN),
        (GroupType.CLASSIC, GroupType.SHARE),
        (GroupType.CONSUMER, GroupType.SHARE),
    ],
)
def test_groups_of_one_name_and_two_types_are_left_alone(here, there):
    """The row names both types."""
    estate = mirrored_estate()
    estate.commit("g", "orders", 40, type=here)
    estate.commit("g", "A.orders", 20, on="B", type=there)
    row = row_of(estate.sync(), "g")
    assert verdict(row) == skipped(Reason.UNSUPPORTED_GROUP)
    assert f"a {here} group on the source and a {there} group on the target" in str(row.message)
    assert estate.standing("g", "A.orders") == CommittedOffset(20)


def test_a_target_without_share_groups_is_told():
    """Its brokers do not know the request."""
    estate = shared(40)
    unknown = Failed(FailureKind.UNSUPPORTED_VERSION, "the broker does not know this request")
    estate["B"].fail(unknown, verb=Verb.COMMITTED, group="g")
    row = row_of(estate.sync(), "g")
    assert verdict(row) == skipped(Reason.UNSUPPORTED_GROUP)
    assert "share.version" in str(row.message)


def test_a_bound_that_cannot_be_known_fails_the_row():
    """Without the log's end nothing says how many records are acknowledged."""
    estate = shared(40)
    estate["A"].fail(Failed(FailureKind.NO_LEADER, "no leader"), verb=Verb.LOG_RANGES, times=1)
    assert verdict(row_of(estate.sync(), "g")) == (OutcomeKind.FAILED, FailureKind.NO_LEADER)
    assert estate.standing("g", "A.orders") is None


def test_without_share_groups_nothing_more_is_asked():
    """The log's end is asked for before translating only for share groups."""
    asked = []
    for type_ in (GroupType.CLASSIC, GroupType.SHARE):
        estate = mirrored_estate()
        estate.commit("g", "orders", 40, type=type_)
        estate.sync()
        asked.append(sum(one.verb is Verb.LOG_RANGES for one in estate["A"].requests))
    assert asked[1] == asked[0] + 1


# --- a share group is a group ---------------------------------------------------------------


def test_a_failover_says_what_is_delivered_again():
    """Its consumers on the source stand in the way, since they acknowledge what the target would
    deliver again."""
    rows = shared(40, acknowledged=25).sync()
    (moves,) = verdicts("A->B", rows, (), "now")
    assert (moves.verdict, moves.reread_bound) == (FailoverVerdict.BOUNDED, 25)
    assert (moves.resumes_at, moves.source_commits) == ("A.orders-0:50", "orders-0:40")
    (stays,) = verdicts("A->B", rows, ["g"], "now")
    assert (stays.verdict, stays.reason) == (FailoverVerdict.NOT_READY, "SOURCE_ACTIVE")


def test_compare_has_its_bound_and_its_offset_on_the_target():
    estate = shared(40, acknowledged=25, there=45)
    (pair,) = comparison(estate, options=RULE).pairs
    assert (pair.ours, pair.ours_precision, pair.ours_reread_bound) == (50, Precision.BOUNDED, 25)
    assert (pair.theirs, pair.target_commit) == (50, 45)
