"""Four clusters, two flows in one daemon, and those who use them meanwhile."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from kafka import TopicPartition
from kafka.errors import KafkaError

from tests.daemons import DaemonProcess
from tests.embedded_cluster import EmbeddedCluster, start_together
from tests.faults.proxy import Proxy
from tests.processes import descendants, is_java, own_mounts, runs
from tests.producing import Contents
from tests.soak.samples import Sample, held, java_of
from tests.traffic import Link, Traffic
from tests.waiting import TIMEOUT_SECONDS, wait_until
from tsoffset.lab.embedded import EmbeddedBroker
from tsoffset.lab.embedded.ports import HOST, free_port

THREE, SINGLE = "A->B", "C->D"
INTERVAL_SECONDS = {THREE: 2, SINGLE: 4}
# What the daemon calls the target, where it has names of its own.
NAME = "broker.tsoffset.test"
GROUPS = 6
# In ElectLeaders.
_PREFERRED = 0

CONFIGURATION = f"""\
clusters = A, B, C, D
A->B.enabled = true
C->D.enabled = true
groups = billing-.*
sync.group.offsets.interval.seconds = {INTERVAL_SECONDS[THREE]}
C->D.sync.group.offsets.interval.seconds = {INTERVAL_SECONDS[SINGLE]}
refresh.groups.interval.seconds = 10
spark.master = local[1]
"""
# On a fast machine. Where it takes longer than `START_SECONDS` to start the brokers, a healthy
# cycle takes longer too: its limits grow by the same factor, up to `MOST_FACTOR`, with which a hung
# cycle still ends while a test waits, and a hung DNS lookup outlasts `admin.timeout.ms`.
LIMITS = {"cycle.limit.seconds": 40, "admin.timeout.ms": 6_000, "request.timeout.ms": 3_000}
START_SECONDS, MOST_FACTOR = 20.0, 4.0

Events = list[dict[str, Any]]


@dataclass
class FaultTestbed:
    """All that a fault can befall. `a` has three nodes; `proxies` are those of B and C."""

    folder: Path
    a: EmbeddedCluster
    singles: Mapping[str, EmbeddedBroker]
    proxies: Mapping[str, Proxy]
    contents: Mapping[str, Contents]
    traffic: Mapping[str, Traffic]
    daemon: DaemonProcess
    api: str
    at_first: Sample | None = None

    @property
    def state(self) -> Path:
        """The daemon's `state.dir`, a small disk of its own where it has a namespace."""
        return Path(f"/proc/{self.daemon.process.pid}/root") / str(self.folder / "state")[1:]

    @property
    def java(self) -> int:
        """Spark's Java."""
        return java_of(self.daemon.process.pid)

    def held(self) -> Sample:
        """What the daemon holds now, and how many processes come from it."""
        pid = self.daemon.process.pid
        return {**held(pid), "processes": len(descendants(pid))}

    def workers(self) -> list[int]:
        """Spark's Python workers; the first one starts the others. Empty while Java is started
        again."""
        java = filter(is_java, descendants(self.daemon.process.pid))
        return sorted(pid for one in java for pid in descendants(one) if runs(pid))

    def leads(self, node: int) -> None:
        """Let each replica set's first node lead again, and wait until `node` leads something."""
        topic = self.traffic[THREE].links[0].topic

        def leads() -> bool:
            # A client that has met the fault may take long to come out of it.
            with suppress(KafkaError), closing(Contents(self.a.bootstrap)) as contents:
                elect_preferred(contents)
                (found,) = contents.admin.describe_topics([topic])
                return node in [each["leader_id"] for each in found["partitions"]]
            return False

        wait_until(leads, f"node {node} leads")

    # --- what the daemon said -----------------------------------------------------------------

    def wait_for(self, enough: Callable[[Events], bool], since: int = 0) -> int:
        """Wait until the log from `since` on says enough; how long the log is then."""
        self.daemon.wait_for(lambda events: enough(events[since:]))
        return len(self.daemon.events())

    def rest(self) -> None:
        """Wait until a good cycle of each flow has begun and ended."""
        before = self.said()
        for flow in self.traffic:
            self.wait_for(lambda events, flow=flow: _two_good(events, flow), before)

    def state_of(self, flow: str) -> str:
        """The flow's state as the REST API has it."""
        with urlopen(f"{self.api}/flows/{quote(flow, safe='')}", timeout=TIMEOUT_SECONDS) as answer:
            found: str = json.load(answer)["state"]
            return found

    def said(self) -> int:
        """How long the log is."""
        return len(self.daemon.events())


def ended(events: Events, flow: str) -> Events:
    """The cycles of a flow that ended."""
    return [
        each
        for each in events
        if each["event"] in ("cycle_finished", "cycle_failed") and each["flow"] == flow
    ]


def _two_good(events: Events, flow: str) -> bool:
    # The first may have begun before.
    return [good(each) for each in ended(events, flow)][-2:] == [True, True]


def good(event: Mapping[str, Any]) -> bool:
    """True of a cycle in which nothing failed."""
    return event["event"] == "cycle_finished" and event["failed"] == 0


def bad(event: Mapping[str, Any]) -> bool:
    """True of a cycle in which something failed."""
    return not good(event)


def seconds_between(first: Mapping[str, Any], last: Mapping[str, Any]) -> float:
    """By the log."""
    begin, end = (datetime.fromisoformat(each["timestamp"]) for each in (first, last))
    return (end - begin).total_seconds()


# --- how it is set up -------------------------------------------------------------------------


@contextmanager
def staged(folder: Path) -> Iterator[FaultTestbed]:
    """All of it, running, with both flows synced once; ended with the block."""
    with ExitStack() as running:
        proxies = {name: running.enter_context(Proxy()) for name in "BC"}
        a = EmbeddedCluster(folder, name="A", nodes=3)
        singles = {
            name: EmbeddedBroker(
                folder / name,
                name=name,
                **(_behind(proxies[name], _host(name)) if name in proxies else {}),
            )
            for name in "BCD"
        }
        began = time.monotonic()
        start_together(running, a, *singles.values())
        factor = min(max(1.0, (time.monotonic() - began) / START_SECONDS), MOST_FACTOR)
        bootstrap = {"A": a.bootstrap, **{name: each.bootstrap for name, each in singles.items()}}
        contents = {
            name: running.enter_context(closing(Contents(there)))
            for name, there in bootstrap.items()
        }
        groups = [f"billing-{number}" for number in range(GROUPS)]
        three = Link(bootstrap["A"], bootstrap["B"], "orders", "A.orders", 3, groups)
        single = Link(bootstrap["C"], bootstrap["D"], "orders", "C.orders", 1, groups[:2])
        contents["A"].create_topic("orders", replicas={0: [2, 3, 1], 1: [3, 1, 2], 2: [2, 1, 3]})
        contents["B"].create_topic("A.orders", 3)
        contents["C"].create_topic("orders", 1)
        contents["D"].create_topic("C.orders", 1)
        spread_groups(contents["A"])
        traffic = {
            flow: running.enter_context(Traffic(link, at_once=len(link.groups) // 2, copies=True))
            for flow, link in ((THREE, three), (SINGLE, single))
        }
        port = free_port()
        file, through = _configuration(folder, bootstrap, proxies, port, factor)
        daemon = running.enter_context(
            DaemonProcess("-c", str(file), folder=folder, through=through)
        )
        api = f"http://{HOST}:{port}/api/v1"
        stage = FaultTestbed(folder, a, singles, proxies, contents, traffic, daemon, api)
        stage.wait_for(lambda events: all(any(map(good, ended(events, f))) for f in traffic))
        stage.wait_for(lambda _: all(one.seen for one in traffic.values()))
        stage.rest()
        stage.at_first = stage.held()
        yield stage


def _host(cluster: str) -> str:
    return NAME if cluster == "B" and own_mounts() else HOST


def _behind(proxy: Proxy, host: str) -> dict[str, Any]:
    """Settings of a broker that is entered at a port of its own, and by the daemon at the proxy."""
    own, controller = free_port(), free_port()
    protocols = {"PLAINTEXT": "PLAINTEXT", "PROXIED": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
    inside = f"PLAINTEXT://{HOST}:{own}"
    return {
        "port": own,
        "properties": {
            "listeners": f"{inside},PROXIED://{HOST}:{proxy.back},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"{inside},PROXIED://{host}:{proxy.front}",
            "listener.security.protocol.map": ",".join(map(":".join, protocols.items())),
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "inter.broker.listener.name": "PLAINTEXT",
        },
    }


def elect_preferred(contents: Contents) -> None:
    """Let the first replica of each partition lead, where it can."""
    with suppress(KafkaError):
        contents.admin.elect_leaders(_PREFERRED, raise_errors=False)


def spread_groups(contents: Contents) -> None:
    """Let all three nodes have the groups' offsets, whose topic was made on the first one alone."""
    topic = "__consumer_offsets"
    wanted = {
        TopicPartition(topic, number): replicas
        for number, replicas in enumerate(([2, 3, 1], [3, 2, 1], [2, 1, 3], [1, 2, 3]))
    }
    answers = contents.admin.alter_partition_reassignments(wanted)
    assert set(answers.values()) == {None}, answers
    wait_until(
        lambda: not contents.admin.list_partition_reassignments(), "all nodes have the groups"
    )
    elect_preferred(contents)


def _configuration(
    folder: Path,
    bootstrap: Mapping[str, str],
    proxies: Mapping[str, Proxy],
    port: int,
    factor: float,
) -> tuple[Path, Sequence[str]]:
    """The daemon's file, with `factor` times its limits, and the command that gives it names and a
    disk of its own."""
    addresses = dict(bootstrap)
    for name, proxy in proxies.items():
        addresses[name] = f"{_host(name)}:{proxy.front}"
    state = folder / "state"
    state.mkdir()
    lines = [f"{name}.bootstrap.servers = {there}" for name, there in addresses.items()]
    lines += [f"{name} = {round(limit * factor)}" for name, limit in LIMITS.items()]
    file = folder / "mm2.properties"
    lines += [f"state.dir = {state}", f"listeners = http://{HOST}:{port}", ""]
    file.write_text(CONFIGURATION + "\n".join(lines))
    if not own_mounts():
        return file, ()
    set_names(folder, known=True)
    (folder / "resolv.conf").write_text("")
    script = (
        f"mount --bind {folder}/hosts /etc/hosts && "
        f"mount --bind {folder}/resolv.conf /etc/resolv.conf && "
        f'mount -t tmpfs -o size=1m none {state} && exec "$@"'
    )
    return file, (*own_mounts(), "sh", "-c", script, "sh")


def set_names(folder: Path, *, known: bool) -> None:
    """Which names the daemon's system knows of itself."""
    names = f"localhost {NAME}" if known else "localhost"
    # In place: it is the file itself that is mounted.
    (folder / "hosts").write_text(f"127.0.0.1 {names}\n")
