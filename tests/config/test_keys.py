"""The table of keys: real files make no noise, and the documentation says what holds."""

import re

import pytest

from tests.configured import problems_of_two_clusters, two_clusters
from tests.invoking import ROOT
from tests.migration import INPUTS
from tsoffset.config.accepted import ACCEPTED_KEYS
from tsoffset.config.keys import CLIENT_KEYS, CLUSTER_KEYS, FILE_KEYS, FLOW_KEYS
from tsoffset.config.loading import Configuration
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.client_settings import client_settings
from tsoffset.lab.embedded.process import JavaProcess

# Without these the system or the library decides.
OF_OTHERS = ("send.buffer.bytes", "receive.buffer.bytes", "client.dns.lookup")

# Keys of MirrorMaker 2, its workers and clients in each of their scopes.
SCOPED = (
    "A.consumer.max.poll.records = 2000",
    "A.group.id = mirror-workers",
    "A.metadata.max.age.ms = 60000",
    "B.connections.max.idle.ms = -1",
    "B.exactly.once.source.support = enabled",
    "B.offset.storage.replication.factor = 3",
    "B.producer.acks = all",
    "A->B.client.id = east-to-west",
    "A->B.target.producer.compression.type = lz4",
    "consumer.max.partition.fetch.bytes = 10485760",
    "producer.buffer.memory = 67108864",
    "source.consumer.fetch.min.bytes = 1",
    "target.producer.delivery.timeout.ms = 120000",
    "config.providers = file",
    "config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider",
)


def test_no_key_that_others_read_draws_a_warning():
    """But for transformations, which change what is mirrored."""
    silent = {name for name, key in ACCEPTED_KEYS.items() if "warning" not in key.meaning}
    lines = (f"{name.replace('*', 'some.name')} = 1" for name in silent)
    assert two_clusters(*lines).warnings == ()


def test_keys_are_known_in_their_scopes():
    assert two_clusters(*SCOPED).warnings == ()


@pytest.mark.parametrize("name", ["active-active", "cloudera", "sample-of-kafka", "standalone"])
def test_a_file_in_operation_makes_no_noise(name):
    """As those have it that `migrate` is tested with. Two of them enable both directions."""
    settings = Configuration.read(INPUTS / f"{name}.properties").resolve()
    both = name in ("active-active", "sample-of-kafka")
    assert ["without state.dir" in warning for warning in settings.warnings] == [True] * both
    assert settings.select()


@pytest.mark.parametrize("name", ["mm2.properties", "mirror-group-offset.json"])
def test_examples_hold(name):
    settings = Configuration.read(ROOT / "examples" / name).resolve()
    assert settings.warnings == ()
    assert [flow.name for flow in settings.select()] == ["primary->backup"]
    assert settings.flows[0].commits


def table() -> list[tuple[str, str, str, str, str]]:
    """Name, level, default, use and meaning of each key in the table of docs/configuration.md."""
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (`[^|]+`) \| ?([^|]*?) \| ?([^|]*?) \| (\w+) \| (.+) \|$",
        page.partition("## All keys")[2],
        re.MULTILINE,
    )
    return [
        (name, level, default.strip("`"), use, meaning)
        for names, level, default, use, meaning in rows
        for name in names.split(", ")
    ]


def test_the_documentation_has_exactly_the_keys_that_are_known():
    """docs/configuration.md has one table of all keys, with level, use and meaning."""
    levels = {"flow": FLOW_KEYS, "cluster": CLUSTER_KEYS, "file": FILE_KEYS}
    used = [(f"`{name}`", level, "used") for level, keys in levels.items() for name in keys]
    rows = table()
    assert [(name, level, use) for name, level, _, use, _ in rows if use == "used"] == used
    accepted = sorted(name for name, _, _, use, _ in rows if use == "accepted")
    assert accepted == sorted(f"`{name}`" for name in ACCEPTED_KEYS)


def test_defaults_are_those_that_the_table_shows():
    """What a user would write for the default reads as the default."""
    shown = {name.strip("`"): default for name, _, default, _, _ in table()}
    read = 0
    for name, key in (FLOW_KEYS | FILE_KEYS).items():
        if key.default not in (None, ()):
            assert key.read(shown[name].partition(";")[0]) == key.default, name
            read += 1
    assert read > 15
    for name, key in CLUSTER_KEYS.items():
        assert shown[name] == key.shown_default or key.default == (), name


def test_what_connections_do_by_themselves_is_what_the_table_shows():
    """A client setting that is written out with its default changes nothing."""
    written = {key.name: key.shown_default for key in CLIENT_KEYS if key.name not in OF_OTHERS}
    assert len(written) > 8
    bare = client_settings(ClusterSettings("A", ("a:9092",)))
    for name, text in written.items():
        assert client_settings(ClusterSettings("A", ("a:9092",), {name: text})) == bare, name


def test_no_key_is_listed_twice():
    names = [*ACCEPTED_KEYS]
    names += [*FLOW_KEYS, *CLUSTER_KEYS, *FILE_KEYS]
    assert sorted(names) == sorted(set(names))
    with pytest.raises(AssertionError, match="groups"):
        FLOW_KEYS.declare("groups", 1, int)


@pytest.mark.integration
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("client", "class_name"),
    [
        ("consumer", "consumer.ConsumerConfig"),
        ("producer", "producer.ProducerConfig"),
        ("admin", "admin.AdminClientConfig"),
    ],
)
def test_each_key_of_kafkas_own_clients_is_known(client, class_name, tmp_path):
    """What Kafka's clients themselves list as their settings draws no warning after a cluster's
    alias, nor after that of a client."""
    listing = JavaProcess("listing", [f"org.apache.kafka.clients.{class_name}"], directory=tmp_path)
    assert listing.run(timeout_seconds=180) == 0
    page = listing.log_path.read_text(encoding="utf-8")
    # Those that are read, so that a value would have to be right, are known for certain.
    read = {"isolation.level", *CLUSTER_KEYS}
    names = {
        name for name in re.findall(r'href="#[a-z]+configs_([^"]+)"', page) if name not in read
    }
    assert len(names) > 10
    assert not {name for name in names if name.startswith(("sasl.", "ssl.", "security."))}
    assert two_clusters(*(f"B.{client}.{name} = 1" for name in sorted(names))).warnings == ()


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            ("A->B.topcis = orders",),
            "Did you mean `A->B.topics`? It has no effect: `topics` is now `.*`",
        ),
        (("topics = orders", "A->B.topcis = clicks"), "`topics` is what mm2.properties:5 says"),
        (
            ("state.dri = here",),
            "Did you mean `state.dir`? It has no effect: `state.dir` is now `none`",
        ),
    ],
)
def test_a_misspelt_key_is_told_with_what_holds_instead(lines, told):
    """A slip in `topics` syncs everything: a warning says so, and it is an error for who wants it
    to be; a key that the file shares with MirrorMaker 2 is none."""
    (warning,) = two_clusters(*lines).warnings
    assert told in warning
    strict = "config.unknown.keys = error"
    assert told in problems_of_two_clusters(*lines, strict)[0].allowed
    assert two_clusters("emit.heartbeats.enabled = true", strict).warnings == ()


@pytest.mark.parametrize(
    "line",
    [
        "C->B.topics = orders",
        "C.client.id = x",
        "B.topics = orders",
        "A->B.state.dir = here",
        "replication.policy.of.mine = x",
        "A.consumer.of.mine = x",
    ],
)
def test_a_key_that_is_unknown_where_it_stands_is_an_error_too(line):
    """A mistyped alias leaves `topics` at its default as a mistyped name does."""
    (warning,) = two_clusters(line).warnings
    (problem,) = problems_of_two_clusters(line, "config.unknown.keys = error")
    assert problem.line == 5
    assert problem.allowed in warning
