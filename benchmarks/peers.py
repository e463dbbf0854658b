"""`python -m benchmarks.peers`: a cycle beside MirrorMaker 2's checkpoint connector.

The same groups on the same brokers, in turns: MirrorMaker 2 (tasks.max = 1, its default,
intervals of a second) is started, watched and stopped, then cycles of ours run in a Spark
session that is up. All target groups are deleted in between. What an earlier prototype of
KIP-1292 would need is modelled: one fetch and one time lookup a pair, one after the other.
"""

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient
from kafka import TopicPartition as KafkaPartition

from benchmarks import filling
from benchmarks.counters import Counts, Metrics
from benchmarks.cycles import cpu, cpu_since, cycle, session
from benchmarks.estates import (
    REMOTE,
    TOPIC,
    Commits,
    Log,
    Verdict,
    flow_file,
    forget_groups,
    settings,
    two_brokers,
)
from benchmarks.measures import in_turns, ratio_spread, rounded, spread
from benchmarks.mirror_cycles import INTERVAL, PROPERTIES, settle
from benchmarks.mirror_cycles import Log as MirrorLog
from benchmarks.results import Result, options, run, said, shown
from tsoffset.config import Configuration
from tsoffset.embedded import MirrorMaker
from tsoffset.kafka import KafkaCluster
from tsoffset.model import FirstAtTime, Isolation, ReadFrom, Stretch, TopicPartition
from tsoffset.spark import CycleResult, FlowMemory

SIZES = ("100x10", "1000x20", "1000x50")
QUICK = ("50x4",)
SHIFT = 1_000
MOVED = 0.1
CHECKPOINTS = "A.checkpoints.internal"
# What syncing groups asks for; the rest belongs to mirroring, which goes on.
KINDS = (
    *("ListGroups", "DescribeGroups", "ConsumerGroupDescribe", "FindCoordinator"),
    *("OffsetFetch", "OffsetCommit", "ListOffsets", "Fetch", "Metadata"),
)
_IDLE_SECONDS = 15.0
_MODEL_PAIRS = 400


def main(arguments: list[str] | None = None) -> None:
    parser = options("peers", __doc__)
    parser.add_argument("--sizes", nargs="+", default=None, help="groups x partitions")
    parser.add_argument("--records", type=int, default=20_000, help="records of each partition")
    run("peers", parser, _measure, arguments)


def _measure(chosen: argparse.Namespace) -> Result:
    sizes = chosen.sizes or (QUICK if chosen.quick else SIZES)
    return {
        "records": chosen.records,
        "shift": SHIFT,
        "sizes": [_size(size, chosen.records, chosen.runs) for size in sizes],
    }


def _size(size: str, records: int, runs: int) -> Result:
    groups, partitions = map(int, size.split("x"))
    said(f"{groups:,} groups, {partitions} partitions of {records:,} records")
    log = Log(partitions, records, SHIFT)
    with tempfile.TemporaryDirectory(prefix="tsoffset-peers-") as folder:
        metrics = {name: Metrics(name, Path(folder)) for name in ("source", "target")}
        options = {name: one.java_options for name, one in metrics.items()}
        with two_brokers(Path(folder), java_options=options) as (source, target):
            stand = _Stand(Path(folder), source.bootstrap, target.bootstrap, log, groups, metrics)
            stand.mirror()
            with session() as spark:
                found = in_turns(
                    {"MirrorMaker 2": stand.theirs, "tsoffset": lambda: stand.ours(spark)}, runs
                )
                model = stand.model()
    return {
        "size": size,
        "groups": groups,
        "partitions": partitions,
        "pairs": groups * partitions,
        "theirs": found["MirrorMaker 2"][-1],
        "ours": found["tsoffset"][-1],
        "model": model,
        "ratios": _ratios(found["MirrorMaker 2"], found["tsoffset"], model),
        "seconds": {
            name: {
                phase: spread(one[phase]["seconds"] for one in all_runs)
                for phase in ("cold", "warm", "moved")
            }
            for name, all_runs in found.items()
        },
    }


class _Stand:
    """The two clusters, mirrored, with their groups."""

    def __init__(
        self,
        folder: Path,
        source: str,
        target: str,
        log: Log,
        groups: int,
        metrics: Mapping[str, Metrics],
    ) -> None:
        self._folder = folder
        self._source, self._target = settings("A", source), settings("B", target)
        self._log = log
        self._commits = log.commits(groups)
        self._metrics = metrics
        addresses = (folder, source, target)
        flow_file(*addresses, {"emit.offset-syncs.enabled": "true"}, name="copy")
        self.configuration: Configuration = flow_file(*addresses, PROPERTIES, name="sync")

    def mirror(self) -> None:
        """Let MirrorMaker 2 copy a topic whose start is gone, and note its offset syncs."""
        (source,), (target,) = self._source.bootstrap_servers, self._target.bootstrap_servers
        log = self._log
        filling.topic(source, TOPIC, log.partitions)
        numbers = range(log.partitions)
        count = log.records // log.batches.records
        start_ms = filling.recent_ms(log.records)
        filling.fill(source, TOPIC, numbers, log.batches, count, start_ms)
        with closing(KafkaAdminClient(bootstrap_servers=source)) as admin:
            admin.delete_records({KafkaPartition(TOPIC, number): SHIFT for number in numbers})
        filling.commit(self._source, self._commits)
        with MirrorMaker(self._folder / "copy.properties", self._folder, name="copy") as mirror:
            mirror.wait_until_mirrored(source, target, {TOPIC: REMOTE}, seconds=1200)

    def theirs(self) -> dict[str, Any]:
        """MirrorMaker 2 from its start on: all groups for the first time, at rest, and some of
        them moved."""
        self._reset()
        path = self._folder / "sync.properties"
        before = self._counts()
        started = time.time()
        with MirrorMaker(path, self._folder, name=f"sync-{time.monotonic_ns()}") as mirror:
            log = MirrorLog(mirror)
            cold = settle(self._target, self._commits, {}, 600)
            spent = self._since(before)
            found = {
                "cold": {
                    "seconds": rounded(cold.last_change - log.first_words()),
                    "seconds_from_start": rounded(cold.last_change - started),
                    **self._judged(cold.offsets),
                    **_requests(spent, 1),
                },
                "warm": self._their_idle(log),
            }
            moved = self._move()
            began = time.time()
            settled = settle(self._target, moved, _only(cold.offsets, moved), 120)
            work = self._their_idle(log, since=began)
            found["moved"] = {
                "seconds": rounded(settled.last_change - began),
                "work_seconds": work["seconds"],
                **_verdict(moved, settled.offsets),
            }
        self._move_back()
        shown("MirrorMaker 2", {phase: one["seconds"] for phase, one in found.items()})
        return found

    def _their_idle(self, log: MirrorLog, since: float | None = None) -> dict[str, Any]:
        """Its work in a cycle in which nothing has to be done: the checkpoint task's walk over
        the groups, by how often the broker was asked, and the jobs that it logs."""
        before, began = self._counts(), time.time()
        time.sleep(_IDLE_SECONDS)
        ended = time.time()
        spent = self._since(before)
        walks = spent["source"].requests["OffsetFetch"] / len(self._commits)
        walk = max(0.0, (ended - began) / walks - INTERVAL)
        syncs = log.cycles(began if since is None else since)
        assert syncs, "MirrorMaker did not sync"
        return {
            "seconds": rounded(walk + log.cycle_seconds(began if since is None else since)),
            "requests": {
                "source": _each(spent["source"], walks),
                "target": _each(spent["target"], log.cycles(began)),
            },
            "bytes": {
                "source": round(spent["source"].bytes_out / walks),
                "target": round(spent["target"].bytes_out / log.cycles(began)),
            },
        }

    def ours(self, spark: Any) -> dict[str, Any]:
        """Cycles of ours over the same."""
        self._reset()
        memory = FlowMemory()
        # Spark ends workers that rest for a minute; this brings them back, with connections.
        cycle(spark, self.configuration)
        found = {"cold": self._our_cycle(spark, memory)}
        found["cold"] |= self._judged(filling.committed(self._target, self._commits))
        found["warm"] = self._our_cycle(spark, memory)
        moved = self._move()
        found["moved"] = self._our_cycle(spark, memory)
        found["moved"] |= _verdict(moved, filling.committed(self._target, moved))
        self._move_back()
        shown("tsoffset", {phase: one["seconds"] for phase, one in found.items()})
        return found

    def _our_cycle(self, spark: Any, memory: FlowMemory) -> dict[str, Any]:
        before, worked = self._counts(), cpu()
        result: CycleResult = cycle(spark, self.configuration, commit=True, memory=memory)
        cost = {**asdict(result.cost), "positions": result.positions, **cpu_since(worked)}
        spent = self._since(before)
        return {"seconds": rounded(result.seconds), **cost, **_requests(spent, 1)}

    def model(self) -> dict[str, Any]:
        """A KIP-1292 prototype's walk, on a sample: the batch before each position, then the
        time of its record, one request after the other."""
        pairs = [
            (place, offset)
            for offsets in self._commits.values()
            for place, offset in offsets.items()
        ]
        some = pairs[:: max(1, len(pairs) // _MODEL_PAIRS)][:_MODEL_PAIRS]
        with KafkaCluster(self._source) as source, KafkaCluster(self._target) as target:

            def one(place: TopicPartition, offset: int) -> None:
                request = ReadFrom(place, max(offset - 1, SHIFT), max_bytes=1)
                found = source.read([request], Isolation.READ_UNCOMMITTED)[request]
                assert isinstance(found, Stretch)
                time_ms = found.records[0].timestamp_ms
                assert time_ms is not None
                copy = TopicPartition(REMOTE, place.partition)
                target.first_at_times([FirstAtTime(copy, time_ms)], Isolation.READ_UNCOMMITTED)

            one(*some[0])
            began = time.perf_counter()
            for place, offset in some:
                one(place, offset)
            each = (time.perf_counter() - began) / len(some)
        return {"seconds": rounded(each * len(pairs)), "fetches": len(pairs), "lookups": len(pairs)}

    def _reset(self) -> None:
        (target,) = self._target.bootstrap_servers
        forget_groups(target, list(self._commits))
        with closing(KafkaAdminClient(bootstrap_servers=target)) as admin:
            if CHECKPOINTS in admin.list_topics():
                admin.delete_topics([CHECKPOINTS])

    def _move(self) -> Commits:
        moved = self._log.moved(self._commits, MOVED)
        filling.commit(self._source, moved)
        return moved

    def _move_back(self) -> None:
        filling.commit(self._source, self._commits)

    def _judged(self, offsets: Mapping[str, Mapping[TopicPartition, int]]) -> dict[str, int]:
        return _verdict(self._commits, offsets)

    def _counts(self) -> dict[str, Counts]:
        return {name: one.read() for name, one in self._metrics.items()}

    def _since(self, before: Mapping[str, Counts]) -> dict[str, Counts]:
        return {name: now.since(before[name]) for name, now in self._counts().items()}


def _only(
    found: Mapping[str, dict[TopicPartition, int]], groups: Commits
) -> dict[str, dict[TopicPartition, int]]:
    return {group: found[group] for group in groups}


def _verdict(commits: Commits, found: Mapping[str, Mapping[TopicPartition, int]]) -> dict[str, int]:
    verdict = Verdict.of(commits, found, SHIFT)
    return {
        "pairs": verdict.pairs,
        "synced": verdict.synced,
        "exact": verdict.exact,
        "reread": verdict.reread,
    }


def _requests(spent: Mapping[str, Counts], cycles: int) -> dict[str, Any]:
    return {
        "requests": {name: _each(counts, cycles) for name, counts in spent.items()},
        "bytes": {name: round(counts.bytes_out / cycles) for name, counts in spent.items()},
    }


def _each(counts: Counts, cycles: float) -> dict[str, int]:
    return {kind: round(number / cycles) for kind, number in counts.only(*KINDS).items()}


def _total(requests: Mapping[str, Mapping[str, int]], but: Sequence[str] = ()) -> int:
    return sum(number for of in requests.values() for kind, number in of.items() if kind not in but)


def _ratios(theirs: Sequence[Result], ours: Sequence[Result], model: Result) -> dict[str, Any]:
    """Ours against theirs: below 1 is less of it. Their fetches are mirroring's."""

    def seconds(phase: str) -> dict[str, Any]:
        return ratio_spread(
            [one[phase]["seconds"] for one in ours], [one[phase]["seconds"] for one in theirs]
        )

    cold = ours[-1]["cold"]
    return {
        "cold": seconds("cold"),
        "cold_from_start": ratio_spread(
            [one["cold"]["seconds"] for one in ours],
            [one["cold"]["seconds_from_start"] for one in theirs],
        ),
        "warm": seconds("warm"),
        "moved": seconds("moved"),
        "warm_requests": ratio_spread(
            [_total(one["warm"]["requests"]) for one in ours],
            [_total(one["warm"]["requests"], but=("Fetch", "Metadata")) for one in theirs],
        ),
        "model_over_cold": rounded(model["seconds"] / ours[-1]["cold"]["seconds"]),
        "fetches_per_position": rounded(cold["source_fetches"] / cold["positions"]),
    }


if __name__ == "__main__":
    main()
