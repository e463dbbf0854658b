"""The metrics of this process's flows, for Prometheus to scrape.

A scrape computes gauges from the board's snapshots and summaries, so its cost depends on the number
of series; of the group-partitions it only counts the precisions. Every cycle updates counters and
histograms.
"""

import platform
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import polars as pl
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from tsoffset.daemon.status import Board, Cycle, FlowState, FlowStatus
from tsoffset.daemon.summary import SummaryKey, known_sum
from tsoffset.flow.settings import MetricsSettings
from tsoffset.metrics import table as metrics
from tsoffset.metrics.table import METRICS, Declared
from tsoffset.model import OutcomeKind, Side

TEXT = "text/plain; version=0.0.4; charset=utf-8"

_OPENMETRICS = "application/openmetrics-text"
# In seconds: from a warm cycle of a small flow to twice the default time limit of a cycle.
_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_RESULTS = ("succeeded", "rows_failed", "unreachable", "over_limit", "failed")
_OTHER_STAGE = "other"

_Labels = tuple[str, ...]
_Values = Mapping[str, Any]


_REPLICATION = {
    "lag_records": known_sum("lag_records"),
    "lag_bound_records": known_sum("lag_bound_records"),
    "unknown": pl.col("lag_records").is_null().sum(),
}


@dataclass(slots=True)
class _Histogram:
    counts: list[int] = field(default_factory=lambda: [0] * (len(_BUCKETS) + 1))
    sum: float = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(_BUCKETS, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, float]]:
        bounds = [*map(str, _BUCKETS), "+Inf"]
        return [(le, sum(self.counts[: number + 1])) for number, le in enumerate(bounds)]


class Metrics(Collector):
    """The metrics of the board's flows; an `Observer` of their cycles. May be used from any
    thread."""

    def __init__(self, board: Board, settings: MetricsSettings | None = None) -> None:
        self._board = board
        self._settings = settings or MetricsSettings()
        self._lock = threading.Lock()
        self._counts: defaultdict[tuple[Declared, _Labels], float] = defaultdict(float)
        self._histograms: defaultdict[tuple[Declared, _Labels], _Histogram]
        self._histograms = defaultdict(_Histogram)
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def render(self, accept: str | None = None) -> tuple[bytes, str]:
        """All metrics with their content type: OpenMetrics if the header `accept` names it, else
        Prometheus's text format."""
        if _OPENMETRICS in (accept or ""):
            return openmetrics.generate_latest(self._registry), openmetrics.CONTENT_TYPE_LATEST  # type: ignore[no-untyped-call]
        return generate_latest(self._registry), TEXT

    # --- counters and histograms ------------------------------------------------------------

    def cycle_ended(self, cycle: Cycle, status: FlowStatus) -> None:
        with self._lock:
            self._count(cycle)

    def _count(self, cycle: Cycle) -> None:
        flow, result = cycle.flow, cycle.result
        self._add(metrics.CYCLES, 1, flow, _result_of(cycle))
        self._histograms[metrics.CYCLE_DURATION, (flow,)].observe(cycle.seconds)
        if result is None:
            return
        if cycle.tally is not None:
            self._add(metrics.COMMITS, cycle.tally.outcomes[OutcomeKind.COMMITTED], flow)
        cost, spent = result.cost, result.spent
        self._add(metrics.POSITIONS, cost.recalled, flow, "remembered")
        self._add(metrics.POSITIONS, cost.positions - cost.recalled, flow, "looked_up")
        self._add(metrics.ROUNDS, cost.rounds, flow)
        self._add(metrics.FETCHES, cost.source_fetches, flow, Side.SOURCE)
        self._add(metrics.FETCHES, cost.target_fetches, flow, Side.TARGET)
        self._add(metrics.TIME_LOOKUPS, cost.lookups, flow)
        of_target = cost.bytes_read - cost.source_bytes_read
        self._add(metrics.READ_BYTES, cost.source_bytes_read, flow, Side.SOURCE)
        self._add(metrics.READ_BYTES, of_target, flow, Side.TARGET)
        for side, traffic in spent.traffic.items():
            self._add(metrics.REQUESTS, traffic.requests, flow, side)
            self._add(metrics.RETRIES, traffic.retries, flow, side)
            self._add(metrics.THROTTLE, traffic.throttle_seconds, flow, side)
        other = max(0.0, cycle.seconds - sum(spent.seconds.values()))
        for stage, seconds in (*spent.seconds.items(), (_OTHER_STAGE, other)):
            self._histograms[metrics.STAGE_DURATION, (flow, stage)].observe(seconds)

    def _add(self, metric: Declared, number: float, *labels: str) -> None:
        self._counts[metric, labels] += number

    # --- a scrape ----------------------------------------------------------------------------

    def collect(self) -> Iterator[Metric]:
        board = self._board
        families = Families()
        python, spark = platform.python_version(), version("pyspark")
        families.put(metrics.BUILD, {}, board.instance.version, python, spark, board.instance.id)
        families.put(metrics.WARNINGS, len(board.warnings))
        statuses = board.statuses()
        for status in statuses:
            self._put_flow(families, status)
        self._put_counts(families, {status.name for status in statuses})
        return families.all()

    def _put_flow(self, families: "Families", status: FlowStatus) -> None:
        flow, now = status.name, self._board.now()
        for state in FlowState:
            families.put(metrics.STATE, state is status.state, flow, state)
        families.put(metrics.INTERVAL, status.flow.sync_interval_seconds, flow)
        families.put(metrics.LIMIT, status.flow.longest_cycle_seconds, flow)
        if status.last is not None:
            families.put(metrics.LAST_CYCLE, status.last.ended_at, flow)
        families.put(metrics.LAST_SUCCESS, status.last_success_at, flow)
        families.put(metrics.FAILURES_IN_A_ROW, status.failures_in_a_row, flow)
        families.put(metrics.OTHER_INSTANCES, len(status.others), flow)
        families.put(metrics.CYCLES_LATE, status.late, flow)
        # On standby, the leader has newer values.
        if status.state is not FlowState.STANDBY:
            since = max(status.last_success_at or 0.0, status.began_at)
            families.put(metrics.WITHOUT_SUCCESS, max(0.0, now - since), flow)
            if status.last is not None:
                _put_last(families, status.last)
            # Right after a takeover, the last cycle that ran here is older than the last leader's.
            if not status.taken_over or status.last_reached is None:
                self._put_pairs(families, status, now)

    def _put_pairs(self, families: "Families", status: FlowStatus, now: float) -> None:
        """Metrics of the flow's group-partitions; lags in records only while they are known."""
        flow, since = status.name, status.unknown_since(now)
        groups = self._board.summary(status, SummaryKey.GROUP)
        topics = self._board.summary(status, SummaryKey.TOPIC)
        families.put(metrics.STALE, 0 if since is None else max(0.0, now - since), flow)
        if since is not None:
            lag = groups.whole["lag_records"]
            families.put(metrics.STALE_LAG, lag, flow)
            families.put(metrics.STALE_ESTIMATE, status.lag_estimate(lag or 0, now), flow)
        for outcome, reason, number in groups.by_outcome():
            families.put(metrics.GROUPS, number, flow, outcome, reason or "")
        precisions = pl.Series(status.pairs["precision"]).drop_nulls().value_counts()
        for precision, number in precisions.iter_rows():
            families.put(metrics.PRECISION, number, flow, precision)
        _put_level(families, metrics.OF_FLOW, _of_pairs(groups.whole, now, since is None), flow)
        most = self._settings
        for summary, level, limit, others in (
            (groups, metrics.OF_GROUP, most.groups_max, metrics.GROUPS_LEFT_OUT),
            (topics, metrics.OF_TOPIC, most.topics_max, metrics.TOPICS_LEFT_OUT),
        ):
            placed = summary.with_pairs()
            families.put(others, max(0, len(placed) - limit), flow)
            for one in placed.head(limit).iter_rows(named=True):
                values = _of_pairs(one, now, since is None)
                _put_level(families, level, values, flow, one["name"])
        if since is None:
            names = topics.with_pairs()["name"].head(most.topics_max)
            _put_replication(families, status, names)

    def _put_counts(self, families: "Families", flows: Collection[str]) -> None:
        """Counters and histograms; counters also at 0, since a rate needs a first value."""
        with self._lock:
            for flow in flows:
                self._add(metrics.COMMITS, 0, flow)
                for result in _RESULTS:
                    self._add(metrics.CYCLES, 0, flow, result)
            for (metric, labels), number in self._counts.items():
                if labels[0] in flows:
                    families.put(metric, number, *labels)
            for (metric, labels), histogram in self._histograms.items():
                if labels[0] in flows:
                    families.put(metric, histogram.buckets(), *labels, sum_value=histogram.sum)


class Families:
    """A family for each metric of the table, with its samples."""

    def __init__(self) -> None:
        self._families = {name: metric.family() for name, metric in METRICS.items()}

    def put(self, metric: Declared, value: Any, *labels: str, **more: float) -> None:
        """Add a sample of the metric with these labels, unless `value` is None."""
        if value is not None:
            self._families[metric.name].add_metric(labels, value, **more)

    def all(self) -> Iterator[Metric]:
        return iter(self._families.values())


def _result_of(cycle: Cycle) -> str:
    if cycle.result is None:
        return "over_limit" if cycle.over_limit else "failed"
    if not cycle.reached:
        return "unreachable"
    return "succeeded" if cycle.succeeded else "rows_failed"


def _put_last(families: Families, cycle: Cycle) -> None:
    if cycle.result is None or cycle.tally is None:
        return
    families.put(metrics.COMMIT_GAP, cycle.result.cost.commit_gap_seconds, cycle.flow)
    tally = cycle.tally
    named = {OutcomeKind.SKIPPED: tally.reasons, OutcomeKind.FAILED: tally.failures}
    for outcome in OutcomeKind:
        if outcome in named:
            for reason, number in named[outcome].items():
                families.put(metrics.ROWS, number, cycle.flow, outcome, reason)
        else:
            families.put(metrics.ROWS, tally.outcomes[outcome], cycle.flow, outcome, "")


def _put_replication(families: Families, status: FlowStatus, topics: pl.Series) -> None:
    rows = pl.DataFrame(status.replication).cast({"source_topic": pl.String})
    (whole,) = rows.select(**_REPLICATION).rows(named=True)
    _put_level(families, metrics.REPLICATION_OF_FLOW, whole, status.name)
    of_topics = rows.filter(pl.col("source_topic").is_in([*topics])).group_by("source_topic")
    for one in of_topics.agg(**_REPLICATION).iter_rows(named=True):
        labels = status.name, one["source_topic"]
        _put_level(families, metrics.REPLICATION_OF_TOPIC, one, *labels)


def _put_level(
    families: Families, level: Mapping[str, Declared], values: _Values, *labels: str
) -> None:
    for name, metric in level.items():
        families.put(metric, values.get(name), *labels)


def _of_pairs(measures: _Values, now: float, known: bool) -> _Values:
    """Add the values that a scrape computes, and remove lags in records if they are not `known`."""
    oldest, never = measures["in_sync_at_min"], measures["never_in_sync"]
    values = {**measures, "success": None if never else oldest}
    for age, at in (("age_max", "min"), ("age_mean", "mean"), ("age_min", "max")):
        in_sync_at = measures[f"in_sync_at_{at}"]
        values[age] = None if in_sync_at is None else max(0.0, now - in_sync_at)
    if not known:
        values |= {"lag_records": None, "lag_records_max": None, "lag_records_min": None}
    return values
