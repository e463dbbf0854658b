"""A Kafka node from before KRaft, with its ZooKeeper."""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tsoffset.lab.embedded.broker import START_SECONDS, EmbeddedBroker
from tsoffset.lab.embedded.ports import HOST, free_port
from tsoffset.lab.embedded.server import Server


def version_numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


class ZooKeeperBroker(EmbeddedBroker):
    """One Kafka node in ZooKeeper mode, as its own cluster; otherwise like `EmbeddedBroker`.

    Its ZooKeeper is a second process, which starts and stops with it. It survives `kill`, and
    accepts a killed node again only after its session of three seconds.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        kafka_version: str,
        name: str = "broker",
    ) -> None:
        """Starts nothing. See `EmbeddedBroker`."""
        super().__init__(directory, name=name, kafka_version=kafka_version)
        self._zookeeper = _ZooKeeper(
            f"{name}-zookeeper", self.directory / "zookeeper", kafka_version=kafka_version
        )

    def start(self) -> Self:
        """Start ZooKeeper and the node; see `EmbeddedBroker.start`."""
        self._zookeeper.start()
        try:
            return super().start()
        except BaseException:
            self._zookeeper.kill()
            raise

    def stop(self, *grace_seconds: float) -> None:
        """Stop the node, then ZooKeeper; each is killed after the grace time."""
        super().stop(*grace_seconds)
        self._zookeeper.stop(*grace_seconds)

    def _properties(self) -> Mapping[str, str]:
        client = f"PLAINTEXT://{self.bootstrap}"
        return {
            "broker.id": str(self.node_id),
            "zookeeper.connect": f"{HOST}:{self._zookeeper.port}",
            "zookeeper.session.timeout.ms": "10000",
            "listeners": client,
            "log.dirs": str(self.directory / "data"),
            **self._own_properties,
        }

    def _prepare(self) -> None:
        """Nothing: the node creates its data folder, and the cluster's id, when it starts."""

    def _missing(self) -> str | None:
        if (cluster_id := self._held_cluster_id()) is None:
            return "it has no cluster id yet"
        self.cluster_id = cluster_id
        return super()._missing()


class _ZooKeeper(Server):
    def __init__(self, name: str, directory: Path, *, kafka_version: str) -> None:
        super().__init__(
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            name,
            directory,
            java_options=("-Xms32m", "-Xmx128m"),
            start_seconds=START_SECONDS,
            kafka_version=kafka_version,
        )
        self.port = free_port()

    def _properties(self) -> Mapping[str, str]:
        return {
            "clientPortAddress": HOST,
            "clientPort": str(self.port),
            "dataDir": str(self.directory / "data"),
            "admin.enableServer": "false",
            "tickTime": "500",
        }

    def _missing(self) -> str | None:
        try:
            with socket.create_connection((HOST, self.port), timeout=1) as connection:
                connection.sendall(b"srvr")
                answer = connection.recv(4096)
        except OSError as error:
            return f"{HOST}:{self.port}: {error!r}"
        return None if answer.startswith(b"Zookeeper version") else f"it says {answer!r}"
