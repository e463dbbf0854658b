"""`python -m benchmarks.fixed_cost`: a cycle without any work.

Ten groups that have not moved, on `local[2]`, compared with the smallest Spark job and one round
trip to each cluster, in turns. One row goes through one Python task: as a byte, the least that
Spark can do, and in a table (`mapInArrow`), the least with data frames. Then the cycle after a
pause that is longer than Spark keeps idle workers, in a session that keeps them, as `run` does, and
in one that does not.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.cycles import cycle
from benchmarks.estates import Log, settings, two_brokers
from benchmarks.measures import in_turns, ratio_spread, seconds_of, spread
from benchmarks.results import Result, options, run, shown
from tests.translating import silence_logs
from tsoffset.group_sync.state import FlowCache
from tsoffset.history.views import map_in_arrow
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import OutcomeKind
from tsoffset.spark.session import spark_session

_MASTER = {"spark.master": "local[2]"}
# Spark ends Python workers that were idle for a minute.
_REST_SECONDS = 75
_RESTS = 2


def _measure(chosen: argparse.Namespace) -> Result:
    runs = 4 * chosen.runs
    log = Log(chosen.partitions, 2_000)
    with ExitStack() as stack:
        clusters = stack.enter_context(two_brokers())
        clusters.write(log)
        connected = [
            stack.enter_context(KafkaCluster(settings(alias, bootstrap)))
            for alias, bootstrap in (("A", clusters.source), ("B", clusters.target))
        ]
        clusters.commit(log.commits(chosen.groups))
        configuration = clusters.flow_file()
        silence_logs()

        def idle(spark: SparkSession, cache: FlowCache) -> float:
            result = cycle(spark, configuration, commit=True, cache=cache)
            assert {row.outcome for row in result.rows} == {OutcomeKind.UNCHANGED}
            return result.seconds

        def rested(*, kept: bool) -> list[float]:
            cache, times = FlowCache(), []
            with spark_session(_MASTER, keep_workers=kept) as spark:
                cycle(spark, configuration, commit=True, cache=cache)
                for _ in range(_RESTS):
                    time.sleep(_REST_SECONDS)
                    times.append(idle(spark, cache))
            return times

        cache = FlowCache()
        with spark_session(_MASTER) as spark:
            cycle(spark, configuration, commit=True, cache=cache)
            works = {
                "cycle": lambda: idle(spark, cache),
                "smallest": lambda: seconds_of(lambda: _with_trips(_byte_job, spark, connected)),
                "small_table": lambda: seconds_of(
                    lambda: _with_trips(_table_job, spark, connected)
                ),
            }
            in_turns(works, 3)
            found = in_turns(works, runs)
        if not chosen.quick:
            found |= {"after_rest": rested(kept=True), "after_rest_ended": rested(kept=False)}
    ratios = {
        "cycle_over_smallest": ratio_spread(found["cycle"], found["smallest"]),
        "cycle_over_small_table": ratio_spread(found["cycle"], found["small_table"]),
    }
    shown("nothing to do", {name: ratio["median"] for name, ratio in ratios.items()})
    shown("seconds", {name: spread(times)["median"] for name, times in found.items()})
    return {
        "groups": chosen.groups,
        "partitions": chosen.partitions,
        "seconds": {name: spread(times) for name, times in found.items()},
        "ratios": ratios,
    }


def _with_trips(
    job: Callable[[SparkSession], None], spark: SparkSession, clusters: Sequence[KafkaCluster]
) -> None:
    job(spark)
    for cluster in clusters:
        _ask(cluster)


def _byte_job(spark: SparkSession) -> None:
    row = spark.sparkContext.parallelize([b"1"], 1)
    assert row.mapPartitions(lambda rows: rows).collect() == [b"1"]


def _table_job(spark: SparkSession) -> None:
    frame = spark.createDataFrame(pa.table({"number": [1]}))
    assert map_in_arrow(frame, lambda batches: batches, frame.schema).toArrow().num_rows == 1


def _ask(cluster: KafkaCluster) -> None:
    assert cluster.topics(["orders"]) or cluster.topics(["A.orders"])


if __name__ == "__main__":
    parser = options("fixed_cost", __doc__)
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--partitions", type=int, default=10)
    run("fixed_cost", parser, _measure)
