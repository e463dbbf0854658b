"""`python -m benchmarks.guard`: compare the ratios with the committed baseline.

Runs the benchmarks in their quick form and compares what does not depend on the machine: counts
with counts, and times with times of the same run. Never seconds. `--update` writes the results as
the new baseline.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.results import load, said

BASELINE = Path(__file__).parent / "baseline.json"
BENCHMARKS = ("limit", "bytes_read", "fixed_cost", "distance", "memory", "growth", "peers")

# The number of runs that are enough; counts, memory and processor time hardly differ between runs.
_RUNS = {"bytes_read": 1, "memory": 1, "growth": 1}

# The tolerance, by the kind of ratio.
_COUNTS, _TIMES, _MEMORY = 1.10, 1.75, 1.25
_TOLERANCES = {
    "limit": _TIMES,
    "bytes_read": _COUNTS,
    "fixed_cost": _TIMES,
    "distance": _TIMES,
    "memory": _MEMORY,
    "growth": 1.5,
    "peers": _TIMES,
}
_OF_COUNTS = ("warm_requests", "fetches_per_position", "lookups_per_partition")
_MORE_IS_BETTER = ("model_over_cold",)
# MirrorMaker 2's times of these include up to two of its waits of a second, which are most of a
# quick run. tsoffset's own times are compared with its cold cycle.
_NOT_COMPARED = ("moved", "all_moved")
# Ratios below this are ignored.
_NEXT_TO_NOTHING = 0.05


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard", description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the baseline instead")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS))
    parser.add_argument("--runs", type=int, default=3, help="runs of each, where times differ")
    parser.add_argument("--baseline", type=Path, default=BASELINE)
    chosen = parser.parse_args(arguments)
    known = json.loads(chosen.baseline.read_text()) if chosen.baseline.exists() else {}
    if not known and not chosen.update:
        said(f"there is no {chosen.baseline}; make one on a quiet machine with --update")
        return 2
    with tempfile.TemporaryDirectory(prefix="tsoffset-guard-") as folder:
        found: dict[str, float] = {}
        for name in chosen.only:
            said(f"== {name}")
            command = [sys.executable, "-m", f"benchmarks.{name}", "--quick"]
            runs = str(min(chosen.runs, _RUNS.get(name, chosen.runs)))
            subprocess.run([*command, "--runs", runs, "--results", folder], check=True)
            found |= {f"{name}.{key}": value for key, value in ratios(load(name, Path(folder)))}
    if chosen.update:
        chosen.baseline.write_text(json.dumps(known | found, indent=1, sort_keys=True) + "\n")
        said(f"wrote {chosen.baseline}")
        return 0
    return report(known, found)


def ratios(result: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    """The ratios of a result, by name; the median of several runs."""
    parts = [("", result)]
    sizes = result.get("sizes")
    if isinstance(sizes, list):
        parts = [(f"{size['size']}.", size) for size in sizes]
    for prefix, part in parts:
        found = part["ratios"]
        assert isinstance(found, Mapping)
        for name, value in found.items():
            median = value["median"] if isinstance(value, Mapping) else value
            yield prefix + name, float(median)


def report(known: Mapping[str, float], found: Mapping[str, float]) -> int:
    """Print each ratio and its baseline; returns 1 if one exceeds its tolerance."""
    worse = [name for name, value in found.items() if is_worse(name, value, known.get(name))]
    for name, value in sorted(found.items()):
        was = known.get(name)
        mark = "WORSE" if name in worse else "new" if was is None else ""
        print(
            f"{name:48} {value:10.4g}  was {'-' if was is None else format(was, '.4g'):>10}  {mark}"
        )
    if worse:
        said(f"{len(worse)} of {len(found)} ratios are worse than {BASELINE.name} allows")
    return 1 if worse else 0


def is_worse(name: str, value: float, was: float | None) -> bool:
    """True if the ratio exceeds the baseline by more than its tolerance."""
    benchmark, _, ratio = name.partition(".")
    short = ratio.rpartition(".")[2]
    if was is None or short in _NOT_COMPARED:
        return False
    tolerance = _COUNTS if short in _OF_COUNTS else _TOLERANCES[benchmark]
    if short in _MORE_IS_BETTER:
        return value < was / tolerance
    return value > max(was, 0.0) * tolerance + _NEXT_TO_NOTHING


if __name__ == "__main__":
    sys.exit(main())
