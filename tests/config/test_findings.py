"""What is wrong is named with key, value, file, line and remedy; what is odd is a warning."""

import json
import pickle

import pytest

from tests.configured import (
    FILE,
    TWO_CLUSTERS,
    problems,
    problems_of_two_clusters,
    resolved,
    the_problem,
    two_clusters,
)
from tsoffset.config.findings import Entry
from tsoffset.config.flows import FlowSource
from tsoffset.config.loading import Configuration
from tsoffset.config.scopes import Setting
from tsoffset.config.source import ConfigFormat
from tsoffset.errors import ConfigurationError
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.client_settings import client_settings

# --- wrong values -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("tasks.max", "0", "from 1"),
        ("tasks.max", "-1", "from 1"),
        ("tasks.max", "two", "integer"),
        ("tasks.max", "1_000", "integer"),
        ("tasks.max", "٣", "integer"),
        ("tasks.max", "99999999999", "2147483647"),
        ("tasks.max", "", "integer"),
        ("admin.timeout.ms", "-5", "from 1"),
        ("consumer.poll.timeout.ms", "1.5", "integer"),
        ("refresh.groups.enabled", "yes", "true or false"),
        ("refresh.groups.interval.seconds", "0", "from 1"),
        ("sync.group.offsets.enabled", "1", "true or false"),
        ("sync.group.offsets.interval.seconds", "-60", "from 1"),
        ("A->B.consumer.isolation.level", "serializable", "read_uncommitted or read_committed"),
        ("A->B.source.consumer.isolation.level", "x", "read_uncommitted or read_committed"),
        ("replication.policy.separator", "", "letters, digits"),
        ("replication.policy.separator", "/", "letters, digits"),
        ("translation.proof", "hope", "content or timestamps"),
        ("translation.match", "timestamp,header", "timestamp, key, value"),
        ("translation.match", "", "timestamp, key, value"),
        ("translation.match", "key,value", "timestamp, key, value"),
        ("translation.match", "timestamp", "timestamp, key, value"),
        ("translation.budget", "0", "from 1"),
        ("translation.floor", "end", "none or log_start"),
        ("translation.offset.header", ":text", "NAME:text"),
        ("source.fetch.max.bytes.per.second", "-1", "from 1"),
        ("source.fetch.max.requests.in.flight", "0", "from 1"),
        ("A.request.timeout.ms", "soon", "integer"),
        ("A.admin.request.timeout.ms", "-1", "integer"),
        ("A.connections.max.idle.ms", "0", "write -1"),
        ("A.connections.max.idle.ms", "-2", "integer"),
        ("client.dns.lookup", "never", "use_all_dns_ips"),
        ("A->B.enabled", "on", "true or false"),
        ("A.admin.bootstrap.servers", "a1", "host:port"),
        ("A.admin.bootstrap.servers", "a1:0", "ports from 1"),
        ("A.admin.bootstrap.servers", "a1:65536", "ports from 1"),
        ("A.admin.bootstrap.servers", "a1:x", "host:port"),
        ("A.admin.bootstrap.servers", "a 1:9092", "host:port"),
        ("A.admin.bootstrap.servers", ":9092", "host:port"),
        ("A.admin.bootstrap.servers", "::1:9092", "host:port"),
        ("A.admin.bootstrap.servers", ", ,", "at least one"),
        ("groups", "*", ".*"),
        ("groups.exclude", r"\\p{L}", "only in Java"),
        ("topics", "a{1,2}", "comma"),
        ("A->B.topics.exclude", "[a", "unterminated"),
        ("translation.expect", "same", "same-offsets"),
    ],
)
def test_a_wrong_value_names_key_value_line_and_what_is_allowed(key, value, allowed):
    """One wrong value is one problem, at its line, with the value as the file has it."""
    lines = ("# a comment", "", f"{key} = {value}")
    text = TWO_CLUSTERS.replace("A->B.enabled = true\n", "")
    before = "" if key == "A->B.enabled" else "A->B.enabled = true\n"
    (problem,) = problems(text + before + "\n".join(lines))
    line = 7 if before else 6
    assert (problem.key, problem.file, problem.line) == (key, FILE, line)
    assert problem.value == value.replace("\\\\", "\\")
    assert allowed in problem.allowed
    assert str(problem).startswith(f"{FILE}:{line}: {key} = ")


def test_times_are_not_believed_where_equal_offsets_are_expected():
    """Only one of the two can hold; content beside it is the default, and fine."""
    expect = "translation.expect = same-offsets"
    wrong = the_problem("translation.proof = timestamps", expect)
    assert (wrong.key, wrong.line) == ("translation.proof", 5)
    assert two_clusters("translation.proof = content", expect).warnings == ()


def test_a_wrong_value_that_no_flow_uses_is_still_wrong():
    """A value that every flow overrides is checked, too."""
    assert the_problem("tasks.max = x", "A->B.tasks.max = 2").line == 5


def test_all_that_is_wrong_is_told_at_once_in_the_order_of_lines():
    """Several errors come together, each once though two flows inherit it."""
    found = problems_of_two_clusters(
        "B->A.enabled = true",
        "groups = *",
        "tasks.max = 0",
        "A.sasl.jass.config = x",
        "admin.timeout.ms = ${env:TSOFFSET_TEST_NOT_SET}",
    )
    assert [(problem.line, problem.key) for problem in found] == [
        (6, "groups"),
        (7, "tasks.max"),
        (8, "A.sasl.jass.config"),
        (9, "admin.timeout.ms"),
    ]


def test_the_error_is_usage_and_can_be_pickled():
    """It ends a command with status 2, and may cross Spark."""
    with pytest.raises(ConfigurationError) as caught:
        two_clusters("tasks.max = 0", "admin.timeout.ms = 0")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.exit_status == 2
    assert copy.problems == caught.value.problems
    assert len(str(copy).splitlines()) == 2


# --- clusters and flows -----------------------------------------------------------------


def test_an_enabled_flow_needs_addresses_on_both_sides():
    """The missing key is named, at the line that turns the flow on."""
    found = problems("clusters = A, B\nA->B.enabled = true\n")
    assert [(problem.key, problem.line) for problem in found] == [
        ("A.bootstrap.servers", 2),
        ("B.bootstrap.servers", 2),
    ]


def test_a_misspelt_address_key_is_pointed_at():
    """The text of the missing key names the one that was perhaps meant."""
    (problem,) = problems(
        "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.server = b:1\nA->B.enabled=true\n"
    )
    assert problem.key == "B.bootstrap.servers"
    assert "there is B.bootstrap.server" in problem.allowed


@pytest.mark.parametrize("key", ["A->C.enabled", "C->A.enabled", "C->D.enabled"])
def test_a_flow_between_unknown_clusters_cannot_be_turned_on(key):
    """MirrorMaker 2 would ignore the line."""
    problem = the_problem(f"{key} = true")
    assert (problem.key, problem.line) == (key, 5)
    assert "`clusters`" in problem.allowed


def test_a_flow_from_a_cluster_to_itself_cannot_be_turned_on():
    assert "another" in the_problem("B->B.enabled = true").allowed


def test_blanks_around_the_arrow_end_the_key():
    """`A -> B.enabled = true` sets a key `A`: silently no flow in MirrorMaker 2."""
    problem = the_problem("A -> B.enabled = true")
    assert problem.key == "A"
    assert "without spaces around the arrow" in problem.allowed


@pytest.mark.parametrize(
    "aliases",
    [
        *("", "A->B", "A B", "A,,B", "A, spark", "${env:TSOFFSET_TEST_NOT_SET}"),
        ",".join(f"A{number}" for number in range(101)),
    ],
)
def test_aliases_must_be_usable_in_keys(aliases):
    """No blanks, arrows or empty ones, and not Spark's own prefix."""
    found = problems(f"clusters = {aliases}\nA.bootstrap.servers = a:1\n")
    assert found[0].key == "clusters"
    assert len(found) == 1


def test_a_cluster_that_is_listed_twice_is_one():
    """A slip that a warning tells; no flow leads from it to itself."""
    settings = resolved(TWO_CLUSTERS.replace("A, B", "A, B, A") + "enabled = true")
    assert settings.clusters == ("A", "B")
    assert [flow.name for flow in settings.flows] == ["A->B", "B->A"]
    assert "names a cluster twice" in settings.warnings[0]


def test_a_file_without_clusters_and_connector_is_none():
    (problem,) = problems("groups = x\n")
    assert problem.key == "clusters"
    assert "source.cluster.alias" in problem.allowed


@pytest.mark.parametrize("prefix", ["", "A->B."])
def test_with_clusters_an_alias_has_no_second_source(prefix):
    """MirrorMaker 2 would rename topics by `source.cluster.alias`, not by the flow's alias."""
    assert the_problem(f"{prefix}source.cluster.alias = X").value == "X"
    assert two_clusters(f"{prefix}source.cluster.alias = A").flow("A->B").source.alias == "A"


def test_group_and_groups_that_differ_contradict_each_other():
    """Both keys are known; tsoffset does not guess which one is meant."""
    problem = the_problem("groups = a", "group = b")
    assert (problem.key, problem.line) == ("group", 6)
    assert "groups" in problem.allowed
    assert ":5" in problem.allowed


# --- Connect ----------------------------------------------------------------------------

CONNECTOR = {
    "source.cluster.alias": "A",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.alias": "B",
    "target.cluster.bootstrap.servers": "b:1",
}


def _connector(**changes: object) -> str:
    members = CONNECTOR | {key.replace("__", "."): value for key, value in changes.items()}
    return json.dumps({key: value for key, value in members.items() if value != ""}, indent=1)


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("{", "JSON", 1),
        ('{"a": 1,\n "b": }', "JSON", 2),
        ("[1]", "JSON", None),
        ("[" * 100_000, "JSON", None),
        ('{"tasks.max": ' + "9" * 5_000 + "}", "JSON", None),
        ("{}", "source.cluster.alias", None),
        (_connector(source__cluster__alias=""), "source.cluster.alias", None),
        (_connector(target__cluster__alias="A"), "target.cluster.alias", 4),
        (_connector(target__cluster__alias="A->B"), "target.cluster.alias", 4),
        (_connector(tasks__max=0), "tasks.max", 6),
        (_connector(groups=["a", "b"]), "groups", 6),
        (_connector(enabled={"a": 1}), "enabled", 6),
        (
            _connector(source__cluster__bootstrap__servers=""),
            "source.cluster.bootstrap.servers",
            None,
        ),
        (_connector(sasl__mechanism="PLAIN"), "sasl.mechanism", 6),
    ],
)
def test_wrong_json_is_named(text, key, line):
    """JSON problems have their line wherever the key stands in the text."""
    (problem,) = problems(text, ConfigFormat.JSON)
    assert (problem.key, problem.line) == (key, line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"source.cluster.alias": "A",\n"tasks.max": 1,\n"x": 1,\n"tasks.max": 0}', 4),
        ('{"tasks.max": 1,\n"config":\n{"tasks.max": 0,\n"source.cluster.alias": "A"}}', 3),
    ],
)
def test_lines_of_json_are_those_of_the_member_that_holds(text, line):
    """The last one of a name that is given twice, and the one in `config`."""
    lines = {problem.key: problem.line for problem in problems(text, ConfigFormat.JSON)}
    assert lines["tasks.max"] == line


def test_members_beside_config_have_no_effect():
    """Connect's REST API takes settings inside `config` alone."""
    text = json.dumps({"name": "x", "tasks.max": 3, "config": CONNECTOR})
    settings = resolved(text, ConfigFormat.JSON)
    assert settings.flows[0].tasks_max is None
    (warning,) = settings.warnings
    assert "tasks.max" in warning


# --- security ---------------------------------------------------------------------------


def test_sparks_own_security_is_sparks():
    assert two_clusters("spark.ssl.enabled = true").spark == {"spark.ssl.enabled": "true"}


# --- warnings ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("replication.policy.seperator = x", "Did you mean `replication.policy.separator`?"),
        (r"groups = app-\d", "drops a single backslash"),
        (r"groups = app-\\\d", "drops a single backslash"),
        ("grups = x", "Did you mean `groups`?"),
        ("A->B.topic.exclude = x", "Did you mean `A->B.topics.exclude`?"),
        ("A.bootstrap.severs = x:1", "Did you mean `A.bootstrap.servers`?"),
        ("source.cluster.client.di = x", "Did you mean `source.cluster.client.id`?"),
        ("A.consumer.isolation.levle = x", "Did you mean `A.consumer.isolation.level`?"),
        ("A->B.source.admin.request.timeout.sm = 1", "Did you mean `A->B.source.admin.request"),
        ("translation.profe = content", "Did you mean `translation.proof`?"),
        ("listeners.raed.token = x", "Did you mean `listeners.read.token`?"),
        ("history.dri = x", "Did you mean `history.dir`?"),
        ("qqqqqqqq = 1", "it has no effect"),
        ("C.bootstrap.servers = c:1", "C is not among `clusters`"),
        ("A->C.topics = x", "has no effect"),
        ("A.groups = x", "write groups, or A->B.groups"),
        ("A.state.dir = x", "applies to the whole file"),
        ("A->B.spark.master = local", "applies to the whole file"),
        ("A->B.bootstrap.servers = a:1", "source.cluster.bootstrap.servers"),
        ("A.isolation.level = read_committed", "write A.consumer.isolation.level"),
        ("isolation.level = read_committed", "write A.consumer.isolation.level"),
        ("A->B.isolation.level = read_committed", "write A.consumer.isolation.level"),
        ("consumer.isolation.level = read_committed", "write A.consumer.isolation.level"),
        ("source.consumer.isolation.level = read_committed", "as in MirrorMaker 2"),
        ("config.providers.file.param.allowed.paths = /x", "has no effect"),
        ("groups =", "syncs nothing"),
        ("A->B.topics =", "syncs nothing"),
        # Transformations change what is mirrored; the hint is what says the same to tsoffset.
        ("A->B.transforms = rename", "replication.policy.class"),
        ("A->B.transforms.rename.type = com.example.Router", "translation.match"),
        ("transforms = rename", "has no effect"),
        ("A->B.predicates = is-test", "has no effect"),
        ("connectors.transforms.rename.regex = .*", "has no effect"),
        # MirrorMaker 2's own policies and filters have no settings but the known ones.
        ("replication.policy.my.setting = 1", "unknown to DefaultReplicationPolicy; it has no"),
        ("A->B.replication.policy.suffix = 1", "unknown to DefaultReplicationPolicy"),
        ("group.filter.service = 1", "unknown to DefaultGroupFilter"),
        ("A->B.topic.filter.service = 1", "unknown to DefaultTopicFilter"),
    ],
)
def test_what_has_no_effect_is_a_warning_with_file_line_and_hint(line, hint):
    """An unknown or misplaced key, or one that does nothing yet, is never passed over."""
    (warning,) = two_clusters(line).warnings
    key = line.partition(" ")[0]
    assert warning.startswith(f"{FILE}:5: {key}: ")
    assert hint in warning


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"request__timeout__ms": "5"}, "source.cluster.request.timeout.ms"),
        ({"transforms": "x"}, "translation.match"),
    ],
)
def test_what_has_no_effect_in_a_connector_is_a_warning_too(changes, hint):
    """A client setting without a prefix has no effect, and all keys are at the top level."""
    settings = resolved(_connector(**changes), ConfigFormat.JSON)
    (warning,) = settings.warnings
    assert hint in warning
    assert settings.flows[0].source.client == {}


def test_a_key_given_twice_is_a_warning_and_the_last_holds():
    """As java.util.Properties does; both lines are named."""
    settings = two_clusters("tasks.max = 1", "tasks.max = 2")
    assert settings.flows[0].tasks_max == 2
    (warning,) = settings.warnings
    assert f"{FILE}:6: tasks.max" in warning
    assert "line 5" in warning


def test_the_separator_in_an_alias_is_a_warning():
    """The default policy then finds another source than the flow's."""
    settings = resolved(
        "clusters = us.west, B\nus.west.bootstrap.servers = u:1\nB.bootstrap.servers = b:1\n"
        "us.west->B.enabled = true\n"
    )
    (warning,) = settings.warnings
    assert "us.west" in warning


@pytest.mark.parametrize(
    ("lines", "warned"),
    [
        (("B->A.enabled = true",), True),
        (("enabled = true",), True),
        (("B->A.enabled = true", "state.dir = x"), False),
        (("B->A.enabled = false",), False),
        (("enabled = true", "A->B.sync.group.offsets.enabled = false"), False),
    ],
)
def test_both_directions_without_state_are_a_warning(lines, warned):
    """Without it no flow knows what the other one has committed (docs/failover.md)."""
    warnings = two_clusters(*lines).warnings
    assert ["are both enabled without state.dir" in one for one in warnings] == [True] * warned


def test_warnings_never_hold_values():
    """A value may be secret; the key and its line are enough to find it."""
    settings = two_clusters(
        "grups = c4n4ry",
        "trnslation.expect = c4n4ry",
        "A.topics = c4n4ry",
        "tasks.max=1",
        "tasks.max=2",
    )
    assert len(settings.warnings) == 4
    assert "c4n4ry" not in "".join(settings.warnings)


@pytest.mark.parametrize(
    "line",
    [
        r"groups = app\.x",
        r"groups = app-\\d",
        r"client.id = a\tb",
        r"client.id = \u0041",
        "client.id = a\\\nb",
        "transforms =",
        "A->B.target.consumer.isolation.level = whatever",
    ],
)
def test_what_is_as_meant_is_no_warning(line):
    """Escapes of Java, escaped punctuation, an empty list of transformations are fine."""
    assert two_clusters(line).warnings == ()


def test_what_cannot_be_printed_is_shown_as_escapes():
    """A line end or a terminal's control character does not leave its place in the text."""
    problem = the_problem(r"tasks.max = 1\n\u001b[31m")
    assert str(problem).startswith(r"mm2.properties:5: tasks.max = 1\n\x1b[31m: ")


CANARY = "c4n4ry"
SETTING = Setting(Entry("A.client.id", CANARY, FILE, 5), CANARY)


@pytest.mark.parametrize(
    "holds",
    [
        Configuration("x", f"password = {CANARY}"),
        SETTING,
        FlowSource("A", "B", {"client.id": SETTING}, FILE, True, {CANARY}),
        two_clusters(f"spark.secret = {CANARY}"),
        two_clusters(f"A.client.id = {CANARY}"),
        two_clusters(f"A.bootstrap.servers = {CANARY}:9092"),
        two_clusters(f"status.remote.urls = http://h:1/{CANARY}"),
        client_settings(ClusterSettings("A", ("a1:9092",), {"client.id": CANARY})),
    ],
    ids=lambda holds: type(holds).__name__,
)
def test_what_holds_settings_does_not_show_them(holds):
    """Any of them may be what should not be in a log, or in what a failed assertion prints."""
    assert CANARY not in repr(holds)


def test_addresses_of_other_instances_hold_no_password():
    """It would be sent nowhere; the sentence does not show it."""
    (problem,) = problems_of_two_clusters(f"status.remote.urls = http://me:{CANARY}@h:1")
    assert "without user and password" in str(problem)
    assert CANARY not in str(problem)


@pytest.mark.parametrize(
    "key",
    ["admin.token.secret", "my.password", "oauth.credentials", "my.passphrase", "tls-keystore-key"],
)
def test_keys_that_sound_secret_do_not_show_their_values(key):
    """Not even where the value is what is wrong."""
    (problem,) = problems_of_two_clusters(f"{key} = ${{env:TSOFFSET_TEST_NOT_SET}}c4n4ry")
    assert "c4n4ry" not in str(problem)


@pytest.mark.parametrize("client", ["consumer", "producer", "admin"])
@pytest.mark.parametrize("prefix", ["A.", "A->B.", "A->B.source.", "", "target."])
def test_unknown_keys_of_clients_are_warned_of(client, prefix):
    """No client of Kafka knows them, wherever they stand; known ones are passed over."""
    key = f"{prefix}{client}.interceptor.secret.sauce"
    (warning,) = two_clusters(f"{key} = c4n4ry").warnings
    assert warning.startswith(f"mm2.properties:5: {key}: unknown to Kafka's {client}")
    assert "c4n4ry" not in warning
    assert two_clusters(f"{prefix}{client}.metadata.max.idle.ms = 1").warnings == ()
