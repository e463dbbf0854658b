"""The story of a streaming query: Spark keeps its offsets in a checkpoint, not in a group, and
`tsoffset translate` migrates that checkpoint."""

import sys
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tsoffset.commands.translate.run import run_translate
from tsoffset.config.selection import Selector
from tsoffset.lab.demo.clusters import FLOW, SOURCE, TARGET, remote
from tsoffset.lab.demo.consumers import read_log
from tsoffset.lab.demo.producers import Source
from tsoffset.lab.demo.story import Story
from tsoffset.lab.demo.topics import CLICKS, ORDERS, PARTITIONS, TOPICS
from tsoffset.lab.embedded import SPARK_KAFKA_VERSION, Access, resolve_spark_kafka_jars
from tsoffset.offset_files.spark_checkpoint import read_checkpoint
from tsoffset.terminal.notices import Notices, progress
from tsoffset.terminal.output import Format, Output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Records of each partition of two topics, written after the query has stopped.
_WRITTEN_LATER = 1_000


class Streaming(Story):
    about = "a Spark streaming query, and the migration of its checkpoint"

    @property
    def _spark_settings(self) -> Mapping[str, str]:
        jars = ",".join(map(str, resolve_spark_kafka_jars()))
        return {"spark.jars": jars, "spark.sql.shuffle.partitions": str(PARTITIONS)}

    def tell(self) -> tuple[int, list[str]]:
        """Run all steps; return the exit status and the sentences of the end. Raises
        TsoffsetError."""
        resolve_spark_kafka_jars()
        source, session = self._begin()
        old, new = (self._clusters.folder / f"checkpoint-{name}" for name in (SOURCE, TARGET))
        seen: dict[str, int] = {}
        self._narrator.step(f"A streaming query counts records on {SOURCE}")
        with progress("starting Spark"):
            spark = session()
        topics = [topic.name for topic in TOPICS]
        with progress(f"the query reads {SOURCE}"):
            self._aside(lambda: self._run(spark, self._clusters.at_source, topics, old, seen))
        self._narrator.say(
            f"Spark Structured Streaming {spark.version} with its Kafka connector "
            f"{SPARK_KAFKA_VERSION} reads all {len(topics)} topics, counts in its state how often "
            f"each record came, {len(seen):,} so far, and stops. No group has its offsets: they "
            f"are in its checkpoint, {old.name}."
        )
        self._write_later(source)
        if status := self._migrate(old, new):
            return status, ["The checkpoint was not migrated; the table says why."]
        on_source = len(seen)
        self._narrator.step(f"The query resumes on {TARGET}")
        names = [remote(name) for name in topics]
        with progress(f"the query reads {TARGET}"):
            self._aside(lambda: self._run(spark, self._clusters.at_target, names, new, seen))
            logs = self._aside(lambda: read_log(self._clusters.at_source, topics))
        self._narrator.say(
            f"It starts from {new.name} with its state, subscribes to {', '.join(names)}, and "
            f"reads to the end: {len(seen) - on_source:,} records that it had not counted before."
        )
        written = Counter(entry.value.decode() for log in logs.values() for entry in log)
        return _conclusion(written, seen)

    def _run(
        self,
        spark: "SparkSession",
        cluster: Access,
        topics: list[str],
        checkpoint: Path,
        seen: dict[str, int],
    ) -> None:
        """Run the query until it has read all; `seen` gets the counts that it has changed."""
        options = {f"kafka.{name}": value for name, value in cluster.properties().items()}
        records = (
            spark.readStream.format("kafka")
            .options(**options)
            .option("kafka.isolation.level", "read_committed")
            .option("subscribe", ",".join(topics))
            .option("startingOffsets", "earliest")
            .load()
        )

        def keep(batch: "DataFrame", _number: int) -> None:
            seen.update({row["value"]: row["count"] for row in batch.collect()})

        counts = records.selectExpr("CAST(value AS STRING) AS value").groupBy("value").count()
        writer = counts.writeStream.outputMode("update").foreachBatch(keep)
        writer = writer.option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    def _write_later(self, source: Source) -> None:
        """Records that the query has not read, so that its offsets lie in the midst of the logs."""
        self._narrator.step(f"Applications go on writing to {SOURCE}")

        def write() -> None:
            for topic in (ORDERS, CLICKS):
                source.write(topic, [topic.records + _WRITTEN_LATER] * PARTITIONS)
            self._clusters.wait_until_mirrored()

        with progress("waiting until everything is mirrored"):
            self._aside(write)
        self._narrator.say(
            f"{2 * PARTITIONS * _WRITTEN_LATER:,} more records of {ORDERS.name} and {CLICKS.name}. "
            "MirrorMaker 2 copies them, too."
        )

    def _migrate(self, old: Path, new: Path) -> int:
        """`tsoffset translate`, with its table; the exit status."""
        file = self._clusters.configuration
        self._narrator.step(
            f"tsoffset translate -c {file.name} --spark-checkpoint {old.name} -o {new.name}"
        )
        status = run_translate(
            Selector(file, (FLOW,)).select(),
            partial(read_checkpoint, str(old)),
            Output(sys.stdout, Format.TABLE),
            Notices(),
            written=str(new),
        )
        if status == 0:
            self._narrator.say(
                f"{new.name} is a copy of {old.name} with the topics and offsets of {TARGET}. The "
                "query's state and batch ids are as before.",
                apart=True,
            )
        return status


def _conclusion(written: Mapping[str, int], seen: Mapping[str, int]) -> tuple[int, list[str]]:
    """The exit status, and what a comparison by content has shown."""
    skipped = sum(1 for value in written if value not in seen)
    again = sum(count - written.get(value, 0) for value, count in seen.items())
    if skipped or again:
        return 1, [f"{skipped:,} records skipped, {again:,} counted twice; please report it."]
    return 0, [
        f"Compared by content, the query has counted each of {len(written):,} records of {SOURCE} "
        "exactly once. No record was skipped."
    ]
