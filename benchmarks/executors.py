"""`python -m benchmarks.executors`: more workers, behind a slow network.

On two cores, more workers help only while they wait. So both brokers are behind a delay, and
batches are small: most source offsets have their own batch, so there are many small reads.
`tasks.max` limits one Spark session with four workers to one, two and all of them; then two workers
of a standalone cluster on this machine do the same.
"""

import argparse
from functools import partial

from benchmarks.cycles import cycle, session, standalone
from benchmarks.estates import Log, exact_rows
from benchmarks.filling import Batches
from benchmarks.measures import in_turns, ratio_spread, spread
from benchmarks.proxy import far_brokers
from benchmarks.results import Result, options, run, shown

SHIFT = 1_000
WORKERS = (1, 2, 4)


def _measure(chosen: argparse.Namespace) -> Result:
    groups = chosen.groups or (50 if chosen.quick else 200)
    log = Log(chosen.partitions, 20_000, SHIFT, Batches(10), Batches(20))
    with far_brokers() as clusters:
        clusters.write(log)
        clusters.commit(log.commits(groups))
        flows = {
            workers: clusters.flow_file({"tasks.max": str(workers)}, name=f"tasks-{workers}")
            for workers in WORKERS
        }
        positions: set[int] = set()

        def one(spark: object, workers: int, round_trip_ms: int) -> float:
            with clusters.moved_away(round_trip_ms):
                result = cycle(spark, flows[workers])
            assert exact_rows(result.rows, SHIFT) == len(result.rows)
            positions.add(result.positions)
            return result.seconds

        with session("local[4]") as spark:
            one(spark, 4, 0)
            works = {
                f"{workers} at {ms} ms": partial(one, spark, workers, ms)
                for ms in (0, chosen.round_trip)
                for workers in WORKERS
            }
            seconds = in_turns(works, chosen.runs)
        with standalone(clusters.folder, 2) as spark:
            one(spark, 2, 0)
            name = f"2 executors at {chosen.round_trip} ms"
            seconds |= in_turns({name: partial(one, spark, 2, chosen.round_trip)}, chosen.runs)
    far = {workers: seconds[f"{workers} at {chosen.round_trip} ms"] for workers in WORKERS}
    for name, times in seconds.items():
        shown(name, {"seconds": spread(times)["median"]})
    return {
        "groups": groups,
        "partitions": chosen.partitions,
        "positions": max(positions),
        "round_trip_ms": chosen.round_trip,
        "seconds": {name: spread(times) for name, times in seconds.items()},
        "ratios": {
            "two_over_one": ratio_spread(far[2], far[1]),
            "four_over_one": ratio_spread(far[4], far[1]),
            "standalone_over_two": ratio_spread(seconds[name], far[2]),
        },
    }


if __name__ == "__main__":
    parser = options("executors", __doc__)
    parser.add_argument("--round-trip", type=int, default=100, help="milliseconds")
    parser.add_argument("--groups", type=int, default=None, help="(default: 200, quick 50)")
    parser.add_argument("--partitions", type=int, default=20)
    run("executors", parser, _measure)
