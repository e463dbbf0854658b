"""The queries of `tsoffset history` in Spark SQL, over `tsoffset.history.views`."""

import logging
from enum import StrEnum

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from tsoffset.errors import HistoryFailed, UsageError
from tsoffset.spark.jobs import SPARK_ERRORS, cause


class HistoryQuery(StrEnum):
    """The queries that need no SQL; docs/commands.md describes their answers."""

    STUCK = "stuck"
    WORST = "worst"
    ACCURACY = "accuracy"


_TEXTS = {
    HistoryQuery.STUCK: """
WITH numbered AS (
  SELECT flow, instance, cycle, row_number() OVER (PARTITION BY flow ORDER BY ended_at) AS number,
    count(*) OVER (PARTITION BY flow) AS total
  FROM cycles
), moves AS (
  SELECT pairs.*, numbered.number,
    row_number() OVER pair = 1 OR NOT on_target <=> lag(on_target) OVER pair AS target_moved,
    row_number() OVER pair = 1 OR NOT source_offset <=> lag(source_offset) OVER pair
      AS source_moved
  FROM pairs LEFT JOIN numbered USING (flow, instance, cycle)
  WINDOW pair AS (PARTITION BY flow, `group`, source_topic, `partition` ORDER BY since)
), still AS (
  SELECT flow, `group`, source_topic, `partition`,
    max_by(struct(*), since) AS latest,
    max(if(target_moved, since, NULL)) AS target_since,
    -- A row from before the first cycle in the views has not changed in any of them.
    coalesce(max(if(target_moved, number, NULL)), 0) AS target_number,
    coalesce(max(if(source_moved, number, NULL)), 0) AS source_number
  FROM moves GROUP BY flow, `group`, source_topic, `partition`
)
SELECT still.flow, still.`group`, still.source_topic, still.`partition`,
  counted.total - target_number AS cycles, counted.total - source_number AS source_cycles,
  target_since AS since, latest.source_offset, latest.target_offset, latest.on_target,
  latest.outcome, latest.reason, latest.lag_records, latest.message
FROM still
JOIN (SELECT flow, max(total) AS total FROM numbered GROUP BY flow) counted USING (flow)
WHERE latest.until IS NULL AND counted.total - target_number >= :cycles
  AND (latest.outcome IN ('skipped', 'failed') OR latest.on_target < latest.target_offset)
ORDER BY cycles DESC, flow, `group`, source_topic, `partition`
""",
    HistoryQuery.WORST: """
SELECT flow, `group`, source_topic, `partition`, max(reread_bound) AS reread_bound,
  max_by(since, reread_bound) AS since, max_by(until, reread_bound) AS until,
  max_by(precision, reread_bound) AS precision,
  max_by(source_offset, reread_bound) AS source_offset,
  max_by(target_offset, reread_bound) AS target_offset, max(lag_records) AS lag_records_max
FROM pairs GROUP BY flow, `group`, source_topic, `partition` HAVING max(reread_bound) > 0
ORDER BY reread_bound DESC, flow, `group`, source_topic, `partition`
""",
    HistoryQuery.ACCURACY: """
SELECT flow, date(ended_at) AS day, count(*) AS cycles, count_if(NOT reached) AS failed_cycles,
  round(100 * sum(exact) / nullif(sum(exact + bounded + frontier + unproven), 0), 3)
    AS exact_percent,
  round(avg(exact)) AS exact, round(avg(bounded)) AS bounded, round(avg(frontier)) AS frontier,
  round(avg(unproven)) AS unproven, max(reread_bound) AS reread_bound_max,
  max(lag_records_max) AS lag_records_max, round(max(lag_seconds_max), 1) AS lag_seconds_max
FROM cycles GROUP BY flow, day ORDER BY day DESC, flow
""",
}


def answer(session: SparkSession, question: HistoryQuery, *, cycles: int, limit: int) -> pa.Table:
    """At most `limit` rows, from the views `cycles` and `pairs`. `cycles`: after so many without a
    change, a group-partition is stuck. Raises HistoryFailed."""
    named = {"limit": limit} | ({"cycles": cycles} if question is HistoryQuery.STUCK else {})
    return _query(session, f"{_TEXTS[question]} LIMIT :limit", named)


def own_answer(session: SparkSession, sql: str) -> pa.Table:
    """All rows of a user's query on the same views. Raises HistoryFailed, and UsageError if Spark
    does not accept the query."""
    # This logger would write both tracebacks to standard error.
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        return _query(session, sql, {})
    except AnalysisException as error:
        raise UsageError(
            f"--sql: {cause(error)}; the views are `cycles` and `pairs`, and "
            "--sql 'DESCRIBE pairs' shows the columns of one"
        ) from error


def _query(session: SparkSession, sql: str, named: dict[str, int]) -> pa.Table:
    try:
        return session.sql(sql, args=named).toArrow()
    except AnalysisException:
        raise
    except SPARK_ERRORS as error:
        raise HistoryFailed(
            f"query history: Spark failed: {cause(error)}; select less with --since, --flow or"
            " --groups, or give Spark more memory with the spark.* keys"
        ) from error
