"""All metrics with their labels and help; the table in docs/metrics.md is made from them.

Names end in their unit. `flow` is `A->B`, `side` is `source` or `target`, and a pair is a
group-partition. Timestamps are seconds since 1970 UTC.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)


@dataclass(frozen=True, slots=True)
class Declared:
    """A metric. Its family is of `kind`, which adds a suffix to the name (`_total`, ...)."""

    name: str
    kind: Callable[..., Any]
    labels: tuple[str, ...]
    meaning: str

    def family(self) -> Any:
        """Without samples."""
        return self.kind(self.name, self.meaning, labels=self.labels)


METRICS: dict[str, Declared] = {}
"""All metrics by name, in the order of the documentation."""


def _declare(kind: Callable[..., Any], name: str, labels: str, meaning: str) -> Declared:
    found = Declared(f"tsoffset_{name}", kind, tuple(labels.split()), meaning)
    assert found.name not in METRICS, name
    METRICS[found.name] = found
    return found


_gauge = partial(_declare, GaugeMetricFamily)
_counter = partial(_declare, CounterMetricFamily)
_histogram = partial(_declare, HistogramMetricFamily)


# --- this process -----------------------------------------------------------------------

BUILD = _declare(
    InfoMetricFamily,
    "build",
    "version python pyspark instance",
    "Always 1: the versions of tsoffset, Python and PySpark, and the id of this process.",
)
WARNINGS = _gauge(
    "configuration_warnings",
    "",
    "Number of configuration warnings, including a changed file that was rejected.",
)

# --- how a flow is ----------------------------------------------------------------------

STATE = _gauge(
    "flow_state",
    "flow state",
    "1 for the state of the flow, 0 for the others: `starting`, `running`, `degraded` (some rows"
    " failed, no group can be synced, or the cycle hit its time limit), `failed` (a cluster was"
    " unreachable, Spark failed, or no cycle may start), `paused`, `standby`.",
)
INTERVAL = _gauge(
    "flow_interval_seconds",
    "flow",
    "Configured time from the start of one cycle to the start of the next, in seconds.",
)
LIMIT = _gauge("flow_cycle_limit_seconds", "flow", "Time limit of a cycle, in seconds.")
LAST_CYCLE = _gauge(
    "flow_last_cycle_timestamp_seconds",
    "flow",
    "End of the last cycle, with or without success, in seconds since 1970 UTC.",
)
LAST_SUCCESS = _gauge(
    "flow_last_success_timestamp_seconds",
    "flow",
    "End of the last cycle that reached both clusters and had no failed row, in seconds since 1970"
    " UTC; absent if there was none.",
)
WITHOUT_SUCCESS = _gauge(
    "flow_without_success_seconds",
    "flow",
    "Time without a successful cycle, in seconds: since the last one, or since this process began"
    " to run the flow, whichever is later. Absent on standby.",
)
FAILURES_IN_A_ROW = _gauge(
    "flow_failures_in_a_row",
    "flow",
    "Number of cycles that have failed one after the other, up to the last one. A cycle fails if a"
    " cluster is unreachable, if Spark fails, or if it takes longer than its time limit.",
)
STALE = _gauge(
    "flow_stale_seconds",
    "flow",
    "Time since the last cycle that reached both clusters, in seconds. It is 0 during the first"
    " two intervals after that cycle (or twice the cycle's duration, if longer), and if there was"
    " no such cycle. While it is above 0, all lags in records, including replication lag, are"
    " absent. Absent on standby.",
)
STALE_LAG = _gauge(
    "flow_stale_lag_records",
    "flow",
    "Only while tsoffset_flow_stale_seconds is above 0: tsoffset_flow_lag_records as of the last"
    " cycle that reached both clusters. A failover now may re-read more.",
)
STALE_ESTIMATE = _gauge(
    "flow_stale_lag_estimate_records",
    "flow",
    "Only while tsoffset_flow_stale_seconds is above 0: tsoffset_flow_stale_lag_records plus the"
    " records that consumers have read since then at their last known rate; absent if no rate is"
    " known.",
)
OTHER_INSTANCES = _gauge(
    "flow_other_instances",
    "flow",
    "Number of other tsoffset instances in the leader election of the flow.",
)

# --- cycles -----------------------------------------------------------------------------

CYCLES = _counter(
    "cycles",
    "flow result",
    "Finished cycles by `result`: `succeeded`, `rows_failed`, `unreachable` (a cluster was"
    " unreachable), `over_limit` (stopped at the time limit), `failed` (no rows for another"
    " reason).",
)
CYCLES_LATE = _counter(
    "cycles_late", "flow", "Cycles skipped because the previous one was still running."
)
CYCLE_DURATION = _histogram("cycle_duration_seconds", "flow", "Duration of cycles, in seconds.")
STAGE_DURATION = _histogram(
    "cycle_stage_duration_seconds",
    "flow stage",
    "Duration of the stages of cycles, in seconds: `list_groups`, `read_commits`, `translate`,"
    " `settle` (commit); `other` is Spark, state and everything else. Only for cycles with rows.",
)
COMMIT_GAP = _gauge(
    "cycle_commit_gap_seconds",
    "flow",
    "Longest time in the last cycle between reading a target group's committed offset and sending"
    " the commit based on it, in seconds.",
)
ROWS = _gauge(
    "cycle_rows",
    "flow outcome reason",
    "Rows of the last cycle by outcome and reason (empty if there is none): one row for each"
    " group-partition, and one for each group, broker or cluster that failed as a whole.",
)
GROUPS = _gauge(
    "groups",
    "flow outcome reason",
    "Groups by their worst outcome and its reason in the last cycle that reached both clusters."
    " From worst to best: `failed`, `skipped`, `would_commit`, `committed`, `unchanged`.",
)
PRECISION = _gauge(
    "translated_pairs",
    "flow precision",
    "Group-partitions with a translation in the last cycle that reached both clusters, by"
    " precision: `exact`, `bounded`, `frontier`, `unproven`.",
)

# --- what cycles cost -------------------------------------------------------------------

COMMITS = _counter("commits", "flow", "Offsets committed on the target.")
POSITIONS = _counter(
    "positions",
    "flow answer",
    "Distinct source offsets translated, by answer: `remembered` (from the cache) or `looked_up`"
    " (on the clusters).",
)
ROUNDS = _counter(
    "rounds",
    "flow",
    "Network round trips that translation waited for, one after the other.",
)
FETCHES = _counter("fetches", "flow side", "Fetch requests of translation.")
TIME_LOOKUPS = _counter(
    "time_lookups", "flow", "Lookups of an offset by timestamp, on both clusters."
)
READ_BYTES = _counter(
    "read_bytes", "flow side", "Bytes of record batches fetched, compressed as in the log."
)
REQUESTS = _counter("requests", "flow side", "Requests sent to the cluster.")
RETRIES = _counter(
    "retries", "flow side", "Retries of requests that got no answer or a retriable error."
)
THROTTLE = _counter(
    "throttle_seconds",
    "flow side",
    "Time in which no request was sent because a broker throttled this client, in seconds.",
)

# --- target offsets that a failover would use ----------------------------------------------


def _level(
    level: str, labels: str, columns: Mapping[str, tuple[str, str]], without: Sequence[str] = ()
) -> dict[str, Declared]:
    """The metrics of a flow, topic or group by the names of their values in the collector."""
    return {
        column: _gauge(f"{level}_{name}", labels, meaning.format(of=f"of the {level}"))
        for column, (name, meaning) in columns.items()
        if column not in without
    }


# The name and the meaning of each metric by its value.
_OF_PAIRS = {
    "pairs": ("pairs", "Group-partitions {of}."),
    "lag_unknown": (
        "unknown_lag_pairs",
        "Group-partitions {of} without a usable offset on the target: none, one past the"
        " translation, or one without a known bound of re-read records. Lag metrics in records"
        " do not include them.",
    ),
    "lag_records": (
        "lag_records",
        "Upper bound of the records that consumers re-read if they resume at the target groups'"
        " committed offsets right after the last cycle: the sum over the"
        " group-partitions {of}. Absent while tsoffset_flow_stale_seconds is above 0.",
    ),
    "lag_records_max": ("lag_max_records", "Highest lag_records of a single group-partition {of}."),
    "lag_records_min": ("lag_min_records", "Lowest lag_records of a single group-partition {of}."),
    "age_max": (
        "lag_max_seconds",
        "Age of the oldest target offset {of}, in seconds: the time since the group-partition was"
        " last in sync. It is in sync when a cycle commits its translation, or finds the target"
        " group's committed offset at or past it.",
    ),
    "age_mean": ("lag_mean_seconds", "Average age of the target offsets {of}, in seconds."),
    "age_min": ("lag_min_seconds", "Age of the newest target offset {of}, in seconds."),
    "never_in_sync": (
        "never_in_sync_pairs",
        "Group-partitions {of} that have never been in sync. Lag metrics in seconds do not"
        " include them.",
    ),
    "reread_bound": (
        "reread_bound_records",
        "Records that consumers may re-read even if every target group has committed its"
        " translation: the sum of the re-read bounds of the translations {of}.",
    ),
    "success": (
        "last_success_timestamp_seconds",
        "When all group-partitions {of} were last known to be in sync, in seconds since 1970"
        " UTC; absent if one has never been in sync.",
    ),
}

OF_FLOW = _level("flow", "flow", _OF_PAIRS, without=["success"])
OF_TOPIC = _level("topic", "flow topic", _OF_PAIRS)
OF_GROUP = _level(
    "group",
    "flow group",
    _OF_PAIRS,
    without=["lag_records_max", "lag_records_min", "age_mean", "age_min"],
)
GROUPS_LEFT_OUT = _gauge(
    "groups_without_metrics",
    "flow",
    "Groups without metrics of their own, after the first `metrics.groups.max` by name. The metrics"
    " of topics and of the flow include them.",
)
TOPICS_LEFT_OUT = _gauge(
    "topics_without_metrics",
    "flow",
    "Source topics without metrics of their own, after the first `metrics.topics.max` by name. The"
    " metrics of groups and of the flow include them.",
)

# --- how far the replicator is ----------------------------------------------------------

_OF_PARTITIONS = {
    "lag_records": (
        "replication_lag_records",
        "Replication lag: about how many records the target lacks. This is the number of source"
        " offsets after the last record pair, minus the number of target offsets after it. Counts"
        " offsets without a record (control records, compaction); does not count partitions that no"
        " group reads.",
    ),
    "lag_bound_records": (
        "replication_lag_bound_records",
        "Upper bound of the replication lag: source offsets after the last record pair that a"
        " cycle proved. It also grows while the replicator keeps up, until a cycle proves a"
        " later pair.",
    ),
    "unknown": (
        "replication_unknown_partitions",
        "Partitions for which the cache has no record pair; the replication lag metrics do not"
        " include them.",
    ),
}
REPLICATION_OF_FLOW = _level("flow", "flow", _OF_PARTITIONS)
REPLICATION_OF_TOPIC = _level("topic", "flow topic", _OF_PARTITIONS)
