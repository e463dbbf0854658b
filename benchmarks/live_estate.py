"""`python -m benchmarks.live_estate`: a failover at random moments of a busy estate.

Producers write, 300 groups commit on 20 partitions about once a second, MirrorMaker 2 mirrors and
emits checkpoints, and `tsoffset run` syncs, both at the same interval. At random moments the
groups stop until their committed offsets on the target have been read; MirrorMaker 2's newest
checkpoints are read right after. At the end each of these offsets is judged by the content of the
records on both clusters: how many records that the group had read at that moment would be re-read,
and whether one that it had not read would be skipped. Exit status 1 where one would be.
"""

import argparse
import os
import random
import statistics
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from benchmarks import filling
from benchmarks.cycles import cpu, cpu_since
from benchmarks.estates import FLOW, REMOTE, TOPIC, settings, two_brokers
from benchmarks.measures import cpu_seconds, rounded
from benchmarks.results import Result, options, run, said, shown
from tests.copies import CopiedPartition
from tests.daemons import DaemonProcess, named
from tests.producing import Contents, numbered
from tests.soak.soaking import configuration
from tests.traffic import GroupPartition, Link, Traffic
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.lab.embedded import MirrorMaker, flow_properties
from tsoffset.model import CommittedOffset, TopicPartition
from tsoffset.replicators.checkpoints import read_checkpoints

INTERVALS = (1.0, 5.0)
GROUPS, PARTITIONS, MINUTES = 300, 20, 10.0
QUICK_GROUPS, QUICK_PARTITIONS, QUICK_MINUTES = 20, 4, 0.5
MOMENTS_PER_MINUTE = 2
# The source's log starts so many records later than the copy.
SHIFT = 1_000
# Processes have warmed up by then.
WARM_SECONDS = 45.0
# A failover may cost what the groups consumed in so many intervals.
GOAL_INTERVALS = 2
CHECKPOINTS = "A.checkpoints.internal"
# Records of the checkpoints topic that hold the newest of each group-partition: MirrorMaker 2
# emits one at each interval in which the group has moved.
_LAST_CHECKPOINTS = 10
# Above any value of the traffic.
_FIRST_VALUE = 10**12


def main() -> int:
    parser = options("live_estate", __doc__)
    parser.add_argument("--minutes", type=float, default=None, help="of each interval")
    parser.add_argument("--interval", type=float, nargs="+", default=None, help="in seconds")
    skipped = 0

    def measure(chosen: argparse.Namespace) -> Result:
        nonlocal skipped
        minutes = chosen.minutes or (QUICK_MINUTES if chosen.quick else MINUTES)
        intervals = chosen.interval or (INTERVALS[:1] if chosen.quick else INTERVALS)
        groups, partitions = (
            (QUICK_GROUPS, QUICK_PARTITIONS) if chosen.quick else (GROUPS, PARTITIONS)
        )
        found = [_at_interval(one, minutes * 60, groups, partitions) for one in intervals]
        skipped = sum(tool["skipped"] for one in found for tool in one["tools"].values())
        return {"groups": groups, "partitions": partitions, "runs": found}

    run("live_estate", parser, measure)
    return 1 if skipped else 0


class _Consumption(Traffic):
    """Producers and groups of a link that MirrorMaker 2 copies."""

    def __init__(self, link: Link, keep_seconds: float) -> None:
        super().__init__(link, at_once=len(link.groups) // 2)
        self._keep_seconds = keep_seconds
        # By group: when it read on, and to where on each partition.
        self._history: defaultdict[str, deque[tuple[float, list[int]]]] = defaultdict(deque)
        for group in link.groups:
            for number in range(link.partitions):
                self.read_to[GroupPartition(group, TOPIC, number)] = SHIFT

    def _works(self) -> Iterator[Callable[[ExitStack], None]]:
        return (work for work in super()._works() if work != self._watch)

    def _read_on(self, group: str) -> dict[TopicPartition, CommittedOffset]:
        found = super()._read_on(group)
        history, now = self._history[group], time.monotonic()
        history.append((now, [offset.offset for offset in found.values()]))
        while len(history) > 1 and history[1][0] < now - self._keep_seconds:
            history.popleft()
        return found

    def read_before(self, seconds: float) -> dict[GroupPartition, int]:
        """What each group had read so long ago, as far back as is kept."""
        limit, found = time.monotonic() - seconds, {}
        for group, history in self._history.items():
            earlier = [offsets for at, offsets in history if at <= limit]
            offsets = earlier[-1] if earlier else history[0][1]
            found |= {
                GroupPartition(group, TOPIC, number): offset
                for number, offset in enumerate(offsets)
            }
        return found


@dataclass(frozen=True, slots=True)
class _Moment:
    """What a failover would find: `read_to` on the source, each tool's offsets on the target."""

    at: float
    load: float
    seconds: float
    read_to: Mapping[GroupPartition, int]
    consumed: Mapping[GroupPartition, int]
    offsets: Mapping[str, Mapping[GroupPartition, int]]
    # The source offsets that MirrorMaker 2's newest checkpoints translate.
    translated: Mapping[GroupPartition, int]


def _at_interval(interval: float, seconds: float, groups: int, partitions: int) -> Result:
    said(f"{groups} groups x {partitions} partitions, {interval:g} s, {seconds / 60:g} minutes")
    with ExitStack() as running:
        clusters = running.enter_context(two_brokers())
        folder = clusters.folder
        source, target = clusters.source, clusters.target
        names = [f"billing-{number:03}" for number in range(groups)]
        link = Link(source, target, TOPIC, REMOTE, partitions, names)
        _prepare(link)
        traffic = running.enter_context(_Consumption(link, 2 * GOAL_INTERVALS * interval))
        mirror = running.enter_context(MirrorMaker(_mirroring(link, interval), folder / "mirror"))
        mirror.wait_for_topic(target, REMOTE, partitions)
        file = configuration(folder, source, target, interval)
        daemon = running.enter_context(DaemonProcess("-c", str(file), folder=folder))
        began = time.monotonic()
        daemon.wait_for(lambda events: bool(named(events, "cycle_finished", FLOW)))
        time.sleep(max(0.0, began + WARM_SECONDS - time.monotonic()))
        said("everything is up; measuring")
        pid, before, logged = daemon.process.pid, cpu(daemon.process.pid), len(daemon.events())
        mirrored, began = cpu_seconds(mirror.pid or 0), time.monotonic()
        moments = _moments(traffic, seconds, interval)
        took = time.monotonic() - began
        spent = {name: rounded(one / took) for name, one in cpu_since(before, pid).items()}
        mirrored = cpu_seconds(mirror.pid or 0) - mirrored
        events = daemon.events()[logged:]
        traffic.rest()
        assert daemon.end() == 0
        mirror.wait_until_mirrored(source, target, {TOPIC: REMOTE}, seconds=300)
        logs = traffic.logs()
        written = sum(len(one.written) for one in logs.values())
    found = {
        "interval_seconds": interval,
        "minutes": rounded(took / 60),
        "records_written": written,
        "load": rounded(statistics.median(one.load for one in moments)),
        "moment_seconds": rounded(statistics.median(one.seconds for one in moments)),
        "cores": spent,
        "mirror_cores": rounded(mirrored / took),
        "cycles": _cycles(events, took),
        "moments": len(moments),
        "checkpoints_behind": _distribution(
            sorted(
                one.read_to[key] - offset
                for one in moments
                for key, offset in one.translated.items()
            )
        ),
        "tools": {name: _judged(name, moments, logs) for name in ("tsoffset", "MirrorMaker 2")},
    }
    for name in ("cores", "cycles", "checkpoints_behind"):
        shown(name, found[name])
    for name, tool in found["tools"].items():
        shown(name, tool)
    return found


def _prepare(link: Link) -> None:
    """A topic that has lost its first records, so that no offset is the same on both clusters."""
    with closing(Contents(link.source)) as contents:
        contents.create_topic(TOPIC, link.partitions)
        for number in range(link.partitions):
            contents.produce(TOPIC, numbered(SHIFT, first=_FIRST_VALUE), partition=number)
            contents.delete_records(TOPIC, SHIFT, partition=number)


def _mirroring(link: Link, interval: float) -> dict[str, str]:
    """MirrorMaker 2 with checkpoints, but without its sync of committed offsets."""
    overrides = {
        "emit.offset-syncs.enabled": "true",
        "emit.checkpoints.enabled": "true",
        "emit.checkpoints.interval.seconds": f"{interval:g}",
        "sync.group.offsets.enabled": "false",
        # Connect's default. Flushed each second, checkpoints fell further behind.
        "B.offset.flush.interval.ms": "60000",
        "refresh.groups.interval.seconds": "5",
        "groups": "billing-.*",
    }
    return flow_properties(link.source, link.target, topics=TOPIC, overrides=overrides)


# --- at random moments ------------------------------------------------------------------------


def _moments(traffic: _Consumption, seconds: float, interval: float) -> list[_Moment]:
    chance, began = random.Random(23), time.monotonic()
    count = max(4, round(MOMENTS_PER_MINUTE * seconds / 60))
    found: list[_Moment] = []
    for due in sorted(chance.uniform(0, seconds) for _ in range(count)):
        time.sleep(max(0.0, began + due - time.monotonic()))
        found.append(_moment(traffic, interval, time.monotonic() - began))
        said(f"  {found[-1].at:.0f} s: offsets of both tools read in {found[-1].seconds:.2f} s")
    time.sleep(max(0.0, began + seconds - time.monotonic()))
    return found


def _moment(traffic: _Consumption, interval: float, at: float) -> _Moment:
    """Read what both tools offer; no group reads on until tsoffset's offsets are read."""
    (link,) = traffic.links
    target = settings("B", link.target)
    with traffic.still:
        began = time.monotonic()
        read_to = {key: traffic.read_to[key] for key in sorted(traffic.read_to)}
        earlier = traffic.read_before(GOAL_INTERVALS * interval)
        committed = filling.committed(target, link.groups)
        of_tsoffset = {
            GroupPartition(group, TOPIC, place.partition): offset
            for group, of in committed.items()
            for place, offset in of.items()
        }
        took = time.monotonic() - began
    # Up to the end that the topic has now.
    last = _LAST_CHECKPOINTS * len(link.groups) * link.partitions
    with KafkaCluster(target) as cluster:
        topic = read_checkpoints(
            cluster, CHECKPOINTS, wanted=lambda _: True, committed={}, last=last
        )
    assert not topic.failures, topic.failures[0]
    checkpoints = {
        GroupPartition(key.group, TOPIC, key.target.partition): one
        for key, one in topic.newest.items()
    }
    consumed = {key: offset - earlier[key] for key, offset in read_to.items()}
    offsets = {
        "tsoffset": of_tsoffset,
        "MirrorMaker 2": {key: one.target_offset for key, one in checkpoints.items()},
    }
    translated = {key: one.source_offset for key, one in checkpoints.items()}
    return _Moment(at, os.getloadavg()[0], took, read_to, consumed, offsets, translated)


# --- afterwards -------------------------------------------------------------------------------


def _judged(
    name: str, moments: Sequence[_Moment], logs: Mapping[tuple[str, int], CopiedPartition]
) -> dict[str, Any]:
    """A tool's offsets at all moments. A group-partition without one reads everything again."""
    again: list[int] = []
    skipped = missing = within = 0
    sums, shares = [], []
    for moment in moments:
        before = len(again)
        for place, read_to in moment.read_to.items():
            offset = moment.offsets[name].get(place)
            missing += offset is None
            log = logs[place.topic, place.partition]
            skipped += bool(log.skipped(read_to, offset or 0))
            again.append(len(log.reread(read_to, offset or 0)))
            within += again[-1] <= moment.consumed[place]
        sums.append(sum(again[before:]))
        shares.append(sums[-1] / max(1, sum(moment.consumed.values())))
    again.sort()
    return {
        "group_partitions": len(again),
        "skipped": skipped,
        "without_offset": missing,
        "within_goal": rounded(within / len(again)),
        "reread": {**_distribution(again), "mean": rounded(statistics.mean(again))},
        "reread_of_a_failover": _distribution(sorted(sums)),
        "over_consumed": _distribution(sorted(map(rounded, shares))),
    }


def _distribution(ordered: Sequence[float]) -> dict[str, float]:
    """Median, 95th percentile and highest of sorted values."""
    return {
        "median": rounded(statistics.median(ordered)),
        "p95": ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))],
        "high": ordered[-1],
    }


def _cycles(events: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    finished = named(events, "cycle_finished", FLOW)
    starts = [datetime.fromisoformat(one["timestamp"]).timestamp() for one in finished]
    apart = [later - one for one, later in pairwise(starts)]
    length = _distribution(sorted(rounded(one["seconds"]) for one in finished))
    return {
        "per_minute": rounded(60 * len(finished) / seconds),
        "seconds": length,
        "apart": _distribution(sorted(map(rounded, apart))),
        "left_out": sum(one["cycles"] for one in named(events, "cycles_left_out", FLOW)),
        "failed": len(named(events, "cycle_failed", FLOW)),
    }


if __name__ == "__main__":
    sys.exit(main())
