"""`tsoffset check`: Kafka Streams applications, whose state may not be on the target."""

import pytest

from tests.commands.check.test_flow_check import checked, commit, filled, found, worst
from tests.memory_flows import flow, identity_flow
from tsoffset.commands.check.findings import Severity
from tsoffset.flow.policy import DefaultTopicFilter
from tsoffset.model import GroupType
from tsoffset.testing.memory_cluster import MemoryCluster

WARNING = Severity.WARNING
SUBJECT = "Kafka Streams"
CHANGELOG, REPARTITION = "app-counts-changelog", "app-by-city-repartition"


def application(*topics: str, type_: GroupType = GroupType.STREAMS) -> MemoryCluster:
    """The source: `app` reads `orders` and its repartition topics."""
    source = filled("A", "orders", *topics)
    source.group("app", type_)
    for topic in ("orders", *topics):
        if not topic.endswith("-changelog"):
            commit(source, "app", topic)
    return source


@pytest.mark.parametrize(
    ("the_flow", "there", "remedy"),
    [
        (identity_flow("A", "B"), ("orders",), "have the replicator copy these topics"),
        # The application's own topic on B is no copy.
        (flow(), ("A.orders", CHANGELOG), "use IdentityReplicationPolicy"),
        (flow(), ("A.orders", f"A.{CHANGELOG}"), "use IdentityReplicationPolicy"),
        (
            identity_flow("A", "B", topic_filter=DefaultTopicFilter(("orders",))),
            ("orders", CHANGELOG),
            "select them with `topics`",
        ),
    ],
    ids=["not mirrored", "not mirrored, renamed", "renamed", "not selected"],
)
def test_a_changelog_that_is_not_on_the_target_is_a_warning(the_flow, there, remedy):
    """Translated offsets and empty state stores: the results of the application would be wrong."""
    finding = found(checked(the_flow, application(CHANGELOG), filled("B", *there)), SUBJECT)
    assert (finding.severity, finding.cluster) == (WARNING, "B")
    assert finding.finding.startswith("1 application (app): B has no copy of 1 topic")
    assert CHANGELOG in finding.finding
    assert "empty state stores" in finding.finding
    assert "repartition" not in finding.finding
    assert remedy in (finding.remedy or "")


@pytest.mark.parametrize(
    "topic", [REPARTITION, "app-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic"]
)
def test_records_in_a_repartition_topic_that_is_not_mirrored_are_lost(topic):
    """The application has read their originals, and gets neither again."""
    source, target = application(CHANGELOG, topic), filled("B", "orders", CHANGELOG)
    finding = found(checked(identity_flow("A", "B"), source, target), SUBJECT)
    assert f"no copy of 1 topic ({topic})" in finding.finding
    assert "does not process what waits in its repartition topics" in finding.finding


def test_an_application_whose_topics_are_all_mirrored_is_well():
    """Under their names."""
    topics = ("orders", CHANGELOG, REPARTITION)
    source, target = application(*topics[1:]), filled("B", *topics)
    assert worst(checked(identity_flow("A", "B"), source, target)) == set()


def test_a_classic_group_is_an_application_by_the_names_of_its_topics():
    """The longest group that a name begins with. A group that has committed offsets in the topic
    is a consumer of something that is only called so, and a group without any is not synced."""
    source = application(CHANGELOG, "app-eu-counts-changelog", type_=GroupType.CLASSIC)
    target = filled("B", "orders")
    commit(source, "app-eu", "orders")
    finding = found(checked(identity_flow("A", "B"), source, target), SUBJECT)
    assert finding.finding.startswith("2 applications (app, app-eu): ")
    source.group("app-eu").offsets.clear()
    finding = found(checked(identity_flow("A", "B"), source, target), SUBJECT)
    assert "1 application (app): " in finding.finding
    commit(source, "app", CHANGELOG)
    commit(source, "app", "app-eu-counts-changelog")
    result = checked(identity_flow("A", "B"), source, target)
    assert SUBJECT not in {one.subject for one in result.findings}


def test_consumers_and_stateless_applications_have_no_finding():
    """Neither has topics of its own."""
    source, target = application(), filled("B", "orders")
    commit(source, "billing", "orders")
    result = checked(identity_flow("A", "B"), source, target)
    assert SUBJECT not in {one.subject for one in result.findings}
