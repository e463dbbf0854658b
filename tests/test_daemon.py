"""`tsoffset run`: when cycles start, what a signal does, how failures are outlived."""

import os
import signal
import threading
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tests.memory_flows import flow as memory_flow
from tests.memory_flows import mirrored_estate
from tsoffset.commands.daemon import Ending, Signals, serve, supervise
from tsoffset.commands.run import Cycles
from tsoffset.commands.selection import Selection
from tsoffset.config.loading import Configuration
from tsoffset.cycle.in_process import cycle
from tsoffset.cycle.settle import failed_row
from tsoffset.cycle.values import rows_table
from tsoffset.errors import ClusterUnreachable, CycleFailed, JavaMissing
from tsoffset.flow.narrowing import Narrowing
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.model import Failed, FailureKind, OutcomeKind, Reason, Row
from tsoffset.spark.flow import CycleResult, Rows
from tsoffset.testing.memory_cluster import MemoryCluster

# --- when cycles start --------------------------------------------------------------------


class Time:
    """A clock that only waiting and cycles move, and that says stop at an hour."""

    def __init__(self, until: float) -> None:
        self.now = 0.0
        self.until = until
        self.starts: list[tuple[str, float]] = []

    def wait(self, seconds: float) -> bool:
        assert seconds >= 0
        self.now += seconds
        return self.now >= self.until

    def cycle(self, durations: Mapping[str, float]) -> Callable[[str], None]:
        def run(flow: str) -> None:
            self.starts.append((flow, self.now))
            self.now += durations[flow]

        return run

    def of(self, flow: str) -> list[float]:
        return [start for name, start in self.starts if name == flow]


def served(intervals: Mapping[str, float], durations: Mapping[str, float], until: float) -> Time:
    time = Time(until)
    serve(intervals, time.cycle(durations), wait=time.wait, now=lambda: time.now)
    return time


def test_the_interval_counts_from_start_to_start() -> None:
    """A cycle of 2 s every 10 s starts at 0, 10, 20 and not at 0, 12, 24."""
    assert served({"A->B": 10}, {"A->B": 2}, 35).of("A->B") == [0, 10, 20, 30]


def test_a_long_cycle_is_followed_at_once_and_nothing_is_made_up_for() -> None:
    """Cycles of 25 s every 10 s come one after another, never two at a time."""
    assert served({"A->B": 10}, {"A->B": 25}, 80).of("A->B") == [0, 25, 50, 75]


def test_flows_have_their_own_intervals() -> None:
    """Each flow keeps its own rhythm, and the first ones start in the order of the file."""
    time = served({"A->B": 10, "B->A": 25}, {"A->B": 1, "B->A": 1}, 60)
    assert time.starts[:2] == [("A->B", 0), ("B->A", 1)]
    assert time.of("A->B") == [0, 10, 20, 30, 40, 50]
    assert time.of("B->A") == [1, 26, 51]


def test_a_slow_flow_does_not_starve_another() -> None:
    """A flow that is always late lets the others have their turn."""
    time = served({"slow": 1, "quick": 10}, {"slow": 8, "quick": 1}, 100)
    gaps = [later - start for start, later in pairwise(time.of("quick"))]
    assert max(gaps) <= 10 + 8


@given(
    st.dictionaries(st.sampled_from("ABCD"), st.integers(1, 50), min_size=1),
    st.lists(st.integers(0, 100), min_size=4, max_size=4),
)
def test_no_cycle_is_early_and_none_overlap(
    intervals: dict[str, int], durations: list[int]
) -> None:
    """Starts of a flow are an interval apart at least, and one cycle runs at a time."""
    taken = dict(zip("ABCD", map(float, durations), strict=True))
    time = served(intervals, taken, 500)
    for (flow, start), (_, following) in pairwise(time.starts):
        assert following >= start + taken[flow]
    for flow, interval in intervals.items():
        starts = time.of(flow)
        assert all(b - a >= interval for a, b in pairwise(starts))


def test_stop_is_asked_before_each_cycle() -> None:
    """Even a cycle that is overdue does not start once it is time to stop."""
    assert served({"A->B": 10}, {"A->B": 1}, 0).starts == []


# --- what a signal does -------------------------------------------------------------------


def signal_once(started: threading.Event, *numbers: int) -> None:
    """Send this process signals as soon as the work is under way."""

    def send() -> None:
        started.wait()
        for number in numbers:
            os.kill(os.getpid(), number)

    threading.Thread(target=send).start()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_work_in_order(number: int) -> None:
    """Work that heeds the event ends cleanly, and the handlers are put back."""
    before = signal.getsignal(number)
    started = threading.Event()

    def work(stop: threading.Event) -> None:
        started.set()
        stop.wait()

    signal_once(started, number)
    assert supervise(work, pytest.fail) is Ending.CLEAN
    assert signal.getsignal(number) is before


def test_work_that_does_not_stop_is_cancelled() -> None:
    """After the time to finish, `cancel` is called; the work that it ends, ends cleanly."""
    started, cancelled = threading.Event(), threading.Event()

    def work(_stop: threading.Event) -> None:
        started.set()
        cancelled.wait()
        raise CycleFailed("cancelled")

    signal_once(started, signal.SIGTERM)
    assert supervise(work, cancelled.set, finish_seconds=0.05) is Ending.CLEAN


def test_work_that_nothing_ends_is_abandoned() -> None:
    """A cycle that hangs for good, and a `cancel` that hangs too, do not hold up the end."""
    started, never = threading.Event(), threading.Event()

    def work(_stop: threading.Event) -> None:
        started.set()
        never.wait()

    signal_once(started, signal.SIGTERM)
    ending = supervise(work, never.wait, finish_seconds=0.05, cancel_seconds=0.05)  # type: ignore[arg-type]
    assert ending is Ending.ABANDONED
    never.set()


def test_a_second_signal_does_not_wait_for_the_cycle() -> None:
    """Who presses Ctrl-C twice means now."""
    started, cancelled = threading.Event(), threading.Event()

    def work(_stop: threading.Event) -> None:
        started.set()
        cancelled.wait()

    signal_once(started, signal.SIGINT, signal.SIGTERM)
    assert supervise(work, cancelled.set, finish_seconds=600) is Ending.CLEAN


def test_what_the_work_raises_is_raised() -> None:
    """What keeps Spark from starting ends the command with its own words."""

    def work(_stop: threading.Event) -> None:
        raise JavaMissing("no Java")

    with pytest.raises(JavaMissing, match="no Java"):
        supervise(work, pytest.fail)


def test_other_signals_wake_nobody() -> None:
    """A signal that another part of the program handles is not taken for an end."""
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with Signals() as signals:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert signals.wait(0.01) is None
            signals.wake()
            assert signals.wait(None) == 0
        signals.close()
    finally:
        signal.signal(signal.SIGUSR1, before)


# --- how failures are outlived ------------------------------------------------------------


class MemoryBackend:
    """Cycles on clusters in memory; a session is a number, and dies when told to."""

    def __init__(self, flows: tuple[FlowSettings, ...], clusters: Mapping[str, MemoryCluster]):
        self._flows = {flow.name: flow for flow in flows}
        self._clusters = clusters
        self.sessions = 0
        self.dead = True
        self.next_error: Exception | None = None
        self.also: list[Row] = []

    def open(self) -> None:
        self.sessions += 1
        self.dead = False

    def alive(self) -> bool:
        return not self.dead

    def cycle(self, flow: str, *, commit: bool) -> CycleResult:
        error, self.next_error = self.next_error, None
        if error is not None:
            raise error
        settings = self._flows[flow]
        source = self._clusters[settings.source.alias]
        target = self._clusters[settings.target.alias]
        rows: list[Row]
        try:
            rows = cycle(settings, source, target, commit=commit)
        except ClusterUnreachable as unreachable:
            rows = [failed_row(flow, Failed(FailureKind.UNREACHABLE, str(unreachable)))]
            return CycleResult(flow, Rows(rows_table(rows)), (), True, 0.1, 0, 0)
        groups, found = len({row.group for row in rows}), Rows(rows_table([*rows, *self.also]))
        return CycleResult(flow, found, (), False, 0.1, groups, len(rows))

    def cancel(self) -> None:
        raise AssertionError("nothing to cancel")

    def close(self) -> None:
        self.dead = True


class Estate:
    """A flow A->B with one group, and the log of its cycles."""

    def __init__(self, **changes: Any) -> None:
        estate = mirrored_estate(20)
        estate.commit("billing", "orders", 7)
        self.target = estate["B"]
        self.flow = memory_flow(**changes)
        self.backend = MemoryBackend((self.flow,), estate.clusters)
        self.stopping = False
        self.seconds = iter(range(0, 10_000, 1))
        selection = Selection(
            Configuration("test.properties", ""),
            Settings((self.flow,), ("A", "B")),
            (self.flow,),
            Narrowing(),
        )
        self.cycles = Cycles(
            selection,
            self.backend,
            stopping=lambda: self.stopping,
            now=lambda: float(next(self.seconds)),
        )

    def cycle(self) -> list[dict[str, Any]]:
        with capture_logs() as logs:
            self.cycles.cycle("A->B")
        return [dict(event) for event in logs if event["log_level"] != "debug"]


def events(logs: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in logs]


def test_a_cycle_is_logged_with_its_counts() -> None:
    """`cycle_started` and `cycle_finished`, the latter with the numbers of rows."""
    estate = Estate()
    with estate.cycles:
        logs = estate.cycle()
        again = estate.cycle()
    assert events(logs) == ["cycle_started", "cycle_finished"]
    finished = logs[-1]
    assert {name: finished[name] for name in ("flow", "groups", "committed", "failed")} == {
        "flow": "A->B",
        "groups": 1,
        "committed": 1,
        "failed": 0,
    }
    assert (again[-1]["committed"], again[-1]["unchanged"]) == (0, 1)
    assert [commit[2].offset for commit in estate.target.commits] == [7]


def test_a_flow_that_is_only_planned_commits_nothing() -> None:
    """`sync.group.offsets.enabled = false`: cycles run, and say what they would commit."""
    estate = Estate(sync_enabled=False)
    with estate.cycles:
        logs = estate.cycle()
    assert logs[-1]["would_commit"] == 1
    assert estate.target.commits == []


@pytest.mark.parametrize("error", [CycleFailed("Spark gave up"), ZeroDivisionError("ours")])
def test_a_failed_cycle_is_logged_and_the_next_one_is_tried(error: Exception) -> None:
    """Whatever a cycle raises, `run` goes on in the same session."""
    estate = Estate()
    with estate.cycles:
        estate.backend.next_error = error
        failed = estate.cycle()
        good = estate.cycle()
    assert events(failed) == ["cycle_started", "cycle_failed"]
    assert str(error) in failed[-1]["error"]
    assert good[-1]["committed"] == 1
    assert estate.backend.sessions == 1


def test_a_dead_session_is_replaced() -> None:
    """If Spark itself has died, the next cycle runs in a new session."""
    estate = Estate()
    with estate.cycles:
        estate.backend.dead = True
        logs = estate.cycle()
    assert events(logs) == ["cycle_started", "session_replaced", "cycle_finished"]
    assert estate.backend.sessions == 2


def test_a_cluster_that_is_away_fails_a_row_and_ends_nothing() -> None:
    """The cycle finishes with a failed row, and the next one is well again."""
    estate = Estate()
    with estate.cycles:
        estate.target.unreachable = True
        away = estate.cycle()
        estate.target.unreachable = False
        back = estate.cycle()
    assert events(away) == ["cycle_started", "rows_need_attention", "cycle_finished"]
    assert (away[1]["reason"], away[-1]["failed"]) == ("UNREACHABLE", 1)
    assert back[-1]["committed"] == 1


def test_rows_that_nobody_has_to_look_at_are_not_told() -> None:
    """What failed is told, and a skip that an operator has to end; what passes is not."""
    estate = Estate()
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
    with estate.cycles:
        told = [event for event in estate.cycle() if event["event"] == "rows_need_attention"]
    assert [(event["reason"], event["message"], event["rows"]) for event in told] == [
        (reason, f"{reason} it is", 1) for reason in reasons[1:]
    ]


def test_a_cycle_lasts_until_its_news_are_told() -> None:
    """`seconds` is the time from `cycle_started` to `cycle_finished`, not of Spark's part alone."""
    estate = Estate()
    with estate.cycles:
        assert estate.cycle()[-1]["seconds"] == 1


def test_what_was_told_is_not_told_again_until_it_comes_back() -> None:
    """A failure that lasts is one line, and one more if it returns after it had gone."""
    estate = Estate()
    told = []
    with estate.cycles:
        for away in (True, True, False, True):
            estate.target.unreachable = away
            told.append("rows_need_attention" in events(estate.cycle()))
    assert told == [True, False, False, True]


def test_a_cycle_that_is_cut_short_by_a_stop_is_no_failure() -> None:
    """What a cancelled cycle raises is expected, and no error in the log."""
    estate = Estate()
    with estate.cycles:
        estate.stopping = True
        estate.backend.next_error = CycleFailed("cancelled")
        logs = estate.cycle()
    assert events(logs) == ["cycle_started", "cycle_ended_by_stop"]
    assert {event["log_level"] for event in logs} == {"info"}


def test_a_cycle_longer_than_its_interval_is_a_warning() -> None:
    """An operator learns that the interval cannot be kept."""
    estate = Estate(sync_interval_seconds=0)
    with estate.cycles:
        assert events(estate.cycle())[-1] == "interval_exceeded"
