"""`python -m benchmarks.fixed_cost`: a cycle in which nothing is to be done.

Ten groups that have not moved, on `local[2]`, beside the smallest Spark job there is (one row
through one Python task) and one round trip to each cluster; in turns. Then the same after the
workers have rested for longer than Spark lets them live.
"""

import argparse
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from benchmarks import filling
from benchmarks.cycles import cycle, session
from benchmarks.estates import Log, flow_file, settings, two_brokers
from benchmarks.measures import in_turns, ratio_spread, rounded, seconds_of, spread
from benchmarks.results import Result, options, run, shown
from tsoffset.kafka import KafkaCluster
from tsoffset.model import OutcomeKind
from tsoffset.spark import FlowMemory

# Spark ends Python workers that had nothing to do for a minute.
_REST_SECONDS = 75


def main(arguments: list[str] | None = None) -> None:
    parser = options("fixed_cost", __doc__)
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--partitions", type=int, default=10)
    run("fixed_cost", parser, _measure, arguments)


def _measure(chosen: argparse.Namespace) -> Result:
    runs = 4 * chosen.runs
    log = Log(chosen.partitions, 2_000)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tsoffset-fixed-"))
        source, target = stack.enter_context(two_brokers(Path(folder)))
        log.write(source.bootstrap, target.bootstrap)
        clusters = [
            stack.enter_context(KafkaCluster(settings(alias, broker.bootstrap)))
            for alias, broker in (("A", source), ("B", target))
        ]
        filling.commit(settings("A", source.bootstrap), log.commits(chosen.groups))
        configuration = flow_file(Path(folder), source.bootstrap, target.bootstrap)
        spark = stack.enter_context(session())
        memory = FlowMemory()

        def nothing_to_do() -> float:
            result = cycle(spark, configuration, commit=True, memory=memory)
            assert {row.outcome for row in result.rows} == {OutcomeKind.UNCHANGED}
            return result.seconds

        def smallest() -> float:
            return seconds_of(lambda: (_smallest_job(spark), *(_ask(one) for one in clusters)))

        cycle(spark, configuration, commit=True, memory=memory)
        works = {"cycle": nothing_to_do, "smallest": smallest}
        in_turns(works, 3)
        found = in_turns(works, runs)
        rested = []
        if not chosen.quick:
            for _ in range(chosen.runs):
                time.sleep(_REST_SECONDS)
                rested.append(nothing_to_do())
    ratio = ratio_spread(found["cycle"], found["smallest"])
    shown("nothing to do", {"ratio": ratio["median"], "after a rest": [rounded(s) for s in rested]})
    return {
        "groups": chosen.groups,
        "partitions": chosen.partitions,
        "seconds": {
            **{name: spread(times) for name, times in found.items()},
            **({"after_rest": spread(rested)} if rested else {}),
        },
        "ratios": {"cycle_over_smallest": ratio},
    }


def _smallest_job(spark: object) -> None:
    frame = spark.createDataFrame(pa.table({"number": [1]}))
    assert frame.mapInArrow(lambda batches: batches, frame.schema).toArrow().num_rows == 1


def _ask(cluster: KafkaCluster) -> None:
    assert cluster.topics(["orders"]) or cluster.topics(["A.orders"])


if __name__ == "__main__":
    main()
