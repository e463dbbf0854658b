"""When cycles start."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tsoffset.daemon.schedule import Schedule


def starts(interval: float, durations: Sequence[float]) -> list[float]:
    schedule, found, now = Schedule(interval, 0.0), [], 0.0
    for seconds in durations:
        now = max(now, schedule.due)
        found.append(now)
        now += seconds
        schedule.advance(now)
    return found


def test_what_a_long_cycle_runs_past_is_left_out_and_counted():
    """Cycles of 25 s every 10 s stay on the grid; the two that were due are never made up for."""
    assert starts(10, [25, 25, 25]) == [0, 30, 60]
    schedule = Schedule(10, 0.0)
    assert schedule.advance(25) == 2
    assert schedule.advance(31) == 0


def test_what_keeps_failing_is_asked_half_as_often():
    """After the second failure in a row one time is left out, and not counted as late."""
    schedule = Schedule(10, 0.0)
    found = [(schedule.advance(now, failed=True), schedule.due) for now in (1, 11, 31)]
    assert found == [(0, 10), (0, 30), (0, 50)]


def test_a_refused_login_is_tried_ever_less_often():
    """Up to five minutes apart, so that no account is locked, also after a cycle that was asked
    for. After one that did not fail all is as before."""
    schedule, dues = Schedule(60, 0.0), []
    for _ in range(6):
        schedule.advance(schedule.due + 1, failed=True, refused=True)
        dues.append(schedule.due)
    assert dues == [60, 180, 420, 720, 1020, 1320]
    schedule.began_early(1100)
    schedule.advance(1101, failed=True, refused=True)
    assert schedule.due == 1380
    schedule.began_early(1200)
    schedule.advance(1201)
    assert schedule.due == 1260


def test_a_cycle_that_was_asked_for_leaves_the_grid_where_it_is():
    """`sync` at 13 s: the next one begins at 20 s as it would have."""
    schedule = Schedule(10, 0.0)
    schedule.advance(1)
    schedule.advance(11)
    schedule.began_early(13)
    assert (schedule.advance(14), schedule.due) == (0, 20)


def test_cycles_that_are_asked_for_and_fail_do_not_put_off_the_next_one():
    """Each failure leaves out a start, but never one that lies beyond it already."""
    schedule = Schedule(10, 0.0)
    for now in range(1, 100):
        schedule.began_early(now)
        schedule.advance(now, failed=True)
        assert schedule.due <= now + 20


@given(st.integers(1, 50), st.lists(st.integers(0, 200), min_size=1))
def test_no_cycle_is_early_none_overlap_and_nothing_drifts(interval, durations):
    """Starts lie on the grid, after the end of the cycle before, and within an interval of it."""
    begun = starts(interval, durations)
    for start, taken, following in zip(begun, durations, begun[1:], strict=False):
        assert following % interval == 0
        assert start + max(taken, interval) <= following < start + max(taken, interval) + interval
