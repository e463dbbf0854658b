"""`tsoffset check`: connections, brokers, settings, and this machine."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from unittest.mock import patch

import pytest

from tests.commands.check.test_flow_check import ERROR, OK, WARNING, settings
from tests.memory_flows import flow
from tsoffset.commands.check import clusters
from tsoffset.commands.check.clusters import connection, same_cluster, settings_of
from tsoffset.errors import JavaTooOld
from tsoffset.flow.policy import IdentityReplicationPolicy
from tsoffset.flow.settings import TranslationSettings
from tsoffset.model import Broker, ClusterDescription

# --- connections, brokers and settings ------------------------------------------------------


def described(*brokers: Broker, dead: tuple[str, ...] = ()) -> ClusterDescription:
    return ClusterDescription("id", brokers, dead)


@pytest.mark.parametrize(
    ("broker", "dead", "worst"),
    [
        (Broker(1, "a", 1, "4.3"), (), None),
        # One dead address of several does not stop a sync.
        (Broker(1, "a", 1, "4.3"), ("a:2",), (WARNING, "address a:2", "does not answer")),
        # Wrong advertised.listeners: the bootstrap works, and nothing else does.
        (Broker(1, "internal", 9092), (), (ERROR, "broker 1", "advertised address internal:9092")),
        # Each broker is judged by its own versions: during an upgrade they differ.
        (
            Broker(1, "a", 1, "2.4", ("list_groups", "fetch")),
            (),
            (ERROR, "broker 1", "list_groups, fetch"),
        ),
        # Versions are compared as numbers.
        (Broker(1, "a", 1, "2.7"), (), (WARNING, "broker 1", "is older than 2.8")),
        (Broker(1, "a", 1, "2.8"), (), None),
        (Broker(1, "a", 1, "10.0"), (), None),
    ],
)
def test_brokers_and_addresses_are_judged_each(broker, dead, worst):
    """One that is not well is named with a remedy, beside one that is."""
    brokers = described(broker, Broker(2, "a", 2, "4.3"), dead=dead)
    first, *others = connection("A->B", settings("A"), brokers)
    assert (first.severity, first.subject) == (OK, "connection")
    assert "2 brokers, Kafka " in first.finding
    assert len(others) == (worst is not None)
    for finding in others:
        severity, subject, words = worst
        assert (finding.severity, finding.subject) == (severity, subject)
        assert words in finding.finding
        assert finding.remedy


def test_one_cluster_on_both_sides_is_an_error_where_names_stay():
    """Under Identity each topic would be its own copy; with renaming it may be meant."""
    here = described(Broker(1, "a", 1, "4.3"))
    (identity,) = same_cluster(flow(policy=IdentityReplicationPolicy("A")), here, here)
    (renaming,) = same_cluster(flow(), here, here)
    assert (identity.severity, renaming.severity) == (ERROR, WARNING)
    assert list(same_cluster(flow(), here, replace(here, cluster_id="other"))) == []
    unknown = replace(here, cluster_id=None)
    assert list(same_cluster(flow(), unknown, unknown)) == []


def test_settings_that_weaken_a_flow_are_warnings():
    """Syncing turned off and unproven translations are said, and nothing else is."""
    assert list(settings_of(flow())) == []
    off = replace(flow(), sync_enabled=False)
    assert [f.subject for f in settings_of(off)] == ["sync.group.offsets.enabled"]
    unproven = replace(flow(), translation=TranslationSettings(proof="timestamps"))
    assert [f.subject for f in settings_of(unproven)] == ["translation.proof"]


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
