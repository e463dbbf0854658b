"""A Kafka cluster of several nodes on this machine."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tsoffset.lab.embedded import EmbeddedBroker

# For a node that is not killed: its controller does not fence it where a busy machine stops both
# for seconds.
LONG_SESSION = {"broker.session.timeout.ms": "60000"}


class EmbeddedCluster:
    """A cluster of several nodes; the first one is the controller.

    The topics of group offsets and transactions are created while the first node is alone, so it
    holds them: stopping another node only affects partitions with their only replica there.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        nodes: int = 2,
        name: str = "cluster",
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """`nodes` nodes, numbered from 1; starts nothing."""
        self.nodes: list[EmbeddedBroker] = []
        for node_id in range(1, nodes + 1):
            node_name = f"{name}-{node_id}"
            self.nodes.append(
                EmbeddedBroker(
                    None if directory is None else directory / node_name,
                    name=node_name,
                    properties=properties,
                    joins=self.nodes[0] if self.nodes else None,
                    node_id=node_id,
                )
            )

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes, for `bootstrap.servers`."""
        return ",".join(node.bootstrap for node in self.nodes)

    def start(self) -> Self:
        """Start all nodes that do not run; see `EmbeddedBroker.start`."""
        try:
            for node in self.nodes:
                node.start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop all nodes, the controller last, because the others deregister with it."""
        with ExitStack() as stack:
            for node in self.nodes:
                stack.callback(node.stop)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with ExitStack() as stack:
            for node in self.nodes:
                stack.callback(node.__exit__, kind)


def start_together(running: ExitStack, *clusters: EmbeddedBroker | EmbeddedCluster) -> None:
    """Start all at once; the stack stops them."""
    for one in clusters:
        running.callback(one.stop)
    with ThreadPoolExecutor() as pool:
        for started in [pool.submit(one.start) for one in clusters]:
            started.result()
