"""`tsoffset check`: what the clusters answer, and what that means for a flow."""

from dataclasses import replace

import pytest

from tests.memory_flows import RaisingGroups, after_each, flow, identity_flow
from tsoffset.cluster import Cluster
from tsoffset.commands.check.findings import Finding, Severity
from tsoffset.commands.check.flow_check import CheckResult, check, finding_lines
from tsoffset.flow.policy import (
    DefaultGroupFilter,
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    IdentityReplicationPolicy,
)
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.model import CommittedOffset, Failed, FailureKind, GroupType, TopicPartition
from tsoffset.testing.memory_cluster import MemoryCluster, Message, Verb

OK, WARNING, ERROR = Severity.OK, Severity.WARNING, Severity.ERROR


def settings(alias: str, *addresses: str) -> ClusterSettings:
    return ClusterSettings(alias, addresses or (f"{alias.lower()}:9092",))


def filled(alias: str, *topics: str, partitions: int = 1) -> MemoryCluster:
    cluster = MemoryCluster(alias)
    for topic in topics:
        cluster.create_topic(topic, partitions)
        for number in range(partitions):
            cluster.log(topic, number).append(
                [Message(1_000 + n, b"k", b"v%d" % n) for n in range(10)]
            )
    return cluster


def commit(cluster: MemoryCluster, group: str, topic: str, partition: int = 0) -> None:
    cluster.group(group).offsets[TopicPartition(topic, partition)] = CommittedOffset(5)


def mirrored(*groups: str) -> tuple[MemoryCluster, MemoryCluster]:
    """A topic and its copy, and a group on the source: these, or `billing`."""
    source, target = filled("A", "orders"), filled("B", "A.orders")
    for group in groups or ("billing",):
        commit(source, group, "orders")
    return source, target


def checked(
    the_flow: FlowSettings, *clusters: MemoryCluster, others: tuple[FlowSettings, ...] = ()
) -> CheckResult:
    by_alias = {cluster.alias: cluster for cluster in clusters}

    def connect(wanted: ClusterSettings) -> Cluster:
        return by_alias[wanted.alias]

    return check([the_flow], connect, all_flows=(the_flow, *others))


def found(result: CheckResult, subject: str, severity: Severity | None = None) -> Finding:
    (finding,) = [
        finding
        for finding in result.findings
        if finding.subject == subject and severity in (None, finding.severity)
    ]
    return finding


def worst(result: CheckResult) -> set[tuple[Severity, str]]:
    return {
        (finding.severity, finding.subject)
        for finding in result.findings
        if finding.severity is not OK
    }


# --- a flow that is well, and each thing that may be wrong --------------------------------


def test_a_flow_that_is_well_has_no_finding_but_ok():
    """Topics mirrored, timestamps kept, groups found: nothing to remedy, exit 0."""
    source, target = mirrored()
    result = checked(flow(), source, target)
    assert worst(result) == set()
    assert result.exit_status == 0
    assert found(result, "timestamps").finding.startswith("1 of 1 topics")


def test_an_unreachable_cluster_is_an_error_and_exit_3():
    """The other cluster is checked anyway, and exit status 3 outranks 1."""
    source, target = filled("A", "orders"), filled("B")
    target.unreachable = True
    result = checked(flow(), source, target)
    assert found(result, "connection", ERROR).cluster == "B"
    assert found(result, "connection", OK).cluster == "A"
    assert result.exit_status == 3


def test_a_cluster_that_goes_away_on_the_way_is_unreachable_too():
    """What was found before stays; the exit status is 3."""
    source = filled("A", "orders")
    commit(source, "billing", "orders")

    leaving = MemoryCluster("B")
    after_each(leaving, "describe", lambda _: setattr(leaving, "unreachable", True))
    result = checked(flow(), source, leaving)
    assert found(result, "connection", ERROR).cluster == "B"
    assert found(result, "groups", OK).cluster == "A"
    assert result.exit_status == 3


@pytest.mark.parametrize(
    ("the_flow", "there", "told", "remedy"),
    [
        (
            identity_flow("primary", "B"),
            ("primary.orders", "primary.clicks", "orders-old"),
            "the cluster has primary.clicks for clicks, primary.orders for orders, so the"
            " replicator seems to use DefaultReplicationPolicy",
            "mirror.DefaultReplicationPolicy",
        ),
        (
            flow("primary", "B"),
            ("orders", "clicks"),
            "clicks for clicks, orders for orders, so the replicator seems to use"
            " IdentityReplicationPolicy",
            "mirror.IdentityReplicationPolicy",
        ),
        (
            flow("primary", "B"),
            ("eu_orders", "eu_clicks"),
            "the replicator seems to use DefaultReplicationPolicy",
            "replication.policy.separator = _, the alias eu for primary in `clusters`",
        ),
        (flow("primary", "B"), (), "so no group can be synced", "configure the replicator to copy"),
    ],
)
def test_a_flow_in_which_nothing_can_be_synced_is_an_error(the_flow, there, told, remedy):
    """No copy is there by the name that the policy gives: exit 1, with the topics that are there
    instead and the policy that they look like. One copy is enough for it to be none."""
    source = filled("primary", "orders", "clicks")
    for topic in ("orders", "clicks"):
        commit(source, "billing", topic)
    result = checked(the_flow, source, filled("B", *there))
    assert worst(result) == {(ERROR, "topics")}
    finding = found(result, "topics", ERROR)
    assert told in finding.finding
    assert remedy in finding.remedy
    right = the_flow.policy.format_remote_topic("primary", "orders")
    some = checked(the_flow, source, filled("B", *{*there, right}))
    assert (ERROR, "topics") not in worst(some)


def test_originals_on_the_same_cluster_are_no_copies_under_other_names(monkeypatch):
    """Both sides with the addresses of one cluster: the replicator's naming is not to blame."""
    source, target = filled("A", "orders"), filled("B", "orders")
    commit(source, "billing", "orders")
    monkeypatch.setattr(target, "describe", source.describe)
    result = checked(flow(), source, target)
    assert "A and B are the same cluster" in found(result, "cluster ids").finding
    finding = found(result, "topics", ERROR)
    assert "IdentityReplicationPolicy" not in finding.finding + finding.remedy


def test_a_missing_copy_names_the_groups_that_are_skipped():
    """A source topic that groups read and that the target lacks is a warning: TARGET_MISSING
    is a skip, and skips are well."""
    source, target = filled("A", "orders", "unread", "clicks"), filled("B", "A.clicks")
    for topic in ("orders", "clicks"):
        commit(source, "billing", topic)
    result = checked(flow(), source, target)
    finding = found(result, "topic A.orders")
    assert finding.severity is WARNING
    assert "billing" in finding.finding
    assert finding.remedy is not None
    assert worst(result) == {(WARNING, "topic A.orders")}
    assert result.exit_status == 0


def test_a_narrower_copy_is_a_warning():
    """Partitions beyond the copy's are skipped; a wider copy is no matter."""
    source, target = filled("A", "orders", partitions=3), filled("B", "A.orders", partitions=2)
    commit(source, "billing", "orders")
    finding = found(checked(flow(), source, target), "topic A.orders")
    assert finding.severity is WARNING
    assert "has 2 partitions, orders on A has 3" in finding.finding
    wider = filled("B", "A.orders", partitions=4)
    assert worst(checked(flow(), source, wider)) == set()


def test_a_copy_without_a_leader_is_an_error():
    """A partition without a leader fails the rows of the groups that read it."""
    source, target = mirrored()
    target.elect_leader(TopicPartition("A.orders", 0), None)
    result = checked(flow(), source, target)
    assert any("no leader" in f.finding for f in result.findings if f.severity is ERROR)
    assert result.exit_status == 1


def test_no_group_passing_is_a_warning():
    """Filters that let nothing through are the likeliest mistake: it says so."""
    finding = found(checked(flow(), *mirrored("connect-sink")), "groups")
    assert finding.severity is WARNING
    assert finding.finding == "0 of 1 groups selected; selected by no flow: connect-sink"


def test_a_cluster_without_groups_is_not_a_question_of_filters():
    """The remedy is about addresses and rights."""
    finding = found(checked(flow(), filled("A", "orders"), filled("B", "A.orders")), "groups")
    assert finding.severity is WARNING
    assert "DESCRIBE" in (finding.remedy or "")


def test_no_topic_passing_is_a_warning():
    """The same for topics, and for groups that read none of them."""
    source, target = filled("A", "__strange"), filled("B")
    commit(source, "billing", "__strange")
    finding = found(checked(flow(), source, target), "topics")
    assert finding.severity is WARNING
    source.delete_topic("__strange")
    finding = found(checked(flow(), source, target), "topics")
    assert (finding.severity, finding.finding) == (WARNING, "this user can see no topics")


class FaultyPolicy(DefaultReplicationPolicy):
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        if topic == "clicks":
            raise RuntimeError("no rule for it")
        return super().format_remote_topic(source_alias, topic)


def test_a_topic_that_the_users_policy_cannot_name_is_an_error():
    """As in a cycle: all other topics are checked."""
    source, target = mirrored()
    source.create_topic("clicks")
    commit(source, "billing", "clicks")
    result = checked(flow(policy=FaultyPolicy()), source, target)
    assert worst(result) == {(ERROR, "topic clicks")}
    assert "the replication policy raised RuntimeError: no rule for it" in (
        found(result, "topic clicks").finding
    )


def test_a_group_for_which_the_users_filter_raises_is_an_error():
    """As in a cycle: all other groups are checked."""
    raising = flow(group_filter=RaisingGroups("billing"))
    result = checked(raising, *mirrored("billing", "search"))
    assert worst(result) == {(ERROR, "group search")}
    assert found(result, "groups").finding.startswith("1 of ")


@pytest.mark.parametrize("type_", [GroupType.SHARE, GroupType.CLASSIC])
def test_a_share_group_and_a_consumer_group_of_one_name_are_named(type_):
    """None of them becomes the other. A share group that is one on both sides is no finding, and
    its topics are looked at."""
    source, target = filled("A", "orders"), filled("B", "A.orders")
    source.group("billing", GroupType.SHARE)
    commit(source, "billing", "orders")
    target.group("billing", type_)
    warned = [f for f in checked(flow(), source, target).findings if f.severity is WARNING]
    if type_ is GroupType.SHARE:
        assert warned == []
    else:
        (finding,) = warned
        assert "billing (classic)" in finding.finding


def test_groups_active_on_the_target_are_told_without_alarm():
    """Members on the target are as it should be after a failover: ok, with the name."""
    source, target = mirrored()
    target.group("billing").state = "Stable"
    result = checked(flow(), source, target)
    (finding,) = [f for f in result.findings if f.subject == "groups" and f.cluster == "B"]
    assert finding.severity is OK
    assert "billing" in finding.finding


def test_a_commit_that_cannot_be_read_is_an_error():
    """Groups without READ permission are named with the cause and the next step of the first one;
    what fails for another reason has its own."""
    source, target = mirrored()
    denied, slow = FailureKind.AUTHORIZATION, FailureKind.TIMEOUT
    for group, kind, why in (
        ("secret", denied, "read offsets, group secret: denied; grant READ"),
        ("secret-2", denied, "read offsets, group secret-2: denied; grant READ"),
        ("slow", slow, "read offsets, group slow: no answer; restart it"),
    ):
        commit(source, group, "orders")
        source.fail(Failed(kind, why), verb=Verb.COMMITTED, group=group)
    result = checked(flow(), source, target)
    finding = found(result, "2 groups (secret, secret-2)")
    assert (finding.severity, finding.remedy) == (ERROR, "grant READ")
    assert finding.finding == "AUTHORIZATION: read offsets, group secret: denied"
    assert found(result, "1 group (slow)").remedy == "restart it"
    # Filters are not to blame for what these groups have committed.
    source.group("billing").offsets.clear()
    topics = found(checked(flow(), source, target), "topics")
    assert (topics.severity, topics.remedy) == (OK, None)
    assert topics.finding.endswith("in 0, without 3 groups whose offsets cannot be read")


def test_a_broker_that_cannot_list_its_groups_is_an_error():
    """Its groups are not seen, so they are not synced."""
    source, target = mirrored()
    source.fail(Failed(FailureKind.TIMEOUT, "list groups: no answer; restart it"), broker=0)
    result = checked(flow(), source, target)
    assert found(result, "broker 0").severity is ERROR


def test_commits_on_a_deleted_topic_are_a_warning():
    """A group may keep offsets of a topic that is gone."""
    source, target = filled("A", "orders"), filled("B", "A.orders", "A.gone")
    commit(source, "billing", "orders")
    commit(source, "billing", "gone")
    finding = found(checked(flow(), source, target), "topic gone")
    assert (finding.severity, finding.cluster) == (WARNING, "A")


def test_flows_that_write_the_same_topic_are_found():
    """Fan-in under Identity: both write `orders`, which SEVERAL_SOURCES will skip."""
    first, second = filled("A", "orders"), filled("C", "orders")
    target = filled("B", "orders")
    commit(first, "billing", "orders")
    one = flow("A", "B", IdentityReplicationPolicy("A"))
    two = flow("C", "B", IdentityReplicationPolicy("C"))
    finding = found(checked(one, first, second, target, others=(two,)), "flow C->B")
    assert finding.severity is WARNING
    assert "orders" in finding.finding
    second.unreachable = True
    finding = found(checked(one, first, second, target, others=(two,)), "flow C->B")
    assert "cannot be checked" in finding.finding


@pytest.mark.parametrize(
    "competing",
    [
        replace(flow("C", "B", IdentityReplicationPolicy("C")), enabled=False),
        replace(
            flow("C", "B", IdentityReplicationPolicy("C")),
            group_filter=DefaultGroupFilter(("other",)),
        ),
        replace(flow("C", "B", IdentityReplicationPolicy("C")), sync_enabled=False),
        flow("C", "D", IdentityReplicationPolicy("C")),
    ],
    ids=["not enabled", "other groups", "only planned", "other target"],
)
def test_a_flow_that_cannot_collide_is_no_competing_flow(competing):
    """Only an enabled flow that commits on the same cluster, for the same groups, is one."""
    first, second, target = filled("A", "orders"), filled("C", "orders"), filled("B", "orders")
    commit(first, "billing", "orders")
    one = flow("A", "B", IdentityReplicationPolicy("A"))
    result = checked(one, first, second, target, filled("D"), others=(competing,))
    assert worst(result) == set()


def test_a_replication_loop_is_found():
    """A->B and B->A both take `orders` and both keep its name; `clicks` goes one way only."""
    source, target = filled("A", "orders", "clicks"), filled("B", "orders", "clicks")
    commit(source, "billing", "orders")
    commit(source, "billing", "clicks")
    there = identity_flow("A", "B")
    back = identity_flow("B", "A", topic_filter=DefaultTopicFilter(exclude=("clicks",)))
    finding = found(checked(there, source, target, others=(back,)), "flow B->A")
    assert (finding.severity, "orders" in finding.finding) == (WARNING, True)
    assert "clicks" not in finding.finding
    for harmless in (replace(back, enabled=False), flow("B", "A")):
        assert worst(checked(there, source, target, others=(harmless,))) == set()


def test_a_cluster_is_asked_once_for_several_flows():
    """Flows with the same source share its connection and its description."""
    source = filled("A", "orders")
    clusters = {"A": source, "B": filled("B"), "C": filled("C")}
    check([flow("A", "B"), flow("A", "C")], lambda wanted: clusters[wanted.alias])
    assert sum(request.verb is Verb.DESCRIBE for request in source.requests) == 1


@pytest.mark.parametrize("width", [None, 80, 200])
def test_findings_are_told_with_their_remedies(width):
    """Each finding names place and subject; a remedy follows; the last line counts them."""
    findings = [
        Finding(OK, "A->B", "A", "connection", "1 broker"),
        Finding(ERROR, "A->B", "B", "topic " + "t" * 80, "is " + "bad " * 40, "mend it"),
        Finding(WARNING, None, None, "configuration", "file:3: odd key"),
    ]
    lines = [line.plain for line in finding_lines(findings, width)]
    text = "\n".join(lines)
    assert lines[-1] == "check: 1 error, 1 warning, 1 ok"
    assert "flow A->B" in lines
    assert "-> mend it" in text
    assert "file:3: odd key" in text
    if width is not None:
        assert all(len(line) <= max(width, 100) for line in lines)
