"""`python -m benchmarks.limit`: the raw limit and ours, in one run on one broker."""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.limit.logs import Log, write_logs
from benchmarks.limit.profiling import profiled
from benchmarks.limit.raw import exchange, fetch_frames, lookup_frames
from tsoffset.embedded import EmbeddedBroker
from tsoffset.kafka import KafkaCluster
from tsoffset.model import Isolation, ReadFrom, Stretch
from tsoffset.settings import ClusterSettings

UNCOMMITTED = Isolation.READ_UNCOMMITTED


def main(arguments: list[str] | None = None) -> None:
    options = _options().parse_args(arguments)
    with EmbeddedBroker(name="limit") as broker:
        logs = write_logs(broker.bootstrap, options.batches, options.places, options.seed)
        with KafkaCluster(ClusterSettings("A", (broker.bootstrap,))) as cluster:
            if options.profile is not None:
                for log in logs:
                    stats = options.profile / f"batches-of-{log.batch}.txt"
                    profiled(cluster, lambda log=log: _read(cluster, log.reads), stats)
                    print(f"wrote {stats}")
                return
            host, port = broker.bootstrap.split(":")
            for log in logs:
                _compare(cluster, host, int(port), log, options.runs)


def _compare(cluster: KafkaCluster, host: str, port: int, log: Log, runs: int) -> None:
    fetches, lookups = fetch_frames(log.reads), lookup_frames(log.lookups)
    distinct = {each for layer in log.lookups for each in layer}
    works: dict[str, Callable[[], object]] = {
        "raw fetch": lambda: exchange(host, port, fetches),
        "fetch": lambda: _read(cluster, log.reads),
        "fetch to stretches": lambda: cluster.read(log.reads, UNCOMMITTED),
        "fetch, all records": lambda: _all_records(cluster, log.reads),
        "raw lookup": lambda: exchange(host, port, lookups),
        "lookup": lambda: cluster.first_at_times(distinct, UNCOMMITTED),
    }
    seconds: dict[str, list[float]] = {name: [] for name in works}
    of_ours: dict[str, list[float]] = {name: [] for name in works}
    for run in range(runs + 1):
        for name, work in works.items():
            began, worked = time.perf_counter(), time.process_time()
            work()
            if run:  # the first one warms up
                seconds[name].append(time.perf_counter() - began)
                of_ours[name].append(time.process_time() - worked)
    print(f"batches of {log.batch} records, {len(log.reads):,} places, {runs} runs")
    for name, found in seconds.items():
        count = len(distinct) if "lookup" in name else len(log.reads)
        limit = seconds["raw lookup" if "lookup" in name else "raw fetch"]
        ratios = sorted(raw / ours for raw, ours in zip(limit, found, strict=True))
        print(
            f"  {name:20} {count / statistics.median(found):8,.0f}/s"
            f"   of the limit: median {statistics.median(ratios):.2f},"
            f" {ratios[0]:.2f} to {ratios[-1]:.2f};"
            f" {statistics.median(of_ours[name]) / count * 1e6:3.0f} us of our processor time each"
        )


def _read(cluster: KafkaCluster, requests: Sequence[ReadFrom]) -> int:
    """Each place read, and its record found: the first at or after the offset."""
    found = 0
    for request, stretch in cluster.read(requests, UNCOMMITTED).items():
        assert isinstance(stretch, Stretch), stretch
        record = stretch.at_or_after(request.offset)
        found += record is not None and record.offset == request.offset
    assert found == len(requests)
    return found


def _all_records(cluster: KafkaCluster, requests: Sequence[ReadFrom]) -> int:
    stretches = cluster.read(requests, UNCOMMITTED).values()
    return sum(len(tuple(each.records)) for each in stretches if isinstance(each, Stretch))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limit", description=__doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 10, 100], metavar="RECORDS")
    parser.add_argument("--places", type=int, default=4_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1292)
    parser.add_argument("--profile", type=Path, metavar="DIRECTORY", help="profile ours instead")
    return parser


if __name__ == "__main__":
    main()
