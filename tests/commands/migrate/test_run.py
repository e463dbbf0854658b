"""`tsoffset migrate`: what it makes of configurations that the world has, and what it refuses."""

import json
import os
import re
import stat
import sys
from pathlib import Path

import pytest
from click.testing import Result

from tests.configured import resolved
from tests.invoking import ROOT, invoke, run_program
from tests.migration import (
    CASES,
    INPUTS,
    OUTPUTS,
    SECRETS,
    SOMEWHERE,
    TO_BE_CHANGED,
    WITH_STEPS,
)
from tsoffset.errors import ConfigurationError
from tsoffset.model import Isolation

TWO_CLUSTERS = "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\n"
ENABLED = TWO_CLUSTERS + "A->B.enabled = true\n"
MIRROR = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {name: m}
spec:
  target: {alias: b, bootstrapServers: "b:9092"}
  mirrors:
    - source: {alias: a, bootstrapServers: "a:9092"}
"""
LOGIN = re.compile(r"(?m)(?<=sasl\.jaas\.config = )\$\{[^}]*\}$")
REFERENCE = re.compile(r"\$\{(?:env|file|dir):[^}]*\}")


@pytest.fixture(autouse=True)
def at_the_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user types names files as they lie there."""
    monkeypatch.chdir(INPUTS)


def migrated(folder: Path, text: str, name: str = "mm2.properties") -> Result:
    """The result of `migrate` for a file with this text."""
    file = folder / name
    file.write_text(text)
    return invoke("migrate", str(file))


def output(name: str, ending: str) -> str:
    return (OUTPUTS / f"{name}.{ending}").read_text()


@pytest.mark.parametrize("name", CASES)
def test_a_configuration_as_the_world_has_it_becomes_ours(name):
    """Word for word what a person has read, and so are the steps. 2 tells that something is marked
    in it."""
    if name in WITH_STEPS:
        steps = invoke("migrate", *CASES[name], "--steps")
        assert steps.stdout.replace(str(INPUTS), SOMEWHERE) == output(name, "steps.txt")
    result = invoke("migrate", *CASES[name])
    assert result.stdout.replace(str(INPUTS), SOMEWHERE) == output(name, "properties")
    assert result.exit_code == (2 if name in TO_BE_CHANGED else 0), result.stderr


@pytest.mark.parametrize("name", CASES)
def test_what_comes_out_is_read_without_a_word(name):
    """Once what it refers to is there, our loader takes it and warns of nothing; flows that are on
    only plan. What is marked is what it refuses."""
    text = LOGIN.sub("PlainLoginModule required username=u password=p;", output(name, "properties"))
    text = REFERENCE.sub("there", text)
    if name in TO_BE_CHANGED:
        with pytest.raises(ConfigurationError) as refused:
            resolved(text)
        assert len(refused.value.problems) == text.count("HAS TO BE CHANGED")
        return
    settings = resolved(text)
    # What was open to others stays so, and that is said.
    assert all("unencrypted" in one or "is empty" in one for one in settings.warnings)
    assert settings.flows
    assert [flow.sync_enabled for flow in settings.flows] == [False] * len(settings.flows)


@pytest.mark.parametrize("name", CASES)
def test_no_password_is_shown(name):
    """Neither in what comes out nor beside it, also where the input is wrong somewhere."""
    for words in ((), ("--steps",), ("--debug",), ("--log-format", "json")):
        result = invoke("migrate", *CASES[name], *words)
        assert not any(secret in result.output for secret in SECRETS)


def test_the_passwords_are_in_the_inputs():
    """Or the test above would prove nothing."""
    text = "".join(path.read_text() for path in INPUTS.iterdir())
    assert all(secret in text for secret in SECRETS)


def test_what_nobody_knows_is_named_without_its_value(tmp_path):
    """Of a key that is not known, or is for a transformation, no name tells whether it is one."""
    keys = ("A.http.proxy.authorization", "A.metrics.auth", "transforms.sign.pw")
    result = migrated(tmp_path, ENABLED + "".join(f"{key} = canary\n" for key in keys))
    assert result.exit_code == 0, result.stderr
    assert all(f": {key}: " in result.stdout for key in keys)
    assert "canary" not in result.output


def test_a_secret_in_a_file_of_mirror_maker_2_is_read_from_there(tmp_path):
    """So the output works without a change."""
    text = (
        ENABLED + "A.security.protocol = SASL_PLAINTEXT\nA.sasl.mechanism = PLAIN\n"
        'A.sasl.jaas.config = PlainLoginModule required username=u password="p\'w\\\\\\\\d";\n'
    )
    [flow] = resolved(migrated(tmp_path, text).stdout).flows
    assert getattr(flow.source.security.login, "password", None) == "p'w\\d"


def test_a_secret_is_read_in_place_whatever_the_encoding_of_the_file(tmp_path):
    """MirrorMaker 2 reads its file as Latin-1, so that a comment in it may be so."""
    file = tmp_path / "mm2.properties"
    lines = "# für B\nB.security.protocol = SSL\nB.ssl.truststore.location = /x.p12\n"
    lines += "B.ssl.truststore.type = PKCS12\nB.ssl.truststore.password = very-private\n"
    file.write_bytes((ENABLED + lines).encode("latin-1"))
    result = invoke("migrate", str(file))
    assert f"B.ssl.truststore.password = ${{file:{file}:B.ssl" in result.stdout
    (flow,) = resolved(result.stdout).flows
    assert flow.target.security.tls.trust.password == "very-private"


def test_a_secret_of_what_is_no_file_is_asked_for():
    """Standard input, for one, is gone when it would be read again."""
    text = ENABLED + "A.ssl.truststore.password = very-private\nA.ssl.truststore.location = /x\n"
    readable, writable = os.pipe()
    os.write(writable, text.encode())
    os.close(writable)
    result = invoke("migrate", f"/dev/fd/{readable}")
    os.close(readable)
    assert "A.ssl.truststore.password = ${env:A_SSL_TRUSTSTORE_PASSWORD}\n" in result.stdout
    assert "very-private" not in result.output


def test_o_writes_what_is_printed_else_and_the_steps(tmp_path):
    """In one file for its user alone, which is not replaced unasked; the steps name it."""
    path = tmp_path / "ours.properties"
    first = invoke("migrate", "active-active.properties", "-o", str(path))
    assert first.exit_code == 0, first.output
    assert path.read_text() == output("active-active", "properties")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    steps = output("active-active", "steps.txt")
    assert first.stdout == steps.replace("tsoffset.properties", str(path))
    again = invoke("migrate", "strimzi-v1.yaml", "-o", str(path))
    assert (again.exit_code, again.stdout) == (2, "")
    assert f"error: {path} exists already; --force replaces it" in again.stderr
    assert invoke("migrate", "strimzi-v1.yaml", "-o", str(path), "--force").exit_code == 0
    assert path.read_text() == output("strimzi-v1", "properties")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_what_is_read_is_not_replaced(tmp_path):
    """MirrorMaker 2 needs it, forced or not."""
    file = tmp_path / "mm2.properties"
    file.write_text(ENABLED)
    (tmp_path / "link").symlink_to(file)
    for path in (file, tmp_path / "link"):
        result = invoke("migrate", str(file), "-o", str(path), "--force")
        assert result.exit_code == 2
        assert "name another file with -o" in result.stderr
    assert file.read_text() == ENABLED


def test_what_cannot_be_written_is_said(tmp_path):
    """With the place, and a next step."""
    (tmp_path / "file").touch()
    for name in ("file/x", "x" * 300):
        result = invoke("migrate", "active-active.properties", "-o", str(tmp_path / name))
        assert result.exit_code == 1
        assert "choose another place with -o" in result.stderr


WRONG = {
    "no YAML": ("x.yaml", "kind: KafkaMirrorMaker2\nspec: [\n", ":3: YAML: cannot be parsed"),
    "a template": (
        "x.yaml",
        "kind: KafkaMirrorMaker2\nspec: {{ .Values.x }}\n",
        ":2: spec: has a name that is no plain word; write it out, and render a template first",
    ),
    "no resource": ("x.yaml", "kind: Kafka\n", "one resource of kind KafkaMirrorMaker2, and has 0"),
    "two resources": ("x.yaml", f"{MIRROR}---\n{MIRROR}", "and has 2"),
    "no mirrors": ("x.yaml", "kind: KafkaMirrorMaker2\nspec: {}\n", "must have `spec.mirrors`"),
    "no connectors": ("x.yaml", MIRROR, "names no connector that copies or syncs"),
    "an alias that is none": (
        "x.yaml",
        "kind: KafkaMirrorMaker2\nspec:\n  clusters: [{alias: a}]\n  mirrors:\n"
        "    - sourceCluster: a\n      targetCluster: c\n      sourceConnector: {}\n",
        ":6: spec.mirrors[0].targetCluster: must be an alias of `spec.clusters`: a",
    ),
    "a list for a mapping": (
        "x.yaml",
        f"{MIRROR}      sourceConnector: {{config: [1]}}\n",
        ":8: spec.mirrors[0].sourceConnector.config: must be a mapping",
    ),
    "a mapping for a text": (
        "x.yaml",
        f"{MIRROR}      sourceConnector: {{config: {{topics: {{a: b}}}}}}\n",
        "spec.mirrors[0].sourceConnector.config.topics: must be text",
    ),
    "an object of a tag": (
        "x.yaml",
        f"{MIRROR}      sourceConnector: {{tasksMax: !!python/name:os.system x}}\n",
        "spec.mirrors[0].sourceConnector.tasksMax: must be text, a number",
    ),
    "a key given twice": (
        "x.yaml",
        f"{MIRROR}      topicsPattern: a\n      topicsPattern: b\n",
        ":9: spec.mirrors[0].topicsPattern: is given twice",
    ),
    "an authentication of another kind": (
        "x.yaml",
        MIRROR.replace('"a:9092"', '"a:9092", authentication: {type: token}')
        + "      sourceConnector: {}\n",
        ":7: spec.mirrors[0].source.authentication: must have a `type` of tls",
    ),
    "a secret without a name": (
        "x.yaml",
        MIRROR.replace(
            '"a:9092"', '"a:9092", authentication: {type: plain, username: u, passwordSecret: {}}'
        )
        + "      sourceConnector: {}\n",
        "passwordSecret: must have `secretName`",
    ),
    "no JSON": ("x.json", '{"name": "x",\n "config": {"a" 1}}', ":2: JSON: cannot be parsed"),
    "no connector": ("x.json", '{"a": "b"}', "connector.class: must name the connector"),
    "a connector of others": (
        "x.json",
        '{\n"connector.class": "io.example.Sink"}',
        ":2: connector.class = io.example.Sink: must be one of MirrorMaker 2's",
    ),
    "no source": (
        "x.json",
        '{"connector.class": "MirrorCheckpoint"}',
        "must have source.cluster.alias",
    ),
    "no clusters": ("x.properties", "a = b\n", "clusters: must list the aliases"),
    "clusters by reference": (
        "x.properties",
        "\nclusters = ${env:CLUSTERS}\n",
        ":2: clusters = ${env:CLUSTERS}: must be written out here",
    ),
    "half an escape": ("x.properties", "clusters = \\u00\n", ":1: \\u: must be followed"),
    "no flow": ("x.properties", TWO_CLUSTERS, "A->B.enabled: must be true for some flow"),
    "no brokers": (
        "x.properties",
        "clusters = A, B\nA.bootstrap.servers = a:1\nA->B.enabled = true\n",
        "B.bootstrap.servers: must name the brokers of B",
    ),
    "a provider of others": (
        "x.properties",
        f"{ENABLED}A->B.topics = ${{vault:a:b}}\n",
        "there is no config provider vault",
    ),
    "a wrong value": (
        "x.properties",
        f"{ENABLED}A->B.tasks.max = many\n",
        ":5: A->B.tasks.max = many: must be an integer",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_with_its_place(tmp_path, name):
    """The file, the line where there is one, the sentence; status 2."""
    file, text, sentence = WRONG[name]
    result = migrated(tmp_path, text, file)
    assert result.exit_code == 2, result.output
    assert f"error: {tmp_path / file}" in result.stderr
    assert sentence in result.stderr


def test_what_has_to_be_changed_is_marked_in_what_comes_out(tmp_path):
    """The rest is in the output already."""
    result = migrated(tmp_path, f"{ENABLED}A->B.groups = \\\\p{{Lower}}+\n")
    assert result.exit_code == 2
    marked = re.search(r"# HAS TO BE CHANGED: .*\n(?:# .*\n)*(.*)\n", result.stdout)
    assert marked[1] == "A->B.groups = \\\\p{Lower}+"


@pytest.mark.parametrize("key", ["replication.policy", "group.filter", "topic.filter"])
@pytest.mark.parametrize("name", ["planted:Policy", "planted.deeper:Policy", "by-entry-point"])
def test_no_class_is_loaded_that_the_file_names(tmp_path, monkeypatch, key, name):
    """The file may come from anybody, and so may what lies beside it. It says what would run."""
    planted, ran = tmp_path / "planted", tmp_path / "ran"
    planted.mkdir()
    for module in ("__init__", "deeper"):
        (planted / f"{module}.py").write_text(f"open({str(ran)!r}, 'w')\nclass Policy: pass\n")
    (tmp_path / "planted-1.dist-info").mkdir()
    (tmp_path / "planted-1.dist-info" / "METADATA").write_text("Name: planted\nVersion: 1\n")
    (tmp_path / "planted-1.dist-info" / "entry_points.txt").write_text(
        "".join(
            f"[tsoffset.{group}]\nby-entry-point = planted.deeper:Policy\n"
            for group in ("replication_policies", "group_filters", "topic_filters")
        )
    )
    monkeypatch.syspath_prepend(tmp_path)
    result = migrated(tmp_path, f"{ENABLED}A->B.{key}.class = {name}\n")
    assert not ran.exists()
    assert result.exit_code == 0, result.stderr
    assert f"A->B.{key}.class = {name}\n" in result.stdout
    loaded = name if name.startswith("planted") else "planted.deeper:Policy"
    assert f"The Python class {loaded} is not loaded by migrate" in result.stderr
    assert f"# The Python class {loaded} is not loaded by migrate" in result.stdout


def test_nothing_is_imported_from_the_working_directory(tmp_path):
    """Where a file lies that somebody has sent, modules may lie beside it."""
    for library in ("click", "javaproperties", "yaml"):
        (tmp_path / f"{library}.py").write_text("raise SystemExit('ran')\n")
    words = ("-m", "tsoffset", "migrate", INPUTS / "active-active.properties")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = run_program(sys.executable, *words, cwd=tmp_path, env=env)
    assert (run.returncode, "ran" in run.stderr.split()) == (0, False), run.stderr


def test_a_class_that_python_cannot_have_has_to_be_changed(tmp_path):
    """Nothing has to be loaded for that to be seen."""
    result = migrated(tmp_path, f"{ENABLED}A->B.replication.policy.class = de.acme.Policy\n")
    assert result.exit_code == 2
    assert "HAS TO BE CHANGED: there is no Python module de; write" in result.stdout


def test_several_files_are_connectors(tmp_path):
    """A file that is complete by itself takes no other."""
    result = invoke("migrate", "msk-source.json", "active-active.properties")
    assert result.exit_code == 2
    assert "active-active.properties is complete by itself" in result.stderr


def test_references_need_not_be_there(tmp_path, monkeypatch):
    """It may run elsewhere than tsoffset will. Where they are there, nothing of them is shown."""
    text = f"{ENABLED}A->B.topics = ${{env:TOPICS}}, ${{file:/nowhere:b}}\n"
    absent = migrated(tmp_path, text)
    monkeypatch.setenv("TOPICS", "very-private")
    present = migrated(tmp_path, text)
    assert (absent.exit_code, present.exit_code) == (0, 0)
    assert absent.stdout == present.stdout
    assert "A->B.topics = ${env:TOPICS}, ${file:/nowhere:b}" in present.stdout
    assert "very-private" not in present.output


VAST = {
    "aliases of aliases": "a: &a [x]\n"
    + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(20)
    ),
    "lists in lists": "[" * 200_000,
    "an alias of itself": "spec: &s\n  mirrors: *s\n",
    "a large file": "a: b\n" * 400_000,
    "binary": "\0\1\2",
    "no character": 'a: "\\U00110000"\n',
    "no number of C": 'a: "\\UFFFFFFFF"\n',
    "a version of 5,000 digits": f"---\n...\n%YAML 1.{'9' * 5_000}\n---\na: b\n",
}


@pytest.mark.parametrize("name", VAST)
def test_yaml_that_is_meant_to_harm_is_refused(tmp_path, name):
    """In little time and memory, with a sentence."""
    result = migrated(tmp_path, f"kind: KafkaMirrorMaker2\n{VAST[name]}", "x.yaml")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {tmp_path / 'x.yaml'}")
    assert "sys." not in result.stderr


def test_an_alias_stands_for_its_value(tmp_path):
    """As Kubernetes reads it."""
    text = MIRROR.replace("metadata: {name: m}", "metadata: {name: m, labels: {x: &t orders}}")
    text += "      sourceConnector: {}\n      topicsPattern: *t\n"
    assert "a->b.topics = orders\n" in migrated(tmp_path, text, "x.yaml").stdout


def test_flows_that_disagree_on_a_cluster_keep_what_they_say(tmp_path):
    """A cluster's setting is written once where all agree, else for each flow."""
    other = (
        "mirrors:\n    - {source: {alias: c, bootstrapServers: 'c:1'},"
        " sourceConnector: {config: {target.cluster.client.id: one}}}"
    )
    both = MIRROR.replace("mirrors:", other)
    both += "      sourceConnector: {config: {target.cluster.client.id: two}}\n"
    text = migrated(tmp_path, both, "x.yaml").stdout
    assert "c->b.target.cluster.client.id = one\n" in text
    assert "a->b.target.cluster.client.id = two\n" in text
    assert text.count("b.bootstrap.servers = b:9092\n") == 1


def test_only_the_connector_that_copies_says_what_is_copied(tmp_path):
    """Its own isolation level counts, and none is read_uncommitted: as read_committed, a flow would
    skip what it copies of open transactions."""
    common = {"source.cluster.alias": "A", "target.cluster.alias": "B"}
    common |= {f"{side}.cluster.bootstrap.servers": "h:1" for side in ("source", "target")}
    package = "org.apache.kafka.connect.mirror"
    connectors = [
        {**common, "connector.class": f"{package}.MirrorSourceConnector"},
        {
            **common,
            "connector.class": f"{package}.MirrorCheckpointConnector",
            "source.consumer.isolation.level": "read_committed",
        },
    ]
    result = migrated(tmp_path, json.dumps(connectors), "connectors.json")
    (flow,) = resolved(result.output).flows
    assert flow.isolation is Isolation.READ_UNCOMMITTED
