"""Configurations from text, and what resolving them says."""

import pytest

from tsoffset.config.loading import Configuration
from tsoffset.config.source import Format
from tsoffset.errors import ConfigurationError, Problem
from tsoffset.flow.settings import Settings

FILE = "mm2.properties"
TWO_CLUSTERS = """\
clusters = A, B
A.bootstrap.servers = a1:9092, a2:9092
B.bootstrap.servers = b1:9092
A->B.enabled = true
"""


def resolved(text: str, form: Format = Format.PROPERTIES) -> Settings:
    return Configuration(FILE, text, form).resolve()


def two_clusters(*lines: str) -> Settings:
    """Settings of a file with one enabled flow A->B and `lines` after its four."""
    return resolved(TWO_CLUSTERS + "\n".join(lines))


def problems(text: str, form: Format = Format.PROPERTIES) -> tuple[Problem, ...]:
    with pytest.raises(ConfigurationError) as caught:
        resolved(text, form)
    return caught.value.problems


def problems_of_two_clusters(*lines: str) -> tuple[Problem, ...]:
    """What is wrong with a file whose line 5 is the first of `lines`."""
    return problems(TWO_CLUSTERS + "\n".join(lines))


def the_problem(*lines: str) -> Problem:
    """The one thing that is wrong with a file whose line 5 is the first of `lines`."""
    (problem,) = problems_of_two_clusters(*lines)
    return problem
