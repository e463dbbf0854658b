"""The cost of a cycle: seconds of each stage, and traffic to the clusters.

The driver and each task count their own cost. A task returns it with its result.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from tsoffset.cluster import Cluster, Connect
from tsoffset.flow.settings import ClusterSettings
from tsoffset.kafka.clients import CLIENTS, Traffic
from tsoffset.model import Side


class Stage(StrEnum):
    """The stages of a cycle, in their order."""

    LIST_GROUPS = "list_groups"
    READ_COMMITS = "read_commits"
    TRANSLATE = "translate"
    SETTLE = "settle"


@dataclass(slots=True)
class Spent:
    """The cost so far: seconds by stage, and traffic by side."""

    seconds: dict[Stage, float] = field(default_factory=lambda: dict.fromkeys(Stage, 0.0))
    traffic: dict[Side, Traffic] = field(default_factory=lambda: dict.fromkeys(Side, Traffic()))

    @contextmanager
    def on(self, stage: Stage) -> Iterator[None]:
        """Count the block's seconds for the stage."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += time.perf_counter() - started

    @contextmanager
    def lease(self, side: Side, connect: Connect, settings: ClusterSettings) -> Iterator[Cluster]:
        """A client of this side, as `Clients.lease`; its traffic during the block is counted."""
        with CLIENTS.lease(connect, settings) as client:
            before = Traffic.of(client)
            try:
                yield client
            finally:
                self.traffic[side] += Traffic.of(client) - before
