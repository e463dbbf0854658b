"""Share consumers of Kafka's own Java client, driven from Python.

A Java process has Kafka's jars on its class path and is asked through py4j, which comes with
pyspark. So a test decides record by record what is acknowledged, and needs no Java of its own.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from tsoffset.java import find_java
from tsoffset.lab.embedded.jars import resolve_jars

_STRINGS = "org.apache.kafka.common.serialization.StringDeserializer"
_POLL_MS = 500


@dataclass(frozen=True, slots=True)
class Delivered:
    """A record as a share consumer got it; `java` is the client's own value."""

    partition: int
    offset: int
    value: str
    java: Any


class ShareConsumer:
    """A member of a share group that acknowledges each record by itself."""

    def __init__(self, java: JavaGateway, bootstrap: str, group: str, topic: str) -> None:
        settings = java.jvm.java.util.HashMap()
        for key, value in {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "key.deserializer": _STRINGS,
            "value.deserializer": _STRINGS,
            "share.acknowledgement.mode": "explicit",
        }.items():
            settings.put(key, value)
        client = java.jvm.org.apache.kafka.clients.consumer
        self._types = client.AcknowledgeType
        self._wait = java.jvm.java.time.Duration.ofMillis(_POLL_MS)
        self._consumer = client.KafkaShareConsumer(settings)
        self._consumer.subscribe(java.jvm.java.util.List.of(topic))

    def poll(self) -> list[Delivered]:
        """What is delivered next; none after half a second in which nothing came. Each record is
        to be acknowledged before the next call."""
        found = []
        left = self._consumer.poll(self._wait).iterator()
        while left.hasNext():
            one = left.next()
            found.append(Delivered(one.partition(), one.offset(), one.value(), one))
        return found

    def accept(self, record: Delivered) -> None:
        self._consumer.acknowledge(record.java, self._types.ACCEPT)

    def release(self, record: Delivered) -> None:
        """It is to be delivered again."""
        self._consumer.acknowledge(record.java, self._types.RELEASE)

    def commit(self) -> None:
        """Returns once the brokers have the acknowledgements."""
        # Not by Python's iteration: once Spark has run in this process, it never ends.
        left = self._consumer.commitSync().entrySet().iterator()
        while left.hasNext():
            one = left.next()
            if one.getValue().isPresent():
                raise AssertionError(f"{one.getKey()}: {one.getValue().get().toString()}")

    def close(self) -> None:
        """Leave the group; what was delivered and not acknowledged is released."""
        self._consumer.close()


Member = Callable[[str, str, str], AbstractContextManager[ShareConsumer]]
"""Makes a member of a group at an address, which reads a topic until the block ends."""


@contextmanager
def share_consumers() -> Iterator[Member]:
    """Members of share groups, all in one Java process."""
    (py4j_jar,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    port, token = launch_gateway(
        jarpath=str(py4j_jar),
        classpath=f"{resolve_jars()}/*",
        javaopts=["-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=OFF"],
        java_path=str(find_java()),
        die_on_exit=True,
        enable_auth=True,
    )
    java = JavaGateway(
        gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True)
    )
    try:
        yield lambda *where: closing(ShareConsumer(java, *where))
    finally:
        java.shutdown()
