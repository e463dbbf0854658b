"""A Kafka Streams application: a Java program of one file, beside Kafka's own jar."""

import itertools
from pathlib import Path

from tests.producing import Contents
from tsoffset.lab.embedded import KAFKA_VERSION, cache_folder, resolve_jars
from tsoffset.lab.embedded.jars import fetch_jars
from tsoffset.lab.embedded.process import JavaProcess

_SOURCE = Path(__file__).with_name("StreamsApplication.java")
_numbers = itertools.count(1)


def further_jar(name: str, artifact: str, checksum: str, kind: str = "") -> Path:
    """A jar that Kafka's brokers do without, fetched if need be. Raises JarsUnavailable."""
    jar = f"{artifact}-{KAFKA_VERSION}{kind}.jar"
    folder = cache_folder() / f"{name}-{KAFKA_VERSION}"
    fetch_jars(folder, f"{checksum}  org/apache/kafka/{artifact}/{KAFKA_VERSION}/{jar}")
    return folder / jar


def streams_jar() -> Path:
    # What it needs besides lies among Kafka's jars; RocksDB is not needed without a store on disk.
    checksum = "bd73f3805e116f711e8456ee89a8a5b43ff5dcf5a5bb865afae29deae89e7c4b"
    return further_jar("streams", "kafka-streams", checksum)


class StreamsApplication(JavaProcess):
    """Counts the records of `topic` by key, in the group `application_id`; not started."""

    def __init__(
        self,
        contents: Contents,
        application_id: str,
        topic: str,
        folder: Path,
        *,
        protocol: str,
        commit_interval_ms: int = 100,
    ) -> None:
        """`protocol` is "streams" (KIP-1071) or "classic"."""
        name = f"streams-{next(_numbers)}"
        settings = {
            "bootstrap.servers": contents.bootstrap,
            "application.id": application_id,
            "group.protocol": protocol,
            "commit.interval.ms": commit_interval_ms,
            "state.dir": folder / name,
        }
        if protocol == "classic":
            # It does not leave its group when it ends.
            settings["session.timeout.ms"] = 6_000
        words = [f"{key}={value}" for key, value in settings.items()]
        jars = f"{resolve_jars()}/*:{streams_jar()}"
        super().__init__(name, ["-cp", jars, str(_SOURCE), topic, *words], directory=folder)

    def read(self) -> list[str]:
        """The values of the records that it has got since it was started."""
        return [line.split()[1] for line in self._lines("read")]

    def counts(self) -> dict[str, int]:
        """Its newest result for each key."""
        return {key: int(number) for _, key, number in map(str.split, self._lines("count"))}

    def _lines(self, word: str) -> list[str]:
        # The last one may not be whole yet.
        whole = self.said().split("\n")[:-1]
        return [line for line in whole if line.startswith(f"{word} ")]
