"""`python -m benchmarks.limit`: a raw connection and tsoffset's, in turns on one broker.

Raw: requests encoded beforehand, answers counted and dropped. tsoffset, through the adapter:
`stretch` is each place read; `record` the record found there, too, which is what a position
asks for; `all` every record of each batch decoded; `lookup` a time looked up in a partition,
eight of these a request as raw. `share_of_processor` is the processor time of client and broker
with the raw client, divided by that with tsoffset; `ratios` are its inverse. `--profile` writes
profiles of tsoffset instead.
"""

import argparse
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.limit.logs import Log, write_logs
from benchmarks.limit.profiling import profiled
from benchmarks.limit.raw import connected, exchange, fetch_frames, lookup_frames
from benchmarks.measures import cpu_seconds, in_turns, rounded
from benchmarks.results import Result, options, run, said, shown
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.lab.embedded import EmbeddedBroker
from tsoffset.model import Isolation, ReadFrom
from tsoffset.records import FetchedRange

# Many short turns, because other work on the machine changes within seconds.
_TURNS = 5
UNCOMMITTED = Isolation.READ_UNCOMMITTED
# The raw work that each is compared with.
LIMIT_OF = {
    "stretch": "raw_fetch",
    "record": "raw_fetch",
    "all": "raw_fetch",
    "lookup": "raw_lookup",
}


def main() -> None:
    parser = options("limit", __doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=None, metavar="RECORDS")
    parser.add_argument(
        "--places", type=int, default=None, help="in one turn (default: 800, quick 400)"
    )
    parser.add_argument("--seed", type=int, default=1292)
    parser.add_argument("--profile", type=Path, metavar="FOLDER", help="profile tsoffset instead")
    chosen = parser.parse_args()
    if chosen.profile is None:
        run("limit", parser, _measure)
    else:
        _profile(chosen)


def _measure(chosen: argparse.Namespace) -> Result:
    with EmbeddedBroker(name="limit") as broker:
        logs = _logs(broker, chosen)
        with (
            KafkaCluster(ClusterSettings("A", (broker.bootstrap,))) as cluster,
            connected(broker.bootstrap) as raw,
        ):
            turns = _TURNS * chosen.runs
            assert broker.pid is not None
            found = [_compare(cluster, raw, broker.pid, log, turns) for log in logs]
    return {
        "logs": found,
        "ratios": {
            f"{name}_over_raw_of_{one['batch']}": one["ratios"][name]
            for one in found
            for name in LIMIT_OF
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
    places = chosen.places or (400 if chosen.quick else 800)
    return write_logs(broker.bootstrap, batches, places, chosen.seed)


def _compare(
    cluster: KafkaCluster, raw: socket.socket, broker_pid: int, log: Log, turns: int
) -> Result:
    fetches, lookups = fetch_frames(log.reads), lookup_frames(log.lookups)
    works: dict[str, Callable[[], object]] = {
        "raw_fetch": lambda: exchange(raw, fetches),
        "stretch": lambda: cluster.read(log.reads, UNCOMMITTED),
        "record": lambda: _read_records(cluster, log.reads),
        "all": lambda: _all_records(cluster, log.reads),
        "raw_lookup": lambda: exchange(raw, lookups),
        "lookup": lambda: cluster.first_at_times(log.times, UNCOMMITTED),
    }
    counts = {name: len(log.times if "lookup" in name else log.reads) for name in works}
    timed = {name: _timed(work, broker_pid) for name, work in works.items()}
    in_turns(timed, 1)  # warms up
    taken = in_turns(timed, turns)
    # A process's time is counted in hundredths of a second, so it is summed over all turns.
    processor_us = {
        name: {
            "client": rounded(sum(turn.client for turn in of) / len(of) / counts[name] * 1e6),
            "broker": rounded(sum(turn.broker for turn in of) / len(of) / counts[name] * 1e6),
        }
        for name, of in taken.items()
    }
    both_us = {name: sum(sides.values()) for name, sides in processor_us.items()}
    result = {
        "batch": log.batch,
        "places": len(log.reads),
        "processor_us": processor_us,
        "share_of_processor": {
            name: rounded(both_us[limit] / both_us[name]) for name, limit in LIMIT_OF.items()
        },
        "ratios": {
            name: rounded(both_us[name] / both_us[limit]) for name, limit in LIMIT_OF.items()
        },
    }
    shown(f"batches of {log.batch}, share of the processor", result["share_of_processor"])
    return result


class _Turn(NamedTuple):
    """Processor seconds of this process and of the broker."""

    client: float
    broker: float


def _timed(work: Callable[[], object], broker_pid: int) -> Callable[[], _Turn]:
    def timed() -> _Turn:
        broker, client = cpu_seconds(broker_pid), time.process_time()
        work()
        return _Turn(time.process_time() - client, cpu_seconds(broker_pid) - broker)

    return timed


def _read_records(cluster: KafkaCluster, requests: Sequence[ReadFrom]) -> None:
    """Read each offset, and its record: the first at or after the offset."""
    for request, fetched in cluster.read(requests, UNCOMMITTED).items():
        assert isinstance(fetched, FetchedRange), fetched
        record = fetched.at_or_after(request.offset)
        assert record is not None
        assert record.offset == request.offset


def _all_records(cluster: KafkaCluster, requests: Sequence[ReadFrom]) -> int:
    fetched_ranges = cluster.read(requests, UNCOMMITTED).values()
    return sum(
        len(tuple(each.records)) for each in fetched_ranges if isinstance(each, FetchedRange)
    )


if __name__ == "__main__":
    main()
