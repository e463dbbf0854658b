"""References to values in other places."""

import re

import pytest

from tests.configured import FILE, TWO_CLUSTERS, problems, resolved, said, the_problem, two_clusters


def _value_of(reference: str, *lines: str) -> str:
    (flow,) = two_clusters(f"A.client.id = {reference}", *lines).flows
    return flow.source.client["client.id"]


def test_references_work_without_a_providers_line(tmp_path, monkeypatch):
    (tmp_path / "f.properties").write_text("some.key = from file\n", encoding="utf-8")
    (tmp_path / "name").write_text("from dir\n")
    monkeypatch.setenv("TSOFFSET_TEST_ID", "from env")
    assert _value_of("${env:TSOFFSET_TEST_ID}") == "from env"
    assert _value_of(f"${{file:{tmp_path}/f.properties:some.key}}") == "from file"
    assert _value_of(f"${{dir:{tmp_path}:name}}") == "from dir"


def test_several_references_in_one_value(tmp_path, monkeypatch):
    """Each is replaced where it stands; what comes out is not looked at again."""
    monkeypatch.setenv("TSOFFSET_TEST_A", "${env:TSOFFSET_TEST_B}")
    monkeypatch.setenv("TSOFFSET_TEST_B", "b")
    value = _value_of("x-${env:TSOFFSET_TEST_A}-${env:TSOFFSET_TEST_B}")
    assert value == "x-${env:TSOFFSET_TEST_B}-b"


def test_a_providers_line_gives_kafkas_providers_other_names(monkeypatch):
    """The class decides what a name means."""
    monkeypatch.setenv("TSOFFSET_TEST_ID", "me")
    lines = (
        "config.providers = e",
        "config.providers.e.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    )
    assert _value_of("${e:TSOFFSET_TEST_ID}", *lines) == "me"


def test_references_hold_for_clusters_and_flows(monkeypatch):
    monkeypatch.setenv("TSOFFSET_TEST_CLUSTERS", "A, B")
    monkeypatch.setenv("TSOFFSET_TEST_SERVER", "a")
    (flow,) = resolved(
        "clusters = ${env:TSOFFSET_TEST_CLUSTERS}\n"
        "A.bootstrap.servers = ${env:TSOFFSET_TEST_SERVER}:1\n"
        "B.bootstrap.servers = b:1\nA->B.enabled = true\n"
    ).flows
    assert flow.source.bootstrap_servers == ("a:1",)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("${env:TSOFFSET_TEST_NOT_SET}", "environment variable TSOFFSET_TEST_NOT_SET is not set"),
        ("${file:no-such-file.properties:k}", "no-such-file.properties cannot be read"),
        ("${file:pyproject.toml}", "write ${file:path:key}"),
        ("${dir:no-such-directory:name}", "no-such-directory cannot be read"),
        ("${dir:name}", "write ${dir:path:file}"),
        ("${dir:tests:../pyproject.toml}", "is not a file name"),
        ("${vault:path:key}", "no config provider vault; there are dir, env, file"),
    ],
)
def test_a_reference_to_nothing_is_an_error_that_names_it(reference, said):
    problem = the_problem(f"client.id = {reference}")
    assert (problem.key, problem.line, problem.value) == ("client.id", 5, reference)
    assert said in problem.allowed


def test_a_key_that_the_file_lacks_is_named(tmp_path):
    path = tmp_path / "f.properties"
    path.write_text("other = c4n4ry\n")
    problem = the_problem(f"client.id = ${{file:{path}:wanted}}")
    assert f"{path} has no key wanted" in problem.allowed
    assert "c4n4ry" not in str(problem)


def test_all_missing_references_of_a_value_are_named():
    found = problems(
        "clusters = A, B\nclient.id = ${env:TSOFFSET_TEST_X1}${env:TSOFFSET_TEST_X2}\n"
    )
    assert [re.search("X[12] is not set", problem.allowed) is not None for problem in found] == [
        True,
        True,
    ]


def test_an_unknown_class_under_a_known_name_is_not_taken_for_kafkas():
    """`file` may have been given to another provider."""
    problem = the_problem(
        "client.id = ${file:a:b}",
        "config.providers = file",
        "config.providers.file.class = com.example.Vault",
    )
    assert "no config provider file" in problem.allowed


@pytest.mark.parametrize(
    "line",
    [
        "tasks.max = ${env:TSOFFSET_TEST_SECRET}",
        "admin.timeout.ms = 1${env:TSOFFSET_TEST_SECRET}",
        "groups = [${env:TSOFFSET_TEST_SECRET}",
        "A.admin.bootstrap.servers = ${env:TSOFFSET_TEST_SECRET}",
        "translation.proof = ${env:TSOFFSET_TEST_SECRET}",
        "replication.policy.class = tests.config.test_providers:${env:TSOFFSET_TEST_SECRET}",
        "replication.policy.class = ${env:TSOFFSET_TEST_SECRET}.x",
        "security.protocol = ${env:TSOFFSET_TEST_SECRET}",
    ],
)
def test_what_a_reference_stands_for_is_in_no_error(line, monkeypatch):
    monkeypatch.setenv("TSOFFSET_TEST_SECRET", "c4n4ry")
    problem = the_problem(line)
    assert "c4n4ry" not in str(problem)


def test_references_in_a_circle_are_followed_once(tmp_path, monkeypatch):
    """As by Kafka: what stands for a reference is text, whatever it holds."""
    path = tmp_path / "values.properties"
    path.write_text(f"one = ${{file:{path}:two}}\ntwo = ${{env:CIRCLE}}\n")
    monkeypatch.setenv("CIRCLE", f"${{file:{path}:one}}")
    text = TWO_CLUSTERS + f"A.client.id = ${{file:{path}:one}}\n"
    [flow] = resolved(text).flows
    assert flow.source.client["client.id"] == f"${{file:{path}:two}}"


@pytest.mark.parametrize("name", ["\\u0000", "a\\ud800", "/dev/zero", "/", "/nowhere/at/all"])
@pytest.mark.parametrize("reference", ["${file:%s:key}", "${dir:%s:key}", "${dir:/tmp:%s}"])
def test_a_reference_to_what_is_no_file_is_a_problem_with_its_line(name, reference):
    """A name that no file can have, and a file without end."""
    assert f"{FILE}:5" in said(TWO_CLUSTERS + f"A.client.id = {reference % name}\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "value", ["${a:" * 500_000, "${a" * 500_000 + "}", "\\\\" * 500_000, "x" * 5_000_000]
)
def test_a_huge_value_takes_no_longer_than_its_length(value):
    """Its square would take hours."""
    text = TWO_CLUSTERS + f"A.client.id = {value}\n"
    [flow] = resolved(text).flows
    assert flow.source.client["client.id"]
