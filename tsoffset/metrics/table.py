"""Every metric, with its labels, its unit and what it says: docs/metrics.md is this table.

Names end in their unit. `flow` is `A->B`; `side` is the cluster of the flow, source or target;
a pair is one of group and source partition. Timestamps are seconds since 1970 UTC.
"""

from dataclasses import dataclass
from enum import StrEnum

from prometheus_client.core import Metric


class Kind(StrEnum):
    """What kind of metric it is, as Prometheus calls it."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    INFO = "info"


_SUFFIXES = {
    Kind.GAUGE: ("",),
    Kind.COUNTER: ("_total",),
    Kind.HISTOGRAM: ("_bucket", "_sum", "_count"),
    Kind.INFO: ("_info",),
}


@dataclass(frozen=True, slots=True)
class Declared:
    """A metric. `unit` is empty where it is a plain number."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    unit: str
    meaning: str

    @property
    def series(self) -> tuple[str, ...]:
        """The names under which Prometheus keeps it."""
        return tuple(self.name + suffix for suffix in _SUFFIXES[self.kind])

    def family(self) -> Metric:
        """A family of it without samples."""
        # What stands for a unit must end the name.
        unit = self.unit if self.name.endswith(f"_{self.unit}") else ""
        return Metric(self.name, self.meaning, self.kind, unit)


METRICS: dict[str, Declared] = {}
"""All of them by name, in the order in which they are documented."""


def _declare(name: str, kind: Kind, labels: str, meaning: str, unit: str = "") -> Declared:
    assert name not in METRICS, name
    known = [word for word in ("seconds", "bytes", "records") if name.endswith(f"_{word}")]
    found = Declared(name, kind, tuple(labels.split()), known[0] if known else unit, meaning)
    METRICS[name] = found
    return found


def _gauge(name: str, labels: str, meaning: str, unit: str = "") -> Declared:
    return _declare(f"tsoffset_{name}", Kind.GAUGE, labels, meaning, unit)


def _counter(name: str, labels: str, meaning: str, unit: str = "") -> Declared:
    return _declare(f"tsoffset_{name}", Kind.COUNTER, labels, meaning, unit)


def _histogram(name: str, labels: str, meaning: str) -> Declared:
    return _declare(f"tsoffset_{name}", Kind.HISTOGRAM, labels, meaning)


# --- this process -----------------------------------------------------------------------

BUILD = _declare(
    "tsoffset_build",
    Kind.INFO,
    "version python pyspark instance",
    "Always 1: the versions of tsoffset, Python and PySpark, and the id of this process.",
)
WARNINGS = _gauge(
    "configuration_warnings",
    "",
    "What the configuration warns of, a changed file that was not taken included.",
    "warnings",
)

# --- how a flow is ----------------------------------------------------------------------

STATE = _gauge(
    "flow_state",
    "flow state",
    "1 for the state of the flow, 0 for the others: `starting`, `running`, `degraded` (rows failed,"
    " nothing at all can be synced, or a cycle was cut short), `failed` (no rows), `paused`,"
    " `standby`.",
)
INTERVAL = _gauge(
    "flow_interval_seconds", "flow", "From the start of a cycle to the start of the next."
)
LIMIT = _gauge("flow_cycle_limit_seconds", "flow", "After so long a cycle is ended.")
LAST_CYCLE = _gauge(
    "flow_last_cycle_timestamp_seconds", "flow", "When the last cycle ended, well or not."
)
LAST_SUCCESS = _gauge(
    "flow_last_success_timestamp_seconds",
    "flow",
    "When the last cycle ended that reached both clusters and in which no row failed; absent where"
    " there was none.",
)
WITHOUT_SUCCESS = _gauge(
    "flow_without_success_seconds",
    "flow",
    "Since then, or since this process started where there was none.",
)
FAILURES_IN_A_ROW = _gauge(
    "flow_failures_in_a_row",
    "flow",
    "The last so many cycles came to nothing: a cluster was away, or Spark gave up.",
    "cycles",
)
STALE = _gauge(
    "flow_stale_seconds",
    "flow",
    "How long it has not been known what consumers would read again, since no cycle reached both"
    " clusters: from two intervals without one on, the time since the last one, and all lags in"
    " records, those of the replicator too, are absent; 0 while it is known. Absent on standby.",
)
STALE_LAG = _gauge(
    "flow_stale_lag_records",
    "flow",
    "While that is not known: what consumers would have read again as of the last cycle that"
    " reached both clusters. It is at least so much now.",
)
STALE_ESTIMATE = _gauge(
    "flow_stale_lag_estimate_records",
    "flow",
    "The same with what consumers have read since at their last known rate; absent where no rate is"
    " known.",
)
OTHER_INSTANCES = _gauge(
    "flow_other_instances", "flow", "Other processes seen at work on the same flow.", "processes"
)

# --- cycles -----------------------------------------------------------------------------

CYCLES = _counter(
    "cycles",
    "flow result",
    "Cycles that have ended, by `result`: `succeeded`, `rows_failed`, `unreachable` (a cluster was"
    " away), `over_limit` (its limit ended it), `failed` (no rows for another reason).",
    "cycles",
)
CYCLES_LATE = _counter(
    "cycles_late",
    "flow",
    "Cycles that were left out since the one before took too long.",
    "cycles",
)
CYCLE_DURATION = _histogram("cycle_duration_seconds", "flow", "What cycles took.")
STAGE_DURATION = _histogram(
    "cycle_stage_duration_seconds",
    "flow stage",
    "What their stages took: `list_groups`, `read_commits`, `translate`, `settle`; `other` is"
    " Spark, state and all else. Only of cycles that came to rows.",
)
COMMIT_GAP = _gauge(
    "cycle_commit_gap_seconds",
    "flow",
    "In the last cycle the longest time between asking what a target group has and sending the"
    " commit decided on it.",
)
ROWS = _gauge(
    "cycle_rows",
    "flow outcome reason",
    "Rows of the last cycle, by outcome and reason (empty where there is none), as `cycle_finished`"
    " counts them: one a pair, and one for a group, broker or cluster that failed as a whole.",
    "rows",
)
GROUPS = _gauge(
    "groups",
    "flow outcome reason",
    "Groups by the worst outcome among their pairs and its reason: `failed`, `skipped`,"
    " `would_commit`, `committed`, `unchanged`, in this order.",
    "groups",
)
PRECISION = _gauge(
    "translated_pairs",
    "flow precision",
    "Pairs with a translation, by its precision: `exact`, `bounded`, `frontier`, `unproven`.",
    "pairs",
)

# --- what cycles cost -------------------------------------------------------------------

COMMITS = _counter("commits", "flow", "Pairs whose target group was moved.", "pairs")
POSITIONS = _counter(
    "positions",
    "flow answer",
    "Distinct positions that were asked for: `remembered`, or `looked_up` on the clusters.",
    "positions",
)
ROUNDS = _counter(
    "rounds", "flow", "Network waits of translating, one after the other.", "round trips"
)
FETCHES = _counter("fetches", "flow side", "Fetches of translating.", "fetches")
TIME_LOOKUPS = _counter(
    "time_lookups", "flow", "Lookups of a time in a log, on both sides.", "lookups"
)
READ_BYTES = _counter(
    "read_bytes", "flow side", "Bytes of record batches that fetches brought, as in the log."
)
REQUESTS = _counter("requests", "flow side", "All requests that were sent.", "requests")
RETRIES = _counter(
    "retries",
    "flow side",
    "Calls that asked a cluster again, for what had no answer or one that may change.",
    "retries",
)
THROTTLE = _counter(
    "throttle_seconds", "flow side", "Time for which brokers that throttle were left alone."
)

# --- how good what a failover would use is ----------------------------------------------


@dataclass(frozen=True, slots=True)
class Freshness:
    """The metrics of one level: of a flow, of a topic or of a group. Groups have fewer."""

    pairs: Declared
    unknown: Declared
    lag: Declared
    lag_max: Declared | None
    lag_min: Declared | None
    age_max: Declared
    age_mean: Declared | None
    age_min: Declared | None
    never: Declared
    bound: Declared
    success: Declared | None


def _freshness(level: str, labels: str, *, whole: bool) -> Freshness:
    of = "of the flow" if level == "flow" else f"of the {level}"

    def one(name: str, meaning: str, unit: str = "") -> Declared:
        return _gauge(f"{level}_{name}", labels, meaning.format(of=of), unit)

    def more(name: str, meaning: str) -> Declared | None:
        return one(name, meaning) if whole else None

    return Freshness(
        one("pairs", "Pairs {of}.", "pairs"),
        one(
            "unknown_lag_pairs",
            "Those without a usable offset on the target: none, one past the translation, or one of"
            " which nothing says how far it lies back. They are in no lag in records.",
            "pairs",
        ),
        one(
            "lag_records",
            "Translation lag: the most records that consumers read again that move over now, from"
            " what the target groups have, as of the last cycle; the sum over the pairs {of}."
            " Absent while tsoffset_flow_stale_seconds is above 0.",
        ),
        more("lag_max_records", "The same of the worst pair {of}."),
        more("lag_min_records", "The same of the best pair {of}."),
        one(
            "lag_max_seconds",
            "How old is what a failover would use, of the worst pair {of}: the time since a cycle"
            " last found, or left, the target group no further back than its translation.",
        ),
        more("lag_mean_seconds", "The same on average over the pairs {of}."),
        more("lag_min_seconds", "The same of the best pair {of}."),
        one(
            "never_in_sync_pairs",
            "Pairs whose target group was never found there; they are in no lag in seconds.",
            "pairs",
        ),
        one(
            "reread_bound_records",
            "The most records that translations make consumers read twice, the sum over the"
            " pairs {of}.",
        ),
        one(
            "last_success_timestamp_seconds",
            "When every pair {of} was last known to be in place; absent where one never was.",
        )
        if level != "flow"
        else None,
    )


OF_FLOW = _freshness("flow", "flow", whole=True)
OF_TOPIC = _freshness("topic", "flow topic", whole=True)
OF_GROUP = _freshness("group", "flow group", whole=False)
GROUPS_LEFT_OUT = _gauge(
    "groups_without_metrics",
    "flow",
    "Groups that have no metrics of their own, since they are more than `metrics.groups.max`: the"
    " first so many by name have. They are in the metrics of their topics and of the flow.",
    "groups",
)
TOPICS_LEFT_OUT = _gauge(
    "topics_without_metrics",
    "flow",
    "The same for source topics and `metrics.topics.max`.",
    "topics",
)

# --- how far the replicator is ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Replication:
    """The metrics of one level: of a flow or of a topic."""

    lag: Declared
    bound: Declared
    unknown: Declared


def _replication(level: str, labels: str) -> Replication:
    return Replication(
        _gauge(
            f"{level}_replication_lag_records",
            labels,
            "About how many records the target lacks: from the last record that is proven to be"
            " there to the source's end, less what lies behind its copy on the target. Offsets"
            " without a record (control records, compaction) count, partitions that no group reads"
            " do not.",
        ),
        _gauge(
            f"{level}_replication_lag_bound_records",
            labels,
            "At most so many: from the last record that is proven to be there to the source's end."
            " It grows where nothing has to be proven anew, however well the replicator keeps up.",
        ),
        _gauge(
            f"{level}_replication_unknown_partitions",
            labels,
            "Partitions of which something is remembered, but no record is proven to be on the"
            " target; they are in neither.",
            "partitions",
        ),
    )


REPLICATION_OF_FLOW = _replication("flow", "flow")
REPLICATION_OF_TOPIC = _replication("topic", "flow topic")
