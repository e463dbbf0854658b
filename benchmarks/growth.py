"""`python -m benchmarks.growth`: time and memory by the size of the estate.

Three series, each without a cache and once more with everything cached:

- positions: more and more groups of one topic on real brokers, all at different offsets;
- groups: more and more groups on real brokers that have all read the same records;
- dataflow: an estate of up to 65,000 groups and 2,500 partitions with generated clusters: the time
  and memory of the driver and Spark.

It takes a quarter of an hour on two quiet cores; so no size runs more than three times, and none of
the dataflow more than twice.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import generated
from benchmarks.cycles import cpu, cpu_since, cycle, forget_peaks, peaks_mb, session
from benchmarks.estates import TOPIC, Commits, Log, exact_rows, flow_file, two_brokers
from benchmarks.generated import Sizes
from benchmarks.measures import exponent, in_turns, rounded, spread
from benchmarks.results import Result, options, run, said, shown
from tsoffset.config.loading import Configuration
from tsoffset.group_sync.state import FlowCache
from tsoffset.model import TopicPartition

SHIFT = 1_000
POSITIONS = (1_000, 10_000, 30_000, 100_000)
GROUPS = (100, 1_000, 10_000)
DATAFLOW = (6_500, 20_000, 65_000)
SERIES = ("positions", "groups", "dataflow")
MOST_RUNS = {"positions": 3, "groups": 3, "dataflow": 2}
# Each group has 10 partitions. With a partition for every 26 groups, each partition has 260 groups.
_EACH = 10
_GROUPS_FOR_A_PARTITION = 26
# Groups of every size; and rows that no single task gets.
_FEW = "group-00000.|of-[0-9]+-0000."
_MANY_ROWS = 1_000_000
_SPREAD = (
    *("seconds", "driver_cpu", "java_cpu", "worker_cpu", "cpu_seconds"),
    *("driver_mb", "worker_mb"),
)


def _measure(chosen: argparse.Namespace) -> Result:
    quick = chosen.quick
    series = chosen.series or (("positions", "dataflow") if quick else SERIES)
    sizes = {
        "positions": chosen.positions or ((500, 8_000) if quick else POSITIONS),
        "groups": chosen.groups or ((100, 1_600) if quick else GROUPS),
        "dataflow": chosen.dataflow or ((650, 6_500) if quick else DATAFLOW),
    }
    measures = {"positions": _positions, "groups": _groups, "dataflow": _dataflow}
    found = {
        name: measures[name](sizes[name], min(chosen.runs, MOST_RUNS[name])) for name in series
    }
    exponents = _exponents(found)
    # Times are reported, but on a shared machine they vary too much to be guarded.
    guarded = {name: value for name, value in exponents.items() if not name.endswith("_seconds")}
    cpu_alone = {name: value for name, value in exponents.items() if name.endswith("cpu_seconds")}
    return {"series": found, "exponents": exponents, "ratios": guarded | cpu_alone}


def _positions(sizes: Sequence[int], runs: int) -> list[Result]:
    """Groups of 100 partitions, all at different offsets."""
    partitions = 100
    each = max(sizes) // partitions
    log = Log(partitions, max(20_000, 10 * each + SHIFT), SHIFT)
    step = (log.records - SHIFT) // each

    def commits(size: int) -> Commits:
        return {
            f"of-{size}-{number:05}": {
                TopicPartition(TOPIC, partition): SHIFT
                + step * (number * each * partitions // size)
                for partition in range(partitions)
            }
            for number in range(size // partitions)
        }

    return _on_brokers(log, sizes, runs, commits)


def _groups(sizes: Sequence[int], runs: int) -> list[Result]:
    """Groups of ten partitions, a third at the end and the others at 500 offsets in all."""
    log = Log(10, 20_000, SHIFT)
    places = list(log.commits(500, seed=7).values())

    def commits(size: int) -> Commits:
        return {f"of-{size}-{n:05}": places[n % len(places)] for n in range(size)}

    return _on_brokers(log, sizes, runs, commits)


def _on_brokers(
    log: Log, sizes: Sequence[int], runs: int, commits: Callable[[int], Commits]
) -> list[Result]:
    with two_brokers() as clusters:
        clusters.write(log)
        for size in sizes:
            clusters.commit(commits(size))
        configuration = clusters.flow_file()
        works = {
            str(size): partial(_twice, configuration, f"of-{size}-.*", SHIFT) for size in sizes
        }
        return _sizes(works, runs)


def _dataflow(sizes: Sequence[int], runs: int) -> list[Result]:
    """A partition for every 26 groups; each group has 10 of them."""
    with tempfile.TemporaryDirectory(prefix="tsoffset-growth-") as folder:
        works = {}
        for groups in sizes:
            each = Sizes(groups, groups // _GROUPS_FOR_A_PARTITION, _EACH, settled=False)
            works[str(groups)] = partial(_generated, Path(folder), each)
        return _sizes(works, runs)


def _generated(folder: Path, sizes: Sizes) -> Result:
    settled = Sizes(sizes.groups, sizes.partitions, sizes.each, settled=True)
    first, then = (
        flow_file(folder, "a:9092", "b:9092", {generated.SIZES: each.text()}, name=name)
        for name, each in (("first", sizes), ("then", settled))
    )
    return _twice(first, ".*", generated.SHIFT, then=then, connect=generated.connect, commit=True)


def _twice(
    configuration: Configuration,
    groups: str,
    shift: int,
    *,
    then: Configuration | None = None,
    **how: Any,
) -> Result:
    """A cycle without a cache and one with everything cached, in a separate session."""
    with session() as spark:
        # Starts the workers, and both forms of a cycle: in one task, and in several.
        for rows in (1, _MANY_ROWS):
            few = FlowCache(rows=rows)
            cycle(spark, configuration, groups=_FEW, cache=few, **how)
        cache = FlowCache()
        found: Result = {}
        for name, flow in (("cold", configuration), ("warm", then or configuration)):
            forget_peaks()
            before = cpu()
            result = cycle(spark, flow, groups=groups, cache=cache, **how)
            # At once: Spark ends workers that are idle for a minute, and the check takes long.
            spent = cpu_since(before) | peaks_mb()
            assert exact_rows(result.rows, shift) == len(result.rows)
            found |= {
                "pairs": len(result.rows),
                "partitions": len({(row.source_topic, row.partition) for row in result.rows}),
                "positions": result.positions,
                name: {
                    **asdict(result.cost),
                    "seconds": result.seconds,
                    **spent,
                },
            }
    shown(groups, {name: rounded(found[name]["seconds"]) for name in ("cold", "warm")})
    return found


def _sizes(works: dict[str, Callable[[], Result]], runs: int) -> list[Result]:
    found = in_turns(works, runs)
    said(f"  {len(found)} sizes, {runs} runs of each")
    return [
        {
            "size": int(size),
            **{key: all_runs[-1][key] for key in ("pairs", "positions", "partitions")},
            **{
                phase: {
                    **all_runs[-1][phase],
                    **{key: spread(one[phase][key] for one in all_runs) for key in _SPREAD},
                }
                for phase in ("cold", "warm")
            },
        }
        for size, all_runs in found.items()
    ]


def _exponents(found: dict[str, list[Result]]) -> Result:
    """How time and memory grow with the size, as an exponent."""
    return {
        f"{series}_{phase}_{what}": exponent(
            [one["size"] for one in sizes], [one[phase][what]["median"] for one in sizes]
        )
        for series, sizes in found.items()
        for phase in ("cold", "warm")
        for what in ("seconds", "cpu_seconds", "driver_mb", "worker_mb")
    }


if __name__ == "__main__":
    parser = options("growth", __doc__)
    parser.add_argument(
        "--series", nargs="+", choices=SERIES, default=None, help="(default: all, quick no groups)"
    )
    parser.add_argument("--positions", nargs="+", type=int, default=None)
    parser.add_argument("--groups", nargs="+", type=int, default=None)
    parser.add_argument("--dataflow", nargs="+", type=int, default=None, help="groups")
    run("growth", parser, _measure)
