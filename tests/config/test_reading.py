"""Reading files: encodings, lines, formats, references, and that anything else is refused."""

import json
import pickle
import re
import sys
import time

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.configured import problems, properties_file, resolved, the_problem, two_clusters
from tests.invoking import succeeds
from tsoffset.config.findings import Findings
from tsoffset.config.loading import Configuration
from tsoffset.config.selection import Selector
from tsoffset.config.source import ConfigFormat, parse
from tsoffset.errors import ConfigurationError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


# --- files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.properties", "clusters = A", ConfigFormat.PROPERTIES),
        ("a.json", '{"a": 1}', ConfigFormat.JSON),
        ("a.JSON", "{}", ConfigFormat.JSON),
        ("a.conf", '\n {"a": 1}', ConfigFormat.JSON),
        ("a.conf", "clusters = A", ConfigFormat.PROPERTIES),
        ("a.properties", "{", ConfigFormat.PROPERTIES),
    ],
)
def test_the_format_is_told_by_name_or_content(tmp_path, name, content, expected):
    """The ending decides; without a known one the first character."""
    path = tmp_path / name
    path.write_text(content)
    configuration = Configuration.read(path)
    assert configuration.format is expected
    assert configuration.text == content
    assert configuration.path == str(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_text_is_read_whatever_its_encoding(tmp_path, encoding):
    """UTF-8 with or without its mark, else Latin-1 as Java reads properties."""
    path = tmp_path / "a.properties"
    path.write_bytes("clusters = Zürich".encode(encoding))
    assert Configuration.read(path).text == "clusters = Zürich"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing.properties", None, "cannot be read"),
        (".", None, "cannot be read"),
        ("a\0b", None, "cannot be read"),
        # A file without end.
        ("/dev/zero", None, "is larger than 16 MiB"),
        # It would be read as properties, line by line, to no purpose.
        ("a.yaml", b"clusters: A", "is YAML"),
        # Windows editors call it Unicode; as Latin-1 each of its lines would be an unknown key.
        ("a.properties", "clusters = A, B\n".encode("utf-16"), "save it as UTF-8"),
        ("a.properties", "clusters = A, B\n".encode("utf-16-le"), "save it as UTF-8"),
    ],
)
def test_a_file_that_cannot_be_taken_is_named_in_one_sentence(tmp_path, name, content, said):
    """With its path, and the system's reason or what to do."""
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        Configuration.read(path)
    (problem,) = caught.value.problems
    assert problem.file == str(path)
    assert said in problem.allowed


def test_a_configuration_travels_unresolved(tmp_path):
    """What is pickled has the references in it, not what they stand for."""
    secret = tmp_path / "secret.properties"
    secret.write_text("id = c4n4ry\n")
    path = properties_file(tmp_path, "a:1", "b:1", f"client.id = ${{file:{secret}:id}}")
    traveling = pickle.dumps(Configuration.read(path))
    assert b"c4n4ry" not in traveling
    (flow,) = pickle.loads(traveling).resolve().flows
    assert flow.source.client == {"client.id": "c4n4ry"}


# --- properties and JSON ----------------------------------------------------------------


@given(st.dictionaries(TEXT.filter(bool), TEXT, max_size=6))
def test_properties_are_read_as_java_writes_them(pairs):
    """Every pair comes back, with the line on which it begins."""
    text = "# first line\n" + javaproperties.dumps(pairs, timestamp=False)
    entries = parse(text, ConfigFormat.PROPERTIES, "f", Findings())
    assert {entry.key: entry.text for entry in entries} == pairs
    assert [entry.line for entry in entries] == list(range(2, 2 + len(pairs)))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_over_continuations_and_comments(end):
    """A value over several lines counts as its lines; its own line is the first."""
    text = end.join(["! note", "", "a = 1,\\", "    2", "b : 3", "", "c 4"])
    entries = parse(text, ConfigFormat.PROPERTIES, "f", Findings())
    assert [(entry.key, entry.text, entry.line) for entry in entries] == [
        ("a", "1,2", 3),
        ("b", "3", 5),
        ("c", "4", 7),
    ]


def test_a_broken_escape_is_named_with_its_line():
    """Java refuses the whole file; the line helps to mend it."""
    found = problems("clusters = A, B\nA.bootstrap.servers = \\u12\n")
    assert [(problem.key, problem.line) for problem in found] == [("\\u", 2)]


@given(st.dictionaries(TEXT, TEXT | st.integers() | st.booleans(), max_size=6), st.booleans())
def test_json_is_read_member_by_member(members, escaped):
    """Text stays, numbers and booleans become text; lines are those of the members."""
    text = json.dumps(members, indent=1, ensure_ascii=escaped)
    entries = parse(text, ConfigFormat.JSON, "f", Findings())
    assert {entry.key: entry.text for entry in entries} == {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in members.items()
    }
    assert [entry.line for entry in entries] == list(range(2, 2 + len(members)))


# --- references -------------------------------------------------------------------------


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
        "replication.policy.class = tests.config.test_reading:${env:TSOFFSET_TEST_SECRET}",
        "replication.policy.class = ${env:TSOFFSET_TEST_SECRET}.x",
        "security.protocol = ${env:TSOFFSET_TEST_SECRET}",
    ],
)
def test_what_a_reference_stands_for_is_in_no_error(line, monkeypatch):
    monkeypatch.setenv("TSOFFSET_TEST_SECRET", "c4n4ry")
    problem = the_problem(line)
    assert "c4n4ry" not in str(problem)


# --- layers -----------------------------------------------------------------------------


def test_configuration_needs_no_kafka_and_no_spark():
    """It is read before anything is connected, and in every worker."""
    code = (
        "import sys, tsoffset.config.loading, tsoffset.flow.narrowing\n"
        "print({'kafka', 'pyspark', 'structlog', 'tenacity'} & set(sys.modules))"
    )
    assert succeeds(sys.executable, "-c", code) == "set()\n"


def test_a_file_that_is_being_written_is_told_from_a_whole_one(tmp_path, monkeypatch):
    """The beginning of a file is valid without its last lines, which may exclude groups."""
    file = properties_file(tmp_path, "a:1", "b:1")
    whole = file.read_text() + "groups.exclude = secret\n"
    monkeypatch.setattr(time, "sleep", lambda _: file.write_text(whole))
    selector = Selector(file)
    assert selector.is_being_written()
    assert not selector.is_being_written()
