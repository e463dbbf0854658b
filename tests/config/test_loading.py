"""Reading files: formats, encodings, and that anything else is refused."""

import pickle
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.configured import properties_file
from tests.invoking import succeeds
from tsoffset.config.loading import Configuration
from tsoffset.config.source import ConfigFormat
from tsoffset.errors import ConfigurationError


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


def test_configuration_needs_no_kafka_and_no_spark():
    """It is read before anything is connected, and in every worker."""
    code = (
        "import sys, tsoffset.config.loading, tsoffset.flow.narrowing\n"
        "print({'kafka', 'pyspark', 'structlog', 'tenacity'} & set(sys.modules))"
    )
    assert succeeds(sys.executable, "-c", code) == "set()\n"


@given(st.binary(max_size=300), st.sampled_from((".properties", ".json", "")))
def test_a_file_of_random_bytes_is_a_configuration_error(tmp_path_factory, content, suffix):
    path = tmp_path_factory.getbasetemp() / f"random{suffix}"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as raised:
        Configuration.read(path).resolve()
    str(raised.value).encode()
