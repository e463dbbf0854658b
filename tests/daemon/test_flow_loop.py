"""The cycles of one flow: how failures are outlived, what is logged, and what is known of it."""

from collections.abc import Mapping
from typing import Any

import pytest
from polars.exceptions import PanicException
from structlog.testing import capture_logs

from tests.memory_flows import flow as memory_flow
from tests.memory_flows import mirrored_estate, unused_partition
from tsoffset.config.loading import Configuration
from tsoffset.config.selection import Selection
from tsoffset.daemon.flow_loop import FlowLoop
from tsoffset.daemon.status import Board, FlowState, FlowStatus, Instance
from tsoffset.errors import ClusterRefused, ClusterUnreachable, CycleFailed, CycleOverLimit
from tsoffset.flow.narrowing import Narrowing
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.group_sync.cycle import cycle
from tsoffset.group_sync.flow_cycle import CycleResult, unreachable_cycle
from tsoffset.group_sync.rows import Rows, rows_table
from tsoffset.model import GROUP_OFFSETS_TOPIC, FailureKind, OutcomeKind, Reason, Row
from tsoffset.testing.memory_cluster import MemoryCluster

# --- how failures are outlived ------------------------------------------------------------


class MemoryCycles:
    """Cycles on clusters in memory."""

    def __init__(self, clusters: Mapping[str, MemoryCluster]):
        self.clusters = clusters
        self.next_error: BaseException | None = None
        self.also: list[Row] = []

    def read_state_again(self) -> None:
        pass

    def run(self, _: Selection, flow: FlowSettings) -> CycleResult:
        error, self.next_error = self.next_error, None
        source = self.clusters[flow.source.alias]
        target = self.clusters[flow.target.alias]
        try:
            if error is not None:
                raise error
            rows = cycle(flow, source, target, commit=flow.commits)
        except ClusterUnreachable as unreachable:
            return unreachable_cycle(flow, unreachable)
        groups, found = len({row.group for row in rows}), Rows(rows_table([*rows, *self.also]))
        return CycleResult(flow.name, found, (), False, 0.1, groups, len(rows))


def selection_of(*flows: FlowSettings) -> Selection:
    return Selection(
        Configuration("test.properties", ""), Settings(flows, ("A", "B")), flows, Narrowing()
    )


class OneGroupFlow:
    """A flow A->B with one group, and the log of its cycles."""

    def __init__(self, **changes: Any) -> None:
        estate = mirrored_estate(20, billing=7)
        self.target = estate["B"]
        self.flow = memory_flow(**changes)
        self.backend = MemoryCycles(estate.clusters)
        self.board = Board(Instance.of_this_process())
        self.board.set_flows([self.flow])
        self.seconds = iter(range(0, 10_000, 1))
        self.loop = FlowLoop(
            "A->B",
            selection_of(self.flow),
            lambda _: self.backend,
            self.board,
            now=lambda: float(next(self.seconds)),
        )

    @property
    def status(self) -> FlowStatus:
        (status,) = self.board.statuses()
        return status

    def cycle(self) -> list[dict[str, Any]]:
        with capture_logs() as logs:
            self.loop.cycle()
        return [dict(event) for event in logs if event["log_level"] != "debug"]


def events(logs: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in logs]


def test_a_cycle_is_logged_with_its_counts():
    """`cycle_started` and `cycle_finished`, the latter with the numbers of rows and the seconds
    between both, not those of Spark's part alone."""
    estate = OneGroupFlow()
    logs = estate.cycle()
    again = estate.cycle()
    assert events(logs) == ["cycle_started", "cycle_finished"]
    finished = logs[-1]
    expected = {"flow": "A->B", "groups": 1, "committed": 1, "failed": 0, "seconds": 1}
    assert {name: finished[name] for name in expected} == expected
    assert (again[-1]["committed"], again[-1]["unchanged"]) == (0, 1)
    assert [commit[2].offset for commit in estate.target.commits] == [7]


@pytest.mark.parametrize(
    "error", [CycleFailed("Spark gave up"), ZeroDivisionError("ours"), PanicException("of Polars")]
)
def test_a_failed_cycle_is_logged_and_the_next_one_is_tried(error):
    """Whatever a cycle raises, `run` goes on in the same session. A panic is no Exception."""
    estate = OneGroupFlow()
    estate.backend.next_error = error
    failed = estate.cycle()
    good = estate.cycle()
    assert events(failed) == ["cycle_started", "cycle_failed"]
    assert str(error) in failed[-1]["error"]
    assert good[-1]["committed"] == 1


def test_rows_that_nobody_has_to_look_at_are_not_told():
    """What failed is told, and a skip that an operator has to end; what passes is not."""
    estate = OneGroupFlow()
    reasons = (Reason.NOT_MIRRORED, Reason.DIVERGED, FailureKind.TIMEOUT)
    estate.backend.also = [
        Row(
            *("A->B", "g", "orders", number, *[None] * 5),
            OutcomeKind.FAILED if isinstance(reason, FailureKind) else OutcomeKind.SKIPPED,
            reason,
            message=f"{reason} it is",
        )
        for number, reason in enumerate(reasons)
    ]
    told = [event for event in estate.cycle() if event["event"] == "rows_need_attention"]
    assert [(event["reason"], event["message"], event["rows"]) for event in told] == [
        (reason, f"{reason} it is", 1) for reason in reasons[1:]
    ]


def test_groups_that_nobody_lists_are_told_and_degrade_the_flow():
    """Of each cluster once, though their rows have no group. Such a cycle is not complete."""
    estate = OneGroupFlow()
    told = []
    for cluster in estate.backend.clusters.values():
        cluster.group("billing")
        cluster.create_topic(GROUP_OFFSETS_TOPIC, 2, internal=True)
        cluster.elect_leader(unused_partition(cluster, {"billing"}), None)
        logs = estate.cycle()
        told += [event["message"] for event in logs if event["event"] == "rows_need_attention"]
    assert [message.split(":")[0] for message in told] == [
        "list groups, cluster A",
        "list groups, cluster B",
    ]
    assert logs[-1]["failed"] == 2
    assert estate.status.state is FlowState.DEGRADED
    assert estate.status.last_success_at is None


def test_a_flow_that_syncs_nothing_says_so():
    """A user that may not see the groups any more gets an empty list, and no error. Where there
    never were any, that may be right."""
    estate = OneGroupFlow()
    estate.cycle()
    estate.backend.clusters["A"].delete_group("billing")
    (warning,) = [event for event in estate.cycle() if event["log_level"] == "warning"]
    assert "shows this user no group" in warning["message"]
    assert estate.status.messages == (warning["message"],)
    estate.cycle()
    assert estate.status.state is FlowState.DEGRADED
    estate = OneGroupFlow()
    estate.backend.clusters["A"].delete_group("billing")
    estate.cycle()
    assert estate.status.state is FlowState.RUNNING


def test_what_was_told_is_not_told_again_until_it_comes_back():
    """A failure that lasts is one line, and one more if it returns after it had gone. Each cycle
    still ends."""
    estate = OneGroupFlow()
    told = []
    for away in (True, True, False, True):
        estate.target.unreachable = away
        begun, *attention, finished = events(estate.cycle())
        assert (begun, finished) == ("cycle_started", "cycle_finished")
        told.append(attention == ["rows_need_attention"])
    assert told == [True, False, False, True]


def test_the_cause_of_a_long_outage_is_told_every_ten_minutes():
    """Whoever opens the log an hour later finds it. So is a warning that lasts."""
    estate = OneGroupFlow()
    estate.target.unreachable = True
    both, told = ["lead_unknown", "rows_need_attention"], []
    for now in (0, 60, 700, 800, 1400):
        estate.seconds = iter(range(now, 10_000))
        with capture_logs() as logs:
            estate.loop._log.warn("lead_unknown", f"connect to cluster B ({now}.0 s): refused")
        told.append([event for event in events(logs + estate.cycle()) if event in both])
    assert told == [both, [], both, [], both]


def test_a_refused_login_puts_the_next_cycle_off_until_the_configuration_changes():
    """Log and status say so, after the cause; a changed password is tried at once."""
    estate = OneGroupFlow()
    for logins in (1, 2):
        estate.backend.next_error = ClusterRefused("connect to cluster A: wrong password")
        logs = estate.cycle()
        assert ("login_refused" in events(logs)) is (logins == 2)
    cause, wait = estate.status.messages
    assert (cause, wait) == ("connect to cluster A: wrong password", logs[-1]["message"])
    assert "the next cycle starts at" in wait
    estate.loop.configure(selection_of(estate.flow))
    estate.loop._next()
    assert (estate.status.cycles, estate.status.messages) == (3, ())


def test_a_cycle_that_is_cut_short_by_a_stop_is_no_failure():
    """What a canceled cycle raises is expected, and no error in the log."""
    estate = OneGroupFlow()
    estate.loop.stop()
    estate.backend.next_error = CycleFailed("canceled")
    logs = estate.cycle()
    assert events(logs) == ["cycle_started", "cycle_ended_by_stop"]
    assert {event["log_level"] for event in logs} == {"info"}


def test_a_cycle_longer_than_its_interval_is_told_with_what_was_left_out():
    """An operator learns that the interval cannot be kept; status counts what was left out. The
    first cycle, which starts Spark's workers and knows nothing, is no reason to say so."""
    estate = OneGroupFlow(sync_interval_seconds=1)
    assert "cycles_left_out" not in events(estate.cycle())
    assert estate.status.late == 0
    for _ in range(2):
        assert events(estate.cycle())[-1] == "cycles_left_out"
    assert estate.status.late >= 2


# --- what is known of a flow ----------------------------------------------------------------


def test_a_flow_that_is_well_runs():
    """`starting` before the first cycle, `running` after it, with its rows and their freshness."""
    estate = OneGroupFlow()
    assert (estate.status.state, estate.board.ready) == (FlowState.STARTING, False)
    estate.cycle()
    assert (estate.status.state, estate.board.ready) == (FlowState.RUNNING, True)
    (pair,) = estate.status.pairs.to_pylist()
    assert (pair["group"], pair["outcome"], pair["lag_records"]) == ("billing", "committed", 0)
    assert pair["in_sync_at"] == estate.status.last_success_at


def test_what_is_known_outlives_a_cluster_that_is_away():
    """The flow has failed, with the sentence that says why; its pairs are those of before."""
    estate = OneGroupFlow()
    estate.cycle()
    before = estate.status
    estate.target.unreachable = True
    estate.cycle()
    now = estate.status
    assert (now.state, now.failures_in_a_row) == (FlowState.FAILED, 1)
    assert "B" in now.messages[0]
    assert now.pairs is before.pairs
    assert now.last_success_at == before.last_success_at


def test_a_cycle_without_rows_is_a_failure_and_one_over_its_limit_is_told_apart():
    """`failed` where Spark gave up, `degraded` where the limit ended it; both say why."""
    estate = OneGroupFlow()
    estate.backend.next_error = CycleFailed("Spark gave up")
    estate.cycle()
    assert (estate.status.state, estate.status.messages) == (FlowState.FAILED, ("Spark gave up",))
    estate.backend.next_error = CycleOverLimit("too long")
    estate.cycle()
    assert (estate.status.state, estate.status.over_limit) == (FlowState.DEGRADED, 1)
    estate.cycle()
    assert (estate.status.state, estate.status.failures_in_a_row) == (FlowState.RUNNING, 0)
