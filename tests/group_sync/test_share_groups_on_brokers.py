"""A share group fails over, with share consumers of Kafka's own on both clusters."""

import random
from collections import defaultdict

import pytest

from tests.commands.failover.test_run_on_brokers import run
from tests.configured import properties_file
from tests.producing import Contents, Written, numbered
from tests.share_consumers import Delivered, Member, ShareConsumer, share_consumers
from tests.waiting import wait_until
from tsoffset.config.loading import Configuration
from tsoffset.group_sync.cache import CachedTables
from tsoffset.group_sync.cycle import cycle
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import CommittedOffset, OutcomeKind, Precision, TopicPartition

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.thorough]

PARTITIONS = range(2)
RECORDS, TRIMMED, BATCH = 400, 40, 20
# A share group gives a record up that was delivered five times.
POLLS = 3
JSON = ("--format", "json")

Values = dict[int, set[str]]


def test_a_share_group_fails_over_in_mid_stream(source, target, unique, tmp_path):
    """Consumers acknowledge out of order while cycles run and the mirror is behind. After the last
    cycle consumers on the target get every record that was not acknowledged, by content. What they
    get again lies within the rows' bounds, which `failover` adds up. They begin at the start offset
    that was set, although `share.auto.offset.reset` is `latest`."""
    topic, group = unique("shared"), unique("sharing")
    remote = f"A.{topic}"
    records = {number: numbered(RECORDS, first=number * 10_000) for number in PARTITIONS}
    source.create_topic(topic, len(PARTITIONS))
    target.create_topic(remote, len(PARTITIONS))
    file = properties_file(
        *(tmp_path, source.bootstrap, target.bootstrap),
        *(f"groups = {group}", f"topics = {topic}", "spark.master = local[1]"),
    )
    flow = Configuration.read(file).resolve().flow("A->B")
    accepted: Values = defaultdict(set)
    chance = random.Random(932)
    cache = CachedTables()
    with (
        share_consumers() as member,
        KafkaCluster(flow.source) as here,
        KafkaCluster(flow.target) as there,
    ):
        begin_at_the_start(here, group, topic)

        for part in (slice(0, RECORDS // 2), slice(RECORDS // 2, RECORDS)):
            for number in PARTITIONS:
                source.produce(topic, records[number][part], partition=number, batch=BATCH)
            with member(source.bootstrap, group, topic) as consumer:
                acknowledge_some(consumer, accepted, part.stop // 2, chance)
            # The mirror has not come so far: it copies the rest after the last cycle.
            for number in PARTITIONS:
                mirror(target, remote, number, records[number][: part.stop - 3 * BATCH])
            rows = cycle(flow, here, there, cache=cache)

        status, (verdict,), _ = run("failover", "-c", str(file), "--no-pause", *JSON)
        assert (status, verdict["verdict"], verdict["partitions"]) == (0, "bounded", 2)
        assert verdict["reread_bound"] == sum(row.reread_bound or 0 for row in rows)
        kept = tmp_path / "kept.json"
        assert run("snapshot", "-c", str(file), "-o", str(kept))[0] == 0
        assert kept.read_text().count('"share_group": true') == len(PARTITIONS)
        status, restored, _ = run("restore", "-c", str(file), str(kept), "--yes", *JSON)
        assert (status, [row["outcome"] for row in restored]) == (0, ["unchanged"] * 2)

        for number in PARTITIONS:
            mirror(target, remote, number, records[number])

        delivered = read_all(member, target.bootstrap, group, remote, records)

    for number in PARTITIONS:
        (row,) = (row for row in rows if row.partition == number)
        assert row.outcome is OutcomeKind.COMMITTED
        assert row.source_offset > TRIMMED
        assert row.precision is Precision.BOUNDED
        again = accepted[number] & delivered[number]
        assert 0 < len(again) <= row.reread_bound
        everything = {text_of(record) for record in records[number][TRIMMED:]}
        assert everything <= accepted[number] | delivered[number]


def text_of(record: Written) -> str:
    """Its value as a consumer of strings gets it."""
    return str(record.value or b"", "utf-8")


def begin_at_the_start(cluster: KafkaCluster, group: str, topic: str) -> None:
    """Let the group begin with the first records, and not with what comes after its consumers."""
    starts = {TopicPartition(topic, number): CommittedOffset(0) for number in PARTITIONS}

    def is_set() -> bool:
        answers = cluster.commit({group: starts}, share_groups=[group])
        return set(answers[group].values()) == {None}

    wait_until(is_set, f"{group} has start offsets")


def mirror(target: Contents, remote: str, number: int, records: list[Written]) -> None:
    """Copy what is not there yet; the copy begins with a later record than the original."""
    copied = target.log_range(remote, number)[1] + TRIMMED
    target.produce(remote, records[copied:], partition=number, batch=BATCH)


def acknowledge_some(
    consumer: ShareConsumer, accepted: Values, end: int, chance: random.Random
) -> None:
    """Accept what comes before the offset `end`, and most of the rest, in any order; release the
    others."""
    for _ in range(POLLS):
        polled = poll_some(consumer)
        chance.shuffle(polled)
        for record in polled:
            if record.offset < end or chance.random() < 0.6:
                consumer.accept(record)
                accepted[record.partition].add(record.value)
            else:
                consumer.release(record)
        consumer.commit()


def poll_some(consumer: ShareConsumer) -> list[Delivered]:
    found: list[Delivered] = []

    def came() -> bool:
        found.extend(consumer.poll())
        return bool(found)

    wait_until(came, "records are delivered")
    return found


def read_all(
    member: Member, bootstrap: str, group: str, topic: str, records: dict[int, list[Written]]
) -> Values:
    """What consumers of the group get until nothing is left. The last record is among it, since
    nothing is acknowledged on this cluster."""
    delivered: Values = defaultdict(set)
    with member(bootstrap, group, topic) as consumer:

        def is_done() -> bool:
            for record in consumer.poll():
                consumer.accept(record)
                delivered[record.partition].add(record.value)
            consumer.commit()
            last = {number: text_of(records[number][-1]) for number in PARTITIONS}
            return all(value in delivered[number] for number, value in last.items())

        wait_until(is_done, "the last records are delivered")
        assert not consumer.poll()
    return delivered
