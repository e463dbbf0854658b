"""Points of past cycles."""

from tests.serving import AT, FLOW, ServedFlows, row, skipped
from tsoffset.daemon.points import RecentCycles
from tsoffset.daemon.status import FlowState
from tsoffset.model import OutcomeKind


def test_a_point_says_what_a_cycle_came_to():
    """Rows by outcome, and the oldest that a failover would use."""
    daemon = ServedFlows()
    daemon.cycle([row("a"), row("b")])
    daemon.now += 60
    daemon.cycle([row("a", outcome=OutcomeKind.UNCHANGED), skipped("b")])
    first, second = daemon.recent.points(FLOW, 0, AT + 100, 10)
    assert (first.committed, first.skipped, first.lag_records, first.lag_seconds) == (2, 0, 0, 0)
    assert (second.unchanged, second.skipped, second.lag_records) == (1, 1, 10)
    assert (second.at, second.lag_seconds, second.state) == (AT + 60, 60, FlowState.RUNNING)


def test_the_last_points_of_a_time_are_answered_and_the_oldest_forgotten():
    """since <= at < until, at most `limit` of them, each flow its own."""
    daemon = ServedFlows()
    recent = daemon.recent = RecentCycles(kept=5)
    for _ in range(8):
        daemon.cycle([row("a")])
        daemon.now += 1
    daemon.cycle([row("a")], flow="B->A")
    assert [point.at - AT for point in recent.points(FLOW, 0, AT + 100, 10)] == [3, 4, 5, 6, 7]
    assert [point.at - AT for point in recent.points(FLOW, AT + 4, AT + 7, 2)] == [5, 6]
    assert len(recent.points("B->A", 0, AT + 100, 10)) == 1
    assert recent.points("C->D", 0, AT + 100, 10) == []
