"""`python -m benchmarks.limit`: the raw limit of a connection and ours, in turns on one broker.

Raw: requests encoded beforehand, answers counted and thrown away. Ours, through the adapter:
`stretch` is each place read; `record` the record found there, too, which is what a position
asks for; `all` every record of each batch decoded; `lookup` a time looked up in a partition,
eight of these a request as raw. `--profile` writes a profile of ours for each log instead.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.limit.logs import Log, write_logs
from benchmarks.limit.profiling import profiled
from benchmarks.limit.raw import exchange, fetch_frames, lookup_frames
from benchmarks.measures import in_turns, ratio_spread, rounded, spread
from benchmarks.results import Result, options, run, said, shown
from tsoffset.embedded import EmbeddedBroker
from tsoffset.kafka import KafkaCluster
from tsoffset.model import Isolation, ReadFrom, Stretch
from tsoffset.settings import ClusterSettings

UNCOMMITTED = Isolation.READ_UNCOMMITTED
# What is held against which raw work.
OURS = {"stretch": "raw_fetch", "record": "raw_fetch", "all": "raw_fetch", "lookup": "raw_lookup"}


def main(arguments: list[str] | None = None) -> None:
    parser = options("limit", __doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=None, metavar="RECORDS")
    parser.add_argument("--places", type=int, default=None, help="(default: 4000, quick 1000)")
    parser.add_argument("--seed", type=int, default=1292)
    parser.add_argument("--profile", type=Path, metavar="FOLDER", help="profile ours instead")
    chosen = parser.parse_args(arguments)
    if chosen.profile is None:
        run("limit", parser, _measure, arguments)
    else:
        _profile(chosen)


def _measure(chosen: argparse.Namespace) -> Result:
    with EmbeddedBroker(name="limit") as broker:
        logs = _logs(broker, chosen)
        with KafkaCluster(ClusterSettings("A", (broker.bootstrap,))) as cluster:
            found = [_compare(cluster, broker.bootstrap, log, chosen.runs) for log in logs]
    return {
        "logs": found,
        "ratios": {
            f"{name}_over_raw_of_{one['batch']}": one["ratios"][name]
            for one in found
            for name in OURS
        },
    }


def _profile(chosen: argparse.Namespace) -> None:
    with EmbeddedBroker(name="limit") as broker:
        logs = _logs(broker, chosen)
        with KafkaCluster(ClusterSettings("A", (broker.bootstrap,))) as cluster:
            for log in logs:
                works: dict[str, Callable[[], object]] = {
                    "reads": lambda log=log: cluster.read(log.reads, UNCOMMITTED),
                    "lookups": lambda log=log: cluster.first_at_times(log.times, UNCOMMITTED),
                }
                for name, work in works.items():
                    path = chosen.profile / f"{name}-in-batches-of-{log.batch}.txt"
                    profiled(cluster, work, path)
                    said(f"wrote {path}")


def _logs(broker: EmbeddedBroker, chosen: argparse.Namespace) -> list[Log]:
    batches = chosen.batches or ([10] if chosen.quick else [1, 10, 100])
    places = chosen.places or (1_000 if chosen.quick else 4_000)
    return write_logs(broker.bootstrap, batches, places, chosen.seed)


def _compare(cluster: KafkaCluster, bootstrap: str, log: Log, runs: int) -> Result:
    host, _, port = bootstrap.rpartition(":")
    fetches, lookups = fetch_frames(log.reads), lookup_frames(log.lookups)
    works: dict[str, Callable[[], object]] = {
        "raw_fetch": lambda: exchange(host, int(port), fetches),
        "stretch": lambda: cluster.read(log.reads, UNCOMMITTED),
        "record": lambda: _found(cluster, log.reads),
        "all": lambda: _all_records(cluster, log.reads),
        "raw_lookup": lambda: exchange(host, int(port), lookups),
        "lookup": lambda: cluster.first_at_times(log.times, UNCOMMITTED),
    }
    counts = {name: len(log.times if "lookup" in name else log.reads) for name in works}
    timed = {name: _timed(work) for name, work in works.items()}
    in_turns(timed, 1)  # warms up
    taken = in_turns(timed, runs)
    seconds = {name: [wall for wall, _ in runs] for name, runs in taken.items()}
    result = {
        "batch": log.batch,
        "places": len(log.reads),
        "a_second": {
            name: spread(rounded(counts[name] / one) for one in of) for name, of in seconds.items()
        },
        "our_processor_us": {
            name: spread(rounded(busy / counts[name] * 1e6) for _, busy in runs)
            for name, runs in taken.items()
        },
        "share": {name: ratio_spread(seconds[raw], seconds[name]) for name, raw in OURS.items()},
        "ratios": {name: ratio_spread(seconds[name], seconds[raw]) for name, raw in OURS.items()},
    }
    shown(f"batches of {log.batch}", _medians(result["share"]))
    return result


def _timed(work: Callable[[], object]) -> Callable[[], tuple[float, float]]:
    """Seconds that pass, and seconds of our own processor time in them."""

    def timed() -> tuple[float, float]:
        began, worked = time.perf_counter(), time.process_time()
        work()
        return time.perf_counter() - began, time.process_time() - worked

    return timed


def _medians(shares: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return {name: share["median"] for name, share in shares.items()}


def _found(cluster: KafkaCluster, requests: Sequence[ReadFrom]) -> None:
    """Each place read, and its record found: the first at or after the offset."""
    for request, stretch in cluster.read(requests, UNCOMMITTED).items():
        assert isinstance(stretch, Stretch), stretch
        record = stretch.at_or_after(request.offset)
        assert record is not None
        assert record.offset == request.offset


def _all_records(cluster: KafkaCluster, requests: Sequence[ReadFrom]) -> int:
    stretches = cluster.read(requests, UNCOMMITTED).values()
    return sum(len(tuple(each.records)) for each in stretches if isinstance(each, Stretch))


if __name__ == "__main__":
    main()
