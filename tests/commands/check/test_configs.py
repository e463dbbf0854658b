"""`tsoffset check`: configurations of topics, and the proof that they allow."""

import pytest

from tests.commands.check.test_flow_check import OK, WARNING, settings
from tests.commands.check.test_record_times import DAY_MS, ORDERS
from tests.memory_flows import flow
from tsoffset.commands.check.clusters import lacks_max_timestamp
from tsoffset.commands.check.configs import TopicConfigs, compared_configs, duration
from tsoffset.commands.check.findings import Finding
from tsoffset.commands.check.rights import Granting
from tsoffset.commands.check.survey import SyncedTopic
from tsoffset.cycle.cleanup_policy import Configs
from tsoffset.flow.settings import SAME_OFFSETS, FlowSettings, TranslationSettings
from tsoffset.model import Broker, ClusterDescription, Failed, FailureKind


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
