"""`python -m benchmarks.soak`: the memory of a daemon after half an hour, and whether it grows.

A source of three nodes, a target, MirrorMaker 2, 30 groups that come and go, and `tsoffset run`
with REST API, metrics and history, a cycle a second; now and then a broker or MirrorMaker 2 is
restarted. Exit status 1 if something grew, or if a commit skipped a record or went back.
"""

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from benchmarks.measures import rounded, spread
from benchmarks.results import Result, options, run, said, shown
from tests.soak.samples import Sample
from tests.soak.soaking import GROUPS, INTERVAL_SECONDS, NODES, Soaked, soak
from tests.soak.verdict import TOLERANCES, growing, growths

MINUTES, QUICK_MINUTES = 30.0, 3.0
MEMORY = ("driver_mb", "java_mb", "workers_mb", "heap_mb")


def main() -> int:
    parser = options("soak", __doc__)
    growing_then: list[str] = []
    run("soak", parser, lambda chosen: _measure(chosen, growing_then))
    for sentence in growing_then:
        said(sentence)
    return 1 if growing_then else 0


def _measure(chosen: argparse.Namespace, growing_then: list[str]) -> Result:
    minutes = QUICK_MINUTES if chosen.quick else MINUTES
    with tempfile.TemporaryDirectory(prefix="tsoffset-soak-") as folder:
        found = soak(Path(folder), minutes * 60, said)
    grown = {**growths(found.samples), **growths(found.heaps)}
    growing_then += growing(grown)
    seconds = [cycle["seconds"] for cycle in found.cycles()]
    shown("cycles", {"finished": len(seconds), **spread(seconds)})
    shown("requests", found.requests)
    if growing_then:
        shown("more objects at the end than in the middle", found.more_objects)
    return {
        "minutes": minutes,
        "interval_seconds": INTERVAL_SECONDS,
        "source_nodes": NODES,
        "groups": len(GROUPS),
        "cycles": len(seconds),
        "cycle_seconds": spread(seconds),
        "events": dict(Counter(event["event"] for event in found.events).most_common()),
        "commits_judged": found.commits_seen,
        "traffic": found.counts,
        "requests": found.requests,
        "troubles": Counter(name for _, name in found.troubles),
        "grown": {
            name: {
                **{key: rounded(value) for key, value in asdict(one).items()},
                "may_grow": rounded(TOLERANCES[name].allowed(one)) if name in TOLERANCES else None,
            }
            for name, one in grown.items()
        },
        "minutes_of": {name: _by_minute(found, name) for name in MEMORY},
        "most_more_objects": found.more_objects,
    }


def _by_minute(found: Soaked, name: str) -> dict[str, dict[str, float]]:
    """The samples of each minute: their median, the lowest and the highest."""
    samples: list[Sample] = found.samples if name in found.samples[0] else found.heaps
    minutes: dict[int, list[float]] = {}
    for one in samples:
        minutes.setdefault(int(one["at"] // 60), []).append(one[name])
    return {str(minute): spread(values) for minute, values in minutes.items()}


if __name__ == "__main__":
    sys.exit(main())
