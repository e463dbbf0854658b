"""Tiered storage in a folder of this machine: the one that Kafka's own tests use.

It lies in the test jar of kafka-storage, which comes as the other jars do, once.
"""

import subprocess
import tempfile
from pathlib import Path

from tsoffset.java import find_java
from tsoffset.testing.embedded import KAFKA_VERSION, cache_folder, jars

_STORAGE = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
_WANTED = f"""\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="tsoffset" module="tiered-storage"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka-storage" rev="{KAFKA_VERSION}"
        transitive="false">
      <artifact name="kafka-storage" type="jar" ext="jar" m:classifier="test"/>
    </dependency>
  </dependencies>
</ivy-module>
"""
FETCH_SECONDS = 120


class TiersUnavailable(Exception):
    """The jar is neither cached nor reachable; the text is what was said of it."""


def storage_jar() -> Path:
    """The jar with the storage, fetched if need be. Raises TiersUnavailable."""
    jar = cache_folder() / f"kafka-storage-{KAFKA_VERSION}-test.jar"
    if jar.exists():
        return jar
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        work = Path(folder)
        (work / "settings.xml").write_text(jars._settings(work))
        (work / "wanted.xml").write_text(_WANTED)
        command = [
            *(str(find_java()), "-cp", str(jars._ivy_jar()), "org.apache.ivy.Main"),
            *("-settings", str(work / "settings.xml"), "-ivy", str(work / "wanted.xml")),
            *("-retrieve", f"{work}/[artifact]-[revision](-[classifier]).[ext]"),
        ]
        try:
            ivy = subprocess.run(
                command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise TiersUnavailable(f"not fetched within {FETCH_SECONDS} s") from None
        if ivy.returncode != 0 or not (work / jar.name).exists():
            raise TiersUnavailable(ivy.stdout[-2000:])
        (work / jar.name).rename(jar)
    return jar


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
