"""Real clusters for the tests: started when the first test asks, stopped at the end."""

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from tsoffset.embedded import EmbeddedBroker

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def source_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A one-node cluster to copy from; shared, so use names of your own (`unique`)."""
    with EmbeddedBroker(tmp_path_factory.mktemp("source"), name="source") as broker:
        yield broker


@pytest.fixture(scope="session")
def target_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A one-node cluster to copy to; shared, so use names of your own (`unique`)."""
    with EmbeddedBroker(tmp_path_factory.mktemp("target"), name="target") as broker:
        yield broker


@pytest.fixture(scope="session")
def unique() -> Callable[[str], str]:
    """A function that makes a topic's or a group's name that no other test has."""

    def name(prefix: str) -> str:
        return f"{prefix}-{os.getpid()}-{next(_numbers)}"

    return name
