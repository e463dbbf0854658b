"""Configurations from text, and what resolving them says."""

from pathlib import Path

import pytest

from tsoffset.config.loading import Configuration
from tsoffset.config.source import ConfigFormat
from tsoffset.errors import ConfigurationError, ConfigurationProblem
from tsoffset.flow.settings import Settings
from tsoffset.lab.embedded.ports import free_port

FILE = "mm2.properties"
TWO_CLUSTERS = """\
clusters = A, B
A.bootstrap.servers = a1:9092, a2:9092
B.bootstrap.servers = b1:9092
A->B.enabled = true
"""


def properties_file(
    folder: Path, source: str, target: str, *lines: str, clusters: str = "A, B"
) -> Path:
    """A file in `folder` with one enabled flow A->B between these addresses, and `lines`."""
    file = folder / "mm2.properties"
    first = f"clusters = {clusters}", f"A.bootstrap.servers = {source}"
    every = (*first, f"B.bootstrap.servers = {target}", "A->B.enabled = true", *lines)
    file.write_text("".join(f"{line}\n" for line in every))
    return file


def nowhere() -> str:
    return f"127.0.0.1:{free_port()}"


def resolved(text: str, form: ConfigFormat = ConfigFormat.PROPERTIES) -> Settings:
    return Configuration(FILE, text, form).resolve()


def two_clusters(*lines: str) -> Settings:
    """Settings of a file with one enabled flow A->B and `lines` after its four."""
    return resolved(TWO_CLUSTERS + "\n".join(lines))


def problems(
    text: str, form: ConfigFormat = ConfigFormat.PROPERTIES
) -> tuple[ConfigurationProblem, ...]:
    with pytest.raises(ConfigurationError) as caught:
        resolved(text, form)
    return caught.value.problems


def problems_of_two_clusters(*lines: str) -> tuple[ConfigurationProblem, ...]:
    """What is wrong with a file whose line 5 is the first of `lines`."""
    return problems(TWO_CLUSTERS + "\n".join(lines))


def the_problem(*lines: str) -> ConfigurationProblem:
    """The one thing that is wrong with a file whose line 5 is the first of `lines`."""
    (problem,) = problems_of_two_clusters(*lines)
    return problem


def said(text: str, form: ConfigFormat = ConfigFormat.PROPERTIES) -> str:
    """What is wrong with the file, which can be printed."""
    words = "\n".join(map(str, problems(text, form)))
    words.encode()
    return words
