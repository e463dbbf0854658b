"""Real Kafka brokers on this machine."""

import logging
import secrets
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Self

import javaproperties
from kafka import KafkaAdminClient
from kafka.errors import IncompatibleBrokerVersion, KafkaError, TransactionalIdNotFoundError

from tsoffset.errors import EmbeddedError, PortTaken, StartFailed
from tsoffset.lab.embedded.jars import KAFKA_VERSION
from tsoffset.lab.embedded.ports import HOST, free_port, is_free
from tsoffset.lab.embedded.process import JavaProcess
from tsoffset.lab.embedded.security import ADMIN, ADMIN_LISTENER, PLAINTEXT, Access, BrokerSecurity
from tsoffset.lab.embedded.server import Server, write_private

START_SECONDS = 90.0
JAVA_OPTIONS = ("-Xms128m", "-Xmx384m")

# For one node and short tests: small internal topics without replicas, no waiting for members, no
# deletion by age, no automatic topics, and a short session, since a killed node must expire before
# it can return.
DEFAULTS: Mapping[str, str] = {
    "auto.create.topics.enable": "false",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "default.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": "8388608",
    "log.message.timestamp.after.max.ms": "9223372036854775807",
    "log.retention.ms": "-1",
    "min.insync.replicas": "1",
    "num.io.threads": "4",
    "num.network.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
}

_CONTROLLER = "CONTROLLER"
_PORT_IN_USE = "Address already in use"
_ATTEMPTS = 5
_TIMEOUT_SECONDS = 5.0

# The client logs every refused connection. Here that is expected, and without a handler it would be
# printed.
logging.getLogger("kafka").addHandler(logging.NullHandler())


class EmbeddedBroker(Server):
    """One Kafka node: its own cluster, or a further node of one (`joins`).

    ::

        with EmbeddedBroker(name="source") as broker:
            admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)

    It has started once it serves clients, groups and transactions. The node keeps its ports and its
    data, so it can be stopped, killed and started again. All its files are in `directory`, and a
    later program can reuse the data there. Without one, a temporary folder is made. The end of the
    `with` block removes it, unless an exception ended the block: then the log may be needed.

    With `security`, clients connect to its listeners (`bootstrap_at`) and have the rights that ACLs
    give them; `bootstrap` is the address for `admin`, who has all rights.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        name: str = "broker",
        port: int | None = None,
        security: BrokerSecurity | None = None,
        properties: Mapping[str, str] | None = None,
        java_options: Sequence[str] = (),
        joins: "EmbeddedBroker | None" = None,
        node_id: int = 1,
        kafka_version: str = KAFKA_VERSION,
    ) -> None:
        """Starts nothing.

        `properties` override the defaults of this module, `java_options` those of Java. `port`
        requests a certain port; otherwise a free one is found. `kafka_version` is one of
        `jars.PINNED`, from 3.9 on: older ones need ZooKeeper.
        """
        super().__init__(
            "kafka.Kafka",
            name,
            directory,
            java_options=(*JAVA_OPTIONS, *java_options),
            start_seconds=START_SECONDS,
            kafka_version=kafka_version,
        )
        self.node_id = node_id
        self._controller: EmbeddedBroker = self if joins is None else joins._controller
        self._asked_port = port
        # By the listener's name; empty before the first start.
        self._ports: dict[str, int] = {}
        self._security = security
        secured = () if security is None else security.listeners
        self._listeners = (PLAINTEXT if security is None else ADMIN_LISTENER, *secured)
        self._own_properties = {**DEFAULTS, **(properties or {})}
        self._served = False
        # The file in which a formatted data folder names its cluster.
        self._identity_path = self.directory / "data" / "meta.properties"
        new_id = secrets.token_urlsafe(16) if joins is None else joins.cluster_id
        self.cluster_id: str = self._held_cluster_id() or new_id

    @property
    def port(self) -> int:
        """The port for clients; of a secured broker, the port for its administrator. Raises
        `EmbeddedError` before the first start."""
        return self._port_of(self._listeners[0].name)

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    def bootstrap_at(self, listener: str) -> str:
        """The address for `bootstrap.servers` at the listener of this name; raises like `port`."""
        return f"{HOST}:{self._port_of(listener)}"

    @property
    def admin(self) -> Access:
        """Access with all rights; raises like `port`."""
        if self._security is None:
            return Access(self.bootstrap)
        return Access(
            self.bootstrap,
            ADMIN_LISTENER.protocol,
            mechanism=ADMIN_LISTENER.mechanisms[0],
            user=ADMIN,
            password=self._security.admin_password,
        )

    def start(self) -> Self:
        """See `Server.start`. Raises `PortTaken`, too."""
        if self.running:
            return self
        for _ in range(_ATTEMPTS):
            self._settle_ports()
            try:
                super().start()
            except StartFailed:
                if _PORT_IN_USE not in self.said():
                    raise
                # The port was taken meanwhile. A requested port, or one that clients know already,
                # is not replaced.
                if self._asked_port is not None or self._served:
                    break
                self._ports.clear()
            else:
                self._served = True
                return self
        raise self._port_taken()

    def _settle_ports(self) -> None:
        if not self._ports:
            first, *others = (listener.name for listener in self._listeners)
            self._ports = {name: free_port() for name in (*others, _CONTROLLER)}
            self._ports[first] = self._asked_port or free_port()
        # A port just found free may look taken for a moment: a child that another thread forks
        # holds the probe's socket until it executes its program.
        if (self._asked_port is not None or self._served) and not is_free(self.port):
            raise self._port_taken()

    def _port_taken(self) -> PortTaken:
        ports = self._ports.values()
        taken = [port for port in ports if not is_free(port)] or ports
        return PortTaken(
            f"start {self.name} on {HOST}: port {' and '.join(map(str, taken))} is in use; "
            "end what listens there, or ask for another port"
        )

    def _properties(self) -> Mapping[str, str]:
        names = [listener.name for listener in self._listeners]
        clients = ",".join(f"{name}://{self.bootstrap_at(name)}" for name in names)
        controller = self._controller.bootstrap_at(_CONTROLLER)
        alone = self._controller is self
        protocols = [
            f"{_CONTROLLER}:{self._listeners[0].protocol}",
            *(f"{listener.name}:{listener.protocol}" for listener in self._listeners),
        ]
        return {
            "process.roles": "broker,controller" if alone else "broker",
            "node.id": str(self.node_id),
            "controller.quorum.voters": f"{self._controller.node_id}@{controller}",
            "controller.listener.names": _CONTROLLER,
            "listener.security.protocol.map": ",".join(protocols),
            "listeners": f"{clients},{_CONTROLLER}://{controller}" if alone else clients,
            "advertised.listeners": clients,
            "log.dirs": str(self.directory / "data"),
            **({} if self._security is None else self._security.properties()),
            **self._own_properties,
        }

    def _prepare(self) -> None:
        """Format the data folder, once."""
        if self._identity_path.exists():
            return
        words = [
            # One word, because an id may begin with a dash.
            f"--cluster-id={self.cluster_id}",
            f"--config={self.properties_path}",
        ]
        if self._security is not None:
            words += [f"--add-scram={user}" for user in self._security.scram_users()]
        # In a file, because every user can read passwords on a command line.
        arguments = write_private(self.directory / f"{self.name}-format.txt", "\n".join(words))
        tool = JavaProcess(
            f"{self.name}-format",
            ["kafka.tools.StorageTool", "format", f"@{arguments}"],
            directory=self.directory,
            kafka_version=self.kafka_version,
        )
        try:
            status = tool.run(self._start_seconds)
        except subprocess.TimeoutExpired:
            raise tool.failed(
                f"format {self.name}: not done after {self._start_seconds:g} s"
            ) from None
        finally:
            arguments.unlink()
        if status != 0:
            raise tool.failed(f"format {self.name}: it ended with status {status}")

    def _held_cluster_id(self) -> str | None:
        if not self._identity_path.exists():
            return None
        return javaproperties.loads(self._identity_path.read_text()).get("cluster.id")

    def _missing(self) -> str | None:
        groups = int(self._own_properties["offsets.topic.num.partitions"])
        return _serving(self.admin, self.cluster_id, self.node_id, groups)

    def _port_of(self, listener: str) -> int:
        if not self._ports:
            raise EmbeddedError(f"{self.name} has no port before its first start; call start()")
        return self._ports[listener]


def _serving(admin: Access, cluster_id: str, node_id: int, group_partitions: int) -> str | None:
    """Why node `node_id` of cluster `cluster_id` does not serve `admin` yet (clients, groups and
    transactions); None if it does.

    It queries all partitions of the topic with group offsets, so that no later request of a group
    meets a coordinator that is still loading. The query also makes the cluster create this topic,
    and that of the transactions.
    """
    host, port = admin.bootstrap.split(":")
    try:
        # The client would be slow to retry a broker that does not listen yet.
        socket.create_connection((host, int(port)), timeout=_TIMEOUT_SECONDS).close()
        with closing(
            KafkaAdminClient(
                **admin.settings(),
                bootstrap_timeout_ms=_TIMEOUT_SECONDS * 1000,
                request_timeout_ms=_TIMEOUT_SECONDS * 1000,
            )
        ) as client:
            # The answer it got when it connected: `describe_cluster` fails on brokers of 2.8.
            cluster = client._manager.cluster
            if cluster.cluster_id != cluster_id:
                return f"{admin.bootstrap} belongs to another cluster, {cluster.cluster_id}"
            if node_id not in {broker.node_id for broker in cluster.brokers()}:
                return f"node {node_id} has not joined the cluster yet"
            # The hash of a group's name determines its partition, and the hash of a name of one
            # letter is the letter's code: these names cover every partition.
            client.list_group_offsets([chr(ord("0") + n) for n in range(group_partitions)])
            # No such transaction exists, and that answer is wanted. Brokers before 3.0 name its
            # coordinator, and cannot be asked further.
            with suppress(TransactionalIdNotFoundError, IncompatibleBrokerVersion):
                client.describe_transactions(["readiness"])
    except (OSError, KafkaError) as error:
        return f"node {node_id} at {admin.bootstrap}: {error!r}"
    return None
