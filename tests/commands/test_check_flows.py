"""`tsoffset check`: what it decides of record times, configurations, other committers, skipped
commits, Java and Spark."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from unittest.mock import patch

import pytest

from tests.commands.test_check import checked, filled, found, mirrored, settings, worst
from tests.commands.test_compare import checkpoint
from tests.memory_flows import NOW_MS, Estate, flow
from tsoffset.commands.check import clusters
from tsoffset.commands.check.clusters import lacks_max_timestamp
from tsoffset.commands.check.configs import TopicConfigs, compared_configs, duration
from tsoffset.commands.check.findings import Finding, Severity
from tsoffset.commands.check.groups import checkpoints_seen, other_committer
from tsoffset.commands.check.record_times import RecordTimes, compared_times
from tsoffset.commands.check.rights import Granting
from tsoffset.commands.check.survey import SyncedTopic
from tsoffset.cycle.cleanup_policy import Configs
from tsoffset.errors import JavaTooOld
from tsoffset.flow.policy import DefaultGroupFilter
from tsoffset.flow.settings import SAME_OFFSETS, FlowSettings, TranslationSettings
from tsoffset.model import (
    Broker,
    ClusterDescription,
    CommittedOffset,
    Failed,
    FailureKind,
    TopicPartition,
)
from tsoffset.testing.memory_cluster import Message

OK, WARNING, ERROR = Severity.OK, Severity.WARNING, Severity.ERROR
ORDERS = SyncedTopic("orders", "A.orders", frozenset({0}), ("billing",))
DAY_MS = 86_400_000


# --- record times ---------------------------------------------------------------------------


def test_records_of_the_future_are_a_warning():
    """By more than a minute: a clock is wrong, unless that is intended."""
    source, target = mirrored()
    source.log("orders").append([Message(32_503_680_000_000, b"k", b"year 3000")])
    assert worst(checked(flow(), source, target)) == {(WARNING, "clock")}
    newest = {ORDERS: RecordTimes(newest_ms=NOW_MS + 60_000)}
    assert not list(compared_times(flow(), newest, {"A.orders": {}}, NOW_MS))


@pytest.mark.parametrize(
    ("configs", "refused"),
    [
        ({}, None),
        ({"after": "7200000"}, None),
        ({"after": "3600000"}, "after"),
        ({"before": str(DAY_MS)}, "before"),
        ({"before": str(10 * DAY_MS)}, None),
        ({"difference": str(DAY_MS)}, "before"),
        ({"difference": str(DAY_MS), "before": str(2**63 - 1)}, None),
    ],
)
def test_records_that_copies_would_refuse_are_a_warning(configs, refused):
    """A source with records from three days ago to two hours ahead; the limit for both of brokers
    before 3.6 counts where the two are absent."""
    times = {ORDERS: RecordTimes(NOW_MS - 3 * DAY_MS, NOW_MS + 7_200_000)}
    limits = {f"message.timestamp.{key}.max.ms": value for key, value in configs.items()}

    def subjects(of_copy: Configs) -> list[str]:
        found = compared_times(flow(), times, {"A.orders": of_copy}, NOW_MS)
        return [one.subject for one in found if one.cluster == "B"]

    assert subjects(limits) == ([f"message.timestamp.{refused}.max.ms"] if refused else [])
    assert subjects(limits | {"message.timestamp.type": "LogAppendTime"}) == []


# --- configurations -------------------------------------------------------------------------


def compared(original: Configs, copy: Configs) -> TopicConfigs:
    return TopicConfigs(ORDERS, original, copy)


def judged(
    *pairs: TopicConfigs, the_flow: FlowSettings | None = None, old: bool = False
) -> list[Finding]:
    source, target = (Granting("A->B", settings(alias), "User:alice") for alias in "AB")
    return list(
        compared_configs(the_flow or flow(), pairs, source, target, lacks_max_timestamp=old)
    )


DELETE = {"cleanup.policy": "delete"}
COMPACT = {"cleanup.policy": "compact"}
BOTH = {"cleanup.policy": "compact,delete"}
REFUSED = Failed(FailureKind.AUTHORIZATION, "no; grant it")
GRANTS = (
    "run kafka-acls --bootstrap-server b:9092 --add --allow-principal User:alice"
    " --operation DescribeConfigs --topic A.orders"
)


def proofs(copy: Configs, the_flow: FlowSettings | None = None, old: bool = False) -> list[Finding]:
    found = judged(compared(copy, copy), the_flow=the_flow, old=old)
    return [one for one in found if one.subject == "proof"]


@pytest.mark.parametrize(
    ("copy", "severity", "words", "remedy"),
    [
        (DELETE, OK, "1 topic not compacted: the proof by first copy can be used", None),
        (COMPACT, OK, "1 topic compacted (A.orders): the proof by first copy cannot be used", None),
        (BOTH, OK, "1 topic compacted (A.orders)", None),
        (REFUSED, WARNING, "DESCRIBE_CONFIGS is missing on 1 topic (A.orders)", GRANTS),
        (Failed(FailureKind.TIMEOUT, "slow; wait"), WARNING, "is not known (slow): ", "wait"),
        ({}, WARNING, "configuration of 1 topic (A.orders) is not known: ", None),
    ],
)
def test_check_says_which_proof_a_target_topic_allows(copy, severity, words, remedy):
    """Only a topic whose cleanup.policy is known to lack compact allows the proof by first copy.
    What is not known is a warning: cycles go on with the other proofs."""
    (finding,) = proofs(copy)
    assert (finding.severity, finding.cluster, finding.subject) == (severity, "B", "proof")
    assert (words in finding.finding, finding.remedy) == (True, remedy)


def test_compacted_topics_on_brokers_before_3_0_are_a_warning():
    """These cannot look up the largest timestamp of a log, so more groups get no offset."""
    (finding,) = proofs(COMPACT, old=True)
    assert finding.severity is WARNING
    assert finding.remedy == "upgrade the target's brokers to 3.0 or later"
    assert [one.severity for one in proofs(DELETE, old=True)] == [OK]
    for version, untold in (("2.8.2", True), ("3.0.0", False), ("4.3", False)):
        brokers = (Broker(1, "b", 9092, None), Broker(2, "b", 9093, version))
        assert lacks_max_timestamp(ClusterDescription("id", brokers)) is untold


@pytest.mark.parametrize(
    "translation",
    [TranslationSettings(proof="timestamps"), TranslationSettings(expect=SAME_OFFSETS)],
)
def test_flows_without_the_proof_by_first_copy_have_no_finding_of_it(translation):
    """Timestamps prove nothing, and equal offsets have a proof of their own."""
    assert proofs(COMPACT, the_flow=flow(translation=translation)) == []


def test_failback_has_no_finding_of_the_proof_by_first_copy():
    """The target holds the original there, and translations do not use that proof."""
    original = SyncedTopic("B.orders", "orders", frozenset({0}), ("billing",))
    (finding,) = judged(TopicConfigs(original, COMPACT, COMPACT))
    assert finding.subject == "retention"
    unread = judged(TopicConfigs(original, COMPACT, REFUSED), compared(DELETE, REFUSED))
    assert [(one.subject, one.finding.partition(":")[0]) for one in unread] == [
        ("proof", "DESCRIBE_CONFIGS is missing on 1 topic (A.orders)"),
        ("retention", "DESCRIBE_CONFIGS is missing on 1 topic (orders)"),
    ]


@pytest.mark.parametrize(
    ("original", "copy", "subject"),
    [
        ({"retention.ms": "1000"}, {"retention.ms": "1000"}, None),
        ({"retention.ms": "1000"}, {"retention.ms": "2000"}, None),
        ({"retention.ms": "1000"}, {"retention.ms": "-1"}, None),
        ({"retention.ms": "2000"}, {"retention.ms": "1000"}, "retention.ms"),
        ({"retention.ms": "-1"}, {"retention.ms": "1000"}, "retention.ms"),
        ({"retention.bytes": "-1"}, {"retention.bytes": "5"}, "retention.bytes"),
        (COMPACT, COMPACT | {"retention.ms": "1000"}, None),
        (COMPACT, BOTH | {"retention.ms": "1000"}, "retention.ms"),
        ({"retention.ms": "2000"}, COMPACT | {"retention.ms": "1000"}, "cleanup.policy"),
    ],
)
def test_copies_that_keep_less_are_a_warning(original, copy, subject):
    """By time or size, -1 being without limit, and only where logs are cut at all."""
    (finding,) = [one for one in judged(compared(original, copy)) if one.subject != "proof"]
    assert (finding.severity, finding.subject) == (
        (OK, "retention") if subject is None else (WARNING, subject)
    )


def test_configurations_that_one_may_not_see_are_told_with_the_command():
    """Without the proof by first copy only `check` reads them: no warning."""
    (_, finding) = judged(compared(REFUSED, DELETE))
    assert (finding.severity, finding.cluster, finding.subject) == (OK, "A", "retention")
    assert "--operation DescribeConfigs --topic orders" in (finding.remedy or "")
    unproven = flow(translation=TranslationSettings(proof="timestamps"))
    (finding,) = judged(compared({}, REFUSED), the_flow=unproven)
    assert (finding.severity, finding.cluster, finding.subject) == (OK, "B", "retention")
    assert finding.remedy == GRANTS


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (7 * DAY_MS, "7 d"),
        (5_400_000, "90 min"),
        (90_000, "90 s"),
        (1_500, "1500 ms"),
        (0, "0 ms"),
        (11 * DAY_MS + 1, "11 d"),
    ],
)
def test_durations_are_short(milliseconds, words):
    """In the largest unit that says it."""
    assert duration(milliseconds) == words


# --- another committer ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stamp", "sync_enabled", "severity"),
    [
        (NOW_MS - 12_000, True, WARNING),
        (NOW_MS - 12_000, None, OK),
        (NOW_MS - 12_000, False, OK),
        (NOW_MS - 3_600_000, True, None),
    ],
)
def test_checkpoints_that_are_being_written_are_told(stamp, sync_enabled, severity):
    """A warning where this very file has MirrorMaker 2 commit them, too: if its offset skips
    records, it stays, because no cycle moves a group backwards."""
    the_flow = replace(flow(), sync_enabled=sync_enabled)
    findings = list(other_committer(the_flow, {"billing": stamp, "old": 0}, NOW_MS))
    assert [finding.severity for finding in findings] == ([] if severity is None else [severity])
    assert all("1 group of this flow (billing), the newest 12 s" in f.finding for f in findings)
    told = [one.severity for one in findings if "even if MirrorMaker 2's skips" in one.finding]
    assert told == ([WARNING] if severity is WARNING else [])


def test_checkpoints_of_the_flow_s_groups_are_read_from_the_target():
    """The newest of each group that passes the filter; without the topic there is none."""
    estate = Estate()
    passing = flow(group_filter=DefaultGroupFilter(("billing",)))
    assert checkpoints_seen(passing, estate["B"]) == {}
    for number, group in enumerate(("billing", "billing", "other")):
        checkpoint(estate, group, 5, 5, partition=number, timestamp_ms=NOW_MS + number)
    assert checkpoints_seen(passing, estate["B"]) == {"billing": NOW_MS + 1}


# --- skipped commits, groups left out -------------------------------------------------------


def test_commits_that_are_skipped_come_with_what_reset_means():
    """Behind the log's start, past its end, without a copy: counted, and no alarm."""
    source, target = filled("A", "orders", "unmirrored"), filled("B", "A.orders")
    source.log("orders").delete_records(5)
    for group, topic, offset in (
        ("fine", "orders", 7),
        ("late", "orders", 4),
        ("beyond", "orders", 11),
        ("lost", "unmirrored", 5),
    ):
        source.group(group).offsets[TopicPartition(topic, 0)] = CommittedOffset(offset)
    finding = found(checked(flow(), source, target), "auto.offset.reset")
    assert finding.severity is OK
    assert finding.finding.startswith("3 committed offsets will be skipped")
    for words in ("1 EXPIRED", "1 PAST_LOG_END", "1 TARGET_MISSING", "beyond, late, lost"):
        assert words in finding.finding


def test_groups_that_no_flow_takes_are_named():
    """A group that another flow of the same source takes is not left out."""
    source, target = mirrored("billing", "audit", "idle")
    one = flow(group_filter=DefaultGroupFilter(("billing",)))
    other = flow("A", "C", group_filter=DefaultGroupFilter(("audit",)))
    groups = found(checked(one, source, target, filled("C"), others=(other,)), "groups")
    assert groups.finding == "1 of 3 groups selected; selected by no flow: idle"


# --- this machine and executors -------------------------------------------------------------


def on_machine(
    spark: Mapping[str, str], java: int | Exception = 17, pyspark: str | Exception = "4.1"
) -> set[str]:
    """Severities and subjects that are not ok."""
    with (
        patch.object(clusters, "java_version", side_effect=[java]),
        patch.object(clusters, "version", side_effect=[pyspark]),
    ):
        findings = list(clusters.machine(spark))
    assert all(finding.remedy for finding in findings if finding.severity is not OK)
    return {f"{f.severity} {f.subject}" for f in findings}


def test_java_and_spark_are_looked_at():
    """Without either no cycle runs; with both it is one line."""
    old = JavaTooOld("use java: it is Java 11; install a newer one")
    assert on_machine({}) == {"ok Spark"}
    assert on_machine({}, java=old) == {"error Java"}
    assert on_machine({}, pyspark=PackageNotFoundError("pyspark")) == {"error PySpark"}


def test_executors_elsewhere_need_the_package(tmp_path):
    """Some setting must bring it, and an archive on this machine must exist."""
    packed = tmp_path / "environment.tar.gz"
    cluster = {"spark.master": "yarn"}
    assert on_machine(cluster) == {"ok Spark", "warning executors"}
    image = {"spark.kubernetes.container.image": "registry/tsoffset"}
    assert on_machine(cluster | image) == {"ok Spark"}
    for archive in (f"{packed}#environment", f"file://{packed}#environment"):
        packed.unlink(missing_ok=True)
        brought = cluster | {"spark.archives": archive}
        assert on_machine(brought) == {"ok Spark", "error spark.archives"}
        packed.touch()
        assert on_machine(brought) == {"ok Spark"}
    assert on_machine(cluster | {"spark.archives": "hdfs://a/b.zip"}) == {"ok Spark"}
