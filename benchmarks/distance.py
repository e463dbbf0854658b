"""`python -m benchmarks.distance`: both clusters far away.

A cycle without a cache, over few and many source offsets, and one with a cache, with both brokers
behind proxies that delay everything. The slope of its time over the round trip is the number of
sequential network waits; it must not grow with the number of offsets.
"""

import argparse
from dataclasses import asdict
from functools import partial

from benchmarks.cycles import cycle, session
from benchmarks.estates import Log, exact_rows
from benchmarks.measures import in_turns, line, rounded, spread
from benchmarks.proxy import far_brokers
from benchmarks.results import Result, options, run, shown
from tsoffset.group_sync.state import FlowCache

SHIFT = 1_000
ROUND_TRIPS_MS = (0, 1, 20, 50, 100)
GROUPS = {"few": 10, "many": 200, "most": 1_600, "few-warm": 10, "many-warm": 200}
QUICK = {"few": 5, "many": 50, "few-warm": 5, "many-warm": 50}


def _measure(chosen: argparse.Namespace) -> Result:
    groups = QUICK if chosen.quick else GROUPS
    round_trips = chosen.round_trips or ((0, 20, 100) if chosen.quick else ROUND_TRIPS_MS)
    log = Log(chosen.partitions, 20_000, SHIFT)
    with far_brokers() as clusters, session() as spark:
        clusters.write(log)
        for name, number in groups.items():
            clusters.commit(log.commits(number, prefix=name))
        configuration = clusters.flow_file()
        found: dict[str, list[Result]] = {name: [] for name in groups}
        remembered = {name: FlowCache() for name in groups if name.endswith("warm")}

        def one(name: str, round_trip_ms: int) -> float:
            with clusters.moved_away(round_trip_ms):
                result = cycle(
                    spark,
                    configuration,
                    groups=f"{name}-\\d.*",
                    commit=name in remembered,
                    cache=remembered.get(name),
                )
            assert exact_rows(result.rows, SHIFT) == len(result.rows)
            found[name].append({"positions": result.positions, **asdict(result.cost)})
            return result.seconds

        for name in (*groups, *groups):
            one(name, 0)
        works = {f"{name} {ms}": partial(one, name, ms) for ms in round_trips for name in groups}
        seconds = in_turns(works, chosen.runs)
    tables = {}
    for name in groups:
        runs = [(ms / 1000, value) for ms in round_trips for value in seconds[f"{name} {ms}"]]
        slope, at_hand = line([x for x, _ in runs], [y for _, y in runs])
        tables[name] = {
            **found[name][-1],
            "waits": rounded(slope),
            "seconds_at_hand": rounded(at_hand),
            "seconds": {str(ms): spread(seconds[f"{name} {ms}"]) for ms in round_trips},
        }
        shown(name, {key: tables[name][key] for key in ("positions", "rounds", "waits")})
    few, many = tables["few"], tables["many"]
    return {
        "round_trips_ms": list(round_trips),
        "estates": tables,
        "ratios": {
            "waits": many["waits"],
            "waits_warm": tables["many-warm"]["waits"],
            # How much the waits grow per additional source offset.
            "waits_a_position": rounded(
                (many["waits"] - few["waits"]) / (many["positions"] - few["positions"])
            ),
        },
    }


if __name__ == "__main__":
    parser = options("distance", __doc__)
    parser.add_argument("--round-trips", nargs="+", type=int, default=None, help="milliseconds")
    parser.add_argument("--partitions", type=int, default=10)
    run("distance", parser, _measure)
