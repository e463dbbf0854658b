"""The requests that a broker has served, from its own metrics over JMX.

Kafka's JmxTool reads them, in its own Java process; the broker serves nothing else meanwhile.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tsoffset.lab.embedded.ports import HOST, free_port
from tsoffset.lab.embedded.process import JavaProcess

_REQUESTS = "kafka.network:type=RequestMetrics,name=RequestsPerSec,*"
_BYTES = "kafka.server:type=socket-server-metrics,listener=PLAINTEXT,*"
_REQUEST = re.compile(r"RequestMetrics,name=RequestsPerSec,request=(\w+),.*:Count=(\d+)$")
_BYTES_OUT = re.compile(r"socket-server-metrics,.*:outgoing-byte-total=([\d.E]+)$")
_BYTES_IN = re.compile(r"socket-server-metrics,.*:incoming-byte-total=([\d.E]+)$")
# The broker's own requests as its controller, and those of every new connection.
_NOT_ASKED_FOR = {
    "BrokerHeartbeat",
    "BrokerRegistration",
    "ControllerRegistration",
    "ApiVersions",
    "FetchConsumer",
    "FetchFollower",
    "AlterPartition",
    "AssignReplicasToDirs",
    "AllocateProducerIds",
}
_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Counts:
    """What a broker has served: requests by kind, and bytes."""

    requests: Mapping[str, int] = field(default_factory=Counter)
    bytes_in: float = 0.0
    bytes_out: float = 0.0

    def since(self, before: "Counts") -> "Counts":
        """The difference between the two."""
        requests = Counter(self.requests)
        requests.subtract(before.requests)
        return Counts(+requests, self.bytes_in - before.bytes_in, self.bytes_out - before.bytes_out)

    def of_kinds(self, *kinds: str) -> dict[str, int]:
        """These kinds alone, those that occur."""
        return {kind: self.requests[kind] for kind in kinds if self.requests.get(kind)}


class Metrics:
    """The JMX port of one broker."""

    def __init__(self, name: str, folder: Path) -> None:
        self._port = free_port()
        self._tool = JavaProcess(
            f"jmx-{name}",
            [
                "org.apache.kafka.tools.JmxTool",
                "--jmx-url",
                f"service:jmx:rmi:///jndi/rmi://{HOST}:{self._port}/jmxrmi",
                *("--object-name", _REQUESTS, "--object-name", _BYTES),
                "--one-time",
                *("--report-format", "properties"),
            ],
            directory=folder,
        )

    @property
    def java_options(self) -> tuple[str, ...]:
        """Options to start the broker with."""
        remote = "-Dcom.sun.management.jmxremote"
        return (
            f"{remote}.port={self._port}",
            f"{remote}.rmi.port={self._port}",
            f"{remote}.host={HOST}",
            f"{remote}.authenticate=false",
            f"{remote}.ssl=false",
            f"-Djava.rmi.server.hostname={HOST}",
        )

    def read(self) -> Counts:
        """What was served since the broker was started."""
        status = self._tool.run(_SECONDS)
        said = self._tool.said()
        assert status == 0, said
        requests: Counter[str] = Counter()
        bytes_in = bytes_out = 0.0
        for line in said.splitlines():
            if (found := _REQUEST.search(line)) and found[1] not in _NOT_ASKED_FOR:
                requests[found[1]] += int(found[2])
            elif found := _BYTES_OUT.search(line):
                bytes_out += float(found[1])
            elif found := _BYTES_IN.search(line):
                bytes_in += float(found[1])
        assert requests, said
        return Counts(requests, bytes_in, bytes_out)
