"""`tsoffset check` samples copies: what a replicator changed, and which setting fits that."""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.commands.check.test_flow_check import checked
from tests.memory_flows import NOW_MS, flow
from tests.random_examples import scaled
from tsoffset.commands.check.copies import sampled_copies
from tsoffset.commands.check.findings import Finding, Severity
from tsoffset.commands.check.flow_check import CheckResult
from tsoffset.commands.check.samples import MOST_TOPICS, SampledTopic, positions
from tsoffset.commands.check.survey import SyncedTopic
from tsoffset.flow.settings import SAME_OFFSETS, FlowSettings, TranslationSettings
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    LogRange,
    Precision,
    TimestampType,
    TopicPartition,
)
from tsoffset.records import OffsetHeader
from tsoffset.testing.memory_cluster import MemoryCluster, Message, Verb, mirror_partition

LATE = Failed(FailureKind.TIMEOUT, "read A.orders-0, cluster B: why; next step")
OK, WARNING, ERROR = Severity.OK, Severity.WARNING, Severity.ERROR
Rewrite = Callable[[Message], Message]


def same(message: Message) -> Message:
    return message


def value_changed(message: Message) -> Message:
    return replace(message, value=b"schema 7" + (message.value or b""))


def key_changed(message: Message) -> Message:
    return replace(message, key=b"eu-" + (message.key or b""))


def both_changed(message: Message) -> Message:
    return key_changed(value_changed(message))


def time_changed(message: Message) -> Message:
    return replace(message, timestamp_ms=message.timestamp_ms + 86_400_000)


def header_added(message: Message) -> Message:
    return replace(message, headers=(*message.headers, ("copied-by", b"replicator")))


def keyless(message: Message) -> Message:
    return replace(message, key=None)


def records(number: int, step_ms: int = 1) -> list[Message]:
    return [
        Message(NOW_MS + n * step_ms, b"key %d" % n, b"value %d" % n, (("trace", b"%d" % n),))
        for n in range(number)
    ]


def mirrored(
    topics: Mapping[str, Rewrite],
    messages: list[Message] | None = None,
    *,
    partitions: int = 1,
    trimmed: int = 40,
) -> tuple[MemoryCluster, MemoryCluster]:
    """Topics with a group each, their starts gone, and copies made by a replicator that
    rewrites them."""
    source, target = MemoryCluster("A"), MemoryCluster("B")
    for topic, rewrite in topics.items():
        source.create_topic(topic, partitions)
        target.create_topic(f"A.{topic}", partitions)
        for number in range(partitions):
            log = source.log(topic, number)
            log.append(records(400) if messages is None else messages, batch_size=10)
            log.delete_records(trimmed)
            mirror_partition(log, target.log(f"A.{topic}", number), batch_size=7, rewrite=rewrite)
            place = TopicPartition(topic, number)
            source.group("billing").offsets[place] = CommittedOffset(200)
    return source, target


def made_anew(
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> tuple[MemoryCluster, MemoryCluster]:
    """A source with a topic, and a target whose copy was recreated, and is empty."""
    source, target = mirrored({"orders": same})
    target.delete_topic("A.orders")
    target.create_topic("A.orders", timestamp_type=timestamp_type)
    return source, target


def matching(*parts: str) -> FlowSettings:
    return flow(translation=TranslationSettings(match=frozenset(parts)))


def findings(
    topics: Mapping[str, Rewrite], the_flow: FlowSettings | None = None
) -> dict[str, Finding]:
    """What is found of the copies of the topics, by subject."""
    result = checked(the_flow or flow(), *mirrored(topics))
    return of_copies(result)


def of_copies(result: CheckResult) -> dict[str, Finding]:
    return {
        finding.subject: finding
        for finding in result.findings
        if finding.subject.startswith(("topic ", "samples", "header"))
    }


def test_copies_as_their_originals_need_no_remedy():
    """All samples are found and the same: one line says how many, and exit status is 0."""
    result = checked(flow(), *mirrored({"orders": same}, partitions=3))
    found = of_copies(result)
    assert list(found) == ["samples"]
    assert found["samples"].severity is OK
    assert found["samples"].finding == ("equal in timestamp, key and value: 8 of 8 sampled records")
    assert found["samples"].remedy is None
    assert result.exit_status == 0


def test_a_copy_that_cannot_be_read_is_not_one_that_is_missing():
    """The topic has the reason, once."""
    source, target = mirrored({"orders": same})
    target.fail(LATE, verb=Verb.READ)
    findings = checked(flow(), source, target).findings
    assert not [one for one in findings if "no copy found" in one.finding]
    (of_topic,) = [one for one in findings if one.subject == "topic A.orders"]
    assert (of_topic.severity, of_topic.remedy) == (ERROR, "next step")


@pytest.mark.parametrize(
    ("failed", "stamp", "told"),
    [
        (LATE, TimestampType.CREATE_TIME, ["topic A.orders"]),
        (LATE, LATE, []),
        (replace(LATE, kind=FailureKind.AUTHORIZATION), TimestampType.CREATE_TIME, []),
    ],
)
def test_what_could_not_be_read_for_samples_alone_is_told(failed, stamp, told):
    """Other findings report missing rights, and topics whose timestamps could not be read."""
    topic = SyncedTopic("orders", "A.orders", frozenset({0}), ("billing",))
    samples = [SampledTopic(topic, failed=failed)]
    found = sampled_copies(flow(), samples, {"A.orders": stamp}, 1)
    assert [one.subject for one in found if one.severity is ERROR] == told


@pytest.mark.parametrize(
    ("rewrite", "what", "setting"),
    [
        (value_changed, "values differ", "set A->B.translation.match = timestamp,key "),
        (key_changed, "keys differ", "set A->B.translation.match = timestamp,value "),
        (both_changed, "keys and values differ", "configure the replicator to keep keys or values"),
    ],
)
def test_what_a_replicator_changes_is_named_with_what_fits(rewrite, what, setting):
    """Of every topic whose copies differ: in what, in how many samples, and the setting; it is
    an error, since no translation of it will be proven."""
    found = findings({"kept": same, "changed": rewrite})
    assert set(found) == {"topic A.changed", "samples"}
    finding = found["topic A.changed"]
    assert finding.severity is ERROR
    assert finding.finding.startswith(what)
    assert "in 4 of 4 sampled records" in finding.finding
    assert (finding.remedy or "").startswith(setting)
    assert found["samples"].finding.startswith("equal in timestamp, key and value: 4 of 8 ")


@pytest.mark.parametrize("rewrite", [same, value_changed, key_changed])
def test_the_setting_that_is_advised_lets_groups_be_translated(rewrite):
    """With the advised match the same copies are no problem any more: to `check` as to `plan`."""
    from tsoffset.group_sync.cycle import cycle

    source, target = mirrored({"orders": rewrite})
    before = of_copies(checked(flow(), source, target)).get("topic A.orders")
    parts = ["timestamp", "key", "value"]
    if before is not None:
        parts = before.remedy.split("match = ")[1].split(" ")[0].split(",")
        (row,) = cycle(flow(), source, target, commit=False)
        # Nothing is proven: the group gets the target's log start.
        assert (row.target_offset, row.precision) == (0, Precision.BOUNDED)
    narrowed = matching(*parts)
    assert all(f.severity is OK for f in of_copies(checked(narrowed, source, target)).values())
    assert [row.target_offset for row in cycle(narrowed, source, target, commit=False)] == [160]


def test_some_changed_records_are_a_warning():
    """If only some samples differ, some groups can still be translated."""

    def sometimes(message: Message) -> Message:
        return value_changed(message) if message.timestamp_ms < NOW_MS + 200 else message

    finding = findings({"orders": sometimes})["topic A.orders"]
    assert finding.severity is WARNING
    assert "in 2 of 4 sampled records" in finding.finding


def test_what_match_leaves_out_is_no_problem():
    """A narrower match that fits the change is told without alarm."""
    finding = findings({"orders": value_changed}, matching("timestamp", "key"))["topic A.orders"]
    assert (finding.severity, finding.remedy) == (OK, None)
    assert "translation.match ignores them" in finding.finding


def test_without_keys_a_changed_value_leaves_nothing_to_compare():
    """`timestamp,key` is not advised for records that have no keys."""
    messages = [keyless(message) for message in records(400)]
    result = checked(flow(), *mirrored({"orders": value_changed}, messages))
    finding = of_copies(result)["topic A.orders"]
    assert "values differ" in finding.finding
    assert "translation.match" not in (finding.remedy or "")
    assert "have no keys" in (finding.remedy or "")


def test_topics_that_need_different_settings_need_flows_of_their_own():
    """translation.match is a flow's: no setting fits changed keys in one topic and changed values
    in another."""
    found = findings({"one": value_changed, "two": key_changed, "three": both_changed})
    for topic, setting in (("one", "timestamp,key"), ("two", "timestamp,value")):
        remedy = found[f"topic A.{topic}"].remedy or ""
        assert remedy.startswith(
            f"move this topic to a separate flow with translation.match = {setting}, or"
        )
    assert (found["topic A.three"].remedy or "").startswith("configure the replicator")


def test_older_records_stamped_by_the_target_are_seen():
    """A target that stamped records once, and keeps timestamps now: its newest batch is well,
    older ones are not, and the remedy names the setting."""
    source, target = made_anew(TimestampType.LOG_APPEND_TIME)
    target.clock.now_ms = NOW_MS + 10_000_000
    original, log = source.log("orders"), target.log("A.orders")
    mirror_partition(original, log, end=300, batch_size=10)
    log.timestamp_type = TimestampType.CREATE_TIME
    mirror_partition(original, log, start=300, batch_size=10)
    finding = of_copies(checked(flow(), source, target))["topic A.orders"]
    assert finding.severity is WARNING
    assert "LogAppendTime" in finding.finding
    assert "message.timestamp.type=CreateTime" in (finding.remedy or "")


def test_newest_records_stamped_by_the_target_are_told_once():
    """The finding of the newest batch is enough: samples of that topic say nothing more. Its
    groups will not be synced, so it is an error."""
    source, target = made_anew(TimestampType.LOG_APPEND_TIME)
    mirror_partition(source.log("orders"), target.log("A.orders"))
    result = checked(flow(), source, target)
    # The records of these clusters may be of the future.
    (finding,) = [f for f in result.findings if f.severity is not OK and f.subject != "clock"]
    assert (finding.severity, finding.subject) == (ERROR, "topic A.orders")
    assert "message.timestamp.type=CreateTime" in (finding.remedy or "")
    assert result.exit_status == 1


def test_no_copy_at_all_is_a_warning():
    """A target topic with other records than the source's, or with other timestamps: nothing of it
    is known to be a copy."""
    other, later = made_anew(), mirrored({"orders": time_changed}, trimmed=0)
    other[1].log("A.orders").append(
        [Message(NOW_MS - 1_000 - n, b"other %d" % n, b"other %d" % n) for n in range(50)]
    )
    for clusters in (other, later):
        finding = of_copies(checked(flow(), *clusters))["topic A.orders"]
        assert finding.severity is WARNING
        assert " sampled records of orders: not mirrored yet" in finding.finding
        assert "keeps timestamps" in (finding.remedy or "")


def test_an_empty_copy_says_nothing():
    """Nothing is mirrored yet, so there is nothing to compare."""
    source, target = made_anew()
    assert of_copies(checked(flow(), source, target)) == {}


@settings(deadline=None, max_examples=scaled(80))
@given(
    seed=st.integers(0, 2**32),
    step_ms=st.sampled_from([0, 1, 7]),
    keys=st.sampled_from([1, 20, 1_000]),
    lag=st.integers(0, 100),
    trimmed=st.integers(0, 150),
)
def test_a_faithful_mirror_is_never_accused(seed, step_ms, keys, lag, trimmed):
    """Runs of equal timestamps, few keys, records without key or value, holes of compaction, a
    mirror that lags, a shorter retention: whatever the log, no part is said to differ."""
    chance = random.Random(seed)
    time_ms = NOW_MS
    messages = []
    for n in range(300):
        time_ms += chance.choice([0, 0, step_ms])
        key = None if chance.random() < 0.1 else b"k%d" % chance.randrange(keys)
        value = None if key and chance.random() < 0.1 else b"v%d" % chance.randrange(3 + n // 10)
        messages.append(Message(time_ms, key, value))
    source, target = MemoryCluster("A"), MemoryCluster("B")
    cleaned = chance.choice([None, None, source, target])
    source.create_topic("orders")
    policy = "compact" if cleaned is target else "delete"
    target.create_topic("A.orders", configs={"cleanup.policy": policy})
    source.log("orders").append(messages, batch_size=chance.choice([1, 10, 100]))
    mirror_partition(
        source.log("orders"),
        target.log("A.orders"),
        end=300 - lag,
        batch_size=chance.choice([1, 9]),
    )
    if cleaned is not None:
        cleaned.log("orders" if cleaned is source else "A.orders").compact(before=250)
    target.log("A.orders").delete_records(min(trimmed, 200 - lag))
    source.group("billing").offsets[TopicPartition("orders", 0)] = CommittedOffset(250)
    found = of_copies(checked(flow(), source, target))
    assert not [one for one in found.values() if "differ" in one.finding], found


@given(
    here=st.tuples(st.integers(0, 10**9), st.integers(1, 10**9)),
    there=st.tuples(st.integers(0, 10**9), st.integers(1, 10**9)),
)
def test_samples_lie_in_the_log_and_are_few(here, there):
    """At most five places, all inside the source's log, its first record and its last among
    them."""
    source = LogRange(here[0], here[0] + here[1])
    found = positions(source, LogRange(there[0], there[0] + there[1]))
    assert 1 <= len(found) <= 5
    assert list(found) == sorted(set(found))
    assert (found[0], found[-1]) == (source.start, source.end - 1)


def test_cost_is_bounded_however_large_a_flow_is():
    """Of many topics with many partitions so many are sampled and no more, each in so many
    places, in few calls."""
    topics = {f"t{n:03}": same for n in range(MOST_TOPICS + 20)}
    source, target = mirrored(topics, records(50), partitions=4, trimmed=0)
    result = checked(flow(), source, target)
    assert f"{MOST_TOPICS} of {MOST_TOPICS + 20} topics sampled" in (
        of_copies(result)["samples"].finding
    )
    samples = MOST_TOPICS * 2 * 5
    assert source.asked(Verb.READ) <= 3 * samples
    assert target.asked(Verb.READ) <= 3 * samples + len(topics)
    for cluster in (source, target):
        calls = [request.verb for request in cluster.requests]
        assert calls.count(Verb.READ) + calls.count(Verb.FIRST_AT_TIMES) <= 12


def test_cost_is_bounded_where_no_copy_is_as_its_original():
    """The rule runs again with each narrower match, and finds nothing within its budget."""
    source, target = mirrored({f"t{n}": both_changed for n in range(2)}, records(2_500))
    checked(flow(), source, target)
    for cluster in (source, target):
        assert cluster.asked(Verb.READ) <= 30 * 5 * 2


def test_no_content_is_told():
    """Findings name parts and counts, never what records hold, and nothing is read raw."""
    topics = {"a": value_changed, "b": key_changed, "c": time_changed, "d": header_added}
    source, target = mirrored(topics)
    text = str(checked(flow(), source, target).findings)
    for content in ("key 1", "value 1", "schema", "eu-", "trace", "copied-by", "\\x"):
        assert content not in text
    assert source.asked(Verb.READ_RAW) == target.asked(Verb.READ_RAW) == 0


@pytest.mark.parametrize(
    ("written", "severity", "words"),
    [
        (lambda offset: b"%d" % offset, OK, "the source's offset in 4 of 4 sampled copies"),
        (
            lambda offset: b"%d" % (offset + 1),
            WARNING,
            "0 of 4 sampled copies, another number in 4",
        ),
        (lambda offset: offset.to_bytes(8, "big"), WARNING, "0 of 4 sampled copies"),
    ],
)
def test_the_header_of_the_source_offset_is_looked_at(written, severity, words):
    """With translation.offset.header: whether copies have it, and in the form that is configured;
    where not, the remedy names the key."""
    header = OffsetHeader("origin", text=True)
    source, target = MemoryCluster("A"), MemoryCluster("B", offset_header=header)
    source.create_topic("orders")
    target.create_topic("A.orders")
    source.log("orders").append(records(100), batch_size=10)
    target.log("A.orders").append(
        replace(message, headers=(("origin", written(offset)),))
        for offset, message in source.log("orders").messages()
    )
    source.group("billing").offsets[TopicPartition("orders", 0)] = CommittedOffset(50)
    settings = flow(translation=TranslationSettings(offset_header=header))
    finding = of_copies(checked(settings, source, target))["header origin"]
    assert finding.severity is severity
    assert words in finding.finding
    assert ("translation.offset.header" in (finding.remedy or "")) == (severity is WARNING)


# --- mirrors that keep offsets --------------------------------------------------------------

KEPT = flow(translation=TranslationSettings(expect=SAME_OFFSETS))


def test_copies_at_the_offsets_of_their_originals_are_said():
    """Where the mirror is expected to keep offsets, and does."""
    found = of_offsets(checked(KEPT, *mirrored({"orders": same}, trimmed=0)))
    assert found == {"offsets": (OK, "equal on both clusters in 4 sampled records")}


def test_copies_at_other_offsets_are_an_error():
    """MirrorMaker 2's are, once a source was trimmed: no group of such a topic is synced."""
    found = of_offsets(checked(KEPT, *mirrored({"orders": same})))
    severity, finding = found["offsets"]
    assert severity is ERROR
    assert "does not keep offsets" in finding
    assert found["topic A.orders"][0] is ERROR
    assert not of_offsets(checked(flow(), *mirrored({"orders": same})))


def test_logs_that_have_diverged_are_an_error():
    """The last records that both have are not the same; those before still are."""
    source, target = mirrored({"orders": same}, trimmed=0)
    for cluster, topic in ((source, "orders"), (target, "A.orders")):
        cluster.log(topic).append([Message(NOW_MS + 1_000, b"k", topic.encode())])
    found = of_offsets(checked(KEPT, source, target))
    assert found["offsets"][0] is OK
    severity, finding = found["topic A.orders"]
    assert severity is ERROR
    assert "have different records at equal offsets, the first at 400:" in finding


def of_offsets(result: CheckResult) -> dict[str, tuple[Severity, str]]:
    return {
        one.subject: (one.severity, one.finding)
        for one in result.findings
        if one.subject in ("offsets", "topic A.orders")
    }
