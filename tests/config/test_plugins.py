"""Policies and filters of one's own: Python classes by path or entry point."""

import re
import textwrap

import pytest

from tests.configured import TWO_CLUSTERS, resolved, the_problem, two_clusters
from tests.invoking import ROOT
from tsoffset.config.plugins import IDENTITY_POLICY
from tsoffset.flow.policy import Renaming, target_topic

MODULE = """
    from tsoffset.flow.policy import DefaultGroupFilter, InvalidSetting


    class Suffix:
        def configure(self, settings):
            self.settings = settings

        def format_remote_topic(self, source_alias, topic):
            return f"{topic}-{source_alias}"

        def topic_source(self, topic):
            return topic.rpartition("-")[2] if "-" in topic else None

        def upstream_topic(self, topic):
            return topic.rpartition("-")[0] if "-" in topic else None


    class Outer:
        class Shouting(DefaultGroupFilter):
            def should_replicate_group(self, group):
                return group.isupper() and super().should_replicate_group(group)


    class Short:
        def configure(self, settings):
            pass

        def should_replicate_topic(self, topic):
            return len(topic) < 4


    class Half:
        def configure(self, settings):
            pass


    class NeedsArguments(Short):
        def __init__(self, length):
            self.length = length


    class FailsToConfigure(Short):
        def configure(self, settings):
            raise RuntimeError(f"no service at {settings['client.id']}")


    class RefusesSetting(Short):
        def configure(self, settings):
            raise InvalidSetting("topics", "must be short")


    not_a_class = 1
    """


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    """A package with classes and an entry point, as if it were installed."""
    (tmp_path / "my_mirror.py").write_text(textwrap.dedent(MODULE))
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    (documented,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "documented_policy.py").write_text(documented)
    (tmp_path / "breaks_on_import.py").write_text("raise OSError('c4n4ry')\n")
    (tmp_path / "imports_what_is_not_there.py").write_text("import no_such_module_at_all\n")
    metadata = tmp_path / "my_mirror-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-mirror\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[tsoffset.replication_policies]\n"
        "suffix = my_mirror:Suffix\n"
        "gone = my_mirror:Gone\n"
        "[tsoffset.topic_filters]\n"
        "short = my_mirror:Short\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(
    "name", ["my_mirror:Suffix", "my_mirror.Suffix", "suffix", "documented_policy:DashPolicy"]
)
def test_a_policy_by_path_or_entry_point(name):
    """It names topics both ways; so does that of docs/configuration.md, which is to be copied."""
    (flow,) = two_clusters(f"replication.policy.class = {name}").flows
    assert target_topic(flow.policy, "A", "B", "orders") == Renaming(
        "orders-A", is_remote_topic=True
    )
    assert target_topic(flow.policy, "A", "B", "orders-B") == Renaming("orders", failback=True)


def test_a_policy_is_given_all_settings_of_its_flow(monkeypatch):
    """Aliases included, references resolved, named as a connector's are."""
    monkeypatch.setenv("TSOFFSET_TEST_ID", "me")
    (flow,) = two_clusters(
        "replication.policy.class = suffix",
        "A.client.id = ${env:TSOFFSET_TEST_ID}",
        "my.own = 1",
        "A->B.replication.policy.separator = _",
    ).flows
    given = flow.policy.settings
    assert given["source.cluster.alias"] == "A"
    assert given["target.cluster.alias"] == "B"
    assert given["source.cluster.client.id"] == "me"
    assert (given["my.own"], given["replication.policy.separator"]) == ("1", "_")


def test_each_flow_has_a_policy_of_its_own():
    settings = resolved(TWO_CLUSTERS + "B->A.enabled = true\nreplication.policy.class = suffix\n")
    sources = [flow.policy.settings["source.cluster.alias"] for flow in settings.flows]
    assert sources == ["A", "B"]


def test_filters_by_path_and_entry_point():
    (flow,) = two_clusters(
        "group.filter.class = my_mirror:Outer.Shouting",
        "groups.exclude = NOT",
        "topic.filter.class = short",
    ).flows
    assert flow.group_filter.should_replicate_group("APP")
    assert not flow.group_filter.should_replicate_group("app")
    assert not flow.group_filter.should_replicate_group("NOT")
    assert flow.topic_filter.should_replicate_topic("abc")
    assert not flow.topic_filter.should_replicate_topic("abcd")


def test_a_filter_of_ones_own_may_give_lists_another_meaning():
    """`topics` is a list of regular expressions for MirrorMaker 2's filter alone."""
    assert two_clusters("topic.filter.class = short", "topics = *").flows


@pytest.mark.parametrize(
    ("key", "name", "said"),
    [
        ("replication.policy.class", "com.example.MyPolicy", "is a Java class"),
        ("replication.policy.class", IDENTITY_POLICY[:-1], f"Did you mean `{IDENTITY_POLICY}`?"),
        ("replication.policy.class", "IdentityReplicationPolicy", f"mean `{IDENTITY_POLICY}`?"),
        (
            "replication.policy.class",
            "org.apache.kafka.connect.mirror.LegacyReplicationPolicy",
            "configure, format_remote_topic, topic_source, upstream_topic",
        ),
        ("group.filter.class", "io.example.Filter", "package.module:Class"),
        ("group.filter.class", "com.example.Filters$Mine", "is a Java class"),
        ("group.filter.class", "no-such-module:Filter", "no Python module no-such-module"),
        ("group.filter.class", "no_such_module:Filter", "no Python module no_such_module"),
        ("group.filter.class", "my_mirror.deeper:Filter", "my_mirror.deeper"),
        (
            "topic.filter.class",
            "my_mirror:Missing",
            "Missing cannot be loaded: AttributeError",
        ),
        ("topic.filter.class", "my_mirror:not_a_class", "is not a class"),
        ("topic.filter.class", "my_mirror:Half", "lacks should_replicate_topic"),
        (
            "replication.policy.class",
            "my_mirror:Half",
            "lacks format_remote_topic and topic_source and upstream_topic",
        ),
        ("topic.filter.class", "my_mirror:NeedsArguments", "without arguments: TypeError"),
        ("topic.filter.class", "unheardof", "no entry point in tsoffset.topic_filters"),
        ("topic.filter.class", "suffix", "no entry point in tsoffset.topic_filters"),
        ("replication.policy.class", "gone", "my_mirror:Gone cannot be loaded"),
        (
            "topic.filter.class",
            "breaks_on_import:X",
            "import:X cannot be loaded: OSError",
        ),
        (
            "topic.filter.class",
            "imports_what_is_not_there:X",
            "imports_what_is_not_there:X cannot be loaded: ModuleNotFoundError",
        ),
        ("topic.filter.class", "", "must not be empty"),
    ],
)
def test_a_class_that_cannot_be_used_names_what_is_missing(key, name, said):
    problem = the_problem(f"{key} = {name}")
    assert (problem.key, problem.value, problem.line) == (key, name, 5)
    assert said in problem.allowed


def test_a_class_that_refuses_its_settings_tells_why_without_secrets(monkeypatch):
    """Its own words are shown, but not what came out of a reference."""
    monkeypatch.setenv("TSOFFSET_TEST_ID", "c4n4ry")
    problem = the_problem(
        "topic.filter.class = my_mirror:FailsToConfigure", "client.id = ${env:TSOFFSET_TEST_ID}"
    )
    assert problem.key == "topic.filter.class"
    assert "RuntimeError: no service at [hidden]" in problem.allowed


def test_a_class_may_blame_another_key():
    """InvalidSetting names the key, and the problem has that key's line."""
    problem = the_problem("topic.filter.class = my_mirror:RefusesSetting", "topics = x")
    assert (problem.key, problem.line, problem.allowed) == ("topics", 6, "must be short")


def test_settings_of_a_class_of_ones_own_are_its_own():
    """What begins like a policy's or filter's is taken for the class's, of which only it knows
    the keys."""
    settings = two_clusters(
        "replication.policy.class = my_mirror:Suffix",
        "replication.policy.between = x",
        "A->B.replication.policy.beyond = x",
        "topic.filter.class = my_mirror:Short",
        "topic.filter.longest = 4",
    )
    assert settings.warnings == ()


def test_settings_of_another_flows_class_are_no_warning():
    """What stands at the top may be for one flow's class; what stands in another's is for none."""
    settings = two_clusters(
        "B->A.replication.policy.class = my_mirror:Suffix",
        "replication.policy.between = x",
        "A->B.replication.policy.between = x",
    )
    (warning,) = settings.warnings
    assert warning.startswith("mm2.properties:7: A->B.replication.policy.between: ")
