"""Names of topics on the other cluster, and which groups and topics are synced."""

import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsoffset.flow.policy import (
    DefaultGroupFilter,
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    IdentityReplicationPolicy,
    InvalidSetting,
    Renaming,
    internal_topics,
    is_heartbeats_topic,
    is_internal_topic,
    original_topic,
    replicated_through,
    target_topic,
)

DEFAULT = DefaultReplicationPolicy()
SEPARATORS = st.sampled_from([".", "_", "-", "--", "._."])
ALIASES = st.text("abcXYZ019", min_size=1, max_size=6)
TOPICS = st.text("abcXYZ019", min_size=1, max_size=6)


class SuffixPolicy:
    """A user's own: `orders` of A is `orders_from_A`."""

    def configure(self, settings: dict[str, str]) -> None:
        self.settings = settings

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}_from_{source_alias}"

    def topic_source(self, topic: str) -> str | None:
        return topic.rpartition("_from_")[2] if "_from_" in topic else None

    def upstream_topic(self, topic: str) -> str | None:
        return topic.rpartition("_from_")[0] if "_from_" in topic else None


# --- the policies themselves ------------------------------------------------------------


@given(separator=SEPARATORS, alias=ALIASES, topic=TOPICS)
def test_default_policy_takes_off_what_it_put_on(separator, alias, topic):
    """A remote topic's source and upstream name are those that it was formatted from."""
    policy = DefaultReplicationPolicy(separator)
    remote = policy.format_remote_topic(alias, topic)
    assert remote == alias + separator + topic
    assert policy.topic_source(remote) == alias
    assert policy.upstream_topic(remote) == topic


@given(separator=SEPARATORS, hops=st.lists(ALIASES, max_size=4), topic=TOPICS)
def test_original_topic_is_found_over_any_number_of_hops(separator, hops, topic):
    """original_topic goes upstream until nothing changes."""
    policy = DefaultReplicationPolicy(separator)
    name = topic
    for alias in hops:
        name = policy.format_remote_topic(alias, name)
    assert original_topic(policy, name) == topic


@pytest.mark.parametrize(
    ("topic", "source", "upstream"),
    [
        ("orders", None, None),
        ("A.orders", "A", "orders"),
        ("A.B.orders", "A", "B.orders"),
        ("A.", None, None),
        ("A..", None, None),
        ("A..x", "A", ".x"),
        (".orders", "", "orders"),
        ("", None, None),
    ],
)
def test_default_policy_splits_as_java_does(topic, source, upstream):
    """Java's split keeps an empty first part and drops empty last ones; below two parts a
    topic is an original."""
    assert DEFAULT.topic_source(topic) == source
    assert DEFAULT.upstream_topic(topic) == upstream


@given(source=ALIASES, topic=TOPICS.filter(lambda topic: not topic.endswith("heartbeats")))
def test_identity_policy_keeps_names_and_knows_only_its_own_source(source, topic):
    """Under Identity any topic may be a replica: its source is the configured alias."""
    policy = IdentityReplicationPolicy()
    policy.configure({"source.cluster.alias": source})
    assert policy.format_remote_topic(source, topic) == topic
    assert policy.topic_source(topic) == source
    assert policy.upstream_topic(topic) == topic
    assert original_topic(policy, topic) == topic


def test_identity_policy_without_an_alias_knows_no_source():
    """Where `source.cluster.alias` is not configured, topic_source is none."""
    assert IdentityReplicationPolicy().topic_source("orders") is None


def test_identity_policy_treats_heartbeats_like_the_default_policy():
    """Names that end in `heartbeats` are renamed and split under Identity too."""
    policy = IdentityReplicationPolicy("A")
    assert policy.format_remote_topic("A", "heartbeats") == "A.heartbeats"
    assert policy.topic_source("B.heartbeats") == "B"
    assert policy.topic_source("heartbeats") is None
    assert policy.upstream_topic("B.heartbeats") == "heartbeats"


@pytest.mark.parametrize(
    ("settings", "checkpoints", "offset_syncs"),
    [
        ({}, "A.checkpoints.internal", "mm2-offset-syncs.A.internal"),
        (
            {"replication.policy.separator": "_"},
            "A_checkpoints_internal",
            "mm2-offset-syncs_A_internal",
        ),
        (
            {
                "replication.policy.separator": "_",
                "replication.policy.internal.topic.separator.enabled": "false",
            },
            "A.checkpoints.internal",
            "mm2-offset-syncs.A.internal",
        ),
    ],
)
def test_internal_topics_follow_the_separator_unless_told_not_to(
    settings, checkpoints, offset_syncs
):
    """`replication.policy.internal.topic.separator.enabled = false` keeps dots in them."""
    policy = DefaultReplicationPolicy()
    policy.configure(settings)
    topics = internal_topics(policy)
    assert topics.checkpoints_topic("A") == checkpoints
    assert topics.offset_syncs_topic("A") == offset_syncs
    assert is_internal_topic(policy, checkpoints)
    assert is_internal_topic(policy, offset_syncs)


@pytest.mark.parametrize(
    ("topic", "internal"),
    [
        ("__consumer_offsets", True),
        (".hidden", True),
        ("mm2-configs.A.internal", True),
        ("mm2-offset-syncs.B.internal", True),
        ("A.checkpoints.internal", True),
        ("connect-configs.internal", False),
        ("orders-internal", False),
        ("mm2-orders", False),
        ("orders", False),
    ],
)
def test_internal_topics_are_those_of_the_current_mirrormaker(topic, internal):
    """`mm2*.internal`, checkpoints, `__*` and `.*`; other `.internal` names are users' own."""
    assert is_internal_topic(DEFAULT, topic) is internal


def test_heartbeats_are_known_over_hops_and_under_another_name():
    """The heartbeats topic and its replicas are heartbeats, whatever it is called."""
    assert is_heartbeats_topic(DEFAULT, "heartbeats")
    assert is_heartbeats_topic(DEFAULT, "B.A.heartbeats")
    assert not is_heartbeats_topic(DEFAULT, "my-heartbeats")
    renamed = DefaultReplicationPolicy()
    renamed.configure({"default.replication.policy.heartbeats.topic.name": "pulse"})
    assert is_heartbeats_topic(renamed, "A.pulse")
    assert not is_heartbeats_topic(renamed, "heartbeats")


def test_an_empty_separator_is_refused():
    """No name could be split at it."""
    with pytest.raises(InvalidSetting, match=r"replication\.policy\.separator"):
        DefaultReplicationPolicy().configure({"replication.policy.separator": ""})


def test_a_policy_of_ones_own_gets_mirrormakers_internal_topics():
    """Four methods make a policy; internal topics then are MirrorMaker 2's defaults."""
    assert internal_topics(SuffixPolicy()).checkpoints_topic("A") == "A.checkpoints.internal"
    assert is_internal_topic(SuffixPolicy(), "__consumer_offsets")


# --- renaming ---------------------------------------------------------------------------

IDENTITY_A = IdentityReplicationPolicy("A")


@pytest.mark.parametrize(
    ("policy", "flow", "topic", "expected"),
    [
        (DEFAULT, "AB", "orders", Renaming("A.orders", is_remote_topic=True)),
        (DEFAULT, "AB", "C.orders", Renaming("A.C.orders", is_remote_topic=True)),
        (DEFAULT, "AB", "A.orders", Renaming("A.A.orders", is_remote_topic=True)),
        # Failback: one hop back, to the original or to the replica that it was made of.
        (DEFAULT, "BA", "A.orders", Renaming("orders", failback=True)),
        (DEFAULT, "AB", "B.C.t", Renaming("C.t", failback=True)),
        # The target elsewhere in the chain is a cycle.
        (DEFAULT, "CA", "B.A.orders", None),
        (DEFAULT, "CA", "B.D.A.orders", None),
        (DEFAULT, "AB", "heartbeats", None),
        (DEFAULT, "AB", "C.heartbeats", None),
        (DEFAULT, "AB", "B.heartbeats", None),
        (DEFAULT, "AB", "__consumer_offsets", None),
        (DEFAULT, "AB", "B.__consumer_offsets", None),
        (DEFAULT, "AB", "B.mm2-offset-syncs.A.internal", None),
        (DEFAULT, "AB", "B.checkpoints.internal", None),
        (IDENTITY_A, "AB", "orders", Renaming("orders")),
        (IDENTITY_A, "AB", "B.orders", Renaming("B.orders")),
        (IDENTITY_A, "AB", "heartbeats", None),
        (IDENTITY_A, "AB", "__consumer_offsets", None),
        (SuffixPolicy(), "AB", "orders", Renaming("orders_from_A", is_remote_topic=True)),
        (SuffixPolicy(), "BA", "orders_from_A", Renaming("orders", failback=True)),
        (SuffixPolicy(), "CA", "t_from_A_from_B", None),
    ],
)
def test_renaming(policy, flow, topic, expected):
    """A replica goes one hop back to where it came from, cycles, heartbeats and internal
    topics are left out, everything else gets the policy's remote name."""
    source, target = flow
    assert target_topic(policy, source, target, topic) == expected


@given(separator=SEPARATORS, topic=TOPICS, chain=st.permutations("ABCD"))
def test_failback_undoes_replication_hop_by_hop(separator, topic, chain):
    """What a flow X->Y made of a topic, the flow Y->X names again as it was on X."""
    policy = DefaultReplicationPolicy(separator)
    name = topic
    for source, target in pairwise(chain):
        forward = target_topic(policy, source, target, name)
        assert forward is not None
        assert forward.is_remote_topic
        assert not forward.failback
        back = target_topic(policy, target, source, forward.topic)
        assert back == Renaming(name, failback=True)
        name = forward.topic


@given(separator=SEPARATORS, topic=TOPICS, chain=st.permutations("ABCD"))
def test_a_topic_never_comes_back_to_a_cluster_by_another_way(separator, topic, chain):
    """After two hops or more, the flow to any cluster but the last one passed is a cycle."""
    policy = DefaultReplicationPolicy(separator)
    name = topic
    for source in chain[:-1]:
        name = policy.format_remote_topic(source, name)
    for earlier in chain[:-2]:
        assert target_topic(policy, chain[-1], earlier, name) is None


def test_a_remote_name_needs_an_alias_that_the_policy_gives_back():
    """With the separator in the alias, `us.west.t` is not told from a topic of `us`: the name
    proves nothing about where the records came from."""
    assert target_topic(DEFAULT, "us.west", "B", "t") == Renaming("us.west.t")


# --- filters ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "synced"),
    [
        ("app", True),
        ("console-consumer-1", False),
        ("my-console-consumer-1", True),
        ("connect-sink", False),
        ("__internal", False),
        ("with space", True),
    ],
)
def test_default_group_filter_has_mirrormakers_defaults(group, synced):
    """Everything but console consumers, connectors and names with two underscores."""
    assert DefaultGroupFilter().should_replicate_group(group) is synced


@pytest.mark.parametrize(
    ("topic", "synced"),
    [
        ("orders", True),
        ("mm2-configs.A.internal", False),
        ("orders.internal", True),
        ("orders.replica", False),
        ("__consumer_offsets", False),
    ],
)
def test_default_topic_filter_has_mirrormakers_defaults(topic, synced):
    """Everything but MirrorMaker 2's internal topics, replicas and Kafka's own."""
    assert DefaultTopicFilter().should_replicate_topic(topic) is synced


def test_lists_are_joined_and_matched_whole():
    """An element matches a whole name or not at all."""
    group_filter = DefaultGroupFilter()
    group_filter.configure({"groups": "app, billing-.*"})
    admitted = [
        name
        for name in ("app", "app2", "my-app", "billing-", "billing-eu", "xbilling-eu")
        if group_filter.should_replicate_group(name)
    ]
    assert admitted == ["app", "billing-", "billing-eu"]


def test_an_empty_list_matches_nothing():
    """Empty includes let nothing through, empty excludes keep nothing out."""
    nothing = DefaultGroupFilter()
    nothing.configure({"groups": ""})
    assert not nothing.should_replicate_group("app")
    assert not nothing.should_replicate_group("")
    everything = DefaultTopicFilter()
    everything.configure({"topics.exclude": " "})
    assert everything.should_replicate_topic("__consumer_offsets")


@given(st.text(min_size=1, max_size=8), st.booleans())
def test_exclude_wins_over_include(name, plain):
    """What is excluded is not synced, however it is included."""
    group_filter = DefaultGroupFilter(include=(".*", "app"), exclude=("app",))
    group = "app" if plain else name
    assert group_filter.should_replicate_group(group) is (group != "app" and "\n" not in group)


def test_policies_and_filters_can_be_pickled():
    """They may travel to a worker."""
    policy = pickle.loads(pickle.dumps(DefaultReplicationPolicy("_")))
    assert policy.format_remote_topic("A", "t") == "A_t"
    group_filter = pickle.loads(pickle.dumps(DefaultGroupFilter(include=("a",))))
    assert group_filter.should_replicate_group("a")
    assert not group_filter.should_replicate_group("b")


def test_a_cluster_that_comes_again_ends_the_way():
    """As MirrorClient's countHopsForTopic, which would go round for ever."""
    policy = DefaultReplicationPolicy()
    assert replicated_through(policy, "B.A.B.t") == (("B", "A"), "B.t")
    assert replicated_through(policy, "B.A.t") == (("B", "A"), "t")
    assert replicated_through(policy, "B.eu.t", {"B"}) == (("B",), "eu.t")
    assert replicated_through(policy, "t") == ((), "t")
    assert replicated_through(IdentityReplicationPolicy("A"), "t") == (("A",), "t")
