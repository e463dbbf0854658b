"""`tsoffset check` and rights: what is missing, hidden or not told, and what grants it."""

import argparse
import json
import shlex
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePatternFilter,
)
from kafka.admin import ResourceType as KafkaResourceType

from tests.commands.check.test_flow_check import checked, commit, found, mirrored, worst
from tests.configured import properties_file
from tests.invoking import ROOT, invoke
from tests.memory_flows import Estate, flow
from tests.producing import Contents, numbered
from tests.secured import PASSWORDS, Secured, secured_broker
from tsoffset.commands.check.findings import Severity
from tsoffset.commands.check.rights import NEEDED, Granting
from tsoffset.flow.policy import DefaultGroupFilter, DefaultTopicFilter
from tsoffset.flow.security import PasswordLogin, Security
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    CommittedOffset,
    Operation,
    Resource,
    Side,
    TopicPartition,
)

OK, WARNING, ERROR = Severity.OK, Severity.WARNING, Severity.ERROR
READ, DESCRIBE, CONFIGS = Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS
TOPIC, GROUP, CLUSTER = Resource.TOPIC, Resource.GROUP, Resource.CLUSTER
NARROW = flow(
    group_filter=DefaultGroupFilter(("billing", "secret")),
    topic_filter=DefaultTopicFilter(("orders", "hidden")),
)


# --- single judgments ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["orders"], "--topic orders"),
        (["b", "a"], "--topic b --topic a"),
        ([f"A.{n}" for n in "abcdef"], "--resource-pattern-type prefixed --topic A."),
        ([f"orders{n}" for n in "abcdef"], "--topic '*'"),
        (["it's"], "--topic 'it'\"'\"'s'"),
    ],
)
def test_a_command_names_few_and_covers_many(names, words):
    """One command, whatever the number of names: by what all begin with, up to a separator."""
    granting = Granting("A->B", ClusterSettings("A", ("a:1", "a:2")), "User:CN=alice,O=b")
    assert granting.command(TOPIC, names, {READ, DESCRIBE}) == (
        "kafka-acls --bootstrap-server a:1,a:2 --add --allow-principal User:CN=alice,O=b "
        f"--operation Describe --operation Read {words}"
    )


def test_a_principal_that_only_brokers_know_is_a_placeholder():
    """The remedy says what to put in its place."""
    told = Granting("A->B", ClusterSettings("A", ("a:1",)), None).remedy(CLUSTER, [], {DESCRIBE})
    assert "--allow-principal 'User:<principal>' --operation Describe --cluster" in told
    assert "the brokers know this client" in told


# --- flows in memory ----------------------------------------------------------------------


def test_rights_that_suffice_are_one_line_a_cluster():
    """Nothing but what NEEDED says, and what the proof by first copy takes: no finding but ok."""
    source, target = mirrored()
    for cluster, side in ((source, Side.SOURCE), (target, Side.TARGET)):
        for resource in (TOPIC, GROUP):
            cluster.allowed.restrict(resource, "*", *NEEDED[side, resource])
        cluster.allowed.restrict(CLUSTER, "*")
    target.allowed.restrict(TOPIC, "*", READ, DESCRIBE, CONFIGS)
    result = checked(flow(), source, target)
    assert worst(result) == set()
    told = [one.finding for one in result.findings if one.subject == "rights"]
    assert told == [
        "DESCRIBE and READ on 1 topic; DESCRIBE on 1 group, as User:memory",
        "DESCRIBE and READ on 1 topic; DESCRIBE and READ on 1 group, as User:memory",
    ]
    (unseen,) = [one for one in result.findings if one.subject == "retention"]
    assert unseen.cluster == "A"
    assert "--operation DescribeConfigs" in (unseen.remedy or "")


def test_an_optional_right_that_is_missing_is_a_warning():
    """Without DESCRIBE_CONFIGS on target topics cycles go on, and lose the proof by first copy."""
    source, target = mirrored()
    target.allowed.restrict(TOPIC, "*", READ)
    result = checked(flow(), source, target)
    assert worst(result) == {(WARNING, "proof")}
    assert result.exit_status == 0
    remedy = found(result, "proof").remedy or ""
    assert remedy.endswith("--operation DescribeConfigs --topic A.orders")
    assert not [one for one in result.findings if one.subject == "retention"]


def test_a_user_that_cannot_notice_unlisted_groups_is_told_so_on_both_sides():
    clusters = mirrored()
    commit(clusters[1], "another", "A.orders")
    for cluster in clusters:
        cluster.allowed.restrict(TOPIC, GROUP_OFFSETS_TOPIC)
    result = checked(flow(), *clusters)
    told = [one for one in result.findings if one.subject == f"topic {GROUP_OFFSETS_TOPIC}"]
    assert [(one.severity, one.cluster) for one in told] == [(WARNING, "A"), (WARNING, "B")]
    assert result.exit_status == 0
    step = f"--operation Describe --topic {GROUP_OFFSETS_TOPIC}"
    assert all((one.remedy or "").endswith(step) for one in told)
    # Nothing is known of a topic that need not exist.
    empty = Estate()
    for alias in "AB":
        empty[alias].allowed.restrict(TOPIC, GROUP_OFFSETS_TOPIC)
    told = checked(flow(), empty["A"], empty["B"]).findings
    assert not [one for one in told if GROUP_OFFSETS_TOPIC in one.subject]


@pytest.mark.parametrize("elects", [False, True])
def test_the_group_of_an_election_is_asked_for_where_there_is_one(elects):
    """READ on it, which joining needs; it is on the target, whether it exists or not."""
    source, target = mirrored()
    target.allowed.restrict(GROUP, "tsoffset-A->B", DESCRIBE)
    result = checked(flow(leader_election=elects), source, target)
    missing = [one for one in result.findings if "READ missing on 1 group" in one.finding]
    assert ["(tsoffset-A->B)" in one.finding for one in missing] == ([True] if elects else [])


def test_many_missing_rights_are_one_finding_and_one_command():
    """Of 300 groups that may not be committed for, a few are named and all are granted."""
    source, target = mirrored()
    for number in range(300):
        commit(source, f"team.{number}", "orders")
    target.allowed.restrict(GROUP, "*", DESCRIBE)
    target.allowed.restrict(GROUP, "billing", READ)
    finding = found(checked(flow(), source, target), "rights on groups")
    assert (finding.severity, finding.cluster) == (ERROR, "B")
    assert finding.finding.startswith("READ missing on 300 groups (team.0, ")
    assert (finding.remedy or "").endswith("--resource-pattern-type prefixed --group team.")


def test_a_group_that_is_listed_and_may_not_be_described_is_one_error():
    """A user that may describe the cluster sees its name. That its offsets cannot be read follows,
    and is not told as well."""
    source, target = mirrored()
    source.allowed.restrict(GROUP, "billing")
    result = checked(flow(), source, target)
    told = [one.subject for one in result.findings if one.severity is ERROR]
    assert told == ["rights on groups"]


def test_names_that_rights_hide_are_told_from_those_that_do_not_exist():
    """What the lists write out and no listing shows is asked for by name."""
    source, target = mirrored()
    source.allowed.restrict(GROUP, "secret")
    source.allowed.restrict(CLUSTER, "*")
    result = checked(NARROW, source, target)
    assert worst(result) == {
        (ERROR, "groups hidden by rights"),
        (WARNING, "topics that do not exist"),
    }
    remedy = found(result, "groups hidden by rights").remedy or ""
    assert remedy.endswith("--operation Describe --group secret")
    source.allowed.restrict(TOPIC, "hidden")
    source.allowed.restrict(GROUP, "secret", DESCRIBE)
    assert worst(checked(NARROW, source, target)) == {
        (ERROR, "topics hidden by rights"),
        (WARNING, "groups that do not exist"),
    }
    # A group that no broker lists may exist.
    source.create_topic(GROUP_OFFSETS_TOPIC, internal=True)
    source.elect_leader(TopicPartition(GROUP_OFFSETS_TOPIC, 0), None)
    unlisted = worst(checked(NARROW, source, target))
    assert (ERROR, f"topic {GROUP_OFFSETS_TOPIC}") in unlisted
    assert (WARNING, "groups that do not exist") not in unlisted


def test_a_listing_that_may_lack_some_is_told():
    """Only where the filters may mean names that are not written out, and for groups only where
    the cluster may not be described."""
    source, target = mirrored()
    for resource in (GROUP, TOPIC):
        source.allowed.restrict(resource, "*")
    for resource, name in ((GROUP, "billing"), (TOPIC, "orders"), (TOPIC, GROUP_OFFSETS_TOPIC)):
        source.allowed.restrict(resource, name, READ)

    def partial() -> set[str]:
        result = checked(flow(), source, target)
        assert worst(result) == set()
        return {one.subject for one in result.findings if "the list has only" in one.finding}

    assert partial() == {"topics"}
    source.allowed.restrict(CLUSTER, "*")
    assert partial() == {"topics", "groups"}
    names = flow(
        group_filter=DefaultGroupFilter(("billing",)), topic_filter=DefaultTopicFilter(("orders",))
    )
    assert not [
        one for one in checked(names, source, target).findings if "the list has only" in one.finding
    ]


def test_the_documentation_has_the_table_of_rights():
    """docs/configuration.md says the same as the code."""
    text = (ROOT / "docs" / "configuration.md").read_text()
    listed = {
        tuple(cells)
        for line in text.splitlines()
        if len(cells := line.strip("| ").split(" | ")[:3]) == 3 and cells[1] in ("topic", "group")
    }
    needed = {(*key, one.name) for key, operations in NEEDED.items() for one in operations}
    optional = {
        ("source", "topic", "DESCRIBE_CONFIGS (only `check`)"),
        ("target", "topic", "DESCRIBE_CONFIGS (optional)"),
    }
    assert listed == needed | optional


# --- real brokers with an authorizer ------------------------------------------------------

LEAST = (
    (Side.SOURCE, "topic", "orders", ("read", "describe", "describe_configs")),
    (Side.SOURCE, "topic", GROUP_OFFSETS_TOPIC, ("describe",)),
    (Side.SOURCE, "group", "billing", ("describe",)),
    (Side.TARGET, "topic", "A.orders", ("read", "describe", "describe_configs")),
    (Side.TARGET, "group", "billing", ("read", "describe")),
)


@pytest.fixture(scope="module")
def least(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Side, Secured]]:
    """Source and target with a mirrored topic, a group on the source, and two that alice may not
    see; she has the least rights for the others."""
    with (
        secured_broker(tmp_path_factory.mktemp("secured"), "source") as source,
        secured_broker(tmp_path_factory.mktemp("secured"), "target") as target,
        closing(Contents(source.broker.admin)) as here,
        closing(Contents(target.broker.admin)) as there,
    ):
        records = numbered(100)
        for contents, topic in ((here, "orders"), (here, "others"), (there, "A.orders")):
            contents.create_topic(topic)
            contents.produce(topic, records, batch=10)
        for group in ("billing", "secret"):
            here.commit_offsets(group, {("orders", 0): 40, ("others", 0): 40})
        by_side = {Side.SOURCE: source, Side.TARGET: target}
        for side, resource, name, operations in LEAST:
            by_side[side].grant("alice", resource, name, *operations)
        yield by_side


def entered(address: str, user: str, password: str) -> KafkaCluster:
    login = PasswordLogin("PLAIN", user, password)
    return KafkaCluster(ClusterSettings("A", (address,), security=Security(login=login)))


def configuration(least: dict[Side, Secured], folder: Path, *lines: str) -> Path:
    """A file with the flow of that topic and group, entered as alice."""
    accesses = {
        alias: least[side].by_password("alice", "PLAIN", tls=False)
        for alias, side in (("A", Side.SOURCE), ("B", Side.TARGET))
    }
    entries = [
        f"{alias}.{key} = " + value.replace("\\", "\\\\")
        for alias, access in accesses.items()
        for key, value in access.properties().items()
        if key != "bootstrap.servers"
    ]
    addresses = [access.bootstrap for access in accesses.values()]
    return properties_file(folder, *addresses, *entries, *lines)


WRITTEN = ("groups = billing", "topics = orders")


def findings(file: Path, exit_code: int = 0) -> list[dict[str, str]]:
    result = invoke("check", "-c", str(file), "--format", "json")
    assert result.exit_code == exit_code, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def commands(found: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Which cluster to run what on."""
    return [
        (one["cluster"], "kafka-acls" + one["remedy"].partition("kafka-acls")[2])
        for one in found
        if "kafka-acls" in (one["remedy"] or "")
    ]


def run(secured: Secured, command: str) -> None:
    """Do what a kafka-acls command does, by an administrator."""
    parser = argparse.ArgumentParser()
    for option in ("--bootstrap-server", "--allow-principal"):
        parser.add_argument(option, required=True)
    parser.add_argument("--add", action="store_true", required=True)
    parser.add_argument("--resource-pattern-type", default="literal")
    parser.add_argument("--cluster", action="store_const", const=["kafka-cluster"], default=[])
    for option in ("--operation", "--topic", "--group"):
        parser.add_argument(option, action="append", default=[])
    _, *words = shlex.split(command)
    given = parser.parse_args(words)
    assert given.resource_pattern_type == "literal"
    user = given.allow_principal.removeprefix("User:")
    operations = [
        {"DescribeConfigs": "describe_configs"}.get(one, one.lower()) for one in given.operation
    ]
    for resource in ("topic", "group", "cluster"):
        for name in getattr(given, resource):
            secured.grant(user, resource, name, *operations)


@pytest.mark.integration
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("side", "resource", "name", "revoked", "words"),
    [
        (Side.SOURCE, "topic", "orders", ["read"], "READ missing on 1 topic (orders)"),
        (
            Side.SOURCE,
            "topic",
            "orders",
            ["read", "describe", "describe_configs"],
            "topics names orders",
        ),
        (Side.SOURCE, "topic", "orders", ["describe_configs"], "DESCRIBE_CONFIGS is missing"),
        (Side.SOURCE, "group", "billing", ["describe"], "groups names billing"),
        (Side.SOURCE, "topic", GROUP_OFFSETS_TOPIC, ["describe"], "DESCRIBE is missing"),
        (Side.TARGET, "topic", "A.orders", ["read"], "READ missing on 1 topic (A.orders)"),
        (
            Side.TARGET,
            "topic",
            "A.orders",
            ["read", "describe", "describe_configs"],
            "DESCRIBE and READ missing on 1 topic (A.orders)",
        ),
        (Side.TARGET, "topic", "A.orders", ["describe_configs"], "DESCRIBE_CONFIGS is missing"),
        (Side.TARGET, "group", "billing", ["read"], "READ missing on 1 group (billing)"),
        (
            Side.TARGET,
            "group",
            "billing",
            ["read", "describe"],
            "DESCRIBE and READ missing on 1 group (billing)",
        ),
    ],
)
def test_a_right_that_is_revoked_is_named_and_its_command_gives_it_back(
    least, tmp_path, side, resource, name, revoked, words
):
    """Revoked on a real broker; once what check says is run, check says nothing of it any more."""
    file = configuration(least, tmp_path, *WRITTEN)
    assert commands(findings(file)) == []
    least[side].revoke("alice", resource, name, *revoked)
    try:
        optional = revoked == ["describe_configs"] or name == GROUP_OFFSETS_TOPIC
        told = findings(file, exit_code=0 if optional else 1)
        alias = "A" if side is Side.SOURCE else "B"
        assert any(words in one["finding"] and one["cluster"] == alias for one in told), told
        for _ in range(2):  # What was hidden may lack another right.
            for cluster, command in commands(told):
                run(least[Side.SOURCE if cluster == "A" else Side.TARGET], command)
            told = findings(file)
        assert commands(told) == []
    finally:
        least[side].grant("alice", resource, name, *revoked)


@pytest.mark.integration
@pytest.mark.thorough
def test_rights_are_those_of_the_authorizer(least, tmp_path):
    """What a broker tells, for names that exist, that do not, and that are hidden."""
    address = least[Side.SOURCE].broker.bootstrap_at("SASL")
    with entered(address, "alice", PASSWORDS["alice"]) as cluster:
        rights = cluster.rights(["orders", "others", "nothing"], ["billing", "secret", "nothing"])
        assert rights.topics == {
            "orders": {READ, DESCRIBE, CONFIGS},
            "others": frozenset(),
            "nothing": frozenset(),
        }
        assert rights.groups == {
            "billing": {DESCRIBE},
            "secret": frozenset(),
            "nothing": frozenset(),
        }
        assert rights.cluster == frozenset()
        assert rights.principal == "User:alice"
        assert set(cluster.groups().groups) == {"billing"}
        assert set(cluster.topics()) == {"orders", GROUP_OFFSETS_TOPIC}
        # The commit on the topic that is hidden is left out without a word.
        offsets = cluster.committed(["billing"], require_stable=False).by_group()["billing"]
        assert offsets == {TopicPartition("orders", 0): CommittedOffset(40)}


@pytest.mark.integration
@pytest.mark.thorough
@pytest.mark.spark
def test_a_sync_needs_no_right_to_write_on_the_source(least, tmp_path):
    """With DESCRIBE and READ alone, as the authorizer's rules show, a whole sync commits, for a
    share group as for a consumer group."""
    source, target = least[Side.SOURCE], least[Side.TARGET]
    source.revoke("alice", "topic", "orders", "describe_configs")
    source.grant("alice", "group", "sharing", "describe")
    target.grant("alice", "group", "sharing", "read", "describe")
    admin = source.broker.admin
    with entered(admin.bootstrap, admin.user, admin.password) as cluster:
        start = {"sharing": {TopicPartition("orders", 0): CommittedOffset(60)}}
        assert cluster.commit(start, share_groups=["sharing"]) == {
            "sharing": {TopicPartition("orders", 0): None}
        }
    try:
        every = ACLFilter(
            principal="User:alice",
            host=None,
            operation=ACLOperation.ANY,
            permission_type=ACLPermissionType.ANY,
            resource_pattern=ResourcePatternFilter(
                KafkaResourceType.ANY, None, ACLResourcePatternType.ANY
            ),
        )
        with closing(KafkaAdminClient(**source.broker.admin.settings())) as admin:
            rules, _ = admin.describe_acls(every)
        assert {rule.operation for rule in rules} == {ACLOperation.READ, ACLOperation.DESCRIBE}
        file = configuration(least, tmp_path, "groups = billing, sharing", "topics = orders")
        result = invoke("sync", "-c", str(file), "--format", "json")
        assert result.exit_code == 0, result.output
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        assert [(row["group"], row["outcome"], row["target_offset"]) for row in rows] == [
            ("billing", "committed", 40),
            ("sharing", "committed", 60),
        ]
    finally:
        source.revoke("alice", "group", "sharing", "describe")
        target.revoke("alice", "group", "sharing", "read", "describe")
        source.grant("alice", "topic", "orders", "describe_configs")
