"""The brokers of one cluster, with an open connection to each that is in use. Runs in the loop."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from kafka.errors import (
    KafkaConnectionError,
    KafkaProtocolError,
    KafkaTimeoutError,
    UnknownBrokerIdError,
)

from tsoffset.kafka.broker_connection import BrokerConnection, Node
from tsoffset.kafka.client_settings import ClientSettings
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.opening import Opener

# The least time between two searches for idle connections.
_LEAST_SECONDS = 0.1


class Address(NamedTuple):
    """Where a broker listens; `text` is the configured form."""

    host: str
    port: int
    text: str


def parse_address(text: str) -> Address:
    """The address in `host:port`, with brackets around an IPv6 address. Raises ValueError."""
    host, _, port = text.rpartition(":")
    return Address(host.strip("[]"), int(port), text)


class Pool:
    """The connections of one cluster, each opened on first use."""

    def __init__(
        self, opener: Opener, bootstrap: Sequence[Address], client: ClientSettings
    ) -> None:
        self._opener = opener
        self._client = client
        self._written = bootstrap
        self._bootstrap: dict[Node, Address] = {}
        self._brokers: dict[Node, Address] = {}
        # By node and number: a broker serves the requests of a connection one after the other.
        self._connections: dict[tuple[Node, int], BrokerConnection] = {}
        self._idle_seconds = client.connections_max_idle_ms / 1000
        self._has_timer = False

    # --- brokers ---------------------------------------------------------------------------

    async def bootstrap_nodes(self, deadline: Deadline) -> dict[Node, str]:
        """tsoffset's ids of the bootstrap addresses, with the addresses as configured, in that
        order."""
        if not self._bootstrap:
            found = self._written
            if self._client.resolves_canonical_names:
                resolving = (self._canonical(one, deadline) for one in found)
                found = [one for some in await asyncio.gather(*resolving) for one in some]
            self._bootstrap = {f"bootstrap-{number}": one for number, one in enumerate(found)}
        return {node: address.text for node, address in self._bootstrap.items()}

    async def _canonical(self, address: Address, deadline: Deadline) -> list[Address]:
        host, port, _ = address
        names = await self._opener.resolve(host, port, deadline.seconds_left / 2)
        return [Address(name, port, f"{name}:{port}") for name in names] or [address]

    def known_nodes(self) -> list[Node]:
        """The brokers of the cluster's last answer."""
        return list(self._brokers)

    def connected_nodes(self) -> list[Node]:
        """Brokers with an open connection, the one with the latest answer first."""
        heard = sorted(self.ready(), key=lambda one: one.last_read, reverse=True)
        return [*dict.fromkeys(one.node for one in heard if one.node not in self._bootstrap)]

    def learn_brokers(self, metadata: Any) -> None:
        """The brokers of the cluster now. Connections to an address that a broker has left are
        closed: another broker may have that address now."""
        brokers: dict[Node, Address] = {
            each.node_id: Address(each.host, each.port, f"{each.host}:{each.port}")
            for each in metadata.brokers
        }
        for node, address in brokers.items():
            if self._brokers.get(node, address) != address:
                self.drop(node)
        self._brokers = brokers

    # --- connections -----------------------------------------------------------------------

    async def open(self, node: Node, deadline: Deadline, number: int = 0) -> BrokerConnection:
        """A connection to `node` that is open, authenticated and knows the broker's versions; each
        `number` has its own.

        Raises KafkaError if there is none within the deadline.
        """
        connection = self._connections.get((node, number))
        if connection is not None and connection.is_ready:
            return connection
        if deadline.over:
            raise KafkaTimeoutError("the call's deadline has passed")
        connection = connection or self._begin(node, number)
        timeout_ms = self._client.socket_connection_setup_timeout_max_ms
        wait_ms = deadline.milliseconds(deadline.at_most_a_step(timeout_ms))
        # After that the connection is still being opened, for the next caller.
        await asyncio.wait((connection.opened,), timeout=wait_ms / 1000)
        try:
            if not connection.opened.done():
                raise KafkaTimeoutError(f"Timed out after {wait_ms} ms")
            connection.opened.result()
        except KafkaTimeoutError as error:
            address = self._address(node)
            if (late := self._opener.waits_for(address.host, address.port)) is not None:
                raise late from error
            raise
        except KafkaProtocolError as error:
            raise KafkaConnectionError(f"it does not speak Kafka's protocol: {error}") from error
        return connection

    def _begin(self, node: Node, number: int) -> BrokerConnection:
        host, port, _ = self._address(node)
        connection = BrokerConnection(node, host, self._client.client_id, self._opener.tls)
        self._connections[node, number] = connection
        opening = asyncio.create_task(self._opener.open(connection, port))

        def forget() -> None:
            opening.cancel()
            del self._connections[node, number]

        connection.on_close = forget
        if not self._has_timer:
            self._close_idle()
        return connection

    def _address(self, node: Node) -> Address:
        address = self._brokers.get(node) or self._bootstrap.get(node)
        if address is None:
            raise UnknownBrokerIdError(node)
        return address

    def drop(self, node: Node) -> None:
        for (each, _), connection in list(self._connections.items()):
            if each == node:
                connection.close()

    def close(self) -> None:
        for connection in list(self._connections.values()):
            connection.close()

    def ready(self) -> list[BrokerConnection]:
        """The connections that are open, to all nodes."""
        return [one for one in self._connections.values() if one.is_ready]

    def _close_idle(self) -> None:
        """Close connections that were idle for too long, and run again when the next one may be."""
        now = time.monotonic()
        for connection in self.ready():
            if connection.is_idle and connection.last_active + self._idle_seconds <= now:
                connection.close()
        self._has_timer = bool(self._connections)
        if self._has_timer:
            oldest = min(one.last_active for one in self._connections.values())
            seconds = max(_LEAST_SECONDS, oldest + self._idle_seconds - now)
            asyncio.get_running_loop().call_later(seconds, self._close_idle)
