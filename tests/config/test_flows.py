"""What a configuration comes to: clusters, flows, the hierarchy, defaults."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.configured import TWO_CLUSTERS, resolved, two_clusters
from tsoffset.config.source import ConfigFormat
from tsoffset.errors import UsageError
from tsoffset.flow.policy import (
    DefaultGroupFilter,
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    IdentityReplicationPolicy,
)
from tsoffset.flow.settings import TranslationSettings
from tsoffset.model import Isolation
from tsoffset.records import OffsetHeader

CLUSTERS = """\
clusters = A, B, C
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
C.bootstrap.servers = c:1
"""


def test_a_minimal_file_has_mirrormakers_defaults():
    """Nothing but clusters and a flow: MirrorMaker 2's defaults, but that we commit and choose
    the number of tasks."""
    (flow,) = two_clusters().flows
    assert flow.name == "A->B"
    assert flow.enabled
    assert flow.source.bootstrap_servers == ("a1:9092", "a2:9092")
    assert flow.target.bootstrap_servers == ("b1:9092",)
    assert flow.source.admin_timeout_ms == 60_000
    assert flow.source.poll_timeout_ms == 1_000
    assert flow.source.client == {}
    assert type(flow.policy) is DefaultReplicationPolicy
    assert type(flow.group_filter) is DefaultGroupFilter
    assert type(flow.topic_filter) is DefaultTopicFilter
    assert flow.isolation is Isolation.READ_UNCOMMITTED
    assert flow.refresh_groups_enabled
    assert flow.refresh_groups_interval_seconds == 600
    assert flow.sync_interval_seconds == 60
    assert flow.sync_enabled is None
    assert flow.commits
    assert flow.tasks_max is None
    assert flow.translation == TranslationSettings()


OF_A_FLOW = {
    "groups": "app-.*",
    "groups.exclude": "app-9",
    "topics": "o.*",
    "topics.exclude": "old",
    "replication.policy.separator": "_",
    "consumer.poll.timeout.ms": 7,
    "admin.timeout.ms": 8,
    "refresh.groups.enabled": "FALSE",
    "refresh.groups.interval.seconds": 9,
    "sync.group.offsets.enabled": False,
    "sync.group.offsets.interval.seconds": 10,
    "tasks.max": 11,
    "translation.proof": "timestamps",
    "translation.match": "key, timestamp",
    "translation.budget": 12,
    "translation.scan.bytes": 13,
    "translation.floor": "log_start",
}
CONNECTOR = {
    "name": "offsets",
    "connector.class": "org.apache.kafka.connect.mirror.MirrorGroupOffsetConnector",
    "source.cluster.alias": "east",
    "target.cluster.alias": "west",
    "source.cluster.bootstrap.servers": "e:1",
    "target.cluster.bootstrap.servers": "w:1",
}


OF_A_FILE = [
    *(f"{key} = {value}" for key, value in OF_A_FLOW.items()),
    "A->B.consumer.isolation.level = read_committed",
    "A->B.source.admin.client.id = me",
]
OF_A_CONNECTOR = {
    **CONNECTOR,
    **OF_A_FLOW,
    "group": "app-.*",
    "task.assigned.groups": "app-1, app-9",
    "source.consumer.isolation.level": "read_committed",
    "source.admin.client.id": "me",
    "offset.lag.max": None,
}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (TWO_CLUSTERS + "\n".join(OF_A_FILE), ConfigFormat.PROPERTIES),
        (json.dumps(OF_A_CONNECTOR), ConfigFormat.JSON),
    ],
    ids=["MirrorMaker 2", "Connect"],
)
def test_every_key_of_a_flow_arrives(text, form):
    """In a connector's configuration as text, numbers or booleans, and those that
    KIP-1292 names."""
    settings = resolved(text, form)
    (flow,) = settings.flows
    assert flow.group_filter.should_replicate_group("app-1")
    assert not flow.group_filter.should_replicate_group("app-9")
    assert not flow.group_filter.should_replicate_group("other")
    assert flow.topic_filter.should_replicate_topic("orders")
    assert not flow.topic_filter.should_replicate_topic("old")
    assert flow.policy.format_remote_topic("A", "t") == "A_t"
    assert flow.source.poll_timeout_ms == flow.target.poll_timeout_ms == 7
    assert flow.source.admin_timeout_ms == flow.target.admin_timeout_ms == 8
    assert not flow.refresh_groups_enabled
    assert flow.refresh_groups_interval_seconds == 9
    assert flow.sync_enabled is False
    assert not flow.commits
    assert flow.sync_interval_seconds == 10
    assert flow.tasks_max == 11
    assert flow.isolation is Isolation.READ_COMMITTED
    assert flow.translation == TranslationSettings(
        proof="timestamps",
        match=frozenset({"key", "timestamp"}),
        budget=12,
        scan_bytes=13,
        floor="log_start",
    )
    assert flow.source.client == {"client.id": "me"}
    assert flow.target.client == {}
    assert settings.warnings == ()


def test_explicit_true_is_kept_apart_from_absence():
    (flow,) = two_clusters("sync.group.offsets.enabled = true").flows
    assert flow.sync_enabled is True
    assert flow.commits


def test_identity_policy_is_given_the_flows_own_source():
    """MirrorMaker 2 hands `source.cluster.alias` to the policy; so do we."""
    (flow,) = two_clusters(
        "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    ).flows
    assert type(flow.policy) is IdentityReplicationPolicy
    assert flow.policy.topic_source("orders") == "A"


# --- several flows ----------------------------------------------------------------------


def test_flows_are_those_that_keys_name_in_the_order_of_clusters():
    """A key of a flow names it; it is off unless it is turned on."""
    settings = resolved(CLUSTERS + "C->A.topics = x\nB->A.enabled = false\nA->B.enabled = true\n")
    assert [(flow.name, flow.enabled) for flow in settings.flows] == [
        ("A->B", True),
        ("B->A", False),
        ("C->A", False),
    ]


def test_enabled_at_the_top_turns_all_flows_on():
    """What stands at the top level holds for all flows, but for those that say otherwise."""
    settings = resolved(CLUSTERS + "enabled = true\nB->C.enabled = false\n")
    assert len(settings.flows) == 6
    assert [flow.name for flow in settings.flows if not flow.enabled] == ["B->C"]


def test_a_disabled_flow_needs_no_addresses():
    """Only what is used has to be complete."""
    settings = resolved(
        "clusters = A, B, C\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n"
        "A->B.enabled = true\nA->C.groups = x\n"
    )
    assert settings.flow("A->C").target.bootstrap_servers == ()


def test_aliases_may_hold_dots_and_begin_alike():
    """Of `us` and `us.west` the longer alias is meant."""
    settings = resolved(
        "clusters = us, us.west\n"
        "us.bootstrap.servers = u:1\n"
        "us.west.bootstrap.servers = w:1\n"
        "us->us.west.enabled = true\n"
        "us->us.west.tasks.max = 3\n"
    )
    (flow,) = settings.flows
    assert flow.name == "us->us.west"
    assert flow.source.bootstrap_servers == ("u:1",)
    assert flow.target.bootstrap_servers == ("w:1",)
    assert flow.tasks_max == 3


def test_aliases_may_be_called_source_and_target():
    """Then `source.x` is a setting of that cluster, as in MirrorMaker 2."""
    settings = resolved(
        "clusters = source, target\n"
        "source.bootstrap.servers = s:1\n"
        "target.bootstrap.servers = t:1\n"
        "source.consumer.isolation.level = read_committed\n"
        "source->target.enabled = true\n"
        "target->source.enabled = true\n"
        "state.dir = state\n"
    )
    assert settings.warnings == ()
    assert settings.flow("source->target").source.bootstrap_servers == ("s:1",)
    assert settings.flow("source->target").isolation is Isolation.READ_COMMITTED
    assert settings.flow("target->source").isolation is Isolation.READ_UNCOMMITTED


# --- the hierarchy ----------------------------------------------------------------------


def _lines(chosen: dict[str, object]) -> list[str]:
    return [f"{key} = {value}" for key, value in chosen.items()]


# Narrowest first: what MirrorMakerConfig.connectorBaseConfig gives the flow A->B.
OF_THE_FLOW = ("A->B.tasks.max", "tasks.max", "connectors.tasks.max")
OF_THE_SOURCE = tuple(
    f"{prefix}request.timeout.ms"
    for prefix in (
        "A->B.source.admin.",
        "A.admin.",
        "source.admin.",
        "A->B.admin.",
        "admin.",
        "A->B.source.cluster.",
        "A.",
        "source.cluster.",
        "",
    )
)
OF_THE_TARGET = tuple(key.replace("source", "target").replace("A.", "B.") for key in OF_THE_SOURCE)
OF_THE_CONSUMER = tuple(
    f"{prefix}consumer.isolation.level" for prefix in ("A->B.source.", "A.", "A->B.")
)
# Keys of other flows and clusters, which must not matter.
ELSEWHERE = (
    "B->A.tasks.max = 99",
    "B->A.source.admin.request.timeout.ms = 99",
    "A->C.source.cluster.request.timeout.ms = 99",
    "C.request.timeout.ms = 99",
    "C.consumer.isolation.level = read_committed",
    "B.consumer.isolation.level = read_committed",
    "source.consumer.isolation.level = read_committed",
    "consumer.isolation.level = read_committed",
)


def _some_of(keys: tuple[str, ...]) -> st.SearchStrategy[dict[str, int]]:
    """Some of the keys in any order, each with its rank as its value."""
    return st.lists(st.sampled_from(keys), unique=True, min_size=1).map(
        lambda chosen: {key: keys.index(key) + 1 for key in chosen}
    )


@given(_some_of(OF_THE_FLOW), st.permutations(ELSEWHERE))
def test_the_narrowest_setting_of_a_flow_holds(chosen, elsewhere):
    """Flow over top level, wherever in the file they stand."""
    settings = resolved(CLUSTERS + "\n".join(["A->B.enabled=true", *_lines(chosen), *elsewhere]))
    assert settings.flow("A->B").tasks_max == min(chosen.values())


@given(_some_of(OF_THE_SOURCE), _some_of(OF_THE_TARGET), st.permutations(ELSEWHERE))
def test_the_narrowest_setting_of_a_cluster_holds(of_source, of_target, elsewhere):
    """One kind of client over the cluster, and of each flow over cluster over top level, for each
    side."""
    chosen = of_source | of_target
    settings = resolved(CLUSTERS + "\n".join(["A->B.enabled=true", *_lines(chosen), *elsewhere]))
    flow = settings.flow("A->B")
    for side, keys in ((flow.source, OF_THE_SOURCE), (flow.target, OF_THE_TARGET)):
        narrowest = min(chosen[key] for key in keys if key in chosen)
        assert side.client["request.timeout.ms"] == str(narrowest)


@given(
    st.lists(st.sampled_from(OF_THE_CONSUMER), unique=True), st.data(), st.permutations(ELSEWHERE)
)
def test_the_narrowest_isolation_of_the_source_consumer_holds(keys, data, elsewhere):
    """The replicator reads with what its source consumer is given; nothing given is
    read_uncommitted, and what the target's consumer is given does not matter."""
    levels = {key: data.draw(st.sampled_from(list(Isolation)), key) for key in keys}
    settings = resolved(CLUSTERS + "\n".join(["A->B.enabled=true", *_lines(levels), *elsewhere]))
    expected = next(
        (levels[key] for key in OF_THE_CONSUMER if key in levels), Isolation.READ_UNCOMMITTED
    )
    assert settings.flow("A->B").isolation is expected


@pytest.mark.parametrize(
    ("written", "addresses"),
    [
        ("h:1", ("h:1",)),
        (" h:1 , g.example-x_y:65535 ", ("h:1", "g.example-x_y:65535")),
        ("h:1,,g:2,", ("h:1", "g:2")),
        ("h:1, h:1", ("h:1",)),
        ("[::1]:9092", ("[::1]:9092",)),
        ("[fe80::1%eth0]:9092", ("[fe80::1%eth0]:9092",)),
        ("PLAINTEXT://h:1,SASL_SSL://h:2", ("h:1", "h:2")),
        ("127.0.0.1:9092", ("127.0.0.1:9092",)),
    ],
)
def test_addresses(written, addresses):
    """host:port with commas, IPv6 in brackets; doubles and empty items are dropped."""
    (flow,) = two_clusters(f"A.admin.bootstrap.servers = {written}").flows
    assert flow.source.bootstrap_servers == addresses


# --- names that mean the same -----------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "admitted"),
    [
        # KIP-1292's example writes `group`.
        (["group = app"], ["app"]),
        (["A->B.group = app"], ["app"]),
        # Both names are one key, so the hierarchy decides between levels.
        (["groups = x", "A->B.group = app"], ["app"]),
        # The same list by both names is no contradiction.
        (["groups = app,b", "group = app, b"], ["app", "b"]),
        (["groups.blacklist = b", "groups = app, b"], ["app"]),
        # `task.assigned.groups` names groups; the filter still holds.
        (["task.assigned.groups = app, b, connect-x"], ["app", "b"]),
    ],
)
def test_names_that_mean_the_same(lines, admitted):
    """Older names, those of the KIP's examples, and groups that are assigned to a task."""
    (flow,) = two_clusters(*lines).flows
    groups = ("app", "b", "c", "connect-x")
    assert [one for one in groups if flow.group_filter.should_replicate_group(one)] == admitted


def test_the_older_name_of_excluded_topics():
    (flow,) = two_clusters("topics.blacklist = t").flows
    assert not flow.topic_filter.should_replicate_topic("t")


# --- Connect ----------------------------------------------------------------------------


@pytest.mark.parametrize("nested", [False, True])
def test_a_connector_is_one_flow_and_on(nested):
    """Flat or as the REST API takes it; `enabled` is true by default, as in Connect."""
    document = {"name": "offsets", "config": CONNECTOR} if nested else CONNECTOR
    settings = resolved(json.dumps(document), ConfigFormat.JSON)
    (flow,) = settings.flows
    assert flow.name == "east->west"
    assert flow.enabled
    assert flow.source.bootstrap_servers == ("e:1",)
    assert flow.target.bootstrap_servers == ("w:1",)
    assert settings.clusters == ("east", "west")
    assert settings.warnings == ()


def test_the_targets_alias_has_a_default():
    """MirrorConnectorConfig's default is `target`."""
    document = {key: value for key, value in CONNECTOR.items() if key != "target.cluster.alias"}
    assert resolved(json.dumps(document), ConfigFormat.JSON).flows[0].name == "east->target"


def test_a_connectors_properties_are_read_like_its_json():
    """Connect's standalone form has the same keys in a properties file."""
    text = "\n".join(f"{key}={value}" for key, value in CONNECTOR.items())
    assert resolved(text).flows[0].name == "east->west"


def test_a_connector_may_be_turned_off():
    settings = resolved(json.dumps(CONNECTOR | {"enabled": False}), ConfigFormat.JSON)
    assert not settings.flows[0].enabled


# --- the file's own ---------------------------------------------------------------------


def test_spark_and_directories_are_the_files():
    """Every `spark.*` key is handed on; the directory of the state is kept."""
    settings = two_clusters(
        "spark.master = local[3]",
        "spark.sql.shuffle.partitions = 7",
        "state.dir = state",
        "source.fetch.max.bytes.per.second = 5000000000",
        "source.fetch.max.requests.in.flight = 8",
        "translation.offset.header = mm-offset",
        "translation.expect = same-offsets",
    )
    assert settings.spark == {"spark.master": "local[3]", "spark.sql.shuffle.partitions": "7"}
    assert settings.state_dir == "state"
    (flow,) = settings.flows
    assert flow.source.fetch_max_bytes_per_second == 5_000_000_000
    assert flow.source.fetch_max_in_flight == 8
    assert flow.target.fetch_max_bytes_per_second is None
    assert flow.target.fetch_max_in_flight is None
    assert flow.translation.offset_header == OffsetHeader("mm-offset")
    assert flow.target.offset_header == OffsetHeader("mm-offset")
    assert flow.source.offset_header is None
    assert flow.translation.expect == "same-offsets"


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("o", OffsetHeader("o")),
        ("o:binary", OffsetHeader("o")),
        ("o:text", OffsetHeader("o", text=True)),
        ("a:b", OffsetHeader("a:b")),
        ("a:b:text", OffsetHeader("a:b", text=True)),
    ],
)
def test_the_form_of_the_offset_header_stands_behind_its_name(text, header):
    """Binary where nothing else is said; a colon may be part of the name."""
    (flow,) = two_clusters(f"translation.offset.header = {text}").flows
    assert flow.translation.offset_header == header


# --- choosing flows ---------------------------------------------------------------------


def test_all_enabled_flows_are_chosen_by_default():
    settings = resolved(CLUSTERS + "A->B.enabled=true\nB->C.enabled=true\nC->A.enabled=false\n")
    assert [flow.name for flow in settings.select(())] == ["A->B", "B->C"]


def test_flows_are_chosen_by_name_each_once():
    """In the order asked for."""
    settings = resolved(CLUSTERS + "A->B.enabled=true\nB->C.enabled=true\n")
    chosen = settings.select(("B->C", "A->B", "B->C"))
    assert [flow.name for flow in chosen] == ["B->C", "A->B"]


@pytest.mark.parametrize(
    ("lines", "names", "said"),
    [
        ("A->B.enabled=true\n", ("A->C",), "there is no flow A->C; the configuration has A->B"),
        ("A->B.topics=x\n", (), "A->B (not enabled); set for example A->B.enabled = true"),
        ("", (), "names none; add for example A->B.enabled = true"),
        ("A->B.enabled=false\n", ("A->B",), "set A->B.enabled = true"),
    ],
)
def test_choosing_what_is_not_there_is_bad_usage(lines, names, said):
    """Unknown, none enabled, or turned off: the text names what there is and the remedy."""
    with pytest.raises(UsageError) as caught:
        resolved(CLUSTERS + lines).select(names)
    assert said in str(caught.value)
    assert caught.value.exit_status == 2


def test_a_file_that_mirrormaker_2_refuses_is_a_warning():
    """Its settings of the offset-syncs topic beside none being written: it copies nothing then, and
    the file is often its own."""
    off = "emit.offset-syncs.enabled = false"
    topic = "offset-syncs.topic.replication.factor = 1"
    (warning,) = two_clusters(off, topic).warnings
    assert warning.startswith("mm2.properties:6: offset-syncs.topic.replication.factor: Mirror")
    assert two_clusters(topic).warnings == two_clusters(off).warnings == ()
