"""Configuration files that are none: random bytes, references in a circle, huge values."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.configured import FILE, TWO_CLUSTERS, problems, resolved
from tsoffset.config.loading import Configuration
from tsoffset.config.source import ConfigFormat
from tsoffset.errors import ConfigurationError


def said(text: str, form: ConfigFormat = ConfigFormat.PROPERTIES) -> str:
    """What is wrong with the file, which can be printed."""
    words = "\n".join(map(str, problems(text, form)))
    words.encode()
    return words


@given(st.binary(max_size=300), st.sampled_from((".properties", ".json", "")))
def test_a_file_of_random_bytes_is_a_configuration_error(tmp_path_factory, content, suffix):
    path = tmp_path_factory.getbasetemp() / f"random{suffix}"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as raised:
        Configuration.read(path).resolve()
    str(raised.value).encode()


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
@pytest.mark.timeout(60)  # the square of its length would take hours
@pytest.mark.parametrize(
    "value", ["${a:" * 500_000, "${a" * 500_000 + "}", "\\\\" * 500_000, "x" * 5_000_000]
)
def test_a_huge_value_takes_no_longer_than_its_length(value):
    text = TWO_CLUSTERS + f"A.client.id = {value}\n"
    [flow] = resolved(text).flows
    assert flow.source.client["client.id"]


def test_each_of_many_members_of_json_is_found_on_its_line():
    members = {f"groups.{number}": "v" for number in range(500)} | {"tasks.max": 0}
    assert f"{FILE}:502: tasks.max" in said(json.dumps(members, indent=1), ConfigFormat.JSON)


def test_half_of_a_character_is_a_problem():
    """It could not be printed, nor sent to a broker."""
    assert "half of a character" in said(TWO_CLUSTERS + "A.client.id = a\\ud800b\n")
    assert "half of a character" in said('{"name\\ud800": "v", "b": "\\udfff"}', ConfigFormat.JSON)
