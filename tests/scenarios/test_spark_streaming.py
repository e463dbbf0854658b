"""Real queries of Structured Streaming that fail over: stopped on the source, their checkpoint
migrated by `tsoffset translate`, started again on the target while records go on. A stateful query
is that of `tsoffset demo --scenario streaming` (tests/packaging/test_demo.py)."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.streaming.query import StreamingQuery

from tests.invoking import invoke
from tests.producing import Contents, Written
from tests.scenarios.flows import two_brokers
from tests.waiting import wait_until
from tsoffset.lab.embedded import (
    EmbeddedBroker,
    MirrorMaker,
    flow_properties,
    resolve_spark_kafka_jars,
)
from tsoffset.spark.session import spark_session

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.thorough]

# What is in closed segments, by the records' own time, is compacted, and nothing else.
_HOUR_MS = 3_600_000
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": str(_HOUR_MS),
    "min.cleanable.dirty.ratio": "0.01",
}
_KEYS = 50
_FIRST_MS = int(time.time() * 1_000) - 12 * _HOUR_MS


@dataclass(frozen=True, slots=True)
class Site:
    """Two clusters, a mirror from A to B, and a Spark session with the Kafka connector."""

    spark: SparkSession
    a: Contents
    b: Contents
    mirror: MirrorMaker
    folder: Path

    def records(
        self, side: Contents, topics: str, at_once: int | None = None, starting: str = "earliest"
    ) -> DataFrame:
        """A stream of the topics, with at most so many records in a batch."""
        reader = self.spark.readStream.format("kafka").option("subscribe", topics)
        reader = reader.option("kafka.bootstrap.servers", side.bootstrap)
        if at_once is not None:
            reader = reader.option("maxOffsetsPerTrigger", at_once)
        return reader.option("startingOffsets", starting).load()

    def wait_until_mirrored(self, *topics: str) -> None:
        names = {topic: f"A.{topic}" for topic in topics}
        self.mirror.wait_until_mirrored(self.a.bootstrap, self.b.bootstrap, names)

    def migrate(self, old: Path, new: Path, flow: str = "A->B") -> Result:
        return self.translate(flow, "--spark-checkpoint", str(old), "-o", str(new))

    def translate(self, flow: str, *words: str) -> Result:
        """`tsoffset translate` with this flow enabled."""
        file = self.folder / "mm2.properties"
        bootstrap = {"A": self.a.bootstrap, "B": self.b.bootstrap, "R": self.a.bootstrap}
        lines = [f"{name}.bootstrap.servers = {at}" for name, at in bootstrap.items()]
        file.write_text("\n".join(["clusters = A, B, R", f"{flow}.enabled = true", *lines]))
        return invoke("translate", "-c", str(file), *words)


def values(topic: str, first: int, end: int, hour: int = 0) -> list[Written]:
    """Records of some keys, each with a value of its own."""
    stamp = _FIRST_MS + hour * _HOUR_MS
    return [
        Written(stamp + number, b"%s-%d" % (topic.encode(), number), b"%d" % (number % _KEYS))
        for number in range(first, end)
    ]


def names(topic: str, first: int, end: int) -> list[str]:
    return [f"{topic}-{number}" for number in range(first, end)]


def done(query: StreamingQuery) -> list[Any]:
    """The batches that had records."""
    return [one for one in query.recentProgress if one["numInputRows"]]


def wait_for_batches(query: StreamingQuery, count: int) -> None:
    wait_until(lambda: len(done(query)) >= count, f"{count} batches are done")


@pytest.fixture(scope="module")
def clusters(tmp_path_factory) -> Iterator[list[EmbeddedBroker]]:
    with two_brokers(tmp_path_factory.mktemp("clusters")) as pair:
        yield pair


@pytest.fixture(scope="module")
def site(clusters, tmp_path_factory) -> Iterator[Site]:
    """The topic `accounts` is compacted before the mirror begins."""
    a, b = (broker.bootstrap for broker in clusters)
    settings = {
        "spark.master": "local[2]",
        "spark.jars": ",".join(map(str, resolve_spark_kafka_jars())),
        "spark.sql.shuffle.partitions": "1",
    }
    properties = flow_properties(a, b, topics="clicks, accounts")
    with (
        closing(Contents(a)) as source,
        closing(Contents(b)) as target,
        spark_session(settings) as spark,
    ):
        source.create_topic("accounts", configs=_COMPACTED)
        for hour in range(4):
            first = hour * _KEYS
            source.produce("accounts", values("accounts", first, first + _KEYS, hour=2 * hour))
        wait_until(lambda: len(source.read("accounts")) == 2 * _KEYS, "accounts is compacted")
        folder = tmp_path_factory.mktemp("mirror")
        with MirrorMaker(properties, folder, name="streaming") as mirror:
            yield Site(spark, source, target, mirror, folder)


def test_a_query_of_two_topics_writes_each_record_once(site, tmp_path):
    """One of them is compacted, so target offsets are lower. The sink is of files, whose own log
    goes by batch ids. Back on the source a new query begins at translated starting offsets, which
    are those of the last batch's progress."""

    def start(records, checkpoint, sink="sink"):
        writer = records.select(col("value").cast("string")).writeStream.format("json")
        writer = writer.option("checkpointLocation", str(tmp_path / checkpoint))
        return writer.start(str(tmp_path / sink))

    def in_sink(sink):
        return sorted(row["value"] for row in site.spark.read.json(str(tmp_path / sink)).collect())

    site.a.create_topic("clicks")
    site.a.produce("clicks", values("clicks", 0, 200))
    query = start(site.records(site.a, "clicks,accounts", at_once=40), "old")
    wait_for_batches(query, 2)
    query.stop()
    site.wait_until_mirrored("clicks", "accounts")
    result = site.migrate(tmp_path / "old", tmp_path / "new")
    assert result.exit_code == 0, result.output
    query = start(site.records(site.b, "A.clicks,A.accounts"), "new")
    try:
        # With the next segment, compaction takes records that the query has not read.
        query.processAllAvailable()
        site.a.produce("clicks", values("clicks", 200, 250))
        site.a.produce("accounts", values("accounts", 200, 250, hour=6))
        site.wait_until_mirrored("clicks", "accounts")
        query.processAllAvailable()
    finally:
        query.stop()
    # The newest of each key in closed segments, and all of the open one.
    wanted = [*names("clicks", 0, 250), *names("accounts", 100, 250)]
    assert in_sink("sink") == sorted(wanted)

    ended, by_progress, starting = (tmp_path / f"{name}.json" for name in ("end", "by", "start"))
    ended.write_text(done(query)[-1]["sources"][0]["endOffset"])
    checkpoint = "--spark-checkpoint", str(tmp_path / "new"), "--starting-offsets"
    for words in ((str(ended), "-o", str(by_progress)), (*checkpoint, "-o", str(starting))):
        result = site.translate("B->A", *words)
        assert result.exit_code == 0, result.output
    assert json.loads(by_progress.read_text()) == json.loads(starting.read_text())
    site.a.produce("clicks", values("clicks", 250, 300))
    records = site.records(site.a, "clicks,accounts", starting=starting.read_text())
    query = start(records, "begun", "sink of the new one")
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert in_sink("sink of the new one") == sorted(names("clicks", 250, 300))


def test_a_planned_batch_runs_again_after_a_mirror_restart(site, tmp_path):
    """A mirror that was killed repeats all that it had copied. A batch that was planned and not
    committed is refused until the mirror has its end; then it has the same id and the same records
    on the target, and a sink that knows the id may ignore it."""
    sink: dict[int, list[str]] = {}
    offered: list[tuple[int, list[str]]] = []

    def keep(batch, number):
        offered.append((number, [row["value"].decode() for row in batch.collect()]))
        if number not in sink:
            sink[number] = offered[-1][1]
            if number == 3:
                raise OSError("written, and not committed")

    def start(records, checkpoint):
        writer = records.writeStream.foreachBatch(keep)
        return writer.option("checkpointLocation", str(tmp_path / checkpoint)).start()

    # It notes down what it has copied once an hour.
    never = {"B.offset.flush.interval.ms": str(_HOUR_MS)}
    a, b = site.a.bootstrap, site.b.bootstrap
    properties = flow_properties(a, b, source="R", topics="payments", overrides=never)

    def write(first, end):
        site.a.produce("payments", values("payments", first, end))

    def wait_until_mirrored():
        mirror.wait_until_mirrored(a, b, {"payments": "R.payments"})

    site.a.create_topic("payments")
    write(0, 100)
    with MirrorMaker(properties, tmp_path, name="repeating") as mirror:
        wait_until_mirrored()
        mirror.kill()
        write(100, 160)
        failing = start(site.records(site.a, "payments", at_once=40), "old")
        with pytest.raises(StreamingQueryException, match="written, and not committed"):
            failing.awaitTermination()
        refused = site.migrate(tmp_path / "old", tmp_path / "new", "R->B")
        assert refused.exit_code == 1
        assert "Trigger.AvailableNow" in " ".join(refused.output.split())
        assert not (tmp_path / "new").exists()
        mirror.start()
        wait_until_mirrored()
        result = site.migrate(tmp_path / "old", tmp_path / "new", "R->B")
        assert result.exit_code == 0, result.output
        query = start(site.records(site.b, "R.payments"), "new")
        try:
            write(160, 200)
            wait_until_mirrored()
            query.processAllAvailable()
        finally:
            query.stop()
    assert [record.value for record in site.b.read("R.payments")].count(b"payments-0") == 2
    assert offered[3:5] == [(3, sink[3])] * 2
    assert list(sink) == list(range(len(sink)))
    assert [one for number in sorted(sink) for one in sink[number]] == names("payments", 0, 200)
