"""Adapters to whatever answers at some addresses, and a clock for their deadlines."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from tests.running_time import RunningTime
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.cluster import KafkaCluster


@pytest.fixture
def adapter() -> Iterator[Callable[..., KafkaCluster]]:
    """A function that makes one, with settings of its clients and further ones of the cluster; all
    are closed when the test ends."""
    with ExitStack() as made:

        def start(
            *addresses: str, client: Mapping[str, str] | None = None, **settings: Any
        ) -> KafkaCluster:
            cluster = ClusterSettings("A", addresses, client or {}, **settings)
            return made.enter_context(KafkaCluster(cluster))

        yield start


@pytest.fixture
def running_time() -> Iterator[RunningTime]:
    """Deadlines and asyncio's timers go by this clock: a test may give a call little time."""
    with RunningTime() as clock, pytest.MonkeyPatch.context() as patched:
        patched.setattr(time, "monotonic", clock.monotonic)
        yield clock
