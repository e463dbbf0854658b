"""Whatever befalls a cluster, the network or Spark: a flow goes on by itself afterwards, no commit
of it skips a record or goes back, and the other flow of the same daemon does not notice."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

import pytest

from tests.daemons import named
from tests.faults import faults
from tests.faults.faults import Fault
from tests.faults.stage import (
    SINGLE,
    THREE,
    Events,
    FaultTestbed,
    bad,
    ended,
    good,
    seconds_between,
    staged,
)
from tests.waiting import wait_until
from tsoffset.daemon.status import FlowState

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.thorough,
    pytest.mark.timeout(1_800),
]

BOTH = (THREE, SINGLE)
Says = Callable[[Events], bool]


@pytest.fixture(scope="module")
def stage(tmp_path_factory) -> Iterator[FaultTestbed]:
    with staged(tmp_path_factory.mktemp("faults")) as made:
        yield made


@dataclass(frozen=True, slots=True)
class FaultCase:
    """A fault, the flows that it affects, and the log's words for it; None if their cycles need not
    fail. `shown` is false if the flow's state does not change."""

    fault: Fault
    says: Says | None
    flows: Sequence[str] = (THREE,)
    shown: bool = True


def failed_row(*reasons: str) -> Says:
    """Rows failed for one of these reasons."""
    return lambda events: any(e["reason"] in reasons for e in named(events, "rows_need_attention"))


def event(name: str, words: str = "") -> Says:
    """There is such an event, with these words in it."""
    return lambda events: any(words in str(each) for each in named(events, name))


AWAY = failed_row("UNREACHABLE", "TIMEOUT")
LIMIT = event("cycle_failed", "stopped at its time limit")
CASES = {
    "target_down": FaultCase(faults.target_down, AWAY),
    "java_killed": FaultCase(faults.java_killed, event("session_replaced"), BOTH, False),
    "source_down": FaultCase(faults.source_down, AWAY),
    "target_hung": FaultCase(faults.target_hung, AWAY),
    "node_hung": FaultCase(faults.node_hung, None),
    "node_down": FaultCase(faults.node_down, None),
    "leaders_move": FaultCase(faults.leaders_move, None),
    "coordinators_move": FaultCase(faults.coordinators_move, None),
    "topics_deleted": FaultCase(faults.topics_deleted, None),
    "open_transaction": FaultCase(faults.open_transaction, failed_row("COORDINATOR")),
    "source_cut": FaultCase(lambda stage: stage.proxies["C"].cutting(), AWAY, (SINGLE,)),
    "target_black_hole": FaultCase(lambda stage: stage.proxies["B"].black_hole(), AWAY),
    "names_fail": FaultCase(faults.names_fail, AWAY),
    "names_hang": FaultCase(faults.names_hang, AWAY),
    "all_workers_killed": FaultCase(faults.all_workers_killed, None, BOTH),
    "python_hung": FaultCase(faults.python_hung, LIMIT, BOTH),
    "java_hung": FaultCase(faults.java_hung, event("session_replaced"), BOTH, False),
    "disk_full": FaultCase(faults.disk_full, event("state_not_written"), shown=False),
}
# For each of these there is a harder one of the same kind among the others, or a test without a
# daemon: they take minutes.
RARE = {"source_down", "target_hung", "names_fail"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] if name in RARE else []) for name in CASES],
)
def test_a_flow_outlives(stage, name, record_property):
    """While it lasts log and status say so, and the other flow's cycles are all good (none takes
    longer than `cycle.limit.seconds`: it would be stopped and fail). Afterwards one more cycle of
    the flow may fail, that which ran meanwhile. What was committed is right throughout."""
    case = CASES[name]
    others = [flow for flow in BOTH if flow not in case.flows]
    stage.rest()
    begin = stage.said()
    with case.fault(stage):
        in_effect = stage.said()
        if case.says is not None:
            stage.wait_for(case.says, begin)
            if case.shown:
                wait_until(partial(_is_shown, stage, case.flows), "the status has it")
        for flow in BOTH:
            wanted = 2 if flow in others or case.says is None else 1
            stage.wait_for(partial(_has_ended, flow, wanted), in_effect)
    over = stage.said()
    for flow in BOTH:
        stage.wait_for(lambda events, flow=flow: any(map(good, ended(events, flow))), over)
    for traffic in stage.traffic.values():
        traffic.rest()
        try:
            traffic.judge()
        finally:
            traffic.go_on()

    events = stage.daemon.events()
    for flow in others:
        assert not list(filter(bad, ended(events[begin:], flow)))
    for flow in case.flows:
        after = ended(events[over:], flow)
        still = list(takewhile(bad, after))
        record_property(f"recovered {flow}", seconds_between(events[over - 1], after[len(still)]))
        assert len(still) <= 1, still
    record_property("lasted", seconds_between(events[begin - 1], events[over - 1]))
    record_property(
        "bad cycles", {f: len(list(filter(bad, ended(events[begin:], f)))) for f in BOTH}
    )


def _is_shown(stage: FaultTestbed, flows: Sequence[str]) -> bool:
    return any(stage.state_of(flow) in (FlowState.FAILED, FlowState.DEGRADED) for flow in flows)


def _has_ended(flow: str, wanted: int, events: Events) -> bool:
    return len(ended(events, flow)) >= wanted


MAY_GROW = {"threads": 10, "files": 15, "sockets": 12, "mb": 100, "processes": 2}


def test_nothing_is_left_of_what_befell_it(stage):
    """Threads, files, connections, memory and processes are about what they were at first."""
    at_first = stage.at_first
    assert at_first is not None

    def about_the_same() -> bool:
        now = stage.held()
        return all(now[name] <= at_first[name] + more for name, more in MAY_GROW.items())

    wait_until(about_the_same, f"{at_first} again, now {stage.held()}")
