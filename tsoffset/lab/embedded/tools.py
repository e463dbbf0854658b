"""Kafka's own command-line tools: the jars come without their scripts."""

from tsoffset.java import find_java
from tsoffset.lab.embedded.jars import resolve_jars

_CLASSES = {
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}
# Without a configuration, log4j prints a complaint, and then errors among the results.
_QUIET = ("-Dlog4j2.StatusLogger.level=OFF", "-Dlog4j2.level=OFF")


def kafka_tool(name: str) -> list[str]:
    """The command line of the tool with this script name. Raises EmbeddedError."""
    return [str(find_java()), *_QUIET, "-cp", f"{resolve_jars()}/*", _CLASSES[name]]
