"""A soak: two clusters, MirrorMaker 2, a daemon that is watched, and what befalls them."""

import json
import random
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.daemons import DaemonProcess, named
from tests.embedded_cluster import EmbeddedCluster, start_together
from tests.faults.stage import elect_preferred, spread_groups
from tests.producing import Contents
from tests.soak.samples import Sample, heap, java_of, live_objects, sample
from tests.traffic import Link, Traffic
from tsoffset.lab.embedded import EmbeddedBroker, MirrorMaker, flow_properties

FLOW = "A->B"
INTERVAL_SECONDS = 1
NODES = 3
PARTITIONS = 3
GROUPS = [f"billing-{number:02}" for number in range(30)]
# Members of groups at any time.
MEMBERS = 4
# By topic, as in `Link`: the most records for a partition, then a pause in seconds.
RHYTHMS: Mapping[str, tuple[int, float]] = {
    "clicks": (6, 0.5),
    "orders": (2, 0.7),
    "exports": (300, 20.0),
    "audits": (2, 9.0),
}
# By then Spark has as many jobs behind it as it remembers.
WARM_CYCLES = 60
SAMPLE_SECONDS = 5.0
PAGE_SECONDS, SCRAPE_SECONDS = 5.0, 15.0
# Java has to collect for it.
HEAPS = 30
TROUBLES = 18

Said = Callable[[str], None]


@dataclass
class Soaked:
    """What came of it: samples by time, the log's events, what was done meanwhile."""

    seconds: float
    samples: list[Sample] = field(default_factory=list)
    heaps: list[Sample] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    troubles: list[tuple[float, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    requests: dict[str, int] = field(default_factory=dict)
    # By class: how many more objects of it there were at the end than in the middle.
    more_objects: dict[str, int] = field(default_factory=dict)
    commits_seen: int = 0

    def cycles(self) -> list[dict[str, Any]]:
        """Cycles that finished."""
        return named(self.events, "cycle_finished", FLOW)


@dataclass(frozen=True, slots=True)
class TwoClusters:
    """A and B, MirrorMaker 2 between them, the topics that it copies, and the daemon's file."""

    source: EmbeddedCluster
    target: EmbeddedBroker
    contents: Contents
    mirror: MirrorMaker
    links: Sequence[Link]
    file: Path


@contextmanager
def two_clusters(
    folder: Path, *, nodes: int = 1, overrides: Mapping[str, str] | None = None
) -> Iterator[TwoClusters]:
    """All of it, running; ended with the block. The source has one node or three, which have all
    replicas; `overrides` are MirrorMaker 2's."""
    with ExitStack() as running:
        source = EmbeddedCluster(folder, name="A", nodes=nodes)
        target = EmbeddedBroker(folder / "B", name="B")
        start_together(running, source, target)
        contents = running.enter_context(closing(Contents(source.bootstrap)))
        replicas = {
            number: [(number + step) % nodes + 1 for step in range(nodes)]
            for number in range(PARTITIONS)
        }
        for topic in RHYTHMS:
            contents.create_topic(topic, replicas=replicas)
        if nodes > 1:
            spread_groups(contents)
        properties = flow_properties(
            source.bootstrap, target.bootstrap, topics=",".join(RHYTHMS), overrides=overrides
        )
        mirror = MirrorMaker(properties, folder / "mirror")
        running.callback(mirror.stop)
        mirror.start()
        for topic in RHYTHMS:
            mirror.wait_for_topic(target.bootstrap, f"A.{topic}", PARTITIONS)
        topics = {group: random.Random(group).sample(list(RHYTHMS), 2) for group in GROUPS}
        links = [
            Link(
                *(source.bootstrap, target.bootstrap, topic, f"A.{topic}", PARTITIONS),
                [group for group in GROUPS if topic in topics[group]],
                *rhythm,
            )
            for topic, rhythm in RHYTHMS.items()
        ]
        file = configuration(folder, source.bootstrap, target.bootstrap)
        yield TwoClusters(source, target, contents, mirror, links, file)


def soak(folder: Path, seconds: float, said: Said = print) -> Soaked:
    """Run for so long. Raises AssertionError where a commit skips a record or steps back."""
    found = Soaked(seconds)
    with ExitStack() as running:
        clusters = running.enter_context(two_clusters(folder, nodes=NODES))
        traffic = running.enter_context(Traffic(*clusters.links, members=MEMBERS, deletes=True))
        said("clusters and MirrorMaker 2 run")
        daemon = running.enter_context(DaemonProcess("-c", str(clusters.file), folder=folder))
        daemon.wait_for(lambda events: len(named(events, "cycle_finished", FLOW)) >= WARM_CYCLES)
        url = next(e for e in daemon.events() if e["event"] == "listening")["addresses"][0]
        said(f"the daemon runs at {url}")
        over = threading.Event()
        with ThreadPoolExecutor() as pool:
            beside = (
                pool.submit(_ask, url, over, found),
                pool.submit(_trouble, clusters, over, found, said),
            )
            try:
                _sample(daemon, folder, found, said)
            finally:
                over.set()
        for one in beside:
            one.result()
        traffic.rest()
        found.counts = dict(traffic.counts)
        found.events = daemon.events()
        said(f"{len(found.cycles())} cycles; judging {len(traffic.seen)} commits")
        clusters.mirror.start()
        found.commits_seen = traffic.judge()
        assert daemon.end() == 0
    return found


def configuration(
    folder: Path, source: str, target: str, interval_seconds: float = INTERVAL_SECONDS
) -> Path:
    """The daemon's file, with folders for all that it keeps."""
    file = folder / "tsoffset.properties"
    file.write_text(
        f"""\
clusters = A, B
A.bootstrap.servers = {source}
B.bootstrap.servers = {target}
A->B.enabled = true
groups = {GROUPS[0].partition("-")[0]}-.*
listeners = http://127.0.0.1:0
sync.group.offsets.interval.seconds = {interval_seconds:g}
refresh.groups.interval.seconds = 5
admin.timeout.ms = 10000
request.timeout.ms = 5000
state.dir = {folder}/state
history.dir = {folder}/history
spark.master = local[2]
spark.local.dir = {folder}/spark
"""
    )
    for name in ("state", "history", "spark"):
        (folder / name).mkdir()
    return file


# --- meanwhile --------------------------------------------------------------------------------


def _sample(daemon: DaemonProcess, folder: Path, found: Soaked, said: Said) -> None:
    folders = {name: folder / name for name in ("state", "history", "spark")}
    pid, started = daemon.process.pid, time.monotonic()
    java = java_of(pid)
    next_heap, first = 0.0, None
    while (at := time.monotonic() - started) < found.seconds:
        assert daemon.process.poll() is None, f"the daemon ended; see {daemon.log_path}"
        found.samples.append({"at": round(at, 1), **sample(pid, folders)})
        if at >= next_heap:
            next_heap += found.seconds / HEAPS
            objects = live_objects(java)
            found.heaps.append({"at": round(at, 1), **heap(objects)})
            said(json.dumps({**found.samples[-1], **found.heaps[-1]}))
            if at >= found.seconds / 2 and first is None:
                first = objects
        time.sleep(max(0.0, started + at + SAMPLE_SECONDS - time.monotonic()))
    last = live_objects(java)
    more = {name: last[name][0] - (first or {}).get(name, (0, 0))[0] for name in last}
    most = sorted(more.items(), key=lambda one: -one[1])[:40]
    found.more_objects = {name: count for name, count in most if count > 0}


def _ask(url: str, over: threading.Event, found: Soaked) -> None:
    """A page that is open, and one that scrapes."""
    flow = f"{url}/api/v1/flows/{quote(FLOW)}"
    page = (f"{url}/api/v1/flows", flow, f"{flow}/groups", f"{flow}/history")
    asked = 0
    while not over.wait(PAGE_SECONDS):
        urls = [
            *page,
            *([f"{url}/metrics"] if asked % (SCRAPE_SECONDS // PAGE_SECONDS) == 0 else []),
        ]
        asked += 1
        for one in urls:
            try:
                with urllib.request.urlopen(one, timeout=30) as answer:
                    answer.read()
                    result = str(answer.status)
            except OSError as error:
                result = str(error)
            found.requests[result] = found.requests.get(result, 0) + 1


def _trouble(clusters: TwoClusters, over: threading.Event, found: Soaked, said: Said) -> None:
    """Something is restarted now and then, in turns."""
    source, mirror = clusters.source, clusters.mirror

    def mirror_killed() -> None:
        mirror.kill()
        mirror.start()

    def restart(node: EmbeddedBroker) -> Callable[[], None]:
        def work() -> None:
            node.restart()
            elect_preferred(clusters.contents)

        return work

    works: Sequence[tuple[str, Callable[[], object]]] = (
        ("MirrorMaker 2 restarted", mirror.restart),
        ("node 2 of the source restarted", restart(source.nodes[1])),
        ("MirrorMaker 2 killed and started", mirror_killed),
        ("node 3 of the source restarted", restart(source.nodes[2])),
        ("target restarted", clusters.target.restart),
        ("node 1 of the source restarted", restart(source.nodes[0])),
    )
    started = time.monotonic()
    for name, work in cycle(works):
        if over.wait(found.seconds / TROUBLES):
            return
        at = time.monotonic() - started
        work()
        took = time.monotonic() - started - at
        found.troubles.append((round(at), name))
        said(f"{at:.0f} s: {name}, {took:.0f} s")
