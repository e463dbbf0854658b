"""`python -m benchmarks.peers`: a cycle beside MirrorMaker 2's checkpoint connector.

The same groups on the same brokers, in turns: MirrorMaker 2 (tasks.max = 1, its default, intervals
of a second) is started, watched and stopped. Then cycles of tsoffset run in a warm Spark session.
All target groups are deleted in between. The prototype of KIP-1292 is a model: for each group its
commits, then one partition's record after the other, then the times of all.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from kafka import KafkaAdminClient
from kafka import TopicPartition as KafkaPartition

from benchmarks import filling
from benchmarks.counters import Counts, Metrics
from benchmarks.cycles import cpu, cpu_since, cycle, session
from benchmarks.estates import (
    REMOTE,
    TOPIC,
    Clusters,
    Commits,
    Log,
    Verdict,
    forget_groups,
    settings,
    two_brokers,
)
from benchmarks.measures import cpu_seconds, in_turns, ratio_spread, rounded, spread
from benchmarks.mirror_cycles import INTERVAL, PROPERTIES
from benchmarks.mirror_cycles import Log as MirrorLog
from benchmarks.results import Result, options, run, said, shown
from tsoffset.group_sync.flow_cycle import CycleResult
from tsoffset.group_sync.state import FlowCache
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.lab.embedded import MirrorMaker
from tsoffset.model import FirstAtTime, Isolation, ReadFrom, TopicPartition
from tsoffset.records import FetchedRange

T = TypeVar("T")

# The last one with as many busy loops, like a machine of users.
SIZES = ("100x10", "1000x20", "1000x50", "1000x20+4")
QUICK = ("50x4",)
SHIFT = 1_000
# The share of the groups that commit further on, by phase.
MOVES = {"moved": 0.1, "all moved": 1.0}
PHASES = ("cold", "warm", *MOVES)
CHECKPOINTS = "A.checkpoints.internal"
# The requests for syncing groups; the rest belongs to mirroring, which continues. Only this
# benchmark commits on the source.
_ON_SOURCE = (
    *("ListGroups", "FindCoordinator", "OffsetFetch", "ListOffsets", "Fetch", "Metadata"),
)
KINDS = {
    "source": _ON_SOURCE,
    "target": (*_ON_SOURCE, "DescribeGroups", "ConsumerGroupDescribe", "OffsetCommit"),
}
# As many as make two tasks, so that both workers start.
_WARMING_GROUPS = "group-00[01].*"
_IDLE_SECONDS = 15.0
_SIZE = re.compile(r"(\d+)x(\d+)(?:\+(\d+))?")
_MODEL_GROUPS = 20


def _measure(chosen: argparse.Namespace) -> Result:
    sizes = chosen.sizes or (QUICK if chosen.quick else SIZES)
    return {
        "records": chosen.records,
        "shift": SHIFT,
        "sizes": [_size(size, chosen.records, chosen.runs) for size in sizes],
    }


def _size(size: str, records: int, runs: int) -> Result:
    groups, partitions, loops = map(int, _SIZE.fullmatch(size).groups("0"))
    said(f"{groups:,} groups, {partitions} partitions of {records:,} records, {loops} busy loops")
    log = Log(partitions, records, SHIFT)
    with tempfile.TemporaryDirectory(prefix="tsoffset-peers-") as folder:
        metrics = {name: Metrics(name, Path(folder)) for name in ("source", "target")}
        options = {name: one.java_options for name, one in metrics.items()}
        with two_brokers(java_options=options) as clusters:
            stand = _Stand(clusters, log, groups, metrics)
            stand.mirror()
            began = time.perf_counter()
            with busy(loops), session() as spark:
                session_seconds = time.perf_counter() - began
                found = in_turns(
                    {
                        "MirrorMaker 2": stand.mirror_maker,
                        "tsoffset": lambda: stand.tsoffset(spark),
                    },
                    runs,
                )
                model = stand.model()
    mirror_maker, tsoffset = found["MirrorMaker 2"], found["tsoffset"]
    return {
        "size": size,
        "groups": groups,
        "partitions": partitions,
        "busy_loops": loops,
        "pairs": groups * partitions,
        "session_seconds": rounded(session_seconds),
        "MirrorMaker 2": mirror_maker[-1],
        "tsoffset": tsoffset[-1],
        "model": model,
        "ratios": _ratios(mirror_maker, tsoffset, model, partitions),
        "seconds": {
            name: {phase: spread(one[phase]["seconds"] for one in all_runs) for phase in PHASES}
            for name, all_runs in found.items()
        },
    }


def _worked(mirror: MirrorMaker) -> float:
    """The processor time of MirrorMaker's process."""
    return 0.0 if mirror.pid is None else cpu_seconds(mirror.pid)


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """This many processes that never idle, during the block."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(loops)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@dataclass(frozen=True, slots=True)
class _Spell:
    """What the brokers served between two moments."""

    began: float
    ended: float
    spent: Mapping[str, Counts]


class _Stand:
    """The two clusters, mirrored, with their groups."""

    def __init__(
        self, clusters: Clusters, log: Log, groups: int, metrics: Mapping[str, Metrics]
    ) -> None:
        self._clusters = clusters
        self._folder = clusters.folder
        self._source = settings("A", clusters.source)
        self._target = settings("B", clusters.target)
        self._log = log
        self._commits = log.commits(groups)
        self._metrics = metrics
        clusters.flow_file({"emit.offset-syncs.enabled": "true"}, name="copy")
        self.configuration = clusters.flow_file(PROPERTIES, name="sync")

    def mirror(self) -> None:
        """Let MirrorMaker 2 copy a topic whose start is deleted, and record its offset syncs."""
        source, target = self._clusters.source, self._clusters.target
        log = self._log
        filling.topic(source, TOPIC, log.partitions)
        numbers = range(log.partitions)
        count = log.records // log.batches.records
        start_ms = filling.recent_ms(log.records)
        filling.fill(source, TOPIC, numbers, log.batches, count, start_ms)
        with closing(KafkaAdminClient(bootstrap_servers=source)) as admin:
            admin.delete_records({KafkaPartition(TOPIC, number): SHIFT for number in numbers})
        self._clusters.commit(self._commits)
        with MirrorMaker(self._folder / "copy.properties", self._folder, name="copy") as mirror:
            mirror.wait_until_mirrored(source, target, {TOPIC: REMOTE}, seconds=1200)

    def mirror_maker(self) -> dict[str, Any]:
        """MirrorMaker 2 from its start: all groups for the first time, idle, and after some and
        then all of them have moved."""
        self._reset()
        _, target = self._clusters.brokers
        mirror = MirrorMaker(
            self._folder / "sync.properties", self._folder, name=f"sync-{time.monotonic_ns()}"
        )
        try:
            log = MirrorLog(mirror)
            before, started = self._counts(), time.time()
            mirror.start()
            looked = log.first_look()
            worked = _worked(mirror)
            last, then = log.last_commit_when_idle(target, looked, 600, self._counts)
            found = {
                "cold": {
                    "seconds": rounded(last - looked),
                    "seconds_from_start": rounded(last - started),
                    "cpu_seconds": rounded(_worked(mirror) - worked),
                    **self._judged(self._commits),
                    **_requests(_since(before, then)),
                }
            }
            worked = _worked(mirror)
            _, at_rest = self._spell(lambda: time.sleep(_IDLE_SECONDS))
            worked = _worked(mirror) - worked
            found["warm"] = {
                **self._mirror_maker_cycle(log, at_rest, worked),
                **self._judged(self._commits),
            }
            now, last = self._commits, at_rest.ended
            for phase, share in MOVES.items():
                worked = _worked(mirror)
                before = self._counts()
                moved, moved_at = self._move(now, share), time.time()
                now = now | moved
                last, then = log.last_commit_when_idle(target, last, 600, self._counts)
                found[phase] = {
                    "seconds": rounded(last - moved_at),
                    "cpu_seconds": rounded(_worked(mirror) - worked),
                    **self._judged(moved),
                    **_requests(_since(before, then)),
                }
        finally:
            mirror.stop()
        self._move_back()
        shown("MirrorMaker 2", {phase: one["seconds"] for phase, one in found.items()})
        return found

    def _mirror_maker_cycle(self, log: MirrorLog, at_rest: _Spell, worked: float) -> dict[str, Any]:
        """Its work in a cycle without changes: the checkpoint task's reading of the groups and the
        jobs of a sync that it logs. Both read each group's commits once, which tells their
        number."""
        cycles = {
            name: counts.requests["OffsetFetch"] / len(self._commits)
            for name, counts in at_rest.spent.items()
        }
        walk = max(0.0, (at_rest.ended - at_rest.began) / cycles["source"] - INTERVAL)
        return {
            "seconds": rounded(walk + log.sync_seconds(at_rest.began)),
            "cpu_seconds": rounded(worked / cycles["source"]),
            **_requests(at_rest.spent, cycles),
        }

    def tsoffset(self, spark: Any) -> dict[str, Any]:
        """Cycles of tsoffset over the same."""
        self._reset()
        cache = FlowCache()
        # Spark ends workers that are idle for a minute; this starts them again, with connections.
        cycle(spark, self.configuration, groups=_WARMING_GROUPS)
        found = {"cold": self._our_cycle(spark, cache)}
        found["cold"] |= self._judged(self._commits)
        found["warm"] = self._our_cycle(spark, cache)
        found["warm"] |= self._judged(self._commits)
        now = self._commits
        for phase, share in MOVES.items():
            moved = self._move(now, share)
            now = now | moved
            found[phase] = self._our_cycle(spark, cache)
            found[phase] |= self._judged(moved)
        self._move_back()
        shown("tsoffset", {phase: one["seconds"] for phase, one in found.items()})
        return found

    def _our_cycle(self, spark: Any, cache: FlowCache) -> dict[str, Any]:
        def one() -> tuple[CycleResult, Mapping[str, float]]:
            worked = cpu()
            result = cycle(spark, self.configuration, commit=True, cache=cache)
            return result, cpu_since(worked)

        (result, worked), spell = self._spell(one)
        cost = {**asdict(result.cost), "positions": result.positions, **worked}
        return {"seconds": rounded(result.seconds), **cost, **_requests(spell.spent)}

    def model(self) -> dict[str, Any]:
        """A KIP-1292 prototype on a sample of the groups, one after the other: its commits; the
        batch before each, one partition after the other, because a fetch of 1 kB answers for one
        alone; and the times of these records on the target, in one request."""
        names = list(self._commits)
        some = names[:: max(1, len(names) // _MODEL_GROUPS)][:_MODEL_GROUPS]
        with KafkaCluster(self._source) as source, KafkaCluster(self._target) as target:

            def walk(group: str) -> None:
                source.committed([group], require_stable=False)
                lookups = []
                for place, offset in self._commits[group].items():
                    request = ReadFrom(place, max(offset - 1, SHIFT), max_bytes=1)
                    found = source.read([request], Isolation.READ_UNCOMMITTED)[request]
                    assert isinstance(found, FetchedRange)
                    time_ms = found.records[0].timestamp_ms
                    assert time_ms is not None
                    lookups.append(FirstAtTime(TopicPartition(REMOTE, place.partition), time_ms))
                target.first_at_times(lookups, Isolation.READ_UNCOMMITTED)

            walk(some[0])
            began = time.perf_counter()
            for group in some:
                walk(group)
            each = (time.perf_counter() - began) / len(some)
        pairs = len(names) * self._log.partitions
        return {"seconds": rounded(each * len(names)), "fetches": pairs, "lookups": pairs}

    def _reset(self) -> None:
        target = self._clusters.target
        forget_groups(target, list(self._commits))
        with closing(KafkaAdminClient(bootstrap_servers=target)) as admin:
            if CHECKPOINTS in admin.list_topics():
                admin.delete_topics([CHECKPOINTS])

    def _move(self, commits: Commits, share: float) -> Commits:
        """Move the committed offsets of a share of the groups forward."""
        moved = self._log.moved(commits, share)
        self._clusters.commit(moved)
        return moved

    def _move_back(self) -> None:
        self._clusters.commit(self._commits)

    def _judged(self, commits: Commits) -> dict[str, int]:
        """What the target has of these commits."""
        return asdict(Verdict.of(commits, filling.committed(self._target, commits), SHIFT))

    def _spell(self, work: Callable[[], T]) -> tuple[T, _Spell]:
        """What the work gives, and what the brokers served meanwhile."""
        before, began = self._counts(), time.time()
        found = work()
        now, ended = self._counts(), time.time()
        return found, _Spell(began, ended, _since(before, now))

    def _counts(self) -> dict[str, Counts]:
        with ThreadPoolExecutor() as threads:
            found = threads.map(Metrics.read, self._metrics.values())
            return dict(zip(self._metrics, found, strict=True))


def _since(before: Mapping[str, Counts], now: Mapping[str, Counts]) -> dict[str, Counts]:
    return {name: counts.since(before[name]) for name, counts in now.items()}


def _requests(
    spent: Mapping[str, Counts], cycles: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """Requests by kind, and bytes sent, of each cluster; of one cycle where there were several."""
    times = cycles or dict.fromkeys(spent, 1.0)
    return {
        "requests": {
            name: {
                kind: round(number / times[name])
                for kind, number in counts.of_kinds(*KINDS[name]).items()
            }
            for name, counts in spent.items()
        },
        "bytes": {name: round(counts.bytes_out / times[name]) for name, counts in spent.items()},
    }


def _total(requests: Mapping[str, Mapping[str, int]], but: Sequence[str] = ()) -> int:
    return sum(number for of in requests.values() for kind, number in of.items() if kind not in but)


def _ratios(
    mirror_maker: Sequence[Result], tsoffset: Sequence[Result], model: Result, partitions: int
) -> dict[str, Any]:
    """tsoffset compared with MirrorMaker 2: below 1 is less. MirrorMaker 2's fetches belong to
    mirroring."""

    def seconds(phase: str) -> dict[str, Any]:
        return ratio_spread(
            [one[phase]["seconds"] for one in tsoffset],
            [one[phase]["seconds"] for one in mirror_maker],
        )

    cold = tsoffset[-1]["cold"]
    return {
        "cold": seconds("cold"),
        "cold_from_start": ratio_spread(
            [one["cold"]["seconds"] for one in tsoffset],
            [one["cold"]["seconds_from_start"] for one in mirror_maker],
        ),
        "warm": seconds("warm"),
        **{phase.replace(" ", "_"): seconds(phase) for phase in MOVES},
        **{
            f"{phase.replace(' ', '_')}_over_cold": ratio_spread(
                [one[phase]["seconds"] for one in tsoffset],
                [one["cold"]["seconds"] for one in tsoffset],
            )
            for phase in MOVES
        },
        "warm_requests": ratio_spread(
            [_total(one["warm"]["requests"]) for one in tsoffset],
            [_total(one["warm"]["requests"], but=("Fetch", "Metadata")) for one in mirror_maker],
        ),
        "model_over_cold": rounded(
            model["seconds"] / spread(one["cold"]["seconds"] for one in tsoffset)["median"]
        ),
        "fetches_per_position": rounded(cold["source_fetches"] / cold["positions"]),
        "lookups_per_partition": rounded(cold["lookups"] / partitions),
    }


if __name__ == "__main__":
    parser = options("peers", __doc__)
    parser.add_argument("--sizes", nargs="+", default=None, help="groups x partitions + busy loops")
    parser.add_argument("--records", type=int, default=20_000, help="records of each partition")
    # A size takes minutes.
    parser.set_defaults(runs=3)
    run("peers", parser, _measure)
