"""What Prometheus is told of the daemon: the table of metrics, and what they are after cycles."""

import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parsed_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parsed_text

from tests import serving
from tests.invoking import ROOT
from tests.memory_flows import flow
from tests.serving import AT, FLOW, ServedFlows, series_of
from tsoffset.cycle.work import Cost
from tsoffset.daemon.status import FlowState
from tsoffset.daemon.summary import OUTCOMES
from tsoffset.flow.settings import MetricsSettings
from tsoffset.group_sync.flow_cycle import Spent, Stage
from tsoffset.kafka.clients import Traffic
from tsoffset.metrics.collector import Metrics
from tsoffset.metrics.table import METRICS, STALE_ESTIMATE, STALE_LAG, Declared
from tsoffset.model import FailureKind, OutcomeKind, Precision, Reason, Row, Side

RESULTS = ("succeeded", "rows_failed", "unreachable", "over_limit", "failed")
NOW = AT
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def row(
    group: str | None,
    topic: str | None = "orders",
    partition: int | None = 0,
    outcome: OutcomeKind = OutcomeKind.UNCHANGED,
    reason: Reason | FailureKind | None = None,
    *,
    there: int | None = 90,
    bound: int | None = 0,
) -> Row:
    """A pair whose translation is the target offset 90; the target group stands at `there`."""
    translated = topic is not None and outcome is not OutcomeKind.FAILED
    return serving.row(
        group,
        topic,
        None if topic is None else partition,
        source_offset=100 if translated else None,
        target_offset=90 if translated else None,
        current_target_offset=there,
        outcome=outcome,
        reason=reason,
        precision=Precision.EXACT if translated else None,
        reread_bound=bound if translated else None,
    )


class MetricsWorld(ServedFlows):
    """The flow A->B, with cycles of two seconds that a test makes up."""

    seconds = 2.0

    def __init__(self, **limits: int) -> None:
        super().__init__()
        self.board.set_flows([flow()])
        self.metrics = Metrics(self.board, MetricsSettings(**limits))
        self.observers = [self.metrics]

    def samples(self) -> Samples:
        """What is scraped, but for what is told of any process."""
        text, _ = self.metrics.render()
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in parsed_text(text.decode())
            for sample in family.samples
            if not sample.name.startswith("process_")
        }

    def value(self, name: str, **labels: str) -> float | None:
        return self.samples().get((f"tsoffset_{name}", frozenset({"flow": FLOW, **labels}.items())))


def busy_cycle(world: MetricsWorld) -> None:
    """One of which every metric has something to tell."""
    spent = Spent()
    spent.seconds[Stage.TRANSLATE] += 1.5
    spent.traffic[Side.SOURCE] += Traffic(9, 2, 0.5)
    cost = Cost(positions=5, recalled=3, source_fetches=4, bytes_read=300, source_bytes_read=200)
    world.cycle(
        [row("a"), row("b", outcome=OutcomeKind.COMMITTED, there=80)],
        replication=[("orders", 0, 5, 30), ("orders", 1, None, None)],
        of_result={"cost": cost, "spent": spent},
    )


@pytest.mark.parametrize("accept", [None, OPENMETRICS])
def test_what_is_told_is_what_the_table_declares(accept):
    """After a cycle every metric of the table is there, with its type, labels and meaning, and
    no other but those of any process. In both formats."""
    world = MetricsWorld()
    busy_cycle(world)
    text, _ = world.metrics.render(accept)
    parsed = parsed_openmetrics if accept else parsed_text
    found = {one.name: one for one in parsed(text.decode()) if not one.name.startswith("process_")}
    if not accept:  # there an info is a gauge
        found["tsoffset_build"] = found.pop("tsoffset_build_info")
    assert set(found) == set(METRICS)
    for name, metric in METRICS.items():
        family = found[name]
        assert family.documentation == metric.meaning
        told = set() if metric in (STALE_LAG, STALE_ESTIMATE) else set(series_of(metric))
        assert {sample.name for sample in family.samples} == told
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels), name


def test_format_is_the_one_that_is_asked_for():
    """OpenMetrics to who takes it, the text format to all others, whatever they ask for."""
    metrics = MetricsWorld().metrics
    for accept in (None, "", "*/*", "text/html", "text/plain;version=x.y;escaping=none"):
        assert metrics.render(accept)[1] == "text/plain; version=0.0.4; charset=utf-8"
    for accept in (OPENMETRICS, "application/openmetrics-text; version=abc"):
        text, kind = metrics.render(accept)
        assert kind.startswith("application/openmetrics-text; version=1.0.0")
        assert text.endswith(b"# EOF\n")


def test_page_lists_the_metrics():
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `tsoffset_")]
    assert rows == rows_of_the_table()


def rows_of_the_table() -> list[str]:
    """The rows of docs/metrics.md. A metric of flows, topics and groups has one row."""
    alike: defaultdict[str, list[Declared]] = defaultdict(list)
    for metric in METRICS.values():
        both = f"{metric.name} {metric.meaning}"
        alike[re.sub("(_|of the )(flow|topic|group)", "", both)].append(metric)
    return [row_of_the_table(metrics) for metrics in alike.values()]


def row_of_the_table(metrics: list[Declared]) -> str:
    series = [(one.name, *series_of(one)) for one in metrics]
    names = ", ".join(f"`{one[-1] if len(one) == 2 else one[0]}`" for one in series)
    labels = dict.fromkeys(label for metric in metrics for label in metric.labels)
    shown = ", ".join(f"`{label}`" for label in labels)
    first, *others = metrics
    meaning = first.meaning
    if others:
        *levels, last = (metric.labels[-1] for metric in metrics)
        meaning = meaning.replace(f"of the {levels[0]}", f"of the {', '.join(levels)} or {last}")
    return f"| {names} | {first.family().type} | {shown} | {meaning} |"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian: prometheus) absent")
def test_prometheus_finds_nothing_to_improve():
    """`promtool check metrics`: names, units and help are as Prometheus advises."""
    world = MetricsWorld()
    busy_cycle(world)
    text, _ = world.metrics.render()
    found = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, check=False
    )
    assert (found.returncode, found.stderr) == (0, b"")


# --- cycles -----------------------------------------------------------------------------


def test_before_the_first_cycle_counters_are_zero():
    """So that the first failure is an increase; nothing has succeeded since the start."""
    world = MetricsWorld()
    for result in RESULTS:
        assert world.value("cycles_total", result=result) == 0
    assert world.value("flow_state", state="starting") == 1
    assert world.value("flow_last_success_timestamp_seconds") is None
    world.now += 50
    assert world.value("flow_without_success_seconds") == 50


def test_time_without_success_begins_when_the_flow_does():
    """Not at the start of the process for a flow that was added later, nor at an own success before
    another instance led the flow: both would raise an alert about hours that were not lost."""
    world = MetricsWorld()
    world.board.set_flows([])
    world.now += 1_000
    world.board.set_flows([flow()])
    world.now += 5
    assert world.value("flow_without_success_seconds") == 5
    world.cycle([row("a")])
    world.board.update(FLOW, state=FlowState.STANDBY)
    world.now += 1_000
    assert world.value("flow_without_success_seconds") is None
    world.board.resume(FLOW)
    world.now += 5
    assert world.value("flow_without_success_seconds") == 5
    world.cycle([row("a")])
    world.now += 20
    assert world.value("flow_without_success_seconds") == 20


def test_cycles_are_counted_by_what_they_came_to():
    """All rows well, some failed, a cluster away, too long, nothing at all; the last success
    stays."""
    world = MetricsWorld()
    world.cycle([row("a")])
    world.now += 50
    world.cycle([row("a", outcome=OutcomeKind.FAILED, reason=FailureKind.TIMEOUT)])
    away = row(None, None, outcome=OutcomeKind.FAILED, reason=FailureKind.UNREACHABLE)
    world.cycle([away], of_result={"unreachable": True})
    world.failure("it took too long", over_limit=True)
    world.failure("Spark gave up")
    world.failure("Spark gave up")
    found = {result: world.value("cycles_total", result=result) for result in RESULTS}
    assert found == dict(zip(RESULTS, (1, 1, 1, 1, 2), strict=True))
    assert world.value("cycle_duration_seconds_count") == 6
    assert world.value("cycle_duration_seconds_sum") == 12
    assert world.value("cycle_duration_seconds_bucket", le="1.0") == 0
    assert world.value("cycle_duration_seconds_bucket", le="2.5") == 6
    assert world.value("flow_failures_in_a_row") == 4
    assert world.value("flow_last_success_timestamp_seconds") == NOW
    assert world.value("flow_without_success_seconds") == 50
    states = {state: world.value("flow_state", state=state) for state in FlowState}
    assert states == {state: state is FlowState.FAILED for state in FlowState}


def test_what_cycles_cost_adds_up():
    """By side, by where positions were answered, and by stage; what no stage took is other."""
    world = MetricsWorld()
    busy_cycle(world)
    busy_cycle(world)
    assert world.value("positions_total", answer="remembered") == 6
    assert world.value("positions_total", answer="looked_up") == 4
    assert world.value("fetches_total", side="source") == 8
    assert world.value("read_bytes_total", side="source") == 400
    assert world.value("read_bytes_total", side="target") == 200
    assert world.value("requests_total", side="source") == 18
    assert world.value("requests_total", side="target") == 0
    assert world.value("retries_total", side="source") == 4
    assert world.value("throttle_seconds_total", side="source") == 1
    assert world.value("commits_total") == 2
    assert world.value("cycle_stage_duration_seconds_sum", stage="translate") == 3
    assert world.value("cycle_stage_duration_seconds_sum", stage="other") == 1


def test_rows_and_groups_are_told_by_outcome_and_reason():
    """Rows as the log counts them; a group once, by the worst of its pairs, in the order that the
    documentation says."""
    world = MetricsWorld()
    no_proof = {"outcome": OutcomeKind.SKIPPED, "reason": Reason.NO_PROOF}
    world.cycle(
        [
            row("a"),
            row("d", outcome=OutcomeKind.WOULD_COMMIT, there=80),
            row("d", partition=1),
            row("d", partition=2, outcome=OutcomeKind.COMMITTED, there=80),
            row("b"),
            row("b", partition=1, **no_proof),
            row("b", partition=2, **no_proof),
            row("c", None, outcome=OutcomeKind.FAILED, reason=FailureKind.COORDINATOR),
            row(None, None, outcome=OutcomeKind.FAILED, reason=FailureKind.TIMEOUT),
        ]
    )
    assert world.value("cycle_rows", outcome="unchanged", reason="") == 3
    assert world.value("cycle_rows", outcome="would_commit", reason="") == 1
    assert world.value("cycle_rows", outcome="committed", reason="") == 1
    assert world.value("cycle_rows", outcome="skipped", reason="NO_PROOF") == 2
    assert world.value("cycle_rows", outcome="failed", reason="COORDINATOR") == 1
    assert world.value("cycle_rows", outcome="failed", reason="TIMEOUT") == 1
    assert world.value("groups", outcome="unchanged", reason="") == 1
    assert world.value("groups", outcome="would_commit", reason="") == 1
    assert world.value("groups", outcome="committed", reason="") is None
    assert world.value("groups", outcome="skipped", reason="NO_PROOF") == 1
    assert world.value("groups", outcome="failed", reason="COORDINATOR") == 1
    assert world.value("flow_pairs") == 7
    assert world.value("translated_pairs", precision="exact") == 7
    worst_first = ", ".join(f"`{one}`" for one in reversed(OUTCOMES))
    assert METRICS["tsoffset_groups"].meaning.endswith(f"From worst to best: {worst_first}.")


# --- how good what a failover would use is ----------------------------------------------


def test_lag_is_told_of_flow_topic_and_group():
    """Records as of the last cycle, seconds up to now; a pair of which something is not known is
    counted apart, and leaves the others' sums as they are."""
    world = MetricsWorld()
    active = {"outcome": OutcomeKind.SKIPPED, "reason": Reason.GROUP_ACTIVE}
    world.cycle([row("a"), row("a", partition=1), row("b", "users")])
    world.now += 30
    world.cycle(
        [
            row("a"),
            row("a", partition=1, there=83, bound=2, **active),
            row("a", partition=2, there=None, **active),
            row("b", "users"),
        ]
    )
    world.now += 10
    of = {"flow": {}, "topic": {"topic": "orders"}, "group": {"group": "a"}}
    for level, labels in of.items():
        assert world.value(f"{level}_pairs", **labels) == (4 if level == "flow" else 3)
        assert world.value(f"{level}_unknown_lag_pairs", **labels) == 1
        assert world.value(f"{level}_never_in_sync_pairs", **labels) == 1
        assert world.value(f"{level}_lag_records", **labels) == 9
        assert world.value(f"{level}_lag_max_seconds", **labels) == 40
        assert world.value(f"{level}_reread_bound_records", **labels) == 2
    for level in ("flow", "topic"):
        assert world.value(f"{level}_lag_max_records", **of[level]) == 9
        assert world.value(f"{level}_lag_min_records", **of[level]) == 0
        assert world.value(f"{level}_lag_min_seconds", **of[level]) == 10
    assert world.value("topic_lag_mean_seconds", topic="orders") == 25
    assert world.value("flow_lag_mean_seconds") == 20
    assert world.value("topic_last_success_timestamp_seconds", topic="orders") is None
    assert world.value("group_last_success_timestamp_seconds", group="b") == NOW + 30


def test_instance_on_standby_tells_nothing_of_pairs():
    """What it knew when it had the lead grows old; the one that has it tells what is. So
    it is after a takeover, until a cycle has reached both clusters."""
    world = MetricsWorld()
    busy_cycle(world)
    world.board.update(FLOW, state=FlowState.STANDBY)
    assert world.value("flow_state", state="standby") == 1
    assert world.value("cycles_total", result="succeeded") == 1
    assert not [name for name, _ in world.samples() if name.endswith(("_pairs", "_rows"))]
    world.now += 1000
    for state in (FlowState.STARTING, FlowState.FAILED):
        world.board.update(FLOW, state=state)
        assert world.value("flow_stale_seconds") is None
        assert world.value("flow_lag_max_seconds") is None
    busy_cycle(world)
    assert world.value("flow_stale_seconds") == 0
    assert world.value("flow_lag_max_seconds") is not None


def test_replication_lag_is_told_of_flow_and_topic():
    """Its sum, its bound, and the partitions of which nothing is proven."""
    world = MetricsWorld()
    busy_cycle(world)
    for level, labels in {"flow": {}, "topic": {"topic": "orders"}}.items():
        assert world.value(f"{level}_replication_lag_records", **labels) == 5
        assert world.value(f"{level}_replication_lag_bound_records", **labels) == 30
        assert world.value(f"{level}_replication_unknown_partitions", **labels) == 1


# --- how many series there are ----------------------------------------------------------


def test_a_lag_that_nobody_knows_any_more_is_absent():
    """With the source away: no lag in records once two intervals have passed, but since when it is
    not known, what it was, and what consumers have read since at their last rate; ages grow on."""
    world = MetricsWorld()
    moved = replace(row("a", there=80, outcome=OutcomeKind.WOULD_COMMIT), source_offset=160)
    world.cycle([row("a")])
    world.now += 60
    lags = {"replication": [("orders", 0, 5, 30)]}
    world.cycle([moved], **lags)
    assert (world.value("flow_stale_seconds"), world.value("flow_lag_records")) == (0, 10)
    assert world.value("flow_replication_lag_records") == 5
    world.now += 121
    away = row(None, None, outcome=OutcomeKind.FAILED, reason=FailureKind.UNREACHABLE)
    world.cycle([away], of_result={"unreachable": True})
    assert world.value("cycle_rows", outcome="failed", reason="UNREACHABLE") == 1
    for name in ("flow_lag_records", "flow_lag_max_records", "flow_replication_lag_records"):
        assert world.value(name) is None
    assert world.value("topic_lag_records", topic="orders") is None
    assert world.value("group_lag_records", group="a") is None
    assert world.value("flow_stale_seconds") == 121
    assert world.value("flow_stale_lag_records") == 10
    assert world.value("flow_stale_lag_estimate_records") == 10 + 121
    assert world.value("flow_lag_max_seconds") == 181
    assert world.value("group_lag_max_seconds", group="a") == 181
    world.now += 60
    world.cycle([moved])
    assert (world.value("flow_stale_seconds"), world.value("flow_lag_records")) == (0, 10)
    assert world.value("flow_stale_lag_records") is None


def test_series_are_bounded_whatever_the_groups_and_topics():
    """The first by name have series of their own, the same in every process; it is told how many
    have none, and the sums have all."""
    world = MetricsWorld(groups_max=2, topics_max=1)
    behind = {"outcome": OutcomeKind.WOULD_COMMIT, "there": 80}
    world.cycle([row(f"g{number}", f"t{number}", **behind) for number in (4, 2, 0, 3, 1)])
    named = {labels for name, labels in world.samples() if name == "tsoffset_group_pairs"}
    assert {dict(one)["group"] for one in named} == {"g0", "g1"}
    named = {labels for name, labels in world.samples() if name == "tsoffset_topic_pairs"}
    assert {dict(one)["topic"] for one in named} == {"t0"}
    assert world.value("groups_without_metrics") == 3
    assert world.value("topics_without_metrics") == 4
    assert world.value("flow_lag_records") == 50


def test_names_of_any_kind_are_told_as_they_are():
    """Quotes, backslashes, line ends, other scripts: no name ends a line or becomes another."""
    names = ['a"b', "a\\b", "a\nb", "a\\nb", "größe", "グループ", "{x}", "#", " ", "\x01"]
    world = MetricsWorld()
    world.cycle([row(name) for name in names])
    for name in names:
        assert world.value("group_pairs", group=name) == 1, name


def test_flow_that_is_gone_has_no_series_any_more():
    world = MetricsWorld()
    busy_cycle(world)
    world.board.set_flows([flow("B", "A")])
    told = {value for _, labels in world.samples() for key, value in labels if key == "flow"}
    assert told == {"B->A"}
