"""Tiered storage in a folder of this machine: the one that Kafka's own tests use.

It lies in the test jar of kafka-storage, which comes as the other jars do, once.
"""

from pathlib import Path

from tsoffset.lab.embedded import KAFKA_VERSION, cache_folder
from tsoffset.lab.embedded.jars import fetch_jars

_STORAGE = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
_JAR = f"kafka-storage-{KAFKA_VERSION}-test.jar"
_PIN = (
    "f3236936854c13815ffaa7f35a3f2d6861c125616cba5395b538b8680dded886  "
    f"org/apache/kafka/kafka-storage/{KAFKA_VERSION}/{_JAR}"
)


def storage_jar() -> Path:
    """The jar with the storage, fetched if need be. Raises JarsUnavailable."""
    folder = cache_folder() / f"tiers-{KAFKA_VERSION}"
    fetch_jars(folder, _PIN)
    return folder / _JAR


def tiered_properties(jar: Path, folder: Path) -> dict[str, str]:
    """What a broker needs to move closed segments into a folder soon."""
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": _STORAGE,
        "remote.log.storage.manager.class.path": str(jar),
        "remote.log.storage.manager.impl.prefix": "rsm.config.",
        "rsm.config.dir": str(folder),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "remote.log.manager.task.interval.ms": "500",
    }
